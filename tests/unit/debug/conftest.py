"""What the tests of the recorder and of time-outs share."""
from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def native(own_key: None) -> None:
    """The native watch, built before a program needs it at once."""
    from torchspore.engine.debug import native

    if not native.build():
        pytest.skip(f"no native watch: {native.why_not()}")
