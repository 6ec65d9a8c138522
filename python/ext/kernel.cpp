// The kernel object: a call goes from Python's tuple of arguments to tw_kernel_call without a line of Python.
#include <deque>

#include "kernel.h"

#include <cstring>
#include <string>

namespace tilewright::python {
namespace {

Output output_of(const std::vector<tw_parameter>& parameters, int index) {
  Output out{index, {}};
  if (index >= 0 && static_cast<size_t>(index) < parameters.size())
    tw_tensor_set_dtype(&out.type, parameters[static_cast<size_t>(index)].dtype);
  return out;
}

PyObject* create(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* const names[] = {"program", "engine", "arch", "outputs", "counting", nullptr};
  PyObject *program = nullptr, *outputs = nullptr;
  const char *engine = "auto", *arch = "";
  int counting = 0;  // 1: the simulator counts; 2: and keeps a timeline
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|ssOi", const_cast<char**>(names), program_type, &program, &engine,
                                   &arch, &outputs, &counting))
    return nullptr;
  tw_kernel* kernel = nullptr;
  tw_error* error = nullptr;
  tw_program* handle = object_of<ProgramObject>(program)->program;
  Py_BEGIN_ALLOW_THREADS;
  error =
      counting ? tw_compile_simulated(handle, arch, counting > 1, &kernel) : tw_compile(handle, engine, arch, &kernel);
  Py_END_ALLOW_THREADS;
  if (error) return raise(error);
  PyObject* object = allocate(type);
  if (!object) {
    tw_kernel_release(kernel);
    return nullptr;
  }
  auto* self = object_of<KernelObject>(object);
  self->kernel = kernel;
  self->parameters = new std::vector<tw_parameter>;
  self->outputs = new std::vector<Output>;
  self->writes = new std::vector<int>(static_cast<size_t>(tw_kernel_parameter_count(kernel)), -1);
  for (int i = 0; i < tw_kernel_parameter_count(kernel); ++i)
    self->parameters->push_back(tw_kernel_parameter(kernel, i));
  const Py_ssize_t count = outputs ? PySequence_Size(outputs) : 0;
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* item = PySequence_GetItem(outputs, i);
    self->outputs->push_back(output_of(*self->parameters, item ? static_cast<int>(PyLong_AsLong(item)) : 0));
    Py_XDECREF(item);
  }
  if (count >= 0 && !PyErr_Occurred()) return object;
  Py_DECREF(object);
  return nullptr;
}

void destroy(PyObject* object) {
  auto* self = object_of<KernelObject>(object);
  if (self->kernel) tw_kernel_release(self->kernel);
  delete self->parameters;
  if (self->outputs)
    for (const Output& o : *self->outputs) Py_XDECREF(o.options), Py_XDECREF(o.quick);
  delete self->outputs;
  delete self->writes;
  free_object(object);
}

bool is_output(const KernelObject* self, int parameter) {
  for (const Output& o : *self->outputs)
    if (o.parameter == parameter) return true;
  return false;
}

// The shape of an output that is left out; false with an exception.
bool find_shape(KernelObject* self, Arguments& arguments, int parameter, std::vector<int64_t>& out) {
  int64_t shape[8];
  if (tw_error* error = tw_kernel_shape(self->kernel, arguments.data(), arguments.count(), parameter, shape)) {
    raise(error);
    return false;
  }
  out.assign(shape, shape + (*self->parameters)[static_cast<size_t>(parameter)].rank);
  return true;
}

// A call that its kernel cannot take: LaunchError TW4001. Null.
PyObject* wrong_call(const KernelObject* self, const std::string& reason) {
  std::string takes;
  for (size_t i = 0; i < self->parameters->size(); ++i)
    if (!is_output(self, static_cast<int>(i)))
      takes += (takes.empty() ? "" : ", ") + std::string((*self->parameters)[i].name);
  const std::string name = tw_kernel_name(self->kernel), message = name + " " + reason,
                    help = "it takes " + name + "(" + takes + ")",
                    text = "error TW4001 launch: " + message + "\nhelp: " + help;
  PyObject* error = PyObject_CallFunction(registered.error, "sssssssii", "LaunchError", "TW4001", "launch",
                                          message.c_str(), help.c_str(), text.c_str(), "", 0, 0);
  if (error) PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error)), error);
  Py_XDECREF(error);
  return nullptr;
}

