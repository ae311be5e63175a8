"""Kinds of option values: each parses, says what it takes, and knows its type in the stubs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from torchspore.base import text
from torchspore.base.suggest import closest
from torchspore.errors import OptionTypeError, OptionValueError, TorchsporeError

_TRUE = {"1", "true", "on", "yes"}
_FALSE = {"0", "false", "off", "no"}
UINT32 = 2**32 - 1
INT32 = 2**31 - 1
INT64 = 2**63 - 1
_MOST_GB = 1e9


class Wrong(Exception):
    """A value that a kind refuses; the option turns it into the error that the user sees."""

    def __init__(self, error: type[TorchsporeError], expected: str, right: object = None, hint: str | None = None) -> None:
        super().__init__(expected)
        self.error = error
        self.expected = expected
        self.right = right
        self.hint = hint


class Kind:
    """What an option's values are; `none` is the error class for None where the option does not take it."""

    stub = "object"
    none: type[TorchsporeError] = OptionTypeError

    @property
    def read_stub(self) -> str:
        """The type that the getter gives back."""
        return self.stub

    @property
    def expected(self) -> str:
        """Completes the sentence "expected ..."."""
        raise NotImplementedError

    def parse(self, value: object) -> Any:
        """Gives the normalised value, or raises Wrong."""
        raise NotImplementedError

    def parse_text(self, written: str) -> Any:
        """Parses a value that comes from an environment variable."""
        return self.parse(written)

    def wrong_type(self, right: object = None) -> Wrong:
        return Wrong(OptionTypeError, self.expected, right)

    def wrong_value(self, right: object = None, hint: str | None = None) -> Wrong:
        return Wrong(OptionValueError, self.expected, right, hint)

    def refuse_none(self, value: object) -> None:
        if value is None:
            raise Wrong(self.none, self.expected)


class Bool(Kind):
    """True or False; 1 and 0 are no bools (`ints` takes them), and None is False only where MindSpore says so."""

    stub = "bool"

    def __init__(self, none: type[TorchsporeError] | bool = OptionTypeError, ints: bool = False) -> None:
        self.none_is_false = none is False
        self.none = none if isinstance(none, type) else OptionTypeError
        self.ints = ints

    @property
    def expected(self) -> str:
        return "True or False"

    def parse(self, value: object) -> bool:
        if isinstance(value, bool) or (self.ints and isinstance(value, int)):
            return bool(value)
        if value is None and self.none_is_false:
            return False
        self.refuse_none(value)
        right: bool | None = None
        if isinstance(value, int) and value in (0, 1):
            right = bool(value)
        elif isinstance(value, str) and value.lower() in _TRUE | _FALSE:
            right = value.lower() in _TRUE
        raise self.wrong_type(right)

    def parse_text(self, written: str) -> bool:
        word = written.strip().lower()
        if word in _TRUE:
            return True
        if word in _FALSE:
            return False
        raise self.wrong_value()


