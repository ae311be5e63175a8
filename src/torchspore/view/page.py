"""A page: its text, style and scripts, and the data that the scripts show.

The data are JSON in an element that browsers do not run, and the page's content security policy names the only scripts that may: a text
out of a trace or a log can't become code, whatever it holds. The scripts put texts into the page as text alone.
"""
from __future__ import annotations

import base64
import functools
import hashlib
import html as escaping
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent
_FRAME = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src {style_hash}; script-src {script_hash}">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<header><h1>{title}</h1><span id="about"></span><span class="gap"></span><button id="theme" title="Light or dark">Theme</button></header>
<div id="note" role="status" hidden></div>
<main id="main"></main>
<script type="application/json" id="data">{data}</script>
<script>{script}</script>
</body>
</html>
"""


def html(title: str, data: Any, *scripts: str) -> str:
    """The page of these scripts (names of files beside this one, after `common.js`) with the data that they show."""
    return framed(title, data, [_text(f"{name}.js") for name in scripts])


def framed(title: str, data: Any, scripts: Sequence[str], styles: Sequence[str] = ()) -> str:
    """The page of these texts of scripts, after `common.js`, and of styles, after `page.css`."""
    script = "\n".join((_text("common.js"), *scripts))
    style = "\n".join(("", _text("page.css"), *styles))
    return _FRAME.format(
        title=escaping.escape(title), style=style, style_hash=_hash(style), script=script, script_hash=_hash(script), data=_json(data),
    )


def _json(data: Any) -> str:
    """JSON in which nothing ends the element around it; numbers that JSON has not (nan, inf) are null."""
    return json.dumps(_finite(data), separators=(",", ":"), allow_nan=False).replace("<", "\\u003c").replace(">", "\\u003e")


def _finite(data: Any) -> Any:
    if isinstance(data, float):
        return data if data - data == 0 else None
    if isinstance(data, dict):
        return {str(key): _finite(value) for key, value in data.items()}
    return [_finite(value) for value in data] if isinstance(data, (list, tuple)) else data


@functools.cache
def _text(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
