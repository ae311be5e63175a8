"""The context as a table: the value, the source and the outcome of each option."""

from __future__ import annotations

import io
from typing import TextIO

from torchspore.base.columns import pad, width
from torchspore.base.frames import relative_line
from torchspore.base.text import short
from torchspore.context import effects
from torchspore.context.option import Option
from torchspore.context.options import OPTIONS
from torchspore.context.store import STORE
from torchspore.translations import translatable, translate

Row = tuple[str, str, str, str]
HEADS = (translatable("option"), translatable("value"), translatable("from"), translatable("outcome"))
_SOURCES = (translatable("forced environment"), translatable("code"), translatable("environment"), translatable("file"),
            translatable("default"))
"""The results of `Store.source`."""


def rows() -> list[Row]:
    """Return (option, value, source, outcome) of each option that was set, or that has acted."""
    table = []
    for key, option in OPTIONS.items():
        if option.parent in OPTIONS:
            continue
        if STORE.source(key)[0] != "default" or effects.has_outcome(key):
            table.append((key, short(STORE.get(key)), _source(option), _outcome(option)))
    return table


def _source(option: Option) -> str:
    source, setting = STORE.source(option.key)
    where = relative_line(setting.where) if setting is not None and setting.where else ""
    if source == "forced environment":
        requested = STORE.code_setting(option.key)
        is_other = requested is not None and setting is not None and requested.value != setting.value
        request_text = translate("; the program requests {value}").format(value=short(requested.raw)) if requested and is_other else ""
        return translate("{variable}, forced{request}").format(variable=where, request=request_text)
    return where or translate(source)


def _outcome(option: Option) -> str:
    outcome = effects.outcome_of(option, STORE.get(option.key))
    return str(outcome) if outcome is not None else translate("stored; nothing that reads it has run")


def plain(table: list[Row], stream: TextIO, notes: dict[str, list[str]] | None = None) -> None:
    """Print rows as plain columns, then the sections that other layers noted, or those of `notes`."""
    lines = [tuple(map(translate, HEADS)), *table] if table else []
    widths = [max((width(line[column]) for line in lines), default=0) for column in range(3)]
    for line in lines:
        cells = [pad(cell, columns) for cell, columns in zip(line[:3], widths, strict=True)]
        print("  ".join([*cells, line[3]]).rstrip(), file=stream)
    for section, section_lines in (effects.notes() if notes is None else notes).items():
        print(f"\n{section}", file=stream)
        for note in section_lines:
            print(f"  {note}", file=stream)


def text() -> str:
    """Return the full table as plain text."""
    buffer = io.StringIO()
    plain(rows(), buffer)
    return buffer.getvalue()
