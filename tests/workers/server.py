"""A process that has torch and torchspore loaded once, and forks the ranks of a test.

Importing them takes seconds, a fork milliseconds; no operator has run here and there are no threads of OpenMP, so that the ranks are as
good as fresh processes. It reads a pickled `Job` and answers a list of `Ended`, over a pipe. The store that ranks meet at is served from
here.
"""
from __future__ import annotations

import importlib.util
import os
import pickle
import select
import signal
import sys
import tempfile
import time
import traceback
from datetime import timedelta
from pathlib import Path
from typing import Any, BinaryIO

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from support.worker_jobs import Ended, Job, read, write


def _function(file: str, name: str) -> Any:
    """The function of a test file, which is loaded under a name of its own."""
    result: Any = sys.modules.get("tested")
    if result is None:
        spec = importlib.util.spec_from_file_location("tested", file)
        assert spec is not None and spec.loader is not None
        result = sys.modules["tested"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(result)
    for part in name.split("."):
        result = getattr(result, part)
    return result


def _run(job: Job, answer: int) -> None:
    """One rank, in a process of its own, which it leaves at once."""
    try:
        value = _function(job.file, job.function)(*job.arguments)
        ended = Ended(value)
    except BaseException as error:
        ended = Ended(None, type(error).__name__, str(error), traceback.format_exc())
    try:
        from torchspore.distributed.comm import groups

        groups.stop()
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    with os.fdopen(answer, "wb") as pipe:
        try:
            pipe.write(pickle.dumps(ended))
        except Exception as error:
            pipe.write(pickle.dumps(Ended(None, type(error).__name__, str(error), traceback.format_exc())))
    os._exit(0)


def _ranks(job: Job, number: int, port: int) -> list[Ended]:
    """Forks the ranks, waits for them, and kills those that are late."""
    children = []
    for rank in range(job.count):
        reading, writing = os.pipe()
        out = tempfile.TemporaryFile()  # noqa: SIM115  # closed where the rank has ended
        child = os.fork()
        if child == 0:
            os.close(reading)
            os.dup2(out.fileno(), 1)
            os.dup2(out.fileno(), 2)
            os.setpgid(0, 0)
            os.environ.update(
                RANK=str(rank), WORLD_SIZE=str(job.count), LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE=str(job.count), MASTER_ADDR="127.0.0.1",
                MASTER_PORT=str(port), TORCHELASTIC_USE_AGENT_STORE="True", TORCHELASTIC_RESTART_COUNT=str(number),
            )
            os.environ.update(job.variables)
            for name in [name for name, value in os.environ.items() if value == "<unset>"]:
                del os.environ[name]
            _run(job, writing)
        os.close(writing)
        children.append((child, reading, out))
    return [_ended(*each, until=time.monotonic() + job.seconds, begun=time.monotonic()) for each in children]


def _ended(child: int, reading: int, out: BinaryIO, until: float, begun: float) -> Ended:
    data, late = b"", False
    while True:
        ready, _, _ = select.select([reading], [], [], max(0.0, until - time.monotonic()))
        if not ready:
            late = True
            break
        piece = os.read(reading, 1 << 20)
        if not piece:
            break
        data += piece
    took = time.monotonic() - begun
    if late:
        try:
            os.killpg(child, signal.SIGKILL)
        except ProcessLookupError:
            os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    os.close(reading)
    try:
        os.killpg(child, signal.SIGKILL)                  # what the rank has left behind
    except (ProcessLookupError, PermissionError):
        pass
    ended = pickle.loads(data) if data and not late else Ended()
    ended.code, ended.is_late, ended.seconds = os.waitstatus_to_exitcode(status), late, took
    out.seek(0)
    ended.out = out.read().decode(errors="replace")
    out.close()
    return ended


def serve() -> None:
    """Answers jobs until there are no more."""
    import ctypes

    ctypes.CDLL(None).prctl(1, signal.SIGKILL)               # ends with the tests
    for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = "1"
    answers, jobs = os.fdopen(os.dup(1), "wb"), sys.stdin.buffer
    os.dup2(2, 1)
    import torch

    torch.set_num_threads(1)
    import numpy  # noqa: F401
    import pytest  # noqa: F401
    import torch.distributed._functional_collectives

    import torchspore

    torchspore.install()
    import mindspore  # noqa: F401

    import torchspore.distributed.comm.collectives

    store = torch.distributed.TCPStore("127.0.0.1", 0, None, True, timedelta(seconds=60), wait_for_workers=False)
    number = 0
    while True:
        try:
            job = read(jobs)
        except EOFError:
            return
        number += 1
        write(answers, _ranks(job, number, store.port))


if __name__ == "__main__":
    serve()