PyObject* wrong_count(const KernelObject* self, size_t inputs, Py_ssize_t given) {
  const std::string but = ", but " + std::to_string(given) + (given == 1 ? " is given" : " are given");
  if (self->outputs->empty()) return wrong_call(self, "expects " + std::to_string(inputs) + " arguments" + but);
  return wrong_call(self, "expects " + std::to_string(inputs) + " inputs (or " +
                              std::to_string(self->parameters->size()) + " arguments, outputs included)" + but);
}

// What a call returns: nothing, its output, or a list of several.
class Results {
 public:
  explicit Results(size_t count) : many_(count > 1 ? PyList_New(0) : nullptr) {}
  Results(const Results&) = delete;
  ~Results() {
    Py_XDECREF(one_);
    Py_XDECREF(many_);
  }
  void add(PyObject* tensor) {  // takes the reference over
    if (!many_) {
      one_ = tensor;
      return;
    }
    PyList_Append(many_, tensor);
    Py_DECREF(tensor);
  }
  PyObject* at(size_t k) const { return many_ ? PyList_GetItem(many_, static_cast<Py_ssize_t>(k)) : one_; }
  PyObject* take() {
    PyObject* result = many_ ? many_ : one_ ? one_ : Py_None;
    Py_INCREF(result);
    return result;
  }

 private:
  PyObject *one_ = nullptr, *many_;
};

// A call that was refused for a dtype, with bytes taken for bools; another error, or where none are given: that.
PyObject* again_with_bools(PyObject* kernel, PyObject* args, tw_error* error) {
  tw_error_info info;
  tw_error_get(error, &info);
  if (std::strcmp(info.code, "TW4004") != 0) return raise(error);
  PyObject* result = PyObject_CallFunctionObjArgs(registered.bools, kernel, args, nullptr);
  if (result == Py_NotImplemented) {
    Py_DECREF(result);
    return raise(error);
  }
  tw_error_release(error);
  return result;
}

PyObject* call(PyObject* object, PyObject* args, PyObject* kwargs) {
  auto* self = object_of<KernelObject>(object);
  if (kwargs && PyDict_Size(kwargs) > 0) return wrong_call(self, "takes its arguments by position");
  const size_t count = self->parameters->size(), inputs = count - self->outputs->size();
  const Py_ssize_t given = PyTuple_Size(args);
  const bool all = static_cast<size_t>(given) == count;
  if (!all && static_cast<size_t>(given) != inputs) return wrong_count(self, inputs, given);
  const ProfilerRange range(self);
  Arguments arguments(self, count);
  Example example;
  bool gradient = false;
  Py_ssize_t next = 0;
  for (size_t i = 0; i < count; ++i) {
    if (!all && is_output(self, static_cast<int>(i))) {
      arguments.data()[i] = {};
      continue;
    }
    PyObject* argument = PyTuple_GetItem(args, next++);
    if (!arguments.set(i, argument)) return refuse(self, i);
    if (arguments.data()[i].kind != TW_TENSOR) continue;
    if (!example.object) example = {argument, arguments.data()[i].as.tensor};
    gradient = gradient || wants_gradient(argument);
  }
  Results results(self->outputs->size());
  std::vector<int64_t> shape;
  for (size_t k = 0; k < self->outputs->size(); ++k) {
    Output& output = (*self->outputs)[k];
    PyObject* tensor = nullptr;
    if (all) {
      tensor = PyTuple_GetItem(args, output.parameter);
      Py_XINCREF(tensor);
    } else if (find_shape(self, arguments, output.parameter, shape)) {
      tensor = new_output(self, output, example, shape);
    }
    if (!tensor) return nullptr;
    results.add(tensor);
  }
  // Only now: a shape is asked for with every output left out.
  for (size_t k = 0; !all && k < self->outputs->size(); ++k)
    if (!arguments.set(static_cast<size_t>((*self->outputs)[k].parameter), results.at(k), true)) return nullptr;
  tw_error* error = nullptr;
  Py_BEGIN_ALLOW_THREADS;
  error = tw_kernel_call(self->kernel, arguments.data(), arguments.count());
  Py_END_ALLOW_THREADS;
  if (error) return again_with_bools(object, args, error);
  PyObject* result = results.take();
  if (!gradient) return result;
  PyObject* known = PyObject_CallFunctionObjArgs(registered.gradient, object, args, result, nullptr);
  Py_DECREF(result);
  return known;
}

// The integers of a tuple; false with an exception set.
bool integers_of(PyObject* tuple, std::vector<int64_t>& out) {
  const Py_ssize_t n = tuple ? PyTuple_Size(tuple) : -1;
  for (Py_ssize_t i = 0; i < n; ++i) out.push_back(PyLong_AsLongLong(PyTuple_GetItem(tuple, i)));
  return n >= 0 && !PyErr_Occurred();
}

