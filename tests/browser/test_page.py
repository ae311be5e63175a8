"""`index.html` in a real browser: it opens fast, selections are linked, and what it leaves out it says."""
from __future__ import annotations

import time
from pathlib import Path

from browser import chromium, nets

from torchspore.graph.save_graphs import page
from torchspore.graph.save_graphs.page import data

pytestmark = chromium.needed
DETAILS = "document.getElementById('details').innerText"


def opened(browser: chromium.Browser, folder: Path, count: int) -> float:
    """Opens the page of a net of so many operators; gives the seconds until it can be used."""
    path = folder / f"{count}.html"
    path.write_text(page.html({"root": str(folder), "compilations": [data.of(nets.compilation(count))]}), encoding="utf-8")
    browser.errors.clear()
    started = time.monotonic()
    browser.open(path.as_uri(), chromium.READY)
    assert browser.evaluate("document.querySelectorAll('.card').length") > 5
    return time.monotonic() - started


def test_a_graph_of_2000_operators_can_be_used_within_3_seconds(browser: chromium.Browser, tmp_path: Path) -> None:
    assert opened(browser, tmp_path, 2000) < 3
    started = time.monotonic()
    browser.evaluate("app.select('relu_back_77')")
    browser.evaluate("app.compare()")
    browser.wait("document.querySelectorAll('.pane').length === 2")
    assert time.monotonic() - started < 3
    assert browser.errors == []


def test_a_graph_of_20000_operators_opens_and_says_what_is_omitted(browser: chromium.Browser, tmp_path: Path) -> None:
    opened(browser, tmp_path, 20_000)
    note = browser.evaluate("document.getElementById('note').hidden ? '' : document.getElementById('note').textContent")
    assert "of 20,000 operators are left out" in note or "operators are left out of this page" in note
    assert "04_optimize_0002.ir holds them all" in note
    assert browser.errors == []


def test_compilations_beyond_the_limit_are_reported(browser: chromium.Browser, tmp_path: Path) -> None:
    entries: list[str] = []

    class Folder:
        root = tmp_path

        def replace(self, name: str, text: str, mode: int) -> bool:
            entries.append(name)
            return bool((tmp_path / name).write_text(text, encoding="utf-8"))

    for _ in range(6):
        page.write(Folder(), nets.compilation(200), most=500)  # type: ignore[arg-type]
    assert len(entries) == 3                                   # two graphs, and once that the others are left out
    browser.open((tmp_path / "index.html").as_uri(), chromium.READY)
    browser.evaluate("app.choose(2)")
    note = browser.evaluate("document.getElementById('note').textContent")
    assert note == f"This page holds 2 compilations. Those from {nets.LINE} on are left out; their .ir files are in {tmp_path}."
    browser.evaluate("app.choose(0)")
    assert browser.evaluate("document.querySelectorAll('.pane .card').length") > 5


def test_stages_are_listed_with_what_they_changed(browser: chromium.Browser, tmp_path: Path) -> None:
    opened(browser, tmp_path, 400)
    stages = browser.evaluate("[...document.querySelectorAll('.stage')].map((one) => one.innerText.replace(/\\s+/g, ' '))")
    assert stages[0] == "00_bootstrap 400 the trace"
    assert stages[1] == "01_type_inference same as 00_bootstrap"
    assert stages[2] == "04_optimize 400 after the passes +5−5~15"


def test_a_click_shows_line_shape_scope_and_share(browser: chromium.Browser, tmp_path: Path) -> None:
    opened(browser, tmp_path, 16)
    centre = browser.evaluate(
        "(() => { const r = document.querySelector('[data-name=mm_1] .body').getBoundingClientRect();"
        " return [r.x + r.width / 2, r.y + 9]; })()",
    )
    browser.click(*centre)
    text = browser.evaluate(DETAILS)
    assert "MatMul" in text and "aten.mm" in text and "Float32 [32, 64]" in text
    assert nets.LINE in text and "Default/net-Net/blocks-SequentialCell/1-Block/dense-Dense/MatMul-op0" in text
    assert "not measured" in text and "blocks.1.weight" in text
    browser.press("Escape")
    assert "Colours" in browser.evaluate("document.getElementById('details').textContent")


def test_a_selection_is_linked_in_both_stages(browser: chromium.Browser, tmp_path: Path) -> None:
    opened(browser, tmp_path, 16)
    browser.press("c")
    browser.evaluate("app.select('relu_1')")
    selected = "[...document.querySelectorAll('.pane')].map((p) => [...p.querySelectorAll('.card.selected')].map((c) => c.dataset.name))"
    assert browser.evaluate(selected) == [["relu_1"], ["relu_1"]]
    browser.evaluate("app.select('mul_0')")
    assert browser.evaluate(selected) == [["mul_0"], []]
    assert "not in 04_optimize" in browser.evaluate(DETAILS)
    assert browser.evaluate("document.querySelector('.pane .card[data-name=mul_0]').classList.contains('is-removed')")
    browser.evaluate("app.select('mm_1')")
    assert "IN 01_TYPE_INFERENCE\n\naten.mm(%mul_0, %w1)" in browser.evaluate(DETAILS)


def test_groups_open_and_shut_and_the_search_finds(browser: chromium.Browser, tmp_path: Path) -> None:
    opened(browser, tmp_path, 2000)
    shut = browser.evaluate("document.querySelectorAll('.card').length")
    browser.evaluate("document.querySelector('.card.group').dispatchEvent(new MouseEvent('click', {bubbles: true}))")
    assert browser.evaluate("document.querySelectorAll('.card').length") > shut
    browser.evaluate("document.getElementById('search').focus()")
    browser.evaluate("document.getElementById('search').value = '137-block/act'; document.getElementById('search').oninput()")
    names_listed = browser.evaluate("[...document.querySelectorAll('#found li')].map((one) => one.innerText)")
    assert len(names_listed) == 2 and "137-Block/act-ReLU/ReLU-op0" in names_listed[0]
    browser.evaluate("document.querySelector('#found li').dispatchEvent(new MouseEvent('mousedown'))")
    assert browser.evaluate("app.selected") == "relu_137"
    assert browser.evaluate("document.querySelector('.card.selected').dataset.name") == "relu_137"


def test_measured_times_are_distinguished_from_estimates(browser: chromium.Browser, tmp_path: Path) -> None:
    compilation = nets.compilation(16)
    compilation.stages[-1].title = "08_execute"
    compilation.times = {call.name: 1e-3 if call.name == "relu_1" else 1e-5 for call in compilation.stages[-1].snapshot.calls}
    (tmp_path / "timed.html").write_text(page.html({"root": "", "compilations": [data.of(compilation)]}), encoding="utf-8")
    browser.open((tmp_path / "timed.html").as_uri(), chromium.READY)
    browser.evaluate("app.select('relu_1')")
    details = browser.evaluate(DETAILS)
    assert "TIME SHARE, MEASURED" in details and "1.00 ms, run by itself" in details
    browser.press("ArrowUp")                                   # another graph, of which nothing was measured
    assert "not measured" in browser.evaluate(DETAILS)


def test_arrows_go_through_the_stages(browser: chromium.Browser, tmp_path: Path) -> None:
    opened(browser, tmp_path, 16)
    browser.press("ArrowUp")
    assert browser.evaluate("document.querySelector('.stage.shown').innerText").startswith("01_type_inference")


def test_the_page_needs_no_network(browser: chromium.Browser, tmp_path: Path) -> None:
    opened(browser, tmp_path, 16)
    assert browser.evaluate("performance.getEntriesByType('resource').length") == 0
