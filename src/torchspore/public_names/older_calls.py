"""Arguments of older MindSpore releases: renamed, dropped, and with another meaning at their position.

The table `older_calls.txt` is generated from the wheels of the releases (`tools/record.py older_calls`). It is read when a call fails with
an unknown argument, and by `torchspore check`; a call in today's spelling never reaches this module.
"""
from __future__ import annotations

import functools
import inspect
import re
import traceback
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from torchspore.base.lazy_dataclasses import dataclass
from torchspore.translations import translatable, translate


@dataclass(frozen=True)
class OlderCall:
    """The difference of one callable between a range of releases and today."""

    name: str
    first: str
    last: str
    renamed: Mapping[str, str]
    dropped: tuple[str, ...]
    position: int | None
    before: str
    now: str

    @property
    def releases(self) -> str:
        """The range of releases in words: `MindSpore 1.8.1 to 1.9`."""
        text = "MindSpore {first}" if self.first == self.last else translate("MindSpore {first} to {last}")
        return text.format(first=self.first, last=self.last)


@functools.cache
def table() -> dict[str, list[OlderCall]]:
    """Return the rows by name."""
    rows: dict[str, list[OlderCall]] = {}
    for line in Path(__file__).with_name("older_calls.txt").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            row = _row(line)
            rows.setdefault(row.name, []).append(row)
    return rows


def _row(line: str) -> OlderCall:
    name, first, last, renamed, dropped, moved = line.split("\t")
    position, _, names = moved.partition(":")
    before, _, now = names.partition(">")
    pairs = dict(pair.split(">") for pair in renamed.split(",") if pair)
    return OlderCall(name, first, last, pairs, tuple(filter(None, dropped.split(","))), int(position) if position else None, before, now)


@functools.cache
def _by_short_name() -> dict[str, list[OlderCall]]:
    rows: dict[str, list[OlderCall]] = {}
    for name, entries in table().items():
        parts = name.split(".")
        is_method = len(parts) > 2 and parts[-2][:1].isupper()
        rows.setdefault(".".join(parts[-2:]) if is_method else parts[-1], []).extend(entries)
        if is_method and parts[-2] == "Tensor":
            rows.setdefault(parts[-1], []).extend(entries)
    return rows


def rows_for(names: Iterable[str]) -> list[OlderCall]:
    """Return the rows of a callable by its short names: `split`, `Tensor.split`, `Dense`."""
    return [row for name in names for row in _by_short_name().get(name, ())]


def renamed_arguments(
    function: Callable[..., Any], names: Iterable[str], arguments: tuple[Any, ...], keywords: Mapping[str, Any],
) -> dict[str, Any] | None:
    """Return the keywords in today's spelling if an older release had these and they then fit `function`; None otherwise."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    if _fits(signature, arguments, keywords):
        return None
    for row in rows_for(names):
        if not row.renamed.keys().isdisjoint(keywords):
            renamed = {row.renamed.get(key, key): value for key, value in keywords.items()}
            if len(renamed) == len(keywords) and _fits(signature, arguments, renamed):
                return renamed
    return None


def _fits(signature: inspect.Signature, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> bool:
    try:
        signature.bind(*arguments, **keywords)
    except TypeError:
        return False
    return True


def explanation(names: Iterable[str], known: Iterable[str], keywords: Iterable[str]) -> str | None:
    """Return a sentence that names the release of an argument that has no meaning today, and what to write; None if there is none.

    `known` are the names of today's arguments.
    """
    rows, unknown = list(reversed(rows_for(names))), [key for key in keywords if key not in set(known)]
    for key in unknown:
        for row in rows:
            if key in row.dropped:
                text = translate("`{key}` is an argument of {releases}; {replacement}")
                return text.format(key=key, releases=row.releases, replacement=replacement(row, key))
    for key in unknown:
        for row in rows:
            if key in row.renamed:
                text = translate("`{key}` is the name of {releases}; write `{new}=`")
                return text.format(key=key, releases=row.releases, new=row.renamed[key])
    return None


def replacement(row: OlderCall, key: str) -> str:
    """Return what to write instead of a dropped argument."""
    special = _REPLACEMENTS.get((row.name.rpartition(".")[2], key))
    return translate(special or "today's signature has no such argument; remove it")


UNWRAPPED = frozenset(
    [f"ops.{name}" for name in "add div equal ge gt le less logical_and logical_or maximum minimum mul ne pow remainder sub".split()]
    + [f"mindspore.Tensor.{name}" for name in "__sub__ div divide ge gt mul true_divide".split()]
)
"""Functions that refuse older keywords: they are called so often that no code surrounds them, not even for a failed call."""

_UNKNOWN_KEYWORD = re.compile(r"(?:.*\.)?(\w+)\(\) got an unexpected keyword argument '(\w+)'")


def hint(error: BaseException) -> str | None:
    """Return the hint for a program that ended because a function in `UNWRAPPED` got an older keyword; None for another error."""
    match = _UNKNOWN_KEYWORD.match(str(error)) if isinstance(error, TypeError) else None
    if match is None or error.__traceback__ is None:
        return None
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    name, keyword = match.groups()
    function = frame.f_globals.get(name)
    if function is not None and not str(getattr(function, "__module__", "")).startswith("torchspore."):
        return None                                       # the program's function of this name
    names = [f"ops.{name}", f"mindspore.Tensor.{name}"]
    for row in (row for full in names if full in UNWRAPPED for row in table().get(full, ())):
        if keyword in row.renamed:
            text = translate("{old}= is the name of {releases}; write {new}=, or no name")
            return text.format(old=keyword, releases=row.releases, new=row.renamed[keyword])
    return None


_REPLACEMENTS = {
    ("split", "output_num"): translatable("write split_size_or_sections=, the length of each part"),
    ("dropout", "seed0"): translatable("write seed="),
    ("item", "index"): translatable("write x[index].item()"),
    ("clip", "dtype"): translatable("call .astype(dtype) on the result"),
    ("argmax", "output_type"): translatable("call .astype(output_type) on the result"),
}
"""(function, dropped argument) -> what to write, where the table alone can't tell."""
