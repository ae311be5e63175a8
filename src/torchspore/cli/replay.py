"""`torchspore replay DIR script.py ...`: run a program up to a recorded step, and that step with its recorded state."""
from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence

from torchspore.base.text import message
from torchspore.blackbox import record_reader, record_writer
from torchspore.cli.grammar import USAGE_ERROR, Parser, returns_exit_code, split_program
from torchspore.translations import translate


def parser() -> Parser:
    """Return the parser of the command."""
    command = Parser(
        prog="torchspore replay", runs_program=True,
        usage="torchspore replay [--record TIME] [--step NAME] DIR (script.py | -m module) [arguments …]",
        description="Runs a step again that the recorder saved (MS_RDR_REPLAY=1, or rdr.replay): the program runs up to the first call "
                    "of the same Cell or function, which gets the recorded inputs, Parameters and random state. Reports whether results, "
                    "Parameters and errors have the same bits, and which operator was the first to give NaN or infinity. The exit code "
                    "is 0 if all is the same, otherwise 1. Nothing in the record is executed: the program is the one that you name.",
        examples=["torchspore replay DIR train.py"],
    )
    command.add_argument("--record", default="", metavar="TIME",
                         help="a record other than the newest with a step, by its time as in the names of its files, 20261122173546")
    command.add_argument("--step", default="", metavar="NAME",
                         help="first_not_finite (the default if it exists), last_step, or last_evaluation: the last call that changed no "
                              "Parameter")
    return command


@returns_exit_code
def run(words: Sequence[str]) -> int:
    """Run the command; return its exit code."""
    options, remaining = split_program(parser(), words)
    if not remaining or remaining[0].startswith("-"):
        hint = translate("`torchspore replay --help` describes it")
        print(message("torchspore replay", translate("a directory with records"), hint=hint), file=sys.stderr)
        return USAGE_ERROR
    location, *program = remaining
    try:
        records = record_reader.records(location)
        record = _select(records, options.record, location)
        if not program:
            print(message(f"torchspore replay {location}", translate("the program"), hint=_hint(location, record)), file=sys.stderr)
            return USAGE_ERROR
        return _replay(record, f"REPLAY.{options.step}" if options.step else "", program)
    except record_reader.NoRecord as error:
        print(f"torchspore replay: {error}{translate('.')}", file=sys.stderr)
        return USAGE_ERROR


def _select(records: list[record_reader.Record], stamp: str, location: str) -> record_reader.Record:
    fit = [record for record in records if stamp == record.stamp or (not stamp and any(n.startswith("REPLAY.") for n in record.files))]
    if not fit:
        times = ", ".join(record.stamp for record in records[-8:])
        text = (translate("{folder}: there is no record of {time}; there are {times}") if stamp else
                translate("{folder}: there is no record with a step; there are {times}"))
        raise record_reader.NoRecord(text.format(folder=location, time=stamp, times=times))
    return fit[-1]


def _hint(location: str, record: record_reader.Record) -> str:
    command = record.json(record_writer.CAUSE).get("program")
    is_valid = isinstance(command, list) and all(isinstance(word, str) for word in command) and command
    words = shlex.join(command[:64]) if is_valid else "train.py"
    return translate("write `{command}`").format(command=f"torchspore replay {location} {record_reader.visible(words)[:300]}")


def _replay(record: record_reader.Record, name: str, program: list[str]) -> int:
    for variable in ("MS_RDR_ENABLE", "MS_RDR_MODE", "MS_RDR_PATH", "MS_RDR_REPLAY"):
        os.environ.pop(variable, None)             # the replay must not be recorded
    from torchspore.cli import program as programs
    from torchspore.observe.debug import recorder, replay

    step = replay.RecordedStep(record, name)
    recorder.is_off = True
    player = replay.play(step, lambda text: print(text, flush=True))
    if program[0] == "-m" and len(program) > 1:
        code = programs.execute_module(program[1], program[2:])
    else:
        code = programs.execute(program[0], program[1:])
    if player.is_done:
        return code
    called = translate(" (it called {names})").format(names=", ".join(player.met[:6])) if player.met else ""
    label = record_reader.visible(step.label)[:100]
    text = translate("replay: the program ended and never called {name} with the recorded Parameters{called}.")
    print(text.format(name=label, called=called), file=sys.stderr)
    return 1
