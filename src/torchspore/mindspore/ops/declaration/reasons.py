"""Explanations of wrong arguments of operators: rules that interpret torch's error and the shapes."""
from __future__ import annotations

import dis
import re
from collections.abc import Callable
from typing import Any

from torchspore.engine.tensors.dtypes import FROM_TORCH
from torchspore.engine.tensors.tensor import TensorBase, tensors
from torchspore.errors import OutOfMemory

Reason = tuple[type[Exception], str, str | None]
"""The error class, the sentence after the call, and a hint or None."""

_KINDS = {
    "Half": "Float16", "Float": "Float32", "Double": "Float64", "BFloat16": "BFloat16", "Byte": "UInt8", "Char": "Int8", "Short": "Int16",
    "Int": "Int32",
    "Long": "Int64", "Bool": "Bool", "ComplexFloat": "Complex64", "ComplexDouble": "Complex128", "UInt16": "UInt16", "UInt32": "UInt32",
    "UInt64": "UInt64",
}
_FLOAT = "cast it first, for example with astype(mindspore.float32)"
_CAST = "cast one of them, for example with astype(mindspore.float32)"
_NUMBERS = frozenset({"axis", "axes", "dim", "dims", "keepdim", "keepdims", "keep_dims"})
"""Arguments that are not Tensors in any operator."""
_LIMITS = frozenset({"size", "shape", "low", "high"})
"""Arguments that are numbers unless a Tensor is passed."""
_PRODUCTS = frozenset({"matmul", "_matmul", "_batch_matmul", "bmm", "mm", "dense"})


def shape_of(value: Any) -> tuple[int, ...]:
    """Return the shape of a Tensor without reading its values."""
    return tuple(value._t.shape)


def reason(name: str, arguments: dict[str, Any], error: Exception) -> Reason:
    """Explain why the operator `name` refuses `arguments`, from torch's `error`."""
    text = str(error)
    beyond = _beyond(error, text)
    if beyond is not None:
        return beyond
    for rule in (_inference_tensor, _mixed_dtypes, _not_a_tensor, _product, _by_pattern, _no_axis):
        result = rule(name, arguments, text)
        if result is not None:
            return result
    return _rest(error, text)


def _inference_tensor(name: str, arguments: dict[str, Any], text: str) -> Reason | None:
    if "Inplace update to inference tensor" in text:
        return RuntimeError, "expected a Tensor that torch.inference_mode did not create, because torch forbids writing into it.", (
            "write into x.copy(), or create it under torch.no_grad"
        )
    if "Inference tensors cannot be saved for backward" not in text:
        return None
    key = next((key for key, value in arguments.items() if isinstance(value, TensorBase) and value._t.is_inference()), "one of them")
    return RuntimeError, f"expected Tensors that torch.inference_mode did not create in a gradient, got such a Tensor as {key}.", (
        "write x.copy() outside of torch.inference_mode, or create it under torch.no_grad"
    )


def _mixed_dtypes(name: str, arguments: dict[str, Any], text: str) -> Reason | None:
    if not re.search(r"scalar type|same dtype|same type|Input type|Promotion for uint", text):
        return None
    kinds = list(dict.fromkeys(str(FROM_TORCH[t._t.dtype]) for t in tensors(list(arguments.values()))))
    if len(kinds) > 1:
        return TypeError, f"expected one dtype, got {' and '.join(kinds)}.", _CAST
    actual_dtype = kinds[0] if kinds else "this"
    return TypeError, f"expected another dtype than {actual_dtype}.", "cast it first, for example with astype(mindspore.int32)"


