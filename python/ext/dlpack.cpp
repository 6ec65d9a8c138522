#include "dlpack.h"

#include <cstring>

namespace tilewright::python {
namespace {

// DLPack 1.3's DLPackExchangeAPI, as far as it is used.
struct ExchangeApi {
  struct {
    uint32_t major, minor;
    void* previous;
  } header;
  void* managed_tensor_allocator;
  void* managed_tensor_from_py_object_no_sync;
  void* managed_tensor_to_py_object_no_sync;
  int (*dltensor_from_py_object_no_sync)(void* object, tw_tensor* out);
  int (*current_work_stream)(int32_t device_type, int32_t device_index, void** out);
};

// A managed tensor: its DLTensor is first, and in the versioned form after 32 bytes, of which the last 8 are flags.
struct Versioned {
  uint32_t major, minor;
  void* context;
  void* deleter;
  uint64_t flags;
  tw_tensor tensor;
};
constexpr uint64_t kReadOnly = 1;

// The exchange API of a type, or null. Few types of tensors are seen in one process.
const ExchangeApi* exchange_of(PyTypeObject* type) {
  struct Known {
    PyTypeObject* type;
    const ExchangeApi* api;
  };
  static Known known[8];
  for (const Known& k : known)
    if (k.type == type) return k.api;
  const ExchangeApi* api = nullptr;
  PyObject* capsule = PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__dlpack_c_exchange_api__");
  if (capsule && PyCapsule_IsValid(capsule, "dlpack_exchange_api"))
    api = static_cast<const ExchangeApi*>(PyCapsule_GetPointer(capsule, "dlpack_exchange_api"));
  if (api && (api->header.major != 1 || !api->dltensor_from_py_object_no_sync)) api = nullptr;
  Py_XDECREF(capsule);
  PyErr_Clear();
  for (Known& k : known)
    if (!k.type) {
      Py_INCREF(reinterpret_cast<PyObject*>(type));
      k = {type, api};
      break;
    }
  return api;
}

// DLPack's type code and bits of what libraries without them hand over as bytes.
bool set_dtype(tw_tensor& tensor, PyObject* name) {
  const char* text = PyUnicode_AsUTF8AndSize(name, nullptr);
  if (!text) return false;
  static const struct {
    const char* name;
    uint8_t code, bits;
  } kTypes[] = {{"bfloat16", 4, 16},       {"float8_e4m3fn", 10, 8}, {"float8_e5m2", 12, 8},
                {"float8_e8m0fnu", 14, 8}, {"float4_e2m1fn", 17, 4}, {"bool", 6, 8}};
  for (const auto& t : kTypes)
    if (!std::strcmp(t.name, text)) {
      tensor.type_code = t.code, tensor.type_bits = t.bits, tensor.type_lanes = 1;
      return true;
    }
  PyErr_Format(PyExc_TypeError, "no tensor has dtype '%s'", text);
  return false;
}

}  // namespace

bool BorrowedTensor::borrow_capsule(PyObject* capsule, PyObject* object) {
  capsule_ = capsule;
  if (PyCapsule_IsValid(capsule, "dltensor")) {
    tensor_ = *static_cast<const tw_tensor*>(PyCapsule_GetPointer(capsule, "dltensor"));
    return true;
  }
  const auto* versioned = static_cast<const Versioned*>(PyCapsule_GetPointer(capsule, "dltensor_versioned"));
  if (!versioned) return false;
  if (versioned->flags & kReadOnly) {
    PyErr_Format(PyExc_ValueError, "a read-only array of type %R: kernels may write; pass a copy",
                 reinterpret_cast<PyObject*>(Py_TYPE(object)));
    return false;
  }
  tensor_ = versioned->tensor;
  return true;
}

bool BorrowedTensor::borrow(PyObject* object, PyObject** number) {
  if (const ExchangeApi* api = exchange_of(Py_TYPE(object))) {
    if (api->dltensor_from_py_object_no_sync(object, &tensor_) != 0) return false;
    constexpr int32_t kCuda = 2;
    void* stream = nullptr;
    if (tensor_.device_type == kCuda && api->current_work_stream &&
        api->current_work_stream(kCuda, tensor_.device_index, &stream) == 0)
      tw_cuda_set_stream(stream);
    return true;
  }
  PyObject* result = PyObject_CallFunctionObjArgs(registered.to_dlpack, object, nullptr);
  if (!result) return false;
  if (PyLong_Check(result) || PyFloat_Check(result)) {
    *number = result;
    return true;
  }
  if (!PyTuple_Check(result)) return borrow_capsule(result, object);
  PyObject *capsule = PyTuple_GetItem(result, 0), *dtype = PyTuple_GetItem(result, 1);
  Py_XINCREF(capsule);
  const bool ok = capsule && borrow_capsule(capsule, object) && dtype && set_dtype(tensor_, dtype);
  Py_DECREF(result);
  return ok;
}

}  // namespace tilewright::python
