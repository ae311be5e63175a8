"""Gradients that two ranks sum for their rows, on the stand-in with a stream of exchanges as NCCL has one: `scatters.py`.

The other rank has equal gradients. Prints as JSON the messages, what the step does to the device, its faults and the gradients' errors.
"""
from __future__ import annotations

import json
from typing import Any

import torch

import torchspore

torchspore.install()

# ruff: noqa: E402
import mindspore as ms
import numpy as np
import stand_in
from mindspore import Tensor, nn, ops

from torchspore.distributed.comm import operators
from torchspore.distributed.comm.groups import Group
from torchspore.distributed.data_parallel import gradient_scatters, optimizer_shards
from torchspore.distributed.data_parallel.optimizer_shards import Share

SHAPES = [(8, 4)] * 6 + [(512, 256)] * 3 + [(8, 4)] * 6


class Net(nn.Cell):
    """Weights that a sum of squares uses one after the other; the first of them twice."""

    def __init__(self) -> None:
        super().__init__()
        values = [Tensor(np.random.RandomState(at).randn(*shape).astype(np.float32)) for at, shape in enumerate(SHAPES)]
        self.all = ms.ParameterTuple([ms.Parameter(value, name=f"w{at}") for at, value in enumerate(values)])

    def construct(self) -> Tensor:
        total = ops.sum(self.all[0] * 3)
        for weight in self.all:
            total = total + ops.sum(weight * weight)
        return total


class Exchanges:
    """A stream of the device on which exchanges run, and what waits for them. It keeps no operand: that is the caller's."""

    def __init__(self) -> None:
        self.stream = torch.spore.Stream()             # type: ignore[attr-defined]
        self.log: list[str] = []
        self.ends: dict[int, Any] = {}

    def reduce_scatter(self, x: torch.Tensor, kind: str, size: int, key: str) -> torch.Tensor:
        """Start a sum of two equal operands."""
        out = x.new_empty((x.shape[0] // size, *x.shape[1:]))
        self.stream.wait_stream(torch.spore.current_stream())    # type: ignore[attr-defined]
        with torch.spore.stream(self.stream):                    # type: ignore[attr-defined]
            torch.mul(x[:out.shape[0]], 2, out=out)
            self.ends[id(out)] = self.stream.record_event()
        self.log.append(f"start {x.numel()}")
        return out

    def wait_for(self, out: torch.Tensor) -> torch.Tensor:
        """Let the current stream wait."""
        self.ends.pop(id(out)).wait()
        self.log.append("wait")
        return out


def main() -> None:
    """Print what a step does."""
    stand_in.begin()
    ms.set_context(device_target="GPU", mode=1)
    exchanges, net = Exchanges(), Net()
    operators.reduce_scatter, operators.wait_for = exchanges.reduce_scatter, exchanges.wait_for      # type: ignore[assignment]
    pair, alone = Group("world", (0, 1), "world"), Group("rank_0", (0,))
    shares = [Share(pair, alone, 0, shape[0] // 2, shape, True) for shape in SHAPES]
    step = ms.value_and_grad(net, None, net.all)
    kept = []
    for _ in range(2):                                                    # the first step makes what all steps share
        exchanges.log.clear()
        with stand_in.late_execution():
            with optimizer_shards.scattering(net.all, shares, 0.5), stand_in.counted() as count:
                _, gradients = step()
                kept = [gradient._t * 1 for gradient in gradients]        # the optimizer reads them
                del gradients
    expected = [(2 * weight.asnumpy() + (3 if at == 0 else 0))[:shape[0] // 2] for at, (weight, shape) in enumerate(zip(net.all, SHAPES))]
    errors = [float(np.abs(gradient.cpu().numpy() - value).max()) for gradient, value in zip(kept, expected)]
    running = most = 0
    for event in exchanges.log:
        running += 1 if event.startswith("start") else -1
        most = max(most, running)
    print(json.dumps({
        "log": exchanges.log, "count": dict(count), "events": list(stand_in.events), "faults": stand_in.faults, "error": max(errors),
        "most": most, "rule": gradient_scatters.describe_rule(),
    }))


if __name__ == "__main__":
    main()
