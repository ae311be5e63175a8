#!/usr/bin/env python3
"""Runs forward passes of `programs/NAME.py` in ONNX Runtime, from the file that torchspore exports, as standard input requests."""
from __future__ import annotations

import importlib
import json
import sys
import tempfile

import onnxruntime
import turns

import torchspore


def main() -> None:
    """Serve forward passes; arguments: the program, its sizes as JSON."""
    program, sizes = sys.argv[1:]
    torchspore.install()
    import mindspore

    step = importlib.import_module(f"programs.{program}").infer(**json.loads(sizes))
    with tempfile.TemporaryDirectory() as folder:
        mindspore.export(step.net, *step.batch, file_name=f"{folder}/net", file_format="ONNX")
        session = onnxruntime.InferenceSession(f"{folder}/net.onnx", providers=["CPUExecutionProvider"])
    inputs = {node.name: value.asnumpy() for node, value in zip(session.get_inputs(), step.batch, strict=True)}
    turns.serve(lambda: session.run(None, inputs), lambda out: None)


if __name__ == "__main__":
    main()
