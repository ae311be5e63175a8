"""`mindspore._checkparam`: argument checks that programs and packages call, although they are internal to MindSpore.

Each returns the value if the check succeeds, and raises TypeError for another type and ValueError for another value, as MindSpore does.
Programs for 1.x write `Validator.check_bool(...)` and `Rel.GT`; since 2.0 they are functions and numbers of the module.
"""
from __future__ import annotations

import enum
import functools
import inspect
import math
import operator
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from torchspore.base.text import list_choices, message, short
from torchspore.mindspore.common.dtype import dtype_to_nptype
from torchspore.public_names import missing

EQ, NE, LT, LE, GT, GE, INC_NEITHER, INC_LEFT, INC_RIGHT, INC_BOTH, IN, NOT_IN = range(1, 13)


class Rel(enum.IntEnum):
    """The relations with 1.x's names."""

    EQ, NE, LT, LE, GT, GE, INC_NEITHER, INC_LEFT, INC_RIGHT, INC_BOTH, IN, NOT_IN = range(1, 13)


_COMPARE: dict[int, tuple[Callable[[Any, Any], bool], str]] = {
    EQ: (operator.eq, "= {}"), NE: (operator.ne, "other than {}"), LT: (operator.lt, "< {}"), LE: (operator.le, "<= {}"),
    GT: (operator.gt, "> {}"), GE: (operator.ge, ">= {}"), IN: (lambda a, b: a in b, "one of {}"),
    NOT_IN: (lambda a, b: a not in b, "none of {}"),
}
_BETWEEN = {INC_NEITHER: (False, False), INC_LEFT: (True, False), INC_RIGHT: (False, True), INC_BOTH: (True, True)}


def _call_text(arg_name: Any, value: Any, prim_name: Any) -> str:
    """Return the call as text: `prim_name(arg_name=value)`, with the known parts."""
    inside = f"{arg_name}={short(value)}" if arg_name else short(value)
    return f"{prim_name}({inside})" if prim_name else inside


def _names(types: Any) -> str:
    kinds = types if isinstance(types, (list, tuple, set)) else [types]
    return " or ".join(getattr(kind, "__name__", str(kind)) for kind in kinds)


# ---- numbers


def _check_binary_rel(val1: Any, val2: Any, rel: int) -> bool:
    """Return whether `val1` has the relation to `val2`."""
    return bool(_COMPARE[int(rel)][0](val1, val2))


def _check_inc_rel(val: Any, lower: Any, upper: Any, rel: int) -> bool:
    """Return whether `val` is between the limits; the relation includes or excludes them."""
    with_lower, with_upper = _BETWEEN[int(rel)]
    return bool((val >= lower if with_lower else val > lower) and (val <= upper if with_upper else val < upper))


def _number(value: Any, kind: type, arg_name: Any, prim_name: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, kind):
        raise TypeError(message(_call_text(arg_name, value, prim_name), f"{kind.__name__}, got {type(value).__name__}"))
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(message(_call_text(arg_name, value, prim_name), "a finite number"))


def _check_number(
    arg_value: Any, value: Any, rel: int, arg_type: type = int, arg_name: str | None = None, prim_name: str | None = None,
) -> Any:
    """Check a number of this type with the relation to `value`."""
    _number(arg_value, arg_type, arg_name, prim_name)
    if not _check_binary_rel(arg_value, value, rel):
        raise ValueError(message(_call_text(arg_name, arg_value, prim_name), f"{arg_type.__name__} {_COMPARE[int(rel)][1].format(value)}"))
    return arg_value


def check(
    arg_name: str, arg_value: Any, value_name: str, value: Any, rel: int = EQ, prim_name: str | None = None,
    excp_cls: type[Exception] = ValueError,
) -> Any:
    """Check that `arg_value` has the relation to `value`, which is named `value_name`; otherwise raises `excp_cls`."""
    if not _check_binary_rel(arg_value, value, rel):
        expected = _COMPARE[int(rel)][1].format(f"{value_name}={short(value)}" if value_name else short(value))
        raise excp_cls(message(_call_text(arg_name, arg_value, prim_name), f"a value {expected}"))
    return arg_value


