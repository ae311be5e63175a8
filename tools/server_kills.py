#!/usr/bin/env python3
"""Kill processes of parameter server jobs at random moments: `python tools/server_kills.py [--kills 40] [--recovery] [--seed 1]`.

Each job has two workers, two servers and a scheduler, forked from this process. One process is killed (SIGKILL) between its start and the
end of the training. Without --recovery, all others must end within the limit, with an error or, if the killed process had done its part,
with the values of an undisturbed job. With --recovery, the killed server or scheduler is started again, and the values at the end must be
those of an undisturbed job in all bits.
Prints one line for each job that fails, and the counts. Ends with 1 if a job failed.
"""
from __future__ import annotations

import argparse
import collections
import hashlib
import json
import os
import random
import select
import signal
import socket
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

WORKERS, SERVERS, STEPS, LIMIT = 2, 2, 40, 90.0
KINDS = {"worker": "MS_WORKER", "server": "MS_PSERVER", "scheduler": "MS_SCHED"}


def train(configuration: str, pause: float) -> str:
    """Run the role of this process; return a digest of the values of a worker."""
    import mindspore as ms
    from mindspore import Tensor, nn

    ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU")
    ms.set_ps_context(enable_ps=True, **({"config_file_path": configuration} if configuration else {}))
    ms.set_seed(1)
    net = nn.SequentialCell(nn.EmbeddingLookup(50, 4, target="DEVICE", vocab_cache_size=20), nn.Dense(4, 2))
    net.set_param_ps()
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.LazyAdam(net.trainable_params(), 0.1))
    data = np.random.RandomState(int(os.environ["MS_NODE_ID"]))
    for number in range(STEPS):
        step(Tensor(data.randint(0, 50, 6).astype(np.int32)), Tensor(data.randn(6, 2).astype(np.float32)))
        time.sleep(pause)
        if number == 20:                                   # values that the program sets are part of a recovery
            net[1].weight.set_data(net[1].weight * 0.5)
    values = [parameter.asnumpy() for parameter in net.get_parameters()]
    return hashlib.sha256(b"".join(value.tobytes() for value in values)).hexdigest()


def _child(variables: dict[str, str], log: Path, configuration: str, pause: float, results: int) -> None:
    """Run `train` in a forked process and write its result, or its error, to a pipe."""
    os.environ.update(variables)
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(file, 1)
    os.dup2(file, 2)
    from torchspore.mindspore.common import server_session

    code = 0
    try:
        text = train(configuration, pause)
    except SystemExit as end:
        text, code = "ended", int(end.code or 0)
    except BaseException as error:
        server_session.fail(error)
        text, code = f"{type(error).__name__}: {error}", 1
    server_session.leave()
    os.write(results, text.encode()[:4000])
    os._exit(code)


class Job:
    """The processes of a job: by name the process id and the pipe of its result."""

    def __init__(self, folder: Path, configuration: str, pause: float) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self._folder, self._configuration, self._pause = folder, configuration, pause
        self._variables = {"MS_WORKER_NUM": str(WORKERS), "MS_SERVER_NUM": str(SERVERS), "MS_SCHED_HOST": "127.0.0.1",
                           "MS_SCHED_PORT": str(port), "MS_TOPO_TIMEOUT": "20"}
        self.processes: dict[str, tuple[int, int]] = {}
        for kind, count in (("scheduler", 1), ("server", SERVERS), ("worker", WORKERS)):
            for number in range(count):
                self.start(kind, number)

    def start(self, kind: str, number: int) -> None:
        """Start a process, whose output goes to KIND_NUMBER.log."""
        reader, writer = os.pipe()
        variables = self._variables | {"MS_ROLE": KINDS[kind], "MS_NODE_ID": str(number)}
        process = os.fork()
        if process == 0:
            os.close(reader)
            try:
                _child(variables, self._folder / f"{kind}_{number}.log", self._configuration, self._pause, writer)
            finally:
                os._exit(9)
        os.close(writer)
        self.processes[f"{kind} {number}"] = process, reader

    def kill(self, name: str) -> bool:
        """Kill a process; return whether it still ran."""
        process, reader = self.processes.pop(name)
        is_running = not os.waitpid(process, os.WNOHANG)[0]
        if is_running:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
        os.close(reader)
        return is_running

    def end(self, seconds: float) -> dict[str, str]:
        """Wait for all processes; return their results, 'hang' for one that does not end in time."""
        until, results = time.monotonic() + seconds, {}
        for name, (process, reader) in self.processes.items():
            if select.select([reader], [], [], max(0.1, until - time.monotonic()))[0]:
                results[name] = os.read(reader, 4096).decode() or "died"
            else:
                os.kill(process, signal.SIGKILL)
                results[name] = "hang"
            os.waitpid(process, 0)
            os.close(reader)
        return results