def _not_a_tensor(name: str, arguments: dict[str, Any], text: str) -> Reason | None:
    if not re.search(
        r"must be (\w+ of )?Tensor|has no attribute|invalid combination of arguments|dtype\('|as element|must be tensor", text, re.I,
    ):
        return None
    for key, value in arguments.items():
        non_tensors = [item for item in value if not isinstance(item, TensorBase)] if isinstance(value, (list, tuple)) else []
        if non_tensors and "as element" in text:
            return TypeError, f"expected Tensors in {key}, got {type(non_tensors[0]).__name__}.", f"write Tensor({key}[0])"
    for key in _NUMBERS.intersection(arguments):
        if not _is_numbers(arguments[key]):
            return TypeError, f"expected a number as {key}, got {type(arguments[key]).__name__}.", None
    rest = {key: value for key, value in arguments.items() if key not in (*_NUMBERS, *_LIMITS) and not isinstance(value, TensorBase)}
    for key, value in rest.items():
        if not isinstance(value, (int, float, str, bool, type(None))) and not any(True for _ in tensors(value)):
            return TypeError, f"expected a Tensor as {key}, got {type(value).__name__}.", f"write Tensor({key})"
    for key, value in sorted(rest.items(), key=lambda item: not isinstance(item[1], str)):        # text first: a number may be right
        return TypeError, f"expected a Tensor as {key}, got {type(value).__name__}.", None
    return None


def _no_axis(name: str, arguments: dict[str, Any], text: str) -> Reason | None:
    """Explain an axis that is not an int, for torch errors that only report a mismatch or look for an axis of that name."""
    if "invalid combination of arguments" in text or re.search(
        r"must be int|as an integer|'(?:list|tuple|float|NoneType)' object|Invalid name: a valid identifier|Name '\w+' not found", text,
    ):
        for key in ("axis", "dim"):
            if key in arguments and (isinstance(arguments[key], bool) or not isinstance(arguments[key], int)):
                return TypeError, f"expected an int as {key}, got {type(arguments[key]).__name__}.", None
    return None


def _is_numbers(value: Any) -> bool:
    """Return whether a value can be axes, or a flag."""
    return isinstance(value, (int, type(None))) or (isinstance(value, (tuple, list)) and all(isinstance(item, int) for item in value))


def _ints(match: re.Match[str], arguments: dict[str, Any]) -> tuple[str, str | None]:
    """Explain an argument that must contain only ints, by the name that the caller knows, if torch uses the same."""
    of = f" as {match[1]}" if match[1] in arguments else ""
    return f"expected a tuple of ints{of}" + (f", got one with a {match[2]} in it." if match[2] else "."), None


def _product(name: str, arguments: dict[str, Any], text: str) -> Reason | None:
    """Explain a mismatch of the inner lengths of matrix products."""
    tensor_arguments = [(key, value) for key, value in arguments.items() if isinstance(value, TensorBase)]
    if name not in _PRODUCTS or len(tensor_arguments) < 2:
        return None
    (first, a), (second, b) = tensor_arguments[:2]
    x, y = shape_of(a), shape_of(b)
    if name == "dense":
        if len(y) != 2 or not x or x[-1] == y[1]:
            return None
        return ValueError, f"expected an input whose last axis is {y[1]}, to match {second} of shape {y}, got shape {x}.", None
    if name in ("mm", "_matmul") and (len(x) != 2 or len(y) != 2):
        return ValueError, f"expected two matrices, got shapes {x} and {y}.", "ops.matmul also takes batches and vectors"
    if not x or not y:
        return ValueError, f"expected at least one axis, got shapes {x} and {y}.", "write a * b for the product with a number"
    if arguments.get("transpose_a"):
        x = (*x[:-2], *reversed(x[-2:]))
    if arguments.get("transpose_b"):
        y = (*y[:-2], *reversed(y[-2:]))
    inner = y[-2] if len(y) > 1 else y[0]
    if x[-1] == inner and all(1 in (m, n) or m == n for m, n in zip(reversed(x[:-2]), reversed(y[:-2]))):
        return None
    if x[-1] == inner:
        return ValueError, f"expected batch axes that broadcast, got shapes {x} and {y}.", None
    fits = len(y) > 1 and y[-1] == x[-1]
    turned = second if fits else first if len(x) > 1 and x[-2] == inner else None
    hint = None if turned is None else f"transpose {turned}: {turned}.swapaxes(-1, -2)"
    return ValueError, f"expected as many rows in {second} as {first} has columns: shapes {x} and {y} have {inner} and {x[-1]}.", hint


