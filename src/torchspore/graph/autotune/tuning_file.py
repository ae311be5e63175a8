"""The tuning file: results of searches, and graphs that wait for one. A file of another machine or version is reported and skipped.

`<folder>/tuning.json`, in the folder that TORCHSPORE_TUNING names or else in `rank_N/tuning`, is one JSON object: "format" 1, "machine"
(torch, processor, threads), "graphs" by fingerprint with "net" (the user's line), "status" ("tuned" or "to do"), "job", "plan" (null if
nothing better was found), "gain" (median, minimum, maximum), "tried", "seconds", and for those to do "searches", "graph" (a file beside
it), "settings", "held" and "ranges" (smallest and largest integer of each input, null for others).
"""
from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

from torchspore.base import event_log, json_text, once
from torchspore.base.files import read_plain, write_atomically
from torchspore.base.frames import user_line
from torchspore.context import effects
from torchspore.engine import process
from torchspore.graph.fx.fingerprint import machine
from torchspore.translations import translatable, translate

PATH_VARIABLE = "TORCHSPORE_TUNING"
SECTION = translatable("tuning")
FORMAT = 1
Entry = dict[str, Any]


class Unusable(Exception):
    """The file is none of ours; the text says why."""


def report_message(text: str) -> None:
    """Report to the user on stderr, in the log and in `explain`, once."""
    if once.first_time(("tuning", text)):
        event_log.event("tuning", text)
        effects.note(SECTION, text)
        print(f"torchspore: {text}", file=sys.stderr)


def folder() -> Path:
    """Return the folder of this process's tuning files."""
    named = os.environ.get(PATH_VARIABLE)
    if named:
        return Path(named).absolute()
    return Path(process.folder(), "tuning").absolute()


def path() -> Path:
    """Return the file of this machine: `tuning.json`, or a numbered file beside it if that belongs to another machine."""
    root = folder()
    first = root if root.suffix == ".json" else root / "tuning.json"
    try:
        read(first)
    except Unusable as reason:
        report_message(translate("tuning: {path} {reason}; it is passed over.").format(path=first, reason=reason))
        return first.with_name(f"{first.stem}-{hashlib.sha256(machine().encode()).hexdigest()[:8]}.json")
    return first


def read(where: Path, of: str | None = None) -> dict[str, Entry]:
    """Read the graphs in a file; none if the file is missing. Raises Unusable; `of` is the machine that it must belong to, by default this
    one."""
    try:
        contents = json_text.parse(read_plain(where))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise Unusable(translate("can't be read ({error})").format(error=error)) from None
    if not isinstance(contents, dict) or contents.get("format") != FORMAT or not isinstance(contents.get("graphs"), dict):
        raise Unusable(translate("is not a tuning file of this version of torchspore"))
    ours = machine() if of is None else of
    if contents.get("machine") != ours:
        text = translate("was written on another machine or with another torch ({other}; here {ours})")
        raise Unusable(text.format(other=contents.get("machine"), ours=ours))
    return {key: entry for key, entry in contents["graphs"].items() if isinstance(entry, dict)}


def find(key: str) -> Entry | None:
    """Return the file's entry for a graph. Report a named file that has entries for other graphs only."""
    where = path()
    try:
        graphs = read(where)
    except Unusable as reason:
        report_message(translate("tuning: {path} {reason}; it is passed over.").format(path=where, reason=reason))
        return None
    if key not in graphs and graphs and os.environ.get(PATH_VARIABLE):
        text = translate("tuning: {path} has no entry for the graph at {line}; it was written for another network or other shapes.")
        report_message(text.format(path=where, line=user_line()))
    return graphs.get(key)


def keep(key: str, entry: Entry, where: Path | None = None) -> Path | None:
    """Store a graph's entry atomically; return the file, None if it cannot be written, which is reported once."""
    where = where or path()
    try:
        where.parent.mkdir(parents=True, exist_ok=True)
        try:
            graphs = read(where)
        except Unusable:
            graphs = {}
        graphs[key] = entry
        write(where, {"format": FORMAT, "machine": machine(), "graphs": graphs})
    except OSError as error:
        text = translate("tuning: {path} can't be written ({reason}); the program continues, and a later run searches again.")
        report_message(text.format(path=where, reason=error.strerror or error))
        return None
    return where


def write(where: Path, content: Any) -> None:
    """Write JSON atomically."""
    write_atomically(where, json.dumps(content, indent=1))
