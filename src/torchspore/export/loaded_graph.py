"""The result of `mindspore.load`."""
from __future__ import annotations

from typing import Any


class LoadedGraph:
    """The result of `load`: a network's graph and its parameters, which `nn.GraphCell` runs."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def __repr__(self) -> str:
        return f"LoadedGraph({', '.join(self.model.input_names)})"
