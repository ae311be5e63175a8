// What the short paths of operators.cpp share: which torch tensor stands for a Tensor in this thread, and the Tensor of a result.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/SavedTensorHooks.h>
#include <ATen/ScalarOps.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/object_ptr.h>

namespace {

PyTypeObject* tensor_base;              // TensorBase of engine/tensors/tensor.py
PyTypeObject* tensor_class;             // Tensor of the front end
PyTypeObject* number_class;             // a number of a graph, which is no Tensor for these operators
Py_ssize_t slot_offset;                 // of the slot _t
PyObject* engine_names;                 // the dict of engine/tensors/tensor.py
PyObject* thread_state;                 // its thread-local state
bool has_native_state;                  // whether Python itself implements that state: a dict for each thread
PyObject* zero;
PyObject* name_active;
PyObject* name_observers;
PyObject* name_frame;
PyObject* name_lookup;
PyObject* name_requires_grad;
PyObject* name_dict;
PyObject* name_in_python;

constexpr int64_t kFewElements = 4096;  // an operator on more of them, or on another device, releases the interpreter lock
constexpr int64_t kFewProducts = 64 * kFewElements;      // an operator with more products or larger broadcast operands releases it too

bool is_zero(PyObject* name) {
  return PyDict_GetItemWithError(engine_names, name) == zero;
}

// Whether operators of this thread run functions of Python: those of a mode, which may follow operators by their Python frames, or hooks of
// saved tensors, whose errors are not the operator's.
bool runs_python() {
  return at::impl::torch_function_mode_enabled() || c10::impl::TorchDispatchModeTLS::any_modes_set() ||
         at::SavedTensorDefaultHooks::get_hooks(/*ignore_is_tracing=*/true).has_value();
}

// The attributes of this thread in the thread-local state, borrowed; null if they have to be asked for one by one. They live as long as the
// thread's state in Python, whose number no other state of the process gets.
PyObject* thread_attributes() {
  thread_local PyObject* attributes = nullptr;
  thread_local uint64_t owner = UINT64_MAX;
  if (!has_native_state) return nullptr;
  const uint64_t number = PyThreadState_GetID(PyThreadState_Get());
  if (number != owner) {
    PyObject* dict = PyObject_GetAttr(thread_state, name_dict);
    if (dict == nullptr) {
      PyErr_Clear();
      return nullptr;
    }
    attributes = PyDict_CheckExact(dict) ? dict : nullptr;
    owner = number;
    Py_DECREF(dict);
  }
  return attributes;
}

// The innermost frame of this thread, or None, as a new reference; null after an error.
PyObject* innermost_frame() {
  PyObject* attributes = thread_attributes();
  if (attributes == nullptr) return PyObject_GetAttr(thread_state, name_frame);
  PyObject* frame = PyDict_GetItemWithError(attributes, name_frame);
  if (frame == nullptr && PyErr_Occurred() != nullptr) return nullptr;
  return Py_NewRef(frame == nullptr ? Py_None : frame);          // None is the default of the class
}

// What replaces the tensors of this thread's Tensors: nothing, a dict, or something that only Python can ask.
struct Frame {
  PyObject* substitutes = nullptr;      // from the ids of Tensors to torch tensors; owned
  bool is_supported = false;
  bool has_none = false;                // no thread has an open frame

  Frame() {
    if (engine_names == nullptr || runs_python()) return;
    if (is_zero(name_active)) {
      is_supported = has_none = true;
      return;
    }
    if (!is_zero(name_observers)) return;
    PyObject* frame = innermost_frame();
    if (frame == nullptr) {
      PyErr_Clear();
      return;
    }
    if (frame == Py_None) {
      is_supported = true;
    } else if (PyObject* lookup = PyObject_GetAttr(frame, name_lookup)) {
      PyObject* dict = PyCFunction_Check(lookup) ? PyCFunction_GET_SELF(lookup) : nullptr;      // the method `get` of a dict
      if (dict != nullptr && PyDict_CheckExact(dict)) {
        substitutes = Py_NewRef(dict);
        is_supported = true;
      }
      Py_DECREF(lookup);
    } else {
      PyErr_Clear();
    }
    Py_DECREF(frame);
  }
  ~Frame() { Py_XDECREF(substitutes); }
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;
};

bool is_tensor(PyObject* value) {
  PyTypeObject* type = Py_TYPE(value);
  return type == tensor_class || (type != number_class && PyType_IsSubtype(type, tensor_base));
}

bool is_supported(c10::ScalarType type) {
  switch (type) {
    case c10::ScalarType::Float:
    case c10::ScalarType::Double:
    case c10::ScalarType::Half:
    case c10::ScalarType::BFloat16:
    case c10::ScalarType::Int:
    case c10::ScalarType::Long:
    case c10::ScalarType::Bool:
      return true;
    default:
      return false;
  }
}

// The torch object to compute with for a Tensor, borrowed; null if Python has to decide.
PyObject* torch_object(PyObject* value, const Frame& frame) {
  if (!is_tensor(value)) return nullptr;
  PyObject* object = *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(value) + slot_offset);
  if (object == nullptr) return nullptr;
  if (frame.substitutes != nullptr) {
    PyObject* key = PyLong_FromVoidPtr(value);
    if (key == nullptr) {
      PyErr_Clear();
      return nullptr;
    }
    PyObject* substitute = PyDict_GetItemWithError(frame.substitutes, key);
    Py_DECREF(key);
    if (substitute != nullptr) object = substitute;
  }
  return THPVariable_CheckExact(object) ? object : nullptr;
}

