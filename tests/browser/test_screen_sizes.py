"""Every kind of page on a phone and on a desktop: nothing is wider than the screen, and each label lies inside its container."""
from __future__ import annotations

from pathlib import Path

import pytest
from browser import chromium
from browser.sample_pages import KINDS

pytestmark = chromium.needed

OUTSIDE = """(() => {
  const found = [], near = 1.5, say = (what, text) => found.push(what + ": " + text.slice(0, 60));
  const isIn = (inner, outer) => inner.left >= outer.left - near && inner.right <= outer.right + near && inner.top >= outer.top - near &&
    inner.bottom <= outer.bottom + near;
  if (document.documentElement.scrollWidth > innerWidth) say("document", document.documentElement.scrollWidth + " > " + innerWidth);
  for (const text of document.querySelectorAll("section svg text")) {
    const card = text.closest(".card"), cluster = text.closest(".cluster"), holder = card ? card.querySelector(".body") : cluster
      ? cluster.querySelector("rect") : text.closest("svg");
    const kind = card ? "card" : cluster ? "group" : "chart";
    if (!isIn(text.getBoundingClientRect(), holder.getBoundingClientRect())) say(kind, text.textContent);
  }
  for (const chart of document.querySelectorAll("section > svg, section > div:not(.pane) > svg")) {
    const labels = [...chart.querySelectorAll("text")];
    const scale = (one) => one.getBoundingClientRect().height / one.getBBox().height;
    if (labels.some((one) => parseFloat(getComputedStyle(one).fontSize) * scale(one) < 9)) say("small", labels[0].textContent);
    labels.forEach((one, n) => labels.slice(n + 1).forEach((other) => {
      const a = one.getBoundingClientRect(), b = other.getBoundingClientRect();
      const meet = a.left < b.right && b.left < a.right && a.top + 3 < b.bottom && b.top + 3 < a.bottom;
      if (meet) say("over", one.textContent + " / " + other.textContent);
    }));
  }
  for (const one of document.querySelectorAll("h1, h2, h3, p, td, th, pre, b, small, button, .cards span, .tag")) {
    const isClipped = one.offsetParent && one.scrollWidth > one.clientWidth + 2 && getComputedStyle(one).display !== "inline";
    if (isClipped) say(one.tagName, one.textContent);
  }
  return found;
})()"""


@pytest.mark.parametrize("name", KINDS)
def test_nothing_is_clipped(screen: chromium.Browser, pages: dict[str, Path], name: str) -> None:
    screen.errors.clear()
    screen.open(pages[name].as_uri(), chromium.READY)
    assert screen.evaluate(OUTSIDE) == [] and screen.errors == []


def test_the_graph_can_be_seen_and_read(screen: chromium.Browser, pages: dict[str, Path]) -> None:
    screen.open(pages["graph"].as_uri(), chromium.READY)
    in_view = """[...document.querySelectorAll(".pane")].map((pane) => {
      const seen = pane.querySelector("svg").getBoundingClientRect();
      return [...pane.querySelectorAll(".card text")].filter((text) => {
        const box = text.getBoundingClientRect();
        return box.height >= 9 && box.left >= seen.left && box.right <= seen.right && box.top >= seen.top && box.bottom <= seen.bottom;
      }).length;
    })"""
    assert screen.evaluate(in_view)[0] >= 4
    screen.evaluate("app.compare()")
    counts = screen.evaluate(in_view)
    assert len(counts) == 2 and min(counts) >= 4
    marked = """[...document.querySelectorAll(".pane")].map((pane) => {
      const seen = pane.querySelector("svg").getBoundingClientRect();
      return [...pane.querySelectorAll("[class*='is-']")].some((card) => {
        const box = card.getBoundingClientRect();
        return box.left >= seen.left && box.right <= seen.right && box.top >= seen.top && box.bottom <= seen.bottom;
      });
    })"""
    assert screen.evaluate(marked) == [True, True]
    assert screen.evaluate("document.documentElement.scrollWidth <= innerWidth")
    screen.evaluate("app.panes[0].fit()")
    assert screen.evaluate("""(() => {
      const seen = app.panes[0].canvas.getBoundingClientRect(), box = app.panes[0].world.getBoundingClientRect();
      return box.left >= seen.left - 1 && box.right <= seen.right + 1 && box.top >= seen.top - 1 && box.bottom <= seen.bottom + 1; })()""")


def test_two_fingers_zoom(screen: chromium.Browser, pages: dict[str, Path]) -> None:
    screen.open(pages["graph"].as_uri(), chromium.READY)
    before = screen.evaluate("app.panes[0].view.scale")
    screen.evaluate("""(() => {
      const pane = app.panes[0], box = pane.canvas.getBoundingClientRect(), y = box.top + 80;
      const touch = (kind, id, x, target) => target.dispatchEvent(
        new PointerEvent(kind, { pointerId: id, clientX: box.left + x, clientY: y, bubbles: true }));
      touch("pointerdown", 1, 100, pane.canvas);
      touch("pointerdown", 2, 140, pane.canvas);
      touch("pointermove", 2, 180, window);
      touch("pointerup", 1, 100, window);
      touch("pointerup", 2, 180, window);
    })()""")
    assert screen.evaluate("app.panes[0].view.scale") == pytest.approx(2 * before)
