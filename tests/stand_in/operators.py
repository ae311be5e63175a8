"""The operators of the device: each computes on the host, on the memory that the device's tensors own."""
from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import torch
from torch.utils import _pytree as pytree

from stand_in import hazards, late, memory, pinned, randomness, streams
from stand_in.counting import count_transfer, count_wait, counts
from stand_in.memory import NAME, Pairs, is_on_device
from stand_in.operands import check_devices, needs_values, with_tensors, written_ids

_aten = torch.ops.aten
failing: set[str] = set()
"""Names of operators that fail on the device; the next synchronization reports it, as a kernel's assertion does."""
has_failed = False
_METADATA = {_aten.as_strided.default, _aten.view.default, _aten._reshape_alias.default, _aten.view.dtype}
"""Operators that read no values: torch's own kernels for the host run on the device's tensor itself."""
DIRECT = (
    _aten.smooth_l1_loss.default, _aten.kaiser_window.default, _aten.kaiser_window.periodic, _aten.kaiser_window.beta,
)
"""Operators that torch builds of others for devices, in ways that only its own devices can follow; here the host's kernel runs."""
HALF = (torch.float16, torch.bfloat16)
_HOST_KERNELS = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)


def run(operator: Any, *arguments: Any, **keywords: Any) -> Any:
    """Run any operator that has a tensor of the device, or creates one. This is the fallback of torch's key PrivateUse1."""
    if operator is _aten.copy_.default:
        return copy(*arguments, **keywords)
    if operator is _aten._copy_from.default:
        return copy(arguments[1], arguments[0], *arguments[2:], **keywords)
    if operator in _METADATA:
        return operator.redispatch(_HOST_KERNELS, *arguments, **keywords)
    counts["operators"] += 1
    if operator.overloadpacket.__name__ in failing:
        fail()
    check_devices(operator, arguments, keywords)
    arguments = with_tensors(operator, arguments)
    if needs_values(operator, arguments, keywords):
        count_wait(str(operator))
        if streams.is_late:
            late.before_waiting(operator, arguments)
        return compute(operator, arguments, keywords)
    return late.compute(operator, arguments, keywords, compute) if streams.is_late else compute(operator, arguments, keywords)


def fail() -> None:
    """Let the next synchronization report that a kernel has failed."""
    global has_failed
    has_failed = True


def raise_failure() -> None:
    """Raise RuntimeError where a kernel has failed, once."""
    global has_failed
    if has_failed:
        has_failed = False
        failing.clear()
        raise RuntimeError("device-side assert triggered\nand further lines, as CUDA writes them")


