"""Levels: which one a call gets, that each gives O0's numbers, and that measuring disturbs nothing."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import Tensor, nn, ops
from support import fake_timings, kernel_compilers

from torchspore.graph import dispatch
from torchspore.graph.backend import inductor, measurement, variant_race
from torchspore.graph.compile_cache import autotune_cache
from torchspore.graph.fx import sample_inputs
from torchspore.graph.settings import settings_of


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    autotune_cache.forget()
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE, jit_config={}, disable_format_transform=False, deterministic="OFF")


class Images(nn.Cell):
    """Convolution, batch norm, pooling, dropout and dense layers."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.conv2 = nn.Conv2d(3, 16, 3, has_bias=True), nn.Conv2d(16, 16, 3)
        self.norm, self.drop, self.pool = nn.BatchNorm2d(16), nn.Dropout(p=0.3), nn.MaxPool2d(2, 2)
        self.fc, self.fc2 = nn.Dense(16 * 8 * 8, 64), nn.Dense(64, 5)

    def construct(self, x):
        h = self.pool(ops.relu(self.conv2(ops.relu(self.norm(self.conv(x))))))
        return self.fc2(self.drop(ops.relu(self.fc(h.reshape(h.shape[0], -1)))))


class Words(nn.Cell):
    """Embedding, attention, layer norm, gelu."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.norm = nn.Embedding(50, 64), nn.LayerNorm((64,))
        self.q, self.k, self.v, self.mlp = (nn.Dense(64, 64) for _ in range(4))
        self.gelu, self.out = nn.GELU(), nn.Dense(64, 5)

    def construct(self, ids):
        x = self.table(ids)
        scores = ops.softmax(ops.matmul(self.q(x), self.k(x).transpose(0, 2, 1)) * 0.1)
        x = self.norm(x + ops.matmul(scores, self.v(x)))
        return self.out((x + self.gelu(self.mlp(x))).mean(1))


def images() -> tuple[Any, Any]:
    return Images(), Tensor(np.random.RandomState(0).randn(8, 3, 16, 16).astype(np.float32))


def words() -> tuple[Any, Any]:
    return Words(), Tensor(np.random.RandomState(0).randint(0, 50, (8, 32)).astype(np.int32))


def trained(make: Any, level: str, mode: int = ms.GRAPH_MODE) -> tuple[list[float], list[np.ndarray], Any]:
    """The losses and the state of three steps."""
    ms.set_context(mode=mode, jit_config={"jit_level": level})
    ms.set_seed(7)
    net, x = make()
    optimizer = nn.Momentum(net.trainable_params(), 0.01, 0.9) if make is images else nn.Adam(net.trainable_params(), 1e-3)
    cell = nn.TrainOneStepCell(nn.WithLossCell(net, nn.CrossEntropyLoss()), optimizer)
    cell.set_train()
    y = Tensor(np.random.RandomState(1).randint(0, 5, 8).astype(np.int32))
    ms.set_seed(11)
    losses = [float(cell(x, y)) for _ in range(3)]
    return losses, [p.asnumpy().copy() for p in (*net.get_parameters(), *optimizer.get_parameters())], cell


@pytest.mark.parametrize("make", [images, words])
def test_o0_gives_pynative_s_bits_and_o1_its_numbers(make: Any) -> None:
    plain, state, _ = trained(make, "O0", ms.PYNATIVE_MODE)
    losses, zero, _ = trained(make, "O0")
    assert losses == plain and all(np.array_equal(a, b) for a, b in zip(state, zero))
    losses, one, cell = trained(make, "O1")
    np.testing.assert_allclose(losses, plain, rtol=1e-5)
    for a, b in zip(state, one):
        np.testing.assert_allclose(a, b, atol=1e-4 * max(1.0, np.abs(a).max()))
    assert len(dispatch.graphs(cell)) == 1


def test_a_cell_s_own_config_wins_over_the_context_s() -> None:
    ms.set_context(jit_config={"jit_level": "O1"})
    net = nn.Dense(2, 2)
    assert settings_of(net).level == "O1" and settings_of(net) is settings_of(nn.Dense(2, 2))
    net.set_jit_config(ms.JitConfig(jit_level="O0"))
    assert settings_of(net).level == "O0"
    ms.set_context(jit_config={})
    assert settings_of(nn.Dense(2, 2)) == settings_of(net)


def test_a_jit_function_s_own_level_wins_and_o0_may_be_meant() -> None:
    ms.set_context(jit_config={"jit_level": "O1"})

    def body(x: Any) -> Any:
        return x * 2

    def level(function: Any) -> str:
        return settings_of(function).level

    assert level(ms.jit(lambda x: x)) == "O1"
    assert level(ms.jit(body, jit_level="O2")) == "O2" and level(ms.jit(body, jit_level="O0")) == "O0"
    assert level(ms.jit(body, jit_config=ms.JitConfig(jit_level="O2"))) == "O2"


def test_another_level_is_another_graph_of_the_same_cell() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    net, x = nn.Dense(3, 2), Tensor(np.ones((2, 3), np.float32))
    answers = []
    for level in ("O0", "O1", "O0"):
        ms.set_context(jit_config={"jit_level": level})
        answers.append(net(x).asnumpy())
    np.testing.assert_allclose(answers[0], answers[1], rtol=1e-5)
    assert len(dispatch.graphs(net)) == 2
    net.set_jit_config({"jit_level": "O2"})
    net(x)
    assert len(dispatch.graphs(net)) == 3


def test_measuring_writes_nothing_and_draws_nothing() -> None:
    net, x = images()
    net.set_train()
    before = [p.asnumpy().copy() for p in net.get_parameters()]
    ms.set_context(jit_config={"jit_level": "O1"})
    state = torch.get_rng_state()
    net.compile(x)
    assert torch.equal(state, torch.get_rng_state())
    assert all(np.array_equal(a, p.asnumpy()) for a, p in zip(before, net.get_parameters()))


def test_copies_keep_strides_and_share_no_memory() -> None:
    base = torch.arange(24.0).reshape(2, 3, 4)
    for t in (base, base.transpose(0, 2), base[:, 1], base[0, :, :1].expand(3, 5), torch.empty(0, 3), torch.tensor(1.0)):
        copied = measurement.copy(t)
        assert torch.equal(copied, t) and copied.stride() == t.stride() and (not t.numel() or copied.data_ptr() != t.data_ptr())


def test_a_form_with_other_numbers_or_an_error_is_omitted() -> None:
    def wrong(x: torch.Tensor) -> list[torch.Tensor]:
        return [x * 2.1]

    def broken(x: torch.Tensor) -> list[torch.Tensor]:
        raise RuntimeError("no kernel")

    def slow(x: torch.Tensor) -> list[torch.Tensor]:
        for _ in range(50):
            x * 2
        return [x * 2]

    race = variant_race.Race(lambda: [torch.ones(1000)])
    for name, code in (("slow", slow), ("wrong", wrong), ("broken", broken)):
        race.enter(name, lambda code=code: code)
    assert race.best() == "slow"
    race.enter("fast", lambda: lambda x: [x + x])
    assert race.best() == "fast"


def test_an_equal_graph_is_not_measured_again(measured_by: Any) -> None:
    first = trained(words, "O1")
    measured_by(fake_timings.nobody)
    second = trained(words, "O1")
    assert first[0] == second[0]


def test_a_store_records_and_returns_choices(measured_by: Any) -> None:
    class RecordingStore(dict[str, str]):
        find, keep = dict.get, dict.__setitem__

    store = RecordingStore()
    with autotune_cache.stored_in(store):
        first = trained(images, "O1")
        assert store
        autotune_cache.forget()
        measured_by(fake_timings.nobody)
        assert trained(images, "O1")[0] == first[0]


def test_disable_format_transform_keeps_images_as_they_are(without_kernels: None, measured_by: Any) -> None:
    measured_by(fake_timings.Last())
    strides: list[tuple[int, ...]] = []

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if "convol" in str(func) and not any(word in str(func) for word in ("reorder", "pack_")):
                strides.append(args[0].stride())
            return func(*args, **(kwargs or {}))

    net, x = images()
    net.set_train(False)
    answers = []
    for disabled, last in ((False, 1), (True, 256)):
        ms.set_context(mode=ms.GRAPH_MODE, jit_config={"jit_level": "O1"}, disable_format_transform=disabled)
        net(x)
        strides.clear()
        with Watch():
            answers.append(net(x).asnumpy())
        assert [s[1] for s in strides] == [last, last]
    np.testing.assert_allclose(*answers, rtol=1e-4, atol=1e-6)


def test_a_form_that_comes_late_is_compared_on_the_same_inputs() -> None:
    def step(x: torch.Tensor) -> list[torch.Tensor]:
        x.mul_(2)
        return [x + 1]

    race = variant_race.Race(lambda: [torch.ones(10)])
    race.enter("one", lambda: step)
    race.best()
    race.enter("other", lambda: lambda x: [x.add_(x) + 1])
    assert list(race.codes) == ["one", "other"]


@pytest.mark.parametrize(("act", "text"), [
    (lambda: ms.JitConfig(jit_level="o1"), "JitConfig(jit_level='o1'): expected one of 'O0', 'O1', 'O2'.\n\nhint: write jit_level='O1'."),
    (lambda: ms.jit(lambda x: x, jit_level="02"), "jit(jit_level='02'): expected one of 'O0', 'O1', 'O2'."),
    (lambda: ms.JitConfig(jit_level="O1", infer_boost="on"), "JitConfig(infer_boost='on', jit_level='O1'): expected infer_boost 'on' only "
     "together with jit_level 'O0'.\n\nhint: write jit_level='O0'."),
    (lambda: ms.set_context(jit_config={"jit_level": "o2"}), "set_context(jit_config={'jit_level': 'o2'}): expected 'O0', 'O1' or 'O2'.\n\n"
     "hint: write jit_config={'jit_level': 'O2'}."),
])  # fmt: skip
def test_what_no_level_takes(act: Any, text: str) -> None:
    with pytest.raises(ValueError) as caught:
        act()
    assert str(caught.value) == text


class Loops(nn.Cell):
    """A loop and a branch on Tensors, with products and pointwise operators inside."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Dense(64, 64)

    def construct(self, x):
        steps = 0
        while x.abs().max() > 0.5 and steps < 5:
            x = ops.tanh(self.fc(x)) * 0.9
            steps = steps + 1
        if x.sum() > 0:
            x = ops.relu(self.fc(x)) + 1
        else:
            x = ops.sigmoid(self.fc(x)) - 1
        return x


