"""`torchspore rdr`: describe a record of the recorder of running data, or the last exchanges of all ranks."""
from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from torchspore.base.text import with_hint
from torchspore.blackbox import flight_diagnosis, record_reader

USAGE = """usage: torchspore rdr show [--record TIME] [--operators N] [--stacks] DIR
       torchspore rdr exchanges DIR

show describes what happened to a program that ran with the recorder on (MS_RDR_ENABLE=1, or env_config_path): the likely cause first,
then memory, the last operators, graphs, threads and the context. DIR is the value of rdr.path, or a directory rank_N/rdr in it.

  --record TIME   a record other than the newest, by its time as in the names of its files, 20261122173546
  --operators N   the number of last operators (12)
  --stacks        all frames of all threads

exchanges reads the dumps of torch's Flight Recorder in DIR (flight_recorder_rank_N beside the logs of torchspore workers, or
nccl_trace_rank_N of torch) and describes the first exchange that the ranks did not begin alike, with the lines of the program.
"""
USAGE_ERROR = 2


def run(words: Sequence[str]) -> int:
    """Run the command; return 1 if no record exists."""
    if not words or words[0] in ("-h", "--help"):
        print(USAGE, end="")
        return 0 if words else USAGE_ERROR
    if words[0] == "exchanges":
        return _describe_exchanges(words[1:])
    try:
        location, stamp, operators, with_stacks = _parse(words)
    except ValueError as error:
        print(error, file=sys.stderr)
        return USAGE_ERROR
    try:
        records = record_reader.records(location)
        record = next((record for record in reversed(records) if stamp in ("", record.stamp)), None)
        if record is None:
            times = ", ".join(record.stamp for record in records[-8:])
            raise record_reader.NoRecord(f"{location}: there is no record of {stamp}; there are {times}")
    except record_reader.NoRecord as error:
        hint = "run the program with MS_RDR_ENABLE=1 MS_RDR_PATH=/absolute/directory"
        print(with_hint(f"torchspore rdr show {error}.", hint), file=sys.stderr)
        return 1
    text = record_reader.describe(record, operators, with_stacks)
    if len(records) > 1:
        text += f"\n\nother records: {', '.join(other.stamp for other in records[-9:] if other is not record)}"
    print(text)
    return 0


def _describe_exchanges(words: Sequence[str]) -> int:
    if len(words) != 1 or words[0].startswith("-"):
        print(with_hint("torchspore rdr exchanges: expected one directory.", "write `torchspore rdr exchanges DIR`"), file=sys.stderr)
        return USAGE_ERROR
    folder = Path(words[0])
    lines = flight_diagnosis.describe(folder) if folder.is_dir() else []
    if not lines:
        hint = "torch writes nccl_trace_rank_N where TORCH_FR_DUMP_TEMP_FILE says; torchspore workers --log-dir DIR has them in DIR"
        print(with_hint(f"torchspore rdr exchanges {folder}: no dump of torch's Flight Recorder.", hint), file=sys.stderr)
        return 1
    print("\n".join(lines))
    return 0


def _parse(words: Sequence[str]) -> tuple[str, str, int, bool]:
    remaining, location, stamp, operators, with_stacks = list(words), "", "", 12, False
    if remaining.pop(0) != "show":
        raise ValueError(with_hint(f"torchspore rdr {words[0]}: expected `show` or `exchanges`.", "write `torchspore rdr show DIR`"))
    while remaining:
        word = remaining.pop(0)
        if word == "--stacks":
            with_stacks = True
        elif word in ("--record", "--operators"):
            value = remaining.pop(0) if remaining else ""
            if not value.isdigit() or len(value) > 14:
                raise ValueError(f"torchspore rdr show {word} {value}: expected a number after {word}.")
            stamp, operators = (value, operators) if word == "--record" else (stamp, int(value))
        elif word.startswith("-") or location:
            raise ValueError(with_hint(f"torchspore rdr show {word}: expected one directory.", "`torchspore rdr --help` lists the options"))
        else:
            location = word
    if not location:
        raise ValueError(with_hint("torchspore rdr show: expected a directory.", "write `torchspore rdr show DIR`"))
    return location, stamp, operators, with_stacks
