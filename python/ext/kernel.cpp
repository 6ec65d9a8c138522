// The kernel object: a call goes from Python's tuple of arguments to tw_kernel_call without a line of Python.
#include <deque>
#include <vector>

#include "dlpack.h"

namespace tilewright::python {
namespace {

struct KernelObject {
  PyObject_HEAD tw_kernel* kernel;
  std::vector<tw_parameter>* parameters;
  std::vector<int>* outputs;  // indices of parameters, in the order in which they are returned
};

PyObject* create(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* const names[] = {"program", "engine", "arch", "outputs", "counting", nullptr};
  PyObject *program = nullptr, *outputs = nullptr;
  const char *engine = "auto", *arch = "";
  int counting = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|ssOp", const_cast<char**>(names), program_type, &program, &engine,
                                   &arch, &outputs, &counting))
    return nullptr;
  tw_kernel* kernel = nullptr;
  tw_error* error = nullptr;
  tw_program* handle = object_of<ProgramObject>(program)->program;
  Py_BEGIN_ALLOW_THREADS;
  error = counting ? tw_compile_counting(handle, arch, &kernel) : tw_compile(handle, engine, arch, &kernel);
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
  self->outputs = new std::vector<int>;
  for (int i = 0; i < tw_kernel_parameter_count(kernel); ++i)
    self->parameters->push_back(tw_kernel_parameter(kernel, i));
  const Py_ssize_t count = outputs ? PySequence_Size(outputs) : 0;
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* item = PySequence_GetItem(outputs, i);
    self->outputs->push_back(item ? static_cast<int>(PyLong_AsLong(item)) : 0);
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
  delete self->outputs;
  free_object(object);
}

// Arguments as the C ABI takes them, with what they borrow. Most calls fit the arrays.
class Arguments {
 public:
  explicit Arguments(size_t count) : count_(count) {
    if (count > kFew) many_.resize(count);
  }
  tw_argument* data() { return count_ > kFew ? many_.data() : few_; }
  size_t count() const { return count_; }

  bool set(size_t i, PyObject* object) {
    tw_argument& a = data()[i];
    a = {};
    if (object == Py_None) return true;
    if (PyFloat_Check(object)) {
      a.kind = TW_FLOAT, a.as.number = PyFloat_AsDouble(object);
      return true;
    }
    if (PyLong_Check(object)) return set_integer(a, object);
    BorrowedTensor& tensor = used_ < kFew ? tensors_[used_++] : more_.emplace_back();
    PyObject* number = nullptr;
    if (!tensor.borrow(object, &number)) return false;
    if (number) {
      const bool ok = set(i, number);
      Py_DECREF(number);
      return ok;
    }
    a.kind = TW_TENSOR, a.as.tensor = tensor.tensor();
    return true;
  }

 private:
  static constexpr size_t kFew = 12;
  static bool set_integer(tw_argument& a, PyObject* object) {
    a.kind = TW_INT, a.as.integer = PyLong_AsLongLong(object);
    if (a.as.integer != -1 || !PyErr_Occurred()) return true;
    PyErr_Clear();
    a.kind = TW_UINT, a.as.integer = static_cast<int64_t>(PyLong_AsUnsignedLongLong(object));
    return !PyErr_Occurred();
  }
  size_t count_, used_ = 0;
  tw_argument few_[kFew];
  BorrowedTensor tensors_[kFew];
  std::vector<tw_argument> many_;
  std::deque<BorrowedTensor> more_;
};

bool is_output(const KernelObject* self, int parameter) {
  for (int i : *self->outputs)
    if (i == parameter) return true;
  return false;
}

// A new tensor like the first that the call has, of the shape that the others ask for.
PyObject* new_output(KernelObject* self, Arguments& arguments, int parameter, PyObject* example) {
  int64_t shape[8];
  if (tw_error* error = tw_kernel_shape(self->kernel, arguments.data(), arguments.count(), parameter, shape))
    return raise(error);
  const tw_parameter& p = (*self->parameters)[static_cast<size_t>(parameter)];
  PyObject* extents = PyTuple_New(p.rank);
  for (int d = 0; d < p.rank; ++d) PyTuple_SetItem(extents, d, PyLong_FromLongLong(shape[d]));
  PyObject* tensor =
      PyObject_CallFunction(registered.empty, "ONss", example, extents, p.dtype, tw_kernel_engine(self->kernel));
  return tensor;
}

