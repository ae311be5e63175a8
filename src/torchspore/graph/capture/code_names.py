"""The names that a function's code contains: of variables, of attributes, and texts that could be names."""
from __future__ import annotations

import dis
import functools
import re
from collections.abc import Iterator
from types import CodeType
from typing import Any


def codes_in(code: CodeType) -> Iterator[CodeType]:
    """A function's code and that of the functions in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes_in(constant)


_ASK_VARIABLES = frozenset(("LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "STORE_NAME", "DELETE_GLOBAL", "DELETE_NAME"))
STORES, IMPORTS = frozenset(("STORE_ATTR",)), frozenset(("IMPORT_NAME",))


@functools.lru_cache(maxsize=4096)
def names_asked_in(code: CodeType, how: frozenset[str] = _ASK_VARIABLES) -> frozenset[str]:
    """Return the names that the instructions of a function, or of a nested function, read; without `how`, the variables of its module."""
    return frozenset(step.argval for inner in codes_in(code) for step in dis.get_instructions(inner) if step.opname in how)


@functools.lru_cache(maxsize=4096)
def assigned_attributes(code: CodeType) -> frozenset[str]:
    """The names of the attributes that a function assigns itself; functions and classes inside it do not count."""
    return frozenset(step.argval for step in dis.get_instructions(code) if step.opname == "STORE_ATTR")


@functools.lru_cache(maxsize=4096)
def attributes_in(code: CodeType) -> frozenset[str]:
    """Return the names in a function and its nested functions that are attributes and nothing else."""
    variables = set(names_asked_in(code))
    for inner in codes_in(code):
        variables.update(constant for constant in inner.co_consts if isinstance(constant, str))
    return frozenset(name for inner in codes_in(code) for name in inner.co_names) - variables


@functools.lru_cache(maxsize=4096)
def chains_in(code: CodeType) -> tuple[tuple[str, ...], ...]:
    """Return the module variables and free variables whose attributes a function reads, with these attributes: `os.path.join`."""
    chains: dict[tuple[str, ...], None] = {}
    for inner in codes_in(code):
        chain: tuple[str, ...] = ()
        for step in dis.get_instructions(inner):
            if step.opname in ("LOAD_ATTR", "LOAD_METHOD") and chain:
                chain = (*chain, step.argval)
                chains[chain] = None
            elif step.opname not in _BETWEEN:
                chain = (step.argval,) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF") else ()
    return tuple(chain for chain in chains if not any(other[:-1] == chain for other in chains))


_BETWEEN = ("EXTENDED_ARG", "CACHE", "PUSH_NULL", "NOP")


@functools.lru_cache(maxsize=4096)
def compared_in(code: CodeType) -> frozenset[str | None]:
    """Return the right operands of `is` in a function and those in it: names of variables of its module; None for anything else.

    What is compared with a constant (by its capitals, too) or with what a call gives is left out, and so are attributes of such variables.
    """
    operands: set[str | None] = set()
    for inner in codes_in(code):
        last: Any = None
        for step in dis.get_instructions(inner):
            if step.opname in _BETWEEN:
                continue
            if step.opname == "IS_OP" and last is not None:
                operands.update(last)
            if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                last = (step.argval,)
            elif step.opname in ("LOAD_ATTR", "LOAD_METHOD"):
                last = (None,) if last == (None,) and not str(step.argval).isupper() else ()
            else:
                last = () if step.opname == "LOAD_CONST" or "CALL" in step.opname else (None,)
    return frozenset(operands)


def names_of(code: CodeType) -> Iterator[str]:
    """The names in a function and in the functions in it, and the texts that could be names."""
    for inner in codes_in(code):
        yield from inner.co_names
        for constant in inner.co_consts:
            if isinstance(constant, str) and len(constant) < 64:
                yield constant
                if "{" in constant and "." in constant:              # "{0.width}".format(self)
                    yield from re.findall(r"\.(\w+)", constant)


@functools.lru_cache(maxsize=4096)
def texts_in(code: CodeType) -> frozenset[str]:
    """The texts in a function, and in the functions in it, that could be names."""
    return frozenset(
        constant for inner in codes_in(code) for constant in inner.co_consts if isinstance(constant, str) and constant.isidentifier()
    )


@functools.lru_cache(maxsize=4096)
def computes_globals(code: CodeType) -> bool:
    """Return whether a function asks `globals()` for unknown names: `globals()["k"]`, `globals().get("k")`, `"k" in globals()`."""
    steps = [step for step in dis.get_instructions(code) if step.opname not in (*_BETWEEN, "PRECALL", "RESUME")]
    for index, step in enumerate(steps):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME") and step.argval == "globals":
            before = steps[index - 1].opname if index else ""
            after = [(step.opname, step.argrepr) for step in steps[index + 1:index + 4]]
            names = ["CALL" if name == "CALL_FUNCTION" else name for name, _ in after]       # Python 3.10's name
            is_item = names[:2] == ["CALL", "LOAD_CONST"] and after[2][0] in ("BINARY_SUBSCR", "BINARY_OP", "STORE_SUBSCR", "DELETE_SUBSCR")
            is_get = names[0] == "CALL" and names[1] in ("LOAD_METHOD", "LOAD_ATTR") and "get" in after[1][1] and names[2] == "LOAD_CONST"
            if not (is_item or is_get or (before == "LOAD_CONST" and names[:2] == ["CALL", "CONTAINS_OP"])):
                return True
    return False