def _channels(match: re.Match[str], arguments: dict[str, Any]) -> tuple[str, str | None]:
    expected_channels, got = match.groups()
    shape = shape_of(next(tensors(list(arguments.values()))))
    last = len(shape) == 4 and str(shape[-1]) == expected_channels
    hint = "in_channels of the layer is the length of axis 1 of its input"
    if last:
        hint = "the input looks like (N, H, W, C); transpose it with x.transpose(0, 3, 1, 2)"
    return f"expected {expected_channels} channels on axis 1, got {got}.", hint


def _broadcast(match: re.Match[str], arguments: dict[str, Any]) -> tuple[str, str | None]:
    a, b, axis = match.groups()
    shapes = [str(shape_of(t)) for t in tensors(list(arguments.values()))]
    shown = f", got {' and '.join(shapes)}" if len(shapes) > 1 else ""
    return f"expected shapes that broadcast{shown}: on axis {axis} they have {a} and {b}.", None


def _shapes(match: re.Match[str], arguments: dict[str, Any]) -> tuple[str, str | None]:
    shapes = dict.fromkeys(str(shape_of(t)) for t in tensors(list(arguments.values())))
    rest = " except along the joined axis" if "except" in match.string else ""
    return f"expected equal shapes{rest}, got {' and '.join(shapes)}.", None


def _elements(match: re.Match[str], arguments: dict[str, Any]) -> tuple[str, str | None]:
    shape, size = match.groups()
    hint = None if "-1" in shape else "write -1 for the one length that follows from the others"
    return f"expected a shape of {size} elements, got ({shape}).", hint


def _classes(match: re.Match[str], arguments: dict[str, Any]) -> tuple[str, str | None]:
    logits = shape_of(next(tensors(list(arguments.values()))))
    got = "another number" if match[1] is None else match[1]
    return f"expected classes from 0 to {logits[1 if len(logits) > 1 else 0] - 1}, got {got}.", None


def _rows(match: re.Match[str], arguments: dict[str, Any]) -> tuple[str, str | None]:
    shapes = [shape_of(t) for t in tensors(list(arguments.values()))][:2]
    return f"expected one label for each row of logits, got shapes {' and '.join(map(str, shapes))}.", None


def _rank(match: re.Match[str], arguments: dict[str, Any]) -> tuple[str, str | None]:
    shape = shape_of(next(tensors(list(arguments.values()))))
    hint = "put an axis of length 1 in front with x.expand_dims(0)" if len(shape) < 4 else None
    return f"expected {match[1]} axes, got shape {shape}.", hint


def _axes(match: re.Match[str], arguments: dict[str, Any]) -> tuple[str, str | None]:
    expected_axes = {
        "Expected 1-D": "1 axis", "1D tensors expected": "1 axis", "Supports 1D or 2D": "1 or 2 axes",
        "at least 2 dimensions": "at least 2 axes",
    }
    shapes = [str(shape_of(t)) for t in tensors(list(arguments.values()))]
    return f"expected {expected_axes.get(match[0], 'matrices, 2 axes')}, got shape {' and '.join(shapes)}.", None


def _dims(match: re.Match[str], arguments: dict[str, Any]) -> tuple[str, str | None]:
    return f"expected an order of all {match[1]} axes, got {match[2]}.", None


_Say = Callable[[re.Match[str], dict[str, Any]], tuple[str, str | None]]


def _reason(template: str, hint: str | None = None) -> _Say:
    return lambda match, arguments: (template.format(*match.groups()), hint)


def _devices(match: re.Match[str], arguments: dict[str, Any]) -> tuple[str, str | None]:
    """Explain operands on two devices: PyTorch tensors of the program, for torchspore moves Tensors itself."""
    first, second = (name for name in match.groups() if name)
    return f"expected values on one device, got {first} and {second}.", "x.move_to moves a Tensor, x.to a PyTorch tensor"


