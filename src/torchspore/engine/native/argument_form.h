// The form of a call's arguments: what a captured graph depends on of Tensors, as bytes that Python compares and hashes at once.
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

}  // namespace
