"""The pages of traces, runs and trainings in a real browser: they draw what the data say, ask for nothing, and run nothing of it."""
from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from browser import chromium

from torchspore.html_pages import html, trace
from torchspore.html_pages.curves import Curves

pytestmark = chromium.needed
EVIL = "</script><script>window.ran=1</script><img src=x onerror='window.ran=1'><svg onload='window.ran=1'>"


def opened(browser: chromium.Browser, path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    browser.errors.clear()
    browser.open(path.as_uri(), chromium.READY)
    assert browser.errors == [] and not browser.evaluate("window.ran")
    assert browser.evaluate("performance.getEntriesByType('resource').length") == 0            # nothing is asked for


def events(count: int) -> list[dict[str, object]]:
    trace_events: list[dict[str, object]] = [{"ph": "M", "name": "process_name", "pid": 2, "tid": 0, "args": {"name": "CPU OP"}}]
    for number in range(count):
        trace_events.append({"ph": "X", "name": f"Default/fc-Dense/op{number % 50}", "pid": 2, "tid": 0, "ts": str(number * 10), "dur": "8",
                      "cat": "", "args": {"op_type": "MatMul", "phase": "backward" if number % 2 else "forward", "flops": 1000}})
    split = {"data_us": 10, "forward_us": 20, "backward_us": 30, "sync_us": 5, "update_us": 15}
    trace_events += [{"ph": "X", "name": f"step {n}", "cat": "step", "pid": 1, "tid": 0, "ts": str(n * 80), "dur": "80",
               "args": {"step": n, **split}} for n in range(3)]
    trace_events += [{"ph": "C", "name": "memory CPU", "pid": 1, "tid": 0, "ts": str(n), "args": {"bytes": n * 1000}} for n in range(20)]
    return trace_events


def test_a_trace(browser: chromium.Browser, tmp_path: Path) -> None:
    path = tmp_path / "trace_view.json"
    path.write_text(json.dumps(events(100_000)))
    opened(browser, tmp_path / "trace.html", trace.page(trace.read(path), path))
    bars = browser.evaluate("[...document.querySelectorAll('#split rect')].map((bar) => bar.dataset.phase)")
    assert bars == ["data", "forward", "backward", "sync", "update"] * 3
    assert browser.evaluate("document.querySelectorAll('#operators tbody tr').length") == 50
    assert browser.evaluate("document.querySelectorAll('#memory path').length") == 2
    browser.evaluate("(() => { const box = document.querySelector('input'); box.value = 'op7'; box.dispatchEvent(new Event('input')); })()")
    assert browser.evaluate("document.querySelectorAll('#operators tbody tr').length") == 1
    # A click on the timeline tells of the event there; the wheel zooms.
    browser.evaluate("timeline.show(0, 100)")
    browser.evaluate("document.getElementById('timeline').scrollIntoView()")
    place_script = "const b = document.getElementById('timeline').getBoundingClientRect();"
    box = browser.evaluate(f"(() => {{ {place_script} return [b.left, b.top, b.width]; }})()")
    top = browser.evaluate("timeline.rows[[...timeline.found.threads].findIndex((t) => t.name.startsWith('CPU OP'))].top")
    browser.click(box[0] + box[2] * 0.14, box[1] + top + 17 + 5)
    assert browser.evaluate("document.getElementById('event').textContent").startswith("Default/fc-Dense/op1\n8.00 us, backward")
    browser.evaluate("document.getElementById('timeline').dispatchEvent(new WheelEvent('wheel', {deltaY: -1, cancelable: true}))")
    assert browser.evaluate("timeline.last - timeline.first") == pytest.approx(80)


def test_a_hostile_trace_runs_nothing(browser: chromium.Browser, tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps([
        {"ph": "X", "name": EVIL, "pid": EVIL, "tid": EVIL, "ts": 1, "dur": 2, "cat": EVIL, "args": {"op_type": EVIL, "phase": EVIL}},
        {"ph": "M", "name": "process_name", "pid": EVIL, "args": {"name": EVIL}},
        {"ph": "M", "name": "torchspore", "args": {"facts": [EVIL]}}, {"ph": "C", "name": "memory" + EVIL, "ts": 1, "args": {EVIL: 3}},
        {"ph": "X", "name": "s", "cat": "step", "ts": 0, "dur": 1, "args": {"step": EVIL, "data_us": "-1e300", "forward_us": 1e17}},
    ]))
    opened(browser, tmp_path / "t.html", trace.page(trace.read(path), path))
    assert EVIL in browser.evaluate("document.getElementById('main').textContent")


def test_curves_and_a_run(browser: chromium.Browser, tmp_path: Path) -> None:
    curves = Curves(about=EVIL)
    for step in range(50):
        curves.scalar("loss" + EVIL, step, 1 / (step + 1) if step != 7 else float("nan"))
    curves.histogram("weights", 1, np.arange(100.0))
    curves.image("input", 1, np.random.rand(3, 300, 200))
    curves.text("lineage", EVIL)
    curves.graph([(EVIL, EVIL, [EVIL], EVIL)], EVIL)
    curves.write(tmp_path / "c.html")
    opened(browser, tmp_path / "curves.html", (tmp_path / "c.html").read_text(encoding="utf-8"))
    kinds = browser.evaluate("[...document.querySelectorAll('section[data-kind]')].map((one) => one.dataset.kind)")
    assert kinds == ["scalar", "histogram", "image", "graph"]
    assert "1 values are not finite" in browser.evaluate("document.getElementById('main').textContent")
    assert browser.evaluate("document.querySelectorAll('section[data-kind=histogram] rect').length") == 30
    browser.wait("document.querySelector('img').naturalWidth === 67 && document.querySelector('img').naturalHeight === 100")
    run = {"about": EVIL, "code": 1, "seconds": 3.5, "device": EVIL, "started": EVIL, "steps": 2,
           "losses": [[1, 2.0], [2, 1.0]], "every": 1,
           "peak": 1 << 30, "devicePeaks": {EVIL: 5}, "options": [dict.fromkeys(("option", "value", "source", "outcome"), EVIL)],
           "sections": [{"name": EVIL, "lines": [EVIL]}], "error": EVIL, "facts": [{"section": EVIL, "name": EVIL, "value": EVIL}]}
    opened(browser, tmp_path / "report.html", html("Run", run, "charts", "report"))
    assert browser.evaluate("document.querySelectorAll('#options tbody tr').length") == 1
    assert browser.evaluate("document.querySelectorAll('#loss path.curve').length") == 1
