"""Level O2 on a GPU: the kernels of a whole graph recorded once and started by one launch."""
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


def recorded(code: Code, held: frozenset[int]) -> Code:
    """Runs `code` from a recording. Inputs at `held` (Parameters) are read where they lie, the others are copied to fixed places.

    When a stored input has moved in memory, the graph is recorded again. Results are copies, as the next run overwrites its own.
    """
    kept: dict[str, Any] = {}

    def run(*inputs: torch.Tensor) -> list[Any]:
        places = [t.data_ptr() for place, t in enumerate(inputs) if place in held]
        if kept.get("places") != places:
            kept.clear()
            kept.update(_record(code, inputs, held), places=places)
        for place, mine in kept["copies"]:
            mine.copy_(inputs[place])
        kept["graph"].replay()
        for place, mine in kept["written"]:
            inputs[place].copy_(mine)
        return [t.clone() if isinstance(t, torch.Tensor) else t for t in kept["outs"]]

    return run


def _record(code: Code, inputs: tuple[torch.Tensor, ...], held: frozenset[int]) -> dict[str, Any]:
    """The recording. What the warm runs write into is put back."""
    fixed = [t if place in held else t.clone() for place, t in enumerate(inputs)]
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
    written = [place for place, t in enumerate(fixed) if t._version != versions[place]]
    for t, old in zip(fixed, before):
        t.copy_(old)
    copies = [(place, t) for place, t in enumerate(fixed) if place not in held]
    return {"graph": graph, "outs": outs, "copies": copies, "written": [(place, t) for place, t in copies if place in written]}