FROM_THE_END = 1 << 62
"""Replaces a negative index of operators that do not count from the end, so that every kernel refuses it."""


def _index(match: re.Match[str], arguments: dict[str, Any]) -> tuple[str, str | None]:
    """Explain an index that is beyond the end of an axis, or negative."""
    if int(match[1]) >= FROM_THE_END:
        return f"expected indexes from 0 to {int(match[3]) - 1} along axis {match[2]}, got a negative one.", None
    return f"index {match[1]} is beyond axis {match[2]}, which has {match[3]} elements.", None


_PATTERNS: tuple[
    tuple[re.Pattern[str], type[Exception], _Say], ...,
] = tuple((re.compile(pattern, re.S), kind, say) for pattern, kind, say in (
    (r"The size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\) at non-singleton dimension (\d+)", ValueError, _broadcast),
    (r"to have (\d+) channels, but got (\d+) channels", ValueError, _channels),
    (r"same device, but (?:found at least two devices, (\S+) and ([^\s!]+)|got .*? is on ([^\s,]+), different from other tensors on (\S+))",
     RuntimeError, _devices),
    (r"Sizes of tensors must match|expects each tensor to be equal size|Tensors must have same number of dimensions", ValueError, _shapes),
    (r"shape '\[([-\d, ]*)\]' is invalid for input of size (\d+)", ValueError, _elements),
    (
        r"Dimension out of range \(expected to be in range of \[(-?\d+), (-?\d+)\], but got (-?\d+)\)", ValueError,
        _reason("expected an axis from {} to {}, got {}."),
    ),
    (
        r"index (-?\d+) is out of bounds for dimension (\d+) with size (\d+)", IndexError,
        _index,
    ),
    (
        r"index (-?\d+) is out of bounds for \w+ ?(\d+)? ?with size (\d+)", IndexError,
        _reason("index {0} is beyond the axis, which has {2} elements."),
    ),
    (
        r"(?<!tuple )index out of range|INDICES element is out of DATA bounds", IndexError,
        _reason("an index is beyond the axis.", "indexes go from 0 to the length of the axis - 1"),
    ),
    (r"too many indices for tensor of dimension (\d+)", IndexError, _reason("expected at most {} indexes, one for each axis.")),
    (r"[Tt]arget (?:(-?\d+) )?is out of bounds", ValueError, _classes),
    (r"batch_size|Expected target size", ValueError, _rows),
    (r"Calculated padded input size per channel: \(([\dx ]+)\)\. Kernel size: \(([\dx ]+)\)", ValueError,
     _reason("expected an input at least as large as the kernel: it is {}, the kernel {}.", "pad_mode='same' pads as much as it takes")),
    (r"input image \(T?:? ?.*smaller than|Output size is too small|output size is too small", ValueError,
     _reason("expected an input at least as large as the kernel.", "a smaller kernel_size, or pad_mode='same'")),
    (r"Expected (?:\dD(?: \(unbatched\))? or )?(\d)D", ValueError, _rank),
    (r"[Ee]xpected 3D or 4D", ValueError, _rank),
    (
        r"normalized_shape=\[([\d, ]+)\].*got input of size\[([\d, ]+)\]", ValueError,
        _reason("expected an input that ends with the axes ({0}), got shape ({1})."),
    ),
    (
        r"should contain (\d+) elements not (\d+)", ValueError,
        _reason("expected {1} channels on axis 1, got {0}.", "num_features of the layer is the length of axis 1 of its input"),
    ),
    (
        r"[Nn]umber of channels in input.*num_groups.*\[([\d, ]+)\].*num_groups=(\d+)", ValueError,
        _reason("expected channels that {1} groups divide, got shape ({0})."),
    ),
    (
        r"more than 1 value per channel", ValueError,
        _reason("expected more than one value for each channel while training.", "a larger batch, or set_train(False)"),
    ),
    (r"input\.dim\(\) = (\d+) is not equal to len\(dims\) = (\d+)", ValueError, _dims),
    (r"[Dd]uplicate dims|repeated dim|dim \d+ appears multiple times", ValueError, _reason("expected each axis once.")),
    (r"expanded size of the tensor \((\d+)\) must match the existing size \((\d+)\) at non-singleton dimension (\d+)", ValueError,
     _reason("expected a shape that it broadcasts to: on axis {2} it has {1}, not {0} and not 1.")),
    (r"number of sizes provided.*\((\d+)\) must be greater or equal to the number of dimensions in the tensor \((\d+)\)", ValueError,
     _reason("expected at least {1} axes in the shape, got {0}.")),
    (r"value tensor of shape \[([\d, ]*)\] cannot be broadcast to indexing result of shape \[([\d, ]*)\]", ValueError,
     _reason("expected values of shape ({1}), or that broadcast to it, got ({0}).")),
    (r"shape of the mask \[([\d, ]*)\] at index (\d+) does not match the shape of the indexed tensor \[([\d, ]*)\]", ValueError,
     _reason("expected a mask of the Tensor's shape ({2}), got ({0}).")),
    (r"split_size.*sum exactly to (\d+).*=\[([\d, ]*)\]", ValueError, _reason("expected sizes that sum to {0}, got {1}.")),
    (r"zero-element|numel\(\) == 0|non-zero size", ValueError, _reason("expected at least one element.")),
    (r"integer division or modulo by zero|ZeroDivisionError", ZeroDivisionError, _reason("integers can't be divided by zero.")),
    (r"only support floating point", TypeError, _reason("expected floating-point numbers.", _FLOAT)),
    (
        r"Bool(?:ean)? inputs? not supported|bool.* not supported|not support bool", TypeError,
        _reason("expected numbers, got truth values.", _FLOAT),
    ),
    (
        r"Boolean value of Tensor|(\d+) elements cannot be converted to Scalar", TypeError,
        _reason("expected one number or truth value, got a Tensor of several."),
    ),
    (r"isIntegral", TypeError, _reason("expected an int.")),
    (r"At least one of 'min' or 'max'", ValueError, _reason("expected min, max or both.")),
    (r"^(.*) is not a valid value for (reduction)", ValueError, _reason("expected 'none', 'mean' or 'sum' as {1}, got {0!r}.")),
    (
        r"Unrecognised padding mode (\S+)", ValueError,
        _reason("expected 'constant', 'reflect', 'replicate' or 'circular' as mode, got {0!r}."),
    ),
    (r"approximate argument must be either none or tanh", ValueError, _reason("expected 'none' or 'tanh' as approximate.")),
    (r"result type (\w+) can't be cast to the desired output type (\w+)", TypeError,
     lambda match, arguments: (f"expected another dtype than {_KINDS.get(match[2], match[2])}.", _FLOAT)),
    (r"n_sample <= 0", ValueError, _reason("expected a number of samples from 1 on.")),
    (r"tuple index out of range", ValueError, _reason("expected an axis that the Tensor has.")),
    (
        r"zero-dimensional tensor \(at position (\d+)\) cannot be concatenated", ValueError,
        _reason("expected Tensors of at least one axis; number {} has none.", "ops.stack puts numbers together"),
    ),
    (
        r"output with shape \[([\d, ]*)\] doesn't match the broadcast shape \[([\d, ]*)\]", ValueError,
        _reason("expected a result of the Tensor's own shape ({}), got ({})."),
    ),
    (r"Padding_idx must be within num_embeddings", ValueError, _reason("expected a padding_idx that is a row of the table.")),
    (r"non-empty", ValueError, _reason("expected at least one Tensor.")),
    (r"greater than 0, got:? (-?\d+)", ValueError, _reason("expected a number from 1 on, got {}.")),
    (r"negative dimension (-?\d+)", ValueError, _reason("expected lengths from 0 on, got {}.")),
    (r"Order (\S+) not supported", ValueError, _reason("expected another ord than {}.")),
    (r"target size .* different to the input size", ValueError, _shapes),
    (
        r"between 0 and 1$", ValueError,
        _reason("expected probabilities, numbers from 0 to 1.", "binary_cross_entropy_with_logits takes logits"),
    ),
    (
        r"weight of shape \[([\d, ]+)\] and normalized_shape = \[([\d, ]+)\]", ValueError,
        _reason("expected an input that ends with the axes ({0}), got ({1})."),
    ),
    (r"probability has to be between 0 and 1, but got (\S+)", ValueError, _reason("expected a probability from 0 to 1, got {}.")),
    (r"can't assign a (\w+)", TypeError, _reason("expected a number, a list, an array or a Tensor, got {}.")),
    (
        r"contracted dimensions need to match, but first has size (\d+) .* second has size (\d+)", ValueError,
        _reason("expected equal lengths, got {} and {}."),
    ),
    (
        r"(?:expected|Expected) a matrix|Expected 1-D|Supports 1D or 2D|at least 2 dimensions|must be (?:a )?matri|1D tensors expected",
        ValueError, _axes,
    ),
    (r"divisible by 2", ValueError, _reason("expected an even number of paddings, before and after for each axis.")),
    (r"for the modes: .*\(got (\S+)\)", ValueError, _reason("expected a mode that fits the input's axes, got {}.")),
    (r"step must be nonzero", ValueError, _reason("expected a step other than 0.")),
    (r"inconsistent with step sign", ValueError, _reason("expected a step that leads from start to end.")),
    (r"steps must be non-negative", ValueError, _reason("expected a number of steps from 0 on.")),
    (r"argument '(\w+)'.* must be ([\w ]+), not (\w+)", TypeError, _reason("expected {1} as {0}, got {2}.")),
    (
        r"parameter numbers = (\d+),? and channel size = (\d+)", ValueError,
        _reason("expected one weight or {1}, one for each channel, got {0}."),
    ),
    (
        r"Halving dimension must be even, but dimension (\d+) is size (\d+)", ValueError,
        _reason("expected an even length on axis {}, got {}."),
    ),
    (r"indexing must be one of", ValueError, _reason("expected indexing 'xy' or 'ij'.")),
    (
        r"repeats must have the same size|repeats must be 0-dim or 1-dim|Repeats must be", ValueError,
        _reason("expected one count from 0 on for each element along the axis."),
    ),
    (
        r"start \((-?\d+)\) \+ length \((-?\d+)\) exceeds dimension size \((\d+)\)", ValueError,
        _reason("expected a part within {2} elements, got {1} from {0} on."),
    ),
    (r"only one dimension can be inferred", ValueError, _reason("expected -1 for one length at most.")),
    (r"not positive-definite", ValueError, _reason("expected a positive definite matrix; this one is not.")),
    (r"singular", ValueError, _reason("expected a matrix that has an inverse; this one is singular.")),
    (r"argument '(\w+)' .*must be tuple of \w+, but found element of type (\w+)", TypeError, _ints),
    (r"split_size=(-?\d+)|split_size can only be (0)", ValueError,
     lambda match, arguments: (f"expected a length of the parts from 1 on, got {match[1] or match[2]}.", None)),
    (r"1-d non-negative integral", ValueError, _reason("expected ints from 0 on, along one axis.")),
    (r"weights should be 1-d and have the same length", ValueError, _reason("expected one weight for each value.")),
    (r"random_ expects 'from' to be less than 'to', but got from=(-?\d+) >= to=(-?\d+)", ValueError,
     _reason("expected low below high, got {} and {}.")),
    (r"(?:to - 1|from) is out of bounds for", ValueError, _reason("expected limits that the dtype can hold.")),
    (r"expected BoolTensor for (\w+)", TypeError, _reason("expected truth values as {}.", "write a comparison, as x > 0")),
    (r"argument '(\w+)' failed to unpack()", TypeError, _ints),
    (r"only one element tensors can be converted", TypeError, _reason("expected one number or truth value, got a Tensor of several.")),
    (r"Dimension specified as -?\d+ but tensor has no dimensions|scalars because halving|at least (?:a )?(?:1-|one-)dimension", ValueError,
     _reason("expected at least one axis, got a Tensor without axes.")),
    (r"[Ii]nput dimension should be at least (\d+)|to have at least (\d+) dimensions", ValueError,
     lambda match, arguments: (f"expected at least {match[1] or match[2]} axes.", None)),
    (r"padding length (\d+) and input of dimension (\d+)", ValueError,
     _reason("expected two paddings for each axis at most, got {} for {} axes.")),
    (r"must be a one-dimensional|supposed to be a vector", ValueError, _reason("expected one axis.")),
    (r"(\w+) or fewer dimensions but got an input with (\d+)", ValueError, _reason("expected at most {} axes, got {}.")),
    (r"same number of (?:spatial )?dim", ValueError, _reason("expected the same number of axes.")),
    (r"invalid shape dimension (-?\d+)|expanded size of the tensor \((-\d+)\) isn't allowed|dimension with negative length", ValueError,
     lambda match, arguments: ("expected lengths from 0 on" + (f", got {match[1] or match[2]}." if match.lastindex else "."), None)),
    (r"first two dimensions of batch2 tensor to be: \[([\d, ]+)\] but got: \[([\d, ]+)\]", ValueError,
     _reason("expected batches that fit: the second begins with ({}), got ({}).")),
    (r"shifts: ?(\d+), dims: ?(\d+)", ValueError, _reason("expected one shift for each axis, got {} for {} axes.")),
    (r"start out of range \(expected to be in range of \[(-?\d+), (-?\d+)\], but got (-?\d+)\)", ValueError,
     _reason("expected a start from {} to {}, got {}.")),
    (r"expects dims >= 0, but got dims=(-?\d+)", ValueError, _reason("expected a number of axes from 0 on, got {}.")),
    (r"out of bounds for dimension with size (\d+)", IndexError, _reason("the index is beyond the axis, which has {} elements.")),
    (r"axis (-?\d+) is out of bounds for array of dimension (\d+)", ValueError, _reason("expected one of {1} axes, got {0}.")),
    (r"selected index k out of range|k not in range", ValueError, _reason("expected k up to the length of the axis.")),
))


