"""Our pages and the start pages of the site, by the rules of axe-core: no violation that is serious or critical."""
from __future__ import annotations

from pathlib import Path

import pytest
from browser import axe, chromium
from browser.sample_pages import KINDS

pytestmark = [chromium.needed, pytest.mark.needs(axe.PACKAGE)]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_page(screen: chromium.Browser, pages: dict[str, Path], kind: str, theme: str) -> None:
    screen.open(f"{pages[kind].as_uri()}?theme={theme}", chromium.READY)
    assert axe.violations(screen) == []


def test_a_violation_is_reported(screen: chromium.Browser, tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text("<html lang='en'><title>A</title><main><h1>A</h1><img src='a.png'></main></html>")
    screen.open((tmp_path / "a.html").as_uri(), "document.readyState == 'complete'")
    assert [line.partition(":")[0] for line in axe.violations(screen)] == ["image-alt (critical)"]


def test_the_keyboard_opens_a_group(screen: chromium.Browser, pages: dict[str, Path]) -> None:
    screen.open(pages["graph"].as_uri(), chromium.READY)
    count = "document.querySelectorAll('.cluster').length"
    before = screen.evaluate(count)
    screen.evaluate("document.querySelector('.card.group').focus()")
    name = screen.evaluate("document.activeElement.dataset.name")
    screen.press("Enter")
    assert screen.evaluate(count) > before and screen.evaluate("document.activeElement.dataset.name") == name
    screen.press("Enter")
    assert screen.evaluate(count) == before and screen.evaluate("document.activeElement.dataset.name") == name


def test_the_keyboard_sorts_a_table_and_moves_the_timeline(screen: chromium.Browser, pages: dict[str, Path]) -> None:
    screen.open(pages["trace"].as_uri(), chromium.READY)
    screen.evaluate("document.querySelectorAll('#operators th button')[3].click()")
    assert screen.evaluate("document.querySelectorAll('#operators th')[3].getAttribute('aria-sort')") == "descending"
    screen.evaluate("timeline.canvas.focus()")
    before = screen.evaluate("timeline.last - timeline.first")
    screen.press("+")
    assert screen.evaluate("timeline.last - timeline.first") == pytest.approx(0.8 * before)


def test_a_chart_has_a_text(screen: chromium.Browser, pages: dict[str, Path]) -> None:
    screen.open(pages["trace"].as_uri(), chromium.READY)
    labels = "[...document.querySelectorAll('svg[role=img]')].map((chart) => chart.getAttribute('aria-label'))"
    assert screen.evaluate(labels) == [
        "waits for data 12.5%, forward 25.0%, backward 37.5%, gradient sync 6.3%, update 18.8%",
        "curve: first 0 B, last 18.6 KiB, smallest 0 B, largest 18.6 KiB",
    ]
