"""The pictures of docs/guides/save-graphs.md: runs the guide's program and opens its page in headless Chromium."""
from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
from PIL import Image, PngImagePlugin

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


def shown_words(browser: chromium.Browser) -> str:
    """Return the lines of text on a page in alphabetical order, each once, with N for each number and its unit."""
    numbers = re.compile(r"[-+]?\d[\d.,]*(e[-+]\d+)?( ?(ns|µs|us|ms|s|B|KB|MB|KiB|MiB|GiB|%|字节)\b)?")
    lines = browser.evaluate("document.body.innerText").splitlines()
    return "\n".join(sorted({numbers.sub("N", " ".join(line.split())) for line in lines if line.strip()}))


def take_picture(browser: chromium.Browser, path: Path, height: int = HEIGHT) -> None:
    """Save what the window shows, with few colours and with the text of the page, which `tools/pictures.py --check` compares."""
    words = shown_words(browser)
    browser.picture(path)
    reduce_colours(path, height, words)


def reduce_colours(path: Path, height: int, words: str) -> None:
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
    text = PngImagePlugin.PngInfo()
    text.add_itxt("Content", words, zip=True)
    image.save(path, optimize=True, pnginfo=text)


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
        take_picture(browser, paths[-1])
    return paths


def write(into: Path, folder: Path, program_of_browser: str) -> list[Path]:
    """Run the program in the folder and write the pictures of its page. Return their paths."""
    (folder / "graphs.py").write_text(program(), encoding="utf-8")
    subprocess.run([sys.executable, "-m", "torchspore", "run", "graphs.py"], cwd=folder, check=True)
    with chromium.browser(program_of_browser, WIDTH, HEIGHT) as browser:
        return pictures(folder / "graphs" / "index.html", into, browser)
