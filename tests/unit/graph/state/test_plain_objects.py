"""Of a plain object, as a Trainer whose method is differentiated, the attributes count whose names stand in what ran."""
from __future__ import annotations

import argparse
import functools
import re
from collections.abc import Iterator

import mindspore as ms
import pytest
from mindspore import Tensor, nn, ops

X = Tensor([1.0, 2.0])


@pytest.fixture(autouse=True)
def graph_mode() -> Iterator[None]:
    ms.set_context(mode=ms.GRAPH_MODE)
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


class Settings:
    def __init__(self) -> None:
        self.scale, self.seen = 2.0, 0


class Trainer:
    """As programs write them: the net and its settings beside counters, logs and an iterator over the data."""

    def __init__(self) -> None:
        self.settings, self.steps, self.losses, self.rows = Settings(), 0, [], iter(range(100))
        self.gradient = ops.GradOperation()(self.forward)

    def forward(self, x: Tensor) -> Tensor:
        return (x * x).sum() * self.settings.scale

    def step(self) -> list[float]:
        self.steps += 1
        self.settings.seen = next(self.rows)
        result = self.gradient(X)
        self.losses.append(result)
        return result.asnumpy().tolist()


def captures(capfd: pytest.CaptureFixture[str]) -> int:
    """How many graphs were made since the last look."""
    return len(re.findall(r"graph\] (?:capture|again|refused|break):", capfd.readouterr().err))


