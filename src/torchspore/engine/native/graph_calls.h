// The call of a captured graph: the form of its arguments, as bytes that Python compares and hashes at once, the inputs of its code, and
// its result.
#pragma once
#include "tensor_access.h"

namespace {

constexpr size_t kMostBytes = 4096;
constexpr Py_ssize_t kMostTensors = 128;
constexpr int kDeepest = 8;

struct Bytes {
  char data[kMostBytes];
  size_t size = 0;
  bool is_full = false;

  void append(const void* value, size_t length) {
    if (size + length > kMostBytes) {
      is_full = true;
      return;
    }
    std::memcpy(data + size, value, length);
    size += length;
  }
  template <class Value>
  void append(Value value) {
    append(&value, sizeof value);
  }
};

// Appends a Tensor without attributes of the program: dtype, device, lengths and strides. The bits of `open` are axes whose lengths do not
// count, in a contiguous Tensor with at least two elements along them.
bool append_tensor(PyObject* value, uint8_t open, Bytes& form) {
  if (Py_TYPE(value) != tensor_class) return false;
  PyObject* attributes = PyObject_GenericGetDict(value, nullptr);
  if (attributes == nullptr) {
    PyErr_Clear();
    return false;
  }
  const bool is_plain = PyDict_GET_SIZE(attributes) == 0;
  Py_DECREF(attributes);
  PyObject* object = *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(value) + slot_offset);
  if (!is_plain || object == nullptr || Py_TYPE(object) != reinterpret_cast<PyTypeObject*>(THPVariableClass)) return false;
  const at::Tensor& t = THPVariable_Unpack(object);
  if (t.layout() != c10::kStrided || t.unsafeGetTensorImpl()->has_symbolic_sizes_strides()) return false;
  form.append(t.scalar_type());
  form.append(t.device().type());
  form.append(t.device().index());
  form.append(static_cast<uint8_t>(t.dim()));
  form.append(open);
  if (open == 0) {
    form.append(t.sizes().data(), t.sizes().size() * sizeof(int64_t));
    form.append(t.strides().data(), t.strides().size() * sizeof(int64_t));
    return true;
  }
  if (!t.is_contiguous()) return false;
  for (int64_t axis = 0; axis < t.dim(); ++axis) {
    const bool is_open = axis < 8 && (open >> axis & 1) != 0;
    if (is_open && t.size(axis) < 2) return false;
    form.append(is_open ? int64_t{-1} : t.size(axis));
  }
  return true;
}

// Appends an argument: a Tensor, or a tuple or list of arguments. `tensors` receives the Tensors, `open` has a byte for each of the first.
bool append_argument(PyObject* value, PyObject* open, PyObject* tensors, int depth, Bytes& form) {
  if (PyTuple_CheckExact(value) || PyList_CheckExact(value)) {
    if (depth == kDeepest) return false;
    const Py_ssize_t count = PySequence_Fast_GET_SIZE(value);
    form.append(static_cast<uint8_t>(PyTuple_CheckExact(value) ? 255 : 254));
    form.append(static_cast<int64_t>(count));
    for (Py_ssize_t index = 0; index < count && index < PySequence_Fast_GET_SIZE(value); ++index) {
      if (!append_argument(PySequence_Fast_GET_ITEM(value, index), open, tensors, depth + 1, form)) return false;
    }
    return true;
  }
  const Py_ssize_t position = PyList_GET_SIZE(tensors);
  if (position == kMostTensors || PyList_Append(tensors, value) != 0) {
    PyErr_Clear();
    return false;
  }
  uint8_t first = 0;
  while (PyList_GET_ITEM(tensors, first) != value) ++first;
  form.append(first);
  if (first != position) return true;
  const uint8_t axes = position < PyBytes_GET_SIZE(open) ? static_cast<uint8_t>(PyBytes_AS_STRING(open)[position]) : 0;
  return append_tensor(value, axes, form);
}

