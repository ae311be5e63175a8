"""The late mode: an operator is queued on its stream and runs when Python waits for the stream.

The results' shapes come of torch's meta kernels; until the operator runs, the results' memory holds nan, or -1. An operator without a
meta kernel, or that draws random numbers, first lets the queue of its stream run. Then it runs at once.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import _disable_current_modes

from stand_in import hazards, memory, pinned, streams
from stand_in.memory import NAME, Pairs, is_on_device
from stand_in.operands import is_view, written_ids

_POISON = 255
_WITH_FEW_KERNELS = frozenset({torch.uint16, torch.uint32, torch.uint64})


def compute(operator: Any, arguments: tuple[Any, ...], keywords: dict[str, Any], compute_now: Callable[..., Any]) -> Any:
    """Queue an operator and return its results, which have no values yet."""
    if is_view(operator):
        return compute_now(operator, arguments, keywords)
    with streams.lock:
        stream = streams.current_stream()
        results_of_caller = written_ids(operator, arguments, keywords)
        operands = [value for value in pytree.tree_leaves((arguments, keywords)) if is_on_device(value)]
        shapes = _infer(operator, arguments, keywords, results_of_caller)
        # CUDA also refuses a dtype without a kernel at the call.
        if shapes is None or any(value.dtype in _WITH_FEW_KERNELS for value in operands):
            return _run_now(operator, arguments, keywords, compute_now, operands, results_of_caller)
        results = pytree.tree_map_only(torch.Tensor, lambda t: t if is_on_device(t) else _allocate(t, stream.line, keywords), shapes)
        work = _work(operator, arguments, keywords, results)
        number = stream.line.launch(work)
        _note_use(str(operator), stream.line, number, operands, results_of_caller, results)
        return results


def before_waiting(operator: Any, arguments: tuple[Any, ...]) -> None:
    """Let Python wait for the current stream, and check that an operator's operands are complete there."""
    with streams.lock:
        line = streams.current_stream().line
        number = line.launch()
        hazards.use(str(operator), line, number, [value for value in pytree.tree_leaves(arguments) if is_on_device(value)], [])
        streams.wait_for_line(line)


def copy(target: torch.Tensor, source: torch.Tensor, blocks: bool) -> torch.Tensor:
    """Queue a copy. The host's memory is read at once, except pinned memory, which is read when the copy runs."""
    with streams.lock:
        stream = streams.current_stream()
        operands = [value for value in (target, source) if is_on_device(value) or (not blocks and pinned.is_pinned(value))]
        values = _host(source) if is_on_device(source) else source
        device_tensor = _host(target) if is_on_device(target) else target
        if not is_on_device(source):
            work = _copy_from_host(device_tensor, values, not blocks and pinned.is_pinned(source))
        else:
            if not is_on_device(target) and not blocks:
                _poison(target)
            work = _below_autograd(lambda: device_tensor.copy_(values))
        number = stream.line.launch(work)
        _note_use("copy_", stream.line, number, operands, {id(target)}, None)
        if blocks:
            streams.wait_for_line(stream.line)
    return target


def _copy_from_host(target: torch.Tensor, source: torch.Tensor, reads_late: bool) -> Callable[[], None]:
    """Return the work of a copy from the host. It reports a source that Python writes between the call and the copy."""
    snapshot = source.detach().clone()
    is_comparable = reads_late and not hazards.access_of(source.untyped_storage()).is_being_written

    def work() -> None:
        if is_comparable and not torch.equal(source.detach().nan_to_num(), snapshot.nan_to_num()):
            hazards.faults.append("pinned memory of the host was overwritten before its copy to the device was complete")
        target.copy_(source if reads_late else snapshot)

    return _below_autograd(work)


def _below_autograd(work: Callable[[], Any]) -> Callable[[], None]:
    """Return work that runs as a kernel does: without gradients, and without what follows operators in Python."""
    def run() -> None:
        with torch._C._AutoDispatchBelowAutograd(), torch.no_grad(), _disable_current_modes():
            work()

    return run


def _host(tensor: torch.Tensor) -> torch.Tensor:
    """Return the values of a tensor, on memory that stays when the tensor is released."""
    host = hazards.access_of(tensor.untyped_storage()).host
    return memory.host_values(tensor) if host is None else memory.view_like(host, tensor)


