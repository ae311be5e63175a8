"""Lists of ranks as text: in messages, and in keys and names of groups, there with ranges if they are long: '0_1_3', '0-511', '0-504+8'."""
from __future__ import annotations

import re
from collections.abc import Sequence

LONG = 8
"""The most ranks of which each is spelled out."""
_WORD = re.compile(r"(\d+)(?:-(\d+)(?:\+([1-9]\d*))?)?")


def describe(ranks: Sequence[int]) -> str:
    """Return the first ranks for a message: 'rank 0, 1, 2, 3 and 5 more'."""
    return "rank " + ", ".join(map(str, ranks[:4])) + (f" and {len(ranks) - 4} more" if len(ranks) > 4 else "")


def to_text(ranks: Sequence[int]) -> str:
    """Return the text for ranks, in their order."""
    if len(ranks) <= LONG:
        return "_".join(map(str, ranks))
    words, at = [], 0
    while at < len(ranks):
        step = ranks[at + 1] - ranks[at] if at + 1 < len(ranks) else 0
        end = at + 1
        while step > 0 and end < len(ranks) and ranks[end] - ranks[end - 1] == step:
            end += 1
        if end - at < 3:                                       # a range would not shorten a pair
            words.append(str(ranks[at]))
            at += 1
            continue
        words.append(f"{ranks[at]}-{ranks[end - 1]}" + (f"+{step}" if step > 1 else ""))
        at = end
    return "_".join(words)


def from_text(text: str) -> tuple[int, ...]:
    """Return the ranks of a text. Raises ValueError for another text."""
    ranks: list[int] = []
    for word in text.split("_"):
        match = _WORD.fullmatch(word)
        if match is None:
            raise ValueError(f"{word!r}: expected a rank, or a range of ranks such as 0-511 or 0-504+8.")
        first, last, step = match.groups()
        ranks += range(int(first), int(last or first) + 1, int(step or 1))
    return tuple(ranks)
