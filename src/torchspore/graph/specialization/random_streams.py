"""Graphs draw random numbers from MindSpore's streams, whatever compiled them: their operators use torch's global generators."""
from __future__ import annotations

from typing import Any

import torch

from torchspore.engine.random import generators
from torchspore.graph.backend.eager_codegen import Code


def with_own_streams(code: Code, random_devices: set[torch.device]) -> Code:
    """Return `code` with MindSpore's streams in torch's generators of these devices, and of the CPU, while it runs.

    Without devices `code` is returned.
    """
    if not random_devices:
        return code
    devices = {torch.device("cpu"), *random_devices}

    def run(*inputs: Any) -> Any:
        with generators.lent(devices):
            return code(*inputs)

    return run
