"""Kinds of structured values: lists, nested dictionaries, and texts with a grammar."""

from __future__ import annotations

import itertools
import json
from collections.abc import Collection, Sequence
from typing import Any

from torchspore.base import json_text, text
from torchspore.base.suggest import closest
from torchspore.context.kinds.files import canonical_members
from torchspore.context.kinds.plain import Kind, Wrong
from torchspore.errors import OptionKeyError, OptionTypeError, OptionValueError
from torchspore.translations import translate


class IntList(Kind):
    """A list of increasing ints, such as the indices at which gradients are split into groups."""

    stub = "list[int]"

    @property
    def expected(self) -> str:
        return translate("a list of increasing ints, such as [20, 35]")

    def parse(self, value: object) -> list[int]:
        if not isinstance(value, list):
            raise self.wrong_type(list(value) if isinstance(value, tuple) else None)
        if any(isinstance(item, bool) or not isinstance(item, int) or item < 0 for item in value):
            raise self.wrong_type()  # a negative index is a TypeError in MindSpore
        if not value or any(later <= earlier for earlier, later in itertools.pairwise(value)):
            raise self.wrong_value(sorted(set(value)) or None)
        return list(value)


class DictOf(Kind):
    """A dictionary from names to values of one kind; with `as_text` the getter returns it as JSON text."""

    stub = "dict[str, Any]"

    def __init__(self, item: Kind, names: Sequence[str] = (), as_text: bool = False) -> None:
        self.item, self.names, self.as_text = item, names, as_text

    @property
    def read_stub(self) -> str:
        return "str" if self.as_text else self.stub

    @property
    def expected(self) -> str:
        keys = text.list_choices(self.names) if self.names else translate("names")
        return translate("a dict from {keys} to {values}").format(keys=keys, values=self.item.expected)

    def parse(self, value: object) -> Any:
        if not isinstance(value, dict):
            raise self.wrong_type()
        for name, item in value.items():
            if not isinstance(name, str):
                raise self.wrong_type()
            if self.names and name not in self.names:
                raise self.wrong_value()
            try:
                self.item.parse(item)
            except Wrong as wrong:
                raise Wrong(wrong.error, self.expected) from None
        return json.dumps(value) if self.as_text else dict(value)


class Fusion(Kind):
    """How one kind of collective is fused: {'mode': ..., 'config': ...}."""

    stub = "dict[str, Any]"

    def __init__(self, *modes: str) -> None:
        self.modes = modes

    @property
    def expected(self) -> str:
        expected = translate("a dict such as {{'mode': 'size', 'config': 32}}, with mode {modes}")
        return expected.format(modes=text.list_choices(self.modes))

    def parse(self, value: object) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self.wrong_type()
        if "mode" not in value or "config" not in value or value["mode"] not in self.modes:
            raise Wrong(OptionKeyError, self.expected)
        config = value["config"]
        if value["mode"] == "index":
            IntList().parse(config)
        if value["mode"] == "size":
            hint = translate("write {word}").format(word="{'mode': 'size', 'config': 32}")
            if isinstance(config, bool) or not isinstance(config, (int, float)):
                raise Wrong(OptionTypeError, translate("a size in MB as config"), hint=hint)
            if config < 0:
                raise Wrong(OptionValueError, translate("a size in MB, 0 or more, as config"), hint=hint)
        return {"mode": value["mode"], "config": config}


class DatasetStrategy(Kind):
    """How a dataset's outputs are split: a word, or for each output a tuple with the number of parts of each axis, or a Layout."""

    stub = "Literal['data_parallel', 'full_batch'] | tuple[tuple[int, ...], ...] | tuple[Any, ...]"

    @property
    def read_stub(self) -> str:
        return "str | list[list[int]] | tuple[Any, ...]"

    @property
    def expected(self) -> str:
        return translate("'data_parallel', 'full_batch', or a tuple of Layouts or of tuples of ints such as ((8, 1), (8, 1))")

    def parse(self, value: object) -> Any:
        if isinstance(value, str):
            if value not in ("data_parallel", "full_batch"):
                raise self.wrong_value()
            return value
        if not isinstance(value, tuple):
            raise self.wrong_type()
        if value and all(hasattr(layout, "to_dict") for layout in value):
            try:
                for layout in value:
                    layout.to_dict()
            except ValueError:                                       # it was not called with the names of axes
                raise self.wrong_value() from None
            return value
        for cuts in value:
            if not isinstance(cuts, tuple) or any(isinstance(cut, bool) or not isinstance(cut, int) for cut in cuts):
                raise self.wrong_type()
        return [list(cuts) for cuts in value]


class Overlap(Kind):
    """The collectives that overlap with computing: a comma-separated text, or a bool for all or none."""

    stub = "str | bool"

    def __init__(self, *words: str, bools: bool = True) -> None:
        self.words, self.bools = words, bools

    @property
    def expected(self) -> str:
        expected = (translate("comma-separated names out of {words}, or a bool") if self.bools
                    else translate("comma-separated names out of {words}"))
        return expected.format(words=", ".join(self.words))

    def parse(self, value: object) -> Any:
        if self.bools and isinstance(value, bool):
            return value
        if not isinstance(value, str):
            raise self.wrong_type()
        if value and not {word.strip() for word in value.split(",")} <= set(self.words):
            raise self.wrong_value()
        return value


class Profiling(Kind):
    """The profiled data: a JSON object as text, or some of three names, joined by ':' or ',' or as the text of a list."""

    stub = "str"

    def __init__(self, words: Sequence[str], other_names: dict[str, str], members: Collection[str]) -> None:
        self.words, self.other_names, self.member_names = words, other_names, members

    @property
    def expected(self) -> str:
        expected = translate("a JSON text such as '{{\"output\": \"data\", \"training_trace\": \"on\"}}', or {words}")
        return expected.format(words=text.list_choices(self.words))

    def parse(self, value: object) -> str:
        if not isinstance(value, str):
            raise self.wrong_type()
        self.members(value)
        return value

    def members(self, value: str) -> dict[str, Any]:
        """Return the settings by member; a plain name switches one on."""
        if not value.lstrip().startswith("{"):
            names = [name for name in value.strip("[] ").replace("'", "").replace('"', "").replace(":", ",").split(",") if name]
            unknown = [name.strip() for name in names if name.strip() not in self.words]
            if not names or unknown:
                raise self.wrong_value(closest(unknown[0], self.words) if unknown else None)
            return {name.strip(): "on" for name in names}
        try:
            content = json_text.parse(value)
        except ValueError as error:
            raise self.wrong_value(hint=translate("the text is not JSON: {error}").format(error=error)) from None
        members = canonical_members(content.items(), self.other_names, self.expected)
        for name in members:
            if name not in self.member_names:
                near = closest(name, self.member_names)
                hint = (translate("there is no {name} in it; did you mean {near!r}?") if near else translate("there is no {name} in it"))
                raise self.wrong_value(hint=hint.format(name=text.short(name), near=near))
        return members
