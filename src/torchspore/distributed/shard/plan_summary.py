"""A plan as data: what `torchspore plan --json` prints, and what `--alternatives` compares."""
from __future__ import annotations

from dataclasses import asdict
from typing import Any

from torchspore.context.plan_request import Request
from torchspore.distributed.shard.memory_model import memory
from torchspore.distributed.shard.pipeline_parallel import step_time
from torchspore.distributed.shard.search import costs


def summary(split: Any, request: Request) -> dict[str, Any]:
    """Return the predicted step of a plan: times in seconds, sizes in bytes, for the device that holds most."""
    machine = request.machine
    local, stages = split.local, 1 if split.pipeline is None else split.pipeline.stages
    cost = costs.of(local, machine, is_fused=True) if stages == 1 else step_time.of(local, stages, machine)
    device_memory = memory(split)
    searched = getattr(split.sharded_capture, "searched", None)
    return {
        "devices": split.sharded_capture.count * split.sharded_capture.stages, "grid": list(local.mesh.sizes), "stages": stages,
        "micro_batches": request.micro_batches,
        "step_seconds": cost.seconds, "exchange_seconds": cost.sending, "computing_seconds": cost.computing,
        "received_bytes": cost.received, "messages": cost.messages,
        "memory_bytes": {**asdict(device_memory), "total": device_memory.total}, "capacity_bytes": machine.capacity,
        "fits": device_memory.total <= machine.capacity,
        "plans": [
            {"name": row.name, "grid": list(row.mesh.sizes), "step_seconds": row.cost.seconds, "exchange_seconds": row.cost.sending,
             "received_bytes": row.cost.received, "peak_bytes": row.cost.peak_bytes, "is_taken": row.is_taken}
            for row in (searched.rows if searched is not None else ())
        ],
        "machine": asdict(machine),
    }
