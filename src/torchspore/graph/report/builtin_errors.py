"""Errors of Python's operators and built-in functions in graph mode, in the words and of the types of MindSpore's compiler."""
from __future__ import annotations

import ast
import dis
import re
from collections.abc import Callable
from types import TracebackType
from typing import Any

from torchspore.base.frames import is_user_file
from torchspore.base.tracebacks import ends_in_user_code
from torchspore.graph.report import line_values, unassigned_locals


def _both(shown: type[Exception], kind: type[Exception]) -> type[Exception]:
    """Return a class that is Python's error `shown`, by which it is printed, and MindSpore's `kind`: a program may handle either."""
    body = {"__module__": "builtins", "__str__": Exception.__str__, "__reduce__": lambda error: (shown, error.args)}
    return type(shown.__name__, (kind, shown), body)


_ROWS: tuple[tuple[type[Exception], str, type[Exception], str], ...] = (
    (ZeroDivisionError, r"(float )?(division|floor division|integer division or modulo) by zero|float floor division.*",
     ZeroDivisionError, "The divisor could not be zero."),
    (ZeroDivisionError, r".*modulo.*zero|float modulo", ZeroDivisionError, "Cannot perform modulo operation on zero."),
    (TypeError, r"range expected at (?:least|most) \d arguments?, got (\d+)", RuntimeError,
     "For 'make_range', the input size should within [1, 3] but got{0}"),
    (ValueError, r"range\(\) arg 3 must not be zero", ValueError, "For 'range', the argument 'step' could not be 0."),
    (TypeError, r"map\(\) must have at least two arguments\.", TypeError, "The Map operator must have at least two arguments."),
    (TypeError, r"typeof\(\) takes 1 positional argument but (\d+) were given", TypeError,
     "The Typeof operator must requires 1 argument, but the size of arguments is {0}."),
    (ValueError, r"slice step cannot be zero", ValueError, "Slice step cannot be zero."),
    (TypeError, r"slice indices must be integers or None or have an __index__ method", TypeError,
     "Slice indices must be integers or bool."),
    (KeyError, r"'?(.*?)'?", _both(KeyError, ValueError), "The key {0} does not exist in the dict"),
    (TypeError, r"'.*' object is not callable", _both(TypeError, ValueError), "The object is not callable. Please check code."),
    (TypeError, r"[\w.<>]+\(\) takes (?:from \d+ to )?(\d+) positional arguments? but (\d+) (?:was|were) given", TypeError,
     "The parameters number of the function is {0}, but the number of provided arguments is {1}."),
    (TypeError, r"[\w.<>]+\(\) got an unexpected keyword argument ('\w+')", _both(TypeError, RuntimeError),
     "Got an unexpected keyword argument {0}"),
    (TypeError, r"object of type '(\w+)' has no len\(\)", _both(TypeError, AttributeError), "'{0}' object has no attribute '__len__'"),
    (NameError, r"name ('\w+') is not defined.*", NameError, "The name {0} is not defined, or not supported in graph mode."),
    (UnboundLocalError, r"(?:cannot access )?local variable ('\w+') .*", UnboundLocalError,
     "The name {0} is not defined, or not supported in graph mode."),
    (AttributeError, r"'(list|tuple|str|dict|int|float)' object has no attribute ('\w+')", AttributeError,
     "'{0}' object has no attribute {1}"),
    (TypeError, r"isinstance\(\) arg 2 must be a type.*", TypeError, "isinstance() arg 2 must be a type or tuple of types."),
    (RecursionError, r"maximum recursion depth exceeded.*", RecursionError,
     "Please check the code if it has the infinite recursion or loop."),
    (IndexError, r"pop index out of range", IndexError, "The pop index out of range."),
    (IndexError, r"pop from empty list", IndexError, "The pop index out of range."),
    (ValueError, r"(max|min)\(\) (?:arg is an empty sequence|iterable argument is empty)", ValueError, "{0}() arg is an empty sequence."),
    (ValueError, r"negative shift count", ValueError, "For shift operator, shift count must be a non-negative integer."),
    (TypeError, r"unhashable type: '(\w+)'", _both(TypeError, RuntimeError),
     "dict key only supports string, number, type, none, constant tensor and tuple, but got {0}."),
    (TypeError, r"(?:getattr\(\): )?attribute name must be string, not '(\w+)'", TypeError,
     "getattr(): attribute name must be string but got: {0}"),
    (TypeError, r".* argument after \* must be an iterable, not (\w+)", _both(TypeError, RuntimeError),
     "The arguments of UnpackCall operator should be tuple, list or dict, but got {0}"),
    (TypeError, r"[\w.<>]+\(\) missing \d+ required positional arguments?: .*", TypeError,
     "The parameters number of the function is larger than the number of provided arguments."),
    (ValueError, r"(?:int|float)\(Tensor\): expected a Tensor of one element, got shape (\(.*\))\.(?s:.*)", ValueError,
     "Can not convert Tensor with more than one element to Scalar, while the data's shape is : {0}. Only one element tensors can be "
     "converted to Python scalars."),
    (ValueError, r"not enough values to unpack \(expected (\d+), got (\d+)\)", _both(ValueError, IndexError),
     "TupleGetItem evaluator index should be in range[-{1}, {1}), but got {1}."),
    (IndexError, r"string index out of range", _both(IndexError, RuntimeError), "String index out of range."),
    (ValueError, r"truth of a Tensor: expected a Tensor of one element, got shape (\(.*\))\.(?s:.*)", ValueError,
     "Only tensor which shape is () or (1,) can be converted to bool, but got tensor shape is {0}"),
)
"""A type, a pattern of Python's text, the type that MindSpore raises, and its text."""
_OURS = ("typeof()", "truth of a Tensor", "int(Tensor)", "float(Tensor)")
"""How messages begin that torchspore's code raises for the program's line."""
_AMBIGUOUS = "The truth value of an array with more than one element is ambiguous."
"""MindSpore's text where the program calls bool(), not where a Tensor decides about a statement."""
_TYPES = {"list": "List", "tuple": "Tuple", "str": "String", "dict": "Dictionary", "int": "Int", "float": "Float"}
"""MindSpore's names of Python's types, where a row names one."""
_CALLS: tuple[tuple[str, str, str], ...] = (
    (r"'(\w+)' object cannot be interpreted as an integer", "range",
     "For 'make_range', the {position}th input should be a int scalar but got AbstractScalar"),
    (r"'float' object cannot be interpreted as an integer", "enumerate", "For 'enumerate', the 'start' should be a const int number."),
    (r"'\w+' object is not iterable", "map", "Map can only be applied to list, tuple"),
    (r"'\w+' object is not iterable", "max", "The object is not iterable."),
    (r"'\w+' object is not iterable", "min", "The object is not iterable."),
    (r"'(\w+)' object is not iterable", "enumerate",
     "For 'enumerate', the 'first input' should be tuple or list or tensor, but got <class '{group}'>"),
)
"""A pattern of a TypeError's text, the function that the user's line calls, and MindSpore's text."""
_SHIFTS = {"<<": "BitLeftShift", ">>": "BitRightShift"}
_IMMEDIATES = {float: "FP32Imm", int: "Int64Imm", bool: "BoolImm", str: "StringImm"}
"""MindSpore's classes of constants, by Python's types."""

