// Short paths of frequent operators, as a Python module. Built by engine/native/native_build.py.
//
// A function of this file takes the arguments of an operator (engine/native/operators.py lists which) and returns its result, a Tensor. It
// returns None for arguments, dtypes or frames that it does not support, and after an error; then Python computes the operator, or explains
// the error. An operator of torch that is called here needs no parser of Python arguments, which is most of the time of a small operator.
#include "convolution.h"
#include "gradient_calls.h"
#include "graph_calls.h"
#include "layer_calls.h"
#include "programs.h"
#include "tensor_access.h"

#include <ATen/TensorIndexing.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/add.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/amin.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/div.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/erf.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/floor.h>
#include <ATen/ops/ge.h>
#include <ATen/ops/gt.h>
#include <ATen/ops/le.h>
#include <ATen/ops/log.h>
#include <ATen/ops/lt.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/neg.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/reshape.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/rsub.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/sqrt.h>
#include <ATen/ops/square.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/tanh.h>
#include <cstring>

namespace {

// ---- operators of one and of two operands

// The result of `compute` for a Tensor of float32.
template <class Compute>
PyObject* on_float32(PyObject* value, Compute compute) {
  Frame frame;
  if (!frame.is_supported) return Py_NewRef(Py_None);
  at::Tensor t = torch_tensor(value, frame);
  if (!t.defined() || t.scalar_type() != c10::ScalarType::Float) return Py_NewRef(Py_None);
  return result(is_small(t), [&] { return compute(t); });
}

template <at::Tensor (*compute)(const at::Tensor&)>
PyObject* unary(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  return count == 1 ? on_float32(arguments[0], compute) : Py_NewRef(Py_None);
}

enum class Number { refused, as_tensor, as_scalar };      // how torch's function takes a number as its second operand

using Pair = at::Tensor (*)(const at::Tensor&, const at::Tensor&);
using WithScalar = at::Tensor (*)(const at::Tensor&, const at::Scalar&);

bool is_real(c10::ScalarType type) { return type == c10::ScalarType::Float || type == c10::ScalarType::Double; }

// Two Tensors of one dtype, or a Tensor of floating-point numbers and an int or a float.
template <Number takes, Pair compute, WithScalar with_scalar = nullptr, bool only_float32 = false>
PyObject* binary(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  if (count != 2) return Py_NewRef(Py_None);
  Frame frame;
  if (!frame.is_supported) return Py_NewRef(Py_None);
  at::Tensor a = torch_tensor(arguments[0], frame);
  if (!a.defined()) return Py_NewRef(Py_None);
  const c10::ScalarType type = a.scalar_type();
  if (only_float32 && type != c10::ScalarType::Float) return Py_NewRef(Py_None);
  if constexpr (takes != Number::refused) {
    at::Scalar number;
    if (read_number(arguments[1], number)) {
      if (!is_real(type)) return Py_NewRef(Py_None);
      return result(is_small(a), [&] {
        if constexpr (takes == Number::as_scalar) return with_scalar(a, number);
        return compute(a, number_tensor(number));
      });
    }
  }
  at::Tensor b = torch_tensor(arguments[1], frame);
  if (!b.defined() || b.scalar_type() != type) return Py_NewRef(Py_None);
  return result(are_small(a, b), [&] { return compute(a, b); });
}

at::Tensor add_tensors(const at::Tensor& a, const at::Tensor& b) { return at::add(a, b); }
at::Tensor subtract_tensors(const at::Tensor& a, const at::Tensor& b) { return at::sub(a, b); }
at::Tensor subtract_from_number(const at::Tensor& a, const at::Scalar& b) { return at::rsub(a, b); }

// rsub is for a number as the second operand alone; for two Tensors Python calls sub.
PyObject* rsub(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  if (count != 2 || is_tensor(arguments[1])) return Py_NewRef(Py_None);
  return binary<Number::as_scalar, subtract_tensors, subtract_from_number>(self, arguments, count);
}

// rdiv(x, number) is number / x.
PyObject* rdiv(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  at::Scalar number;
  if (count != 2 || !read_number(arguments[1], number)) return Py_NewRef(Py_None);
  Frame frame;
  if (!frame.is_supported) return Py_NewRef(Py_None);
  at::Tensor t = torch_tensor(arguments[0], frame);
  if (!t.defined() || !is_real(t.scalar_type())) return Py_NewRef(Py_None);
  return result(is_small(t), [&] { return at::div(number_tensor(number), t); });
}

template <Pair compute, WithScalar with_scalar>
constexpr auto comparison = binary<Number::as_scalar, compute, with_scalar>;

// ---- operators with axes and sizes

// A method of a Tensor and ints, or one tuple of ints: x.reshape(2, 3), x.permute((1, 0)).
template <at::Tensor (*compute)(const at::Tensor&, const Numbers&)>
PyObject* with_ints(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  Numbers numbers;
  if (count < 2 || !read_ints(arguments + 1, count - 1, numbers)) return Py_NewRef(Py_None);
  Frame frame;
  if (!frame.is_supported) return Py_NewRef(Py_None);
  at::Tensor t = strided_tensor(arguments[0], frame);
  if (!t.defined()) return Py_NewRef(Py_None);
  return result(is_small(t), [&] { return compute(t, numbers); });
}
at::Tensor reshaped(const at::Tensor& t, const Numbers& sizes) { return at::reshape(t, sizes); }
at::Tensor permuted(const at::Tensor& t, const Numbers& axes) { return t.permute(axes); }
at::Tensor squeezed(const at::Tensor& t, const Numbers& axes) { return t.squeeze(axes); }
at::Tensor unsqueezed(const at::Tensor& t, const Numbers& axes) { return t.unsqueeze(axes[0]); }
at::Tensor swapped(const at::Tensor& t, const Numbers& axes) { return t.swapaxes(axes[0], axes[1]); }

// A function of a Tensor and one tuple, which is not empty: permute(x, (1, 0)).
template <at::Tensor (*compute)(const at::Tensor&, const Numbers&)>
PyObject* with_tuple(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  if (count != 2 || !PyTuple_CheckExact(arguments[1]) || PyTuple_GET_SIZE(arguments[1]) == 0) return Py_NewRef(Py_None);
  return with_ints<compute>(self, arguments, count);
}

// expand_dims(x, 0), squeeze(x, 0), squeeze(x, (0, 1)) and swapaxes(x, 0, 1).
PyObject* expand_dims(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  if (count != 2 || !PyLong_CheckExact(arguments[1])) return Py_NewRef(Py_None);
  return with_ints<unsqueezed>(self, arguments, count);
}
PyObject* squeeze(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  if (count == 2 && PyLong_CheckExact(arguments[1])) return with_ints<squeezed>(self, arguments, count);
  return with_tuple<squeezed>(self, arguments, count);
}
PyObject* swapaxes(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  return count == 3 ? with_ints<swapped>(self, arguments, count) : Py_NewRef(Py_None);
}

// x.transpose(0, 1) swaps two axes; x.transpose((1, 0)) and x.transpose(1, 0, 2) state the order of all.
PyObject* transpose(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  return count == 3 ? with_ints<swapped>(self, arguments, count) : with_ints<permuted>(self, arguments, count);
}

// x.T: the axes in the reverse order, outside of frames.
PyObject* reverse_axes(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  Frame frame;
  if (count != 1 || !frame.has_none) return Py_NewRef(Py_None);
  at::Tensor t = strided_tensor(arguments[0], frame);
  if (!t.defined()) return Py_NewRef(Py_None);
  Numbers axes(t.dim());
  for (int64_t axis = 0; axis < t.dim(); ++axis) axes[axis] = t.dim() - 1 - axis;
  return result(true, [&] { return t.permute(axes); });
}

// A reduction of floating-point numbers: of all elements, or along an axis or a tuple of axes.
template <at::Tensor (*of_all)(const at::Tensor&), at::Tensor (*along)(const at::Tensor&, const Numbers&)>
PyObject* reduction(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  Numbers axes;
  if (count < 1 || count > 2 || (count == 2 && !read_ints(arguments + 1, 1, axes))) return Py_NewRef(Py_None);
  Frame frame;
  if (!frame.is_supported || (count == 2 && axes.empty())) return Py_NewRef(Py_None);
  at::Tensor t = torch_tensor(arguments[0], frame);
  if (!t.defined() || t.scalar_type() != c10::ScalarType::Float) return Py_NewRef(Py_None);
  return result(is_small(t), [&] { return count == 1 ? of_all(t) : along(t, axes); });
}
at::Tensor sum_of_all(const at::Tensor& t) { return at::sum(t); }
at::Tensor sum_along(const at::Tensor& t, const Numbers& axes) { return at::sum(t, axes); }
at::Tensor mean_of_all(const at::Tensor& t) { return at::mean(t); }
at::Tensor mean_along(const at::Tensor& t, const Numbers& axes) { return at::mean(t, axes); }

// x.max() and x.min().
template <at::Tensor (*compute)(const at::Tensor&, at::IntArrayRef, bool)>
PyObject* extreme(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  if (count != 1) return Py_NewRef(Py_None);
  return on_float32(arguments[0], [](const at::Tensor& t) {
    Numbers axes(t.dim());
    for (int64_t axis = 0; axis < t.dim(); ++axis) axes[axis] = axis;
    return compute(t, axes, false);
  });
}

// zeros_like(x) and ones_like(x).
template <int value>
PyObject* filled_like(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  if (count != 1) return Py_NewRef(Py_None);
  Frame frame;
  if (!frame.is_supported) return Py_NewRef(Py_None);
  at::Tensor t = torch_tensor(arguments[0], frame);
  if (!t.defined()) return Py_NewRef(Py_None);
  return result(is_small(t), [&] { return value == 0 ? at::zeros_like(t) : at::ones_like(t); });
}

// softmax(x, axis=-1).
PyObject* softmax(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  int64_t axis = -1;
  if (count < 1 || count > 2 || (count == 2 && !read_int(arguments[1], axis))) return Py_NewRef(Py_None);
  return on_float32(arguments[0], [axis](const at::Tensor& t) { return at::softmax(t, axis); });
}

// cat(tensors, axis=0) and stack(tensors, axis=0) of a tuple or list of Tensors of one dtype.
template <at::Tensor (*compute)(const std::vector<at::Tensor>&, int64_t)>
PyObject* joined(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  int64_t axis = 0;
  if (count < 1 || count > 2 || (count == 2 && !read_int(arguments[1], axis))) return Py_NewRef(Py_None);
  if (!PyTuple_CheckExact(arguments[0]) && !PyList_CheckExact(arguments[0])) return Py_NewRef(Py_None);
  Frame frame;
  if (!frame.is_supported) return Py_NewRef(Py_None);
  const Py_ssize_t length = PySequence_Fast_GET_SIZE(arguments[0]);
  if (length == 0) return Py_NewRef(Py_None);
  std::vector<at::Tensor> tensors;
  tensors.reserve(length);
  bool holds_lock = true;
  for (Py_ssize_t number = 0; number < length; ++number) {
    at::Tensor t = torch_tensor(PySequence_Fast_GET_ITEM(arguments[0], number), frame);
    if (!t.defined() || t.dim() == 0 || t.scalar_type() != (number ? tensors[0] : t).scalar_type()) return Py_NewRef(Py_None);
    holds_lock = holds_lock && is_small(t);
    tensors.push_back(std::move(t));
  }
  return result(holds_lock && length <= 16, [&] { return compute(tensors, axis); });
}
at::Tensor concatenate(const std::vector<at::Tensor>& tensors, int64_t axis) { return at::cat(tensors, axis); }
at::Tensor stack_tensors(const std::vector<at::Tensor>& tensors, int64_t axis) { return at::stack(tensors, axis); }

// Reads a bound of a slice: None or an int.
bool read_bound(PyObject* value, std::optional<c10::SymInt>& bound) {
  if (value == Py_None) return true;
  int64_t number = 0;
  if (!read_int(value, number)) return false;
  bound = c10::SymInt(number);
  return true;
}

// Appends a part of an index: an int, None, ... or a slice of ints without a step, which torch takes as it is.
bool read_part(PyObject* part, c10::SmallVector<at::indexing::TensorIndex, 4>& index) {
  if (PySlice_Check(part)) {
    auto* slice = reinterpret_cast<PySliceObject*>(part);
    std::optional<c10::SymInt> start, stop;
    if (slice->step != Py_None || !read_bound(slice->start, start) || !read_bound(slice->stop, stop)) return false;
    index.emplace_back(at::indexing::Slice(std::move(start), std::move(stop)));
    return true;
  }
  int64_t number = 0;
  if (read_int(part, number)) {
    index.emplace_back(number);
  } else if (part == Py_None) {
    index.emplace_back(at::indexing::None);
  } else if (part == Py_Ellipsis) {
    index.emplace_back(at::indexing::Ellipsis);
  } else {
    return false;
  }
  return true;
}

PyObject* getitem(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  if (count != 2) return Py_NewRef(Py_None);
  c10::SmallVector<at::indexing::TensorIndex, 4> index;
  if (PyTuple_CheckExact(arguments[1])) {
    for (Py_ssize_t part = 0; part < PyTuple_GET_SIZE(arguments[1]); ++part) {
      if (!read_part(PyTuple_GET_ITEM(arguments[1], part), index)) return Py_NewRef(Py_None);
    }
    if (index.empty()) return Py_NewRef(Py_None);
  } else if (!read_part(arguments[1], index)) {
    return Py_NewRef(Py_None);
  }
  Frame frame;
  if (!frame.is_supported) return Py_NewRef(Py_None);
  at::Tensor t = strided_tensor(arguments[0], frame);
  if (!t.defined()) return Py_NewRef(Py_None);
  return result(true, [&] { return at::indexing::get_item(t, index); });
}

// configure(base, tensor, number, names, state): the classes, the module and the thread's state that this file reads.
PyObject* configure(PyObject*, PyObject* arguments) {
  PyObject *base, *tensor, *number, *names, *state;
  if (!PyArg_ParseTuple(arguments, "O!O!O!O!O", &PyType_Type, &base, &PyType_Type, &tensor, &PyType_Type, &number, &PyDict_Type, &names,
                        &state)) {
    return nullptr;
  }
  PyObject* slot = PyDict_GetItemString(reinterpret_cast<PyTypeObject*>(base)->tp_dict, "_t");
  if (slot == nullptr || Py_TYPE(slot) != &PyMemberDescr_Type) {
    PyErr_SetString(PyExc_TypeError, "expected a class with the slot _t");
    return nullptr;
  }
  slot_offset = reinterpret_cast<PyMemberDescrObject*>(slot)->d_member->offset;
  tensor_base = reinterpret_cast<PyTypeObject*>(Py_NewRef(base));
  tensor_class = reinterpret_cast<PyTypeObject*>(Py_NewRef(tensor));
  number_class = reinterpret_cast<PyTypeObject*>(Py_NewRef(number));
  engine_names = Py_NewRef(names);
  thread_state = Py_NewRef(state);
  PyObject* threads = PyImport_ImportModule("_thread");
  PyObject* local = threads == nullptr ? nullptr : PyObject_GetAttrString(threads, "_local");
  has_native_state = local != nullptr && PyType_Check(local) && PyType_IsSubtype(Py_TYPE(state), reinterpret_cast<PyTypeObject*>(local));
  PyErr_Clear();
  Py_XDECREF(threads);
  Py_XDECREF(local);
  Py_RETURN_NONE;
}

// Runs in place of a function of Python that C calls, as Python does for `x + y`: the short path, then the form in Python.
template <PyObject* (*function)(PyObject*, PyObject* const*, Py_ssize_t)>
PyObject* call_operator(PyObject* callable, PyObject* const* arguments, size_t count, PyObject* keywords) {
  if (keywords == nullptr || PyTuple_GET_SIZE(keywords) == 0) {
    PyObject* out = function(nullptr, arguments, PyVectorcall_NARGS(count));
    if (out != Py_None) return out;
    Py_DECREF(out);
  }
  PyObject* attributes = reinterpret_cast<PyFunctionObject*>(callable)->func_dict;
  PyObject* in_python = attributes == nullptr ? nullptr : PyDict_GetItemWithError(attributes, name_in_python);
  if (in_python == nullptr) {
    if (PyErr_Occurred() == nullptr) PyErr_SetString(PyExc_AttributeError, "an operator with a short path lacks in_python");
    return nullptr;
  }
  Py_INCREF(in_python);
  PyObject* out = PyObject_Vectorcall(in_python, arguments, count, keywords);
  Py_DECREF(in_python);
  return out;
}

// A function of this file as a method of the module, and as a function of Python calls it that `intercept` got.
struct Path {
  PyMethodDef method;
  vectorcallfunc call;
};

template <PyObject* (*function)(PyObject*, PyObject* const*, Py_ssize_t)>
Path path(const char* name) {
  return {{name, reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(function)), METH_FASTCALL, nullptr}, call_operator<function>};
}

