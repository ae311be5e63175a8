#!/usr/bin/env python3
"""Cost of the creation of torch's DeviceMesh in one of N processes, compared with the groups of `distributed.comm.groups`.

    python benchmarks/device_mesh.py

torch's `fake` backend replaces the other processes: it connects nothing, so that the table has the calls and the time of only one
process. Groups of torchspore are created by their members only, one for each set of axes along which a graph exchanges.
"""
from __future__ import annotations

import json
import subprocess
import sys
import time

GRIDS = ((2, 2, 2), (4, 4, 4), (8, 8, 8), (16, 8, 8))
PROGRAM = """
import json, math, sys, time
import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d
from torch.distributed.device_mesh import init_device_mesh
from torch.testing._internal.distributed.fake_pg import FakeStore

sizes, kind = tuple(json.loads(sys.argv[1])), sys.argv[2]
count = math.prod(sizes)
dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=count)
created, helper = [], c10d._new_process_group_helper

def counted(size, rank, ranks, *arguments, **names):
    created.append(not ranks or 0 in ranks)
    return helper(size, rank, ranks, *arguments, **names)

c10d._new_process_group_helper = counted
begun = time.perf_counter()
if kind == "DeviceMesh":
    mesh = init_device_mesh("cpu", sizes, mesh_dim_names=("a", "b", "c"))
    mesh["b", "c"]._flatten("bc")
else:
    for ranks in ([sizes[1] * sizes[2] * at for at in range(sizes[0])], [sizes[2] * at for at in range(sizes[1])], list(range(sizes[2])),
                  list(range(sizes[1] * sizes[2]))):
        world = c10d._get_default_group()
        backend, store = c10d.Backend(c10d._world.pg_backend_config[world]), c10d._world.pg_map[world][1]
        name = c10d.GroupName(f"{ranks[:2]}{len(ranks)}")
        c10d._new_process_group_helper(len(ranks), 0, ranks, backend, store, name, timeout=c10d.default_pg_timeout)
print(json.dumps([len(created), sum(created), time.perf_counter() - begun]))
"""


def main() -> None:
    """Print the table."""
    print("| processes | grid | DeviceMesh: calls (as a member), ms | groups of members: calls, ms |\n|---|---|---|---|")
    for sizes in GRIDS:
        cells = []
        for kind in ("DeviceMesh", "members"):
            run = subprocess.run([sys.executable, "-c", PROGRAM, json.dumps(sizes), kind], capture_output=True, text=True, check=True)
            calls, member_calls, seconds = json.loads(run.stdout.splitlines()[-1])
            cells.append(f"{calls} ({member_calls}), {seconds * 1000:.1f}" if kind == "DeviceMesh" else f"{calls}, {seconds * 1000:.1f}")
        count = sizes[0] * sizes[1] * sizes[2]
        print(f"| {count} | {' x '.join(map(str, sizes))} | {cells[0]} | {cells[1]} |", flush=True)
        time.sleep(0.1)


if __name__ == "__main__":
    main()
