// tilewright._native: the types Expr, Builder, Program and Kernel, and the table of operations.
#include <vector>

#include "objects.h"

namespace tilewright::python {

Registered registered;
PyTypeObject *expr_type, *builder_type, *program_type, *kernel_type, *flat_calls_type;

PyObject* raise(tw_error* error) {
  tw_error_info i;
  tw_error_get(error, &i);
  PyObject* exception = PyObject_CallFunction(registered.error, "sssssssii", i.kind, i.code, i.area, i.message, i.help,
                                              i.text, i.file, i.line, i.column);
  tw_error_release(error);
  if (exception) {
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception)), exception);
    Py_DECREF(exception);
  }
  return nullptr;
}

bool is_expr(PyObject* object) { return PyType_IsSubtype(Py_TYPE(object), expr_type); }

PyObject* new_expr(tw_expr* expr) {
  PyObject* object = allocate(reinterpret_cast<PyTypeObject*>(registered.expr));
  if (object)
    object_of<ExprObject>(object)->expr = expr;
  else
    tw_expr_release(expr);
  return object;
}

PyObject* new_program(tw_program* program) {
  PyObject* object = allocate(program_type);
  if (object)
    object_of<ProgramObject>(object)->program = program;
  else
    tw_program_release(program);
  return object;
}

PyObject* new_string(tw_text* text) {
  PyObject* object = PyUnicode_FromString(tw_text_get(text));
  tw_text_release(text);
  return object;
}

namespace {

// ---- Expr

void destroy_expr(PyObject* self) {
  if (object_of<ExprObject>(self)->expr) tw_expr_release(object_of<ExprObject>(self)->expr);
  Py_XDECREF(object_of<ExprObject>(self)->ended);
  free_object(self);
}

PyObject* expr_dtype(PyObject* self, void*) {
  return PyUnicode_FromString(tw_expr_dtype(object_of<ExprObject>(self)->expr));
}

PyObject* expr_constant(PyObject* self, void*) {
  const tw_value v = tw_expr_constant(object_of<ExprObject>(self)->expr);
  switch (v.kind) {
    case TW_BOOL: return PyBool_FromLong(v.as.integer != 0);
    case TW_INT: return PyLong_FromLongLong(v.as.integer);
    case TW_UINT: return PyLong_FromUnsignedLongLong(static_cast<uint64_t>(v.as.integer));
    case TW_FLOAT: return PyFloat_FromDouble(v.as.number);
    default: Py_RETURN_NONE;
  }
}

PyObject* expr_ended(PyObject* self, void*) {
  PyObject* ended = object_of<ExprObject>(self)->ended;
  if (!ended) Py_RETURN_NONE;
  Py_INCREF(ended);
  return ended;
}
int set_expr_ended(PyObject* self, PyObject* value, void*) {
  Py_XINCREF(value);
  Py_XDECREF(object_of<ExprObject>(self)->ended);
  object_of<ExprObject>(self)->ended = value;
  return 0;
}

PyObject* expr_same(PyObject* self, PyObject* other) {
  return PyBool_FromLong(is_expr(other) &&
                         tw_expr_equal(object_of<ExprObject>(self)->expr, object_of<ExprObject>(other)->expr));
}

// ---- Builder

struct BuilderObject {
  PyObject_HEAD tw_builder* builder;
};

PyObject* create_builder(PyTypeObject* type, PyObject* args, PyObject*) {
  const char* name = nullptr;
  if (!PyArg_ParseTuple(args, "s", &name)) return nullptr;
  PyObject* self = allocate(type);
  if (self) object_of<BuilderObject>(self)->builder = tw_builder_create(name);
  return self;
}
void destroy_builder(PyObject* self) {
  if (object_of<BuilderObject>(self)->builder) tw_builder_release(object_of<BuilderObject>(self)->builder);
  free_object(self);
}
PyObject* builder_apply(PyObject* self, PyObject* args) {
  return apply_operation(object_of<BuilderObject>(self)->builder, args);
}
PyObject* builder_finish(PyObject* self, PyObject*) {
  tw_program* program = nullptr;
  if (tw_error* error = tw_builder_finish(object_of<BuilderObject>(self)->builder, &program)) return raise(error);
  return new_program(program);
}

// ---- Program

void destroy_program(PyObject* self) {
  if (object_of<ProgramObject>(self)->program) tw_program_release(object_of<ProgramObject>(self)->program);
  free_object(self);
}
PyObject* program_text(PyObject* self, void*) {
  return PyUnicode_FromString(tw_program_text(object_of<ProgramObject>(self)->program));
}

// Of a dict from names to numbers, or to texts. False with an exception.
template <class Number>
bool read_numbers(PyObject* values, auto read, std::vector<const char*>& names, std::vector<Number>& numbers) {
  PyObject *key = nullptr, *value = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(values, &at, &key, &value);) {
    names.push_back(PyUnicode_AsUTF8AndSize(key, nullptr));
    numbers.push_back(read(value));
    if (PyErr_Occurred()) return false;
  }
  return true;
}