_Words = tuple[type[Exception], str] | None


def _shown_immediate(value: Any) -> str:
    return f"{_IMMEDIATES.get(type(value), type(value).__name__)} type value: {value:g}" if isinstance(value, float) else (
        f"{_IMMEDIATES.get(type(value), type(value).__name__)} type value: {value}")


def _index_of_list(trace: TracebackType | None, _: re.Match[str]) -> _Words:
    return _index(trace, list, "list_getitem")


def _index_of_tuple(trace: TracebackType | None, _: re.Match[str]) -> _Words:
    return _index(trace, tuple, "TupleGetItem")


def _index(trace: TracebackType | None, kind: type, operator: str) -> _Words:
    for container, index in line_values.subscripts(trace, kind):
        count = len(container)
        if isinstance(index, int) and not -count <= index < count:
            if not count:
                return _both(IndexError, ValueError), "cannot get item by index from an empty sequence."
            return IndexError, f"{operator} evaluator index should be in range[-{count}, {count}), but got {index}."
    return None


def _set_index_of_list(trace: TracebackType | None, _: re.Match[str]) -> _Words:
    for container, index in line_values.subscripts(trace, list, is_store=True):
        count = len(container)
        if isinstance(index, int) and not -count <= index < count:
            return IndexError, f"list_setitem evaluator the index: {index} to set out of range: [-{count},{count - 1}]."
    return None


def _kind_of_index(_: TracebackType | None, match: re.Match[str]) -> _Words:
    return _both(TypeError, IndexError), f"TupleGetItem evaluator index should be an int64 number, but got {match[1]}."


def _position_in_list(trace: TracebackType | None, _: re.Match[str]) -> _Words:
    for method in ("pop", "insert"):
        for call in line_values.method_calls(trace, method):
            try:
                position = line_values.value_of(call.args[0], trace)
            except (LookupError, IndexError):
                continue
            return TypeError, f"Integer argument expected, but got {_shown_immediate(position)}"
    return None


def _element(trace: TracebackType | None, _: re.Match[str]) -> _Words:
    for call in line_values.method_calls(trace, "index"):
        try:
            return ValueError, f"{line_values.value_of(call.args[0], trace)} is not in the tuple."
        except (LookupError, IndexError):
            continue
    return ValueError, "The element is not in the tuple."


def _extension(trace: TracebackType | None, match: re.Match[str]) -> _Words:
    if line_values.method_calls(trace, "extend"):
        return TypeError, f"For ListInplaceExtend, the second input should be tuple or list but got: {match[1]}"
    if line_values.method_calls(trace, "fromkeys") and match[1] == "int":
        return _both(TypeError, RuntimeError), "For 'dict_fromkeys', the first input should be iterable."
    return None


def _shift(_: TracebackType | None, match: re.Match[str]) -> _Words:
    kinds = [f"type of {name}:{kind}" for name, kind in zip("xy", match.groups()[1:])]
    return TypeError, (f"Unsupported input type. For {_SHIFTS[match[1]]}, only integer types are supported, but got {', '.join(kinds)}")


