"""Dictionary options, whose members are options themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchspore.context.kinds.plain import Kind, Wrong
from torchspore.errors import OptionKeyError, OptionValueError, TorchsporeError
from torchspore.translations import translate


class Members(Kind):
    """A dictionary whose members are options.

    `needs` names the required members. With `merges` a new dictionary is merged into the old one; with `adds` also, but the getter returns
    the dictionary that was written last (MindSpore sets each member separately). `validate` checks the members together and raises
    Wrong. `unknown` is the error class for an unknown member.
    """

    stub = "dict[str, Any]"

    def __init__(self, *needs: str, merges: bool = False, adds: bool = False, validate: Callable[[dict[str, Any]], None] | None = None,
                 unknown: type[TorchsporeError] = OptionValueError) -> None:
        self.needs, self.merges, self.adds, self.validate, self.unknown = needs, merges, adds, validate, unknown

    @property
    def expected(self) -> str:
        return translate("a dict")

    def parse(self, value: object) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self.wrong_type()
        return dict(value)

    def members(self, value: Any) -> dict[str, Any]:
        """Return the members as written, by name."""
        return dict(value)

    def check(self, value: dict[str, Any]) -> None:
        """Check the members together, after each was checked separately."""
        for name in self.needs:
            if name not in value:
                expected = translate("a dict with the members {names}").format(names=translate(" and ").join(self.needs))
                raise Wrong(OptionKeyError, expected, hint=translate("add {name!r}").format(name=name))
        if self.validate is not None:
            self.validate(value)
