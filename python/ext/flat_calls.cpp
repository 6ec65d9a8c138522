// Calls of functions of elements with tensors of PyTorch that are alike: from Python's tuple to the kernel of vectors
// that was found for such operands before, without a line of Python.
#include "kernel.h"

namespace tilewright::python {
namespace {

constexpr int32_t kCpu = 1;  // DLPack's device type

// A kernel, and the calls that are its own: what the first tensor is, how many elements it has, the types of all
// operands, the engine that the environment names.
struct Kept {
  std::vector<PyTypeObject*> types;
  int32_t device_type;
  uint8_t type_code, type_bits;
  bool is_long;
  PyObject* engine;  // bytes, or null
  PyObject* kernel;
};

struct FlatCalls {
  PyObject_HEAD std::vector<Kept>* kept;
  PyObject* environment;  // the dict of it that Python keeps, as bytes
  PyObject* key;
  int64_t most_short;  // elements; more are many
};

PyObject* create(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject *environment = nullptr, *key = nullptr;
  long long most_short = 0;
  if (!PyArg_ParseTuple(args, "O!OL", &PyDict_Type, &environment, &key, &most_short)) return nullptr;
  PyObject* object = allocate(type);
  if (!object) return nullptr;
  auto* self = object_of<FlatCalls>(object);
  Py_INCREF(environment), Py_INCREF(key);
  self->kept = new std::vector<Kept>, self->environment = environment, self->key = key;
  self->most_short = most_short;
  return object;
}

void release(const Kept& kept) {
  for (PyTypeObject* type : kept.types) Py_DECREF(reinterpret_cast<PyObject*>(type));
  Py_XDECREF(kept.engine);
  Py_DECREF(kept.kernel);
}

void destroy(PyObject* object) {
  auto* self = object_of<FlatCalls>(object);
  if (self->kept)
    for (const Kept& kept : *self->kept) release(kept);
  delete self->kept;
  Py_XDECREF(self->environment);
  Py_XDECREF(self->key);
  free_object(object);
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

int64_t elements_of(const tw_tensor& tensor) {
  int64_t count = 1;
  for (int d = 0; d < tensor.rank; ++d) count *= tensor.shape[d];
  return count;
}

bool has_types(const Kept& kept, PyObject* args) {
  const size_t count = kept.types.size();
  if (static_cast<size_t>(PyTuple_Size(args)) != count) return false;
  for (size_t i = 0; i < count; ++i)
    if (Py_TYPE(PyTuple_GetItem(args, static_cast<Py_ssize_t>(i))) != kept.types[i]) return false;
  return true;
}

// Borrowed, or null: what the environment names.
PyObject* engine_of(const FlatCalls* self) { return PyDict_GetItem(self->environment, self->key); }

bool is_same(PyObject* a, PyObject* b) { return a == b || (a && b && PyObject_RichCompareBool(a, b, Py_EQ) == 1); }

bool is_for(const FlatCalls* self, const Kept& kept, const tw_tensor& first) {
  return kept.device_type == first.device_type && kept.type_code == first.type_code &&
         kept.type_bits == first.type_bits && first.type_lanes == 1 &&
         kept.is_long == (elements_of(first) > self->most_short) && is_same(kept.engine, engine_of(self));
}

// The operands of a call as arguments: vectors of one length.
class Vectors {
 public:
  Vectors(const KernelObject* kernel, size_t count) : arguments_(kernel, count) {}
  Arguments& arguments() { return arguments_; }
  const Example& example() const { return example_; }

  enum class Found { Alike, Other, Failed };
  Found set(size_t i, PyObject* operand) {
    if (!arguments_.set(i, operand)) return Found::Failed;
    if (arguments_.data()[i].kind != TW_TENSOR) return Found::Alike;
    const tw_tensor* tensor = arguments_.data()[i].as.tensor;
    if (!example_.object) example_ = {operand, tensor}, length_ = elements_of(*tensor);
    if (!is_like(*example_.tensor, *tensor) || wants_gradient(operand)) return Found::Other;
    flatten(i);
    return Found::Alike;
  }
  bool set_result(size_t i, PyObject* result) {
    if (!arguments_.set(i, result, true)) return false;
    flatten(i);
    return true;
  }

 private:
  void flatten(size_t i) {
    vectors_[i] = *arguments_.data()[i].as.tensor;
    vectors_[i].rank = 1, vectors_[i].shape = &length_, vectors_[i].strides = nullptr;
    arguments_.data()[i].as.tensor = &vectors_[i];
  }
  Arguments arguments_;
  tw_tensor vectors_[Arguments::kFew];
  int64_t length_ = 1;
  Example example_;
};

// A reference that lasts as long as this: tables may change while a call is under way.
class Held {
 public:
  explicit Held(PyObject* object) : object_(object) { Py_INCREF(object); }
  Held(const Held&) = delete;
  ~Held() { Py_DECREF(object_); }
  KernelObject* kernel() const { return object_of<KernelObject>(object_); }

 private:
  PyObject* object_;
};

// brief: it is over in microseconds, so that other threads of Python's may as well wait.
tw_error* launch(KernelObject* kernel, Arguments& arguments, bool brief) {
  if (brief) return tw_kernel_call(kernel->kernel, arguments.data(), arguments.count());
  tw_error* error = nullptr;
  Py_BEGIN_ALLOW_THREADS;
  error = tw_kernel_call(kernel->kernel, arguments.data(), arguments.count());
  Py_END_ALLOW_THREADS;
  return error;
}

PyObject* run(KernelObject* kernel, Vectors& vectors, bool brief) {
  const ProfilerRange range(kernel);
  PyObject* result =
      new_output(kernel, kernel->outputs->front(), vectors.example(), extents_of(*vectors.example().tensor));
  if (!result) return nullptr;
  Arguments& arguments = vectors.arguments();
  if (!vectors.set_result(arguments.count() - 1, result)) {
    Py_DECREF(result);
    return nullptr;
  }
  tw_error* error = launch(kernel, arguments, brief);
  if (!error) return result;
  Py_DECREF(result);
  return raise(error);
}

// NotImplemented where no kernel is kept for such a call.
PyObject* call(PyObject* object, PyObject* args, PyObject* kwargs) {
  if (kwargs && PyDict_Size(kwargs) > 0) Py_RETURN_NOTIMPLEMENTED;
  const auto* self = object_of<FlatCalls>(object);
  const Kept* kept = nullptr;
  for (size_t k = 0; k < self->kept->size() && !kept; ++k)
    if (has_types((*self->kept)[k], args)) kept = &(*self->kept)[k];
  if (!kept) Py_RETURN_NOTIMPLEMENTED;
  const size_t count = kept->types.size();
  const Held first(kept->kernel);
  Vectors vectors(first.kernel(), count + 1);
  for (size_t i = 0; i < count; ++i) {
    const Vectors::Found found = vectors.set(i, PyTuple_GetItem(args, static_cast<Py_ssize_t>(i)));
    if (found == Vectors::Found::Failed) return refuse(first.kernel(), i);
    if (found == Vectors::Found::Other) Py_RETURN_NOTIMPLEMENTED;
  }
  // Operands of these types stand together in the table or apart.
  for (const Kept& other : *self->kept)
    if (is_for(self, other, *vectors.example().tensor) && has_types(other, args)) {
      const Held found(other.kernel);
      return run(found.kernel(), vectors, !other.is_long && other.device_type == kCpu);
    }
  Py_RETURN_NOTIMPLEMENTED;
}

// keep(kernel, *operands): calls with operands as these are calls of this kernel.
PyObject* keep(PyObject* object, PyObject* args) {
  auto* self = object_of<FlatCalls>(object);
  const Py_ssize_t count = PyTuple_Size(args) - 1;
  PyObject* kernel = count >= 1 ? PyTuple_GetItem(args, 0) : nullptr;
  if (!kernel || !PyType_IsSubtype(Py_TYPE(kernel), kernel_type))
    return PyErr_Format(PyExc_TypeError, "keep(kernel, *operands)");
  const auto* k = object_of<KernelObject>(kernel);
  const bool fits = k->outputs->size() == 1 && k->outputs->front().parameter == count &&
                    static_cast<size_t>(count) + 1 == k->parameters->size() &&
                    static_cast<size_t>(count) < Arguments::kFew;
  Kept kept{{}, 0, 0, 0, false, engine_of(self), kernel};
  const tw_tensor* first = nullptr;
  Arguments arguments(k, static_cast<size_t>(count));
  for (Py_ssize_t i = 0; fits && i < count; ++i) {
    PyObject* operand = PyTuple_GetItem(args, i + 1);
    if (!arguments.set(static_cast<size_t>(i), operand)) return nullptr;
    if (const tw_argument& a = arguments.data()[i]; !first && a.kind == TW_TENSOR) first = a.as.tensor;
    kept.types.push_back(Py_TYPE(operand));
  }
  if (!first) Py_RETURN_NONE;
  kept.device_type = first->device_type, kept.type_code = first->type_code, kept.type_bits = first->type_bits;
  kept.is_long = elements_of(*first) > self->most_short;
  for (PyTypeObject* type : kept.types) Py_INCREF(reinterpret_cast<PyObject*>(type));
  Py_XINCREF(kept.engine);
  Py_INCREF(kernel);
  for (Kept& old : *self->kept)
    if (old.types == kept.types && is_for(self, old, *first)) {
      std::swap(old, kept);
      release(kept);
      Py_RETURN_NONE;
    }
  self->kept->push_back(std::move(kept));
  Py_RETURN_NONE;
}

}  // namespace

PyTypeObject* make_flat_calls_type() {
  static PyMethodDef methods[] = {
      {"keep", keep, METH_VARARGS, "keep(kernel, *operands): calls with operands like these are this kernel's."},
      {nullptr, nullptr, 0, nullptr}};
  static PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(create)},
                                {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
                                {Py_tp_methods, methods},
                                {Py_tp_call, reinterpret_cast<void*>(call)},
                                {0, nullptr}};
  static PyType_Spec spec = {"tilewright._native.FlatCalls", sizeof(FlatCalls), 0, Py_TPFLAGS_DEFAULT, slots};
  return reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
}

}  // namespace tilewright::python