const Path paths[] = {
    path<binary<Number::as_tensor, add_tensors>>("add"), path<binary<Number::as_tensor, subtract_tensors>>("sub"),
    path<binary<Number::as_tensor, at::mul>>("mul"), path<binary<Number::as_tensor, at::div>>("div"), path<rsub>("rsub"),
    path<rdiv>("rdiv"), path<binary<Number::refused, at::maximum>>("maximum"),
    path<binary<Number::refused, at::minimum>>("minimum"), path<binary<Number::refused, at::matmul, nullptr, true>>("matmul"),
    path<comparison<at::eq, at::eq>>("equal"), path<comparison<at::ne, at::ne>>("not_equal"),
    path<comparison<at::lt, at::lt>>("less"), path<comparison<at::le, at::le>>("less_equal"),
    path<comparison<at::gt, at::gt>>("greater"), path<comparison<at::ge, at::ge>>("greater_equal"),
    path<unary<at::relu>>("relu"), path<unary<at::exp>>("exp"), path<unary<at::log>>("log"), path<unary<at::sqrt>>("sqrt"),
    path<unary<at::rsqrt>>("rsqrt"), path<unary<at::square>>("square"), path<unary<at::abs>>("abs"), path<unary<at::neg>>("neg"),
    path<unary<at::tanh>>("tanh"), path<unary<at::sigmoid>>("sigmoid"), path<unary<at::sin>>("sin"), path<unary<at::cos>>("cos"),
    path<unary<at::erf>>("erf"), path<unary<at::floor>>("floor"),
    path<with_ints<reshaped>>("x.reshape"), path<with_tuple<reshaped>>("reshape"), path<with_ints<permuted>>("x.permute"),
    path<with_tuple<permuted>>("permute"), path<transpose>("x.transpose"), path<squeeze>("squeeze"), path<swapaxes>("swapaxes"),
    path<expand_dims>("expand_dims"), path<reverse_axes>("x.T"), path<reduction<sum_of_all, sum_along>>("sum"),
    path<reduction<mean_of_all, mean_along>>("mean"), path<extreme<at::amax>>("x.max"), path<extreme<at::amin>>("x.min"),
    path<filled_like<0>>("zeros_like"), path<filled_like<1>>("ones_like"), path<softmax>("softmax"), path<dense>("dense"),
    path<layer_norm>("layer_norm"), path<conv2d>("conv2d"), path<batch_norm>("batch_norm"), path<joined<concatenate>>("cat"), path<joined<stack_tensors>>("stack"), path<getitem>("x[]"),
};

