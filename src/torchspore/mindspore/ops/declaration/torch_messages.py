"""Rules that interpret the messages of torch's errors, by pattern: the class of the error, the sentence after the call, and a hint."""
from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from torchspore.engine.tensors.tensor import tensors
from torchspore.translations import translatable, translate

KINDS = {
    "Half": "Float16", "Float": "Float32", "Double": "Float64", "BFloat16": "BFloat16", "Byte": "UInt8", "Char": "Int8", "Short": "Int16",
    "Int": "Int32",
    "Long": "Int64", "Bool": "Bool", "ComplexFloat": "Complex64", "ComplexDouble": "Complex128", "UInt16": "UInt16", "UInt32": "UInt32",
    "UInt64": "UInt64",
}
FLOAT = translatable("cast it first, for example with astype(mindspore.float32)")


def shape_of(value: Any) -> tuple[int, ...]:
    """Return the shape of a Tensor without reading its values."""
    return tuple(value._t.shape)


def another_dtype(dtype: str) -> str:
    """Return the sentence for a dtype that an operator refuses."""
    return translate("expected another dtype than {dtype}.").format(dtype=dtype)


def join(texts: Iterable[str]) -> str:
    """Join texts by `and`."""
    return translate(" and ").join(texts)


def _ints(match: re.Match[str], arguments: dict[str, Any]) -> tuple[str, str | None]:
    """Explain an argument that must contain only ints, by the name that the caller knows, if torch uses the same."""
    text = translate("expected a tuple of ints as {name}") if match[1] in arguments else translate("expected a tuple of ints")
    end = translate(", got one with a {kind} in it.") if match[2] else translate(".")
    return text.format(name=match[1]) + end.format(kind=match[2]), None


def _channels(match: re.Match[str], arguments: dict[str, Any]) -> tuple[str, str | None]:
    expected_channels, got = match.groups()
    shape = shape_of(next(tensors(list(arguments.values()))))
    last = len(shape) == 4 and str(shape[-1]) == expected_channels
    hint = translate("in_channels of the layer is the length of axis 1 of its input")
    if last:
        hint = translate("the input looks like (N, H, W, C); transpose it with x.transpose(0, 3, 1, 2)")
    return translate("expected {expected} channels on axis 1, got {got}.").format(expected=expected_channels, got=got), hint


def _broadcast(match: re.Match[str], arguments: dict[str, Any]) -> tuple[str, str | None]:
    a, b, axis = match.groups()
    shapes = [str(shape_of(t)) for t in tensors(list(arguments.values()))]
    text = (translate("expected shapes that broadcast, got {shapes}: on axis {axis} they have {a} and {b}.") if len(shapes) > 1
            else translate("expected shapes that broadcast: on axis {axis} they have {a} and {b}."))
    return text.format(shapes=join(shapes), axis=axis, a=a, b=b), None


def _shapes(match: re.Match[str], arguments: dict[str, Any]) -> tuple[str, str | None]:
    shapes = dict.fromkeys(str(shape_of(t)) for t in tensors(list(arguments.values())))
    text = (translate("expected equal shapes except along the joined axis, got {shapes}.") if "except" in match.string
            else translate("expected equal shapes, got {shapes}."))
    return text.format(shapes=join(shapes)), None


def _elements(match: re.Match[str], arguments: dict[str, Any]) -> tuple[str, str | None]:
    shape, size = match.groups()
    hint = None if "-1" in shape else translate("write -1 for the one length that follows from the others")
    return translate("expected a shape of {count} elements, got ({shape}).").format(count=size, shape=shape), hint


def _classes(match: re.Match[str], arguments: dict[str, Any]) -> tuple[str, str | None]:
    logits = shape_of(next(tensors(list(arguments.values()))))
    got = translate("another number") if match[1] is None else match[1]
    text = translate("expected classes from 0 to {last}, got {got}.")
    return text.format(last=logits[1 if len(logits) > 1 else 0] - 1, got=got), None


def _rows(match: re.Match[str], arguments: dict[str, Any]) -> tuple[str, str | None]:
    shapes = [shape_of(t) for t in tensors(list(arguments.values()))][:2]
    return translate("expected one label for each row of logits, got shapes {shapes}.").format(shapes=join(map(str, shapes))), None


def _rank(match: re.Match[str], arguments: dict[str, Any]) -> tuple[str, str | None]:
    shape = shape_of(next(tensors(list(arguments.values()))))
    hint = translate("put an axis of length 1 in front with x.expand_dims(0)") if len(shape) < 4 else None
    return translate("expected {axes}, got shape {shape}.").format(axes=translate("{count} axes").format(count=match[1]), shape=shape), hint


