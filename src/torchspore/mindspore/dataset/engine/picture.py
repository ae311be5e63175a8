"""A pipeline as a picture for notebooks: a box for each source and step with its arguments, and arrows between them.

Self-contained HTML: no script, no style sheet, no file. It uses the page's colours, light or dark.
"""
from __future__ import annotations

from html import escape
from typing import Any

from torchspore.mindspore.dataset.core.operation import TensorOperation
from torchspore.mindspore.dataset.engine import descriptions
from torchspore.mindspore.dataset.engine.dataset import Dataset

_MOST_BOXES = 60
_ROW = "display:flex;flex-wrap:wrap;align-items:center;gap:4px"
_COLUMN = "display:flex;flex-direction:column;gap:8px;border-right:2px solid;padding-right:6px"
_BOX = "border:1px solid;border-radius:6px;padding:4px 10px;max-width:26em;overflow-wrap:anywhere"
_SMALL = "font-size:85%;opacity:.75"
_ARROW = (
    '<svg width="24" height="12" viewBox="0 0 24 12" aria-hidden="true">'
    '<path d="M1 6h20M16 1l6 5-6 5" fill="none" stroke="currentColor" stroke-width="1.5"/></svg>'
)


def picture(dataset: Dataset) -> str:
    """Return the HTML of a pipeline; of one with more than 60 boxes, the last ones."""
    return f'<div class="torchspore-pipeline" style="font:13px/1.4 sans-serif">{_Picture().pipeline(dataset)}</div>'


class _Picture:
    def __init__(self) -> None:
        self._remaining_boxes = _MOST_BOXES

    def pipeline(self, dataset: Dataset) -> str:
        """Return the HTML from the sources to the last step."""
        parts: list[str] = []
        step = dataset
        while self._remaining_boxes > 0:
            self._remaining_boxes -= 1
            parts.append(_box(step))
            if len(step.children) != 1:
                break
            step = step.children[0]
        else:
            return f'<div style="{_ROW}">{_ARROW.join(["&hellip;", *reversed(parts)])}</div>'
        if step.children:
            parts.append(f'<div style="{_COLUMN}">{"".join(self.pipeline(child) for child in step.children)}</div>')
        return f'<div style="{_ROW}">{_ARROW.join(reversed(parts))}</div>'


def _box(step: Dataset) -> str:
    lines = [f"<div>{_text(key)} = {_value(value)}</div>" for key, value in descriptions.non_default_arguments(step).items()]
    inner = f'<div style="{_SMALL}">{"".join(lines)}</div>' if lines else ""
    return f'<div style="{_BOX}"><b>{_text(descriptions.name(step))}</b>{inner}</div>'


def _value(value: Any) -> str:
    """Return the HTML of an argument; each transform on a separate line."""
    values = value if isinstance(value, (list, tuple)) else [value]
    if not any(isinstance(item, TensorOperation) for item in values):
        return _text(descriptions.shown(value))
    return "".join(f'<div style="padding-left:1em">{_text(descriptions.shown(item))}</div>' for item in values)


def _text(text: str) -> str:
    """Return escaped text."""
    return escape(text.encode("utf-8", "replace").decode())
