"""How many cores a process may use, and that all of its threads stay on those that `set_cpu_affinity` names."""
from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from support.processes import Run

from torchspore.base import cores

PROGRAM = """
import os, threading, time
import mindspore as ms
from mindspore import ops, runtime
import mindspore.dataset as ds
import torch

def places():
    return {tuple(sorted(os.sched_getaffinity(int(thread)))) for thread in os.listdir("/proc/self/task")}

def load():
    x = ops.ones((900, 900))
    start, cpu = time.monotonic(), time.process_time()
    while time.monotonic() < start + 0.5:
        x = ops.matmul(x, x) * 0
    return (time.process_time() - cpu) / (time.monotonic() - start)

own = sorted(os.sched_getaffinity(0))
ms.set_context(runtime_num_threads=len(own))
load()                                             # the kernels' threads are there
first = own[0]
runtime.set_cpu_affinity(True, [str(first)])
assert places() == {(first,)}, places()
print(torch.get_num_threads(), load() < 1.1)
seen = set()
def look(row):
    seen.update(os.sched_getaffinity(0))
    return row
list(ds.NumpySlicesDataset([1, 2, 3, 4], num_parallel_workers=2).map(look, num_parallel_workers=2))
assert seen == {first}
try:
    runtime.set_cpu_affinity(True, ["4000"])
except ValueError as error:
    print(error)
assert places() == {(first,)}
runtime.set_cpu_affinity(False)
print(torch.get_num_threads() == len(own), os.sched_getaffinity(0) == set(own))
"""


def group(folder: Path, **files: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    return folder


@pytest.mark.parametrize(("of_root", "of_container", "result"), [
    ("max 100000", "max 100000", 1 << 16), ("max 100000", "150000 100000", 2), ("100000 100000", "400000 100000", 1),
    ("no number", "", 1 << 16), ("0 0", "-1 100000", 1 << 16),
])
def test_a_container_s_share(tmp_path: Path, of_root: str, of_container: str, result: int) -> None:
    group(tmp_path / "groups", cpu__max=of_root)
    group(tmp_path / "groups" / "pods" / "one", cpu__max=of_container)
    (tmp_path / "cgroup").write_text("0::/pods/one\n")
    assert cores.quota(tmp_path / "groups", tmp_path / "cgroup") == result


def test_a_share_of_the_older_kind(tmp_path: Path) -> None:
    group(tmp_path / "cpu", cpu__cfs_quota_us="250000\n", cpu__cfs_period_us="100000\n")
    assert cores.quota(tmp_path, tmp_path / "missing") == 3
    assert 1 <= cores.usable() <= (os.cpu_count() or 1)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system places threads itself")
def test_all_threads_stay_on_their_cores(run: Callable[..., Run], tmp_path: Path) -> None:
    (tmp_path / "bound.py").write_text(PROGRAM)
    ran = run("explain", "bound.py")
    cores_here = sorted(os.sched_getaffinity(0))
    lines = ran.out.splitlines()
    assert lines[0] == "1 True", ran.err
    assert lines[1] == f"set_cpu_affinity(affinity_cpu_list=['4000']): expected cores of {', '.join(map(str, cores_here))}."
    assert lines[2] == "True True", ran.err
    assert f"  the process runs on the cores {cores_here[0]}" in lines
    assert any(line.startswith("runtime_num_threads") and line.endswith(f"of {len(cores_here)} cores") for line in lines)
