#!/usr/bin/env python3
"""Runs steps of `programs/NAME.py` in torchspore, as standard input requests; answers with their seconds, beginning with the first call."""
from __future__ import annotations

import importlib
import json
import sys

import turns

import torchspore


def main() -> None:
    """Serve steps; arguments: the program, `step` or `infer`, its sizes as JSON, and PyNative, O0, O1, O2 or boost."""
    program, what, sizes, how = sys.argv[1:]
    torchspore.install()
    import mindspore

    config = {"jit_level": "O0", "infer_boost": "on"} if how == "boost" else {} if how == "PyNative" else {"jit_level": how}
    mindspore.set_context(mode=mindspore.PYNATIVE_MODE if how == "PyNative" else mindspore.GRAPH_MODE, jit_config=config)
    step = getattr(importlib.import_module(f"programs.{program}"), what)(**json.loads(sizes))
    turns.serve(step, lambda out: out.asnumpy())


if __name__ == "__main__":
    main()
