"""`index.html`: all compilations of this process in one self-contained file that a browser opens without a network."""
from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

from torchspore.graph.save_graphs.compilation_record import Compilation
from torchspore.graph.save_graphs.folder import Folder
from torchspore.graph.save_graphs.page.data import of
from torchspore.html_pages import page as html_page
from torchspore.translations import translatable, translate

MOST = 60_000
"""So many records of operators the page holds in all; of compilations beyond it says that their files tell the rest."""

_HERE = Path(__file__).parent
# dagre (MIT) lays out layered graphs with groups in 49 KB and synchronously; elkjs does it too in 1.6 MB, under the EPL.
DRAWING = ("dagre.min.js", "tree.js", "layout.js", "pane.js")
"""The scripts that draw a graph, for other pages too; their style is `drawing.css`."""
_SCRIPTS = (*DRAWING, "details.js", "main.js")
_LABELS = (
    translatable("Saved graphs"), translatable("Compilation"), translatable("Find an operator, line or scope  (/)"),
    translatable("Two stages side by side (c)"), translatable("Compare"), translatable("Light or dark"), translatable("Theme"),
    translatable("Stages"), translatable("Selection"),
)
"""The texts of `page.html`, which has each between two `@`."""
_compilations: dict[Path, list[dict[str, Any]]] = {}


def write(folder: Folder, compilation: Compilation, most: int = MOST) -> None:
    """Rewrite the page with one more compilation in it, if it then contains at most `most` operators."""
    compilations = _compilations.setdefault(folder.root, [])
    data = of(compilation)
    if compilations and "left_out" in compilations[-1]:
        return
    if sum(len(other["records"]) for other in compilations) + len(data["records"]) > most:
        data = {**data, "name": translate("later graphs"), "records": [], "sources": {}, "stages": [], "left_out": True}
    compilations.append(data)
    folder.replace("index.html", html({"root": str(folder.root), "compilations": compilations}), 0o600)


def html(data: dict[str, Any]) -> str:
    """The page for this data."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("</", "<\\/").replace("<!--", "<\\!--")
    before, after = _page(translate(_LABELS[0])).split("@data@")
    return before + text + after


@functools.cache
def _page(title: str) -> str:
    """The page without its data, in the language of the title."""
    files = (html_page.text_of("texts.js"), *map(text_of, _SCRIPTS))
    texts = html_page.translated_texts("\n".join(files))
    page = text_of("page.html").replace("@language@", html_page.language_of(texts)).replace("@texts@", html_page.element_of(texts))
    for label in _LABELS:
        page = page.replace(f"@{label}@", translate(label))
    scripts = "".join(f"<script>\n{text}\n</script>\n" for text in files)
    return page.replace("@style@", text_of("page.css") + text_of("drawing.css")).replace("@scripts@", scripts)


def text_of(name: str) -> str:
    """A file of this folder."""
    return (_HERE / name).read_text(encoding="utf-8")
