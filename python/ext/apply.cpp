// Operations: from Python values to tw_value and back.
#include <deque>
#include <vector>

#include "objects.h"

namespace tilewright::python {
namespace {

// Values of one call. Lists live beside it, and so do the Python objects that texts point into.
class Values {
 public:
  ~Values() {
    for (PyObject* o : owned_) Py_DECREF(o);
  }

  bool convert(PyObject* object, tw_value& out) {
    out = {};
    if (object == Py_None) return true;
    if (is_expr(object)) return convert_expr(object, out);
    if (PyBool_Check(object)) {
      out.kind = TW_BOOL, out.as.integer = object == Py_True;
      return true;
    }
    if (PyLong_Check(object)) return convert_integer(object, out);
    if (PyFloat_Check(object)) {
      out.kind = TW_FLOAT, out.as.number = PyFloat_AsDouble(object);
      return true;
    }
    if (PyUnicode_Check(object)) {
      out.kind = TW_TEXT, out.as.text = PyUnicode_AsUTF8AndSize(object, nullptr);
      return out.as.text != nullptr;
    }
    if (is(object, registered.buffer)) return convert_buffer(object, out);
    if (is(object, registered.tile)) return convert_tile(object, out);
    if (PyTuple_Check(object) || PyList_Check(object)) {
      out.kind = TW_LIST;
      return convert_items(object, out);
    }
    if (Py_TYPE(object) == &PySlice_Type) return convert_slice(object, out);
    return convert_other(object, out);
  }

 private:
  static bool is(PyObject* object, PyObject* type) {
    return type && PyType_IsSubtype(Py_TYPE(object), reinterpret_cast<PyTypeObject*>(type));
  }

  static bool convert_expr(PyObject* object, tw_value& out) {
    auto* e = object_of<ExprObject>(object);
    if (e->ended) {
      PyErr_SetObject(PyExc_LookupError, e->ended);  // the package turns it into an error with its place
      return false;
    }
    out.kind = TW_EXPR, out.as.expr = e->expr;
    return true;
  }

  static bool convert_integer(PyObject* object, tw_value& out) {
    out.kind = TW_INT, out.as.integer = PyLong_AsLongLong(object);
    if (out.as.integer != -1 || !PyErr_Occurred()) return true;
    PyErr_Clear();
    out.kind = TW_UINT, out.as.integer = static_cast<int64_t>(PyLong_AsUnsignedLongLong(object));
    return out.as.integer != -1 || !PyErr_Occurred();
  }

  bool convert_buffer(PyObject* object, tw_value& out) {
    PyObject* id = PyObject_GetAttrString(object, "id");
    if (!id) return false;
    out.kind = TW_BUFFER, out.buffer = static_cast<uint32_t>(PyLong_AsUnsignedLong(id));
    Py_DECREF(id);
    return !PyErr_Occurred();
  }

  bool convert_tile(PyObject* object, tw_value& out) {
    PyObject* buffer = PyObject_GetAttrString(object, "buffer");
    if (!buffer) return false;
    const bool ok = convert_buffer(buffer, out);
    Py_DECREF(buffer);
    PyObject* indices = ok ? PyObject_GetAttrString(object, "indices") : nullptr;
    if (!indices) return false;
    owned_.push_back(indices);
    out.kind = TW_TILE;
    return convert_items(indices, out);
  }

  bool convert_slice(PyObject* object, tw_value& out) {
    static const char* const kParts[] = {"start", "stop", "step"};
    std::vector<tw_value>& items = lists_.emplace_back(2);
    for (int i = 0; i < 3; ++i) {
      PyObject* part = PyObject_GetAttrString(object, kParts[i]);
      if (!part) return false;
      owned_.push_back(part);
      if (i == 2) {
        if (part == Py_None || (PyLong_Check(part) && PyLong_AsLong(part) == 1)) break;
        PyErr_SetString(PyExc_RuntimeError, "a slice with a step other than 1: tiles are boxes of neighbours");
        return false;
      }
      if (!convert(part, items[static_cast<size_t>(i)])) return false;
    }
    out.kind = TW_SLICE, out.count = 2, out.as.items = items.data();
    return true;
  }

