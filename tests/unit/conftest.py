"""What unit tests share: both modes, and PyNative again afterwards."""
from __future__ import annotations

from collections.abc import Iterator

import mindspore as ms
import pytest


@pytest.fixture(params=[ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["pynative", "graph"])
def mode(request: pytest.FixtureRequest) -> Iterator[int]:
    """Runs the test in both modes; PYNATIVE_MODE is what it leaves behind."""
    ms.set_context(mode=request.param)
    yield request.param
    ms.set_context(mode=ms.PYNATIVE_MODE)