// output_shapes(*inputs): a tensor is given as (shape, strides). Null data: nothing is run.
PyObject* output_shapes(PyObject* object, PyObject* args) {
  auto* self = object_of<KernelObject>(object);
  const size_t count = self->parameters->size();
  if (static_cast<size_t>(PyTuple_Size(args)) + self->outputs->size() != count)
    return wrong_count(self, count - self->outputs->size(), PyTuple_Size(args));
  Arguments arguments(self, count);
  std::deque<tw_tensor> tensors;
  std::deque<std::vector<int64_t>> numbers;
  Py_ssize_t next = 0;
  for (size_t i = 0; i < count; ++i) {
    arguments.data()[i] = {};
    if (is_output(self, static_cast<int>(i))) continue;
    PyObject* given = PyTuple_GetItem(args, next++);
    if (!PyTuple_Check(given)) {
      if (!arguments.set(i, given)) return nullptr;
      continue;
    }
    std::vector<int64_t>&shape = numbers.emplace_back(), &strides = numbers.emplace_back();
    if (!integers_of(PyTuple_GetItem(given, 0), shape) || !integers_of(PyTuple_GetItem(given, 1), strides))
      return nullptr;
    tw_tensor& tensor = tensors.emplace_back();
    tensor.device_type = 1, tensor.rank = static_cast<int32_t>(shape.size());
    tensor.shape = shape.data(), tensor.strides = strides.data();
    tensor.type_code = 1, tensor.type_bits = 8, tensor.type_lanes = 1;  // no shape depends on it
    arguments.data()[i].kind = TW_TENSOR, arguments.data()[i].as.tensor = &tensor;
  }
  PyObject* list = PyList_New(0);
  std::vector<int64_t> shape;
  for (size_t k = 0; list && k < self->outputs->size(); ++k) {
    PyObject* extents = find_shape(self, arguments, (*self->outputs)[k].parameter, shape) ? tuple_of(shape) : nullptr;
    const bool ok = extents && PyList_Append(list, extents) == 0;
    Py_XDECREF(extents);
    if (!ok) Py_CLEAR(list);
  }
  return list;
}

PyObject* writes(PyObject* object, PyObject* parameter) {
  const auto* self = object_of<KernelObject>(object);
  const long index = PyLong_AsLong(parameter);
  if (PyErr_Occurred()) return nullptr;
  if (index < 0 || static_cast<size_t>(index) >= self->parameters->size())
    return PyErr_Format(PyExc_IndexError, "the program has no parameter %ld", index);
  return PyLong_FromLong(tw_kernel_writes(self->kernel, static_cast<int>(index)));
}

PyObject* export_library(PyObject* object, PyObject* path) {
  PyObject* bytes = nullptr;
  if (!PyUnicode_FSConverter(path, &bytes)) return nullptr;
  tw_error* error = nullptr;
  tw_kernel* kernel = object_of<KernelObject>(object)->kernel;
  const char* name = PyBytes_AsString(bytes);
  Py_BEGIN_ALLOW_THREADS;
  error = tw_kernel_export(kernel, name);
  Py_END_ALLOW_THREADS;
  Py_DECREF(bytes);
  if (error) return raise(error);
  Py_RETURN_NONE;
}

PyObject* get_name(PyObject* self, void*) {
  return PyUnicode_FromString(tw_kernel_name(object_of<KernelObject>(self)->kernel));
}
PyObject* get_engine(PyObject* self, void*) {
  return PyUnicode_FromString(tw_kernel_engine(object_of<KernelObject>(self)->kernel));
}
PyObject* get_source(PyObject* self, void*) {
  return PyUnicode_FromString(tw_kernel_source(object_of<KernelObject>(self)->kernel));
}
PyObject* get_assumptions(PyObject* self, void*) {
  const tw_kernel* kernel = object_of<KernelObject>(self)->kernel;
  PyObject* list = PyList_New(0);
  for (int i = 0; list && i < tw_kernel_assumption_count(kernel); ++i) {
    PyObject* text = PyUnicode_FromString(tw_kernel_assumption(kernel, i));
    const bool ok = text && PyList_Append(list, text) == 0;
    Py_XDECREF(text);
    if (!ok) Py_CLEAR(list);
  }
  return list;
}
PyObject* get_general_calls(PyObject* self, void*) {
  return PyLong_FromLongLong(tw_kernel_general_calls(object_of<KernelObject>(self)->kernel));
}
PyObject* get_trace(PyObject* self, void*) {
  tw_text* text = nullptr;
  if (tw_error* error = tw_kernel_trace(object_of<KernelObject>(self)->kernel, &text)) return raise(error);
  return new_string(text);
}
PyObject* get_counts(PyObject* self, void*) {
  tw_text* text = nullptr;
  if (tw_error* error = tw_kernel_counts(object_of<KernelObject>(self)->kernel, &text)) return raise(error);
  return new_string(text);
}

