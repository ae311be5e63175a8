#!/usr/bin/env python3
"""Makes the pictures of docs/guides/save-graphs.md: runs the guide's program and opens its page in headless Chromium.

    tools/picture_graphs.py             writes docs/guides/images/graphs-*.png
    tools/picture_graphs.py --into DIR  writes them into DIR
"""
from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from browser import chromium  # noqa: E402

WIDTH, HEIGHT, FREQUENT = 1360, 800, 128
GUIDE = ROOT / "docs" / "guides" / "save-graphs.md"


def program() -> str:
    """Return the first program of the guide."""
    match = re.search(r"^```python\n(# graphs\.py\n.*?)^```", GUIDE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert match is not None, f"{GUIDE} has no program graphs.py"
    return match.group(1)


def reduce_colours(path: Path, height: int = HEIGHT) -> None:
    """Reduce the colours of a screenshot to a palette: the most frequent ones, and rare ones that differ most from these."""
    pixels = np.asarray(Image.open(path).convert("RGB")).reshape(-1, 3)
    colours, indices, counts = np.unique(pixels, axis=0, return_inverse=True, return_counts=True)
    palette = list(np.argsort(-counts)[:FREQUENT])
    distances = np.min([np.abs(colours.astype(int) - colours[k]).sum(1) for k in palette], axis=0)
    while len(palette) < min(256, len(colours)):
        palette.append(int(np.argmax(distances)))
        distances = np.minimum(distances, np.abs(colours.astype(int) - colours[palette[-1]]).sum(1))
    nearest = np.argmin([np.abs(colours.astype(int) - colours[k]).sum(1) for k in palette], axis=0).astype(np.uint8)
    image = Image.fromarray(nearest[indices.ravel()].reshape(height, WIDTH), "P")
    image.putpalette(colours[palette].tobytes())
    image.save(path, optimize=True)


def pictures(page: Path, into: Path, browser: chromium.Browser) -> list[Path]:
    """Make the three pictures, in the order in which the guide shows them. Return their paths."""
    browser.open(page.as_uri() + "?theme=light", "document.body && document.body.dataset.ready")
    stage = "app.compilation.stages.findIndex((stage) => stage.title === '04_optimize')"
    gelu = "[...app.panes[0].tree.nodes.values()].find((node) => node.record && node.record.o === 'aten.gelu_backward').id"
    dense = "[...app.panes[0].tree.nodes.values()].find((node) => node.record && node.record.o === 'aten.addmm').id"
    block = "[...app.panes[0].tree.groups.values()].find((group) => group.label === '0-Block' && !group.backward).id"
    steps = [
        ("overview", f"app.openOnly(firstOpen(app.panes[0].tree)); app.toggle({block}, app.panes[0]); app.panes[0].fit()"),
        ("compare", f"app.select(null); app.show(app.panes[0], {stage}); app.compare(); app.select({gelu})"),
        ("dark", f"app.compare(); document.getElementById('theme').click(); app.select({dense})"),
    ]
    paths = []
    for name, action in steps:
        browser.evaluate(action)
        paths.append(into / f"graphs-{name}.png")
        browser.picture(paths[-1])
        reduce_colours(paths[-1])
    return paths


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--into", type=Path, default=GUIDE.parent / "images")
    into = parser.parse_args().into
    browser = chromium.executable()
    if browser is None:
        raise SystemExit("no Chromium is found.\n\nhint: install one (`make browser` on Debian), or name it in CHROMIUM.")
    into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, chromium.browser(browser, WIDTH, HEIGHT) as page:
        (Path(folder) / "graphs.py").write_text(program(), encoding="utf-8")
        subprocess.run([sys.executable, "-m", "torchspore", "run", "graphs.py"], cwd=folder, check=True)
        for path in pictures(Path(folder) / "graphs" / "index.html", into, page):
            print(f"{path}: {path.stat().st_size // 1024} KB")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