  bool convert_items(PyObject* sequence, tw_value& out) {
    const Py_ssize_t n = PySequence_Size(sequence);
    if (n < 0) return false;
    std::vector<tw_value>& items = lists_.emplace_back(static_cast<size_t>(n) + 1);
    for (Py_ssize_t i = 0; i < n; ++i) {
      PyObject* item = PySequence_GetItem(sequence, i);
      if (!item) return false;
      owned_.push_back(item);
      if (!convert(item, items[static_cast<size_t>(i)])) return false;
    }
    out.count = n, out.as.items = items.data();
    return true;
  }

  // Integers and floats of other libraries (NumPy's scalars, for one) say so by __index__ and __float__.
  bool convert_other(PyObject* object, tw_value& out) {
    if (PyIndex_Check(object)) {
      PyObject* number = PyNumber_Index(object);
      if (!number) return false;
      owned_.push_back(number);
      return convert(number, out);
    }
    if (PyObject_HasAttrString(object, "__float__")) {
      PyObject* number = PyNumber_Float(object);
      if (!number) return false;
      owned_.push_back(number);
      return convert(number, out);
    }
    PyErr_Format(PyExc_TypeError, "an operand is %R, which is no value, buffer or tile", object);
    return false;
  }

  std::deque<std::vector<tw_value>> lists_;
  std::vector<PyObject*> owned_;
};

PyObject* python_of(const tw_value& v) {
  switch (v.kind) {
    case TW_BOOL: return PyBool_FromLong(v.as.integer != 0);
    case TW_INT: return PyLong_FromLongLong(v.as.integer);
    case TW_UINT: return PyLong_FromUnsignedLongLong(static_cast<uint64_t>(v.as.integer));
    case TW_FLOAT: return PyFloat_FromDouble(v.as.number);
    case TW_TEXT: return PyUnicode_FromString(v.as.text);
    case TW_EXPR: return new_expr(v.as.expr);
    case TW_BUFFER: return PyObject_CallFunction(registered.buffer, "k", static_cast<unsigned long>(v.buffer));
    case TW_LIST: {
      PyObject* list = PyList_New(static_cast<Py_ssize_t>(v.count));
      if (!list) return nullptr;
      for (int64_t i = 0; i < v.count; ++i) {
        PyObject* item = python_of(v.as.items[i]);
        if (!item || PyList_SetItem(list, static_cast<Py_ssize_t>(i), item) < 0) {
          Py_DECREF(list);
          return nullptr;
        }
      }
      return list;
    }
    default: Py_RETURN_NONE;
  }
}

// (file, line, column) or None.
bool place_of(PyObject* object, tw_place& place) {
  place = {};
  if (object == Py_None) return true;
  return PyArg_ParseTuple(object, "sii", &place.file, &place.line, &place.column) != 0;
}

}  // namespace

PyObject* apply_operation(tw_builder* builder, PyObject* arguments) {
  const Py_ssize_t n = PyTuple_Size(arguments);
  if (n < 2) {
    PyErr_SetString(PyExc_TypeError, "apply(operation, place, *operands)");
    return nullptr;
  }
  const long operation = PyLong_AsLong(PyTuple_GetItem(arguments, 0));
  tw_place place;
  if ((operation == -1 && PyErr_Occurred()) || !place_of(PyTuple_GetItem(arguments, 1), place)) return nullptr;
  Values values;
  std::vector<tw_value> operands(static_cast<size_t>(n - 2));
  for (Py_ssize_t i = 2; i < n; ++i)
    if (!values.convert(PyTuple_GetItem(arguments, i), operands[static_cast<size_t>(i - 2)])) return nullptr;
  tw_value result{};
  if (tw_error* error =
          tw_apply(builder, static_cast<int>(operation), &place, operands.data(), operands.size(), &result))
    return raise(error);
  return python_of(result);
}

}  // namespace tilewright::python
