"""The browser that the tests of a file share, and the pages that all tests share."""
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import chromium, sample_pages


@pytest.fixture(scope="module")
def browser() -> Iterator[chromium.Browser]:
    program = chromium.executable()
    assert program is not None
    with chromium.browser(program) as opened:
        yield opened


SIZES = {"phone": (390, 844), "desktop": (1400, 900)}


@pytest.fixture(scope="module", params=list(SIZES))
def screen(request: pytest.FixtureRequest) -> Iterator[chromium.Browser]:
    """A browser of the size of a phone, then one of the size of a desktop."""
    program = chromium.executable()
    assert program is not None
    with chromium.browser(program, *SIZES[request.param]) as opened:
        yield opened


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A page of each kind."""
    return sample_pages.write_pages(tmp_path_factory.mktemp("pages"))
