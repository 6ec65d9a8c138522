// The extension module in CPython's limited API of 3.10: one binary for every Python from there on. It carries values
// between Python and tilewright/c_api.h, and decides nothing.
#pragma once
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030A0000
#include <Python.h>

#include <initializer_list>

#include "tilewright/c_api.h"

namespace tilewright::python {

// Python classes and functions that the package hands over once, by register().
struct Registered {
  PyObject* expr = nullptr;       // subclass of _native.Expr
  PyObject* buffer = nullptr;     // has .id
  PyObject* tile = nullptr;       // has .buffer and .indices
  PyObject* error = nullptr;      // (kind, code, area, message, help, text, file, line, column) -> exception
  PyObject* empty = nullptr;      // (example or None, shape, dtype, engine) -> tensor
  PyObject* options = nullptr;    // (dtype) -> {"dtype": PyTorch's}
  PyObject* to_dlpack = nullptr;  // (tensor) -> (capsule, dtype or None), for what has no fast way
  PyObject* refusal = nullptr;    // (kernel, position, parameter, exception) -> exception: what an argument cannot be
  PyObject* gradient = nullptr;   // (kernel, arguments, result) -> result, for tensors that want a gradient
  PyObject* bools = nullptr;      // (kernel, arguments) -> result, with bytes for bools; NotImplemented: none are given
  PyObject* range = nullptr;      // (name) -> what a profiler of PyTorch's calls a range, begun
};
extern Registered registered;

// Sets the Python exception of an error, which it releases; gives null.
PyObject* raise(tw_error* error);

struct ExprObject {
  PyObject_HEAD tw_expr* expr;
  PyObject* ended;  // why it may not be used any more, or null
};
struct ProgramObject {
  PyObject_HEAD tw_program* program;
};
extern PyTypeObject *expr_type, *builder_type, *program_type, *kernel_type, *flat_calls_type;

// Takes the reference over.
PyObject* new_expr(tw_expr* expr);
PyObject* new_program(tw_program* program);
bool is_expr(PyObject* object);
// As a Python string; releases it.
PyObject* new_string(tw_text* text);

template <class T>
T* object_of(PyObject* self) {
  return reinterpret_cast<T*>(self);
}
// The end of a heap type's instance: its memory, then the reference that it has to its type.
inline void free_object(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}
inline PyObject* allocate(PyTypeObject* type) {
  return reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc))(type, 0);
}

PyTypeObject* make_builder_type();
PyTypeObject* make_program_type();
PyTypeObject* make_expr_type();
PyTypeObject* make_kernel_type();
PyTypeObject* make_flat_calls_type();

// apply(builder or null, arguments of the call: operation, place, operands...)
PyObject* apply_operation(tw_builder* builder, PyObject* arguments);

}  // namespace tilewright::python
