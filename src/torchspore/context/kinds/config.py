"""Dictionary options, whose members are options of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchspore.context.kinds.plain import Kind, Wrong
from torchspore.errors import OptionKeyError, OptionValueError, TorchsporeError


class Members(Kind):
    """A dictionary whose members are options.

    `needs` names the members that must be there, `merges` says that a new dictionary adds to the old one, `adds` the same where the
    getter answers what was written last (in MindSpore each member is set by itself), `whole` looks at the members together and raises
    Wrong, `unknown` is the error class for a member that there is not.
    """

    stub = "dict[str, Any]"

    def __init__(self, *needs: str, merges: bool = False, adds: bool = False, whole: Callable[[dict[str, Any]], None] | None = None,
                 unknown: type[TorchsporeError] = OptionValueError) -> None:
        self.needs, self.merges, self.adds, self.whole, self.unknown = needs, merges, adds, whole, unknown

    @property
    def expected(self) -> str:
        return "a dict"

    def parse(self, value: object) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self.wrong_type()
        return dict(value)

    def members(self, value: Any) -> dict[str, Any]:
        """Gives the members as written, by name."""
        return dict(value)

    def check(self, value: dict[str, Any]) -> None:
        """Looks at the members together, once each is known to be right."""
        for name in self.needs:
            if name not in value:
                raise Wrong(OptionKeyError, f"a dict with the members {' and '.join(self.needs)}", hint=f"add {name!r}")
        if self.whole is not None:
            self.whole(value)
