"""Levels: how a captured graph is run. O0 straight-line kernel calls, O1 fused kernels where they win, O2 everything the machine has."""
from __future__ import annotations

from torchspore.engine.graph.levels.compiling import Inputs, compile
from torchspore.engine.graph.levels.settings import Settings, settings
from torchspore.engine.graph.levels.straight import Code

__all__ = ["Code", "Inputs", "Settings", "compile", "settings"]
