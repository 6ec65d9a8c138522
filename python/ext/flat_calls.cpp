// Calls of functions of elements with tensors of PyTorch that are alike: from Python's tuple to the kernel of vectors
// that was found for such operands before, without a line of Python.
#include <algorithm>
#include <deque>

#include "kernel.h"

namespace tilewright::python {
namespace {

constexpr int32_t kCpu = 1;  // DLPack's device type

// An operand by which calls are told apart, and where the kernel takes it: tensors, the result, numbers.
struct Operand {
  PyTypeObject* type = nullptr;
  size_t place = 0;
  uint8_t type_code = 0, type_bits = 0;  // no bits: a number
  bool is_tensor() const { return type_bits > 0; }
};

// A kernel, and the calls that are its own: what the operands are, where the first tensor is and how many elements it
// has, the engine that the environment names.
struct Kept {
  std::vector<Operand> operands;
  size_t result;  // the parameter
  int32_t device_type;
  bool is_long;
  PyObject* engine;  // bytes, or null
  PyObject* kernel;
};

// Nothing that is kept goes or moves: other threads may add to it while a call is under way.
struct FlatCalls {
  PyObject_HEAD std::deque<Kept>* kept;
  PyObject* environment;  // the dict of it that Python keeps, as bytes
  PyObject* key;
  int64_t most_short;  // elements; more are many
  PyObject* defaults;  // of the operands behind the first, where it is given alone
};

PyObject* create(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject *environment = nullptr, *key = nullptr, *defaults = nullptr;
  long long most_short = 0;
  if (!PyArg_ParseTuple(args, "O!OLO!", &PyDict_Type, &environment, &key, &most_short, &PyTuple_Type, &defaults))
    return nullptr;
  PyObject* object = allocate(type);
  if (!object) return nullptr;
  auto* self = object_of<FlatCalls>(object);
  Py_INCREF(environment), Py_INCREF(key), Py_INCREF(defaults);
  self->kept = new std::deque<Kept>, self->environment = environment, self->key = key;
  self->most_short = most_short, self->defaults = defaults;
  return object;
}

void release(const Kept& kept) {
  for (const Operand& operand : kept.operands) Py_DECREF(reinterpret_cast<PyObject*>(operand.type));
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
  Py_XDECREF(self->defaults);
  free_object(object);
}

bool is_row_major(const tw_tensor& tensor) {
  int64_t step = 1;
  for (int d = tensor.rank - 1; d >= 0; step *= tensor.shape[d], --d)
    if (tensor.strides && tensor.shape[d] != 1 && tensor.strides[d] != step) return false;
  return true;
}

// Whether both have one shape, and the second has no gaps.
bool is_like(const tw_tensor& first, const tw_tensor& other) {
  if (other.rank != first.rank) return false;
  for (int d = 0; d < first.rank; ++d)
    if (other.shape[d] != first.shape[d]) return false;
  return is_row_major(other);
}

int64_t elements_of(const tw_tensor& tensor) {
  int64_t count = 1;
  for (int d = 0; d < tensor.rank; ++d) count *= tensor.shape[d];
  return count;
}

// What a call gives, by position.
class Given {
 public:
  Given(const FlatCalls* self, PyObject* args) {
    add_all(args);
    if (count_ == 1) add_all(self->defaults);
  }
  size_t count() const { return count_; }
  PyObject* operator[](size_t i) const { return operands_[i]; }  // borrowed
  bool has_types(const Kept& kept) const {
    if (count_ != kept.operands.size()) return false;
    for (size_t i = 0; i < count_; ++i)
      if (Py_TYPE(operands_[i]) != kept.operands[i].type) return false;
    return true;
  }

 private:
  void add_all(PyObject* tuple) {
    const Py_ssize_t more = PyTuple_Size(tuple);
    for (Py_ssize_t i = 0; i < more; ++i, ++count_)
      if (count_ < Arguments::kFew) operands_[count_] = PyTuple_GetItem(tuple, i);
  }
  size_t count_ = 0;  // no kernel that is kept takes more than there is room for
  PyObject* operands_[Arguments::kFew];
};

// Borrowed, or null: what the environment names.
PyObject* engine_of(const FlatCalls* self) { return PyDict_GetItem(self->environment, self->key); }

bool is_same(PyObject* a, PyObject* b) { return a == b || (a && b && PyObject_RichCompareBool(a, b, Py_EQ) == 1); }

// Arguments by the places that the kernel has for them.
bool is_for(const FlatCalls* self, const Kept& kept, const tw_argument* arguments, const tw_tensor& first) {
  for (const Operand& operand : kept.operands) {
    if (!operand.is_tensor()) continue;
    const tw_argument& a = arguments[operand.place];
    if (a.kind != TW_TENSOR || a.as.tensor->type_code != operand.type_code ||
        a.as.tensor->type_bits != operand.type_bits || a.as.tensor->type_lanes != 1)
      return false;
  }
  return kept.device_type == first.device_type && kept.is_long == (elements_of(first) > self->most_short) &&
         is_same(kept.engine, engine_of(self));
}

// The operands of a call as arguments: vectors of one length.
class Vectors {
 public:
  Vectors(const KernelObject* kernel, size_t count) : arguments_(kernel, count) {}
  Arguments& arguments() { return arguments_; }
  const Example& example() const { return example_; }