_READ_FROM_LINE: tuple[tuple[type[Exception], str, Callable[[TracebackType | None, re.Match[str]], _Words]], ...] = (
    (IndexError, r"list index out of range", _index_of_list),
    (IndexError, r"tuple index out of range", _index_of_tuple),
    (IndexError, r"list assignment index out of range", _set_index_of_list),
    (TypeError, r"tuple indices must be integers or slices, not (\w+)", _kind_of_index),
    (TypeError, r"'\w+' object cannot be interpreted as an integer", _position_in_list),
    (TypeError, r"'(\w+)' object is not iterable", _extension),
    (ValueError, r"tuple\.index\(x\): x not in tuple", _element),
    (TypeError, r"unsupported operand type\(s\) for (<<|>>): '(\w+)' and '(\w+)'", _shift),
)
"""A type, a pattern of Python's text, and a function that returns MindSpore's type and text from the user's line."""


def translated(error: Exception) -> Exception | None:
    """Return the error with MindSpore's text and type, and Python's text behind it; None for any other error."""
    text = str(error)
    is_ours = type(error) is RecursionError or text.startswith(_OURS)
    if _is_raised_by_statement(error.__traceback__) or not (is_ours or ends_in_user_code(error)):
        return None
    for kind, pattern, new_kind, words in _ROWS:
        match = re.fullmatch(pattern, text) if type(error) is kind else None
        if match is not None:
            more = unassigned_locals.describe(match[1].strip("'"), error.__traceback__) if kind is UnboundLocalError else ""
            if kind is ValueError and text.startswith("truth of a Tensor"):
                undefined = line_values.undefined_name(error.__traceback__)
                if undefined is not None:                      # MindSpore looks up all names before it runs a statement
                    return _undefined_name(error, *undefined)
                if any(line_values.calls(error.__traceback__, name) for name in ("bool", "max", "min")):
                    words = _AMBIGUOUS
            words = more or words.format(*(_TYPES.get(group, group) for group in match.groups()))
            return _changed(error, new_kind, words, is_located=kind in (NameError, UnboundLocalError))
    for kind, pattern, read in _READ_FROM_LINE:
        match = re.fullmatch(pattern, text) if type(error) is kind else None
        read_words = read(error.__traceback__, match) if match is not None else None
        if read_words is not None:
            return _changed(error, *read_words)
    if type(error) is AttributeError and isinstance(error.obj, tuple) and hasattr(error.obj, "_fields"):
        return _changed(error, AttributeError, f"'NamedTuple' object has no attribute {error.name!r}")
    return _of_call(error, text)


def of_cycle(arguments: Any) -> Exception | None:
    """Return the error of MindSpore for arguments with a list or dict that contains itself; None for others."""
    return RuntimeError("Detect recursion when converting python object.") if _has_cycle(arguments, ()) else None


def _has_cycle(value: Any, outer: tuple[int, ...]) -> bool:
    if not isinstance(value, (list, tuple, dict)):
        return False
    if id(value) in outer:
        return True
    return any(_has_cycle(item, (*outer, id(value))) for item in (value.values() if isinstance(value, dict) else value))


def _of_call(error: Exception, text: str) -> Exception | None:
    """Return a TypeError with MindSpore's text by the function that the line calls; None for any other error."""
    if type(error) is not TypeError:
        return None
    for pattern, function, words in _CALLS:
        match = re.fullmatch(pattern, text)
        calls = line_values.calls(error.__traceback__, function) if match else []
        if match and calls:
            group = match[1] if match.groups() else ""
            return _changed(error, TypeError, words.format(position=_position_of_float(calls[0]), group=group))
    return None


def _undefined_name(error: Exception, name: str, line: int) -> Exception:
    words = f"The name '{name}' is not defined, or not supported in graph mode."
    return NameError(f"{words} {line_values.where(error.__traceback__, line)}").with_traceback(error.__traceback__)


def _is_raised_by_statement(trace: TracebackType | None) -> bool:
    """Return whether a `raise` of the program raised the error: its text is the program's."""
    trace = line_values.innermost(trace)
    if trace is None or not is_user_file(trace.tb_frame.f_code.co_filename):
        return False
    return dis.opname[trace.tb_frame.f_code.co_code[trace.tb_lasti]] in ("RAISE_VARARGS", "RERAISE")


def _changed(error: Exception, kind: type[Exception], words: str, is_located: bool = False) -> Exception:
    position = f" {line_values.where(error.__traceback__)}" if is_located else ""
    changed = kind(f"{words} ({error}){position}").with_traceback(error.__traceback__)
    notes = getattr(error, "__notes__", None)
    if notes:
        changed.__dict__["__notes__"] = list(notes)     # `add_note` exists since Python 3.11
    return changed


def _position_of_float(call: ast.Call) -> int:
    """Return the position of the first argument that is a float; 0 if the line shows none."""
    floats = (at for at, item in enumerate(call.args) if isinstance(item, ast.Constant) and isinstance(item.value, float))
    return next(floats, 0)
