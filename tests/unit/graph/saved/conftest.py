"""A folder that graphs are saved in, and graph mode, for a test."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import mindspore as ms
import pytest

Saving = Callable[..., Path]


@pytest.fixture
def saving(tmp_path: Path) -> Iterator[Saving]:
    """Turns on GRAPH_MODE and `save_graphs` at a level; gives the folder. Other options may be set with it."""

    def start(level: object, **options: object) -> Path:
        folder = tmp_path / "graphs"
        ms.set_context(mode=ms.GRAPH_MODE, save_graphs=level, save_graphs_path=str(folder), **options)
        return folder

    yield start
    ms.set_context(
        mode=ms.PYNATIVE_MODE, save_graphs=0, save_graphs_path=".", reserve_class_name_in_scope=True, debug_level=ms.RELEASE,
        jit_config={"jit_level": "O0"},
    )
    ms.set_context(jit_config={}, jit_syntax_level=ms.LAX)
