"""Level O2 on a GPU: the kernels of a graph are recorded once and started by one launch."""
from __future__ import annotations

from typing import Any

import torch

from torchspore.graph.backend.eager_codegen import Code

WARM = 3
"""Runs before the recording: libraries choose algorithms and take their workspaces in them."""


def is_fit(module: torch.fx.GraphModule) -> bool:
    """Return whether all inputs are on one GPU and nothing is random or reads values: a recording repeats one course."""
    inputs = [node.meta.get("val") for node in module.graph.nodes if node.op == "placeholder"]
    devices = {t.device for t in inputs if isinstance(t, torch.Tensor)}
    return len(devices) == 1 and next(iter(devices)).type == "cuda" and not any(_is_unfit(node) for node in module.graph.nodes)


def _is_unfit(node: torch.fx.Node) -> bool:
    tags = getattr(node.target, "tags", ())
    return node.op == "call_function" and any(
        tag in tags for tag in (torch.Tag.nondeterministic_seeded, torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape)
    )


def recorded(code: Code, persistent: frozenset[int]) -> Code:
    """Runs `code` from a recording. Inputs at `persistent` (Parameters) are read in their memory, the others are copied to fixed memory.

    When a stored input has moved in memory, the graph is recorded again. Results are copies, because the next run overwrites the originals.
    """
    recording: dict[str, Any] = {}

    def run(*inputs: torch.Tensor) -> list[Any]:
        addresses = [t.data_ptr() for index, t in enumerate(inputs) if index in persistent]
        if recording.get("places") != addresses:
            recording.clear()
            recording.update(_record(code, inputs, persistent), places=addresses)
        for index, mine in recording["copies"]:
            mine.copy_(inputs[index])
        recording["graph"].replay()
        for index, mine in recording["written"]:
            inputs[index].copy_(mine)
        return [t.clone() if isinstance(t, torch.Tensor) else t for t in recording["outs"]]

    return run


def _record(code: Code, inputs: tuple[torch.Tensor, ...], persistent: frozenset[int]) -> dict[str, Any]:
    """Return the recording. The effects of the warm-up runs are undone."""
    fixed = [t if index in persistent else t.clone() for index, t in enumerate(inputs)]
    before = [t.clone() for t in fixed]
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream), torch.no_grad():
        for _ in range(WARM):
            code(*fixed)
    torch.cuda.current_stream().wait_stream(stream)
    versions = [t._version for t in fixed]
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph):
        outs = code(*fixed)
    written_indices = [index for index, t in enumerate(fixed) if t._version != versions[index]]
    for t, old in zip(fixed, before):
        t.copy_(old)
    copies = [(index, t) for index, t in enumerate(fixed) if index not in persistent]
    return {"graph": graph, "outs": outs, "copies": copies, "written": [(index, t) for index, t in copies if index in written_indices]}
