"""The browser that the tests of a file share."""
from __future__ import annotations

from collections.abc import Iterator

import pytest
from browser import chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[chromium.Browser]:
    program = chromium.executable()
    assert program is not None
    with chromium.browser(program) as opened:
        yield opened
