"""The names that stand in a function: of variables, of attributes, and texts that could be names."""
from __future__ import annotations

import dis
import functools
import re
from collections.abc import Iterator
from types import CodeType


def codes_in(code: CodeType) -> Iterator[CodeType]:
    """A function's code and that of the functions in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes_in(constant)


_ASK_VARIABLES = frozenset(("LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "STORE_NAME", "DELETE_GLOBAL", "DELETE_NAME"))
STORES, IMPORTS = frozenset(("STORE_ATTR",)), frozenset(("IMPORT_NAME",))


@functools.lru_cache(maxsize=4096)
def asked_in(code: CodeType, how: frozenset[str] = _ASK_VARIABLES) -> frozenset[str]:
    """The names that these instructions of a function, or of a function in it, ask for; without `how` its module's variables."""
    return frozenset(step.argval for own in codes_in(code) for step in dis.get_instructions(own) if step.opname in how)


@functools.lru_cache(maxsize=4096)
def attributes_in(code: CodeType) -> frozenset[str]:
    """The names in a function, and in the functions in it, that stand for attributes and for nothing else."""
    variables = set(asked_in(code))
    for own in codes_in(code):
        variables.update(constant for constant in own.co_consts if isinstance(constant, str))
    return frozenset(name for own in codes_in(code) for name in own.co_names) - variables


def names_of(code: CodeType) -> Iterator[str]:
    """The names in a function and in the functions in it, and the texts that could be names."""
    for own in codes_in(code):
        yield from own.co_names
        for constant in own.co_consts:
            if isinstance(constant, str) and len(constant) < 64:
                yield constant
                if "{" in constant and "." in constant:              # "{0.width}".format(self)
                    yield from re.findall(r"\.(\w+)", constant)

