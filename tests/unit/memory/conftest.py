"""Programs that set a limit run by themselves: a limit is for the whole process."""
from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def counted() -> None:
    """The native file that counts memory, built; tests are skipped where there is none."""
    from torchspore.engine.native import allocator

    if allocator.why_not():
        pytest.skip(f"memory is not counted: {allocator.why_not()}")
