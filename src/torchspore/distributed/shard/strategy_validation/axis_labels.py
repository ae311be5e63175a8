"""Axes that may be split together: each axis of an operator's inputs and outputs has a label, and equal labels are split equally."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

Labels = tuple[str, ...]
Shape = tuple[int, ...]
Cuts = Mapping[str, int]

UNCUT = ""
"""The label of an axis that is never split, such as one of length 1 beside a longer one."""
ANY = "*"
"""The label of an axis that stays unsplit whatever the strategy says: MindSpore does not read that number."""


@dataclass(frozen=True)
class Form:
    """The axes of one call of an operator.

    A label that no output has is summed over (or reduced otherwise): splitting it costs a collective. `order` is the order of the grid's
    axes, the major first. `uncut` maps each label that must not be split to the reason; `check` reads all splits together with the number
    of devices, and returns the reason why they do not fit. `scatters` is a summed label along which rows of the output may be split, too.
    """

    inputs: tuple[Labels, ...]
    outputs: tuple[Labels, ...]
    order: Labels
    uncut: Mapping[str, str] = field(default_factory=dict)
    check: Callable[[Cuts, int], str | None] | None = None
    scatters: str | None = None
    written: tuple[tuple[Labels, Shape], ...] | None = None
    """The axes that numbers of a strategy speak of, where these are not the inputs', and how long they are."""
    repeats_first: bool = False
    """True if devices that are left over are the first axis of the grid, not the last."""
    lenient: bool = False
    """True if a strategy that does not fit leaves every input unsplit: MindSpore ignores strategies of such an operator."""
    is_chosen_by_output: bool = False
    """True if an out_strategy chooses this form: it must be the layout of the form's output."""
    shared: frozenset[str] = frozenset()
    """Labels that Layouts may split along axes of the grid that other labels have, too. Such a form has no strategy of numbers."""
    joined: Mapping[str, Labels] = field(default_factory=dict)
    """Labels of outputs that combine several labels, the major first."""

    def spoken(self, shapes: tuple[Shape, ...]) -> tuple[tuple[Labels, Shape], ...]:
        """Return the labels and lengths that the numbers of a strategy refer to, for each of its tuples."""
        return tuple(zip(self.inputs, shapes)) if self.written is None else self.written


@dataclass(frozen=True)
class Call:
    """A call of a primitive: its name, its arguments that are not Tensors by name, and the shapes of its Tensors."""

    name: str
    attributes: Mapping[str, Any]
    shapes: tuple[Shape, ...]

    def get(self, *names: str, default: Any = None) -> Any:
        """Return the first of these arguments that has a value."""
        for name in names:
            if self.attributes.get(name) is not None:
                return self.attributes[name]
        return default

    def axis(self, *names: str, rank: int | None = None, default: Any = None) -> int:
        """Return an argument that names an axis, counted from the front."""
        return int(self.get(*names, default=default)) % max(1, len(self.shapes[0]) if rank is None else rank)

    def __str__(self) -> str:
        return f"{self.name} of shapes {', '.join(map(str, self.shapes))}"


Family = Callable[[Call], Form | tuple[Form, ...]]
"""Gives the form of a call, or several, of which the first that fits counts."""


def on_all_devices(cuts: Cuts, devices: int) -> str | None:
    """Return why these splits do not use every device."""
    used = prod(cuts.values())
    return None if used == devices else f"cuts that use all {devices} devices, got {used}"


def labels(rank: int, letter: str = "d") -> Labels:
    """Return a label for each axis: d0, d1, ..."""
    return tuple(f"{letter}{axis}" for axis in range(rank))
