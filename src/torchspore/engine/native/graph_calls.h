// The call of a captured graph: the form of its arguments, as bytes that Python compares and hashes at once, and the inputs of its code.
#pragma once
#include "tensor_access.h"

namespace {

constexpr size_t kMostBytes = 1024;

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

// Appends a Tensor without attributes of the program: dtype, device, lengths and strides.
bool append_tensor(PyObject* value, Bytes& form) {
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
  form.append(t.sizes().data(), t.sizes().size() * sizeof(int64_t));
  form.append(t.strides().data(), t.strides().size() * sizeof(int64_t));
  return true;
}

// argument_form(*arguments): the form of Tensors, also which of them are the same object; None for other arguments.
PyObject* argument_form(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  if (tensor_class == nullptr || count > 64) return Py_NewRef(Py_None);
  Bytes form;
  for (Py_ssize_t index = 0; index < count; ++index) {
    uint8_t first = 0;
    while (arguments[first] != arguments[index]) ++first;
    form.append(first);
    if (first == index && !append_tensor(arguments[index], form)) return Py_NewRef(Py_None);
  }
  return form.is_full ? Py_NewRef(Py_None) : PyBytes_FromStringAndSize(form.data, form.size);
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
