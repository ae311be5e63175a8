"""`memory_optimize_level` and `sys.mem_reuse`: less and more memory, seen by torch's profiler, with equal bits."""
from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import Tensor, nn, ops
from support.memory_use import most

import torchspore
from torchspore.context import effects
from torchspore.context.options import OPTIONS
from torchspore.context.public import scope
from torchspore.engine.torch_internals import node_metadata
from torchspore.engine.torch_internals.torch_private import make_fx
from torchspore.graph import passes
from torchspore.graph.backend import eager_codegen
from torchspore.graph.fx import aliasing
from torchspore.graph.passes.memory import early_updates, lifetimes, no_reuse, rematerialize


@pytest.fixture(autouse=True)
def after() -> Iterator[None]:
    with scope(mode=ms.GRAPH_MODE):
        yield


class Rows(nn.Cell):
    """MLP blocks as transformers have them, with dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Dense(64, 256), nn.Dense(256, 64)
        self.norm, self.drop = nn.LayerNorm((64,)), nn.Dropout(p=0.1)

    def construct(self, x):
        return x + self.drop(self.second(ops.gelu(self.first(self.norm(x)))))


class Images(nn.Cell):
    """Convolutions with batch norms and a way around."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.norm1, self.conv2, self.norm2 = nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8), nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8)

    def construct(self, x):
        y = self.norm2(self.conv2(ops.relu(self.norm1(self.conv1(x)))))
        return ops.relu(y + x)


class Net(nn.Cell):
    def __init__(self, block: type[nn.Cell]) -> None:
        super().__init__()
        self.blocks = nn.SequentialCell(*[block() for _ in range(5)])

    def construct(self, x):
        return (self.blocks(x) ** 2).mean()


SHAPES = {Rows: (256, 64), Images: (4, 8, 24, 24)}


def trained(block: type[nn.Cell], folder: Path, optimizer: Any = None, **context: Any) -> tuple[list[float], list[bytes], float, Any]:
    """Losses, the bits of all Parameters and state, the peak of a step, the step."""
    with scope(**context):
        return _trained(block, folder, optimizer)


def _trained(block: type[nn.Cell], folder: Path, optimizer: Any) -> tuple[list[float], list[bytes], float, Any]:
    ms.set_seed(1)
    net = Net(block)
    chosen = (optimizer or (lambda p: nn.Adam(p, 1e-3, weight_decay=0.01)))(net.trainable_params())
    step = nn.TrainOneStepCell(net, chosen).set_train()
    x = Tensor(np.random.RandomState(0).randn(*SHAPES[block]).astype(np.float32))
    losses = [float(step(x)) for _ in range(3)]
    bits = [p.asnumpy().tobytes() for p in step.get_parameters()]
    return losses, bits, most(lambda: step(x), folder), step


@pytest.mark.parametrize("block", [Rows, Images])
@pytest.mark.parametrize("optimizer", [
    None, lambda p: nn.Momentum(p, 0.01, 0.9), lambda p: nn.Adam(p, 1e-3, use_nesterov=True),
    lambda p: nn.AdamWeightDecay(p, 1e-3, weight_decay=0.1),
], ids=["adam", "momentum", "nesterov", "decoupled"])
def test_less_memory_and_the_same_bits(block: type[nn.Cell], optimizer: Any, tmp_path: Path) -> None:
    losses, bits, memory, _ = trained(block, tmp_path, optimizer)
    losses_with_less, bits_with_less, less, _ = trained(block, tmp_path, optimizer, memory_optimize_level="O1")
    assert losses_with_less == losses and bits_with_less == bits
    assert less < 0.6 * memory


def test_explain_says_what_it_came_to(tmp_path: Path) -> None:
    trained(Rows, tmp_path, memory_optimize_level="O1")
    assert any("O1: values of a graph use" in line and "run again in the backward half" in line
               for line in effects.notes()["memory of graphs"])


def test_the_outcome_is_of_all_graphs(tmp_path: Path) -> None:
    def outcome() -> str:
        return str(effects.outcome_of(OPTIONS["memory_optimize_level"], 1))

    with effects.fresh(), scope(memory_optimize_level="O1"):
        _trained(Rows, tmp_path, None)
        alone = outcome()
        assert re.fullmatch(
            r"applied: O1: values of a graph use [\d.]+ MiB at most instead of [\d.]+ MiB; "
            r"\d+ operators run again in the backward half, about \d+% more arithmetic", alone)
        ms.jit(lambda x: x + 1)(Tensor(np.ones(4, np.float32)))
        assert outcome() == alone.replace("values of a graph use", "values of 1 of 2 graphs use less memory; the largest uses")
    with effects.fresh(), scope(memory_optimize_level="O1"):
        ms.jit(lambda x: x + 1)(Tensor(np.ones(4, np.float32)))
        assert outcome() == "applied: O1: values of a graph use 16 B at most, as before"


