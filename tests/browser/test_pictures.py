"""The pictures of the documentation: a new one has the size and the text of the one that git has."""
from __future__ import annotations

import shutil
from pathlib import Path

import pictures
import pytest
from browser import chromium


@pytest.mark.slow
@pytest.mark.parametrize("language", pictures.LANGUAGES)
@pytest.mark.parametrize("kind", [
    *(pytest.param(kind, marks=chromium.needed) for kind in ("graphs", "pages")), pytest.param("terminal", marks=pytest.mark.sample),
])
def test_a_new_picture_shows_the_same(kind: str, language: str) -> None:
    assert pictures.check(kind, language) == []


def test_a_difference_is_named(tmp_path: Path) -> None:
    trace, report = (pictures.IMAGES / f"{name}.png" for name in ("trace", "report"))
    assert list(pictures.differences(trace, trace)) == []
    assert any("pixels" in line for line in pictures.differences(report, trace))
    assert any("report.png lacks: " in line for line in pictures.differences(trace, report))
    shutil.copy(trace, tmp_path / "a.png")
    absent = pictures.IMAGES / "absent.png"
    assert list(pictures.differences(tmp_path / "a.png", absent)) == ["docs/guides/images/absent.png is absent"]


def test_numbers_are_not_compared() -> None:
    first, second = (pictures.content(pictures.LANGUAGES[language] / "trace.png") for language in ("en", "zh"))
    assert first[0] == second[0] == (1360, 1080) and first[1] != second[1]
    assert not any(character.isdigit() for line in first[1] if line.endswith(" N") for character in line)