// intercept(operator, name): calls of a function of Python from C try a short path first. The function does the same, and its attribute
// in_python is its form without the short path. Calls from Python itself may run the function.
PyObject* intercept(PyObject*, PyObject* arguments) {
  PyObject* callable;
  const char* name;
  if (!PyArg_ParseTuple(arguments, "O!s", &PyFunction_Type, &callable, &name)) return nullptr;
  for (const Path& candidate : paths) {
    if (std::strcmp(candidate.method.ml_name, name) != 0) continue;
#if PY_VERSION_HEX >= 0x030C0000
    PyFunction_SetVectorcall(reinterpret_cast<PyFunctionObject*>(callable), candidate.call);
#else
    reinterpret_cast<PyFunctionObject*>(callable)->vectorcall = candidate.call;
#endif
    Py_RETURN_NONE;
  }
  return PyErr_Format(PyExc_KeyError, "no short path %s", name);
}

template <PyObject* (*function)(PyObject*, PyObject* const*, Py_ssize_t)>
PyMethodDef method(const char* name) {
  return path<function>(name).method;
}

// Registers the convolutions of convolution.h; a second library of this process does not, and returns False.
PyObject* register_convolutions(PyObject*, PyObject*) {
  if (c10::Dispatcher::singleton().findSchema({"torchspore::convolve_packed", ""})) Py_RETURN_FALSE;
  try {
    convolution::register_operators();
  } catch (const std::exception& error) {
    return PyErr_Format(PyExc_RuntimeError, "%s", error.what());
  }
  Py_RETURN_TRUE;
}

