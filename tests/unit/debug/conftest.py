"""What the tests of the recorder and of time-outs share."""
from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session")
def native(private_cache_key: None) -> None:
    """The native watch, built before a program needs it at once."""
    from torchspore.observe.debug import native

    if not native.build():
        pytest.skip(f"no native watch: {native.why_not()}")


@pytest.fixture
def user_texts() -> Iterator[list[str]]:
    """What the user is told."""
    from torchspore.engine.front_end import FRONT

    texts: list[str] = []
    with FRONT.redirecting_warnings(texts.append):
        yield texts