class Int(Kind):
    """A whole number between two bounds, both included."""

    stub = "int"

    def __init__(self, low: int | None = None, high: int | None = None, unit: str = "", bools: bool = True,
                 outside: type[TorchsporeError] = OptionValueError, without: tuple[int, ...] = (),
                 give: Callable[[int], object] = int, gives: str = "int") -> None:
        self.low, self.high, self.unit, self.bools, self.outside = low, high, unit, bools, outside
        self.without, self.give, self.gives = without, give, gives

    @property
    def read_stub(self) -> str:
        return self.gives

    @property
    def expected(self) -> str:
        return self._range() + "".join(f", not {number}" for number in self.without)

    def _range(self) -> str:
        unit = f" {self.unit}" if self.unit else ""
        if self.low is None and self.high is None:
            return f"an int{unit}"
        if self.high is None or self.high in (UINT32, INT32):
            return f"an int{unit}, {self.low} or more"
        return f"an int{unit} from {self.low} to {self.high}"

    def parse(self, value: object) -> Any:
        if not isinstance(value, int) or (isinstance(value, bool) and not self.bools):
            self.refuse_none(value)
            raise self.wrong_type(self._as_int(value))
        if self.low is not None and value < self.low:
            raise Wrong(self.outside, self.expected, self.low)
        high = INT64 if self.high is None else self.high
        if value > high or value < -high - 1:
            raise Wrong(self.outside, self.expected, high if value > 0 else None)
        if value in self.without:
            raise Wrong(self.outside, self.expected)
        return self.give(value)

    def _as_int(self, value: object) -> int | None:
        if isinstance(value, bool) or (isinstance(value, float) and value.is_integer()):
            return int(value)
        return int(value) if isinstance(value, str) and re.fullmatch(r"-?\d{1,18}", value.strip()) else None

    def parse_text(self, written: str) -> Any:
        number = self._as_int(written)
        if number is None:
            raise self.wrong_value()
        return self.parse(number)


