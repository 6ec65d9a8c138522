// Tensors that calls return: made by the library of the call's first tensor.
#include <algorithm>

#include "kernel.h"

namespace tilewright::python {
namespace {

using Shape = std::span<const int64_t>;
constexpr int32_t kCpu = 1, kCuda = 2;  // DLPack's device types

// Whether a tensor is row-major without gaps and has this shape.
bool is_alike(const tw_tensor& tensor, Shape shape) {
  if (!std::ranges::equal(Shape(tensor.shape, static_cast<size_t>(tensor.rank)), shape)) return false;
  int64_t step = 1;
  for (size_t d = shape.size(); d-- > 0; step *= shape[d])
    if (tensor.strides && tensor.strides[d] != step) return false;
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

// (shape, strides, dtype), of a tensor without gaps; calls of one shape follow each other.
PyObject* asked_for(Output& output, Shape shape, const char* dtype) {
  if (output.quick && std::ranges::equal(output.shape, shape)) return output.quick;
  PyObject* options = options_of(output, dtype);
  PyObject* type = options ? PyDict_GetItemString(options, "dtype") : nullptr;
  if (!type) return nullptr;
  std::vector<int64_t> steps(shape.size());
  int64_t step = 1;
  for (size_t d = shape.size(); d-- > 0;) steps[d] = step, step *= std::max<int64_t>(shape[d], 1);
  PyObject *extents = tuple_of(shape), *strides = tuple_of(steps);
  PyObject* quick = extents && strides ? PyTuple_Pack(3, extents, strides, type) : nullptr;
  Py_XDECREF(extents);
  Py_XDECREF(strides);
  if (!quick) return nullptr;
  Py_XDECREF(output.quick);
  output.quick = quick, output.shape.assign(shape.begin(), shape.end());
  return quick;
}

// Null where there is no such way, or the current GPU is another than the tensor's; with an exception or without.
PyObject* quick_empty(Output& output, const tw_tensor& like, Shape shape, const char* dtype) {
  PyObject* function = quick_function(like.device_type);
  PyObject* asked = function ? asked_for(output, shape, dtype) : nullptr;
  if (!asked) return nullptr;
  Py_INCREF(asked);  // a thread that the function lets run may ask for another shape
  PyObject* tensor = PyObject_CallObject(function, asked);
  Py_DECREF(asked);
  if (!tensor || like.device_type == kCpu) return tensor;
  BorrowedTensor made;
  PyObject* number = nullptr;
  if (made.borrow(tensor, &number, true) && made.tensor()->device_index == like.device_index) return tensor;
  Py_DECREF(tensor);
  return nullptr;
}

// By PyTorch's own functions: what they make is like any other of its tensors, which one taken over by DLPack is not
// (record_stream() does nothing on those).
PyObject* new_empty(Output& output, const Example& example, Shape shape, const char* dtype) {
  static PyObject* const name = PyUnicode_InternFromString("new_empty");
  const tw_tensor &found = *example.tensor, &wanted = output.type;
  if (is_plain(example.object)) {
    if (PyObject* tensor = quick_empty(output, found, shape, dtype)) return tensor;
    PyErr_Clear();
  }
  PyObject* extents = tuple_of(shape);
  if (!extents) return nullptr;
  PyObject* tensor = nullptr;
  if (found.type_code == wanted.type_code && found.type_bits == wanted.type_bits && found.type_lanes == 1) {
    static PyObject* const empty_like = attribute_of_torch({"empty_like"});
    tensor = empty_like && is_alike(found, shape) ? PyObject_CallFunctionObjArgs(empty_like, example.object, nullptr)
                                                  : PyObject_CallMethodObjArgs(example.object, name, extents, nullptr);
  } else {
    PyObject* options = options_of(output, dtype);
    PyObject* method = options ? PyObject_GetAttr(example.object, name) : nullptr;
    PyObject* positional = method ? PyTuple_Pack(1, extents) : nullptr;
    tensor = positional ? PyObject_Call(method, positional, options) : nullptr;
    Py_XDECREF(positional);
    Py_XDECREF(method);
  }
  Py_DECREF(extents);
  return tensor;
}

}  // namespace

PyObject* new_output(KernelObject* self, Output& output, const Example& example, Shape shape) {
  const tw_parameter& p = (*self->parameters)[static_cast<size_t>(output.parameter)];
  if (output.type.type_bits >= 8 && example.object && makes_tensors(example.object))
    return new_empty(output, example, shape, p.dtype);
  PyObject* extents = tuple_of(shape);
  if (!extents) return nullptr;
  PyObject* tensor = PyObject_CallFunction(registered.empty, "OOss", example.object ? example.object : Py_None, extents,
                                           p.dtype, tw_kernel_engine(self->kernel));
  Py_DECREF(extents);
  return tensor;
}

PyObject* tuple_of(Shape shape) {
  PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(shape.size()));
  for (size_t d = 0; tuple && d < shape.size(); ++d)
    PyTuple_SetItem(tuple, static_cast<Py_ssize_t>(d), PyLong_FromLongLong(shape[d]));
  return tuple;
}

}  // namespace tilewright::python