bool profiler_is_on() {
  static PyObject* const module_name = PyUnicode_InternFromString("torch.autograd.profiler");
  static PyObject* const flag = PyUnicode_InternFromString("_is_profiler_enabled");
  static PyObject* names = nullptr;  // of that module, once it is there
  if (!names) {
    PyObject* module = PyDict_GetItem(PyImport_GetModuleDict(), module_name);
    if (!module || !PyModule_Check(module)) return false;
    names = PyModule_GetDict(module);
    Py_INCREF(names);
  }
  return PyDict_GetItem(names, flag) == Py_True;
}

}  // namespace

ProfilerRange::ProfilerRange(const KernelObject* kernel) {
  if (!profiler_is_on()) return;
  range_ = PyObject_CallFunction(registered.range, "s", tw_kernel_name(kernel->kernel));
  if (!range_) PyErr_WriteUnraisable(nullptr);
}

ProfilerRange::~ProfilerRange() {
  if (!range_) return;
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyObject* ended = PyObject_CallMethod(range_, "__exit__", "OOO", Py_None, Py_None, Py_None);
  if (!ended) PyErr_WriteUnraisable(range_);
  Py_XDECREF(ended);
  Py_DECREF(range_);
  PyErr_Restore(type, value, trace);
}

PyObject* refuse(const KernelObject* self, size_t parameter) {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  PyObject* refusal = PyObject_CallFunction(registered.refusal, "snsO", tw_kernel_name(self->kernel),
                                            static_cast<Py_ssize_t>(parameter), (*self->parameters)[parameter].name,
                                            value ? value : Py_None);
  if (refusal) {
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(refusal)), refusal);
    Py_DECREF(refusal);
  }
  for (PyObject* o : {type, value, trace}) Py_XDECREF(o);
  return nullptr;
}

bool may_write(const KernelObject* self, size_t parameter) {
  int& known = (*self->writes)[parameter];
  if (known < 0) known = tw_kernel_writes(self->kernel, static_cast<int>(parameter));
  return known != TW_LEAVES;
}

PyTypeObject* make_kernel_type() {
  static PyGetSetDef fields[] = {
      {"name", get_name, nullptr, "The name of its program.", nullptr},
      {"engine", get_engine, nullptr, "What runs it: cpu, interpreter, simulator, cuda.", nullptr},
      {"source", get_source, nullptr, "The text that was compiled; empty where the engine has none.", nullptr},
      {"assumptions", get_assumptions, nullptr, "What the text takes for granted of a call: \"N % 8 == 0\".", nullptr},
      {"general_calls", get_general_calls, nullptr,
       "How many calls did not hold to that, and went to the general version.", nullptr},
      {"counts", get_counts, nullptr, "What the memories did in the last call, as JSON; empty where nobody counts.",
       nullptr},
      {"trace", get_trace, nullptr,
       "When things happened in the last call, as JSON of traces; empty where nobody keeps it.", nullptr},
      {nullptr, nullptr, nullptr, nullptr, nullptr}};
  static PyMethodDef methods[] = {
      {"output_shapes", output_shapes, METH_VARARGS,
       "output_shapes(*inputs): shapes of the outputs of a call; a tensor is given as (shape, strides)."},
      {"writes", writes, METH_O,
       "writes(parameter): 0, no statement writes the tensor; 1, some may; 2, they only change what is there."},
      {"export_library", export_library, METH_O,
       "export_library(path): a shared library with the kernel, which tvm_ffi.load_module() loads."},
      {nullptr, nullptr, 0, nullptr}};
  static PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(create)},
                                {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
                                {Py_tp_methods, methods},
                                {Py_tp_call, reinterpret_cast<void*>(call)},
                                {Py_tp_getset, fields},
                                {0, nullptr}};
  static PyType_Spec spec = {"tilewright._native.Kernel", sizeof(KernelObject), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  return reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
}

}  // namespace tilewright::python