def check_int(arg_value: Any, value: int, rel: int, arg_name: str | None = None, prim_name: str | None = None) -> int:
    """Check an int with the relation to `value`."""
    return _check_number(arg_value, value, rel, int, arg_name, prim_name)


def check_float(arg_value: Any, value: float, rel: int, arg_name: str | None = None, prim_name: str | None = None) -> float:
    """Check a float with the relation to `value`."""
    return _check_number(arg_value, value, rel, float, arg_name, prim_name)


def check_number(arg_name: str, arg_value: Any, value: Any, rel: int, prim_name: str | None) -> Any:
    """Check a number with the relation to `value`."""
    return check(arg_name, arg_value, "", value, rel, prim_name)


def check_integer(arg_name: str, arg_value: Any, value: int, rel: int, prim_name: str | None = None) -> int:
    """1.0's form of `check_int`: the name first."""
    return check_int(arg_value, value, rel, arg_name, prim_name)


def check_number_range(
    arg_value: Any, lower_limit: Any, upper_limit: Any, rel: int, value_type: type, arg_name: str | None = None,
    prim_name: str | None = None,
) -> Any:
    """Check a number of this type between two limits; the relation includes or excludes them."""
    _number(arg_value, value_type, arg_name, prim_name)
    if not _check_inc_rel(arg_value, lower_limit, upper_limit, rel):
        is_low_included, is_high_included = _BETWEEN[int(rel)]
        span = f"{'[' if is_low_included else '('}{lower_limit}, {upper_limit}{']' if is_high_included else ')'}"
        raise ValueError(message(_call_text(arg_name, arg_value, prim_name), f"{value_type.__name__} in {span}"))
    return arg_value


def check_int_range(
    arg_value: Any, lower_limit: int, upper_limit: int, rel: int, arg_name: str | None = None, prim_name: str | None = None,
) -> int:
    """Check an int between two limits."""
    return check_number_range(arg_value, lower_limit, upper_limit, rel, int, arg_name, prim_name)


def check_float_range(
    arg_value: Any, lower_limit: float, upper_limit: float, rel: int, arg_name: str | None = None, prim_name: str | None = None,
) -> float:
    """Check a float between two limits."""
    return check_number_range(arg_value, lower_limit, upper_limit, rel, float, arg_name, prim_name)


def _against_zero(kind: type, rel: int, relation_name: str) -> Callable[..., Any]:
    def checked(arg_value: Any, arg_name: str | None = None, prim_name: str | None = None) -> Any:
        return _check_number(arg_value, 0 if kind is int else 0.0, rel, kind, arg_name, prim_name)

    checked.__name__ = checked.__qualname__ = f"check_{relation_name}_{kind.__name__}"
    checked.__doc__ = f"{'An' if kind is int else 'A'} {kind.__name__} {_COMPARE[rel][1].format(0)}."
    return checked


check_positive_int, check_positive_float = _against_zero(int, GT, "positive"), _against_zero(float, GT, "positive")
check_negative_int, check_negative_float = _against_zero(int, LT, "negative"), _against_zero(float, LT, "negative")
check_non_positive_int, check_non_positive_float = _against_zero(int, LE, "non_positive"), _against_zero(float, LE, "non_positive")
check_non_negative_int, check_non_negative_float = _against_zero(int, GE, "non_negative"), _against_zero(float, GE, "non_negative")


def check_equal_int(arg_value: Any, value: int, arg_name: str | None = None, prim_name: str | None = None) -> int:
    """Check for the int `value`."""
    return check_int(arg_value, value, EQ, arg_name, prim_name)


def _each(check_item: Callable[..., Any], sequence: Any, arg_name: str | None, prim_name: str | None) -> Any:
    for index, item in enumerate(sequence):
        check_item(item, f"{arg_name or ''}[{index}]", prim_name)
    return sequence


def check_positive_int_sequence(sequence: Any, arg_name: str | None = None, prim_name: str | None = None) -> Any:
    """Check a sequence of ints > 0."""
    return _each(check_positive_int, sequence, arg_name, prim_name)


