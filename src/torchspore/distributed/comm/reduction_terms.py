"""The settings that the numbers of exchanges depend on, as each rank reports them: means or sums, over how many steps, the learning rate.

Exchanges of equal kind and shape can have different meanings on two ranks, and then the weights drift apart unnoticed. The terms that a
rank has reported belong to each of its later exchanges: `handshake` compares them, and `words` describes both sides if they differ. The
terms are a set: order and repetition do not count, so a program with two trainings reports the terms of both.
"""
from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

from torchspore.base.frames import user_line

Statements = dict[str, dict[str, dict[str, str]]]
"""By group (EVERY for all groups), subject and statement: the source line that reported it first."""
EVERY = ""
HINT = "every rank must train with one context, one optimizer and one scale of the loss, or weights drift apart unseen"


class Terms:
    """The terms that this rank has reported."""

    def __init__(self) -> None:
        self.statements: Statements = {}
        self._digests: dict[str, str] = {}
        self._of_every = ""

    def report(self, key: str, subject: str, statement: str, line: str | None = None) -> None:
        """Report a statement about the exchanges of a group. A repeated statement costs one lookup."""
        of_subject = self.statements.setdefault(key, {}).setdefault(subject, {})
        if statement in of_subject:
            return
        of_subject[statement] = line or user_line() or "?"
        keys = sorted({*self.statements, EVERY})
        self._digests = {
            group_key: _digest([*_pairs(self.statements, EVERY), *(_pairs(self.statements, group_key) if group_key else ())])
            for group_key in keys
        }
        self._of_every = self._digests[EVERY]

    def of(self, key: str) -> str:
        """Return a digest of the statements about a group's exchanges; an empty text if there are none."""
        return self._digests.get(key, self._of_every)


def _pairs(statements: Mapping[str, Mapping[str, Any]], key: str) -> list[tuple[str, str]]:
    return [(subject, statement) for subject, of_subject in statements.get(key, {}).items() for statement in of_subject]


def _digest(pairs: list[tuple[str, str]]) -> str:
    return f"{zlib.crc32(repr(sorted(set(pairs))).encode()):08x}" if pairs else ""


def words(key: str, local: Statements, rank: int, other: Statements) -> str:
    """Return this rank's and another rank's terms of a group's exchanges, the different one first; an empty text if they are equal."""
    here, there = ({**_lines(statements, EVERY), **_lines(statements, key)} for statements in (local, other))
    subject = next((subject for subject, about in [*here, *there] if ((subject, about) in here) is not ((subject, about) in there)), None)
    if subject is None:
        return ""
    mine, yours = (_only(subject, first, two) for first, two in ((here, there), (there, here)))
    return f"rank {rank} is in it too, but computes otherwise. {subject}: {mine} here, {yours} in rank {rank}"


def _lines(statements: Statements, key: str) -> dict[tuple[str, str], str]:
    return {(subject, about): line for subject, of_subject in statements.get(key, {}).items() for about, line in of_subject.items()}


def _only(subject: str, first: dict[tuple[str, str], str], two: dict[tuple[str, str], str]) -> str:
    """Return the terms of a subject that one side has and the other lacks."""
    lines = [f"{statement} ({line})" for (about, statement), line in first.items() if about == subject and (about, statement) not in two]
    return " and ".join(lines[:2]) or "nothing else"
