"""Errors of Python's operators and built-in functions in graph mode, in the words and of the types of MindSpore's compiler."""
from __future__ import annotations

import ast
import dis
import linecache
import re
from types import TracebackType

from torchspore.base.frames import is_user_file
from torchspore.base.tracebacks import ends_in_user_code
from torchspore.graph.report import unassigned_locals


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
    (AttributeError, r"'(list|tuple|str|dict)' object has no attribute ('\w+')", AttributeError, "'{0}' object has no attribute {1}"),
    (TypeError, r"isinstance\(\) arg 2 must be a type.*", TypeError, "isinstance() arg 2 must be a type or tuple of types."),
    (RecursionError, r"maximum recursion depth exceeded.*", RecursionError,
     "Please check the code if it has the infinite recursion or loop."),
    (IndexError, r"pop index out of range", IndexError, "The pop index out of range."),
    (IndexError, r"string index out of range", _both(IndexError, RuntimeError), "String index out of range."),
    (ValueError, r"truth of a Tensor: expected a Tensor of one element, got shape (\(.*\))\.(?s:.*)", ValueError,
     "Only tensor which shape is () or (1,) can be converted to bool, but got tensor shape is {0}"),
)
"""A type, a pattern of Python's text, the type that MindSpore raises, and its text."""
_OURS = ("typeof()", "truth of a Tensor")
"""How messages begin that torchspore's code raises for the program's line."""
_AMBIGUOUS = "The truth value of an array with more than one element is ambiguous."
"""MindSpore's text where the program calls bool(), not where a Tensor decides about a statement."""
_TYPES = {"list": "List", "tuple": "Tuple", "str": "String", "dict": "Dictionary", "int": "Int", "float": "Float"}
"""MindSpore's names of Python's types, where a row names one."""
_CALLS: tuple[tuple[str, str, str], ...] = (
    (r"'(\w+)' object cannot be interpreted as an integer", "range",
     "For 'make_range', the {position}th input should be a int scalar but got AbstractScalar"),
    (r"'\w+' object is not iterable", "map", "Map can only be applied to list, tuple"),
)
"""A pattern of a TypeError's text, the function that the user's line calls, and MindSpore's text."""


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
            if kind is ValueError and text.startswith("truth of a Tensor") and _calls(error.__traceback__, "bool"):
                words = _AMBIGUOUS
            return _changed(error, new_kind, more or words.format(*(_TYPES.get(group, group) for group in match.groups())))
    if type(error) is TypeError:
        for pattern, function, words in _CALLS:
            calls = _calls(error.__traceback__, function) if re.fullmatch(pattern, text) else []
            if calls:
                return _changed(error, TypeError, words.format(position=_position_of_float(calls[0])))
    return None


def _is_raised_by_statement(trace: TracebackType | None) -> bool:
    """Return whether a `raise` of the program raised the error: its text is the program's."""
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or not is_user_file(trace.tb_frame.f_code.co_filename):
        return False
    return dis.opname[trace.tb_frame.f_code.co_code[trace.tb_lasti]] in ("RAISE_VARARGS", "RERAISE")


def _changed(error: Exception, kind: type[Exception], words: str) -> Exception:
    changed = kind(f"{words} ({error})").with_traceback(error.__traceback__)
    notes = getattr(error, "__notes__", None)
    if notes:
        changed.__dict__["__notes__"] = list(notes)     # `add_note` exists since Python 3.11
    return changed


def _calls(trace: TracebackType | None, function: str) -> list[ast.Call]:
    """Return the calls of a built-in function in the innermost line of a traceback."""
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return []
    line = linecache.getline(trace.tb_frame.f_code.co_filename, trace.tb_lineno).strip()
    for source in (line, f"{line} pass", f"{line}\n    pass"):
        try:
            nodes = list(ast.walk(ast.parse(source)))
        except SyntaxError:
            continue
        return [node for node in nodes if isinstance(node, ast.Call) and getattr(node.func, "id", "") == function]
    return []


def _position_of_float(call: ast.Call) -> int:
    """Return the position of the first argument that is a float; 0 if the line shows none."""
    floats = (at for at, item in enumerate(call.args) if isinstance(item, ast.Constant) and isinstance(item.value, float))
    return next(floats, 0)
