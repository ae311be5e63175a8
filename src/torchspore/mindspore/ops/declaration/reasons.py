"""Explanations of wrong arguments of operators, from torch's error and the shapes."""
from __future__ import annotations

import dis
import re
from typing import Any

from torchspore.base.frames import with_slashes
from torchspore.engine.tensors.dtypes import FROM_TORCH
from torchspore.engine.tensors.tensor import TensorBase, tensors
from torchspore.errors import OutOfMemory
from torchspore.mindspore.ops.declaration.torch_messages import FLOAT, KINDS, PATTERNS, another_dtype, join, shape_of
from torchspore.translations import translatable, translate

Reason = tuple[type[Exception], str, str | None]
"""The error class, the sentence after the call, and a hint or None."""

_CAST = translatable("cast one of them, for example with astype(mindspore.float32)")
_NUMBERS = frozenset({"axis", "axes", "dim", "dims", "keepdim", "keepdims", "keep_dims"})
"""Arguments that are not Tensors in any operator."""
_LIMITS = frozenset({"size", "shape", "low", "high"})
"""Arguments that are numbers unless a Tensor is passed."""
_PRODUCTS = frozenset({"matmul", "_matmul", "_batch_matmul", "bmm", "mm", "dense"})


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
        return (
            RuntimeError, translate("expected a Tensor that torch.inference_mode did not create, because torch forbids writing into it."),
            translate("write into x.copy(), or create it under torch.no_grad"),
        )
    if "Inference tensors cannot be saved for backward" not in text:
        return None
    keys = [key for key, value in arguments.items() if isinstance(value, TensorBase) and value._t.is_inference()]
    sentence = translate("expected Tensors that torch.inference_mode did not create in a gradient, got such a Tensor as {key}.")
    return (
        RuntimeError, sentence.format(key=keys[0] if keys else translate("one of them")),
        translate("write x.copy() outside of torch.inference_mode, or create it under torch.no_grad"),
    )


def _mixed_dtypes(name: str, arguments: dict[str, Any], text: str) -> Reason | None:
    if not re.search(r"scalar type|same dtype|same type|Input type|Promotion for uint", text):
        return None
    kinds = list(dict.fromkeys(str(FROM_TORCH[t._t.dtype]) for t in tensors(list(arguments.values()))))
    if len(kinds) > 1:
        return TypeError, translate("expected one dtype, got {dtypes}.").format(dtypes=join(kinds)), translate(_CAST)
    hint = translate("cast it first, for example with astype(mindspore.int32)")
    return TypeError, another_dtype(kinds[0] if kinds else translate("this")), hint


def _expected_tensor(key: str, value: Any) -> str:
    return translate("expected a Tensor as {key}, got {kind}.").format(key=key, kind=type(value).__name__)


def _not_a_tensor(name: str, arguments: dict[str, Any], text: str) -> Reason | None:
    if not re.search(
        r"must be (\w+ of )?Tensor|has no attribute|invalid combination of arguments|dtype\('|as element|must be tensor", text, re.I,
    ):
        return None
    for key, value in arguments.items():
        non_tensors = [item for item in value if not isinstance(item, TensorBase)] if isinstance(value, (list, tuple)) else []
        if non_tensors and "as element" in text:
            text = translate("expected Tensors in {key}, got {kind}.").format(key=key, kind=type(non_tensors[0]).__name__)
            return TypeError, text, translate("write {word}").format(word=f"Tensor({key}[0])")
    for key in _NUMBERS.intersection(arguments):
        if not _is_numbers(arguments[key]):
            text = translate("expected a number as {key}, got {kind}.").format(key=key, kind=type(arguments[key]).__name__)
            return TypeError, text, None
    rest = {key: value for key, value in arguments.items() if key not in (*_NUMBERS, *_LIMITS) and not isinstance(value, TensorBase)}
    for key, value in rest.items():
        if not isinstance(value, (int, float, str, bool, type(None))) and not any(True for _ in tensors(value)):
            return TypeError, _expected_tensor(key, value), translate("write {word}").format(word=f"Tensor({key})")
    for key, value in sorted(rest.items(), key=lambda item: not isinstance(item[1], str)):        # text first: a number may be right
        return TypeError, _expected_tensor(key, value), None
    return None


