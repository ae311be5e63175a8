"""`torchspore tune PATH`: tune the graphs that `aoe_tune_mode='offline'` has saved."""
from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from torchspore.base.text import with_hint
from torchspore.cli.grammar import USAGE_ERROR, Parser, returns_exit_code
from torchspore.translations import translate

UNUSABLE = 1


def parser() -> Parser:
    """Return the parser of the command."""
    command = Parser(
        prog="torchspore tune",
        description="Searches for the fastest form of each graph in a tuning file and writes the result into the file; later runs of the "
                    "program use it. TORCHSPORE_TUNE_SECONDS limits the time for one graph (60). The exit code is 1 if the file can't be "
                    "used.",
        examples=["torchspore tune rank_0/tuning"],
    )
    command.add_argument("path", metavar="PATH",
                         help="a tuning file, or its folder, from a program with set_context(aoe_tune_mode='offline') (rank_0/tuning)")
    return command


@returns_exit_code
def run(words: Sequence[str]) -> int:
    """Run the command: tune the graphs in the file, print a line for each, and return the exit code."""
    options = parser().parse_args(list(words))
    path = Path(options.path)
    path = path / "tuning.json" if os.path.isdir(path) else path
    if not os.path.exists(path):
        text = translate("torchspore tune {path}: no tuning file exists here (looked for {file}).")
        print(with_hint(text.format(path=options.path, file=path.absolute()),
                        translate("run the program with set_context(aoe_tune_mode='offline') first")), file=sys.stderr)
        return USAGE_ERROR
    return _tune_file(path)


def _tune_file(path: Path) -> int:
    import torch

    from torchspore.graph import pipeline
    from torchspore.graph.autotune import deferred_run, tuning_file

    threads = deferred_run.threads_of(path)
    if threads:
        torch.set_num_threads(threads)
    try:
        for line in deferred_run.work_off(path, pipeline.compile_untuned):
            print(line, flush=True)
    except tuning_file.Unusable as reason:
        print(translate("torchspore tune: {path} {reason}.").format(path=path, reason=reason), file=sys.stderr)
        return UNUSABLE
    print(translate("saved in {path}").format(path=path))
    return 0
