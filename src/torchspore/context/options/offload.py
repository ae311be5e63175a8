"""Options of offloading: `set_offload_context`."""

from __future__ import annotations

from torchspore.context.kinds import INT32, Bool, Choice, Float, Int, Members, Size
from torchspore.context.kinds.files import Folder
from torchspore.context.option import On, Option

API = "offload"
_ACCELERATORS = On.GPU | On.ASCEND


def _member(name: str, kind: Bool | Choice | Float | Int | Size | Folder, default: object, doc: str, on: On = On.ALL) -> Option:
    return Option(member_of="offload_config", top_level=False, kind=kind, default=default, on=on, doc=doc,
                  effect=f"engine.memory.offload:{name}", example="set_offload_context({'offload_param': 'cpu'})")


def _size() -> Size:
    return Size(give=lambda size: f"{size:g}GB", gives="str")


offload_config = Option(
    kind=Members(), default={}, example="set_offload_context({'offload_param': 'cpu'})",
    doc="Where data moves that does not fit on the device, with `memory_offload` ON.",
)
offload_param = _member("offload_param", Choice("cpu", "disk"), "", "Where the state of optimizers is stored between two steps.")
offload_checkpoint = _member(
    "offload_checkpoint", Choice("cpu", "disk"), "", "Where values for the backward pass are stored; by default the engine chooses.",
)
offload_path = _member(
    "offload_path", Folder(), "./offload",
    "The directory on disk. Files in it are unlinked, so that none remains; the last component of the path may be missing.",
)
offload_cpu_size = _member("offload_cpu_size", _size(), "", "How much memory of the host may be used.", _ACCELERATORS)
offload_disk_size = _member("offload_disk_size", _size(), "", "How much of the disk may be used; values beyond it stay in memory.")
enable_aio = _member("enable_aio", Bool(), True, "Reads and writes the disk while other work continues.")
aio_block_size = _member("aio_block_size", _size(), "", "How much is read or written at a time.")
aio_queue_depth = _member("aio_queue_depth", Int(1, INT32), 1, "How many reads, and how many writes, may wait.")
enable_pinned_mem = _member(
    "enable_pinned_mem", Bool(), True, "Pins the host's memory, so that copies to the device are faster.", _ACCELERATORS,
)
auto_offload = _member(
    "auto_offload", Bool(), True, "The engine decides which values move and when. Off: only the values that other keys name move.",
)
host_mem_block_size = _member("host_mem_block_size", _size(), "", "The step size by which the pool of host memory grows.", _ACCELERATORS)
cpu_ratio = _member("cpu_ratio", Float(0.0, 1.0, above=True), 1.0, "The fraction of the host's memory that may be used.", _ACCELERATORS)
hbm_ratio = _member("hbm_ratio", Float(0.0, 1.0, above=True), 1.0, "The fraction of the device's memory in use before values move.")
