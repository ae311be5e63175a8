"""The network between two ranks is lost: both say so; it comes back soon: nothing happens.

Ranks run in network namespaces, where root may make them.
"""
from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.patches import replace
from support.processes import environment

from torchspore.distributed.comm import peer_liveness

PROGRAM = """
import sys, time
import numpy as np
from mindspore import Tensor, communication, ops
from torchspore.distributed.comm import watchdog as watch
assert watch.LOST > 0
watch.LOST = float(sys.argv[1])
communication.init()
x = Tensor(np.ones(1000, np.float32))
for at in range(int(sys.argv[2])):
    ops.AllReduce()(x)
    if at == 0:
        open(f"{communication.get_rank()}.started", "w").close()
    time.sleep(0.01)
print("all of them", flush=True)
"""


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@pytest.fixture
def spaces() -> Iterator[list[str]]:
    """Two network namespaces with a wire between them."""
    names = [f"ts{os.getpid()}{letter}" for letter in "ab"]
    if os.geteuid() or shutil.which("ip") is None:
        pytest.skip("root and ip make network namespaces")
    try:
        for name in names:
            _ip("netns", "add", name)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no network namespaces here: {error.stderr.decode().strip()}")
    try:
        _ip("link", "add", "wire", "netns", names[0], "type", "veth", "peer", "name", "wire", "netns", names[1])
        for at, name in enumerate(names):
            _ip("-n", name, "addr", "add", f"10.78.0.{at + 1}/24", "dev", "wire")
            _ip("-n", name, "link", "set", "wire", "up")
            _ip("-n", name, "link", "set", "lo", "up")
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


def _started(folder: Path, spaces: list[str], *words: str) -> list[subprocess.Popen[str]]:
    (folder / "train.py").write_text(PROGRAM)
    results = []
    for rank, space in enumerate(spaces):
        env = {**environment(), "RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "10.78.0.1", "MASTER_PORT": "29612",
               "MS_TOPO_TIMEOUT": "60", "GLOO_SOCKET_IFNAME": "wire"}
        results.append(subprocess.Popen(
            ["ip", "netns", "exec", space, sys.executable, "-m", "torchspore", "run", "train.py", *words], cwd=folder, env=env, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        ))
    until = time.monotonic() + 100
    while len(list(folder.glob("*.started"))) < 2 and time.monotonic() < until:
        time.sleep(0.1)
    return results


@pytest.mark.slow
def test_a_network_that_is_lost_is_named_in_both_ranks(tmp_path: Path, spaces: list[str]) -> None:
    processes = _started(tmp_path, spaces, "4", "100000")
    _ip("-n", spaces[1], "link", "set", "wire", "down")
    messages = [process.communicate(timeout=60)[1] for process in processes]
    for rank, process in enumerate(processes):
        assert process.returncode == 1, messages[rank]
        assert f"rank {1 - rank} can't be reached: its machine (10.78.0.{2 - rank}) does not answer.\n" in messages[rank], messages[rank]


@pytest.mark.slow
def test_a_network_that_comes_back_soon_is_waited_for(tmp_path: Path, spaces: list[str]) -> None:
    processes = _started(tmp_path, spaces, "20", "300")
    _ip("-n", spaces[1], "link", "set", "wire", "down")
    time.sleep(4)
    _ip("-n", spaces[1], "link", "set", "wire", "up")
    messages = [process.communicate(timeout=60) for process in processes]
    for process, (out, err) in zip(processes, messages):
        assert process.returncode == 0 and "all of them" in out, err


def _silent() -> Any:
    import time

    import numpy as np
    from mindspore import Tensor, communication, ops

    from torchspore.distributed.comm import peer_liveness, watchdog

    replace(watchdog, LATE=0.2, RETRY_SECONDS=0.1, LOST=0.5)
    communication.init()
    if communication.get_rank() == 1:
        assert watchdog.watch is not None
        watchdog.watch._over.set()                           # gives no sign of life
        time.sleep(1.5)
        return None
    knocked: list[Any] = []
    replace(peer_liveness, is_reachable=lambda address: bool(knocked.append(address)))
    try:
        ops.AllReduce()(Tensor(np.ones(2, np.float32)))
    except RuntimeError as error:
        return str(error), knocked


def test_a_rank_that_gives_no_sign_and_can_not_be_reached(workers: Any) -> None:
    text, knocked = workers(2, _silent, seconds=20)[0]
    assert "rank 1 can't be reached: its machine (127.0.0.1) does not answer." in text and len(knocked) == 1, text


def test_a_door_answers_though_nobody_opens() -> None:
    address = peer_liveness.ProbePort("127.0.0.1")
    assert address.address[0] == "127.0.0.1" and all(peer_liveness.is_reachable(address.address) for _ in range(100))
    address.close()
    assert not peer_liveness.is_reachable(("no.such.machine.test", 9))


def test_an_errand_that_does_not_come_back() -> None:
    errand = peer_liveness.BackgroundCall(lambda: time.sleep(0.5))
    assert errand.result(0.01) is None and not errand.is_over
    with pytest.raises(ZeroDivisionError):
        peer_liveness.BackgroundCall(lambda: 1 // 0).result()
    assert peer_liveness.BackgroundCall(lambda: 3).result() == 3
