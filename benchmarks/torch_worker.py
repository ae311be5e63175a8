#!/usr/bin/env python3
"""Runs the steps of hand-written torch that standard input requests, in a process without torchspore."""
from __future__ import annotations

import importlib
import json
import sys

import torch
import turns
from handwritten import compiled_step, inference, torch_step


def main() -> None:
    """Serve steps; arguments: the benchmark's module, the device, `step` or `infer`, its sizes as JSON, `eager` or `compile`."""
    name, device, what, sizes, how = (*sys.argv[1:], "step", "{}", "eager")[:5] if len(sys.argv) == 3 else sys.argv[1:]
    torch.manual_seed(0)
    with torch.device(device):
        parts = importlib.import_module(name).make(False, **json.loads(sizes))
    if what == "infer":
        step = inference(parts[0], parts[3][0], how == "compile")
    else:
        step = (compiled_step if how == "compile" else torch_step)(*parts)
    turns.serve(step, lambda out: torch.accelerator.synchronize() if device != "cpu" else None)


if __name__ == "__main__":
    main()