def test_nothing_random_and_no_statistics_twice(tmp_path: Path) -> None:
    def count(step: Any, name: str) -> int:
        return str(torchspore.graphs(step)[0]).count(name)

    for block, name in ((Rows, "torchspore.keep_mask."), (Images, "aten.native_batch_norm.")):
        plain = count(trained(block, tmp_path, memory_optimize_level="O0")[3], name)
        assert plain > 0 and count(trained(block, tmp_path, memory_optimize_level="O1")[3], name) == plain


def test_other_levels_take_less_too(tmp_path: Path) -> None:
    with scope(jit_config={"jit_level": "O1"}):
        losses, _, memory, _ = trained(Rows, tmp_path)
        losses_with_less, _, less, _ = trained(Rows, tmp_path, memory_optimize_level="O1")
    np.testing.assert_allclose(losses_with_less, losses, rtol=1e-5)
    assert less < 0.8 * memory


@pytest.mark.parametrize(("order", "share"), [("bfs", 0.6), ("dfs", 0.9)])
def test_the_order_of_operators_leaves_the_plan_as_it_is(order: str, share: float, tmp_path: Path) -> None:
    losses, _, memory, _ = trained(Rows, tmp_path, exec_order=order)
    losses_with_less, _, less, _ = trained(Rows, tmp_path, exec_order=order, memory_optimize_level="O1")
    assert losses_with_less == losses and less < share * memory


@pytest.mark.slow
def test_without_reuse_each_value_keeps_its_memory(tmp_path: Path) -> None:
    losses, bits, memory, _ = trained(Rows, tmp_path)
    path = tmp_path / "config.json"
    for config in ({"sys": {"mem_reuse": False}}, {"mem_Reuse": False}):
        path.write_text(json.dumps(config))
        losses_without_reuse, bits_without_reuse, more, step = trained(Rows, tmp_path, env_config_path=str(path))
        assert losses_without_reuse == losses and bits_without_reuse == bits
        assert more > 1.5 * memory
        storages = lifetimes.Lifetimes(torchspore.graphs(step)[0].module).storages
        # NumPy allocates the masks of dropout, which torch's profiler does not see.
        assert more >= sum(storage.size for storage in storages if "keep_mask" not in f"{storage.node.target} {storage.node.args}")


