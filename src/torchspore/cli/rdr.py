"""`torchspore rdr show DIR`: says what a record of the recorder of running data tells."""
from __future__ import annotations

import sys
from collections.abc import Sequence

from torchspore.base.text import with_hint
from torchspore.blackbox import reading

USAGE = """usage: torchspore rdr show [--record TIME] [--operators N] [--stacks] DIR

Says what happened to a program that ran with the recorder on (MS_RDR_ENABLE=1, or env_config_path): the likely cause in the first line,
then memory, the last operators, graphs, threads and the context. DIR is what rdr.path named, or a directory rank_N/rdr in it.

  --record TIME   another record than the newest one, by its time as in the names of its files, 20261122173546
  --operators N   as many of the last operators (12)
  --stacks        all frames of all threads
"""
USAGE_ERROR = 2


def run(words: Sequence[str]) -> int:
    """The command; gives its exit code: 1 where there is no record."""
    if not words or words[0] in ("-h", "--help"):
        print(USAGE, end="")
        return 0 if words else USAGE_ERROR
    try:
        place, stamp, operators, with_stacks = _parse(words)
    except ValueError as error:
        print(error, file=sys.stderr)
        return USAGE_ERROR
    try:
        found = reading.records(place)
        record = next((record for record in reversed(found) if stamp in ("", record.stamp)), None)
        if record is None:
            raise reading.NoRecord(f"{place}: there is no record of {stamp}; there are {', '.join(record.stamp for record in found[-8:])}")
    except reading.NoRecord as error:
        hint = "run the program with MS_RDR_ENABLE=1 MS_RDR_PATH=/absolute/directory"
        print(with_hint(f"torchspore rdr show {error}.", hint), file=sys.stderr)
        return 1
    text = reading.shown(record, operators, with_stacks)
    if len(found) > 1:
        text += f"\n\nother records: {', '.join(other.stamp for other in found[-9:] if other is not record)}"
    print(text)
    return 0


def _parse(words: Sequence[str]) -> tuple[str, str, int, bool]:
    rest, place, stamp, operators, with_stacks = list(words), "", "", 12, False
    if rest.pop(0) != "show":
        raise ValueError(with_hint(f"torchspore rdr {words[0]}: expected `show`.", "write `torchspore rdr show DIR`"))
    while rest:
        word = rest.pop(0)
        if word == "--stacks":
            with_stacks = True
        elif word in ("--record", "--operators"):
            value = rest.pop(0) if rest else ""
            if not value.isdigit() or len(value) > 14:
                raise ValueError(f"torchspore rdr show {word} {value}: expected a number after {word}.")
            stamp, operators = (value, operators) if word == "--record" else (stamp, int(value))
        elif word.startswith("-") or place:
            raise ValueError(with_hint(f"torchspore rdr show {word}: expected one directory.", "`torchspore rdr --help` lists the options"))
        else:
            place = word
    if not place:
        raise ValueError(with_hint("torchspore rdr show: expected a directory.", "write `torchspore rdr show DIR`"))
    return place, stamp, operators, with_stacks