def _no_axis(name: str, arguments: dict[str, Any], text: str) -> Reason | None:
    """Explain an axis that is not an int, for torch errors that only report a mismatch or look for an axis of that name."""
    if "invalid combination of arguments" in text or re.search(
        r"must be int|as an integer|'(?:list|tuple|float|NoneType)' object|Invalid name: a valid identifier|Name '\w+' not found", text,
    ):
        for key in ("axis", "dim"):
            if key in arguments and (isinstance(arguments[key], bool) or not isinstance(arguments[key], int)):
                text = translate("expected an int as {key}, got {kind}.").format(key=key, kind=type(arguments[key]).__name__)
                return TypeError, text, None
    return None


def _is_numbers(value: Any) -> bool:
    """Return whether a value can be axes, or a flag."""
    return isinstance(value, (int, type(None))) or (isinstance(value, (tuple, list)) and all(isinstance(item, int) for item in value))


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
        text = translate("expected an input whose last axis is {length}, to match {name} of shape {shape}, got shape {got}.")
        return ValueError, text.format(length=y[1], name=second, shape=y, got=x), None
    if name in ("mm", "_matmul") and (len(x) != 2 or len(y) != 2):
        text = translate("expected two matrices, got shapes {x} and {y}.").format(x=x, y=y)
        return ValueError, text, translate("ops.matmul also takes batches and vectors")
    if not x or not y:
        text = translate("expected at least one axis, got shapes {x} and {y}.").format(x=x, y=y)
        return ValueError, text, translate("write a * b for the product with a number")
    if arguments.get("transpose_a"):
        x = (*x[:-2], *reversed(x[-2:]))
    if arguments.get("transpose_b"):
        y = (*y[:-2], *reversed(y[-2:]))
    inner = y[-2] if len(y) > 1 else y[0]
    if x[-1] == inner and all(1 in (m, n) or m == n for m, n in zip(reversed(x[:-2]), reversed(y[:-2]))):
        return None
    if x[-1] == inner:
        return ValueError, translate("expected batch axes that broadcast, got shapes {x} and {y}.").format(x=x, y=y), None
    fits = len(y) > 1 and y[-1] == x[-1]
    turned = second if fits else first if len(x) > 1 and x[-2] == inner else None
    hint = None if turned is None else translate("transpose {name}: {name}.swapaxes(-1, -2)").format(name=turned)
    text = translate("expected as many rows in {second} as {first} has columns: shapes {x} and {y} have {rows} and {columns}.")
    return ValueError, text.format(second=second, first=first, x=x, y=y, rows=inner, columns=x[-1]), hint


def _by_pattern(name: str, arguments: dict[str, Any], text: str) -> Reason | None:
    refused = re.search(r"not implemented for '(\w+)'|not supported for (\w+)|for (?:dtype|type) (?:torch\.)?(\w+)|Got: (\w+)$", text)
    kind = next((group for group in refused.groups() if group), "") if refused is not None else ""
    if kind in KINDS or kind in KINDS.values():
        return TypeError, another_dtype(KINDS.get(kind, kind)), translate(FLOAT)
    for pattern, error, say in PATTERNS:
        match = re.search(pattern, text, re.S)
        if match is not None:
            sentence, hint = say(match, arguments)
            return None if _FOREIGN.search(sentence) else (error, sentence, hint)
    return None


