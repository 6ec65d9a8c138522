// The kernel object: a call goes from Python's tuple of arguments to tw_kernel_call without a line of Python.
#include <deque>
#include <string>
#include <vector>

#include "dlpack.h"

namespace tilewright::python {
namespace {

struct Output {
  int parameter;
  tw_tensor type;     // its type code, where libraries have its dtype
  PyObject* options;  // {"dtype": PyTorch's}, made when one of another dtype than the call's first tensor is made
};

struct KernelObject {
  PyObject_HEAD tw_kernel* kernel;
  std::vector<tw_parameter>* parameters;
  std::vector<Output>* outputs;  // in the order in which they are returned
};

Output output_of(const std::vector<tw_parameter>& parameters, int index) {
  Output out{index, {}, nullptr};
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
    for (const Output& o : *self->outputs) Py_XDECREF(o.options);
  delete self->outputs;
  free_object(object);
}

// Arguments as the C ABI takes them, with what they borrow. Most calls fit the arrays.
class Arguments {
 public:
  static constexpr size_t kFew = 12;
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
  for (const Output& o : *self->outputs)
    if (o.parameter == parameter) return true;
  return false;
}

// The first tensor of a call, and what it is.
struct Example {
  PyObject* object = nullptr;
  const tw_tensor* tensor = nullptr;
};

// The shape of an output that is left out, as a tuple.
PyObject* extents_of(KernelObject* self, Arguments& arguments, int parameter) {
  int64_t shape[8];
  if (tw_error* error = tw_kernel_shape(self->kernel, arguments.data(), arguments.count(), parameter, shape))
    return raise(error);
  const int rank = (*self->parameters)[static_cast<size_t>(parameter)].rank;
  PyObject* extents = PyTuple_New(rank);
  for (int d = 0; d < rank; ++d) PyTuple_SetItem(extents, d, PyLong_FromLongLong(shape[d]));
  return extents;
}

// Whether a tensor is row-major without gaps and has this shape.
bool is_alike(const tw_tensor& tensor, PyObject* extents) {
  if (tensor.rank != PyTuple_Size(extents)) return false;
  int64_t step = 1;
  for (int d = tensor.rank - 1; d >= 0; --d) {
    if (PyLong_AsLongLong(PyTuple_GetItem(extents, d)) != tensor.shape[d]) return false;
    if (tensor.strides && tensor.strides[d] != step) return false;
    step *= tensor.shape[d];
  }
  return true;
}

// The quickest way to a tensor of PyTorch's; `like` is one.
PyObject* empty_like(PyObject* like) {
  static PyObject* function = nullptr;
  if (!function) {
    PyObject* torch = PyImport_ImportModule("torch");
    function = torch ? PyObject_GetAttrString(torch, "empty_like") : nullptr;
    Py_XDECREF(torch);
  }
  return function ? PyObject_CallFunctionObjArgs(function, like, nullptr) : nullptr;
}

// By PyTorch's own function: what it makes is like any other of its tensors, which one taken over by DLPack is not
// (record_stream() does nothing on those).
PyObject* new_empty(Output& output, const Example& example, PyObject* extents, const char* dtype) {
  static PyObject* const name = PyUnicode_InternFromString("new_empty");
  const tw_tensor &found = *example.tensor, &wanted = output.type;
  if (found.type_code == wanted.type_code && found.type_bits == wanted.type_bits && found.type_lanes == 1) {
    if (is_alike(found, extents)) return empty_like(example.object);
    return PyObject_CallMethodObjArgs(example.object, name, extents, nullptr);
  }
  if (!output.options) output.options = PyObject_CallFunction(registered.options, "s", dtype);
  PyObject* method = output.options ? PyObject_GetAttr(example.object, name) : nullptr;
  PyObject* positional = method ? PyTuple_Pack(1, extents) : nullptr;
  PyObject* tensor = positional ? PyObject_Call(method, positional, output.options) : nullptr;
  Py_XDECREF(positional);
  Py_XDECREF(method);
  return tensor;
}

// A new tensor like the first that the call has, of this shape, whose reference it takes over.
PyObject* new_output(KernelObject* self, Output& output, const Example& example, PyObject* extents) {
  const tw_parameter& p = (*self->parameters)[static_cast<size_t>(output.parameter)];
  if (!extents) return nullptr;
  PyObject* tensor = output.type.type_bits >= 8 && example.object && makes_tensors(example.object)
                         ? new_empty(output, example, extents, p.dtype)
                         : PyObject_CallFunction(registered.empty, "OOss", example.object ? example.object : Py_None,
                                                 extents, p.dtype, tw_kernel_engine(self->kernel));
  Py_DECREF(extents);
  return tensor;
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

// What went wrong with an argument, with its name. Null.
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

bool profiler_is_on() {
  static PyObject* const module_name = PyUnicode_InternFromString("torch.autograd.profiler");
  static PyObject* const flag = PyUnicode_InternFromString("_is_profiler_enabled");
  PyObject* module = PyDict_GetItem(PyImport_GetModuleDict(), module_name);
  PyObject* on = module ? PyObject_GetAttr(module, flag) : nullptr;
  if (!on) PyErr_Clear();
  Py_XDECREF(on);
  return on == Py_True;
}

// A call as a range of PyTorch's profiler, under the kernel's name, while that is on.
class Range {
 public:
  explicit Range(const KernelObject* self) {
    if (!profiler_is_on()) return;
    range_ = PyObject_CallFunction(registered.range, "s", tw_kernel_name(self->kernel));
    if (!range_) PyErr_WriteUnraisable(nullptr);
  }
  Range(const Range&) = delete;
  ~Range() {
    if (!range_) return;
    PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
    PyErr_Fetch(&type, &value, &trace);
    PyObject* ended = PyObject_CallMethod(range_, "__exit__", "OOO", Py_None, Py_None, Py_None);
    if (!ended) PyErr_WriteUnraisable(range_);
    Py_XDECREF(ended);
    Py_DECREF(range_);
    PyErr_Restore(type, value, trace);
  }

 private:
  PyObject* range_ = nullptr;
};

PyObject* call(PyObject* object, PyObject* args, PyObject* kwargs) {
  auto* self = object_of<KernelObject>(object);
  if (kwargs && PyDict_Size(kwargs) > 0) return wrong_call(self, "takes its arguments by position");
  const size_t count = self->parameters->size(), inputs = count - self->outputs->size();
  const Py_ssize_t given = PyTuple_Size(args);
  const bool all = static_cast<size_t>(given) == count;
  if (!all && static_cast<size_t>(given) != inputs) return wrong_count(self, inputs, given);
  const Range range(self);
  Arguments arguments(count);
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
  for (size_t k = 0; k < self->outputs->size(); ++k) {
    Output& output = (*self->outputs)[k];
    PyObject* tensor = nullptr;
    if (all) {
      tensor = PyTuple_GetItem(args, output.parameter);
      Py_XINCREF(tensor);
    } else {
      tensor = new_output(self, output, example, extents_of(self, arguments, output.parameter));
    }
    if (!tensor) return nullptr;
    results.add(tensor);
  }
  // Only now: a shape is asked for with every output left out.
  for (size_t k = 0; !all && k < self->outputs->size(); ++k)
    if (!arguments.set(static_cast<size_t>((*self->outputs)[k].parameter), results.at(k))) return nullptr;
  tw_error* error = nullptr;
  Py_BEGIN_ALLOW_THREADS;
  error = tw_kernel_call(self->kernel, arguments.data(), arguments.count());
  Py_END_ALLOW_THREADS;
  if (error) return raise(error);
  PyObject* result = results.take();
  if (!gradient) return result;
  PyObject* known = PyObject_CallFunctionObjArgs(registered.gradient, object, args, result, nullptr);
  Py_DECREF(result);
  return known;
}

bool is_row_major(const tw_tensor& tensor) {
  int64_t step = 1;
  for (int d = tensor.rank - 1; d >= 0; step *= tensor.shape[d], --d)
    if (tensor.strides && tensor.shape[d] != 1 && tensor.strides[d] != step) return false;
  return true;
}

// Whether both have one shape and dtype, and the second has no gaps.
bool is_like(const tw_tensor& first, const tw_tensor& other) {
  if (other.rank != first.rank || other.type_code != first.type_code || other.type_bits != first.type_bits)
    return false;
  for (int d = 0; d < first.rank; ++d)
    if (other.shape[d] != first.shape[d]) return false;
  return is_row_major(other);
}

// flat(*inputs): the call of a kernel of vectors with one output, whose tensors are alike and lie row by row: each is
// its elements, one behind the other, and the output has their shape. NotImplemented where they are not such.
PyObject* flat(PyObject* object, PyObject* args) {
  auto* self = object_of<KernelObject>(object);
  const size_t count = self->parameters->size();
  const Py_ssize_t given = PyTuple_Size(args);
  if (self->outputs->size() != 1 || static_cast<size_t>(given) + 1 != count || count > Arguments::kFew)
    Py_RETURN_NOTIMPLEMENTED;
  Arguments arguments(count);
  tw_tensor vectors[Arguments::kFew];
  int64_t length = 1;
  Example example;
  Output& output = self->outputs->front();
  const auto to_vector = [&](size_t i) {
    vectors[i] = *arguments.data()[i].as.tensor;
    vectors[i].rank = 1, vectors[i].shape = &length, vectors[i].strides = nullptr;
    arguments.data()[i].as.tensor = &vectors[i];
  };
  Py_ssize_t next = 0;
  for (size_t i = 0; i < count; ++i) {
    if (i == static_cast<size_t>(output.parameter)) continue;
    PyObject* argument = PyTuple_GetItem(args, next++);
    if (!arguments.set(i, argument)) return refuse(self, i);
    if (arguments.data()[i].kind != TW_TENSOR) continue;
    const tw_tensor* tensor = arguments.data()[i].as.tensor;
    if (!example.object) {
      example = {argument, tensor};
      for (int d = 0; d < tensor->rank; ++d) length *= tensor->shape[d];
    }
    if (!is_like(*example.tensor, *tensor) || wants_gradient(argument)) Py_RETURN_NOTIMPLEMENTED;
    to_vector(i);
  }
  if (!example.object) Py_RETURN_NOTIMPLEMENTED;
  const Range range(self);
  PyObject* extents = PyTuple_New(example.tensor->rank);
  for (int d = 0; d < example.tensor->rank; ++d)
    PyTuple_SetItem(extents, d, PyLong_FromLongLong(example.tensor->shape[d]));
  PyObject* result = new_output(self, output, example, extents);
  if (!result) return nullptr;
  const auto last = static_cast<size_t>(output.parameter);
  tw_error* error = nullptr;
  if (!arguments.set(last, result)) {
    Py_DECREF(result);
    return nullptr;
  }
  to_vector(last);
  Py_BEGIN_ALLOW_THREADS;
  error = tw_kernel_call(self->kernel, arguments.data(), arguments.count());
  Py_END_ALLOW_THREADS;
  if (!error) return result;
  Py_DECREF(result);
  return raise(error);
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
  Arguments arguments(count);
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
  for (size_t k = 0; list && k < self->outputs->size(); ++k) {
    PyObject* extents = extents_of(self, arguments, (*self->outputs)[k].parameter);
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

}  // namespace

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
      {"flat", flat, METH_VARARGS,
       "flat(*inputs): a call of a kernel of vectors with tensors of one shape and dtype, row by row; else "
       "NotImplemented."},
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