def check_non_negative_int_sequence(sequence: Any, arg_name: str | None = None, prim_name: str | None = None) -> Any:
    """Check a sequence of ints >= 0."""
    return _each(check_non_negative_int, sequence, arg_name, prim_name)


def check_positive_float_sequence(sequence: Any, arg_name: str | None = None, prim_name: str | None = None) -> Any:
    """Check a sequence of floats > 0."""
    return _each(check_positive_float, sequence, arg_name, prim_name)


# ---- types


def check_bool(arg_value: Any, arg_name: str | None = None, prim_name: str | None = None) -> bool:
    """Check a bool."""
    if not isinstance(arg_value, bool):
        raise TypeError(message(_call_text(arg_name, arg_value, prim_name), f"a bool, got {type(arg_value).__name__}"))
    return arg_value


def check_is_number(arg_value: Any, arg_type: type, arg_name: str | None = None, prim_name: str | None = None) -> Any:
    """Check a finite number of this type."""
    if isinstance(arg_value, bool) or not isinstance(arg_value, arg_type):
        raise TypeError(message(_call_text(arg_name, arg_value, prim_name), f"{arg_type.__name__}, got {type(arg_value).__name__}"))
    if isinstance(arg_value, float) and not math.isfinite(arg_value):
        raise ValueError(message(_call_text(arg_name, arg_value, prim_name), "a finite number"))
    return arg_value


def check_is_int(arg_value: Any, arg_name: str | None = None, prim_name: str | None = None) -> int:
    """Check an int; True and False are not ints here."""
    return check_is_number(arg_value, int, arg_name, prim_name)


def check_is_float(arg_value: Any, arg_name: str | None = None, prim_name: str | None = None) -> float:
    """Check a finite float."""
    return check_is_number(arg_value, float, arg_name, prim_name)


def check_value_type(arg_name: str, arg_value: Any, valid_types: Any, prim_name: str | None = None) -> Any:
    """Check a value of one of the types; True and False require bool among them."""
    kinds = tuple(valid_types) if isinstance(valid_types, Iterable) else (valid_types,)
    if not isinstance(arg_value, kinds) or (isinstance(arg_value, bool) and bool not in kinds and object not in kinds):
        raise TypeError(message(_call_text(arg_name, arg_value, prim_name), f"{_names(kinds)}, got {type(arg_value).__name__}"))
    return arg_value


def check_isinstance(arg_name: str, arg_value: Any, classes: Any) -> Any:
    """Check an object of one of the classes."""
    if not isinstance(arg_value, classes):
        raise ValueError(message(_call_text(arg_name, arg_value, None), f"{_names(classes)}, got {type(arg_value).__name__}"))
    return arg_value


def check_element_type_of_iterable(arg_name: str, arg_value: Any, valid_types: Any, prim_name: str | None = None) -> None:
    """Check a list, tuple, set or dict with elements, or keys, of the types."""
    check_value_type(arg_name, arg_value, [list, tuple, set, dict], prim_name)
    for index, item in enumerate(arg_value):
        check_value_type(f"{arg_name}[{index}]", item, valid_types, prim_name)


def check_element_type_of_dict(arg_name: str, arg_value: Any, key_types: Any, value_types: Any, prim_name: str | None = None) -> None:
    """Check a dict with keys and values of the types."""
    check_value_type(arg_name, arg_value, [dict], prim_name)
    for key, value in arg_value.items():
        check_value_type(f"key of {arg_name}", key, key_types, prim_name)
        check_value_type(f"{arg_name}[{key!r}]", value, value_types, prim_name)


def check_size_and_element_type_of_tuple(
    arg_name: str, arg_value: Any, expect_size: int, expect_element_type: Any, prim_name: str | None = None,
) -> None:
    """Check a tuple with this number of elements of one type."""
    check_value_type(arg_name, arg_value, [tuple], prim_name)
    check_equal_int(len(arg_value), expect_size, f"len({arg_name})", prim_name)
    check_element_type_of_iterable(arg_name, arg_value, expect_element_type, prim_name)