// The same as a tensor of C++, of any dtype; undefined if Python has to decide. Another thread may give the Tensor a new torch tensor meanwhile.
at::Tensor strided_tensor(PyObject* value, const Frame& frame) {
  PyObject* object = torch_object(value, frame);
  if (object == nullptr) return {};
  const at::Tensor& t = THPVariable_Unpack(object);
  return t.layout() == c10::kStrided ? t : at::Tensor();
}

// A tensor of a dtype for which operators compute alike in torch and MindSpore.
at::Tensor torch_tensor(PyObject* value, const Frame& frame) {
  at::Tensor t = strided_tensor(value, frame);
  return t.defined() && is_supported(t.scalar_type()) ? t : at::Tensor();
}

PyObject* wrapped(PyObject* object) {
  if (object == nullptr) return nullptr;
  PyObject* out = tensor_class->tp_alloc(tensor_class, 0);
  if (out == nullptr) {
    Py_DECREF(object);
    return nullptr;
  }
  *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(out) + slot_offset) = object;
  return out;
}

// Leaves an operator to Python after an error, which Python raises again with an explanation; what is no Exception passes, as an interrupt.
PyObject* left_to_python() {
  if (PyErr_Occurred() != nullptr) {
    if (!PyErr_ExceptionMatches(PyExc_Exception)) return nullptr;
    PyErr_Clear();
  }
  return Py_NewRef(Py_None);
}

bool is_small(const at::Tensor& t) {
  return t.is_cpu() && t.numel() <= kFewElements;
}

// Two small operands of different shapes may have a large result: a column and a row.
bool are_small(const at::Tensor& a, const at::Tensor& b) {
  return is_small(a) && is_small(b) && (a.numel() * b.numel() <= kFewProducts || a.sizes().equals(b.sizes()));
}

template <class Compute>
auto without_lock(Compute compute) {
  struct Released {
    PyThreadState* state = PyEval_SaveThread();
    ~Released() { PyEval_RestoreThread(state); }
  } released;
  return compute();
}

template <class Compute>
PyObject* result(bool holds_lock, Compute compute) {
  PyObject* out = [&]() -> PyObject* {
    HANDLE_TH_ERRORS
    return wrapped(THPVariable_Wrap(holds_lock ? compute() : without_lock(compute)));
    END_HANDLE_TH_ERRORS
  }();
  return out != nullptr ? out : left_to_python();
}

// Reads an int that is neither a bool nor an instance of a subclass.
bool read_int(PyObject* value, int64_t& number) {
  if (!PyLong_CheckExact(value)) return false;
  int overflow = 0;
  number = PyLong_AsLongLongAndOverflow(value, &overflow);
  return overflow == 0;
}

// Reads an int of 64 bits or a float; neither bools nor instances of subclasses.
bool read_number(PyObject* value, at::Scalar& number) {
  if (PyFloat_CheckExact(value)) {
    number = PyFloat_AS_DOUBLE(value);
    return true;
  }
  int overflow = 0;
  if (!PyLong_CheckExact(value)) return false;
  number = static_cast<int64_t>(PyLong_AsLongLongAndOverflow(value, &overflow));
  return overflow == 0;
}

// The tensor that torch makes of a number among the operands; its dtype does not promote.
at::Tensor number_tensor(const at::Scalar& number) {
  at::Tensor t = at::scalar_to_tensor(number);
  t.unsafeGetTensorImpl()->set_wrapped_number(true);
  return t;
}

using Numbers = c10::SmallVector<int64_t, 6>;

// Reads ints, or the ints of one tuple.
bool read_ints(PyObject* const* values, Py_ssize_t count, Numbers& numbers) {
  if (count == 1 && PyTuple_CheckExact(values[0])) {
    count = PyTuple_GET_SIZE(values[0]);
    values = reinterpret_cast<PyTupleObject*>(values[0])->ob_item;
  }
  numbers.resize(count);
  for (Py_ssize_t index = 0; index < count; ++index) {
    if (!read_int(values[index], numbers[index])) return false;
  }
  return true;
}

}  // namespace