def test_counters_and_logs_of_a_trainer_make_no_new_graph(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("TORCHSPORE_LOG", "graph")
    trainer = Trainer()
    assert [trainer.step() for _ in range(4)] == [[4.0, 8.0]] * 4
    assert captures(capfd) == 1
    trainer.settings.scale = 3.0
    assert trainer.step() == [6.0, 12.0]
    trainer.settings = Settings()
    assert trainer.step() == [4.0, 8.0]
    assert captures(capfd) == 2


class Seeing(nn.Cell):
    """Asks an object for an attribute in the ways that name it and in those that don't."""

    def __init__(self, plain_object: object, way: str) -> None:
        super().__init__()
        self.held, self.way = plain_object, way

    def construct(self, x: Tensor) -> Tensor:
        if self.way == "getattr":
            return x * getattr(self.held, "".join(["le", "vel"]))
        if self.way == "vars":
            return x * sum(vars(self.held).values())
        if self.way == "absent":
            try:
                return x * self.held.extra
            except AttributeError:
                return x * self.held.level
        match self.held:
            case Level(level=value):
                return x * value
        return x


class Level:
    def __init__(self) -> None:
        self.level = 1.0


@pytest.mark.parametrize("way", ["getattr", "vars", "match"])
def test_an_attribute_is_seen_however_it_is_read(way: str) -> None:
    level = Level()
    cell = Seeing(level, way)
    assert cell(X).asnumpy().tolist() == [1.0, 2.0]
    level.level = 5.0
    assert cell(X).asnumpy().tolist() == [5.0, 10.0]


def test_an_attribute_that_was_absent_is_seen() -> None:
    level = Level()
    cell = Seeing(level, "absent")
    assert cell(X).asnumpy().tolist() == [1.0, 2.0]
    level.extra = 7.0
    assert cell(X).asnumpy().tolist() == [7.0, 14.0]


def test_an_iterator_that_is_read_is_no_part_of_a_graph() -> None:
    trainer = Trainer()
    ahead = ms.jit(lambda x: x + next(trainer.rows))
    assert [ahead(X).asnumpy().tolist() for _ in range(3)] == [[1.0, 2.0], [2.0, 3.0], [3.0, 4.0]]


class Jitted:
    """A Trainer whose step is one graph."""

    def __init__(self) -> None:
        self.scale, self.losses, self.epoch = 2.0, [], 0

    @ms.jit
    def step(self, x: Tensor) -> Tensor:
        return x * self.scale

    def __call__(self) -> list[float]:
        self.epoch += 1
        self.losses.append(self.step(X))
        return self.losses[-1].asnumpy().tolist()


def test_an_object_that_a_jitted_method_belongs_to_may_change(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("TORCHSPORE_LOG", "graph")
    trainer = Jitted()
    assert [trainer() for _ in range(4)] == [[2.0, 4.0]] * 4
    assert captures(capfd) == 1
    trainer.scale = 3.0
    assert trainer() == [3.0, 6.0]
    assert captures(capfd) == 1
    assert Jitted()() == [2.0, 4.0]


def test_the_options_of_a_program_may_count_steps(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("TORCHSPORE_LOG", "graph")
    options = argparse.Namespace(scale=2.0, step=0)
    gradient = ops.GradOperation()(lambda x: (x * x).sum() * options.scale)
    for options.step in range(3):
        assert gradient(X).asnumpy().tolist() == [4.0, 8.0]
    assert captures(capfd) == 1
    options.scale = 3.0
    assert gradient(X).asnumpy().tolist() == [6.0, 12.0]


class Weighted(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.first = ms.Parameter(Tensor([2.0, 3.0]), name="first")
        self.second = ms.Parameter(Tensor([5.0, 7.0]), name="second")

    def construct(self, x: Tensor) -> Tensor:
        return (self.first * self.second * x).sum()


def test_a_transform_that_is_created_for_each_step_reuses_its_graphs(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("TORCHSPORE_LOG", "graph")
    net = Weighted()
    for _ in range(3):
        assert ops.GradOperation(get_by_list=True)(net, net.trainable_params())(X)[0].asnumpy().tolist() == [5.0, 14.0]
        assert ms.value_and_grad(net, None, net.trainable_params()[1:])(X)[1][0].asnumpy().tolist() == [2.0, 6.0]
    assert captures(capfd) == 2
    assert ms.value_and_grad(net, None, net.first)(X)[1].asnumpy().tolist() == [5.0, 14.0]
    assert ms.grad(net)(X).asnumpy().tolist() == [10.0, 21.0]
    assert ops.GradOperation(get_all=True)(net)(X)[0].asnumpy().tolist() == [10.0, 21.0]
    assert ops.GradOperation(get_by_list=True, sens_param=True)(net, [net.first])(X, Tensor(2.0))[0].asnumpy().tolist() == [10.0, 28.0]


class Cached(nn.Cell):
    """Python keeps the value of `table` in the Cell, past `setattr`; `k` is a number that a trace may make an input."""

    def __init__(self) -> None:
        super().__init__()
        self.k = 1

    @functools.cached_property
    def table(self) -> list[int]:
        return [self.k, self.k + 1]

    @functools.cached_property
    def row(self) -> Tensor:
        return X * self.k

    def construct(self, x: Tensor) -> Tensor:
        self.k = self.k + 1
        return x * self.k + sum(self.table) + self.row


def test_a_cached_property_that_a_trace_fills_is_filled_by_the_call() -> None:
    def ran(mode: int) -> list[object]:
        ms.set_context(mode=mode)
        net, results = Cached(), []
        for _ in range(5):
            results += [net(X).asnumpy().tolist(), net.k, net.table, net.row.asnumpy().tolist()]
        return results

    assert ran(ms.GRAPH_MODE) == ran(ms.PYNATIVE_MODE)


def test_what_a_call_puts_into_the_dict_of_its_cell_is_there_after_it() -> None:
    class Keeps(nn.Cell):
        def construct(self, x: Tensor, k: int) -> Tensor:
            if "seen" not in self.__dict__:
                self.__dict__["seen"] = k
            return x * self.seen

    net = Keeps()
    assert [net(X, k).asnumpy().tolist() for k in (2, 3, 4)] == [[2.0, 4.0]] * 3
    assert net.seen == 2


class Alike:
    """Equal by name, whatever else it holds; counts how often it is asked."""

    def __init__(self, name: str, k: float) -> None:
        self.name, self.k, self.asked = name, k, 0

    def __eq__(self, other: object) -> bool:
        self.asked += 1
        return isinstance(other, Alike) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


class Reads(nn.Cell):
    def construct(self, x: Tensor, tensors: object) -> Tensor:
        return x * tensors.k  # type: ignore[attr-defined]


def test_what_a_class_calls_equal_is_not_called_for_arguments(mode: int) -> None:
    net, a, b = Reads(), Alike("a", 2.0), Alike("a", 5.0)
    assert [net(X, argument).asnumpy().tolist() for argument in (a, b, a, b)] == [[2.0, 4.0], [5.0, 10.0]] * 2
    assert a.asked + b.asked == 0
    with_it = X * (2.0 if a == b else 1.0)
    assert with_it.asnumpy().tolist() == [2.0, 4.0] and a.asked == 1


def test_what_a_program_attached_to_an_argument_counts(mode: int) -> None:
    net, tensors = Reads(), [Tensor([1.0]), Tensor([1.0])]
    tensors[0].k, tensors[1].k = 2.0, 5.0
    values = [net(X, tensor).asnumpy().tolist() for tensor in tensors]
    for k in ([7.0], [8.0], 9.0):
        tensors[0].k = k
        values.append(net(X, tensors[0]).asnumpy().tolist())
    assert values == [[2.0, 4.0], [5.0, 10.0], [7.0, 14.0], [8.0, 16.0], [9.0, 18.0]]