def check_subclass(arg_name: str, type_: Any, template_types: Any, prim_name: str | None, addition_error_info: str | None = None) -> None:
    """Check a dtype or class that is one of `template_types` or a subclass of one."""
    templates = template_types if isinstance(template_types, (list, tuple, set)) else (template_types,)
    for template in templates:
        if type_ is template or type_ == template or (inspect.isclass(type_) and inspect.isclass(template) and issubclass(type_, template)):
            return
        if inspect.isclass(template) and not inspect.isclass(type_) and isinstance(type_, template):
            return
    more = f", {addition_error_info}" if addition_error_info else ""
    raise TypeError(message(_call_text(arg_name, type_, prim_name), f"{_names(templates)}{more}"))


def check_type_name(arg_name: str, arg_type: Any, valid_types: Any, prim_name: str | None) -> Any:
    """Check a dtype that is among `valid_types`."""
    kinds = valid_types if isinstance(valid_types, Iterable) else (valid_types,)
    if arg_type not in kinds:
        raise TypeError(message(_call_text(arg_name, arg_type, prim_name), list_choices(sorted(map(str, kinds)))))
    return arg_type


def check_tensor_dtype_valid(arg_name: str, arg_type: Any, valid_dtypes: Any, prim_name: str | None) -> Any:
    """Check a Tensor's dtype that is among `valid_dtypes`."""
    return check_type_name(arg_name, getattr(arg_type, "dtype", arg_type), valid_dtypes, prim_name)


def check_tensors_dtypes_same_and_valid(args: dict[str, Any], valid_dtypes: Any, prim_name: str | None) -> None:
    """Check dtypes by the names of their Tensors: all equal and among `valid_dtypes`."""
    dtypes = {name: check_tensor_dtype_valid(name, kind, valid_dtypes, prim_name) for name, kind in args.items()}
    if len(set(map(str, dtypes.values()))) > 1:
        raise TypeError(message(_call_text("", dtypes, prim_name), "one dtype for all"))


check_types_same_and_valid = check_scalar_or_tensor_types_same = check_tensors_dtypes_same_and_valid


def check_astype_dtype(dtype: Any) -> Any:
    """Return the dtype for `astype`, from a dtype or its name."""
    from torchspore.mindspore.common import dtype as mstype

    checked_dtype = getattr(mstype, dtype, None) if isinstance(dtype, str) else dtype
    try:
        dtype_to_nptype(checked_dtype)
    except (TypeError, KeyError, ValueError):
        raise TypeError(message(f"astype({short(dtype)})", "a dtype of MindSpore or its name")) from None
    return checked_dtype


# ---- texts


def check_string(arg_value: Any, valid_values: Any, arg_name: str | None = None, prim_name: str | None = None) -> str:
    """Check a str that is among `valid_values`; 1.0 has the name first."""
    if isinstance(valid_values, str) and isinstance(arg_name, (list, tuple, set)):
        arg_value, valid_values, arg_name = valid_values, arg_name, arg_value
    if not isinstance(arg_value, str) or arg_value not in valid_values:
        raise ValueError(message(_call_text(arg_name, arg_value, prim_name), list_choices(list(valid_values))))
    return arg_value


def check_str_by_regular(target: str, reg: str | None = None, flag: int = re.ASCII, prim_name: str | None = None) -> bool:
    """Check a str that the pattern matches at its start; by default letters, digits, `_`, `-` and `.`."""
    if re.match(reg or r"^\w*[0-9a-zA-Z\-\_\.]*$", target, flag) is None:
        raise ValueError(message(_call_text("", target, prim_name), f"a str that {reg or 'letters, digits, _, - and . make up'}"))
    return True


def check_str_and_none_by_regular(target: str | None, reg: str | None = None, flag: int = re.ASCII, prim_name: str | None = None) -> bool:
    """Check the same, or None."""
    return target is None or check_str_by_regular(target, reg, flag, prim_name)


