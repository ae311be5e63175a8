#!/usr/bin/env python3
"""Branches and loops on Tensors: PyNative and one captured graph, which take turns in one process.

    benchmarks/control.py [--rounds 15]

Prints for each function, size and kind (value, gradient) the microseconds of both and their ratio, median and range over the rounds.
"""
from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import torchspore

torchspore.install()

import mindspore as ms  # noqa: E402
from mindspore import Tensor, ops  # noqa: E402


def branch(x, w):
    if x.sum() > 0:
        y = x * w
    else:
        y = x - w
    return y + 1


def nested(x, w):
    if x.sum() > 0:
        if x.max() > 1:
            return x * w * 2
        x = x + w
    return x - w


def loop(x, w):
    i = Tensor(0)
    while i < 8:
        x = ops.tanh(x * w)
        i = i + 1
    return x


def loop_with_break(x, w):
    for _ in range(8):
        x = x * 0.9 + w
        if x.sum() > 1e9:
            break
    return x


def loop_of_products(x, w):
    n = 0
    while ops.abs(x).max() > 1e-3 and n < 8:
        x = ops.matmul(x, w) * 0.1
        n = n + 1
    return x


FUNCTIONS = (branch, nested, loop, loop_with_break, loop_of_products)


def seconds(call: Callable[..., Any], arguments: tuple[Any, ...], times: int) -> float:
    """Return the mean time of a call over `times` calls."""
    start = time.perf_counter()
    for _ in range(times):
        call(*arguments)
    return (time.perf_counter() - start) / times


def compare(function: Callable[..., Any], size: int, gradient: bool, rounds: int) -> tuple[list[float], list[float]]:
    """Return the seconds of PyNative and of the graph in each round."""
    generator = np.random.default_rng(3)
    arguments = tuple(Tensor(generator.random((size, size), np.float32)) for _ in range(2))
    eager = ops.value_and_grad(function, (0, 1)) if gradient else function
    graph = ms.jit(lambda x, w: eager(x, w))
    graph(*arguments)
    assert len(torchspore.graphs(graph)) == 1
    times = max(3, int(0.02 / seconds(eager, arguments, 5)))
    results: tuple[list[float], list[float]] = ([], [])
    for turn in range(rounds):
        for contender in (0, 1) if turn % 2 else (1, 0):
            results[contender].append(seconds((eager, graph)[contender], arguments, times))
    return results


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    ms.set_context(mode=ms.PYNATIVE_MODE)
    print(f"{'function':18} {'size':>9} {'kind':9} {'PyNative us':>12} {'graph us':>9}   graph / PyNative (min .. max)")
    for function in FUNCTIONS:
        for size in (8, 256):
            for gradient in (False, True):
                eager, graph = compare(function, size, gradient, rounds)
                ratios = [g / e for e, g in zip(eager, graph)]
                print(
                    f"{function.__name__:18} {f'{size}x{size}':>9} {'gradient' if gradient else 'value':9} "
                    f"{statistics.median(eager) * 1e6:12.1f} {statistics.median(graph) * 1e6:9.1f}   "
                    f"{statistics.median(ratios):.2f} ({min(ratios):.2f} .. {max(ratios):.2f})"
                )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
