"""Tensor parallel nets as people write them in torch: Megatron's two functions around products, a table and a loss over a split vocabulary.

They are the nets of tensor_parallel_worker.py, operator by operator, with the same exchanges.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from tensor_parallel_sizes import HEADS, LAYERS, LENGTH, MLP_DEPTH, MLP_WIDTH, WIDTH, WORDS
from torch import distributed as dist
from torch import nn
from torch.nn import functional


class Copied(torch.autograd.Function):
    """The value on the way forward; its gradient is summed over all ranks."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        """The value itself."""
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        """The sum of the ranks' gradients."""
        gradient = gradient.contiguous()
        dist.all_reduce(gradient)
        return gradient


class Summed(torch.autograd.Function):
    """The sum of the ranks' terms; the gradient goes on as it is."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        """The sum, in the place of the terms."""
        dist.all_reduce(x)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        """The gradient of each term."""
        return gradient


class SplitLoss(torch.autograd.Function):
    """The mean cross entropy of logits whose classes the ranks share."""

    @staticmethod
    def forward(ctx: Any, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """The loss, equal on all ranks."""
        most = logits.amax(1, keepdim=True)
        dist.all_reduce(most, dist.ReduceOp.MAX)
        powers = (logits - most).exp()
        total = powers.sum(1, keepdim=True)
        dist.all_reduce(total)
        own = labels - dist.get_rank() * logits.shape[1]
        here = (own >= 0) & (own < logits.shape[1])
        own = torch.where(here, own, 0).unsqueeze(1)
        picked = (logits - most).gather(1, own) * here.unsqueeze(1)
        dist.all_reduce(picked)
        ctx.save_for_backward(powers.div_(total), own, here)
        return (total.log() - picked).mean()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        """The own part of the gradient."""
        shares, own, here = ctx.saved_tensors
        shares.scatter_add_(1, own, -here.unsqueeze(1).to(shares.dtype))
        return shares.mul_(gradient / len(shares)), None


class Columns(nn.Module):
    """A layer whose outputs the ranks share; the caller copies its input."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(before, after // dist.get_world_size()) * 0.02)
        self.bias = nn.Parameter(torch.zeros(after // dist.get_world_size()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The own outputs."""
        return torch.addmm(self.bias, x, self.weight)


class Rows(nn.Module):
    """A layer whose inputs the ranks share."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(before // dist.get_world_size(), after) * 0.02)
        self.bias = nn.Parameter(torch.zeros(after))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """All outputs."""
        return Summed.apply(x @ self.weight) + self.bias


class Block(nn.Module):
    """One layer of the GPT."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.q, self.k, self.v = (Columns(WIDTH, WIDTH) for _ in range(3))
        self.out, self.up, self.down = Rows(WIDTH, WIDTH), Columns(WIDTH, 4 * WIDTH), Rows(4 * WIDTH, WIDTH)
        self.register_buffer("mask", torch.full((LENGTH, LENGTH), -1e4).triu(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The layer."""
        y, shape = Copied.apply(self.first(x)), (-1, LENGTH, HEADS // dist.get_world_size(), WIDTH // HEADS)
        q, k, v = (one(y).view(shape).transpose(1, 2) for one in (self.q, self.k, self.v))
        y = torch.softmax(q @ k.transpose(2, 3) * 0.18 + self.mask, -1) @ v
        x = x + self.out(y.transpose(1, 2).reshape(len(x), -1))
        return x + self.down(functional.gelu(self.up(Copied.apply(self.second(x))), approximate="tanh"))


class Gpt(nn.Module):
    """The loss of the next word."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(WORDS // dist.get_world_size(), WIDTH) * 0.02)
        self.places = nn.Parameter(torch.randn(LENGTH, WIDTH) * 0.02)
        self.blocks = nn.ModuleList([Block() for _ in range(LAYERS)])
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """The loss."""
        own = x - dist.get_rank() * len(self.table)
        here = (own >= 0) & (own < len(self.table))
        rows = functional.embedding(torch.where(here, own, 0), self.table) * here.unsqueeze(-1)
        h = (Summed.apply(rows) + self.places).view(-1, WIDTH)
        for block in self.blocks:
            h = block(h)
        return SplitLoss.apply(Copied.apply(self.norm(h)) @ self.table.t(), y)


class Mlp(nn.Module):
    """Pairs of layers: columns, then rows."""

    def __init__(self) -> None:
        super().__init__()
        pairs = [[Columns(MLP_WIDTH, 4 * MLP_WIDTH), Rows(4 * MLP_WIDTH, MLP_WIDTH)] for _ in range(MLP_DEPTH)]
        self.pairs = nn.ModuleList(map(nn.ModuleList, pairs))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """The loss."""
        for up, down in self.pairs:
            x = down(torch.relu(up(Copied.apply(x))))
        return functional.mse_loss(x, y)


def step(net: nn.Module, x: torch.Tensor, y: torch.Tensor) -> Callable[[], torch.Tensor]:
    """A training step with Adam."""
    optimizer = torch.optim.Adam(net.parameters(), 1e-3, fused=True)

    def run() -> torch.Tensor:
        optimizer.zero_grad()
        loss = net(x, y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return run