def _infer(operator: Any, arguments: Any, keywords: Any, results_of_caller: set[int]) -> Any:
    """Return results without memory; None where torch can not tell their shapes, or where random numbers are drawn."""
    if torch.Tag.nondeterministic_seeded in operator.tags:
        return None
    tensors: dict[int, torch.Tensor] = {}

    def to_meta(value: Any) -> Any:
        if not is_on_device(value):
            return value
        shape = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
        tensors[id(shape)] = value
        return shape

    if any(is_on_device(v) and id(v) in results_of_caller and not v.numel() for v in pytree.tree_leaves((arguments, keywords))):
        return None                                                      # a result that will be resized
    if any(is_on_device(v) and (v.is_conj() or v.is_neg()) for v in pytree.tree_leaves((arguments, keywords))):
        return None
    meta_arguments, meta_keywords = pytree.tree_map(to_meta, (arguments, keywords))
    if keywords.get("device") is not None:
        if torch.device(keywords["device"]).type != NAME:
            return None
        meta_keywords["device"] = torch.device("meta")
    try:
        with _disable_current_modes():
            shapes = operator(*meta_arguments, **meta_keywords)
    except Exception:                       # no meta kernel, or operands that the kernel itself refuses in better words
        return None
    if operator is torch.ops.aten.native_batch_norm.default and not arguments[5]:
        # Without training the host's kernel keeps nothing for the gradient; `norms` adds what an accelerator keeps.
        shapes = (shapes[0], *(torch.empty(0, dtype=shape.dtype, device="meta") for shape in shapes[1:]))
    leaves = pytree.tree_leaves(shapes)
    if not all(isinstance(leaf, torch.Tensor) or leaf is None for leaf in leaves) or any(
        isinstance(leaf, torch.Tensor) and leaf.device.type != "meta" for leaf in leaves
    ):
        return None
    for shape, tensor in ((s, t) for s, t in zip(leaves, (tensors.get(id(leaf)) for leaf in leaves)) if t is not None):
        if (shape.shape, shape.stride()) != (tensor.shape, tensor.stride()):
            return None
    return pytree.tree_map_only(torch.Tensor, lambda t: tensors.get(id(t), t), shapes)


def _allocate(shape: torch.Tensor, line: streams.Line, keywords: dict[str, Any]) -> torch.Tensor:
    values = torch.empty_strided(shape.shape, shape.stride(), dtype=shape.dtype)
    _poison(values)
    device = keywords.get("device")
    tensor = Pairs(0 if device is None else torch.device(device).index or 0).device(values)
    hazards.access_of(tensor.untyped_storage(), line, values.untyped_storage())
    return tensor


def _poison(values: torch.Tensor) -> None:
    """Fill memory with nan, or -1 or True, as long as its values are not there."""
    if values.dtype is torch.bool:
        values.fill_(True)
        return
    storage = values.untyped_storage()
    memory.view_of_host(storage, torch.uint8, values.storage_offset() * values.element_size(), (_bytes(values),), (1,)).fill_(_POISON)


def _bytes(values: torch.Tensor) -> int:
    if not values.numel():
        return 0
    extent = 1 + sum((size - 1) * stride for size, stride in zip(values.shape, values.stride()))
    return extent * values.element_size()


def _work(operator: Any, arguments: Any, keywords: Any, results: Any) -> Callable[[], None]:
    """Return what an operator does when it runs: it computes on the host and writes its results."""
    host_keywords = keywords if keywords.get("device") is None else {**keywords, "device": torch.device("cpu")}
    in_place: dict[int, torch.Tensor] = {}

    def to_host(value: Any) -> Any:
        if not is_on_device(value):
            # A number of the host may change before the operator runs.
            return value.detach().clone() if isinstance(value, torch.Tensor) else value
        values = in_place[id(value)] = _host(value)
        return values

    host_arguments, host_keywords = pytree.tree_map(to_host, (arguments, host_keywords))
    targets = [None if t is None else in_place.get(id(t)) if id(t) in in_place else _host(t) for t in pytree.tree_leaves(results)]
    written_ids = set(map(id, in_place.values()))

    def work() -> None:
        values = pytree.tree_leaves(operator(*host_arguments, **host_keywords))
        for target, value in zip(targets, values):
            if target is None or value is None or id(target) in written_ids:
                continue
            if target.shape != value.shape:
                raise AssertionError(f"{operator}: torch's meta kernel gives the shape {target.shape}, the operator {value.shape}")
            if target.dtype != value.dtype:
                raise AssertionError(f"{operator}: torch's meta kernel gives the dtype {target.dtype}, the operator {value.dtype}")
            target.copy_(value)

    return _below_autograd(work)


def _run_now(operator: Any, arguments: Any, keywords: Any, compute_now: Callable[..., Any], operands: Sequence[torch.Tensor],
             results_of_caller: set[int]) -> Any:
    """Run an operator at once, behind the work of its stream."""
    line = streams.current_stream().line
    number = line.launch()
    results = compute_now(operator, arguments, keywords)
    for tensor in pytree.tree_leaves(results):
        if is_on_device(tensor):
            hazards.access_of(tensor.untyped_storage(), line)
    _note_use(str(operator), line, number, operands, results_of_caller, results)
    return results


def _note_use(name: str, line: streams.Line, number: int, operands: Sequence[torch.Tensor], results_of_caller: set[int],
              results: Any) -> None:
    changed = [tensor for tensor in operands if id(tensor) in results_of_caller]
    new = [tensor for tensor in pytree.tree_leaves(results) if is_on_device(tensor) and all(tensor is not other for other in operands)]
    hazards.use(name, line, number, [tensor for tensor in operands if id(tensor) not in results_of_caller], [*changed, *new])
