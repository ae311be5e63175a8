"""`torchspore rdr`: describe a record of the recorder of running data, or the last exchanges of all ranks."""
from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from torchspore.base.text import with_hint
from torchspore.blackbox import flight_diagnosis, record_reader
from torchspore.cli.grammar import Parser, number, returns_exit_code, type_error
from torchspore.translations import translate


def parser() -> Parser:
    """Return the parser of the command."""
    command = Parser(
        prog="torchspore rdr", description="Describes what happened to a program that failed, was killed or hung.",
        examples=["torchspore rdr show DIR", "torchspore rdr exchanges DIR"],
    )
    actions = command.add_subparsers(required=True, dest="action", metavar="show | exchanges", parser_class=Parser)
    show = actions.add_parser(
        "show", help="a record of the recorder of running data (MS_RDR_ENABLE=1, or env_config_path)",
        description="Describes a record: the likely cause first, then memory, the last operators, graphs, threads and the context.",
        examples=["torchspore rdr show DIR"],
    )
    show.add_argument("--record", type=_time, default="", metavar="TIME",
                      help="a record other than the newest, by its time as in the names of its files, 20261122173546")
    show.add_argument("--operators", type=number(0, 10**6), default=12, metavar="N", help="the number of last operators (12)")
    show.add_argument("--stacks", action="store_true", help="all frames of all threads")
    show.add_argument("directory", metavar="DIR", help="the value of rdr.path, or a directory rank_N/rdr in it")
    exchanges = actions.add_parser(
        "exchanges", help="the first exchange that differs between the ranks of a job, with the lines of the program",
        description="Reads the dumps of torch's Flight Recorder: flight_recorder_rank_N beside the logs of torchspore workers, or "
                    "nccl_trace_rank_N of torch.",
        examples=["torchspore rdr exchanges DIR"],
    )
    exchanges.add_argument("directory", metavar="DIR", help="the directory of the dumps")
    return command


def _time(text: str) -> str:
    """Convert the time of a record."""
    if text and (not text.isdigit() or len(text) > 14):
        raise type_error(f"{text:.60}", translate("a time such as 20261122173546"))
    return text


@returns_exit_code
def run(words: Sequence[str]) -> int:
    """Run the command; return 1 if no record exists."""
    options = parser().parse_args(list(words))
    if options.action == "exchanges":
        return _describe_exchanges(Path(options.directory))
    location, stamp = options.directory, options.record
    try:
        records = record_reader.records(location)
        record = next((record for record in reversed(records) if stamp in ("", record.stamp)), None)
        if record is None:
            times = ", ".join(record.stamp for record in records[-8:])
            text = translate("{folder}: there is no record of {time}; there are {times}")
            raise record_reader.NoRecord(text.format(folder=location, time=stamp, times=times))
    except record_reader.NoRecord as error:
        hint = translate("run the program with MS_RDR_ENABLE=1 MS_RDR_PATH=/absolute/directory")
        print(with_hint(f"torchspore rdr show {error}{translate('.')}", hint), file=sys.stderr)
        return 1
    text = record_reader.describe(record, options.operators, options.stacks)
    if len(records) > 1:
        others = ", ".join(other.stamp for other in records[-9:] if other is not record)
        text += "\n\n" + translate("other records: {times}").format(times=others)
    print(text)
    return 0


def _describe_exchanges(folder: Path) -> int:
    lines = flight_diagnosis.describe(folder) if folder.is_dir() else []
    if not lines:
        hint = translate(
            "torch writes nccl_trace_rank_N where TORCH_FR_DUMP_TEMP_FILE says; torchspore workers --log-dir DIR has them in DIR")
        text = translate("torchspore rdr exchanges {folder}: no dump of torch's Flight Recorder.").format(folder=folder)
        print(with_hint(text, hint), file=sys.stderr)
        return 1
    print("\n".join(lines))
    return 0
