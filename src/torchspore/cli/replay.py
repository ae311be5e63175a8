"""`torchspore replay DIR script.py …`: runs a program up to the step that a record holds, and that step as it was."""
from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence

from torchspore.base.text import with_hint
from torchspore.blackbox import reading, writing

USAGE = """usage: torchspore replay [--record TIME] [--step NAME] DIR (script.py | -m module) [arguments …]

Runs a step again that the recorder kept (MS_RDR_REPLAY=1, or rdr.replay): the program runs up to the first call of the same Cell or
function, which gets the recorded inputs, Parameters and random state. Says whether results, Parameters and errors have the same bits, and
which operator was the first to give NaN or infinity. The exit code is 0 where all is the same, 1 where it is not.

  --record TIME   another record than the newest one with a step, by its time as in the names of its files, 20261122173546
  --step NAME     first_not_finite (where there is one, it is taken), last_step, or last_evaluation: the last call that changed no Parameter

Nothing in the record is run: the program is the one that you name.
"""
USAGE_ERROR = 2


def run(words: Sequence[str]) -> int:
    """The command; gives its exit code."""
    if not words or words[0] in ("-h", "--help"):
        print(USAGE, end="")
        return 0 if words else USAGE_ERROR
    asked = {"--record": "", "--step": ""}
    rest = list(words)
    while rest and rest[0] in asked and len(rest) > 1:
        option, value = rest[:2]
        asked[option] = value
        del rest[:2]
    if not rest or rest[0].startswith("-"):
        print(with_hint("torchspore replay: expected a directory with records.", "`torchspore replay --help` says more"), file=sys.stderr)
        return USAGE_ERROR
    place, *program = rest
    try:
        found = reading.records(place)
        record = _chosen(found, asked["--record"], place)
        if not program:
            print(with_hint(f"torchspore replay {place}: expected the program.", _hint(place, record)), file=sys.stderr)
            return USAGE_ERROR
        return _replay(record, f"REPLAY.{asked['--step']}" if asked["--step"] else "", program)
    except reading.NoRecord as error:
        print(f"torchspore replay: {error}.", file=sys.stderr)
        return USAGE_ERROR


def _chosen(found: list[reading.Record], stamp: str, place: str) -> reading.Record:
    fit = [record for record in found if stamp == record.stamp or (not stamp and any(n.startswith("REPLAY.") for n in record.files))]
    if not fit:
        times = ", ".join(record.stamp for record in found[-8:])
        raise reading.NoRecord(f"{place}: there is no record {'of ' + stamp if stamp else 'with a step'}; there are {times}")
    return fit[-1]


def _hint(place: str, record: reading.Record) -> str:
    command = record.json(writing.CAUSE).get("program")
    known = isinstance(command, list) and all(isinstance(word, str) for word in command) and command
    words = shlex.join(command[:64]) if known else "train.py"
    return f"write `torchspore replay {place} {reading.visible(words)[:300]}`"


def _replay(record: reading.Record, name: str, program: list[str]) -> int:
    for variable in ("MS_RDR_ENABLE", "MS_RDR_MODE", "MS_RDR_PATH", "MS_RDR_REPLAY"):
        os.environ.pop(variable, None)             # the replay is no run to be recorded
    from torchspore.cli import program as programs
    from torchspore.observe.debug import recorder, replay

    kept = replay.RecordedStep(record, name)
    recorder.is_off = True
    player = replay.play(kept, lambda text: print(text, flush=True))
    if program[0] == "-m" and len(program) > 1:
        code = programs.execute_module(program[1], program[2:])
    else:
        code = programs.execute(program[0], program[1:])
    if player.is_done:
        return code
    met = f" (it called {', '.join(player.met[:6])})" if player.met else ""
    label = reading.visible(kept.label)[:100]
    print(f"replay: the program ended and never called {label} with the recorded Parameters{met}.", file=sys.stderr)
    return 1