class Float(Kind):
    """A number between two bounds; the upper one is included, the lower one unless it is `above` that. Ints count as floats."""

    stub = "float"

    def __init__(self, low: float, high: float, above: bool = False) -> None:
        self.low, self.high, self.above = low, high, above

    @property
    def expected(self) -> str:
        return f"a number {'above' if self.above else 'from'} {self.low} {'and up ' if self.above else ''}to {self.high}"

    def parse(self, value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.wrong_type()
        if not self.low <= value <= self.high or (self.above and value == self.low):
            raise self.wrong_value()
        return float(value)

    def parse_text(self, written: str) -> float:
        try:
            return self.parse(float(written))
        except ValueError:
            raise self.wrong_value() from None


class Named(Kind):
    """One of a few ints that have names, such as GRAPH_MODE."""

    def __init__(self, names: Mapping[str, int], none: type[TorchsporeError] = OptionTypeError) -> None:
        self.names, self.none = dict(names), none

    @property
    def stub(self) -> str:  # type: ignore[override]
        return f"Literal[{', '.join(str(number) for number in self.names.values())}]"

    @property
    def expected(self) -> str:
        shown = [f"{name} ({number})" for name, number in self.names.items()]
        return ", ".join(shown[:-1]) + " or " + shown[-1]

    def parse(self, value: object) -> int:
        self.refuse_none(value)
        if not isinstance(value, int):
            raise self.wrong_type(self.names.get(value.upper() if isinstance(value, str) else ""))
        if int(value) not in self.names.values():
            raise self.wrong_value()
        return int(value)

    def parse_text(self, written: str) -> int:
        word = written.strip().upper()
        for name, number in self.names.items():
            if word in (name, name.removesuffix("_MODE"), str(number)):
                return number
        raise self.wrong_value()


class Choice(Kind):
    """One of a few words; `reads` gives the value that the getter answers where it is another one."""

    def __init__(self, *words: str, reads: Mapping[str, object] | None = None, also: Mapping[str, str] | None = None,
                 none: type[TorchsporeError] = OptionValueError, no_str: type[TorchsporeError] = OptionTypeError) -> None:
        self.words, self.reads, self.also, self.none, self.no_str = words, dict(reads or {}), dict(also or {}), none, no_str

    @property
    def stub(self) -> str:  # type: ignore[override]
        return f"Literal[{', '.join(repr(word) for word in (*self.words, *self.also))}]"

    @property
    def read_stub(self) -> str:
        if not self.reads:
            return self.stub
        return " | ".join(sorted({type(value).__name__ for value in self.reads.values()}))

    @property
    def expected(self) -> str:
        return text.one_of(self.words)

    def parse(self, value: object) -> Any:
        self.refuse_none(value)
        if not isinstance(value, str):
            raise Wrong(self.no_str, self.expected, self._meant(text.shown_whole(value)))
        word = self.also.get(value, value)
        if word not in self.words:
            raise self.wrong_value(self._meant(value) or closest(value, [word for word in self.words if len(word) > 4]))
        return self.reads.get(word, word)

    def _meant(self, value: str) -> str | None:
        wanted = value.strip().lower()
        if wanted in _TRUE | _FALSE and set(self.words) == {"ON", "OFF"}:
            return "ON" if wanted in _TRUE else "OFF"
        return next((word for word in self.words if word.lower() == wanted), None)

    def parse_text(self, written: str) -> Any:
        word = written.strip()
        return self.parse(word if word in (*self.words, *self.also) else (self._meant(word) or word))


class Size(Kind):
    """An amount of memory such as '3.5GB'; `give` turns the number of GB into what the getter answers."""

    stub = "str"
    _form = re.compile(r"([1-9][0-9]*\.?[0-9]*|0\.[0-9]*)GB")

    def __init__(self, low: float | None = None, high: float | None = None, whole: bool = False,
                 give: Callable[[float], object] = float, gives: str = "float") -> None:
        self.low, self.high, self.whole, self.give, self.gives = low, high, whole, give, gives

    @property
    def read_stub(self) -> str:
        return self.gives

    @property
    def expected(self) -> str:
        shape = "a size in whole GB such as '3GB'" if self.whole else "a size such as '3.5GB'"
        bounds = [f"'{self.low:g}GB' or more" if self.low else "", f"'{self.high:g}GB' or less" if self.high else ""]
        return ", ".join([shape, *(bound for bound in bounds if bound)])

    def parse(self, value: object) -> Any:
        self.refuse_none(value)
        if not isinstance(value, str):
            raise self.wrong_type(f"{value:g}GB" if isinstance(value, (int, float)) and 0 < value < _MOST_GB else None)
        found = self._form.fullmatch(value)
        if found is None:
            raise self.wrong_value(self._repaired(value))
        size = float(found[1])
        if size == 0 or size >= _MOST_GB or (self.whole and not size.is_integer()):
            raise self.wrong_value()
        if (self.low is not None and size < self.low) or (self.high is not None and size > self.high):
            raise self.wrong_value()
        return self.give(size)

    def _repaired(self, value: str) -> str | None:
        found = re.fullmatch(r"\s*0*([1-9][0-9]*(?:\.[0-9]+)?)\s*(?:[gG][bB]?)?\s*", value)
        return f"{found[1]}GB" if found else None


class Str(Kind):
    """Any text."""

    stub = "str"

    def __init__(self, what: str = "a str") -> None:
        self.what = what

    @property
    def expected(self) -> str:
        return self.what

    def parse(self, value: object) -> str:
        if not isinstance(value, str):
            raise self.wrong_type()
        return value


class Among(Kind):
    """One of a few values that are compared, so that 1 passes for True; `bools_only` refuses that with TypeError."""

    def __init__(self, *values: int, give: Callable[[Any], object] | None = None, bools_only: bool = False) -> None:
        self.values, self.give, self.bools_only = values, give, bools_only

    @property
    def stub(self) -> str:  # type: ignore[override]
        return "bool" if isinstance(self.values[0], bool) else f"Literal[{', '.join(map(repr, self.values))}]"

    @property
    def read_stub(self) -> str:
        return "str" if self.give is not None else self.stub

    @property
    def expected(self) -> str:
        return text.one_of(self.values)

    def parse(self, value: object) -> Any:
        if not isinstance(value, (int, float, str)) or value not in self.values:
            raise self.wrong_value()
        if self.bools_only and not isinstance(value, bool):
            raise self.wrong_type(bool(value))
        return value if self.give is None else self.give(value)

    def parse_text(self, written: str) -> Any:
        word = written.strip().lower()
        if isinstance(self.values[0], bool):
            return self.parse(word in _TRUE if word in _TRUE | _FALSE else written)
        return self.parse(int(word) if word.isdigit() else written)
