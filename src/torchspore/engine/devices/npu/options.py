"""`ascend_config` as calls of torch_npu. Each effect says on another device why there is nothing for it to do.

Names and signatures: torch_npu 2.13, `torch_npu/npu/npu_config.py` and `utils.py`; tests/unit/npu holds them against a record.
"""
from __future__ import annotations

import os

from torchspore.context.effects import Outcome
from torchspore.context.store import STORE
from torchspore.engine.devices import device

_PRECISION_MODES = ("allow_fp32_to_fp16", "must_keep_origin_dtype")
"""The values of ACL_PRECISION_MODE; graph passes implement the other policies."""
_WATCHDOG = "TORCH_HCCL_ASYNC_ERROR_HANDLING"


def is_ascend() -> bool:
    """Return whether operators run on an Ascend device."""
    return bool(STORE.get("device_target") == "Ascend")


def elsewhere(what: str) -> Outcome:
    """The outcome on another device: `what` it would steer is not here."""
    return Outcome.no_effect(f"{what}, and operators run on the {STORE.get('device_target')}")


def set_precision_mode(mode: str) -> Outcome | None:
    """Make the device's operators follow `precision_mode`. Return None on other devices, and for a mode that torch_npu lacks."""
    if not is_ascend() or mode not in _PRECISION_MODES:
        return None
    device.npu().set_option({"ACL_PRECISION_MODE": mode})
    return Outcome.applied(f"the device's operators compute as {mode} says")


def jit_compile(value: str) -> Outcome | None:
    """Apply `jit_compile`: '1' has the device's operators compiled, '0' takes ready-made ones; None elsewhere, where graphs read it."""
    if not is_ascend() or not value:
        return None
    device.npu().set_compile_mode(jit_compile=value == "1")
    return Outcome.applied("operators are compiled for their lengths" if value == "1" else "existing kernels run, nothing is compiled")


def matmul_hf32(value: str) -> Outcome:
    """Apply `matmul_allow_hf32`."""
    if not is_ascend():
        return elsewhere("HF32 is a format of Ascend's matrix unit")
    device.npu().matmul.allow_hf32 = value == "1"
    return Outcome.applied("products of float32 may use HF32" if value == "1" else "products of float32 keep all their bits")


def conv_hf32(value: str) -> Outcome:
    """Apply `conv_allow_hf32`; the device uses HF32 by default."""
    if not is_ascend():
        return elsewhere("HF32 is a format of Ascend's matrix unit")
    device.npu().conv.allow_hf32 = value != "0"
    return Outcome.applied("convolutions of float32 may use HF32" if value != "0" else "convolutions of float32 keep all their bits")


def of_graph_engine(value: str) -> Outcome | None:
    """An option of CANN's graph engine, which graphs of level O2 read on Ascend (graph_engine.py); None there."""
    return None if is_ascend() else elsewhere("it steers CANN's graph engine")


def hccl_watchdog(is_on: bool) -> Outcome:
    """Apply `hccl_watchdog` to process groups that are made from now on."""
    if not is_ascend():
        return elsewhere("HCCL carries the collectives of Ascend devices")
    os.environ[_WATCHDOG] = "1" if is_on else "0"
    return Outcome.applied("a collective that fails ends the program" if is_on else "collectives are not watched")
