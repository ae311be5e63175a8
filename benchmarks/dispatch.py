"""The cost of small operators beside torch's, outside and inside of a gradient. `python benchmarks/dispatch.py [--oracle PYTHON]`."""
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
    own, other = mindspore.Tensor([1.0, 2.0]), torch.tensor([1.0, 2.0])
    cell = nn.Identity()
    contenders = {
        "torch: a + a": turns.here(lambda: other + other), "torchspore: a + a": turns.here(lambda: own + own),
        "torch: relu": turns.here(lambda: torch.relu(other)), "torchspore: ops.relu": turns.here(lambda: ops.relu(own)),
        "torchspore: an empty Cell": turns.here(lambda: cell(own)),
    }
    away = turns.Elsewhere(options.oracle, "oracle_worker.py", add.__name__.rpartition(".")[2], "pynative") if options.oracle else None
    if away:
        contenders["MindSpore 2.10: a + a"] = away.seconds
    turns.compare("one operator on two floats", contenders, "torch: a + a", min(options.seconds, 0.1), options.rounds, "us")
    if away:
        away.close()
    print_operators(options.rounds)
    print_gradients(options.rounds)


def print_operators(rounds: int) -> None:
    """Print how long operators take outside of gradients."""
    from mindspore import ops

    vector, matrix = torch.ones(4), torch.ones(4, 4)
    own, other = torchspore_tensor(vector), torchspore_tensor(matrix)
    rows: list[tuple[str, Callable[[], Any], Callable[[], Any]]] = [
        ("x + y", lambda: own + own, lambda: vector + vector), ("x - y", lambda: own - own, lambda: vector - vector),
        ("x * 2", lambda: own * 2, lambda: vector * 2), ("x + 1.0", lambda: own + 1.0, lambda: vector + 1.0),
        ("x > 0", lambda: own > 0, lambda: vector > 0), ("x @ y", lambda: other @ other, lambda: matrix @ matrix),
        ("maximum", lambda: ops.maximum(own, own), lambda: torch.maximum(vector, vector)),
        ("x.reshape(2, 8)", lambda: other.reshape(2, 8), lambda: matrix.reshape(2, 8)),
        ("x.sum()", lambda: other.sum(), lambda: matrix.sum()), ("x[1:3]", lambda: other[1:3], lambda: matrix[1:3]),
        ("cat", lambda: ops.cat((own, own)), lambda: torch.cat((vector, vector))),
        ("softmax", lambda: ops.softmax(other), lambda: torch.softmax(matrix, -1)),
    ]
    print_ratios("small operators", "us", 1e6, [(name, turns.here(mine), turns.here(theirs), 2000) for name, mine, theirs in rows], rounds)


def print_gradients(rounds: int) -> None:
    """Print how long operators take in a chain whose gradient is computed, each with its part of the backward pass."""
    import mindspore
    from mindspore import ops

    vector = torch.ones(4)
    own = torchspore_tensor(vector)
    rows: list[tuple[str, Callable[[Any], Any], Callable[[Any], Any]]] = [
        ("x + y", lambda x: x + own, lambda x: x + vector), ("x - y", lambda x: x - own, lambda x: x - vector),
        ("x * 1.0", lambda x: x * 1.0, lambda x: x * 1.0), ("relu", ops.relu, torch.relu),
        ("maximum", lambda x: ops.maximum(x, own), lambda x: torch.maximum(x, vector)),
        ("x.reshape(4)", lambda x: x.reshape(4), lambda x: x.reshape(4)), ("x[0:4]", lambda x: x[0:4], lambda x: x[0:4]),
    ]

    def of_torch(step: Callable[[Any], Any]) -> Callable[[], Any]:
        def run() -> Any:
            x = vector.clone().requires_grad_()
            return torch.autograd.grad(chain(step, x).sum(), x)

        return run

    def of_torchspore(step: Callable[[Any], Any]) -> Callable[[], Any]:
        gradient = mindspore.value_and_grad(lambda x: chain(step, x).sum())
        return lambda: gradient(own)

    print_ratios(f"operators in a gradient, each of a chain of {CHAIN}", "us", 1e6 / CHAIN, [
        (name, turns.here(of_torchspore(mine)), turns.here(of_torch(theirs)), 20) for name, mine, theirs in rows
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
    for name, own, other, count in rows:
        own(count // 10), other(count // 10)
        pairs = [(own(count), other(count)) for _ in range(rounds)]
        ratios = [mine / theirs for mine, theirs in pairs]
        times = [min(column) / count * scale for column in zip(*pairs)]
        print(f"| {name} | {times[1]:.2f} | {times[0]:.2f} | {statistics.median(ratios):.2f} ({min(ratios):.2f} .. {max(ratios):.2f}) |")


if __name__ == "__main__":
    main()
