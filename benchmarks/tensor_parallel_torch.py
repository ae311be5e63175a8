"""Tensor parallel nets in torch: Megatron's two functions around products, a table and a loss over a split vocabulary.

They have the same operators and exchanges as the nets of tensor_parallel_worker.py.
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
        """Return the value."""
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        """Return the sum of the ranks' gradients."""
        gradient = gradient.contiguous()
        dist.all_reduce(gradient)
        return gradient


class Summed(torch.autograd.Function):
    """The sum of the ranks' terms; the gradient passes unchanged."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        """Return the sum, stored in the tensor of the terms."""
        dist.all_reduce(x)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        """Return the gradient of each term."""
        return gradient


class SplitLoss(torch.autograd.Function):
    """The mean cross entropy of logits whose classes the ranks share."""

    @staticmethod
    def forward(ctx: Any, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Return the loss, equal on all ranks."""
        most = logits.amax(1, keepdim=True)
        dist.all_reduce(most, dist.ReduceOp.MAX)
        powers = (logits - most).exp()
        total = powers.sum(1, keepdim=True)
        dist.all_reduce(total)
        local_labels = labels - dist.get_rank() * logits.shape[1]
        here = (local_labels >= 0) & (local_labels < logits.shape[1])
        local_labels = torch.where(here, local_labels, 0).unsqueeze(1)
        picked = (logits - most).gather(1, local_labels) * here.unsqueeze(1)
        dist.all_reduce(picked)
        ctx.save_for_backward(powers.div_(total), local_labels, here)
        return (total.log() - picked).mean()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        """Return this rank's part of the gradient."""
        shares, local_labels, here = ctx.saved_tensors
        shares.scatter_add_(1, local_labels, -here.unsqueeze(1).to(shares.dtype))
        return shares.mul_(gradient / len(shares)), None


class Columns(nn.Module):
    """A layer whose outputs the ranks share; the caller copies its input."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(before, after // dist.get_world_size()) * 0.02)
        self.bias = nn.Parameter(torch.zeros(after // dist.get_world_size()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return this rank's outputs."""
        return torch.addmm(self.bias, x, self.weight)


class Rows(nn.Module):
    """A layer whose inputs the ranks share."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(before // dist.get_world_size(), after) * 0.02)
        self.bias = nn.Parameter(torch.zeros(after))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return all outputs."""
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
        """Return the layer's result."""
        y, shape = Copied.apply(self.first(x)), (-1, LENGTH, HEADS // dist.get_world_size(), WIDTH // HEADS)
        q, k, v = (layer(y).view(shape).transpose(1, 2) for layer in (self.q, self.k, self.v))
        y = torch.softmax(q @ k.transpose(2, 3) * 0.18 + self.mask, -1) @ v
        x = x + self.out(y.transpose(1, 2).reshape(len(x), -1))
        return x + self.down(functional.gelu(self.up(Copied.apply(self.second(x))), approximate="tanh"))


class Gpt(nn.Module):
    """The loss of the next word."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(WORDS // dist.get_world_size(), WIDTH) * 0.02)
        self.positions = nn.Parameter(torch.randn(LENGTH, WIDTH) * 0.02)
        self.blocks = nn.ModuleList([Block() for _ in range(LAYERS)])
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Return the loss."""
        local_ids = x - dist.get_rank() * len(self.table)
        here = (local_ids >= 0) & (local_ids < len(self.table))
        rows = functional.embedding(torch.where(here, local_ids, 0), self.table) * here.unsqueeze(-1)
        h = (Summed.apply(rows) + self.positions).view(-1, WIDTH)
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
        """Return the loss."""
        for up, down in self.pairs:
            x = down(torch.relu(up(Copied.apply(x))))
        return functional.mse_loss(x, y)


def step(net: nn.Module, x: torch.Tensor, y: torch.Tensor) -> Callable[[], torch.Tensor]:
    """Return a training step with Adam."""
    optimizer = torch.optim.Adam(net.parameters(), 1e-3, fused=True)

    def run() -> torch.Tensor:
        optimizer.zero_grad()
        loss = net(x, y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return run