def _beyond(error: Exception, text: str) -> Reason | None:
    """Explain an error about exceeded memory, dtype range or stack depth, from torch or Python."""
    tried = re.search(r"(?:[Tt]ried to allocate|[Uu]nable to allocate) ([\d.]+ ?[KMGTPEZ]?i?B?(?:ytes)?)|insufficient memory", text)
    if isinstance(error, MemoryError) or "out of memory" in text or ("alloc" in text and tried):
        text = (translate("expected a result that fits into memory; {size} were requested at once.") if tried and tried[1] else
                translate("expected a result that fits into memory."))
        size = tried[1].strip() if tried and tried[1] else ""
        return OutOfMemory, text.format(size=size), translate("smaller shapes, or a smaller batch")
    if isinstance(error, RecursionError):
        return ValueError, translate("expected values that are nested less deeply and do not contain themselves."), None
    if isinstance(error, OverflowError) or _TOO_LARGE.search(text):
        return ValueError, translate("expected a number that its dtype can hold."), None
    if re.search(r"overflow", text):
        return ValueError, translate("expected fewer elements than that."), None
    return None


def of_call(error: Exception) -> Reason:
    """Explain an error of a call that is not an operator: a constructor, a method, a transform."""
    text = str(error)
    result = _beyond(error, text)
    if result is not None:
        return result
    if type(error) is ZeroDivisionError:
        return ValueError, translate("expected a number other than 0."), None
    lacks = re.match(r"'(\w+)' object has no attribute '(\w+)'", text)
    if lacks is not None:
        text = (translate("expected a Tensor, got {kind}.") if lacks[2] == "_t" else
                translate("expected an argument of another type, got {kind}."))
        return TypeError, text.format(kind=lacks[1]), None
    return _inference_tensor("", {}, text) or _by_pattern("", {}, text) or _rest(error, text)


_FOREIGN = re.compile(
    r"aten\b|mat1|torch(?!spore)|SymInt|ScalarType|'_t'|enforce fail|alloc_cpu|"
    r"\bself\b|tensor a\b|at::|c10|Tensor\.\w+\(|TORCH_|unsqueeze|non-singleton|\bdims?\b|dims_|(?<!bounds for )dimension|keepdim=|"
    r"\(position \d|combination of arguments|(?-i:\btensors?\b)", re.I,
)
_SHAPES = re.compile(r"size|shape|dimension|dim |index|broadcast|kernel|match|range|axis|negative", re.I)
_TOO_LARGE = re.compile(
    r"without overflow|too large to convert"
    r"|[Oo]verflow when unpacking|int too (?:large|big)|out of bounds for \w*int",
)
_DEVICE = re.compile(r"\b(?:CUDA|NPU|ACL|driver|compiler|threads?)\b", re.I)
_DTYPES = re.compile(r"support(?:ed for)? complex|not implemented for|did not match|dtypes match|Expected dtype|expected scalar type")
_TYPES = re.compile(r"dtype|type|argument|Expected.*Tensor", re.I)


def _rest(error: Exception, text: str) -> Reason:
    """Explain an error without a rule: the class from its words, and torch's first sentence if it is understandable."""
    kind = next((kind for kind in (TypeError, ValueError, IndexError, ZeroDivisionError, OSError) if isinstance(error, kind)), TypeError)
    if isinstance(error, AssertionError):
        kind = ValueError
    if isinstance(error, KeyError) and error.args and isinstance(error.args[0], str):
        return ValueError, translate("expected another name than {name}.").format(name=f"{error.args[0]!r:.60}"), None
    if isinstance(error, RuntimeError) and not isinstance(error, NotImplementedError):
        is_dtype = _DTYPES.search(text) or (_TYPES.search(text) and not _SHAPES.search(text))
        kind = RuntimeError if _DEVICE.search(text) else TypeError if is_dtype else ValueError
    if type(error).__module__.startswith(("cv2", "struct", "PIL", "zlib")) and not isinstance(error, (TypeError, OSError)):
        kind = ValueError
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    first = re.sub(r"^\w+\(\):? ", "", re.split(r"(?<=\w)\. (?=[A-Z])", first)[0])
    if not first or _FOREIGN.search(first):
        first = {
            TypeError: translate("the arguments' types do not fit"), ValueError: translate("the shapes or values do not fit"),
            IndexError: translate("an index is out of range"),
        }.get(kind, translate("it can't be computed"))
    return kind, first if first.endswith((".", "。")) else first + translate("."), None


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
    return not raised or "/torchspore/" not in with_slashes(code.co_filename)
