"""Memory that may be the same, as a branch or loop on a Tensor decides: after a write into the one the other is not known."""
from __future__ import annotations

import torch

from torchspore.graph.refusal import Refusal


class Aliases:
    """Pairs of memory of one capture; each with where in the program they came about."""

    def __init__(self) -> None:
        self._pairs: dict[int, tuple[torch.Tensor, dict[int, tuple[torch.Tensor, str | None]]]] = {}

    def add(self, first: torch.Tensor, other: torch.Tensor, line: str | None) -> bool:
        """Record that both may share memory; return whether that is new."""
        if first is other or id(other) in self._of(first):
            return False
        self._of(first)[id(other)] = (other, line)
        self._of(other)[id(first)] = (first, line)
        return True

    def of(self, base: torch.Tensor) -> list[tuple[torch.Tensor, BaseException]]:
        """Return the memory that `base` may share, and the error for reading it after a write into `base`."""
        entry = self._pairs.get(id(base))
        if entry is None:
            return []
        reason = "writes in place into a Tensor that may be one of several, depending on a Tensor, and reads another of them"
        return [(other, Refusal(reason, line)) for other, line in entry[1].values()]

    def _of(self, base: torch.Tensor) -> dict[int, tuple[torch.Tensor, str | None]]:
        return self._pairs.setdefault(id(base), (base, {}))[1]