def compute(operator: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Run an operator on the host values of its operands and return its results on the requested device, or on that of its operands."""
    requested = None if keywords.get("device") is None else torch.device(keywords["device"])
    pairs = Pairs((requested.index or 0) if requested is not None and requested.type == NAME else 0)
    operands: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
    results_of_caller = written_ids(operator, arguments, keywords)

    def to_host(value: Any) -> Any:
        if not is_on_device(value):
            return value
        # A result without memory will be resized, and memory that a tensor of another device owns can not be resized.
        is_empty_result = id(value) in results_of_caller and not value.untyped_storage().nbytes()
        pairs.index = value.device.index or 0
        values = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype) if is_empty_result else pairs.host(value)
        operands[id(values)] = value, values
        return values

    host_keywords = keywords if requested is None else {**keywords, "device": torch.device("cpu")}
    host_arguments, host_keywords = pytree.tree_map(to_host, (arguments, host_keywords))
    with randomness.drawing(pairs.index) if torch.Tag.nondeterministic_seeded in operator.tags else nullcontext():
        results = operator(*host_arguments, **host_keywords)
    for tensor, values in operands.values():
        if (values.shape, values.stride()) != (tensor.shape, tensor.stride()):     # resized to take a result, or transposed in place
            tensor.data = pairs.device(values)
    if not operands if requested is None else requested.type != NAME:
        return results
    return pytree.tree_map_only(torch.Tensor, lambda t: operands[id(t)][0] if id(t) in operands else pairs.device(t), results)


def copy(target: torch.Tensor, source: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    """Copy between tensors of which at least one is on the device."""
    if is_on_device(target) and is_on_device(source):
        counts["operators"] += 1
        blocks = False
    else:
        count_transfer("to_device" if is_on_device(target) else "to_host")
        # A copy into memory of the host that is not pinned returns when it is complete, and a copy from there is staged first.
        blocks = not non_blocking or not (is_on_device(target) or pinned.is_pinned(target))
        if blocks:
            count_wait("a copy to the device" if is_on_device(target) else "a copy to the host")
    if streams.is_late:
        return late.copy(target, source, blocks)
    pairs = Pairs()
    values = pairs.host(source) if is_on_device(source) else source
    (pairs.host(target) if is_on_device(target) else target).copy_(values)
    return target


def to_copy(tensor: torch.Tensor, *, dtype: Any = None, device: Any = None, non_blocking: bool = False, **names: Any) -> torch.Tensor:
    """Copy a tensor of the device to a device; a copy to the host that Python does not wait for goes to pinned memory."""
    device = tensor.device if device is None else torch.device(device)
    memory_format = names.get("memory_format") or torch.preserve_format
    shape = torch.empty_strided(tensor.shape, tensor.stride(), dtype=dtype or tensor.dtype, device="meta")
    shape = torch.empty_like(shape, memory_format=memory_format)
    if device.type == "meta":
        return shape
    target = torch.empty_strided(shape.shape, shape.stride(), dtype=shape.dtype, device=device)
    if device.type == "cpu" and non_blocking:
        pinned.pin(target)
    if device.type == "cpu" and target.dtype != tensor.dtype:
        tensor = to_copy(tensor, dtype=dtype)                           # the device converts, as torch has it on a GPU
    return target.copy_(tensor, non_blocking)


def resize(tensor: torch.Tensor, size: Any, *, memory_format: Any = None) -> torch.Tensor:
    """Give a tensor another shape, and more memory where it needs more; other tensors keep the memory that they show."""
    counts["operators"] += 1
    values = torch.empty(0, dtype=tensor.dtype).resize_(size, memory_format=memory_format)
    needed = (tensor.storage_offset() + values.numel()) * tensor.element_size()
    if needed <= tensor.untyped_storage().nbytes():
        tensor.data = memory.view_of_device(tensor.untyped_storage(), tensor.dtype, tensor.storage_offset(), values.shape, values.stride())
        return tensor
    if streams.is_late:
        streams.wait_for_line(streams.current_stream().line)
    old = memory.host_values(tensor).reshape(-1)
    values.view(-1)[: old.numel()] = old
    tensor.data = Pairs(tensor.device.index or 0).device(values)
    return tensor


def record_stream(tensor: torch.Tensor, stream: torch.Stream) -> None:
    """Note that a stream uses the memory of a tensor, as torch's allocator does."""
    if streams.is_late:
        hazards.record(tensor, stream.stream_id)


def convolution(x: torch.Tensor, weight: torch.Tensor, *options: Any) -> Any:
    """Run a convolution; torch asks other devices for this one under a name of their own. Half precision is added up in float32.

    The results are contiguous, because torch's fake tensors have them so for such a device.
    """
    if x.dtype in HALF:
        wide = [None if value is None else value.float() for value in (x, weight, options[0])]
        return run(_aten.convolution.default, *wide, *options[1:]).to(x.dtype).contiguous()
    return run(_aten.convolution.default, x, weight, *options).contiguous()


def convolution_backward(gradient: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, *options: Any) -> Any:
    """Run the gradient of a convolution."""
    is_transposed, groups = options[3], options[5]
    channels = [weight.shape[1] * groups if is_transposed else weight.shape[0]]
    if x.dtype in HALF:
        results = run(_aten.convolution_backward.default, gradient.float(), x.float(), weight.float(), channels, *options)
    else:
        results = run(_aten.convolution_backward.default, gradient, x, weight, channels, *options)
    return tuple(None if result is None else result.to(x.dtype).contiguous() for result in results)


def fused_sgd(parameters: Any, gradients: Any, moments: Any, *, lr: Any, momentum: float, weight_decay: float, **options: Any) -> None:
    """Run a step of SGD. torch's kernel for the host leaves full vectors of half precision as they are where there is no momentum."""
    if not momentum and not options["maximize"] and any(p.dtype in HALF for p in parameters):
        for p, g in zip(parameters, gradients):
            p.copy_(p.float() - lr * (g.float() + weight_decay * p.float()))
        return
    operator = _aten._fused_sgd_.tensor_lr if isinstance(lr, torch.Tensor) else _aten._fused_sgd_.default
    run(operator, parameters, gradients, moments, lr=lr, momentum=momentum, weight_decay=weight_decay, **options)


def set_storage(tensor: torch.Tensor, storage: torch.UntypedStorage, *layout: Any) -> torch.Tensor:
    """Let a tensor show other memory of its device."""
    tensor_on_it: torch.Tensor = _aten.set_.source_Storage_storage_offset.redispatch(_HOST_KERNELS, tensor, storage, *layout)
    return tensor_on_it
