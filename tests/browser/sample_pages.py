"""A page of each kind that torchspore writes, with long names and hostile numbers."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from browser import nets
from browser.test_figures import events
from browser.test_plan import PROGRAM

from torchspore.graph.save_graphs import page
from torchspore.graph.save_graphs.page import data
from torchspore.html_pages import html, trace
from torchspore.html_pages.curves import Curves

KINDS = ("graph", "trace", "report", "curves", "plan")
LONG = "a/long/name/of/a/training/loss_of_the_second_network_with_a_very_long_tag"


def write_pages(folder: Path) -> dict[str, Path]:
    """Write a page of each kind into the folder."""
    (folder / "trace_view.json").write_text(json.dumps(events(2000)))
    _curves(folder).write(folder / "curves.html")
    texts = {
        "graph": page.html({"root": str(folder), "compilations": [data.of(nets.compilation(60))]}),
        "trace": trace.page(trace.read(folder / "trace_view.json"), folder / "trace_view.json"), "report": _report(),
    }
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    (folder / "net.py").write_text(PROGRAM.replace("EVIL", "'inner'"))
    subprocess.run([sys.executable, "-m", "torchspore", "plan", "--devices", "8", "--html", "plan.html", "net.py"], cwd=folder, check=True,
                   capture_output=True, env=dict(os.environ))
    return {name: folder / f"{name}.html" for name in KINDS}


def _curves(folder: Path) -> Curves:
    curves = Curves("Curves", str(folder))
    for step in range(1, 60):
        curves.scalar(LONG, step, -1.2345e-9 * step)
        curves.scalar("accuracy", step, 1 - 1 / step)
        curves.histogram("weights", step, np.random.RandomState(step).randn(50))
    curves.image("picture", 3, np.ones((3, 8, 8)))
    curves.text("lineage", LONG * 4)
    curves.graph([(f"Default/net-Net/block{n}/{LONG}", "LayerNorm", ["x", "w"], "(2, 16)") for n in range(3)], "the Cells")
    return curves


def _report() -> str:
    options = [{"option": "parameter_broadcast_and_more", "value": "{'jit_level': 'O0'}", "source": "a_program_with_a_name.py:41",
                "outcome": "applied: calls run as captured graphs; a call that no graph can represent runs in parts"}] * 3
    losses = [(step, 1e-7 / step) for step in range(1, 5)]
    return html("Run", {
        "about": "torchspore run " + LONG, "code": 0, "seconds": 3.5, "device": "CPU (64 cores)", "started": "2026-01-01T00:00:00+00:00",
        "steps": 4, "losses": losses, "every": 1, "peak": 2**31, "devicePeaks": {}, "options": options,
        "sections": [{"name": LONG, "lines": [LONG * 3]}], "error": "",
        "facts": [{"section": "environment", "name": "TORCHINDUCTOR_CACHE_DIR", "value": "/a/folder/with/a/long/name" * 3}],
    }, "charts", "report")
