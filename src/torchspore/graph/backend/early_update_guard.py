"""A guard for graphs that update Parameters before their last operator: it delays Ctrl-C and reports a step that ends in its middle."""
from __future__ import annotations

from typing import Any

import torch

from torchspore.base.frames import warn
from torchspore.base.interrupts import postponed
from torchspore.graph.backend.eager_codegen import Code
from torchspore.graph.fx.aliasing import inputs_written
from torchspore.graph.report import stages
from torchspore.translations import translate


def guard_updates(code: Code, module: torch.fx.GraphModule) -> Code:
    """Return code that runs to its end after Ctrl-C, and warns if an error ends it after some Parameters have changed."""
    positions = sorted(inputs_written(module))

    def run(*tensors: torch.Tensor) -> list[Any]:
        written = [tensors[position] for position in positions]
        versions = [tensor._version for tensor in written]
        with postponed():
            try:
                return code(*tensors)
            except BaseException:
                changed = sum(tensor._version != version for tensor, version in zip(written, versions))
                if 0 < changed < len(written):
                    warn(_describe(changed, len(written)))
                raise

    return stages.shown(run, stages.graph_of(code))


def _describe(changed: int, total: int) -> str:
    text = translate(
        "The step ended in its middle: {changed} of the {total} Tensors that it updates have new values, the others have those before the "
        "step. Load a checkpoint to continue from values of one step."
    )
    return text.format(changed=changed, total=total)