// What `ask` gives of the program for the numbers of a dict, without the interpreter's lock.
template <class Number>
PyObject* text_of(PyObject* self, PyObject* values, auto read, auto ask) {
  std::vector<const char*> names;
  std::vector<Number> numbers;
  if (!read_numbers(values, read, names, numbers)) return nullptr;
  tw_text* text = nullptr;
  tw_error* error = nullptr;
  tw_program* program = object_of<ProgramObject>(self)->program;
  Py_BEGIN_ALLOW_THREADS;
  error = ask(program, names, numbers, &text);
  Py_END_ALLOW_THREADS;
  return error ? raise(error) : new_string(text);
}

// explain(arch, json, values): `values` is a dict from names of symbols to integers.
PyObject* program_explain(PyObject* self, PyObject* args) {
  const char* arch = nullptr;
  int json = 0;
  PyObject* values = nullptr;
  if (!PyArg_ParseTuple(args, "spO!", &arch, &json, &PyDict_Type, &values)) return nullptr;
  return text_of<int64_t>(self, values, PyLong_AsLongLong,
                          [&](tw_program* p, const auto& names, const auto& numbers, tw_text** text) {
                            return tw_program_explain(p, arch, json, names.data(), numbers.data(), names.size(), text);
                          });
}

// studio(arch, values)
PyObject* program_studio(PyObject* self, PyObject* args) {
  const char* arch = nullptr;
  PyObject* values = nullptr;
  if (!PyArg_ParseTuple(args, "sO!", &arch, &PyDict_Type, &values)) return nullptr;
  return text_of<int64_t>(self, values, PyLong_AsLongLong,
                          [&](tw_program* p, const auto& names, const auto& numbers, tw_text** text) {
                            return tw_program_studio(p, arch, names.data(), numbers.data(), names.size(), text);
                          });
}

// cost(machine, values)
PyObject* program_cost(PyObject* self, PyObject* args) {
  const char* machine = nullptr;
  PyObject* values = nullptr;
  if (!PyArg_ParseTuple(args, "sO!", &machine, &PyDict_Type, &values)) return nullptr;
  return text_of<int64_t>(self, values, PyLong_AsLongLong,
                          [&](tw_program* p, const auto& names, const auto& numbers, tw_text** text) {
                            return tw_program_cost(p, machine, names.data(), numbers.data(), names.size(), text);
                          });
}

// simulate(arch, values, seed): what it counts, and its timeline, both as JSON.
PyObject* program_simulate(PyObject* self, PyObject* args) {
  const char* arch = nullptr;
  PyObject* values = nullptr;
  unsigned long long seed = 0;
  if (!PyArg_ParseTuple(args, "sO!K", &arch, &PyDict_Type, &values, &seed)) return nullptr;
  std::vector<const char*> names;
  std::vector<double> numbers;
  if (!read_numbers(values, PyFloat_AsDouble, names, numbers)) return nullptr;
  tw_text *counts = nullptr, *trace = nullptr;
  tw_error* error = nullptr;
  tw_program* program = object_of<ProgramObject>(self)->program;
  Py_BEGIN_ALLOW_THREADS;
  error = tw_program_simulate(program, arch, names.data(), numbers.data(), names.size(), seed, &counts, &trace);
  Py_END_ALLOW_THREADS;
  return error ? raise(error) : Py_BuildValue("(NN)", new_string(counts), new_string(trace));
}

// check(values, seed, json): `values` is a dict from names of symbols and numbers to numbers.
PyObject* program_check(PyObject* self, PyObject* args) {
  PyObject* values = nullptr;
  unsigned long long seed = 0;
  int json = 0;
  if (!PyArg_ParseTuple(args, "O!Kp", &PyDict_Type, &values, &seed, &json)) return nullptr;
  return text_of<double>(self, values, PyFloat_AsDouble,
                         [&](tw_program* p, const auto& names, const auto& numbers, tw_text** text) {
                           return tw_program_check(p, names.data(), numbers.data(), names.size(), seed, json, text);
                         });
}

