"""The record of a finished compilation: its stages, and the times of its operators."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from torchspore.graph.save_graphs.snapshot import Snapshot


@dataclass
class Stage:
    """A stage of a compilation, for the page: `same_as` is the index of the stage that shows the same graph."""

    title: str
    about: str
    file: str
    snapshot: Snapshot
    duplicate_of: int | None = None
    part: str = ""


@dataclass
class Compilation:
    """All that the page shows of one compilation."""

    name: str
    line: str
    settings: Mapping[str, str]
    stages: list[Stage] = field(default_factory=list)
    seconds: float = 0.0
    times: dict[str, float] = field(default_factory=dict)
    """The measured seconds of the operators that run, by their names; empty without measurements."""
