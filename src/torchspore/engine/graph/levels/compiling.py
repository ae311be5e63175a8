"""A captured graph becomes code, at the level that the settings ask for."""
from __future__ import annotations

import torch

from torchspore.context import effects
from torchspore.context.effects import Outcome
from torchspore.engine.graph import passes
from torchspore.engine.graph.levels import fused, measure, straight
from torchspore.engine.graph.levels.settings import Settings
from torchspore.engine.graph.levels.straight import Code

Inputs = measure.Inputs


def compile(module: torch.fx.GraphModule, inputs: Inputs, settings: Settings) -> Code:
    """The code of a cleaned graph. `inputs` is asked only where something is measured; what it gives is never written to."""
    if settings.level == "O0":
        effects.report("jit_level", Outcome.applied("O0: each graph is a straight line of the kernels that PyNative calls"))
        return straight.compile(passes.overwrite(module))
    return fused.compile(module, inputs, settings)
