"""User-defined operators in Python: `Custom` and `kernel`, and the records that register kernels of other devices."""
from __future__ import annotations

import builtins
import functools
import itertools
import math
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from torchspore.base.text import message, with_type
from torchspore.blackbox import marks
from torchspore.engine.autograd.bprop import with_gradient
from torchspore.engine.tensors import creation, dtypes, tree
from torchspore.engine.tensors.tensor import TensorBase, raw, wrap
from torchspore.engine.torch_internals import python_calls
from torchspore.graph.capture import running_trace
from torchspore.graph.refusal import Kind
from torchspore.mindspore.ops.declaration.primitive import Primitive

_KINDS = {
    "None": "", "BOOL": "bool", "I8": "int8", "U8": "uint8", "I16": "int16", "U16": "uint16", "I32": "int32", "U32": "uint32",
    "I64": "int64", "U64": "uint64", "F16": "float16", "F32": "float32", "F64": "float64", "BF16": "bfloat16", "C64": "complex64",
    "C128": "complex128",
}
_FORMATS: dict[str, tuple[str, ...]] = {
    "None": ("",), "Default": ("DefaultFormat",), "5HD": ("NC1HWC0",), "FracZ": ("FRACTAL_Z",), "FracNZ": ("FRACTAL_NZ",),
    "C1HWNCoC0": ("C1HWNCoC0",), "NCHW": ("NCHW",), "NHWC": ("NHWC",), "HWCN": ("HWCN",), "NDHWC": ("NDHWC",),
    "ChannelLast": ("ChannelLast",), "Default_Tuple": ("DefaultFormat", "tuple"), "Default_List": ("DefaultFormat", "list"),
    "NCDHW": ("NCDHW",), "NDC1HWC0": ("NDC1HWC0",), "NC1HWC0": ("NC1HWC0",), "DHWCN": ("DHWCN",), "FRACTAL_Z_3D": ("FRACTAL_Z_3D",),
    "FracZNLSTM": ("FRACTAL_ZN_LSTM",), "FracZNRNN": ("FRACTAL_ZN_RNN",), "ND_RNNBIAS": ("ND_RNN_BIAS",),
}


class DataType:
    """Pairs of a dtype and a format, such as `DataType.F32_Default`, for the records of kernels."""


for _kind, _dtype in _KINDS.items():
    for _format, _parts in _FORMATS.items():
        setattr(DataType, f"{_kind}_{_format}", (_dtype, *_parts))


class _RegOp:
    """The record of a kernel: its name, inputs, outputs, attributes, dtypes and formats. Each setter returns the record."""

    _more: dict[str, Any] = {}

    def __init__(self, op_name: str) -> None:
        if not isinstance(op_name, str) or not op_name:
            raise ValueError(f"{type(self).__name__}({op_name!r:.40}): expected the name of an operator.")
        self._record: dict[str, Any] = {
            "op_name": op_name, "inputs": [], "outputs": [], "attr": [], "fusion_type": "", "dtype_format": [], **self._more,
        }

    def _item(self, **values: Any) -> dict[str, Any]:
        return {key: value for key, value in values.items() if value is not None}

    def input(self, index: int | None = None, name: str | None = None, param_type: str | None = None, **kwargs: Any) -> Any:
        """Adds an input."""
        self._record["inputs"].append(self._item(index=index, name=name, paramType=param_type, **kwargs))
        return self

    def output(self, index: int | None = None, name: str | None = None, param_type: str | None = None, **kwargs: Any) -> Any:
        """Adds an output."""
        self._record["outputs"].append(self._item(index=index, name=name, paramType=param_type, **kwargs))
        return self

    def dtype_format(self, *args: Any) -> Any:
        """Adds one combination of dtypes and formats: an item of `DataType` for each input and output."""
        self._record["dtype_format"].append(args)
        return self

    def fusion_type(self, fusion_type: str) -> Any:
        """Sets how the kernel may be fused."""
        self._record["fusion_type"] = fusion_type
        return self

    def get_op_info(self) -> dict[str, Any]:
        """Return the record. Raises ValueError if a combination of dtypes does not have one item for each input and output."""
        count = len(self._record["inputs"]) + len(self._record["outputs"])
        for dtypes_and_formats in self._record["dtype_format"]:
            if len(dtypes_and_formats) != count:
                raise ValueError(f"dtype_format of {len(dtypes_and_formats)} items: expected {count}, one for each input and output.")
        return self._record