PyObject* wrong_count(const KernelObject* self, size_t inputs, Py_ssize_t given) {
  const char* name = tw_kernel_name(self->kernel);
  if (self->outputs->empty())
    return PyErr_Format(PyExc_ValueError, "%s expects %zu arguments, but %zd are given", name, inputs, given);
  return PyErr_Format(PyExc_ValueError, "%s expects %zu inputs (or %zu arguments, outputs included), but %zd are given",
                      name, inputs, self->parameters->size(), given);
}

PyObject* call(PyObject* object, PyObject* args, PyObject* kwargs) {
  auto* self = object_of<KernelObject>(object);
  if (kwargs && PyDict_Size(kwargs) > 0) {
    PyErr_Format(PyExc_TypeError, "%s takes its arguments by position", tw_kernel_name(self->kernel));
    return nullptr;
  }
  const size_t count = self->parameters->size(), inputs = count - self->outputs->size();
  const Py_ssize_t given = PyTuple_Size(args);
  const bool all = static_cast<size_t>(given) == count;
  if (!all && static_cast<size_t>(given) != inputs) return wrong_count(self, inputs, given);
  Arguments arguments(count);
  PyObject* example = Py_None;
  Py_ssize_t next = 0;
  for (size_t i = 0; i < count; ++i) {
    if (!all && is_output(self, static_cast<int>(i))) {
      arguments.data()[i] = {};
      continue;
    }
    PyObject* argument = PyTuple_GetItem(args, next++);
    if (!arguments.set(i, argument)) return nullptr;
    if (example == Py_None && arguments.data()[i].kind == TW_TENSOR) example = argument;
  }
  PyObject* results = PyList_New(0);
  bool ok = results != nullptr;
  for (size_t k = 0; ok && k < self->outputs->size(); ++k) {
    const int i = (*self->outputs)[k];
    PyObject* tensor = nullptr;
    if (all) {
      tensor = PyTuple_GetItem(args, i);
      Py_XINCREF(tensor);
    } else {
      tensor = new_output(self, arguments, i, example);
    }
    ok = tensor && PyList_Append(results, tensor) == 0;
    Py_XDECREF(tensor);  // the list has it
  }
  // Only now: a shape is asked for with every output left out.
  for (size_t k = 0; ok && !all && k < self->outputs->size(); ++k)
    ok = arguments.set(static_cast<size_t>((*self->outputs)[k]), PyList_GetItem(results, static_cast<Py_ssize_t>(k)));
  tw_error* error = nullptr;
  if (ok) {
    Py_BEGIN_ALLOW_THREADS;
    error = tw_kernel_call(self->kernel, arguments.data(), arguments.count());
    Py_END_ALLOW_THREADS;
    if (error) raise(error);
    ok = !error;
  }
  PyObject* result = nullptr;
  if (ok && self->outputs->empty()) {
    result = Py_None;
    Py_INCREF(result);
  } else if (ok && self->outputs->size() == 1) {
    result = PyList_GetItem(results, 0);
    Py_XINCREF(result);
  } else if (ok) {
    result = results;
    Py_INCREF(result);
  }
  Py_XDECREF(results);
  return result;
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
PyObject* get_counts(PyObject* self, void*) {
  tw_text* text = nullptr;
  if (tw_error* error = tw_kernel_counts(object_of<KernelObject>(self)->kernel, &text)) return raise(error);
  return new_string(text);
}

}  // namespace

PyTypeObject* make_kernel_type() {
  static PyGetSetDef fields[] = {
      {"name", get_name, nullptr, "The name of its program.", nullptr},
      {"engine", get_engine, nullptr, "What runs it: cpu, interpreter, simulator, cuda.", nullptr},
      {"source", get_source, nullptr, "The text that was compiled; empty where the engine has none.", nullptr},
      {"counts", get_counts, nullptr, "What the memories did in the last call, as JSON; empty where nobody counts.",
       nullptr},
      {nullptr, nullptr, nullptr, nullptr, nullptr}};
  static PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(create)},
                                {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
                                {Py_tp_call, reinterpret_cast<void*>(call)},
                                {Py_tp_getset, fields},
                                {0, nullptr}};
  static PyType_Spec spec = {"tilewright._native.Kernel", sizeof(KernelObject), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  return reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
}

}  // namespace tilewright::python
