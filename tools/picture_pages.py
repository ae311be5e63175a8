#!/usr/bin/env python3
"""Makes the pictures of the result pages: trains a small net with a profiler, summaries and a report, and opens the pages in Chromium.

    tools/picture_pages.py             writes docs/guides/images/{trace,report,curves}.png
    tools/picture_pages.py --into DIR  writes them into DIR
"""
from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from picture_graphs import ROOT, chromium, reduce_colours

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
WIDTH = 1360
READY = "document.body && document.body.dataset.ready"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--into", type=Path, default=ROOT / "docs" / "guides" / "images")
    into = parser.parse_args().into
    browser = chromium.executable()
    if browser is None:
        raise SystemExit("no Chromium is found.\n\nhint: install one (`make browser` on Debian), or name it in CHROMIUM.")
    into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "train.py").write_text(PROGRAM, encoding="utf-8")
        spore = [sys.executable, "-m", "torchspore"]
        subprocess.run([*spore, "run", "--report", "report", "train.py"], cwd=folder, check=True)
        subprocess.run([*spore, "trace", "view", "profile", "--no-open"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        for name, (where, file, height) in PAGES.items():
            page = next((Path(folder) / where).rglob(file))
            with chromium.browser(browser, WIDTH, height) as window:
                window.open(page.as_uri() + "?theme=light", READY)
                if name == "trace":
                    window.evaluate("const f = timeline.found; timeline.show(f.start, f.start + (f.end - f.start) * 0.4)")
                image = into / f"{name}.png"
                window.picture(image)
            reduce_colours(image, height)
            print(f"{image}: {image.stat().st_size // 1024} KB")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
