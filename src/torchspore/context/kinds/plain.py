"""Kinds of option values: each parses a value, describes the accepted values, and names its type in the stubs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from torchspore.base import text
from torchspore.base.suggest import closest
from torchspore.errors import OptionTypeError, OptionValueError, TorchsporeError
from torchspore.translations import translate

_TRUE = {"1", "true", "on", "yes"}
_FALSE = {"0", "false", "off", "no"}
UINT32 = 2**32 - 1
INT32 = 2**31 - 1
INT64 = 2**63 - 1
_MOST_GB = 1e9


class Wrong(Exception):
    """Raised for a value that a kind refuses; the option converts it to the error that the user sees."""

    def __init__(self, error: type[TorchsporeError], expected: str, right: object = None, hint: str | None = None) -> None:
        super().__init__(expected)
        self.error = error
        self.expected = expected
        self.right = right
        self.hint = hint


class Kind:
    """A kind of option values; `none` is the error class for None if the option does not accept it."""

    stub = "object"
    none: type[TorchsporeError] = OptionTypeError

    @property
    def read_stub(self) -> str:
        """The type that the getter returns."""
        return self.stub

    @property
    def expected(self) -> str:
        """Completes the sentence "expected ..."."""
        raise NotImplementedError

    def parse(self, value: object) -> Any:
        """Return the normalised value, or raise Wrong."""
        raise NotImplementedError

    def parse_text(self, raw: str) -> Any:
        """Parse a value that comes from an environment variable."""
        return self.parse(raw)

    def wrong_type(self, right: object = None) -> Wrong:
        return Wrong(OptionTypeError, self.expected, right)

    def wrong_value(self, right: object = None, hint: str | None = None) -> Wrong:
        return Wrong(OptionValueError, self.expected, right, hint)

    def refuse_none(self, value: object) -> None:
        if value is None:
            raise Wrong(self.none, self.expected)


class Bool(Kind):
    """True or False; 1 and 0 are accepted only with `ints`, and None means False only if `none` is False, as in MindSpore."""

    stub = "bool"

    def __init__(self, none: type[TorchsporeError] | bool = OptionTypeError, ints: bool = False) -> None:
        self.none_is_false = none is False
        self.none = none if isinstance(none, type) else OptionTypeError
        self.ints = ints

    @property
    def expected(self) -> str:
        return translate("True or False")

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

    def parse_text(self, raw: str) -> bool:
        word = raw.strip().lower()
        if word in _TRUE:
            return True
        if word in _FALSE:
            return False
        raise self.wrong_value()


class Int(Kind):
    """An integer between two inclusive bounds."""

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
        return self._range() + "".join(translate(", not {number}").format(number=number) for number in self.without)

    def _range(self) -> str:
        if self.low is None and self.high is None:
            text = translate("an int{unit}")
        elif self.high is None or self.high in (UINT32, INT32):
            text = translate("an int{unit}, {low} or more")
        else:
            text = translate("an int{unit} from {low} to {high}")
        return text.format(
            unit=translate(" {unit}").format(unit=translate(self.unit)) if self.unit else "", low=self.low, high=self.high)

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

    def parse_text(self, raw: str) -> Any:
        number = self._as_int(raw)
        if number is None:
            raise self.wrong_value()
        return self.parse(number)


class Float(Kind):
    """A number between two bounds; the upper one is inclusive, and so is the lower one unless `above`. Ints count as floats."""

    stub = "float"

    def __init__(self, low: float, high: float, above: bool = False) -> None:
        self.low, self.high, self.above = low, high, above

    @property
    def expected(self) -> str:
        text = translate("a number above {low} and up to {high}") if self.above else translate("a number from {low} to {high}")
        return text.format(low=self.low, high=self.high)

    def parse(self, value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.wrong_type()
        if not self.low <= value <= self.high or (self.above and value == self.low):
            raise self.wrong_value()
        return float(value)

    def parse_text(self, raw: str) -> float:
        try:
            return self.parse(float(raw))
        except ValueError:
            raise self.wrong_value() from None


class Named(Kind):
    """One of a few named ints, such as GRAPH_MODE."""

    def __init__(self, names: Mapping[str, int], none: type[TorchsporeError] = OptionTypeError) -> None:
        self.names, self.none = dict(names), none

    @property
    def stub(self) -> str:  # type: ignore[override]
        return f"Literal[{', '.join(str(number) for number in self.names.values())}]"

    @property
    def expected(self) -> str:
        return text.join_choices([f"{name} ({number})" for name, number in self.names.items()])

    def parse(self, value: object) -> int:
        self.refuse_none(value)
        if not isinstance(value, int):
            raise self.wrong_type(self.names.get(value.upper() if isinstance(value, str) else ""))
        if int(value) not in self.names.values():
            raise self.wrong_value()
        return int(value)

    def parse_text(self, raw: str) -> int:
        word = raw.strip().upper()
        for name, number in self.names.items():
            if word in (name, name.removesuffix("_MODE"), str(number)):
                return number
        raise self.wrong_value()


class Choice(Kind):
    """One of a few words; `reads` maps words to the value that the getter returns instead."""

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
        return text.list_choices(self.words)

    def parse(self, value: object) -> Any:
        self.refuse_none(value)
        if not isinstance(value, str):
            raise Wrong(self.no_str, self.expected, self._closest_word(text.show_full(value)))
        word = self.also.get(value, value)
        if word not in self.words:
            raise self.wrong_value(self._closest_word(value) or closest(value, [word for word in self.words if len(word) > 4]))
        return self.reads.get(word, word)

    def _closest_word(self, value: str) -> str | None:
        word_lower = value.strip().lower()
        if word_lower in _TRUE | _FALSE and set(self.words) == {"ON", "OFF"}:
            return "ON" if word_lower in _TRUE else "OFF"
        return next((word for word in self.words if word.lower() == word_lower), None)

    def parse_text(self, raw: str) -> Any:
        word = raw.strip()
        return self.parse(word if word in (*self.words, *self.also) else (self._closest_word(word) or word))


class Size(Kind):
    """An amount of memory such as '3.5GB'; `give` converts the number of GB to the value that the getter returns."""

    stub = "str"
    _form = re.compile(r"([1-9][0-9]*\.?[0-9]*|0\.[0-9]*)GB")

    def __init__(self, low: float | None = None, high: float | None = None, is_integral: bool = False,
                 give: Callable[[float], object] = float, gives: str = "float") -> None:
        self.low, self.high, self.is_integral, self.give, self.gives = low, high, is_integral, give, gives

    @property
    def read_stub(self) -> str:
        return self.gives

    @property
    def expected(self) -> str:
        parts = [translate("a size in whole GB such as '3GB'") if self.is_integral else translate("a size such as '3.5GB'")]
        if self.low:
            parts.append(translate("'{low:g}GB' or more").format(low=self.low))
        if self.high:
            parts.append(translate("'{high:g}GB' or less").format(high=self.high))
        return translate(", ").join(parts)

    def parse(self, value: object) -> Any:
        self.refuse_none(value)
        if not isinstance(value, str):
            raise self.wrong_type(f"{value:g}GB" if isinstance(value, (int, float)) and 0 < value < _MOST_GB else None)
        match = self._form.fullmatch(value)
        if match is None:
            raise self.wrong_value(self._repaired(value))
        size = float(match[1])
        if size == 0 or size >= _MOST_GB or (self.is_integral and not size.is_integer()):
            raise self.wrong_value()
        if (self.low is not None and size < self.low) or (self.high is not None and size > self.high):
            raise self.wrong_value()
        return self.give(size)

    def _repaired(self, value: str) -> str | None:
        match = re.fullmatch(r"\s*0*([1-9][0-9]*(?:\.[0-9]+)?)\s*(?:[gG][bB]?)?\s*", value)
        return f"{match[1]}GB" if match else None


class Str(Kind):
    """Any text."""

    stub = "str"

    def __init__(self, what: str = "a str") -> None:
        self.description = what

    @property
    def expected(self) -> str:
        return translate(self.description)

    def parse(self, value: object) -> str:
        if not isinstance(value, str):
            raise self.wrong_type()
        return value


class Among(Kind):
    """One of a few values, compared by ==, so that 1 passes for True; `bools_only` refuses it with a TypeError."""

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
        return text.list_choices(self.values)

    def parse(self, value: object) -> Any:
        if not isinstance(value, (int, float, str)) or value not in self.values:
            raise self.wrong_value()
        if self.bools_only and not isinstance(value, bool):
            raise self.wrong_type(bool(value))
        return value if self.give is None else self.give(value)

    def parse_text(self, raw: str) -> Any:
        word = raw.strip().lower()
        if isinstance(self.values[0], bool):
            return self.parse(word in _TRUE if word in _TRUE | _FALSE else raw)
        return self.parse(int(word) if word.isdigit() else raw)
