"""Tests of graphs that are split run in GRAPH_MODE, and leave the context as they found it."""
from __future__ import annotations

from collections.abc import Iterator

import mindspore as ms
import pytest


@pytest.fixture(autouse=True)
def graph_mode() -> Iterator[None]:
    """GRAPH_MODE for the test; the parallel context is reset after it."""
    before = ms.get_context("mode")
    ms.set_context(mode=ms.GRAPH_MODE)
    yield
    ms.reset_auto_parallel_context()
    ms.set_context(mode=before)
