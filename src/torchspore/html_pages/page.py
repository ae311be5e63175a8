"""A page: its text, style and scripts, and the data that the scripts show.

The data are JSON in an element that browsers do not execute, and the page's content security policy allows only its own scripts: text
from a trace or a log can't become code. The scripts insert texts only as text.
"""
from __future__ import annotations

import base64
import functools
import hashlib
import html as escaping
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torchspore.translations import translate

_HERE = Path(__file__).parent
_LITERAL = re.compile(r'\btr\(\s*"((?:[^"\\]|\\.)*)"')
_FRAME = """<!DOCTYPE html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src {style_hash}; script-src {script_hash}">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<header><h1>{title}</h1><span id="about"></span><span class="gap"></span><button id="theme" title="{theme_hint}">{theme}</button></header>
<div id="note" role="status" hidden></div>
<main id="main"></main>
<script type="application/json" id="data">{data}</script>
{texts}<script>{script}</script>
</body>
</html>
"""


def html(title: str, data: Any, *scripts: str) -> str:
    """Return the page with these scripts (file names without `.js` in this folder, after `common.js`) and the data that they show."""
    return render_page(title, data, [text_of(f"{name}.js") for name in scripts])


def render_page(title: str, data: Any, scripts: Sequence[str], styles: Sequence[str] = ()) -> str:
    """Return the page with these texts of scripts, after `common.js`, and of styles, after `page.css`."""
    script = "\n".join((text_of("texts.js"), text_of("common.js"), *scripts))
    style = "\n".join(("", text_of("page.css"), *styles))
    texts = translated_texts(script)
    return _FRAME.format(
        title=escaping.escape(title), style=style, style_hash=_hash(style), script=script, script_hash=_hash(script), data=_json(data),
        language=language_of(texts), theme=translate("Theme"), theme_hint=translate("Light or dark"), texts=element_of(texts),
    )


def language_of(texts: dict[str, str]) -> str:
    """Return the language of a page with these translations."""
    return "zh-Hans" if texts else "en"


def element_of(texts: dict[str, str]) -> str:
    """Return the element from which `texts.js` reads the translations; nothing in English."""
    return f'<script type="application/json" id="texts">{_json(texts)}</script>\n' if texts else ""


def translated_texts(script: str) -> dict[str, str]:
    """Return the texts of a script, which are the literals in calls of `tr`, with their translations; none in English."""
    pairs = ((text, translate(text)) for text in literals(script))
    return {text: translation for text, translation in pairs if translation != text}


def literals(script: str) -> list[str]:
    """Return the literal texts in the calls of `tr` in a script."""
    return [json.loads(f'"{text}"') for text in _LITERAL.findall(script)]


def _json(data: Any) -> str:
    """Return JSON that cannot end the element around it; numbers that JSON lacks (nan, inf) become null."""
    return json.dumps(_finite(data), separators=(",", ":"), allow_nan=False).replace("<", "\\u003c").replace(">", "\\u003e")


def _finite(data: Any) -> Any:
    if isinstance(data, float):
        return data if data - data == 0 else None
    if isinstance(data, dict):
        return {str(key): _finite(value) for key, value in data.items()}
    return [_finite(value) for value in data] if isinstance(data, (list, tuple)) else data


@functools.cache
def text_of(name: str) -> str:
    """Return the text of a file of this folder."""
    return (_HERE / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