// build(arch, name, folder)
PyObject* program_build(PyObject* self, PyObject* args) {
  const char *arch = nullptr, *name = nullptr, *folder = nullptr;
  if (!PyArg_ParseTuple(args, "sss", &arch, &name, &folder)) return nullptr;
  tw_text* text = nullptr;
  tw_error* error = nullptr;
  tw_program* program = object_of<ProgramObject>(self)->program;
  Py_BEGIN_ALLOW_THREADS;
  error = tw_program_build(program, arch, name, folder, &text);
  Py_END_ALLOW_THREADS;
  return error ? raise(error) : new_string(text);
}

PyObject* program_with_plan(PyObject* self, PyObject* args) {
  const char* plan = nullptr;
  if (!PyArg_ParseTuple(args, "s", &plan)) return nullptr;
  tw_program* program = nullptr;
  if (tw_error* error = tw_program_with_plan(object_of<ProgramObject>(self)->program, plan, &program))
    return raise(error);
  return new_program(program);
}

PyObject* program_with_option(PyObject* self, PyObject* args) {
  const char* name = nullptr;
  int value = 0;
  if (!PyArg_ParseTuple(args, "sp", &name, &value)) return nullptr;
  tw_program* program = nullptr;
  if (tw_error* error = tw_program_with_option(object_of<ProgramObject>(self)->program, name, value, &program))
    return raise(error);
  return new_program(program);
}

// ---- the module

PyObject* module_apply(PyObject*, PyObject* args) { return apply_operation(nullptr, args); }

PyObject* module_operations(PyObject*, PyObject*) {
  PyObject* list = PyList_New(0);
  for (int i = 0; list && i < tw_operation_count(); ++i) {
    const tw_operation o = tw_operation_at(i);
    PyObject* row = Py_BuildValue("(ssss)", o.name, o.group, o.signature, o.doc);
    if (!row || PyList_Append(list, row) < 0) {
      Py_DECREF(list);
      list = nullptr;
    }
    Py_XDECREF(row);
  }
  return list;
}

PyObject* module_parse(PyObject*, PyObject* args) {
  const char *text = nullptr, *file = "program.tile";
  if (!PyArg_ParseTuple(args, "s|s", &text, &file)) return nullptr;
  tw_program* program = nullptr;
  if (tw_error* error = tw_program_parse(text, file, &program)) return raise(error);
  return new_program(program);
}

// library_program(family, options): `options` is a dict of texts.
PyObject* module_library_program(PyObject*, PyObject* args) {
  const char* family = nullptr;
  PyObject* options = nullptr;
  if (!PyArg_ParseTuple(args, "sO!", &family, &PyDict_Type, &options)) return nullptr;
  std::vector<const char*> names, texts;
  const auto text_of = [](PyObject* o) { return PyUnicode_AsUTF8AndSize(o, nullptr); };
  if (!read_numbers(options, text_of, names, texts)) return nullptr;
  tw_program* program = nullptr;
  if (tw_error* error = tw_library_program(family, names.data(), texts.data(), names.size(), &program))
    return raise(error);
  return new_program(program);
}

// library_choose(family, options, arch, shape): `shape` is a dict from names of symbols to integers.
PyObject* module_library_choose(PyObject*, PyObject* args) {
  const char *family = nullptr, *arch = nullptr;
  PyObject *options = nullptr, *shape = nullptr;
  if (!PyArg_ParseTuple(args, "sO!sO!", &family, &PyDict_Type, &options, &arch, &PyDict_Type, &shape)) return nullptr;
  std::vector<const char*> names, texts, symbols;
  std::vector<int64_t> values;
  const auto text_of = [](PyObject* o) { return PyUnicode_AsUTF8AndSize(o, nullptr); };
  if (!read_numbers(options, text_of, names, texts) || !read_numbers(shape, PyLong_AsLongLong, symbols, values))
    return nullptr;
  tw_text* text = nullptr;
  tw_error* error = nullptr;
  Py_BEGIN_ALLOW_THREADS;
  error = tw_library_choose(family, names.data(), texts.data(), names.size(), arch, symbols.data(), values.data(),
                            symbols.size(), &text);
  Py_END_ALLOW_THREADS;
  return error ? raise(error) : new_string(text);
}

