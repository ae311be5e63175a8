"""A stand-in for an accelerator: torch's device `spore`, whose operators compute on the host and are counted.

What a real one would do in a queue is done at once; what would make Python wait for it is counted as a wait, and what crosses the bus as a
transfer. `begin()` makes torchspore take it for its GPU. One process has one, for good: programs that use it are run in processes.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils import backend_registration

NAME = "spore"
counts: Counter[str] = Counter()
"""`operators` that ran there, `to_device` and `to_host` transfers, and `waits`: reads of values, blocking transfers, synchronizations."""
lines: list[str] = []
"""What was waited for, in order."""
failing: list[str] = []
"""Operators that fail there: the next synchronization tells of it, as a kernel's assertion does."""
devices = 2
_memory: dict[int, tuple[torch.UntypedStorage, Any]] = {}
"""Memory of the host by its address, and the device's storage that stands on it; it is kept for good."""
_HOST = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
_aten = torch.ops.aten
_WAITING = {
    _aten._local_scalar_dense.default, _aten.nonzero.default, _aten.masked_select.default, _aten.equal.default, _aten._unique2.default,
    _aten.is_nonzero.default, _aten.bincount.default,
}
"""What needs the values on the host before Python goes on: numbers, and shapes that depend on values."""


class _Module(backend_registration._DummyBackendModule):
    """What torch looks for as `torch.spore`."""

    @property
    def default_generators(self) -> list[torch.Generator]:
        """Random numbers come from the host's stream."""
        return [torch.default_generator] * devices

    def device_count(self) -> int:
        return devices

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.float16, torch.bfloat16]


def _wait(what: str) -> None:
    counts["waits"] += 1
    lines.append(what)


def _there(values: torch.Tensor) -> torch.Tensor:
    """A tensor of the device on the memory of `values`: with their strides, and views of one array share it there too."""
    own = values.untyped_storage()
    if own.data_ptr() not in _memory:
        _memory[own.data_ptr()] = own, torch._C._construct_storage_from_data_pointer(own.data_ptr(), torch.device(NAME, 0), own.nbytes())
    head = torch._C._acc.create_empty_tensor([0], values.dtype)
    where = _memory[own.data_ptr()][1], values.storage_offset(), values.shape, values.stride()
    return _aten.set_.source_Storage_storage_offset.redispatch(_HOST, head, *where)  # type: ignore[no-any-return]


def held(t: torch.Tensor) -> torch.Tensor:
    """The values of a tensor of the device."""
    own = _memory[t.untyped_storage().data_ptr()][0] if t.numel() else torch.UntypedStorage(0)
    made: torch.Tensor = torch.empty(0, dtype=t.dtype).set_(own, t.storage_offset(), t.shape, t.stride())  # type: ignore[call-overload]
    return made.conj() if t.is_conj() else made


def _is_there(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.device.type == NAME


def _run(operator: Any, *arguments: Any, **keywords: Any) -> Any:
    """Any operator with an array of the device, or one that makes an array there."""
    if operator is _aten.copy_.default:
        return _copy(*arguments, **keywords)
    if operator is _aten._copy_from.default:
        return _copy(arguments[1], arguments[0], *arguments[2:], **keywords)
    counts["operators"] += 1
    if operator in _WAITING:
        _wait(str(operator))
    if str(operator.overloadpacket).removeprefix("aten.") in failing:
        failing.append("device-side assert triggered")
    wanted = keywords.get("device")
    host = {**keywords, "device": torch.device("cpu")} if wanted is not None else keywords
    if operator is _aten._to_copy.default and wanted is not None and torch.device(wanted).type == "cpu":
        counts["to_host"] += 1
        if not keywords.get("non_blocking"):
            _wait("a copy to the host")
    pairs: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def on_host(value: Any) -> Any:
        if not _is_there(value):
            return value
        here = held(value)
        pairs[id(here)] = value, here
        return here

    plain = pytree.tree_map(on_host, (arguments, host))
    out = operator(*plain[0], **plain[1])
    for there, here in pairs.values():
        if (here.shape, here.stride()) != (there.shape, there.stride()):        # it was resized to take a result, or turned in place
            there.data = _there(here)
    stays = pairs if wanted is None else torch.device(wanted).type == NAME
    if not stays:
        return out
    return pytree.tree_map_only(torch.Tensor, lambda t: pairs[id(t)][0] if id(t) in pairs else _there(t), out)


def _convolution(x: Any, w: Any, *how: Any) -> Any:
    return _run(_aten.convolution.default, x, w, *how)


def _convolution_backward(dy: Any, x: Any, w: Any, *how: Any) -> Any:
    return _run(_aten.convolution_backward.default, dy, x, w, [w.shape[0]], *how)


def _copy(to: torch.Tensor, source: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    if _is_there(to) and _is_there(source):
        counts["operators"] += 1
        held(to).copy_(held(source))
    elif _is_there(to):
        counts["to_device"] += 1
        if not non_blocking:
            _wait("a copy to the device")
        held(to).copy_(source)
    else:
        counts["to_host"] += 1
        if not non_blocking:
            _wait("a copy to the host")
        to.copy_(held(source))
    return to


def _synchronize(device: Any = None) -> None:
    _wait("a synchronization")
    if "device-side assert triggered" in failing:
        failing.clear()
        raise RuntimeError("device-side assert triggered\nwhat CUDA says further")


_libraries: list[Any] = []
"""What was registered holds as long as these do."""


def begin() -> None:
    """Makes the device, and torchspore take it for its GPU."""
    backend_registration._setup_privateuseone_for_python_backend(NAME, backend_module=_Module())
    _libraries[:] = torch.library.Library("_", "IMPL"), torch.library.Library("aten", "IMPL")
    _libraries[0].fallback(_run, "PrivateUse1")
    _libraries[1].impl("convolution_overrideable", _convolution, "PrivateUse1")
    _libraries[1].impl("convolution_backward_overrideable", _convolution_backward, "PrivateUse1")
    torch.accelerator.synchronize = _synchronize

    from torchspore.engine import device

    own = device.count
    device._TYPES["GPU"] = NAME
    device.count = lambda target: devices if target == "GPU" else own(target)


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """What a block does to the device."""
    counts.clear()
    lines.clear()
    found: Counter[str] = Counter()
    yield found
    found.update(counts)
