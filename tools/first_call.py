#!/usr/bin/env python3
"""Count the packages of `graph` that a first call in Graph mode enters, and the files that one gradient in PyNative enters.

`python tools/first_call.py` prints both. The packages are those in the table of docs/architecture.md; a file directly in `graph` counts as
a package. A return is a step into a package that the call has entered before. A reader follows a call more easily if both are few.
"""
from __future__ import annotations

import importlib
import itertools
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np

import torchspore

SOURCE = "/torchspore/"
GRAPH = "graph/"


def entered_files(function: Callable[[], Any]) -> list[str]:
    """Call `function` and return the files of torchspore that it enters, in order. Consecutive steps inside one file count once."""
    files: list[str] = []

    def record(frame: FrameType, event: str, argument: object) -> None:
        _, is_ours, file = frame.f_code.co_filename.rpartition(SOURCE)
        if is_ours and files[-1:] != [file]:
            files.append(file)

    sys.settrace(record)
    try:
        function()
    finally:
        sys.settrace(None)
    return files


def first_graph_call() -> list[str]:
    """Return the files of `graph` that the first call of a small Cell in Graph mode enters, without `graph/`.

    The import of the package is not part of the call.
    """
    import mindspore as ms
    from mindspore import nn

    importlib.import_module("torchspore.graph.dispatch")
    ms.set_context(mode=ms.GRAPH_MODE)
    net, x = nn.SequentialCell(nn.Dense(4, 4), nn.ReLU()), ms.Tensor(np.ones((2, 4), np.float32))
    files = [file.removeprefix(GRAPH) for file in entered_files(lambda: net(x)) if file.startswith(GRAPH)]
    return [name for name, _ in itertools.groupby(files)]


def gradient_call() -> list[str]:
    """Return the files that the second call of `value_and_grad` of a Dense layer's sum enters in PyNative mode."""
    import mindspore as ms
    from mindspore import nn

    ms.set_context(mode=ms.PYNATIVE_MODE)
    net, x = nn.Dense(4, 4), ms.Tensor(np.ones((2, 4), np.float32))
    gradient = ms.value_and_grad(lambda x: net(x).sum(), None, net.trainable_params())
    gradient(x)
    return list(dict.fromkeys(entered_files(lambda: gradient(x))))


def main() -> None:
    """Print the counts, then the names."""
    torchspore.install()
    files = first_graph_call()
    packages = [name for name, _ in itertools.groupby(file.partition("/")[0].removesuffix(".py") for file in files)]
    for kind, names in (("packages", packages), ("files", files)):
        print(f"{len(set(names))} {kind}, {len(names) - len(set(names))} returns")
    print(" ".join(dict.fromkeys(packages)))
    gradient_files = gradient_call()
    print(f"value_and_grad: {len(gradient_files)} files")
    print(" ".join(gradient_files))


if __name__ == "__main__":
    main()