PyObject* module_dtype(PyObject*, PyObject* args) {
  const char* name = nullptr;
  if (!PyArg_ParseTuple(args, "s", &name)) return nullptr;
  const char* full = tw_dtype_name(name);
  if (!full) Py_RETURN_NONE;
  return Py_BuildValue("(si)", full, tw_dtype_bits(name));
}

PyObject* module_tensor_dtypes(PyObject*, PyObject*) {
  PyObject* out = PyList_New(0);
  for (int i = 0; out && tw_tensor_dtype_at(i); ++i) {
    const char* name = tw_tensor_dtype_at(i);
    PyObject* row = Py_BuildValue("(sO)", name, tw_dtype_as_bytes(name) ? Py_True : Py_False);
    if (!row || PyList_Append(out, row) != 0) Py_CLEAR(out);
    Py_XDECREF(row);
  }
  return out;
}

PyObject* module_device_count(PyObject*, PyObject*) { return PyLong_FromLong(tw_cuda_device_count()); }
PyObject* module_set_stream(PyObject*, PyObject* stream) {
  void* handle = PyLong_AsVoidPtr(stream);
  if (!handle && PyErr_Occurred()) return nullptr;
  tw_cuda_set_stream(handle);
  Py_RETURN_NONE;
}
PyObject* module_machine(PyObject*, PyObject* trying) {
  tw_text* text = nullptr;
  tw_error* error = nullptr;
  const int tries = PyObject_IsTrue(trying);
  Py_BEGIN_ALLOW_THREADS;
  error = tw_machine(tries, &text);
  Py_END_ALLOW_THREADS;
  return error ? raise(error) : new_string(text);
}
PyObject* module_version(PyObject*, PyObject*) { return PyUnicode_FromString(tw_version()); }

PyObject* module_register(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* const names[] = {"expr",      "buffer",  "tile",     "error", "empty", "options",
                                      "to_dlpack", "refusal", "gradient", "bools", "range", nullptr};
  Registered r;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOOOOOOOOO", const_cast<char**>(names), &r.expr, &r.buffer, &r.tile,
                                   &r.error, &r.empty, &r.options, &r.to_dlpack, &r.refusal, &r.gradient, &r.bools,
                                   &r.range))
    return nullptr;
  for (PyObject* o :
       {r.expr, r.buffer, r.tile, r.error, r.empty, r.options, r.to_dlpack, r.refusal, r.gradient, r.bools, r.range})
    Py_INCREF(o);
  registered = r;
  Py_RETURN_NONE;
}

PyObject* module_machines(PyObject*, PyObject*) {
  tw_text* text = nullptr;
  tw_error* error = tw_machines(&text);
  return error ? raise(error) : new_string(text);
}

PyMethodDef module_methods[] = {
    {"apply", module_apply, METH_VARARGS, "apply(operation, place, *operands): an operation on scalars alone."},
    {"operations", module_operations, METH_NOARGS, "The table: (name, group, signature, doc) of each operation."},
    {"parse", module_parse, METH_VARARGS, "parse(text, file): the program of a .tile text."},
    {"library_program", module_library_program, METH_VARARGS,
     "library_program(family, options): a program of the kernel library."},
    {"library_choose", module_library_choose, METH_VARARGS,
     "library_choose(family, options, arch, shape): what suits a shape, as JSON."},
    {"dtype", module_dtype, METH_VARARGS, "dtype(name): its full name and bits, or None."},
    {"tensor_dtypes", module_tensor_dtypes, METH_NOARGS,
     "(name, whether bytes stand for it) of each dtype of tensors."},
    {"device_count", module_device_count, METH_NOARGS, "CUDA devices here."},
    {"set_stream", module_set_stream, METH_O, "The CUDA stream of the calls of this thread, as an integer."},
    {"machine", module_machine, METH_O, "machine(trying): what this machine offers, as JSON."},
    {"machines", module_machines, METH_NOARGS, "The machines that cost() knows, as JSON."},
    {"version", module_version, METH_NOARGS, "The version of the library."},
    {"register", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(module_register)),
     METH_VARARGS | METH_KEYWORDS, "Hands over the package's classes and functions."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

PyTypeObject* make_expr_type() {
  static PyGetSetDef fields[] = {
      {"dtype_name", expr_dtype, nullptr, "Its dtype.", nullptr},
      {"constant", expr_constant, nullptr, "Its value if it is known now, else None.", nullptr},
      {"ended", expr_ended, set_expr_ended, "Why it may not be used any more.", nullptr},
      {nullptr, nullptr, nullptr, nullptr, nullptr}};
  static PyMethodDef methods[] = {{"same", expr_same, METH_O, "Whether the other expression has the same structure."},
                                  {nullptr, nullptr, 0, nullptr}};
  static PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(destroy_expr)},
                                {Py_tp_getset, fields},
                                {Py_tp_methods, methods},
                                {0, nullptr}};
  static PyType_Spec spec = {"tilewright._native.Expr", sizeof(ExprObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                             slots};
  return reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
}