def run_job(kind: str, number: int, moment: float, configuration: str, expected: str, pause: float) -> str:
    """Run a job and kill a process after `moment` seconds; return the problem, or an empty string."""
    with tempfile.TemporaryDirectory(prefix="torchspore_kills_") as name:
        folder = Path(name)
        if configuration:
            path = folder / "recovery.json"
            path.write_text(configuration)
            configuration = str(path)
        job = Job(folder, configuration, pause)
        time.sleep(moment)
        was_running = job.kill(f"{kind} {number}")
        is_repaired = bool(configuration) and kind != "worker" and was_running
        if is_repaired:
            job.start(kind, number)
        results = job.end(LIMIT)
        if "hang" in results.values() or "died" in results.values():
            return f"{results}"
        workers = [result for process, result in results.items() if process.startswith("worker")]
        digests = [result for result in workers if result == expected]
        wrong = [result for result in workers if result != expected and len(result) == 64]
        if wrong:
            return f"other values: {results}"
        started = moment > 3.0                             # before the job has started, a process cannot be replaced by recovery
        return f"not repaired: {results}" if is_repaired and started and len(digests) < WORKERS else ""


def main() -> int:
    """Run the jobs; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=40, help="the number of kills of each kind of process")
    parser.add_argument("--recovery", action="store_true", help="start the killed server or scheduler again")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10**6)
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after this time")
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    import torchspore

    torchspore.install()
    import grpc  # noqa: F401  imported before the forks
    import mindspore  # noqa: F401
    import torch

    torch.set_num_threads(1)
    configuration = json.dumps({"recovery": {"storage_type": 1, "storage_file_path": "snapshots", "save_steps": 4}})
    pause, generator = 0.05, random.Random(options.seed)
    with tempfile.TemporaryDirectory(prefix="torchspore_kills_") as name:
        begun = time.monotonic()
        undisturbed = Job(Path(name), "", pause).end(LIMIT)
        duration = time.monotonic() - begun
    expected = undisturbed["worker 0"]
    assert expected == undisturbed["worker 1"] and len(expected) == 64, undisturbed
    print(f"seed {options.seed}; an undisturbed job takes {duration:.1f} s", flush=True)
    counts: collections.Counter[str] = collections.Counter()
    failures: collections.Counter[str] = collections.Counter()
    begun = time.monotonic()
    kinds = ["server", "scheduler"] if options.recovery else list(KINDS)
    for attempt in range(options.kills * len(kinds)):
        if time.monotonic() > begun + options.seconds:
            break
        kind = kinds[attempt % len(kinds)]
        number = 0 if kind == "scheduler" else generator.randrange(2)
        moment = generator.uniform(0.0, duration)
        text = run_job(kind, number, moment, configuration if options.recovery else "", expected, pause)
        counts[kind] += 1
        if text:
            failures[kind] += 1
            print(f"{kind} {number} killed after {moment:.2f} s: {text}", flush=True)
    print(", ".join(f"{kind}: {count} kills, {failures[kind]} failures" for kind, count in counts.items()))
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
