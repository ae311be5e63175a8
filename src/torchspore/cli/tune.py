"""`torchspore tune PATH`: works off the graphs that `aoe_tune_mode='offline'` has kept."""
from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from torchspore.base.text import with_hint

USAGE = """usage: torchspore tune PATH

PATH is a tuning file, or the folder of one, that a program with set_context(aoe_tune_mode='offline') has written (rank_0/tuning). Searches
for the fastest form of each graph in it and writes what was found into the file; later runs of the program use that.
TORCHSPORE_TUNE_SECONDS says how long one graph may take (60). The exit code is 1 where the file can't be used.
"""
UNUSABLE = 1
USAGE_ERROR = 2


def run(words: Sequence[str]) -> int:
    """The command: tunes what waits in the file, prints a line for each graph, and gives the exit code."""
    if words and words[0] in ("-h", "--help"):
        print(USAGE, end="")
        return 0
    if len(words) != 1:
        print(with_hint("torchspore tune: expected the path of a tuning file or of its folder.", "write `torchspore tune rank_0/tuning`"),
              file=sys.stderr)
        return USAGE_ERROR
    path = Path(words[0])
    path = path / "tuning.json" if os.path.isdir(path) else path
    if not os.path.exists(path):
        print(with_hint(f"torchspore tune {words[0]}: there is no tuning file here (looked for {path.absolute()}).",
                        "run the program with set_context(aoe_tune_mode='offline') first"), file=sys.stderr)
        return USAGE_ERROR
    return _work_off(path)


def _work_off(path: Path) -> int:
    import torch

    from torchspore.graph import pipeline
    from torchspore.graph.autotune import deferred_run, tuning_file

    threads = deferred_run.threads_of(path)
    if threads:
        torch.set_num_threads(threads)
    try:
        for line in deferred_run.work_off(path, pipeline.untuned):
            print(line, flush=True)
    except tuning_file.Unusable as reason:
        print(f"torchspore tune: {path} {reason}.", file=sys.stderr)
        return UNUSABLE
    print(f"kept in {path}")
    return 0
