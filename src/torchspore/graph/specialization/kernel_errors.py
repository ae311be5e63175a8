"""Errors of a graph's kernels that PyNative can't reproduce: the program's line, the operator, and the cause in our words.

A graph that is split over devices can't be run again by one of them, nor can one that exchanges values: the others would not take part.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.base import tracebacks
from torchspore.base.frames import relative_line
from torchspore.engine.execution import current_operator
from torchspore.engine.front_end import FRONT
from torchspore.engine.tensors.tensor import wrap
from torchspore.engine.torch_internals import node_metadata
from torchspore.errors import TorchsporeError


def describe_error(error: Exception, module: torch.fx.GraphModule) -> Exception:
    """The error to raise: in the program's own words for an assert or a raise, else with the line and operator, as far as they are known.

    `module` is the graph as it was captured, in which shapes are those of the program.
    """
    build_error = getattr(error, "build_error", None)
    if build_error is not None:
        error_as_written: Exception = build_error()
        return error_as_written
    if isinstance(error, TorchsporeError) or getattr(error, "explained", False):
        return error
    metadata = next((metadata_list for namespace in _namespaces(error) if (metadata_list := _metadata_at(namespace))), [])
    if not metadata:
        return error
    meta, line = metadata[0], _only_line([str(meta[node_metadata.LINE]) for meta in metadata])
    operator = meta.get(node_metadata.CALLED) or current_operator.spelled(str(meta.get(current_operator.KERNEL, "")))
    call_nodes = _of_call(module, meta.get(node_metadata.CALL))
    operands = [wrap(val) for val in _operands(call_nodes)]
    if isinstance(error, IndexError) and any("nll_loss" in str(node.target) for node in call_nodes):
        error = IndexError("Target is out of bounds")         # cut classes are looked up
    user_error: Exception = FRONT.refused(relative_line(line), operator, operands, bool(meta.get(node_metadata.GRADIENT)), error)
    return tracebacks.raised_at(user_error, line)


def _namespaces(error: Exception) -> Iterator[Mapping[str, Any]]:
    """Return the metadata of the nodes that ran when the error occurred, the innermost first."""
    noted = current_operator.failed_in(error)
    if noted is not None:
        yield noted
    frames, trace = [], error.__traceback__
    while trace is not None:
        frames.append(trace)
        trace = trace.tb_next
    for traceback_entry in reversed(frames):
        if traceback_entry.tb_frame.f_code.co_filename == current_operator.GRAPH:
            namespaces = traceback_entry.tb_frame.f_globals.get("places", ())
            if traceback_entry.tb_lineno < len(namespaces):
                yield namespaces[traceback_entry.tb_lineno]


def _metadata_at(namespace: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the metadata of an operator, or of those in a generated kernel that may have refused values."""
    return [meta for meta in namespace.get(node_metadata.REFUSING, [namespace]) if meta.get(node_metadata.LINE)]


def _only_line(lines: list[str]) -> str:
    """`net.py:12 or 15`."""
    path = lines[0].rpartition(":")[0]
    numbers = dict.fromkeys(line.rpartition(":")[2] for line in lines if line.rpartition(":")[0] == path)
    return f"{path}:{' or '.join(numbers)}"


def _of_call(module: torch.fx.GraphModule, call: Any) -> list[Node]:
    """The nodes that one call of an operator ran."""
    return [] if call is None else [
        node for node in module.graph.nodes if node.meta.get(node_metadata.CALL) == call and not node_metadata.is_backward(node.meta)]


def _operands(nodes: Sequence[Node]) -> list[torch.Tensor]:
    """The fake tensors of the inputs of these nodes of a call: a table before its indexes, scores before their targets."""
    values = {input_node: input_node.meta["val"] for node in nodes for input_node in node.all_input_nodes
             if input_node not in nodes and isinstance(input_node.meta.get("val"), torch.Tensor)}
    return sorted(values.values(), key=lambda val: not val.is_floating_point())
