"""`op_debug_option`: operators that read or write outside of their memory."""
from __future__ import annotations

from torchspore.context.effects import Outcome
from torchspore.context.store import STORE
from torchspore.engine.devices import device


def check(value: str) -> Outcome:
    """Apply 'oom': an index that is out of range is an error at its line."""
    if not value:
        return Outcome.applied()
    if STORE.get("device_target") == "Ascend":
        device.npu().set_option({"ACL_OP_DEBUG_OPTION": value})
        return Outcome.applied("the device checks what operators read and write")
    return Outcome.no_effect("the kernels of this device check each index in any case; one out of range is an error at its line")
