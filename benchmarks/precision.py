#!/usr/bin/env python3
"""`precision_mode`: error against float64, time and dtypes of operators, for each policy.

    python benchmarks/precision.py [--rounds 3]

The error is that of the loss, and of the gradients of all Parameters together, |g - g64| / |g64|, against the same net in float64 with the
same weights and batch. Times are of complete training steps, in turns in one process. Shares are of the operators of the step's graph
that compute with floating-point numbers, without casts. force_fp32 is measured on the net cast to float16 by `to_float`.
"""
from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from typing import Any

import turns

POLICIES = (
    "must_keep_origin_dtype", "force_fp16", "allow_fp32_to_fp16", "allow_mix_precision", "allow_mix_precision_fp16", "allow_fp32_to_bf16",
    "allow_mix_precision_bf16",
)


def nets() -> dict[str, Callable[[], tuple[Any, tuple[Any, ...]]]]:
    """Return the nets, each as a function that returns (net, batch)."""
    import numpy as np
    from mindspore import nn
    from programs import gpt

    def mlp() -> tuple[Any, tuple[Any, ...]]:
        rng = np.random.RandomState(0)
        net = nn.SequentialCell(nn.Dense(256, 512), nn.ReLU(), nn.Dense(512, 512), nn.GELU(), nn.LayerNorm((512,)), nn.Dense(512, 10))
        batch = rng.randn(128, 256).astype(np.float32), rng.randint(0, 10, 128).astype(np.int32)
        return net, batch

    def images() -> tuple[Any, tuple[Any, ...]]:
        rng = np.random.RandomState(0)
        layers: list[Any] = []
        for inputs, outputs, stride in ((3, 16, 1), (16, 32, 2), (32, 64, 2)):
            layers += [nn.Conv2d(inputs, outputs, 3, stride), nn.BatchNorm2d(outputs), nn.ReLU()]
        net = nn.SequentialCell(*layers, nn.AvgPool2d(4, 4), nn.Flatten(), nn.Dense(64, 10))
        return net, (rng.rand(16, 3, 16, 16).astype(np.float32), rng.randint(0, 10, 16).astype(np.int32))

    def words() -> tuple[Any, tuple[Any, ...]]:
        ids = np.random.RandomState(0).randint(0, 200, (4, 33)).astype(np.int32)
        return gpt.GPT(200, 32, 128, 4, 2), (ids[:, :-1].copy(), ids[:, 1:].reshape(-1).copy())

    return {"MLP": mlp, "three convolutions with batch norms": images, "GPT, 2 layers, width 128": words}


def losses(make: Callable[[], tuple[Any, tuple[Any, ...]]], wide: bool = False, lowered: bool = False) -> tuple[Any, tuple[Any, ...]]:
    """Return the net with its loss, equal in each call, and its batch; `wide` in float64, `lowered` with its layers in float16."""
    import mindspore as ms
    from mindspore import nn

    ms.set_seed(1)
    net, batch = make()
    if lowered:
        net.to_float(ms.float16)
    if wide:
        for parameter in net.get_parameters():
            parameter.set_dtype(ms.float64)
    tensors = tuple(ms.Tensor(a, ms.float64) if wide and a.dtype.kind == "f" else ms.Tensor(a) for a in batch)

    class Lossy(nn.WithLossCell):
        def construct(self, data: Any, label: Any) -> Any:
            out = self._backbone(data)
            return self._loss_fn(out.astype(ms.float32) if lowered else out, label)

    return Lossy(net, nn.CrossEntropyLoss()).set_train(), tensors


def gradients(cell: Any, batch: tuple[Any, ...]) -> tuple[float, Any]:
    """Return the loss, and all gradients as one vector in float64."""
    import mindspore as ms
    import numpy as np

    value, values = ms.value_and_grad(cell, None, cell.trainable_params())(*batch)
    return float(value), np.concatenate([g.asnumpy().astype(np.float64).ravel() for g in values])


def training_step(cell: Any, batch: tuple[Any, ...], mode: str) -> tuple[Callable[[], Any], dict[str, float]]:
    """Return a training step under a policy, and the share of its operators in each dtype."""
    import mindspore as ms
    from mindspore import nn

    import torchspore
    from torchspore.graph.passes.precision import outcomes

    step = nn.TrainOneStepCell(cell, nn.Momentum(cell.trainable_params(), 0.01, 0.9)).set_train()

    def run() -> Any:
        ms.set_context(mode=ms.GRAPH_MODE, ascend_config={"precision_mode": mode})
        return step(*batch).asnumpy()

    run()
    counts = outcomes.count_dtypes(torchspore.graphs(step)[0].module)
    counts.pop("cast", None)
    total = sum(counts.values())
    return run, {kind: count / total for kind, count in counts.items()}


def table(name: str, make: Callable[[], tuple[Any, tuple[Any, ...]]], options: argparse.Namespace) -> None:
    """Print the rows of one net."""
    import mindspore as ms
    import numpy as np

    ms.set_context(mode=ms.PYNATIVE_MODE)
    value64, exact = gradients(*losses(make, wide=True))
    runs, lines = {}, {}
    rows = [(mode, mode, False) for mode in POLICIES]
    rows += [("to_float(float16)", "must_keep_origin_dtype", True), ("to_float(float16), force_fp32", "force_fp32", True)]
    for label, mode, lowered in rows:
        ms.set_context(mode=ms.GRAPH_MODE, ascend_config={"precision_mode": mode})
        value, vector = gradients(*losses(make, lowered=lowered))
        runs[label], shares = training_step(*losses(make, lowered=lowered), mode)
        error = np.linalg.norm(vector - exact) / np.linalg.norm(exact)
        shown = ", ".join(f"{share:.0%} {kind}" for kind, share in sorted(shares.items(), key=lambda item: -item[1]))
        lines[label] = f"{abs(value - value64) / abs(value64):.1e} | {error:.1e} | {shown}"
    times = turns.measure({label: turns.timer(run) for label, run in runs.items()}, options.seconds, options.rounds)
    for label, times_of_policy in times.items():
        ratio = turns.ratio(times_of_policy, times[POLICIES[0]])
        print(f"| {name} | {label} | {lines[label]} | {statistics.median(times_of_policy) * 1000:.1f} | {ratio} |", flush=True)


def main() -> None:
    """Print the table."""
    import torchspore

    torchspore.install()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.1, help="how long one turn takes")
    options = parser.parse_args()
    print("### Precision of a training step\n\n| net | policy | error of the loss | of the gradients | operators | ms a step | "
          "of must_keep_origin_dtype |\n|---|---|---:|---:|---|---:|---|", flush=True)
    for name, make in nets().items():
        table(name, make, options)


if __name__ == "__main__":
    main()
