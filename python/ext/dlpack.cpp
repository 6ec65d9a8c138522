#include "dlpack.h"

#include <cstring>
#include <string>

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

// How tensors of a type are read.
struct Way {
  const ExchangeApi* api = nullptr;
  bool array = false;           // NumPy's, by __array_struct__
  bool makes = false;           // has new_empty()
  bool gradients = false;       // may want one
  PyObject* negates = nullptr;  // PyTorch's is_neg() as a function of the tensor, where it is known
};

// Whether a type, or one that it is derived from, is of this library.
bool is_of(PyTypeObject* type, const char* library) {
  PyObject* order = PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__mro__");
  const size_t length = std::strlen(library);
  bool found = false;
  for (Py_ssize_t i = 0; order && !found && i < PyTuple_Size(order); ++i) {
    PyObject* module = PyObject_GetAttrString(PyTuple_GetItem(order, i), "__module__");
    const char* name = module && PyUnicode_Check(module) ? PyUnicode_AsUTF8AndSize(module, nullptr) : nullptr;
    found = name && !std::strncmp(name, library, length) && (name[length] == 0 || name[length] == '.');
    Py_XDECREF(module);
  }
  Py_XDECREF(order);
  return found;
}

// NumPy's arrays; its scalars have the interface too, but no __dlpack__. Masked ones are refused where others are read.
bool is_numpy_array(PyTypeObject* type) {
  return is_of(type, "numpy") && PyObject_HasAttrString(reinterpret_cast<PyObject*>(type), "__array_struct__") &&
         PyObject_HasAttrString(reinterpret_cast<PyObject*>(type), "__dlpack__") &&
         !PyObject_HasAttrString(reinterpret_cast<PyObject*>(type), "mask");
}

// Few types of tensors are seen in one process.
Way way_of(PyTypeObject* type) {
  struct Known {
    PyTypeObject* type;
    Way way;
  };
  static Known known[8];
  for (const Known& k : known)
    if (k.type == type) return k.way;
  const ExchangeApi* api = nullptr;
  PyObject* capsule = PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__dlpack_c_exchange_api__");
  if (capsule && PyCapsule_IsValid(capsule, "dlpack_exchange_api"))
    api = static_cast<const ExchangeApi*>(PyCapsule_GetPointer(capsule, "dlpack_exchange_api"));
  if (api && (api->header.major != 1 || !api->dltensor_from_py_object_no_sync)) api = nullptr;
  Py_XDECREF(capsule);
  PyErr_Clear();
  auto* const object = reinterpret_cast<PyObject*>(type);
  const bool torch = is_of(type, "torch");
  Way way{api, !api && is_numpy_array(type), api && torch && PyObject_HasAttrString(object, "new_empty"),
          torch && PyObject_HasAttrString(object, "requires_grad")};
  PyErr_Clear();
  for (Known& k : known)
    if (!k.type) {
      Py_INCREF(object);
      if (way.gradients) way.negates = PyObject_GetAttrString(object, "is_neg");
      PyErr_Clear();
      k = {type, way};
      break;
    }
  return way;
}

// What __array_struct__ of NumPy's arrays points to (its version 3).
struct ArrayInterface {
  int two, rank;
  char kind;
  int item_bytes, flags;
  Py_intptr_t *shape, *strides;  // bytes
  void* data;
};
constexpr int kPlain = 0x300;  // aligned, in this processor's order of bytes
constexpr int kWritable = 0x400;

// DLPack's code of a type of NumPy's, or -1.
int code_of(const ArrayInterface& array) {
  switch (array.kind) {
    case 'i': return 0;
    case 'u': return 1;
    case 'f': return array.item_bytes <= 8 ? 2 : -1;
    case 'b': return 6;
    default: return -1;
  }
}

}  // namespace

// PyTorch's reason why a tensor has no memory to hand over (it is sparse, or on its device "meta") without the places
// in its own sources. False.
static bool explain_refusal(PyObject* object) {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyObject* text = value ? PyObject_Str(value) : nullptr;
  const char* reason = text ? PyUnicode_AsUTF8AndSize(text, nullptr) : nullptr;
  const std::string line(reason ? reason : "", reason ? std::strcspn(reason, "\n") : 0);
  PyErr_Clear();
  PyErr_Format(PyExc_ValueError, "an argument of type %R cannot be handed to a kernel: %s",
               reinterpret_cast<PyObject*>(Py_TYPE(object)), line.c_str());
  for (PyObject* o : {type, value, trace, text}) Py_XDECREF(o);
  return false;
}

bool makes_tensors(PyObject* object) { return way_of(Py_TYPE(object)).makes; }

bool wants_gradient(PyObject* object) {
  static PyObject* const name = PyUnicode_InternFromString("requires_grad");
  PyObject* wants = way_of(Py_TYPE(object)).gradients ? PyObject_GetAttr(object, name) : nullptr;
  if (!wants) PyErr_Clear();
  Py_XDECREF(wants);
  return wants == Py_True;
}

