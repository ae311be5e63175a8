// The short paths of operators that layers call with their weights.
#pragma once
#include "tensor_access.h"

#include <ATen/ops/batch_norm.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>

namespace {

// Reads a float32 Tensor, or None as an undefined tensor.
bool read_optional(PyObject* value, const Frame& frame, at::Tensor& t) {
  if (value == Py_None) return true;
  t = torch_tensor(value, frame);
  return t.defined() && t.scalar_type() == c10::ScalarType::Float;
}

std::optional<at::Tensor> if_defined(const at::Tensor& t) { return t.defined() ? std::make_optional(t) : std::nullopt; }

// dense(x, weight, bias=None) of float32.
PyObject* dense(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  if (count < 2 || count > 3 || arguments[0] == Py_None || arguments[1] == Py_None) return Py_NewRef(Py_None);
  Frame frame;
  at::Tensor x, weight, bias;
  if (!frame.is_supported || !read_optional(arguments[0], frame, x) || !read_optional(arguments[1], frame, weight) ||
      (count == 3 && !read_optional(arguments[2], frame, bias))) {
    return Py_NewRef(Py_None);
  }
  const bool has_few_products = weight.dim() > 0 && x.numel() * weight.size(0) <= kFewProducts;
  return result(has_few_products && is_small(x) && is_small(weight), [&] { return at::linear(x, weight, if_defined(bias)); });
}

// layer_norm(x, lengths, weight, bias, epsilon) of float32.
PyObject* layer_norm(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  Numbers lengths;
  if (count != 5 || arguments[0] == Py_None || !PyTuple_CheckExact(arguments[1]) || !PyFloat_CheckExact(arguments[4])) {
    return Py_NewRef(Py_None);
  }
  Frame frame;
  at::Tensor x, weight, bias;
  if (!frame.is_supported || !read_ints(arguments + 1, 1, lengths) || !read_optional(arguments[0], frame, x) ||
      !read_optional(arguments[2], frame, weight) || !read_optional(arguments[3], frame, bias)) {
    return Py_NewRef(Py_None);
  }
  const double epsilon = PyFloat_AS_DOUBLE(arguments[4]);
  return result(is_small(x), [&] { return at::layer_norm(x, lengths, if_defined(weight), if_defined(bias), epsilon); });
}

// Reads a size of two axes: an int or two of them, none below `least`.
bool read_pair(PyObject* value, int64_t least, Numbers& pair) {
  if (!read_ints(&value, 1, pair)) return false;
  if (pair.size() == 1 && PyLong_CheckExact(value)) pair.push_back(pair[0]);
  return pair.size() == 2 && pair[0] >= least && pair[1] >= least;
}

// Reads the padding of a convolution as far as it is alike on both sides, as torch's kernel computes it.
bool read_padding(PyObject* mode, PyObject* value, const at::Tensor& x, const at::Tensor& weight, const Numbers& stride,
                  const Numbers& dilation, Numbers& padding) {
  Numbers sides;
  if (!PyUnicode_CheckExact(mode) || !read_ints(&value, 1, sides)) return false;
  for (int64_t side : sides) {
    if (side < 0) return false;
  }
  if (PyUnicode_CompareWithASCIIString(mode, "pad") == 0) {
    if (PyLong_CheckExact(value)) {
      padding = {sides[0], sides[0]};
    } else if (sides.size() == 4 && sides[0] == sides[1] && sides[2] == sides[3]) {
      padding = {sides[0], sides[2]};
    } else {
      return false;
    }
    return true;
  }
  for (int64_t side : sides) {
    if (side != 0) return false;
  }
  padding = {0, 0};
  if (PyUnicode_CompareWithASCIIString(mode, "valid") == 0) return true;
  if (PyUnicode_CompareWithASCIIString(mode, "same") != 0) return false;
  for (int axis = 0; axis < 2; ++axis) {
    const int64_t length = x.size(2 + axis), steps = (length + stride[axis] - 1) / stride[axis] - 1;
    const int64_t total = steps * stride[axis] + (weight.size(2 + axis) - 1) * dilation[axis] + 1 - length;
    if (total > 0 && total % 2 != 0) return false;
    padding[axis] = total > 0 ? total / 2 : 0;
  }
  return true;
}

// conv2d(x, weight, bias, stride, pad_mode, padding, dilation, groups) of float32 on the CPU.
PyObject* conv2d(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  if (count != 8 || arguments[0] == Py_None || arguments[1] == Py_None) return Py_NewRef(Py_None);
  Frame frame;
  at::Tensor x, weight, bias;
  if (!frame.is_supported || !read_optional(arguments[0], frame, x) || !read_optional(arguments[1], frame, weight) ||
      !read_optional(arguments[2], frame, bias) || x.dim() != 4 || weight.dim() != 4 || !x.is_cpu()) {
    return Py_NewRef(Py_None);
  }
  Numbers stride, dilation, padding;
  int64_t groups = 0;
  if (!read_pair(arguments[3], 1, stride) || !read_pair(arguments[6], 1, dilation) || !read_int(arguments[7], groups) || groups < 1 ||
      !read_padding(arguments[4], arguments[5], x, weight, stride, dilation, padding)) {
    return Py_NewRef(Py_None);
  }
  return result(false, [&] { return at::conv2d(x, weight, if_defined(bias), stride, padding, dilation, groups); });
}

// batch_norm(x, mean, variance, weight, bias, training, momentum, epsilon) of float32 on the CPU, by the running values.
PyObject* batch_norm(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  if (count != 8 || arguments[5] != Py_False || !PyFloat_CheckExact(arguments[6]) || !PyFloat_CheckExact(arguments[7])) {
    return Py_NewRef(Py_None);
  }
  const double momentum = PyFloat_AS_DOUBLE(arguments[6]), epsilon = PyFloat_AS_DOUBLE(arguments[7]);
  if (!(momentum >= 0.0 && momentum <= 1.0 && epsilon > 0.0)) return Py_NewRef(Py_None);
  Frame frame;
  at::Tensor t[5];
  if (!frame.is_supported) return Py_NewRef(Py_None);
  for (int number = 0; number < 5; ++number) {
    if (arguments[number] == Py_None || !read_optional(arguments[number], frame, t[number])) return Py_NewRef(Py_None);
  }
  if (!t[0].is_cpu() || t[0].dim() < 2 || t[1].requires_grad() || t[2].requires_grad()) return Py_NewRef(Py_None);
  return result(is_small(t[0]), [&] { return at::batch_norm(t[0], t[3], t[4], t[1], t[2], false, momentum, epsilon, false); });
}

}  // namespace
