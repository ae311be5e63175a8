"""What unit tests share: both modes, and PyNative again afterwards."""
from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import mindspore as ms
import pytest


@pytest.fixture(params=[ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["pynative", "graph"])
def mode(request: pytest.FixtureRequest) -> Iterator[int]:
    """Runs the test in both modes; PYNATIVE_MODE is what it leaves behind."""
    ms.set_context(mode=request.param)
    yield request.param
    ms.set_context(mode=ms.PYNATIVE_MODE)


@pytest.fixture
def measured_by() -> Iterator[Callable[[Any], None]]:
    """Says who tells how long forms of graphs take, in the place of a clock: `measured_by(measurers.Last())`."""
    from torchspore.graph.backend import measurement

    with contextlib.ExitStack() as stack:
        yield lambda measurer: stack.enter_context(measurement.measured_by(measurer))


@pytest.fixture
def without_kernels() -> Iterator[Any]:
    """No kernel can be generated; gives who was asked for them."""
    from support import kernel_compilers

    from torchspore.graph.backend import inductor

    nobody = kernel_compilers.Without()
    with inductor.compiled_by(nobody):
        yield nobody