// A view of PyTorch's that negates what its memory holds whenever it is read (the imaginary part of a conjugate): what
// reads the memory has the other sign. True with an exception.
static bool is_negation(PyObject* object, const tw_tensor& tensor, const Way& way) {
  constexpr int kFloat = 2;
  if (tensor.type_code != kFloat) return false;
  static PyObject* const name = PyUnicode_InternFromString("is_neg");
  PyObject* const negates = way.negates ? PyObject_CallFunctionObjArgs(way.negates, object, nullptr)
                                        : PyObject_CallMethodObjArgs(object, name, nullptr);
  if (!negates) PyErr_Clear();
  Py_XDECREF(negates);
  if (negates != Py_True) return false;
  PyErr_SetString(
      PyExc_ValueError,
      "its memory holds the numbers of the other sign, as that of z.conj().imag does: pass x.resolve_neg()");
  return true;
}

// False, without an exception, for what a type code does not say; __dlpack__ finds the words.
bool BorrowedTensor::borrow_array(PyObject* object) {
  PyObject* capsule = PyObject_GetAttrString(object, "__array_struct__");
  const auto* array = capsule ? static_cast<const ArrayInterface*>(PyCapsule_GetPointer(capsule, nullptr)) : nullptr;
  const int code = array ? code_of(*array) : -1;
  bool ok = code >= 0 && array->two == 2 && (array->flags & kPlain) == kPlain && array->rank <= kMaxRank;
  for (int d = 0; ok && d < array->rank; ++d) {
    ok = array->strides[d] % array->item_bytes == 0;
    strides_[d] = array->strides[d] / array->item_bytes;
  }
  if (!ok) {
    Py_XDECREF(capsule);
    PyErr_Clear();
    return false;
  }
  static_assert(sizeof(Py_intptr_t) == sizeof(int64_t));
  tensor_ = {array->data,
             1,
             0,
             array->rank,
             static_cast<uint8_t>(code),
             static_cast<uint8_t>(array->item_bytes * 8),
             1,
             reinterpret_cast<int64_t*>(array->shape),
             strides_,
             0};
  read_only_ = !(array->flags & kWritable);
  capsule_ = capsule;
  return true;
}

// Whether a capsule describes a tensor that can be: what is read of it later relies on that. False with an exception.
bool BorrowedTensor::is_well_formed() const {
  constexpr int kMostDimensions = 64;  // more than any library has
  constexpr int64_t kMostElements = int64_t{1} << 56;
  const char* wrong = nullptr;
  if (tensor_.rank < 0 || tensor_.rank > kMostDimensions)
    wrong = "a number of dimensions that no tensor has";
  else if (tensor_.rank > 0 && !tensor_.shape)
    wrong = "no shape";
  else if (tensor_.byte_offset > (uint64_t{1} << 56))
    wrong = "an offset beyond all memory";
  int64_t elements = 1;
  for (int d = 0; !wrong && d < tensor_.rank; ++d) {
    const int64_t extent = tensor_.shape[d];
    if (extent < 0)
      wrong = "a negative extent";
    else if (extent > 0 && elements > kMostElements / extent)
      wrong = "more elements than any memory has";
    else
      elements *= extent > 0 ? extent : 1;
  }
  if (wrong) PyErr_Format(PyExc_BufferError, "its DLPack capsule is not well formed: it has %s", wrong);
  return !wrong;
}

bool BorrowedTensor::borrow_capsule(PyObject* capsule) {
  capsule_ = capsule;
  if (PyCapsule_IsValid(capsule, "dltensor")) {
    tensor_ = *static_cast<const tw_tensor*>(PyCapsule_GetPointer(capsule, "dltensor"));
    return is_well_formed();
  }
  const auto* versioned = static_cast<const Versioned*>(PyCapsule_GetPointer(capsule, "dltensor_versioned"));
  if (!versioned) return false;
  if (versioned->major != 1) {
    PyErr_Format(PyExc_BufferError, "its DLPack capsule is of version %u, but 1 is known", versioned->major);
    return false;
  }
  read_only_ = versioned->flags & kReadOnly;
  tensor_ = versioned->tensor;
  return is_well_formed();
}

bool BorrowedTensor::borrow(PyObject* object, PyObject** number, bool fresh) {
  const Way way = way_of(Py_TYPE(object));
  if (way.array && borrow_array(object)) return true;
  if (const ExchangeApi* api = way.api) {
    if (api->dltensor_from_py_object_no_sync(object, &tensor_) != 0) return explain_refusal(object);
    if (!fresh && way.gradients && is_negation(object, tensor_, way)) return false;
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
  if (!PyTuple_Check(result)) return borrow_capsule(result);
  // Bytes, and the dtype that they are of.
  PyObject *bytes = PyTuple_GetItem(result, 0), *dtype = PyTuple_GetItem(result, 1);
  bool ok = bytes && dtype && borrow_array(bytes);
  if (!ok && !PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "an array that is not aligned: pass a copy");
  const char* name = ok ? PyUnicode_AsUTF8AndSize(dtype, nullptr) : nullptr;
  if (name && !tw_tensor_set_dtype(&tensor_, name)) PyErr_Format(PyExc_TypeError, "no tensor has dtype '%s'", name);
  ok = name && !PyErr_Occurred();
  Py_DECREF(result);
  return ok;
}

}  // namespace tilewright::python
