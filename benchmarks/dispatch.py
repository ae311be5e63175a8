#!/usr/bin/env python3
"""Times of small operators and torch's, outside and inside of a gradient. `python benchmarks/dispatch.py [--oracle PYTHON]`."""
from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import torch
import turns

import torchspore

CHAIN = 100
"""The number of operators in a gradient."""


def main() -> None:
    """Print the tables: add, relu and a call of an empty Cell; operators on 4 and 16 floats; chains of operators with gradients."""
    options = turns.arguments(__doc__ or "")
    torchspore.install()
    import mindspore
    from mindspore import nn, ops
    from programs import add

    mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
    tensor, torch_tensor = mindspore.Tensor([1.0, 2.0]), torch.tensor([1.0, 2.0])
    cell = nn.Identity()
    contenders = {
        "torch: a + a": turns.timer(lambda: torch_tensor + torch_tensor), "torchspore: a + a": turns.timer(lambda: tensor + tensor),
        "torch: relu": turns.timer(lambda: torch.relu(torch_tensor)), "torchspore: ops.relu": turns.timer(lambda: ops.relu(tensor)),
        "torchspore: an empty Cell": turns.timer(lambda: cell(tensor)),
    }
    worker = turns.Worker(options.oracle, "oracle_worker.py", add.__name__.rpartition(".")[2], "pynative") if options.oracle else None
    if worker:
        contenders["MindSpore 2.10: a + a"] = worker.seconds
    turns.compare("one operator on two floats", contenders, "torch: a + a", min(options.seconds, 0.1), options.rounds, "us")
    if worker:
        worker.close()
    print_operators(options.rounds)
    print_gradients(options.rounds)


def print_operators(rounds: int) -> None:
    """Print how long operators take outside of gradients."""
    from mindspore import ops

    vector, matrix = torch.ones(4), torch.ones(4, 4)
    v, m = torchspore_tensor(vector), torchspore_tensor(matrix)
    rows: list[tuple[str, Callable[[], Any], Callable[[], Any]]] = [
        ("x + y", lambda: v + v, lambda: vector + vector), ("x - y", lambda: v - v, lambda: vector - vector),
        ("x * 2", lambda: v * 2, lambda: vector * 2), ("x + 1.0", lambda: v + 1.0, lambda: vector + 1.0),
        ("x > 0", lambda: v > 0, lambda: vector > 0), ("x @ y", lambda: m @ m, lambda: matrix @ matrix),
        ("maximum", lambda: ops.maximum(v, v), lambda: torch.maximum(vector, vector)),
        ("x.reshape(2, 8)", lambda: m.reshape(2, 8), lambda: matrix.reshape(2, 8)),
        ("x.sum()", lambda: m.sum(), lambda: matrix.sum()), ("x[1:3]", lambda: m[1:3], lambda: matrix[1:3]),
        ("cat", lambda: ops.cat((v, v)), lambda: torch.cat((vector, vector))),
        ("softmax", lambda: ops.softmax(m), lambda: torch.softmax(matrix, -1)),
    ]
    timed_rows = [(name, turns.timer(mine), turns.timer(theirs), 2000) for name, mine, theirs in rows]
    print_ratios("small operators", "us", 1e6, timed_rows, rounds)


def print_gradients(rounds: int) -> None:
    """Print how long operators take in a chain whose gradient is computed, each with its part of the backward pass."""
    import mindspore
    from mindspore import ops

    vector = torch.ones(4)
    tensor, argument = torchspore_tensor(vector), torchspore_tensor(vector)
    rows: list[tuple[str, Callable[[Any], Any], Callable[[Any], Any]]] = [
        ("x + y", lambda x: x + tensor, lambda x: x + vector), ("x - y", lambda x: x - tensor, lambda x: x - vector),
        ("x * 1.0", lambda x: x * 1.0, lambda x: x * 1.0), ("relu", ops.relu, torch.relu),
        ("maximum", lambda x: ops.maximum(x, tensor), lambda x: torch.maximum(x, vector)),
        ("x.reshape(4)", lambda x: x.reshape(4), lambda x: x.reshape(4)), ("x[0:4]", lambda x: x[0:4], lambda x: x[0:4]),
    ]

    def of_torch(step: Callable[[Any], Any]) -> Callable[[], Any]:
        def run() -> Any:
            x = vector.clone().requires_grad_()
            return torch.autograd.grad(chain(step, x).sum(), x)

        return run

    def of_torchspore(step: Callable[[Any], Any]) -> Callable[[], Any]:
        gradient = mindspore.value_and_grad(lambda x: chain(step, x).sum())
        return lambda: gradient(argument)

    print_ratios(f"operators in a gradient, each of a chain of {CHAIN}", "us", 1e6 / CHAIN, [
        (name, turns.timer(of_torchspore(mine)), turns.timer(of_torch(theirs)), 20) for name, mine, theirs in rows
    ], rounds)


def chain(step: Callable[[Any], Any], x: Any) -> Any:
    """Return the result of CHAIN steps, one after the other."""
    for _ in range(CHAIN):
        x = step(x)
    return x


def torchspore_tensor(t: torch.Tensor) -> Any:
    """Return a Tensor with the values of a torch tensor."""
    import mindspore

    return mindspore.Tensor(t.numpy())


def print_ratios(
    title: str, unit: str, scale: float, rows: list[tuple[str, turns.Seconds, turns.Seconds, int]], rounds: int,
) -> None:
    """Print a table: by operator the fastest time here and in torch, and the ratios of `rounds` rounds of a number of calls."""
    print(f"\n### {title}\n")
    print(f"| operator | torch: {unit} | torchspore: {unit} | ratio (median, min .. max of {rounds}) |\n|---|---:|---:|---|")
    for name, time_ours, time_torch, count in rows:
        time_ours(count // 10), time_torch(count // 10)
        pairs = [(time_ours(count), time_torch(count)) for _ in range(rounds)]
        ratios = [mine / theirs for mine, theirs in pairs]
        times = [min(column) / count * scale for column in zip(*pairs)]
        print(f"| {name} | {times[1]:.2f} | {times[0]:.2f} | {statistics.median(ratios):.2f} ({min(ratios):.2f} .. {max(ratios):.2f}) |")


if __name__ == "__main__":
    main()
