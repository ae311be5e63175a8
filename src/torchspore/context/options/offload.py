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
    doc="The destinations of data that does not fit on the device, if `memory_offload` is ON.",
)
offload_param = _member("offload_param", Choice("cpu", "disk"), "", "The storage for the state of optimizers between two steps.")
offload_checkpoint = _member(
    "offload_checkpoint", Choice("cpu", "disk"), "", "The storage for values that the backward pass needs; by default the engine chooses.",
)
offload_path = _member(
    "offload_path", Folder(), "./offload",
    "The directory on disk. Files in it are unlinked, so that none remains after the program. The last component of the path need not "
    "exist.",
)
offload_cpu_size = _member("offload_cpu_size", _size(), "", "The maximum amount of host memory.", _ACCELERATORS)
offload_disk_size = _member("offload_disk_size", _size(), "", "The maximum amount of disk space; further values stay in memory.")
enable_aio = _member("enable_aio", Bool(), True, "Reads from and writes to disk while other work continues.")
aio_block_size = _member("aio_block_size", _size(), "", "The size of one read or write.")
aio_queue_depth = _member("aio_queue_depth", Int(1, INT32), 1, "The maximum number of waiting reads, and of waiting writes.")
enable_pinned_mem = _member(
    "enable_pinned_mem", Bool(), True, "Pins host memory, so that copies to the device are faster.", _ACCELERATORS,
)
auto_offload = _member(
    "auto_offload", Bool(), True, "Lets the engine decide which values move and when. If False, only values that other keys name move.",
)
host_mem_block_size = _member("host_mem_block_size", _size(), "", "The step size by which the pool of host memory grows.", _ACCELERATORS)
cpu_ratio = _member("cpu_ratio", Float(0.0, 1.0, above=True), 1.0, "The maximum fraction of host memory.", _ACCELERATORS)
hbm_ratio = _member("hbm_ratio", Float(0.0, 1.0, above=True), 1.0, "The fraction of the device's memory that is filled before values move.")