def check_file_name_by_regular(target: str, reg: str | None = None, prim_name: str | None = None) -> bool:
    """Check a file name without control characters, quotes and similar ones."""
    if not isinstance(target, str):
        raise TypeError(message(_call_text("", target, prim_name), f"a file name, got {type(target).__name__}"))
    if target.endswith((os.sep, ".")) or re.match(reg or r"^[0-9a-zA-Z@\_\-\.\:\/\\ ]+$", target, re.ASCII) is None:
        raise ValueError(message(_call_text("", target, prim_name), "a file name of letters, digits and @ _ - . : / \\"))
    return True


# ---- shapes


def check_axis_in_range(axis: Any, ndim: int) -> int:
    """Return an axis from -ndim to ndim - 1, counted from the front."""
    if not isinstance(axis, int) or isinstance(axis, bool):
        raise TypeError(message(f"axis={short(axis)}", f"an int, got {type(axis).__name__}"))
    if not -ndim <= axis < ndim:
        raise ValueError(message(f"axis={axis}", f"an axis in [{-ndim}, {ndim})"))
    return axis % ndim


def check_axis_valid(axes: Any, ndim: int) -> tuple[int, ...]:
    """Return existing axes, each once; None means all."""
    if axes is None:
        return tuple(range(ndim))
    checked_axes = tuple(check_axis_in_range(axis, ndim) for axis in (axes if isinstance(axes, (tuple, list)) else (axes,)))
    if len(set(checked_axes)) < len(checked_axes):
        raise ValueError(message(f"axis={short(axes)}", "each axis once"))
    return checked_axes


check_and_canonicalize_axes = check_axis_valid


def check_input_format(input_param: Any) -> str:
    """Return the data format 'NCHW'. Raises ValueError for any other."""
    if input_param != "NCHW":
        raise ValueError(message(f"the data format {short(input_param)}", "'NCHW'"))
    return "NCHW"


def infer_out_shape(*shapes: Sequence[int]) -> tuple[int, ...]:
    """Return the broadcast shape."""
    shape: list[int] = []
    for lengths in zip(*[(1,) * (max(map(len, shapes)) - len(shape)) + tuple(shape) for shape in shapes]):
        others = {length for length in lengths if length != 1}
        if len(others) > 1:
            raise ValueError(message(f"shapes {', '.join(map(str, shapes))}", "shapes that broadcast"))
        shape.append(others.pop() if others else 1)
    return tuple(shape)


# ---- decorators, and the names of 1.x


def _flatten(arguments: Mapping[str, Any], collector: str | None) -> dict[str, Any]:
    """Return bound arguments by name, with the items of the `**kwargs` parameter `collector` next to the others."""
    flat = dict(arguments)
    return {**flat.pop(collector, {}), **flat} if collector is not None else flat


def args_type_check(*type_args: Any, **type_kwargs: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate a function so that it raises TypeError for arguments of other types. Types are listed by position or by name.

    None is accepted for every argument. A type for a name that the function collects in `**kwargs` is checked there.
    """
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(function)
        collector = next((p.name for p in signature.parameters.values() if p.kind is p.VAR_KEYWORD), None)
        types = _flatten(signature.bind_partial(*type_args, **type_kwargs).arguments, collector)

        @functools.wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            for name, value in _flatten(signature.bind(*args, **kwargs).arguments, collector).items():
                if name in types and value is not None and not isinstance(value, types[name]):
                    expected = f"{_names(types[name])}, got {type(value).__name__}"
                    raise TypeError(message(_call_text(name, value, function.__name__), expected))
            return function(*args, **kwargs)

        return checked

    return decorate


def check_int_positive(arg_name: str, arg_value: Any, op_name: str | None = None) -> int:
    """Check an int > 0, with the arguments in the order of 1.0."""
    return check_positive_int(arg_value, arg_name, op_name)


class Validator:
    """The checks with 1.x's names."""


for _name, _function in list(globals().items()):
    if _name.startswith("check") or _name in ("infer_out_shape", "args_type_check"):
        setattr(Validator, _name, staticmethod(_function))
__getattr__ = missing(__name__)
