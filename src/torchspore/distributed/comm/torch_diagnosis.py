"""torch's tools for exchanges that fail or hang on accelerators, and their texts in terms of the program.

There the device waits and not Python, so that `watchdog` learns nothing. torch has three tools: the Flight Recorder keeps the last
exchanges of each rank and writes them when NCCL's watchdog gives up; TORCH_DISTRIBUTED_DEBUG=DETAIL compares each exchange of all ranks
before it starts (ProcessGroupWrapper); a monitored barrier before it names a rank that does not come.
"""
from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

from torchspore.base.files import write_atomically
from torchspore.blackbox import flight_dumps
from torchspore.distributed.comm import launch
from torchspore.engine.torch_internals import torch_process_groups

FILE = "TORCH_FR_DUMP_TEMP_FILE"
_DEFAULTS = {"TORCH_NCCL_DUMP_ON_TIMEOUT": "1", "TORCH_NCCL_ENABLE_MONITORING": "1", "TORCH_FR_BUFFER_SIZE": "2000"}
_OLDER_NAMES = {FILE: "TORCH_NCCL_DEBUG_INFO_TEMP_FILE", "TORCH_FR_BUFFER_SIZE": "TORCH_NCCL_TRACE_BUFFER_SIZE"}
_FINGERPRINT = re.compile(r"Rank (\d+) is running collective: CollectiveFingerPrint\((.*?)\)(?:, but|\)\)|\.?Collectives|$)", re.DOTALL)
_BARRIER = re.compile(r"Ranks? ([\d, ]+) failed to pass monitoredBarrier")
_KINDS = {
    "ALLREDUCE": "AllReduce", "_ALLGATHER_BASE": "AllGather", "ALLGATHER": "AllGather", "_REDUCE_SCATTER_BASE": "ReduceScatter",
    "REDUCE_SCATTER": "ReduceScatter", "BROADCAST": "Broadcast", "REDUCE": "Reduce", "ALLTOALL": "AlltoAll", "ALLTOALL_BASE": "AlltoAll",
    "BARRIER": "Barrier", "GATHER": "CollectiveGather", "SCATTER": "CollectiveScatter",
}


def prepare() -> None:
    """Let torch's recorder write its dumps beside the log of this process. Variables that the user has set take precedence."""
    log = os.environ.get(launch.LOG)
    values = dict(_DEFAULTS)
    if log:
        values[FILE] = str(Path(log).parent / flight_dumps.PREFIX)
    for name, value in values.items():
        if name not in os.environ and _OLDER_NAMES.get(name, name) not in os.environ:
            os.environ[name] = value


def write_dump(rank: int) -> None:
    """Write the last exchanges of this process, if torch has recorded any, to the file that its own watchdog would write."""
    prefix = os.environ.get(FILE)
    if not prefix:
        return
    with contextlib.suppress(OSError, RuntimeError, AttributeError):
        write_atomically(Path(f"{prefix}{rank}"), torch_process_groups.recorded_exchanges())


def translated(text: str) -> str | None:
    """Return the meaning of an error of torch's tools in one sentence without a period; None for any other text."""
    described = [(int(rank), _exchange(fingerprint)) for rank, fingerprint in _FINGERPRINT.findall(text)]
    if "Detected mismatch between collectives" in text and len(described) == 2:
        (rank, here), (other_rank, there) = described
        return f"rank {rank} is in {here}, and rank {other_rank} is in {there}"
    barrier = _BARRIER.search(text)
    if barrier is not None:
        ranks = [rank.strip() for rank in barrier.group(1).split(",") if rank.strip()]
        has_several = len(ranks) > 1
        return f"rank{'s' if has_several else ''} {', '.join(ranks)} {'have' if has_several else 'has'} not come to it"
    return None


def _exchange(fingerprint: str) -> str:
    """Return what a fingerprint of ProcessGroupWrapper describes."""
    fields: dict[str, str] = dict(re.findall(r"(\w+)=(\[[^\]]*\]|[^,\s]+)", fingerprint))
    name = fields.get("OpType", "an exchange")
    kind = _KINDS.get(name, name)
    shape, dtype = fields.get("TensorShape", ""), fields.get("TensorDtypes", "")
    return f"{kind} of {flight_dumps.dtype_name(dtype)}{shape}" if shape else str(kind)