def _by_pattern(name: str, arguments: dict[str, Any], text: str) -> Reason | None:
    refused = re.search(r"not implemented for '(\w+)'|not supported for (\w+)|for (?:dtype|type) (?:torch\.)?(\w+)|Got: (\w+)$", text)
    kind = next((group for group in refused.groups() if group), "") if refused is not None else ""
    if kind in _KINDS or kind in _KINDS.values():
        return TypeError, f"expected another dtype than {_KINDS.get(kind, kind)}.", _FLOAT
    for pattern, error, say in _PATTERNS:
        match = pattern.search(text)
        if match is not None:
            sentence, hint = say(match, arguments)
            return None if _FOREIGN.search(sentence) else (error, sentence, hint)
    return None


def _beyond(error: Exception, text: str) -> Reason | None:
    """Explain an error about exceeded memory, dtype range or stack depth, from torch or Python."""
    tried = re.search(r"(?:[Tt]ried to allocate|[Uu]nable to allocate) ([\d.]+ ?[KMGTPEZ]?i?B?(?:ytes)?)|insufficient memory", text)
    if isinstance(error, MemoryError) or "out of memory" in text or ("alloc" in text and tried):
        size_text = f"; {tried[1].strip()} were requested at once" if tried and tried[1] else ""
        return OutOfMemory, f"expected a result that fits into memory{size_text}.", "smaller shapes, or a smaller batch"
    if isinstance(error, RecursionError):
        return ValueError, "expected values that are nested less deeply and do not contain themselves.", None
    if isinstance(error, OverflowError) or _TOO_LARGE.search(text):
        return ValueError, "expected a number that its dtype can hold.", None
    if re.search(r"overflow", text):
        return ValueError, "expected fewer elements than that.", None
    return None