// argument_form(arguments, open, tensors): the form of a tuple of Tensors and of tuples and lists of Tensors, also which of them are the same
// object; None for other arguments. The list `tensors` receives the Tensors in their order. The byte of a Tensor in `open` has a bit for each
// axis whose length does not count.
PyObject* argument_form(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  if (tensor_class == nullptr || count != 3 || !PyTuple_CheckExact(arguments[0]) || !PyBytes_CheckExact(arguments[1]) ||
      !PyList_CheckExact(arguments[2])) {
    return Py_NewRef(Py_None);
  }
  Bytes form;
  for (Py_ssize_t index = 0; index < PyTuple_GET_SIZE(arguments[0]); ++index) {
    if (!append_argument(PyTuple_GET_ITEM(arguments[0], index), arguments[1], arguments[2], 0, form)) return Py_NewRef(Py_None);
  }
  return form.is_full ? Py_NewRef(Py_None) : PyBytes_FromStringAndSize(form.data, form.size);
}

// A nested tuple or list like `value`, with a Tensor for each position of a torch tensor in the list `outputs`; null after an error, or where
// Python has to build it.
PyObject* filled_result(PyObject* value, PyObject* outputs) {
  if (PyLong_CheckExact(value)) {
    const Py_ssize_t position = PyLong_AsSsize_t(value);
    PyObject* output = position >= 0 && position < PyList_GET_SIZE(outputs) ? PyList_GET_ITEM(outputs, position) : nullptr;
    return output == nullptr || !THPVariable_Check(output) ? nullptr : wrapped(Py_NewRef(output));
  }
  const bool is_tuple = PyTuple_CheckExact(value);
  if (!is_tuple && !PyList_CheckExact(value)) return nullptr;
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(value);
  PyObject* result = is_tuple ? PyTuple_New(count) : PyList_New(count);
  for (Py_ssize_t index = 0; result != nullptr && index < count; ++index) {
    PyObject* item = filled_result(PySequence_Fast_GET_ITEM(value, index), outputs);
    if (item == nullptr) {
      Py_CLEAR(result);
    } else if (is_tuple) {
      PyTuple_SET_ITEM(result, index, item);
    } else {
      PyList_SET_ITEM(result, index, item);
    }
  }
  return result;
}

// graph_result(form, outputs): the result of a graph, whose form has the positions of outputs; None where Python has to build it.
PyObject* graph_result(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  if (count != 2 || tensor_class == nullptr || !PyList_CheckExact(arguments[1])) return Py_NewRef(Py_None);
  PyObject* result = filled_result(arguments[0], arguments[1]);
  return result != nullptr ? result : left_to_python();
}

// graph_inputs(inputs, arguments): the list of torch tensors of a list of Tensors and of positions in `arguments`; None if it has other items.
PyObject* graph_inputs(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  if (count != 2 || tensor_class == nullptr || !PyList_CheckExact(arguments[0]) || !PyList_CheckExact(arguments[1])) return Py_NewRef(Py_None);
  const Py_ssize_t length = PyList_GET_SIZE(arguments[0]);
  PyObject* tensors = PyList_New(length);
  if (tensors == nullptr) return nullptr;
  for (Py_ssize_t index = 0; index < length; ++index) {
    PyObject* input = PyList_GET_ITEM(arguments[0], index);
    if (PyLong_CheckExact(input)) {
      const Py_ssize_t position = PyLong_AsSsize_t(input);
      input = position >= 0 && position < PyList_GET_SIZE(arguments[1]) ? PyList_GET_ITEM(arguments[1], position) : nullptr;
    }
    PyObject* object = nullptr;
    if (input != nullptr && PyType_IsSubtype(Py_TYPE(input), tensor_base)) {
      object = *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(input) + slot_offset);
    }
    if (object == nullptr) {
      Py_DECREF(tensors);
      PyErr_Clear();
      return Py_NewRef(Py_None);
    }
    PyList_SET_ITEM(tensors, index, Py_NewRef(object));
  }
  return tensors;
}

}  // namespace
