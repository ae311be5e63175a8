"""Faults of exchanges as on an accelerator: Python compares nothing before an exchange, and torch's recorder knows what each rank began.

    python -m torchspore workers -n 2 --log-dir DIR tests/support/exchange_faults.py FAULT     FAULT: kind or late

It wrote the dumps in tests/unit/distributed/flight_recorder, with gloo: after three seconds each rank writes what it has begun, and ends,
as NCCL's watchdog does.
"""
from __future__ import annotations

import os
import sys
import threading
import time

import numpy as np
from mindspore import Tensor, ops
from mindspore.communication import get_group_size, get_rank, init

from torchspore.distributed.comm import groups, torch_diagnosis


def gather(length: int) -> Tensor:
    return ops.AllGather()(Tensor(np.ones(length, np.float32)))


def reduce(length: int) -> Tensor:
    return ops.AllReduce()(Tensor(np.ones(length, np.float32)))


def end() -> None:
    torch_diagnosis.write_dump(get_rank())
    dumps = [f"{os.environ[torch_diagnosis.FILE]}{rank}" for rank in range(get_group_size())]
    until = time.monotonic() + 30                       # the launcher ends the others as soon as one of them ends
    while time.monotonic() < until and not all(map(os.path.exists, dumps)):
        time.sleep(0.05)
    os._exit(1)


def main(fault: str) -> None:
    groups.has_queue = lambda: True
    init()                                              # torch's recorder now knows where to write
    threading.Timer(3.0, end).start()
    reduce(3)
    if fault == "kind":
        reduce(4) if get_rank() == 0 else gather(2)
    elif get_rank() == 0:
        reduce(4)
    time.sleep(60)


if __name__ == "__main__":
    main(sys.argv[1])