def of_call(error: Exception) -> Reason:
    """Explain an error of a call that is not an operator: a constructor, a method, a transform."""
    text = str(error)
    result = _beyond(error, text)
    if result is not None:
        return result
    if type(error) is ZeroDivisionError:
        return ValueError, "expected a number other than 0.", None
    lacks = re.match(r"'(\w+)' object has no attribute '(\w+)'", text)
    if lacks is not None:
        expected = "a Tensor" if lacks[2] == "_t" else "an argument of another type"
        return TypeError, f"expected {expected}, got {lacks[1]}.", None
    return _inference_tensor("", {}, text) or _by_pattern("", {}, text) or _rest(error, text)


_FOREIGN = re.compile(
    r"aten\b|mat1|torch(?!spore)|SymInt|ScalarType|'_t'|enforce fail|alloc_cpu|"
    r"\bself\b|tensor a\b|at::|c10|Tensor\.\w+\(|TORCH_|unsqueeze|non-singleton|\bdims?\b|dims_|dimension|keepdim=|\(position \d|"
    r"combination of arguments|(?-i:\btensors?\b)", re.I,
)
_SHAPES = re.compile(r"size|shape|dimension|dim |index|broadcast|kernel|match|range|axis|negative", re.I)
_TOO_LARGE = re.compile(
    r"without overflow|too large to convert"
    r"|[Oo]verflow when unpacking|int too (?:large|big)|out of bounds for \w*int",
)
_DEVICE = re.compile(r"\b(?:CUDA|NPU|ACL|driver|compiler|threads?)\b", re.I)
_TYPES = re.compile(r"dtype|type|argument|Expected.*Tensor", re.I)


