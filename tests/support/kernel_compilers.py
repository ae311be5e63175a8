"""Stand-ins for torch's Inductor: tests pass one to `inductor.compiled_by`."""
from __future__ import annotations

from typing import Any

import pytest
import torch

from torchspore.graph.backend import eager_codegen


def nobody(module: torch.fx.GraphModule, *settings: Any) -> Any:
    """Fails: no kernel may be written here."""
    pytest.fail(f"a kernel is written for {module.code}")


class Without:
    """Has no way to write any kernel. `seen` has the operators that it was asked for."""

    def __init__(self) -> None:
        self.seen: set[str] = set()

    def __call__(self, module: torch.fx.GraphModule, *settings: Any) -> Any:
        self.seen.update(node.target._opname for node in module.graph.nodes if hasattr(node.target, "_opname"))
        raise AssertionError("no lowering of this")


class OneByOne:
    """Kernels are the operators one by one, their results times `factor`. `written` has the graphs."""

    def __init__(self, factor: float = 1.0) -> None:
        self.factor = factor
        self.written: list[torch.fx.GraphModule] = []

    def __call__(self, module: torch.fx.GraphModule, *settings: Any) -> Any:
        self.written.append(module)
        code, factor = eager_codegen.compile(module), self.factor

        def kernel(*arguments: Any) -> list[Any]:
            return [out * factor for out in code(*arguments)]

        kernel.source, kernel.libraries = "", {}  # type: ignore[attr-defined]
        return kernel
