"""The pictures of the result pages: trains a small net with a profiler, summaries and a report, and opens the pages in Chromium."""
from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from picture_graphs import WIDTH, chromium, take_picture

PROGRAM = """
import mindspore as ms, mindspore.dataset as ds, numpy as np
from mindspore import nn
from mindspore.train import Model, SummaryCollector

ms.set_context(mode=ms.GRAPH_MODE)
ms.set_seed(1)
net = nn.SequentialCell(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten(), nn.Dense(8 * 14 * 14, 10))
random = np.random.RandomState(0)
digits = random.rand(512, 1, 28, 28).astype(np.float32)
for row in range(512):
    digits[row, :, row % 10 * 2 : row % 10 * 2 + 6] += 1

def rows():
    for row in range(512):
        yield digits[row], np.int32(row % 10)

data = ds.GeneratorDataset(rows, ["image", "label"], shuffle=False).batch(32)
model = Model(net, nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean"), nn.Adam(net.trainable_params(), 1e-3))
with SummaryCollector("summary", collect_freq=4) as collector:
    model.train(4, data, callbacks=[collector], dataset_sink_mode=False)
profiler = ms.Profiler(output_path="profile", profile_memory=True)
model.train(1, ds.GeneratorDataset(rows, ["image", "label"], shuffle=False).batch(64), dataset_sink_mode=False)
profiler.analyse()
"""
PAGES = {"trace": ("profile", "trace_view.html", 1080), "report": ("report", "report.html", 800), "curves": ("summary", "curves.html", 800)}
READY = "document.body && document.body.dataset.ready"


def write(into: Path, folder: Path, program_of_browser: str, names: Sequence[str]) -> list[Path]:
    """Train in the folder and write the pictures of the pages. Return their paths."""
    (folder / "train.py").write_text(PROGRAM, encoding="utf-8")
    torchspore = [sys.executable, "-m", "torchspore"]
    subprocess.run([*torchspore, "run", "--report", "report", "train.py"], cwd=folder, check=True)
    subprocess.run([*torchspore, "trace", "view", "profile", "--no-open"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    paths = []
    for name in names:
        where, file, height = PAGES[name]
        page = next((folder / where).rglob(file))
        with chromium.browser(program_of_browser, WIDTH, height) as browser:
            browser.open(page.as_uri() + "?theme=light", READY, 120)
            if name == "trace":
                browser.evaluate("const f = timeline.found; timeline.show(f.start, f.start + (f.end - f.start) * 0.4)")
            paths.append(into / f"{name}.png")
            take_picture(browser, paths[-1], height)
    return paths
