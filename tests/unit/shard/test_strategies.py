"""Primitives with a strategy that MindSpore accepts, run for 8 simulated ranks beside one device: results and gradients.

The strategies are those of the records in tests/parity/strategies.
"""
from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn
from mindspore.ops import auto_generate as G
from mindspore.ops import operations as P

from torchspore.errors import NotOffered

RECORDS = Path(__file__).parents[2] / "parity" / "strategies" / "records"
GRID: dict[str, list[dict[str, Any]]] = {file.stem: json.loads(file.read_text()) for file in sorted(RECORDS.glob("*.json"))}
GROUPS = [pytest.param(group, id=f"{stem}-{at}-{group['primitive']}") for stem, groups in GRID.items() for at, group in enumerate(groups)]
GROUPS = [g for g in GROUPS if g.values[0]["primitive"] != "P.PadV3()"]     # it reads its paddings on the host: no graph holds it
IN_CI = GROUPS[::3]
FEW = 1
"""So many strategies of each of these primitives are run in CI."""

LISTED = ("Concat", "Stack", "AddN")
"""What takes its Tensors in one tuple."""
REFUSED = {("P.SparseSoftmaxCrossEntropyWithLogits()", ((1, 8), (1,)))}
"""What MindSpore takes and cuts nothing by; refused here (`docs/differences.md`)."""


class Net(nn.Cell):
    """One call of a primitive."""

    def __init__(self, primitive: Any, constants: tuple[Any, ...]) -> None:
        super().__init__()
        self.primitive, self.constants = primitive, constants

    def construct(self, *inputs: Any) -> Any:
        out = self.primitive(inputs) if self.primitive.name in LISTED else self.primitive(*inputs, *self.constants)
        return out[0] if isinstance(out, tuple) else out


def call(group: dict[str, Any], strategy: Any) -> list[np.ndarray]:
    """The result and the gradients of a call, with a strategy or without."""
    ms.set_seed(1)
    names = {"P": P, "G": G, "ms": ms, "np": np, "Tensor": Tensor}
    primitive = eval(group["primitive"], names)
    if strategy is not None:
        primitive.shard(*strategy)
    source = np.random.default_rng(0)
    inputs = []
    for shape, kind in group["inputs"]:
        values = source.random(shape) + 0.5 if kind.startswith("float") else source.integers(0, 2 if "bool" in kind else 4, shape)
        inputs.append(Tensor(values.astype(np.dtype(kind))))
    floats = tuple(at for at, (_, kind) in enumerate(group["inputs"]) if kind.startswith("float"))
    net = Net(primitive, tuple(eval(constant, names) for constant in group["constants"]))
    out = net(*inputs)
    results = [out.asnumpy()]
    if floats and out.dtype == ms.float32:
        grads = ms.grad(lambda *arguments: (net(*arguments) * net(*arguments)).sum(), floats)(*inputs)
        results += [g.asnumpy() for g in (grads if isinstance(grads, tuple) else (grads,))]
    return results


def compared(group: dict[str, Any], most: int) -> int:
    """How many of the strategies that MindSpore accepts were run; each gives what one device gives."""
    accepted = [ast.literal_eval(key) for key, answer in group["answers"].items() if answer is not None and "{" not in key]
    accepted = [entry for entry in accepted if (group["primitive"], tuple(map(tuple, entry[0]))) not in REFUSED]
    accepted = [entry for entry in accepted if any(cut > 1 for part in entry[0] for cut in part)] or accepted
    try:
        alone = call(group, None)
    except (NotOffered, TypeError, ValueError, RuntimeError) as error:
        pytest.skip(f"one device does not run it: {str(error).splitlines()[0]}")
    step = max(1, len(accepted) // most) if most else 1
    for strategy in accepted[::step][: most or None]:
        ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")
        together = call(group, [tuple(map(tuple, part)) for part in strategy])
        ms.reset_auto_parallel_context()
        for expected, other in zip(alone, together):
            most_of = max(1.0, float(np.abs(expected).max(initial=0)))
            np.testing.assert_allclose(expected, other, rtol=2e-5, atol=2e-5 * most_of, err_msg=str(strategy))
    return len(accepted)


@pytest.mark.parametrize("group", IN_CI)
def test_a_strategy_gives_what_one_device_gives(group: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHSPORE_SIMULATE", str(group["devices"]))
    compared(group, FEW)


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS)
def test_all_strategies_give_what_one_device_gives(group: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHSPORE_SIMULATE", str(group["devices"]))
    compared(group, 0)


def test_a_number_may_have_an_empty_strategy(monkeypatch: pytest.MonkeyPatch) -> None:
    class Power(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.pow = P.Pow().shard(((8, 1), ()))

        def construct(self, x: Tensor) -> Tensor:
            return self.pow(x, 2.0)

    monkeypatch.setenv("TORCHSPORE_SIMULATE", "8")
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")
    x = np.arange(32, dtype=np.float32).reshape(8, 4)
    np.testing.assert_array_equal(Power()(Tensor(x)).asnumpy(), x**2)
