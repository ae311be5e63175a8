"""Tensors of both sides of a conversion, and the recipes that compute one side's values from the other's."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from torchspore.base.checkpoint_file import Entry
from torchspore.base.text import message

Shape = tuple[int, ...]


class Slot(NamedTuple):
    """A tensor of one side.

    `name` is its name in the file, `path` its name in torch's spelling, by which the sides are compared. `is_in_out` is True if a matrix is
    stored as (in, out), as in the Conv1D of Hugging Face, False for (out, in), None if unknown. `aliases` are other names of one memory.
    """

    name: str
    path: str
    shape: Shape
    is_in_out: bool | None = None
    aliases: tuple[str, ...] = ()
    is_buffer: bool = False

    @property
    def dimensions(self) -> Shape:
        """The shape without axes of length 1, which never change the order of values."""
        return tuple(length for length in self.shape if length != 1)

    @property
    def oriented(self) -> Shape:
        """The shape, of a matrix in the order (out, in)."""
        return self.shape[::-1] if self.is_in_out and len(self.shape) == 2 else self.shape

    @property
    def oriented_dimensions(self) -> Shape:
        """These dimensions, of a matrix in the order (out, in)."""
        return self.dimensions[::-1] if self.is_in_out and len(self.dimensions) == 2 else self.dimensions


class Link(NamedTuple):
    """Slots of both sides with the same values: the rows `rows` of MindSpore's, one after the other, are those of torch's."""

    mindspore: tuple[Slot, ...]
    torch: tuple[Slot, ...]
    rows: np.ndarray | None = None


class Recipe(NamedTuple):
    """A tensor to write: rows of tensors that were read. `parts` are (name, is_in_out) of those."""

    slot: Slot
    parts: tuple[tuple[str, bool], ...]
    rows: np.ndarray | slice

    def entries(self, entries: Mapping[str, Entry]) -> list[Entry]:
        """Return the tensor under its name, and under its other names. Raises ValueError for parts of several types."""
        parts = [entries[name] for name, _ in self.parts]
        types = sorted({part.type_name for part in parts})
        if len(types) > 1:
            names = ", ".join(name for name, _ in self.parts)
            raise ValueError(message(f"{names}: tensors of the types {', '.join(types)}", f"one type, for {self.slot.name!r}"))
        slot = self.slot
        matrices = [part.values.reshape(part.shape) for part in parts]
        if len(parts) == 1 and isinstance(self.rows, slice) and self.rows == slice(None) and self.parts[0][1] == bool(slot.is_in_out):
            values = matrices[0]
        else:
            oriented = [_oriented(matrix, is_in_out) for matrix, (_, is_in_out) in zip(matrices, self.parts)]
            values = _oriented((oriented[0] if len(oriented) == 1 else np.concatenate(oriented))[self.rows], bool(slot.is_in_out))
        values = np.ascontiguousarray(values).reshape(slot.shape)
        return [parts[0]._replace(name=name, shape=slot.shape, values=values) for name in (slot.name, *slot.aliases)]


def recipes(links: Iterable[Link], to: str) -> list[Recipe]:
    """Return the recipes of all tensors of the side `to`: "torch" or "mindspore"."""
    written = []
    for link in links:
        sources, targets = (link.mindspore, link.torch) if to == "torch" else (link.torch, link.mindspore)
        parts = tuple((slot.name, bool(slot.is_in_out)) for slot in sources)
        rows = link.rows if link.rows is None or to == "torch" else np.argsort(link.rows)
        start = 0
        for target in targets:
            end = start + rows_of(target)
            is_all = len(targets) == 1 and rows is None
            written.append(Recipe(target, parts, slice(None) if is_all else slice(start, end) if rows is None else rows[start:end]))
            start = end
    return written


def rows_of(slot: Slot) -> int:
    """Return the number of rows of a tensor in the layout (out, in)."""
    return slot.oriented[0] if slot.shape else 1


def check_links(links: Sequence[Link]) -> None:
    """Raises ValueError if the sides of a link have different numbers of values, or a slot occurs twice."""
    seen: dict[tuple[str, str], Slot] = {}
    for link in links:
        names = [", ".join(f"{slot.name!r} {list(slot.shape)}" for slot in side) for side in (link.mindspore, link.torch)]
        if count_values(link.mindspore) != count_values(link.torch) or not _do_columns_match(link):
            raise ValueError(message(f"{names[0]} and {names[1]}", "shapes that fit"))
        for kind, side in (("MindSpore", link.mindspore), ("torch", link.torch)):
            for slot in side:
                if seen.setdefault((kind, slot.name), slot) is not slot:
                    raise ValueError(message(f"{slot.name!r} has two counterparts", "one"))
                seen[kind, slot.name] = slot


def count_values(slots: Iterable[Slot]) -> int:
    """Return the number of values of slots."""
    return sum(int(np.prod(slot.shape, dtype=np.int64)) for slot in slots)


def _do_columns_match(link: Link) -> bool:
    """Return whether the tensors have equal dimensions, once matrices are (out, in); joined tensors need equal rows."""
    dimensions = [slot.oriented_dimensions for slot in (*link.mindspore, *link.torch)]
    if len(dimensions) == 2 and link.rows is None:
        return dimensions[0] == dimensions[1]
    return len({lengths[1:] for lengths in dimensions}) == 1


def _oriented(matrix: np.ndarray, is_in_out: bool) -> np.ndarray:
    """Turn (in, out) into (out, in), or back."""
    return matrix.T if is_in_out and matrix.ndim == 2 else matrix
