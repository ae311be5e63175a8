"""MindSpore's names for torch's operators: the nodes of a graph, in their order, and a table for single operators."""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from torchspore.engine.front_end import FRONT
from torchspore.engine.torch_internals import node_metadata
from torchspore.graph.save_graphs.snapshot import Taker
from torchspore.observe.profiling.profile_data import BACKWARD, FORWARD, SYNC, UPDATE

_AHEAD = 60
"""So many nodes of a graph are looked at for the one that an event is; those between ran without an event."""
_KINDS = {
    "mm": "MatMul", "addmm": "MatMul", "bmm": "BatchMatMul", "baddbmm": "BatchMatMul", "matmul": "MatMul", "linear": "Dense",
    "conv2d": "Conv2D",
    "convolution": "Conv2D", "convolution_backward": "Conv2DBackprop", "threshold_backward": "ReluGrad", "copy_": "Assign",
    "clone": "TensorMove", "_to_copy": "Cast", "to": "Cast", "view": "Reshape", "_unsafe_view": "Reshape", "t": "Transpose",
    "permute": "Transpose",
    "cat": "Concat", "native_batch_norm": "BatchNorm", "native_batch_norm_backward": "BatchNormGrad", "native_layer_norm": "LayerNorm",
    "native_layer_norm_backward": "LayerNormGrad", "max_pool2d_with_indices": "MaxPool", "max_pool2d_with_indices_backward": "MaxPoolGrad",
    "_softmax": "Softmax", "_log_softmax": "LogSoftmax", "_softmax_backward_data": "SoftmaxGrad",
    "_log_softmax_backward_data": "LogSoftmaxGrad",
    "nll_loss_forward": "NLLLoss", "nll_loss_backward": "NLLLossGrad", "embedding": "Gather", "embedding_dense_backward": "EmbeddingGrad",
    "sum": "ReduceSum", "mean": "ReduceMean", "add_": "AssignAdd", "mul_": "Mul", "gelu_backward": "GeLUGrad", "tanh_backward": "TanhGrad",
    "sigmoid_backward": "SigmoidGrad", "fill_": "Fill", "zeros_like": "ZerosLike", "ones_like": "OnesLike", "zero_": "ZerosLike",
    "expand": "BroadcastTo", "rsub": "Sub",
}
_UPDATES = ("_fused_adam", "_fused_adagrad", "_fused_sgd", "_foreach_")
_EXCHANGES = ("c10d::", "nccl:", "gloo:", "hccl:")
_COLLECTIVE = {"AllReduce", "AllGather", "ReduceScatter", "Broadcast", "AlltoAll", "AllToAllv"}


def kind_of(name: str) -> str:
    """The type of operator that MindSpore would name for one of torch's, `aten::addmm`, or a function of ours, `matmul`."""
    operator_name = name.rpartition("::")[2]
    if operator_name in _KINDS:
        return _KINDS[operator_name]
    primitive = FRONT.primitive_of(operator_name.rstrip("_") or operator_name)
    return (
        primitive
        if primitive is not None
        else "".join(word[:1].upper() + word[1:] for word in operator_name.split("_") if word) or operator_name
    )


def is_exchange(name: str, kind: str = "") -> bool:
    """Return whether values go between processes."""
    return name.startswith(_EXCHANGES) or kind in _COLLECTIVE


def guessed_phase(name: str, before: str) -> str:
    """Return the phase of an operator of which only its name and the previous phase are known."""
    operator_name = name.rpartition("::")[2]
    if is_exchange(name):
        return SYNC
    if operator_name.startswith(_UPDATES) or before == UPDATE:
        return UPDATE
    return BACKWARD if "backward" in operator_name or before == BACKWARD else FORWARD


class Names:
    """Assigns the operators of a graph's run to their events, in order."""

    def __init__(self, calls: list[tuple[str, str, str, str]]) -> None:
        self._calls, self._at = calls, 0

    def next(self, event: str) -> tuple[str, str, str] | None:
        """Return (name, type, phase) of the node that an event of torch belongs to; None if it belongs to none."""
        operator_name = event.rpartition("::")[2]
        for position in range(self._at, min(self._at + _AHEAD, len(self._calls))):
            target, name, kind, phase = self._calls[position]
            if target == operator_name:
                self._at = position + 1
                return name, kind, phase
        return None


class Graphs:
    """The graphs that ran while a profile was made, by number; each is read once."""

    def __init__(self, modules: dict[int, Any]) -> None:
        self._modules = modules
        self._calls: dict[int, list[tuple[str, str, str, str]]] = {}

    def names(self, number: int) -> Names | None:
        """Return the names for a run of a graph, None for an unknown graph."""
        if number not in self._modules:
            return None
        if number not in self._calls:
            self._calls[number] = list(_calls(self._modules[number]))
        return Names(self._calls[number])


    def phases(self, number: int) -> dict[str, float]:
        """The shares of the phases among the operators of a graph, in their order."""
        counts = Counter(phase for _, _, _, phase in self._calls.get(number, ()))
        total = counts.total() or 1
        return {phase: count / total for phase, count in counts.items()} or {FORWARD: 1.0}


def _calls(module: Any) -> Iterator[tuple[str, str, str, str]]:
    """(torch's name, full name, type, phase) of the nodes of a graph that call something, in their order."""
    snapshot = Taker().snapshot(module, "graph", None, "")
    nodes = {node.name: node for node in module.graph.nodes}
    knows, phase = any(call.is_backward or call.scope != "Default" for call in snapshot.calls), FORWARD
    for call in snapshot.calls:
        operator_name, meta = call.target.rpartition(".")[2], nodes[call.name].meta
        kind = call.called or kind_of(operator_name)
        if meta.get(node_metadata.OPTIMIZER) or "/optimizer-" in f"/{call.scope}":
            phase = UPDATE
        elif is_exchange(call.target, kind):
            phase = SYNC
        elif knows:
            phase = BACKWARD if call.is_backward else FORWARD
        else:
            phase = guessed_phase(operator_name, phase)
        name = call.full_name
        if phase == BACKWARD and not call.is_backward:
            name = f"Gradients/{name}"
        yield operator_name, name, f"{kind}Grad" if call.is_backward and call.called else kind, phase
