// Tensors of other libraries as tw_tensor: by DLPack's C exchange where a type offers it, by the array interface of
// NumPy's, else by __dlpack__.
#pragma once
#include "objects.h"

namespace tilewright::python {

// A view of a tensor that lasts as long as this does.
class BorrowedTensor {
 public:
  BorrowedTensor() = default;
  BorrowedTensor(const BorrowedTensor&) = delete;
  ~BorrowedTensor() { Py_XDECREF(capsule_); }
  // False with an exception set. A scalar of another library becomes a number of Python instead, a new reference.
  // fresh: nobody but this call has the tensor.
  bool borrow(PyObject* object, PyObject** number, bool fresh = false);
  const tw_tensor* tensor() const { return &tensor_; }
  // Its owner forbids that it is written.
  bool is_read_only() const { return read_only_; }

 private:
  static constexpr int kMaxRank = 8;
  bool borrow_array(PyObject* object);
  bool borrow_capsule(PyObject* capsule);
  bool is_well_formed() const;
  tw_tensor tensor_{};
  int64_t strides_[kMaxRank];  // of an array, whose own count bytes
  PyObject* capsule_ = nullptr;
  bool read_only_ = false;
};

// Whether `object` makes tensors like itself: PyTorch's new_empty(shape, dtype=...).
bool makes_tensors(PyObject* object);
// Whether it is a tensor of PyTorch's that wants a gradient.
bool wants_gradient(PyObject* object);

}  // namespace tilewright::python