def _rest(error: Exception, text: str) -> Reason:
    """Explain an error without a rule: the class from its words, and torch's first sentence if it is understandable."""
    kind = next((kind for kind in (TypeError, ValueError, IndexError, ZeroDivisionError, OSError) if isinstance(error, kind)), TypeError)
    if isinstance(error, AssertionError):
        kind = ValueError
    if isinstance(error, KeyError) and error.args and isinstance(error.args[0], str):
        return ValueError, f"expected another name than {error.args[0]!r:.60}.", None
    if isinstance(error, RuntimeError) and not isinstance(error, NotImplementedError):
        kind = RuntimeError if _DEVICE.search(text) else TypeError if _TYPES.search(text) and not _SHAPES.search(text) else ValueError
    if type(error).__module__.startswith(("cv2", "struct", "PIL", "zlib")) and not isinstance(error, (TypeError, OSError)):
        kind = ValueError
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    first = re.sub(r"^\w+\(\):? ", "", re.split(r"(?<=\w)\. (?=[A-Z])", first)[0])
    if not first or _FOREIGN.search(first):
        first = {
            TypeError: "the arguments' types do not fit", ValueError: "the shapes or values do not fit",
            IndexError: "an index is out of range",
        }.get(kind, "it can't be computed")
    return kind, first if first.endswith(".") else first + ".", None


def is_torch(error: Exception) -> bool:
    """Return whether torch or Python raised `error`; errors that this package raises are already explained."""
    last_traceback = error.__traceback__
    if last_traceback is None:
        return False
    if isinstance(error, AttributeError) and "object has no attribute" in str(error):
        return True                                # Cells too: Cell.__getattr__ raises it with a plain text
    while last_traceback.tb_next is not None:
        last_traceback = last_traceback.tb_next
    code = last_traceback.tb_frame.f_code
    raised = dis.opname[code.co_code[last_traceback.tb_lasti]] == "RAISE_VARARGS"
    return not raised or "/torchspore/" not in code.co_filename
