"""The rooms that a Cell's first call in Graph mode goes through: `python tools/first_call.py`.

A room is a package or a file of `graph` itself, the rows of the table in docs/architecture.md; a return is a call into a room that
the trip had left before. The fewer of both, the easier a reader follows a call. The same is told of single files.
"""
from __future__ import annotations

import itertools
import sys
from types import FrameType

import numpy as np

import torchspore

ROOT = "/torchspore/graph/"


def trip() -> list[str]:
    """The files that the call enters, in their order; several steps inside one file are one."""
    import mindspore as ms
    from mindspore import nn

    ms.set_context(mode=ms.GRAPH_MODE)
    net, x = nn.SequentialCell(nn.Dense(4, 4), nn.ReLU()), ms.Tensor(np.ones((2, 4), np.float32))
    rooms: list[str] = []

    def entered(frame: FrameType, event: str, argument: object) -> None:
        _, _, room = frame.f_code.co_filename.rpartition(ROOT)
        if ROOT in frame.f_code.co_filename and rooms[-1:] != [room]:
            rooms.append(room)

    sys.settrace(entered)
    try:
        net(x)
    finally:
        sys.settrace(None)
    return rooms


def main() -> None:
    """Prints the figures and the rooms."""
    torchspore.install()
    files = trip()
    rooms = [name for name, _ in itertools.groupby(file.partition("/")[0].removesuffix(".py") for file in files)]
    for kind, names in (("rooms", rooms), ("files", files)):
        print(f"{len(set(names))} {kind}, {len(names) - len(set(names))} returns")
    print(" ".join(dict.fromkeys(rooms)))


if __name__ == "__main__":
    main()
