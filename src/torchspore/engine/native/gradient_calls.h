// The call of a gradient function: the leaves of its inputs and weights, and the backward pass of a number.
#pragma once
#include "tensor_access.h"

#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/AutogradState.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/variable.h>

namespace {

// The keys of tensors that contain other tensors, or whose operators run in Python.
constexpr c10::DispatchKeySet kWrappers({c10::DispatchKey::Python, c10::DispatchKey::FuncTorchBatched,
                                         c10::DispatchKey::FuncTorchGradWrapper, c10::DispatchKey::Functionalize,
                                         c10::DispatchKey::Batched});

bool is_wrapper(const at::Tensor& t) { return t.key_set().has_any(kWrappers); }

// A leaf that shares the memory of `t` and its number of writes, as `t.detach().requires_grad_()` does.
at::Tensor new_leaf(const at::Tensor& t) {
  at::Tensor leaf;
  if (t.layout() == c10::kStrided && !is_wrapper(t)) {
    const c10::TensorImpl* content = t.unsafeGetTensorImpl();
    leaf = at::Tensor(content->shallow_copy_and_detach(content->version_counter(), /*allow_tensor_metadata_change=*/false));
  } else {
    leaf = t.detach();
  }
  leaf.set_requires_grad(true);
  return leaf;
}

// new_leaves(tensors): a dict from the ids of Tensors of floating-point numbers to leaves of autograd that share their memory, or None.
PyObject* new_leaves(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  if (count != 1 || (!PyTuple_CheckExact(arguments[0]) && !PyList_CheckExact(arguments[0]))) return Py_NewRef(Py_None);
  if (engine_names == nullptr || runs_python()) return Py_NewRef(Py_None);
  const Py_ssize_t length = PySequence_Fast_GET_SIZE(arguments[0]);
  std::vector<at::Tensor> tensors;
  tensors.reserve(length);
  for (Py_ssize_t number = 0; number < length; ++number) {
    PyObject* tensor = PySequence_Fast_GET_ITEM(arguments[0], number);
    if (!is_tensor(tensor)) return Py_NewRef(Py_None);
    PyObject** attributes = _PyObject_GetDictPtr(tensor);
    if (attributes != nullptr && *attributes != nullptr && PyDict_GetItemWithError(*attributes, name_requires_grad) == Py_False) {
      return Py_NewRef(Py_None);                            // a frame handles weights without gradients
    }
    PyObject* object = *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(tensor) + slot_offset);
    if (object == nullptr || !THPVariable_CheckExact(object)) return Py_NewRef(Py_None);
    const at::Tensor& t = THPVariable_Unpack(object);
    const bool is_differentiable = c10::isFloatingType(t.scalar_type()) || c10::isComplexType(t.scalar_type());
    if (!is_differentiable || t.requires_grad() || t.is_inference()) return Py_NewRef(Py_None);
    tensors.push_back(t);
  }
  PyObject* leaves = [&]() -> PyObject* {
    HANDLE_TH_ERRORS
    THPObjectPtr dict{PyDict_New()};
    if (!dict) return nullptr;
    for (Py_ssize_t number = 0; number < length; ++number) {
      THPObjectPtr key{PyLong_FromVoidPtr(PySequence_Fast_GET_ITEM(arguments[0], number))}, value{THPVariable_Wrap(new_leaf(tensors[number]))};
      if (!key || !value || PyDict_SetItem(dict.get(), key.get(), value.get()) < 0) return nullptr;
    }
    return dict.release();
    END_HANDLE_TH_ERRORS
  }();
  return leaves != nullptr ? leaves : left_to_python();
}

// Lets torch compute gradients in this thread, whose frame and modes the program's functions need.
struct CallersThread {
  const bool was_enabled = c10::AutogradState::get_tls_state().get_multithreading_enabled();
  CallersThread() { c10::AutogradState::get_tls_state().set_multithreading_enabled(false); }
  ~CallersThread() { c10::AutogradState::get_tls_state().set_multithreading_enabled(was_enabled); }
};

// leaf_gradients(number, leaves): the list of Tensors of the gradients of a real number by the leaves, which are the values of a dict; zeros
// for those that the number does not depend on. None where Python has to compute them; errors of the backward pass are raised.
PyObject* leaf_gradients(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  if (count != 2 || engine_names == nullptr || runs_python() || !THPVariable_CheckExact(arguments[0]) || !PyDict_CheckExact(arguments[1])) {
    return Py_NewRef(Py_None);
  }
  const at::Tensor number = THPVariable_Unpack(arguments[0]);
  if (number.layout() != c10::kStrided || is_wrapper(number) || number.dim() != 0 || !c10::isFloatingType(number.scalar_type()) ||
      !number.requires_grad()) {
    return Py_NewRef(Py_None);
  }
  std::vector<at::Tensor> leaves;
  Py_ssize_t position = 0;
  for (PyObject *key, *value; PyDict_Next(arguments[1], &position, &key, &value);) {
    if (!THPVariable_CheckExact(value) || !THPVariable_Unpack(value).requires_grad()) return Py_NewRef(Py_None);
    leaves.push_back(THPVariable_Unpack(value));
  }
  HANDLE_TH_ERRORS
  const torch::autograd::edge_list roots{torch::autograd::impl::gradient_edge(number)};
  torch::autograd::edge_list edges;
  std::vector<bool> is_used;
  for (const at::Tensor& leaf : leaves) {
    auto node = leaf.grad_fn();
    if (!node) node = torch::autograd::impl::try_get_grad_accumulator(leaf);
    is_used.push_back(static_cast<bool>(node));
    if (node) edges.emplace_back(std::move(node), leaf.output_nr());
  }
  if (edges.empty()) return Py_NewRef(Py_None);
  torch::autograd::variable_list gradients;
  {
    const torch::autograd::variable_list seeds{at::ones_like(number)};
    CallersThread thread;
    gradients = without_lock([&] {
      return torch::autograd::Engine::get_default_engine().execute(roots, seeds, false, false, false, edges);
    });
  }
  THPObjectPtr list{PyList_New(leaves.size())};
  if (!list) return nullptr;
  size_t next = 0;
  for (size_t index = 0; index < leaves.size(); ++index) {
    at::Tensor gradient = is_used[index] ? std::move(gradients.at(next++)) : at::Tensor();
    PyObject* tensor = wrapped(THPVariable_Wrap(gradient.defined() ? std::move(gradient) : at::zeros_like(leaves[index])));
    if (tensor == nullptr) return nullptr;
    PyList_SET_ITEM(list.get(), index, tensor);
  }
  return list.release();
  END_HANDLE_TH_ERRORS
}

}  // namespace
