// Kernel objects, the arguments of a call, and the outputs that it makes.
#pragma once
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "dlpack.h"

namespace tilewright::python {

struct Output {
  int parameter;
  tw_tensor type;  // its type code, where libraries have its dtype
  PyObject* options =
      nullptr;  // {"dtype": PyTorch's}, made when one of another dtype than the call's first tensor is made
  std::vector<int64_t> shape = {};  // of the last that was made the quick way,
  PyObject* quick = nullptr;        // and what was asked for then: (shape, strides, dtype)
};

struct KernelObject {
  PyObject_HEAD tw_kernel* kernel;
  std::vector<tw_parameter>* parameters;
  std::vector<Output>* outputs;  // in the order in which they are returned
  std::vector<int>* writes;      // what tw_kernel_writes says of a parameter; -1: nobody has asked
};

// Whether the program may write a parameter.
bool may_write(const KernelObject* self, size_t parameter);

// Arguments as the C ABI takes them, with what they borrow. Most calls fit the arrays.
class Arguments {
 public:
  static constexpr size_t kFew = 12;
  Arguments(const KernelObject* kernel, size_t count) : kernel_(kernel), count_(count) {
    if (count > kFew) many_.resize(count);
  }
  Arguments(const Arguments&) = delete;
  ~Arguments() {
    while (used_ > 0) tensors()[--used_].~BorrowedTensor();
  }
  tw_argument* data() { return count_ > kFew ? many_.data() : few_; }
  size_t count() const { return count_; }

  // fresh: a tensor that was made for this call.
  bool set(size_t i, PyObject* object, bool fresh = false) {
    tw_argument& a = data()[i];
    a = {};
    if (object == Py_None) return true;
    if (PyFloat_Check(object)) {
      a.kind = TW_FLOAT, a.as.number = PyFloat_AsDouble(object);
      return true;
    }
    if (PyLong_Check(object)) return set_integer(a, object);
    BorrowedTensor& tensor = used_ < kFew ? *new (&tensors()[used_++]) BorrowedTensor
                                          : *more_.emplace_back(std::make_unique<BorrowedTensor>());
    PyObject* number = nullptr;
    if (!tensor.borrow(object, &number, fresh)) return false;
    if (number) {
      const bool ok = set(i, number);
      Py_DECREF(number);
      return ok;
    }
    if (tensor.is_read_only() && may_write(kernel_, i)) {
      PyErr_SetString(PyExc_ValueError, "a read-only array, and the kernel may write to it: pass a copy, x.copy()");
      return false;
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
  BorrowedTensor* tensors() { return reinterpret_cast<BorrowedTensor*>(room_); }
  const KernelObject* kernel_;
  size_t count_, used_ = 0;
  tw_argument few_[kFew];
  alignas(BorrowedTensor) unsigned char room_[kFew * sizeof(BorrowedTensor)];  // of the first used_ tensors
  std::vector<tw_argument> many_;
  std::vector<std::unique_ptr<BorrowedTensor>> more_;
};

// The first tensor of a call, and what it is.
struct Example {
  PyObject* object = nullptr;
  const tw_tensor* tensor = nullptr;
};

// A call as a range of PyTorch's profiler, under the kernel's name, while that is on.
class ProfilerRange {
 public:
  explicit ProfilerRange(const KernelObject* kernel);
  ProfilerRange(const ProfilerRange&) = delete;
  ~ProfilerRange();

 private:
  PyObject* range_ = nullptr;
};

// A new tensor for an output, like the call's first tensor, of this shape.
PyObject* new_output(KernelObject* self, Output& output, const Example& example, std::span<const int64_t> shape);
// What went wrong with an argument, with its name. Null.
PyObject* refuse(const KernelObject* self, size_t parameter);
// A shape as a tuple.
PyObject* tuple_of(std::span<const int64_t> shape);

}  // namespace tilewright::python
