// Tensors that calls return: made by the library of the call's first tensor.
#include "kernel.h"

namespace tilewright::python {
namespace {

constexpr int32_t kCpu = 1, kCuda = 2;  // DLPack's device types

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

PyObject* attribute_of_torch(std::initializer_list<const char*> path) {
  PyObject* found = PyImport_ImportModule("torch");
  for (const char* name : path) {
    PyObject* next = found ? PyObject_GetAttrString(found, name) : nullptr;
    Py_XDECREF(found);
    found = next;
  }
  if (!found) PyErr_Clear();
  return found;
}

// The function by which graphs that PyTorch compiled make their tensors, (shape, strides, dtype) -> tensor in the
// processor's memory or on the current GPU: as the others, without the dispatcher. Null where this PyTorch has none.
PyObject* quick_function(int32_t device_type) {
  static PyObject* const on_cpu = attribute_of_torch({"_C", "_dynamo", "guards", "_empty_strided_cpu"});
  static PyObject* const on_cuda = attribute_of_torch({"_C", "_dynamo", "guards", "_empty_strided_cuda"});
  return device_type == kCpu ? on_cpu : device_type == kCuda ? on_cuda : nullptr;
}

// Only what is a tensor of PyTorch's and no more: of a derived type its own functions make another.
bool is_plain(PyObject* object) {
  static PyObject* const plain = attribute_of_torch({"Tensor"});
  return reinterpret_cast<PyObject*>(Py_TYPE(object)) == plain;
}

// {"dtype": PyTorch's}, kept; null with an exception.
PyObject* options_of(Output& output, const char* dtype) {
  if (!output.options) output.options = PyObject_CallFunction(registered.options, "s", dtype);
  return output.options;
}

bool has_shape(const std::vector<int64_t>& shape, PyObject* extents) {
  if (static_cast<Py_ssize_t>(shape.size()) != PyTuple_Size(extents)) return false;
  for (size_t d = 0; d < shape.size(); ++d)
    if (PyLong_AsLongLong(PyTuple_GetItem(extents, static_cast<Py_ssize_t>(d))) != shape[d]) return false;
  return true;
}

// (shape, strides, dtype), of a tensor without gaps; calls of one shape follow each other.
PyObject* asked_for(Output& output, PyObject* extents, const char* dtype) {
  if (output.quick && has_shape(output.shape, extents)) return output.quick;
  PyObject* options = options_of(output, dtype);
  PyObject* type = options ? PyDict_GetItemString(options, "dtype") : nullptr;
  if (!type) return nullptr;
  const Py_ssize_t rank = PyTuple_Size(extents);
  PyObject* strides = PyTuple_New(rank);
  std::vector<int64_t> shape(static_cast<size_t>(rank));
  int64_t step = 1;
  for (Py_ssize_t d = rank; d-- > 0;) {
    const int64_t extent = PyLong_AsLongLong(PyTuple_GetItem(extents, d));
    PyTuple_SetItem(strides, d, PyLong_FromLongLong(step));
    shape[static_cast<size_t>(d)] = extent, step *= extent > 1 ? extent : 1;
  }
  PyObject* quick = PyTuple_Pack(3, extents, strides, type);
  Py_DECREF(strides);
  if (!quick) return nullptr;
  Py_XDECREF(output.quick);
  output.quick = quick, output.shape = std::move(shape);
  return quick;
}

// Null where there is no such way, or the current GPU is another than the tensor's; with an exception or without.
PyObject* quick_empty(Output& output, const tw_tensor& like, PyObject* extents, const char* dtype) {
  PyObject* function = quick_function(like.device_type);
  PyObject* asked = function ? asked_for(output, extents, dtype) : nullptr;
  PyObject* tensor = asked ? PyObject_CallObject(function, asked) : nullptr;
  if (!tensor || like.device_type == kCpu) return tensor;
  BorrowedTensor made;
  PyObject* number = nullptr;
  if (made.borrow(tensor, &number, true) && made.tensor()->device_index == like.device_index) return tensor;
  Py_DECREF(tensor);
  return nullptr;
}

// By PyTorch's own functions: what they make is like any other of its tensors, which one taken over by DLPack is not
// (record_stream() does nothing on those).
PyObject* new_empty(Output& output, const Example& example, PyObject* extents, const char* dtype) {
  static PyObject* const name = PyUnicode_InternFromString("new_empty");
  const tw_tensor &found = *example.tensor, &wanted = output.type;
  if (is_plain(example.object)) {
    if (PyObject* tensor = quick_empty(output, found, extents, dtype)) return tensor;
    PyErr_Clear();
  }
  if (found.type_code == wanted.type_code && found.type_bits == wanted.type_bits && found.type_lanes == 1) {
    static PyObject* const empty_like = attribute_of_torch({"empty_like"});
    if (empty_like && is_alike(found, extents))
      return PyObject_CallFunctionObjArgs(empty_like, example.object, nullptr);
    return PyObject_CallMethodObjArgs(example.object, name, extents, nullptr);
  }
  PyObject* options = options_of(output, dtype);
  PyObject* method = options ? PyObject_GetAttr(example.object, name) : nullptr;
  PyObject* positional = method ? PyTuple_Pack(1, extents) : nullptr;
  PyObject* tensor = positional ? PyObject_Call(method, positional, options) : nullptr;
  Py_XDECREF(positional);
  Py_XDECREF(method);
  return tensor;
}

}  // namespace

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

PyObject* extents_of(const tw_tensor& tensor) {
  PyObject* extents = PyTuple_New(tensor.rank);
  for (int d = 0; extents && d < tensor.rank; ++d) PyTuple_SetItem(extents, d, PyLong_FromLongLong(tensor.shape[d]));
  return extents;
}

}  // namespace tilewright::python
