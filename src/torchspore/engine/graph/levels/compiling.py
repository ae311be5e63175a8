"""A captured graph becomes code, at the level that the settings ask for."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from torchspore.engine.graph.levels import straight
from torchspore.engine.graph.levels.settings import Settings

Code = Callable[..., list[Any]]
"""Takes the graph's inputs in order and gives its outputs."""
Inputs = Callable[[], list[torch.Tensor]]
"""Gives the real tensors of the graph's inputs. They are the program's own and must not be written to."""


def compile(module: torch.fx.GraphModule, inputs: Inputs, settings: Settings) -> Code:
    """The code of a cleaned graph. `inputs` is asked only where something is measured."""
    return straight.compile(module)
