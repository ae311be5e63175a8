#!/usr/bin/env python3
"""Runs steps of `programs/NAME.py` in real MindSpore, as standard input requests; answers with their seconds."""
from __future__ import annotations

import importlib
import json
import sys

import turns


def main() -> None:
    """Serve the steps."""
    program, mode, what, sizes = (*sys.argv[1:], "step", "{}")[:4]
    import mindspore

    mindspore.set_context(mode=mindspore.GRAPH_MODE if mode == "graph" else mindspore.PYNATIVE_MODE)
    step = getattr(importlib.import_module(f"programs.{program}"), what)(**json.loads(sizes))
    turns.serve(step, lambda out: out.asnumpy())


if __name__ == "__main__":
    main()