  enum class Found { Alike, Other, Failed };
  Found set(const Operand& kept, PyObject* operand) {
    const size_t i = kept.place;
    if (!arguments_.set(i, operand)) return Found::Failed;
    if ((arguments_.data()[i].kind == TW_TENSOR) != kept.is_tensor()) return Found::Other;
    if (!kept.is_tensor()) return Found::Alike;
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

// brief: it is over in microseconds, so that other threads of Python's may as well wait.
tw_error* launch(KernelObject* kernel, Arguments& arguments, bool brief) {
  if (brief) return tw_kernel_call(kernel->kernel, arguments.data(), arguments.count());
  tw_error* error = nullptr;
  Py_BEGIN_ALLOW_THREADS;
  error = tw_kernel_call(kernel->kernel, arguments.data(), arguments.count());
  Py_END_ALLOW_THREADS;
  return error;
}

PyObject* run(const Kept& kept, Vectors& vectors) {
  auto* kernel = object_of<KernelObject>(kept.kernel);
  const ProfilerRange range(kernel);
  const tw_tensor& like = *vectors.example().tensor;
  PyObject* result =
      new_output(kernel, kernel->outputs->front(), vectors.example(), {like.shape, static_cast<size_t>(like.rank)});
  if (!result) return nullptr;
  Arguments& arguments = vectors.arguments();
  if (!vectors.set_result(kept.result, result)) {
    Py_DECREF(result);
    return nullptr;
  }
  tw_error* error = launch(kernel, arguments, !kept.is_long && kept.device_type == kCpu);
  if (!error) return result;
  Py_DECREF(result);
  return raise(error);
}

// NotImplemented where no kernel is kept for such a call.
PyObject* call(PyObject* object, PyObject* args, PyObject* kwargs) {
  if (kwargs && PyDict_Size(kwargs) > 0) Py_RETURN_NOTIMPLEMENTED;
  const auto* self = object_of<FlatCalls>(object);
  const Given given(self, args);
  const auto alike = [&](const Kept& kept) { return given.has_types(kept); };
  const auto first = std::find_if(self->kept->begin(), self->kept->end(), alike);
  if (first == self->kept->end()) Py_RETURN_NOTIMPLEMENTED;
  const Kept& kept = *first;
  auto* kernel = object_of<KernelObject>(kept.kernel);
  Vectors vectors(kernel, given.count() + 1);
  for (size_t i = 0; i < given.count(); ++i) {
    const Vectors::Found found = vectors.set(kept.operands[i], given[i]);
    if (found == Vectors::Found::Failed) return refuse(kernel, kept.operands[i].place);
    if (found == Vectors::Found::Other) Py_RETURN_NOTIMPLEMENTED;
  }
  if (!vectors.example().object) Py_RETURN_NOTIMPLEMENTED;
  // Operands of these types stand together in the table or apart.
  for (const Kept& other : *self->kept)
    if (given.has_types(other) && is_for(self, other, vectors.arguments().data(), *vectors.example().tensor))
      return run(other, vectors);
  Py_RETURN_NOTIMPLEMENTED;
}

bool is_same_call(const Kept& a, const Kept& b) {
  const auto alike = [](const Operand& x, const Operand& y) {
    return x.type == y.type && x.type_code == y.type_code && x.type_bits == y.type_bits;
  };
  return std::equal(a.operands.begin(), a.operands.end(), b.operands.begin(), b.operands.end(), alike) &&
         a.device_type == b.device_type && a.is_long == b.is_long && is_same(a.engine, b.engine);
}

// keep(kernel, *operands): calls with operands as these are calls of this kernel.
PyObject* keep(PyObject* object, PyObject* args) {
  auto* self = object_of<FlatCalls>(object);
  const Py_ssize_t count = PyTuple_Size(args) - 1;
  PyObject* kernel = count >= 1 ? PyTuple_GetItem(args, 0) : nullptr;
  if (!kernel || !PyType_IsSubtype(Py_TYPE(kernel), kernel_type))
    return PyErr_Format(PyExc_TypeError, "keep(kernel, *operands)");
  const auto* k = object_of<KernelObject>(kernel);
  if (k->outputs->size() != 1 || static_cast<size_t>(count) + 1 != k->parameters->size() ||
      static_cast<size_t>(count) >= Arguments::kFew)
    Py_RETURN_NONE;
  Kept kept{{}, 0, 0, false, engine_of(self), kernel};
  const tw_tensor* first = nullptr;
  Arguments arguments(k, static_cast<size_t>(count));  // in the operands' order
  for (size_t i = 0; i < arguments.count(); ++i) {
    PyObject* operand = PyTuple_GetItem(args, static_cast<Py_ssize_t>(i) + 1);
    if (!arguments.set(i, operand)) return nullptr;
    Operand& added = kept.operands.emplace_back(Operand{Py_TYPE(operand)});
    if (arguments.data()[i].kind != TW_TENSOR) continue;
    const tw_tensor* tensor = arguments.data()[i].as.tensor;
    if (!first) first = tensor;
    added.place = kept.result++, added.type_code = tensor->type_code, added.type_bits = tensor->type_bits;
  }
  if (!first || k->outputs->front().parameter != static_cast<int>(kept.result)) Py_RETURN_NONE;
  size_t next = kept.result + 1;
  for (Operand& operand : kept.operands)
    if (!operand.is_tensor()) operand.place = next++;
  kept.device_type = first->device_type, kept.is_long = elements_of(*first) > self->most_short;
  for (const Kept& old : *self->kept)
    if (is_same_call(old, kept)) Py_RETURN_NONE;
  for (const Operand& operand : kept.operands) Py_INCREF(reinterpret_cast<PyObject*>(operand.type));
  Py_XINCREF(kept.engine);
  Py_INCREF(kernel);
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
