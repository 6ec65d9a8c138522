// Tensors of other libraries as tw_tensor: by DLPack's C exchange where a type offers it, else by __dlpack__.
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
  bool borrow(PyObject* object, PyObject** number);
  const tw_tensor* tensor() const { return &tensor_; }

 private:
  bool borrow_capsule(PyObject* capsule, PyObject* object);
  tw_tensor tensor_{};
  PyObject* capsule_ = nullptr;
};

}  // namespace tilewright::python