def _axes(match: re.Match[str], arguments: dict[str, Any]) -> tuple[str, str | None]:
    expected_axes = {
        "Expected 1-D": translate("1 axis"), "1D tensors expected": translate("1 axis"), "Supports 1D or 2D": translate("1 or 2 axes"),
        "at least 2 dimensions": translate("at least 2 axes"),
    }
    shapes = [str(shape_of(t)) for t in tensors(list(arguments.values()))]
    axes = expected_axes.get(match[0], translate("matrices, 2 axes"))
    return translate("expected {axes}, got shape {shape}.").format(axes=axes, shape=join(shapes)), None


def _dims(match: re.Match[str], arguments: dict[str, Any]) -> tuple[str, str | None]:
    return translate("expected an order of all {count} axes, got {got}.").format(count=match[1], got=match[2]), None


_Say = Callable[[re.Match[str], dict[str, Any]], tuple[str, str | None]]


def _reason(template: str, hint: str | None = None) -> _Say:
    return lambda match, arguments: (translate(template).format(*match.groups()), translate(hint) if hint else None)


def _devices(match: re.Match[str], arguments: dict[str, Any]) -> tuple[str, str | None]:
    """Explain operands on two devices: PyTorch tensors of the program, for torchspore moves Tensors itself."""
    first, second = (name for name in match.groups() if name)
    text = translate("expected values on one device, got {first} and {second}.").format(first=first, second=second)
    return text, translate("x.move_to moves a Tensor, x.to a PyTorch tensor")


FROM_THE_END = 1 << 62
"""Replaces a negative index of operators that do not count from the end, so that every kernel refuses it."""


def _index(match: re.Match[str], arguments: dict[str, Any]) -> tuple[str, str | None]:
    """Explain an index that is beyond the end of an axis, or negative."""
    if int(match[1]) >= FROM_THE_END:
        text = translate("expected indexes from 0 to {last} along axis {axis}, got a negative one.")
        return text.format(last=int(match[3]) - 1, axis=match[2]), None
    text = translate("index {index} is out of bounds for dimension with size {count}, axis {axis}.")
    return text.format(index=match[1], axis=match[2], count=match[3]), None


PATTERNS: tuple[tuple[str, type[Exception], _Say], ...] = (
    (r"The size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\) at non-singleton dimension (\d+)", ValueError, _broadcast),
    (r"to have (\d+) channels, but got (\d+) channels", ValueError, _channels),
    (r"same device, but (?:found at least two devices, (\S+) and ([^\s!]+)|got .*? is on ([^\s,]+), different from other tensors on (\S+))",
     RuntimeError, _devices),
    (r"Tensor on device (\S+) is not on the expected device ([^\s!]+)", RuntimeError, _devices),
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
    (r"only support floating point", TypeError, _reason("expected floating-point numbers.", FLOAT)),
    (
        r"Bool(?:ean)? inputs? not supported|bool.* not supported|not support bool", TypeError,
        _reason("expected numbers, got truth values.", FLOAT),
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
     lambda match, arguments: (another_dtype(KINDS.get(match[2], match[2])), translate(FLOAT))),
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
     lambda match, arguments: (translate("expected a length of the parts from 1 on, got {got}.").format(got=match[1] or match[2]), None)),
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
     lambda match, arguments: (translate("expected at least {count} axes.").format(count=match[1] or match[2]), None)),
    (r"padding length (\d+) and input of dimension (\d+)", ValueError,
     _reason("expected two paddings for each axis at most, got {} for {} axes.")),
    (r"must be a one-dimensional|supposed to be a vector", ValueError, _reason("expected one axis.")),
    (r"(\w+) or fewer dimensions but got an input with (\d+)", ValueError, _reason("expected at most {} axes, got {}.")),
    (r"same number of (?:spatial )?dim", ValueError, _reason("expected the same number of axes.")),
    (r"invalid shape dimension (-?\d+)|expanded size of the tensor \((-\d+)\) isn't allowed|dimension with negative length", ValueError,
     lambda match, arguments: ((translate("expected lengths from 0 on, got {}.") if match.lastindex else
                                translate("expected lengths from 0 on.")).format(match[1] or match[2]), None)),
    (r"first two dimensions of batch2 tensor to be: \[([\d, ]+)\] but got: \[([\d, ]+)\]", ValueError,
     _reason("expected batches that fit: the second begins with ({}), got ({}).")),
    (r"shifts: ?(\d+), dims: ?(\d+)", ValueError, _reason("expected one shift for each axis, got {} for {} axes.")),
    (r"start out of range \(expected to be in range of \[(-?\d+), (-?\d+)\], but got (-?\d+)\)", ValueError,
     _reason("expected a start from {} to {}, got {}.")),
    (r"expects dims >= 0, but got dims=(-?\d+)", ValueError, _reason("expected a number of axes from 0 on, got {}.")),
    (r"out of bounds for dimension with size (\d+)", IndexError, _reason("the index is beyond the axis, which has {} elements.")),
    (r"axis (-?\d+) is out of bounds for array of dimension (\d+)", ValueError, _reason("expected one of {1} axes, got {0}.")),
    (r"selected index k out of range|k not in range", ValueError, _reason("expected k up to the length of the axis.")),
)