std::vector<PyMethodDef> module_methods() {
  std::vector<PyMethodDef> methods = {
      {"configure", configure, METH_VARARGS, nullptr}, {"intercept", intercept, METH_VARARGS, nullptr},
      {"new_program", new_program, METH_VARARGS, nullptr}, {"register_convolutions", register_convolutions, METH_NOARGS, nullptr}, method<run_program>("run_program"),
      method<new_leaves>("new_leaves"), method<leaf_gradients>("leaf_gradients"), method<argument_form>("argument_form"),
      method<graph_inputs>("graph_inputs"), method<graph_result>("graph_result"),
  };
  for (const Path& each : paths) methods.push_back(each.method);
  methods.push_back({nullptr, nullptr, 0, nullptr});
  return methods;
}

PyModuleDef definition = {PyModuleDef_HEAD_INIT, "torchspore_operators", nullptr, -1, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit_torchspore_operators() {
  zero = PyLong_FromLong(0);
  name_active = PyUnicode_InternFromString("active");
  name_observers = PyUnicode_InternFromString("observers");
  name_frame = PyUnicode_InternFromString("frame");
  name_lookup = PyUnicode_InternFromString("lookup");
  name_requires_grad = PyUnicode_InternFromString("_requires_grad");
  name_dict = PyUnicode_InternFromString("__dict__");
  name_in_python = PyUnicode_InternFromString("in_python");
  if (!zero || !name_active || !name_observers || !name_frame || !name_lookup || !name_requires_grad || !name_dict || !name_in_python) {
    return nullptr;
  }
  static std::vector<PyMethodDef> methods = module_methods();
  definition.m_methods = methods.data();
  return PyModule_Create(&definition);
}