class CustomRegOp(_RegOp):
    """A record of a kernel for `Custom`."""

    def __init__(self, op_name: str = "Custom") -> None:
        super().__init__(op_name)
        self._record["target"] = "UNKNOWN"

    def input(self, index: int | None = None, name: str | None = None, param_type: str | None = "required", **kwargs: Any) -> Any:
        """Adds an input."""
        return super().input(index, name, param_type, **kwargs)

    def output(self, index: int | None = None, name: str | None = None, param_type: str | None = "required", **kwargs: Any) -> Any:
        """Adds an output."""
        return super().output(index, name, param_type, **kwargs)

    def attr(
        self, name: str | None = None, param_type: str | None = None, value_type: str | None = None, default_value: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Adds an attribute."""
        self._record["attr"].append(self._item(name=name, paramType=param_type, type=value_type, defaultValue=default_value, **kwargs))
        return self

    def target(self, target: str | None = None) -> Any:
        """Sets the device of the kernel."""
        self._record["target"] = target
        return self


class _WithTypes(_RegOp):
    def attr(self, name: str | None = None, value_type: str | None = None, value: Any = None, **kwargs: Any) -> Any:
        """Adds an attribute."""
        self._record["attr"].append(self._item(name=name, type=value_type, value=value, **kwargs))
        return self


class AiCPURegOp(_WithTypes):
    """A record of a kernel for the host processor of an Ascend device."""

    _more = {"imply_type": "AiCPU"}


class CpuRegOp(_WithTypes):
    """A record of a kernel for the CPU."""

    _more = {"imply_type": "CPU"}


class _Akg(_RegOp):
    def attr(self, name: str | None = None, param_type: str | None = None, value_type: str | None = None, **kwargs: Any) -> Any:
        """Adds an attribute."""
        self._record["attr"].append(self._item(name=name, paramType=param_type, type=value_type, **kwargs))
        return self

    def output(self, index: int | None = None, name: str | None = None, **kwargs: Any) -> Any:  # type: ignore[override]
        """Adds an output."""
        return super().output(index, name, **kwargs)


class AkgGpuRegOp(_Akg):
    """A record of a kernel that AKG generates for a GPU."""

    _more = {"imply_type": "AKG", "processor": "CUDA"}


class AkgAscendRegOp(_Akg):
    """A record of a kernel that AKG generates for an Ascend device."""

    _more = {"imply_type": "AKG", "processor": "AiCore"}


class TBERegOp(_RegOp):
    """A record of a kernel that TBE generates for an Ascend device."""

    _more = {
        "imply_type": "TBE", "async_flag": False, "binfile": "", "compute_cost": 10, "kernel": "", "partial_flag": False,
        "reshape_type": "", "dynamicRankSupport": False, "dynamicShapeSupport": False, "dynamicCompileStatic": False,
        "needCheckSupport": False, "dynamicFormat": False, "op_pattern": "", "real_input_index": [], "input_to_attr_index": [],
        "unknown_shape_formats": [],
    }

    def input(  # type: ignore[override]
        self, index: int | None = None, name: str | None = None, need_compile: bool | None = None, param_type: str | None = None,
        shape: str | None = None, value_depend: str | None = None, **kwargs: Any,
    ) -> Any:
        """Adds an input."""
        return super().input(index, name, param_type, needCompile=need_compile, shape=shape, valueDepend=value_depend, **kwargs)

    def output(  # type: ignore[override]
        self, index: int | None = None, name: str | None = None, need_compile: bool | None = None, param_type: str | None = None,
        shape: str | None = None, **kwargs: Any,
    ) -> Any:
        """Adds an output."""
        return super().output(index, name, param_type, need_compile=need_compile, shape=shape, **kwargs)

    def attr(
        self, name: str | None = None, param_type: str | None = None, value_type: str | None = None, value: Any = None,
        default_value: Any = None, **kwargs: Any,
    ) -> Any:
        """Adds an attribute."""
        self._record["attr"].append(
            self._item(name=name, paramType=param_type, type=value_type, value=value, defaultValue=default_value, **kwargs)
        )
        return self


def _setter(key: str, default: Any) -> Callable[..., Any]:
    def method(self: Any, value: Any = default) -> Any:
        self._record[key] = value
        return self

    method.__doc__ = f"Sets the entry {key!r} of the record."
    return method


for _name, _key, _value in (
    ("async_flag", "async_flag", False), ("binfile_name", "binfile", ""), ("compute_cost", "compute_cost", 10),
    ("kernel_name", "kernel", ""), ("partial_flag", "partial_flag", True), ("reshape_type", "reshape_type", ""),
    ("dynamic_rank_support", "dynamicRankSupport", False), ("dynamic_shape", "dynamicShapeSupport", False),
    ("dynamic_compile_static", "dynamicCompileStatic", False), ("need_check_supported", "needCheckSupport", False),
    ("is_dynamic_format", "dynamicFormat", False), ("op_pattern", "op_pattern", ""), ("real_input_index", "real_input_index", ()),
    ("input_to_attr_index", "input_to_attr_index", ()), ("unknown_shape_formats", "unknown_shape_formats", ()),
):
    setattr(TBERegOp, _name, _setter(_key, _value))


def op_info_register(op_info: Any) -> Callable[[Any], Any]:
    """Decorate a kernel of another device and store its record as `op_info`. Such kernels do not run here."""

    def register(function: Any) -> Any:
        function.op_info = op_info
        return function

    return register


def custom_info_register(*reg_info: Any) -> Callable[[Any], Any]:
    """Decorate a function for `Custom` and store its records as `reg_info`."""

    def register(function: Any) -> Any:
        function.reg_info = reg_info
        return function

    return register


def _allocate(shape: Any, dtype: Any, scope: str = "local") -> np.ndarray[Any, Any]:
    """Allocate an array for a kernel. `scope` names a memory of the device; all scopes are equal here."""
    if scope not in ("local", "global", "shared"):
        raise ValueError(f"scope={scope!r}: expected 'local', 'global' or 'shared'.")
    return np.zeros(shape, dtype)


def _grid(shape: Any) -> Any:
    """Iterate over all indexes below `shape` in one loop."""
    return itertools.product(*map(builtins.range, shape))


_WORDS: dict[str, Any] = {
    "output_tensor": lambda shape, dtype: np.zeros(shape, dtype), "allocate": _allocate, "grid": _grid,
    **dict.fromkeys(("serial", "parallel", "vectorize", "reduce", "unroll"), builtins.range),
    **{name: getattr(np, name) for name in ("exp", "log", "sqrt", "tanh", "sin", "cos", "floor", "ceil", "trunc", "power")},
    "erf": np.vectorize(math.erf), "rsqrt": lambda x: 1 / np.sqrt(x), "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "float16": np.float16, "float32": np.float32, "float64": np.float64, "int32": np.int32, "int64": np.int64,
}
"""The functions that the kernel language adds to Python."""


def kernel(fn: Any = None, reg_info: Any = None, compile_attrs: Any = None) -> Any:
    """Decorates a function in the kernel language (`output_tensor`, `allocate`, `grid` and plain Python) so that it runs on arrays.

    `compile_attrs` are hints for a compiler of other devices; they are stored next to `reg_info`.
    """
    if fn is None:
        return functools.partial(kernel, reg_info=reg_info, compile_attrs=compile_attrs)
    if not callable(fn):
        raise TypeError(message(f"kernel({fn!r:.40})", "a function"))

    @functools.wraps(fn)
    def run(*arrays: Any) -> Any:
        space = {**_WORDS, **fn.__globals__}
        return types.FunctionType(fn.__code__, space, fn.__name__, fn.__defaults__, fn.__closure__)(*arrays)

    run.reg_info, run.compile_attrs, run.is_kernel = reg_info, compile_attrs, True  # type: ignore[attr-defined]
    return run


ms_kernel = kernel


def _parts(result: Any) -> list[Any]:
    """Return the results of a function that returns one array, a tuple or list of arrays, or None."""
    return list(result) if isinstance(result, (tuple, list)) else [] if result is None else [result]


def _declared(declaration: Any, of_inputs: list[Any]) -> Any:
    """Return a declared `out_shape` or `out_dtype`, which may be a function of the inputs' shapes or dtypes."""
    return declaration(*of_inputs) if callable(declaration) else declaration


def _per_result(declared: Any, is_several: bool, count: int) -> list[Any]:
    """Return what is declared for each of `count` results; None where nothing is declared. Raises ValueError for another count."""
    if declared is None or not is_several:
        return [declared] * count
    if len(declared) != count:
        raise ValueError(f"Custom: expected {len(declared)} results, as in out_dtype, got {count}.")
    return list(declared)


def _checked_result(part: Any, shape: Any, kind: Any) -> Any:
    """Return a result as a Tensor of the declared dtype. Raises ValueError for another shape than the declared one."""
    array = np.asarray(part)
    if shape is not None and tuple(shape) != array.shape:
        raise ValueError(f"Custom: expected a result of shape {tuple(shape)}, as in out_shape, got {array.shape}.")
    return wrap(creation.from_array(np.ascontiguousarray(array), None if kind is None else dtypes.to_torch(kind)))


class Custom(Primitive):
    """An operator from a Python function on NumPy arrays (`func_type` 'pyfunc'), or from one decorated with `kernel` ('hybrid').

    `out_shape` and `out_dtype` declare the results, as values or as functions of the inputs' shapes and dtypes; without them, the results
    of the function decide. `bprop` computes the gradients. Raises ValueError for other kinds, whose kernels are built for other devices.
    """

    def __init__(
        self, func: Any, out_shape: Any = None, out_dtype: Any = None, func_type: str = "pyfunc", bprop: Any = None, reg_info: Any = None,
    ) -> None:
        super().__init__("Custom")
        if func_type not in ("pyfunc", "hybrid"):
            raise ValueError(
                f"Custom(func_type={func_type!r}): expected 'pyfunc' or 'hybrid'; kernels of the other kinds are built for MindSpore's own "
                "runtime.\n\nhint: write the function in Python, or with operators of mindspore.ops."
            )
        if not callable(func):
            raise TypeError(message(f"Custom({func!r:.60})", with_type("a function", func)))
        self.func = func if func_type == "pyfunc" or hasattr(func, "is_kernel") else kernel(func)
        self.out_shape, self.out_dtype, self.bprop = out_shape, out_dtype, bprop
        self.add_prim_attr("func_type", func_type)
        self.add_prim_attr("reg_info", reg_info)

    def __call__(self, *inputs: Any) -> Any:
        return with_gradient(self._computed_, self._gradient_, "Custom")(*inputs)

    def _computed_(self, *inputs: Any) -> Any:
        if running_trace.split_now() is not None and self.out_shape is not None and self.out_dtype is not None:
            return self._in_split_graph_(inputs)
        running_trace.ends_trace("calls a function on NumPy arrays", Kind.READS_VALUES)
        function = marks.with_mark(self.func, f"Custom {getattr(self.func, '__name__', 'function')}") if marks.is_enabled else self.func
        result = function(*[creation.to_numpy(value) if isinstance(value, TensorBase) else value for value in inputs])
        parts = _parts(result)
        inner = [value._t for value in inputs if isinstance(value, TensorBase)]
        shapes = _declared(self.out_shape, [tuple(t.shape) for t in inner])
        kinds = _declared(self.out_dtype, [dtypes.FROM_TORCH[t.dtype] for t in inner])
        is_several = isinstance(result if kinds is None else kinds, (tuple, list))
        tensors = [
            _checked_result(part, shape, kind)
            for part, shape, kind in zip(parts, _per_result(shapes, is_several, len(parts)), _per_result(kinds, is_several, len(parts)))
        ]
        return tuple(tensors) if is_several else tensors[0]

    def _in_split_graph_(self, inputs: tuple[Any, ...]) -> Any:
        """Return results of the declared shapes and dtypes, which the function computes when the split graph runs."""
        inner = [leaf for leaf in tree.leaves(inputs) if isinstance(leaf, TensorBase)]
        described = [
            tree.mapped(inputs, lambda leaf, of=of: of(leaf) if isinstance(leaf, TensorBase) else leaf)
            for of in (lambda t: tuple(t._t.shape), lambda t: dtypes.FROM_TORCH[t._t.dtype])
        ]
        shapes, kinds = (
            declared(*values) if callable(declared) else declared for declared, values in zip((self.out_shape, self.out_dtype), described)
        )
        is_several = isinstance(kinds, (tuple, list))
        results = python_calls.declared_results(
            self._call_on_tensors_(inputs), [raw(t) for t in inner], list(shapes) if is_several else [shapes],
            [dtypes.to_torch(kind) for kind in (kinds if is_several else [kinds])],
        )
        return tuple(map(wrap, results)) if is_several else wrap(results[0])

    def _call_on_tensors_(self, inputs: tuple[Any, ...]) -> Callable[..., list[torch.Tensor]]:
        """Return the function of torch tensors, those of `inputs` in order; other inputs keep their values."""

        def call(*tensors: torch.Tensor) -> list[torch.Tensor]:
            remaining = iter(tensors)
            arrays = tree.mapped(inputs, lambda leaf: creation.array_of(next(remaining)) if isinstance(leaf, TensorBase) else leaf)
            result = self.func(*arrays)
            return [creation.from_array(np.ascontiguousarray(part)) for part in _parts(result)]

        return call

    def _gradient_(self, *arguments: Any) -> Any:
        if self.bprop is None:
            raise RuntimeError("Custom: expected a bprop, because a gradient is requested.\n\nhint: write Custom(..., bprop=function).")
        return self.bprop(*arguments)