def test_with_reuse_again_it_is_as_before(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text('{"sys": {"mem_reuse": true}}')
    assert trained(Rows, tmp_path, env_config_path=str(path))[2] == trained(Rows, tmp_path)[2]


# ---- the passes by themselves


def traced(function: Any, *inputs: torch.Tensor) -> Any:
    return passes.run(passes.CLEAN, make_fx(function, tracing_mode="fake")(*inputs), keep=None)


def chain(x: torch.Tensor, w: torch.Tensor) -> list[torch.Tensor]:
    values = [x]
    for _ in range(4):
        values.append(torch.tanh(values[-1] @ w).exp())
    for value in reversed(values[:-1]):
        values[-1] = values[-1] * value.sin()
    return [values[-1].sum()]


def test_the_estimate_is_what_the_profiler_sees(tmp_path: Path) -> None:
    x, w = torch.rand(128, 128), torch.rand(128, 128) / 64
    module = traced(chain, x, w)
    code = eager_codegen.compile(module)
    assert most(lambda: code(x, w), tmp_path) == pytest.approx(lifetimes.peak(module), rel=0.05)


def test_recomputation_before_and_after() -> None:
    x, w = torch.rand(64, 64), torch.rand(64, 64) / 64
    module = traced(chain, x, w)
    names = [node.name for node in module.graph.nodes]
    peak, expected = lifetimes.peak(module), eager_codegen.compile(module)(x, w)
    count, share = rematerialize.recompute_values(module)
    assert count > 0 and share <= rematerialize.COST_SHARE and lifetimes.peak(module) < peak
    added = [node for node in module.graph.nodes if node.meta.get(node_metadata.RECOMPUTED)]
    assert len(added) == count and [n.name for n in module.graph.nodes if n not in added] == names
    assert torch.equal(eager_codegen.compile(module)(x, w)[0], expected[0])


def early_and_late(value: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Reads `value`, then has much larger values for a while, then reads it again: it lies idle over the peak."""
    first = value.sin().sum()
    large = torch.cat([x, x, x, x]).exp()
    return first + (large * large.sin()).sum() + (value * 2).sum()


def test_cheap_values_that_are_unused_over_the_peak_are_recomputed() -> None:
    x = torch.rand(64, 64)
    module = traced(lambda x: [early_and_late(x.cos(), x)], x)
    assert rematerialize.recompute_values(module)[0] == 1
    assert [str(n.target) for n in module.graph.nodes if n.meta.get(node_metadata.RECOMPUTED)] == ["aten.cos.default"]


@pytest.mark.parametrize("make", [
    lambda x, state: torch.rand_like(x), lambda x, state: torch.empty_like(x).bernoulli_(0.5), lambda x, state: x.cos().add_(1),
    lambda x, state: torch.dropout(x, 0.5, True),
], ids=["random", "random in place", "written", "dropout"])
def test_random_values_and_values_that_are_written_are_preserved(make: Any) -> None:
    x, state = torch.rand(64, 64), torch.zeros(64, 64)
    module = traced(lambda x, state: [early_and_late(make(x, state), x)], x, state)
    values = []
    rematerialize.recompute_values(module)
    assert not any(n.meta.get(node_metadata.RECOMPUTED)
                   and ("rand" in str(n.target) or "bernoulli" in str(n.target) or "add_" in str(n.target))
                   for n in module.graph.nodes)
    for run in (lambda: eager_codegen.compile(module)(x, state)[0], lambda: early_and_late(make(x, state), x)):
        torch.manual_seed(0)
        values.append(run())
    assert torch.equal(*values)


def test_what_reads_a_value_before_it_is_written_is_preserved() -> None:
    def function(x: torch.Tensor, state: torch.Tensor) -> list[torch.Tensor]:
        read = state * 2
        first = read.sin().sum()
        state.add_(1)
        large = torch.cat([x, x, x, x]).exp()
        return [first + (large * large.sin()).sum() + (read * 2).sum()]

    x, state = torch.rand(64, 64), torch.zeros(64, 64)
    module = traced(function, x, state)
    rematerialize.recompute_values(module)
    assert torch.equal(eager_codegen.compile(module)(x, state.clone())[0], function(x, state.clone())[0])


def layers_with_writes(x: torch.Tensor, y: torch.Tensor, state: torch.Tensor) -> list[torch.Tensor]:
    """Layers that read `state` and `x` before they write into them, and write into values; then all values are read again, last first."""
    saved, value = [], y
    for index in range(6):
        value = torch.tanh(value * 0.9)
        before = state.cos() * value                      # must not be recomputed after the next write
        part = value.exp()
        part[1:].add_(before[1:])                         # through a view
        state.T.mul_(0.5 + index)
        saved.append((before, part, (x * 2).sin(), (y + index).cos(), (value + index).sin()))
        x.add_(0.25)
    for values in reversed(saved):
        for item in values:
            value = value * item.sin()
    return [value.sum(), x, state]


def test_a_value_is_not_recomputed_after_a_write_in_any_round(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = torch.rand(64, 64), torch.rand(64, 64), torch.rand(64, 64)
    module = traced(layers_with_writes, *inputs)
    rounds: list[Any] = []
    insert = rematerialize._Insertion.__init__

    def count(insertion: Any, graph: Any, lives: Any, candidate: Any) -> None:
        if lives not in rounds:
            rounds.append(lives)
        insert(insertion, graph, lives, candidate)

    monkeypatch.setattr(rematerialize._Insertion, "__init__", count)
    assert rematerialize.recompute_values(module, 1.0)[0] > 0
    assert len(rounds) > 1
    owner = aliasing.owners(module.graph)
    written = {owner[item] for node in module.graph.nodes for item in aliasing.writes(node)}
    assert not {owner[node] for node in module.graph.nodes if node.meta.get(node_metadata.RECOMPUTED)} & written
    copies = [[value.clone() for value in inputs] for _ in range(2)]
    assert all(map(torch.equal, eager_codegen.compile(module)(*copies[0]), layers_with_writes(*copies[1])))


def test_steps_of_an_optimizer_run_when_their_gradients_are_there() -> None:
    def step(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> list[torch.Tensor]:
        y = x @ a
        grad_b = y.t() @ x
        grad_a = x.t() @ (x @ b.t())
        torch._foreach_add_([a], [b * 0])
        torch._fused_sgd_([b, a], [grad_b, grad_a], [], weight_decay=0.0, momentum=0.0, lr=torch.tensor(0.1), dampening=0.0,
                          nesterov=False, maximize=False, is_first_step=False)
        return [y.sum()]

    arguments = [torch.rand(16, 16) for _ in range(3)]
    module = traced(lambda *inputs: step(*inputs), *arguments)
    plain, changed = [t.clone() for t in arguments], [t.clone() for t in arguments]
    expected = eager_codegen.compile(module)(*plain)
    early_updates.move_updates_early(module)
    module.graph.lint()
    names = [str(node.target) for node in module.graph.nodes if node.op == "call_function"]
    assert sum("_fused_sgd_" in name for name in names) == 2
    result = eager_codegen.compile(module)(*changed)
    assert torch.equal(result[0], expected[0]) and all(torch.equal(a, b) for a, b in zip(plain, changed))


def test_saved_values_are_results() -> None:
    module = traced(lambda x: [x.exp().sin() + 1], torch.rand(4))
    no_reuse.extend_lifetimes(module)
    assert len(eager_codegen.compile(module)(torch.rand(4))) == 3


@pytest.mark.parametrize("make", [nn.Momentum, nn.AdamWeightDecay], ids=lambda net: net.__name__)
def test_the_first_call_holds_no_more_than_the_others(make: Any, tmp_path: Path) -> None:
    net = nn.SequentialCell([nn.Dense(256, 256) for _ in range(4)])
    optimizer = make(net.trainable_params(), 0.01, 0.9) if make is nn.Momentum else make(net.trainable_params())
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer).set_train()
    x = Tensor(np.ones((8, 256), np.float32))
    first, second = (most(lambda: step(x, x), tmp_path) for _ in range(2))
    assert first < 1.2 * second
