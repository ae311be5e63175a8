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

EXPORT = """
ms.set_context(device_target="{device}", mode=0)
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(3, 3, weight_init="ones")
    def construct(self, x):
        return self.dense(x) * Tensor([1.0, 2.0, 3.0]) + ops.ones((2, 3)) + ops.arange(3)
x = Tensor(np.arange(6).reshape(2, 3), ms.float32)
if {writes}:
    network = Net()
    ms.export(network, x, file_name="network.mindir", file_format="MINDIR")
else:
    network = nn.GraphCell(ms.load("network.mindir"))
results["values"] = network(x).asnumpy().tolist()
"""


@pytest.mark.parametrize(("writer", "reader"), [("GPU", "CPU"), ("CPU", "GPU")])
def test_an_exported_network_runs_on_another_device(run_program: Callable[[str], Any], writer: str, reader: str) -> None:
    expected = run_program(EXPORT.format(device=writer, writes=True))
    assert run_program(EXPORT.format(device=reader, writes=False)) == expected