def test_branches_and_loops_are_worked_on_too(without_kernels: None, measured_by: Any) -> None:
    autotune_cache.forget()
    measured_by(fake_timings.Last())                          # products by oneDNN too
    ms.set_seed(2)
    net, x = Loops(), Tensor(np.random.RandomState(0).randn(16, 64).astype(np.float32))
    answers = []
    for mode, level in ((ms.PYNATIVE_MODE, ""), (ms.GRAPH_MODE, "O0"), (ms.GRAPH_MODE, "O1")):
        ms.set_context(mode=mode, jit_config={"jit_level": level} if level else {})
        answers.append(net(x).asnumpy())
    np.testing.assert_array_equal(answers[0], answers[1])
    np.testing.assert_allclose(answers[0], answers[2], rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_o2_runs_a_small_step_as_one_launch(measured_by: Any) -> None:
    last = fake_timings.Last()
    measured_by(last)
    plain, state, _ = trained(words, "O0")
    losses, two, _ = trained(words, "O2")
    assert [name for name in last.seen if name not in ("one line", "lanes")][-1] == "one launch"
    np.testing.assert_allclose(losses, plain, rtol=1e-5)
    for a, b in zip(state, two):
        np.testing.assert_allclose(a, b, atol=1e-4 * max(1.0, np.abs(a).max()))


def test_values_are_invented_where_elements_share_memory() -> None:
    shared = torch.ones(3).expand(2, 3)
    for copied in (sample_inputs.filled(shared, torch.Tensor.zero_), measurement.rounded_otherwise(shared), measurement.copy(shared)):
        assert copied.shape == (2, 3) and copied.stride() == (0, 1) and torch.equal(copied[0], copied[1])
    assert sample_inputs.filled(torch.empty(0, 3), torch.Tensor.zero_).shape == (0, 3)
    row, table = Tensor(np.float32([[1, 2, 3]])), Tensor(np.eye(3, dtype=np.float32))

    def product(x):
        wide = x.sum(0, keepdims=True).broadcast_to((4, 3))
        return ops.tanh(wide * 2 + 1) * (wide @ table)

    ms.set_context(jit_config={"jit_level": "O1"})
    with inductor.compiled_by(kernel_compilers.OneByOne()):
        np.testing.assert_allclose(ms.jit(product)(row).asnumpy(), product(row).asnumpy(), rtol=1e-5)
