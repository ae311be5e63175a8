"""A Cell's Module in torch's own data parallelism: two processes on the CPU."""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support import server_jobs

PROGRAM = """
import copy, sys
import torchspore; torchspore.install()
import mindspore as ms, torch, torch.distributed as dist
from mindspore import nn, ops
from torch.distributed.fsdp import fully_shard

rank = int(sys.argv[1])
dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{sys.argv[2]}", rank=rank, world_size=2)

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last = nn.Dense(8, 16), nn.BatchNorm1d(16), nn.Dense(16, 4)

    def construct(self, x):
        return self.last(ops.relu(self.norm(self.first(x))))

ms.set_seed(0)
net = Net().set_train()
alone = torchspore.as_module(copy.deepcopy(net))
parallel = torch.nn.parallel.DistributedDataParallel(torchspore.as_module(copy.deepcopy(net)))
sharded = torchspore.as_module(net)
for module in (sharded.get_submodule("first"), sharded.get_submodule("last"), sharded):
    fully_shard(module)
torch.manual_seed(rank)
x = torch.randn(6, 8)
for module in (alone, parallel, sharded):
    module(x).square().sum().backward()
for own, together, part in zip(alone.parameters(), parallel.parameters(), sharded.parameters(), strict=True):
    mean = own.grad.clone()
    dist.all_reduce(mean)
    torch.testing.assert_close(together.grad, mean / 2, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(part.grad.full_tensor(), mean / 2, rtol=1e-4, atol=1e-5)
dist.destroy_process_group()
print("equal")
"""


@pytest.mark.slow
@pytest.mark.sample
@pytest.mark.filterwarnings("ignore")
def test_gradients_in_two_processes_are_the_mean(tmp_path: Path) -> None:
    program = tmp_path / "two_processes.py"
    program.write_text(PROGRAM, encoding="utf-8")
    port = str(server_jobs.free_port())
    processes = [
        subprocess.Popen([sys.executable, "-W", "ignore", str(program), str(rank), port], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         text=True)
        for rank in range(2)
    ]
    outputs = [process.communicate(timeout=180) for process in processes]
    assert [out for out, _ in outputs] == ["equal\n", "equal\n"], outputs
