"""Options of offloading: `set_offload_context`."""

from __future__ import annotations

from torchspore.context.kinds import INT32, Bool, Choice, Float, Int, Members, Size, Str
from torchspore.context.option import On, Option

API = "offload"
_ACCELERATORS = On.GPU | On.ASCEND


def _member(kind: Bool | Choice | Float | Int | Size | Str, default: object, doc: str) -> Option:
    return Option(within="offload_config", top_level=False, kind=kind, default=default, on=_ACCELERATORS, doc=doc,
                  example="set_offload_context({'offload_param': 'cpu'})")


def _size() -> Size:
    return Size(give=lambda size: f"{size:g}GB", gives="str")


offload_config = Option(
    kind=Members(), default={}, on=_ACCELERATORS, example="set_offload_context({'offload_param': 'cpu'})",
    doc="Where data goes that does not fit on the device.",
)
offload_param = _member(Choice("cpu", "disk"), "", "Where parameters are kept.")
offload_checkpoint = _member(Choice("cpu", "disk"), "", "Where values are kept that the backward pass needs.")
offload_path = _member(Str("the path of a directory"), "./offload", "The directory on disk.")
offload_cpu_size = _member(_size(), "", "How much memory of the host may be used.")
offload_disk_size = _member(_size(), "", "How much of the disk may be used.")
enable_aio = _member(Bool(), True, "Reads and writes the disk while other work goes on.")
aio_block_size = _member(_size(), "", "How much is read or written at a time.")
aio_queue_depth = _member(Int(1, INT32), 1, "How many reads and writes may wait.")
enable_pinned_mem = _member(Bool(), True, "Pins the host's memory, so that copies to the device are faster.")
auto_offload = _member(Bool(), True, "Leaves it to the engine what is moved and when.")
host_mem_block_size = _member(_size(), "", "The step by which the pool of host memory grows.")
cpu_ratio = _member(Float(0.0, 1.0), 1.0, "Which part of the host's memory may be used.")
hbm_ratio = _member(Float(0.0, 1.0), 1.0, "Which part of the device's memory may be used.")
