"""On a real GPU: checkpoints move between GPU and CPU with equal bits, and training continues from them."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.gpu

SAVE = """
ms.set_context(device_target="{device}", mode={mode})
network = net()
step = train_step(network, nn.Adam)
for x, y in batches(2):
    step(x, y)
ms.save_checkpoint(step, "weights.ckpt")
ms.save_checkpoint(network, "weights.safetensors", format="safetensors")
results["values"] = {{name: value.asnumpy().tobytes().hex() for name, value in step.parameters_dict().items()}}
results["loss"] = float(step(*batches(3)[2]))
"""
LOAD = """
ms.set_context(device_target="{device}", mode={mode})
network = net()
step = train_step(network, nn.Adam)
missing = ms.load_param_into_net(step, ms.load_checkpoint("weights.ckpt"))
results["missing"] = missing[0]
results["values"] = {{name: value.asnumpy().tobytes().hex() for name, value in step.parameters_dict().items()}}
other = net()
ms.load_param_into_net(other, ms.load_checkpoint("weights.safetensors", format="safetensors"))
results["safetensors"] = all(bool((a.asnumpy() == b.asnumpy()).all()) for a, b in zip(network.get_parameters(), other.get_parameters()))
results["device"] = network[0].weight.device
results["loss"] = float(step(*batches(3)[2]))
"""


@pytest.mark.parametrize("mode", [1, 0])
@pytest.mark.parametrize(("writer", "reader"), [("GPU", "CPU"), ("CPU", "GPU"), ("GPU", "GPU")])
def test_a_checkpoint_moves_between_devices(run_program: Callable[[str], Any], writer: str, reader: str, mode: int) -> None:
    output = run_program(SAVE.format(device=writer, mode=mode))
    loaded = run_program(LOAD.format(device=reader, mode=mode))
    assert loaded["values"] == output["values"] and loaded["safetensors"] and not loaded["missing"]
    assert loaded["loss"] == pytest.approx(output["loss"], rel=1e-3)
    assert (loaded["device"] == "CPU") == (reader == "CPU")
