"""Small networks, each written by hand for MindSpore and for torch, which sweep.py compares.

A function under `@network` imports both frameworks and returns a Cell, a Module and the inputs. The parameters are copied by their order.
"""
from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any

Network = Callable[[], tuple[Any, Any, list[Any]]]
NETWORKS: dict[str, Network] = {}


def network(create: Network) -> Network:
    """Register a network under the name of its function."""
    NETWORKS[create.__name__] = create
    return create


def load_networks() -> dict[str, Network]:
    """Import all modules of this package; return the networks by their names."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return NETWORKS


def copy_parameters(cell: Any, module: Any) -> None:
    """Give the Module the values of the Cell's trainable Parameters. Raise ValueError if lengths other than 1 differ."""
    import torch

    weights, targets = cell.trainable_params(), [parameter for parameter in module.parameters() if parameter.requires_grad]
    shapes, target_shapes = ([[length for length in each.shape if length != 1] for each in some] for some in (weights, targets))
    if shapes != target_shapes:
        raise ValueError(f"the Cell has weights of {shapes}, the Module of {target_shapes}")
    with torch.no_grad():
        for weight, target in zip(weights, targets):
            target.copy_(torch.from_numpy(weight.asnumpy().copy()).reshape(target.shape))