PyTypeObject* make_builder_type() {
  static PyMethodDef methods[] = {
      {"apply", builder_apply, METH_VARARGS, "apply(operation, place, *operands)"},
      {"finish", builder_finish, METH_NOARGS, "The program; the builder is empty afterwards."},
      {nullptr, nullptr, 0, nullptr}};
  static PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(create_builder)},
                                {Py_tp_dealloc, reinterpret_cast<void*>(destroy_builder)},
                                {Py_tp_methods, methods},
                                {0, nullptr}};
  static PyType_Spec spec = {"tilewright._native.Builder", sizeof(BuilderObject), 0, Py_TPFLAGS_DEFAULT, slots};
  return reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
}

PyTypeObject* make_program_type() {
  static PyGetSetDef fields[] = {{"text", program_text, nullptr, "Its .tile form.", nullptr},
                                 {nullptr, nullptr, nullptr, nullptr, nullptr}};
  static PyMethodDef methods[] = {
      {"explain", program_explain, METH_VARARGS, "explain(arch, json, values): what becomes of it, as text."},
      {"studio", program_studio, METH_VARARGS, "studio(arch, values): what the page about it shows, as JSON."},
      {"cost", program_cost, METH_VARARGS, "cost(machine, values): what it costs by the machine's model, as JSON."},
      {"simulate", program_simulate, METH_VARARGS,
       "simulate(arch, values, seed): on random tensors; counts, a timeline."},
      {"check", program_check, METH_VARARGS, "check(values, seed, json): every engine that takes it, compared."},
      {"build", program_build, METH_VARARGS,
       "build(arch, name, folder): compiled ahead of time; the paths, a line each."},
      {"with_option", program_with_option, METH_VARARGS, "with_option(name, value): with an option set."},
      {"with_plan", program_with_plan, METH_VARARGS, "with_plan(text): with lines of its launches' plans fixed."},
      {nullptr, nullptr, 0, nullptr}};
  static PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(destroy_program)},
                                {Py_tp_getset, fields},
                                {Py_tp_methods, methods},
                                {0, nullptr}};
  static PyType_Spec spec = {"tilewright._native.Program", sizeof(ProgramObject), 0, Py_TPFLAGS_DEFAULT, slots};
  return reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
}

}  // namespace tilewright::python

PyMODINIT_FUNC PyInit__native() {
  using namespace tilewright::python;
  if (tw_abi_version() < TW_ABI_VERSION) {
    PyErr_SetString(PyExc_ImportError, "libtilewright.so is older than this package");
    return nullptr;
  }
  static PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                                   "tilewright._native",
                                   "The C ABI of Tilewright.",
                                   -1,
                                   module_methods,
                                   nullptr,
                                   nullptr,
                                   nullptr,
                                   nullptr};
  expr_type = make_expr_type(), builder_type = make_builder_type();
  program_type = make_program_type(), kernel_type = make_kernel_type(), flat_calls_type = make_flat_calls_type();
  PyObject* module = PyModule_Create(&definition);
  if (!module || !expr_type || !builder_type || !program_type || !kernel_type || !flat_calls_type) return nullptr;
  const struct {
    const char* name;
    PyTypeObject* type;
  } types[] = {{"Expr", expr_type},
               {"Builder", builder_type},
               {"Program", program_type},
               {"Kernel", kernel_type},
               {"FlatCalls", flat_calls_type}};
  for (const auto& t : types)
    if (PyModule_AddObjectRef(module, t.name, reinterpret_cast<PyObject*>(t.type)) < 0) return nullptr;
  return module;
}
