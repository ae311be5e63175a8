"""mindtorch: PyTorch's names on MindSpore. Its Tensors compute; its Modules need MindSpore 2.4's Cell and Parameter."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from imported_packages import Row
from module_imports import import_all

PACKAGE = "mindtorch==0.4.0"
NEEDS = ("tqdm", "ml-dtypes")


def rows(options: dict[str, Any]) -> Iterator[Row]:
    """Yield (name, group, function to run) of each row."""
    del options
    yield "every module", "imports", lambda: import_all("mindtorch")
    yield "Tensor", "gradients", _gradients


def _gradients() -> dict[str, Any]:
    """Compare values and gradients of a function of mindtorch's Tensors with NumPy's, in both modes. Raises ValueError if they differ."""
    import mindspore as ms
    import numpy as np
    from mindtorch import torch

    def loss(x: Any) -> Any:
        return (torch.exp(x) * x + torch.nn.functional.relu(x - 1)).sum()

    values = np.linspace(-1, 2, 6, dtype=np.float32).reshape(2, 3)
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        result, gradient = ms.value_and_grad(loss)(torch.tensor(values))
        expected = np.exp(values) * (1 + values) + (values > 1)
        if not isinstance(torch.tensor(values) + 1, torch.Tensor) or not np.allclose(gradient.asnumpy(), expected, rtol=1e-5):
            raise ValueError(f"mode {mode}: the gradient is {gradient}")
        if not np.isclose(float(result.asnumpy()), (np.exp(values) * values + np.maximum(values - 1, 0)).sum(), rtol=1e-5):
            raise ValueError(f"mode {mode}: the value is {result}")
    return {"told": "values and gradients are NumPy's in both modes"}
