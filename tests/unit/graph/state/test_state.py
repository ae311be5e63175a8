"""State that a graph depends on beside what `programs.py` writes down: arguments, hooks, `construct`, lengths, explain."""
from __future__ import annotations

import collections
import contextlib
import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn, ops

from torchspore.context import effects
from torchspore.graph import dispatch


@pytest.fixture(autouse=True)
def _graph_mode() -> Any:
    ms.set_context(mode=ms.GRAPH_MODE)
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE, jit_config={"jit_level": "O0"})


def x() -> Tensor:
    return Tensor(np.array([1.0, 2.0], np.float32))


def first(value: Any) -> float:
    return float(value.asnumpy().ravel()[0])


# ---- arguments

class Plain:
    def __init__(self) -> None:
        self.width: Any = 2.0


class Slotted:
    __slots__ = ("width",)

    def __init__(self) -> None:
        self.width: Any = 2.0


@dataclass(frozen=True)
class Frozen:
    width: Any = 2.0


@pytest.mark.parametrize("kind", [Plain, Slotted])
def test_an_object_among_the_arguments_is_looked_into(kind: Callable[[], Any]) -> None:
    scaled = ms.jit(lambda a, options: a * options.width)
    options = kind()
    assert [first(scaled(x(), options)) for _ in range(2)] == [2.0, 2.0]
    options.width = 5.0
    assert first(scaled(x(), options)) == 5.0
    options.width = 2.0
    assert first(scaled(x(), options)) == 2.0


def test_equal_frozen_dataclasses_share_a_graph() -> None:
    scaled = ms.jit(lambda a, options: a * options.width)
    assert [first(scaled(x(), Frozen(width))) for width in (2.0, 3.0, 2.0, 3.0)] == [2.0, 3.0, 2.0, 3.0]
    assert len(dispatch.graphs(scaled)) == 2


def test_a_tensor_in_an_argument_may_be_another_one() -> None:
    scaled = ms.jit(lambda a, options: a * options.width)
    options = Plain()
    for value in (2.0, 3.0, 4.0):
        options.width = Tensor(value, ms.float32)
        assert first(scaled(x(), options)) == value


@pytest.mark.parametrize("make", [lambda: iter([2.0, 3.0, 4.0]), lambda: (n + 2.0 for n in range(3))])
def test_an_iterator_among_the_arguments_moves_on_once_a_call(make: Callable[[], Any]) -> None:
    scaled = ms.jit(lambda a, steps: a * next(steps))
    steps = make()
    assert [first(scaled(x(), steps)) for _ in range(3)] == [2.0, 3.0, 4.0]


def test_a_negative_zero_is_another_number() -> None:
    inverse = ms.jit(lambda a, k: 1.0 / (a * k))
    assert [first(inverse(x(), k)) for k in (0.0, -0.0, 0.0)] == [np.inf, -np.inf, np.inf]


# ---- Cells

class Scaled(nn.Cell):
    scale = 2.0

    def construct(self, a):
        return a * self.scale


def test_a_replaced_construct_is_called() -> None:
    class Net(nn.Cell):
        def construct(self, a):
            return a * 2

    net = Net()
    assert first(net(x())) == 2.0
    Net.construct = lambda self, a: a * 3
    assert first(net(x())) == 3.0
    net.construct = lambda a: a * 4
    assert first(net(x())) == 4.0
    del net.construct
    assert first(net(x())) == 3.0


def test_an_attribute_of_the_cell_hides_that_of_its_class() -> None:
    net = Scaled()
    assert first(net(x())) == 2.0
    net.scale = 7.0
    assert first(net(x())) == 7.0
    del net.scale
    assert first(net(x())) == 2.0


class Plainly(nn.Cell):
    """Its attributes are read and written past `setattr`, by one road in each of its children."""

    def __init__(self) -> None:
        super().__init__()
        self.width = 1.0


class ByItsDict(Plainly):
    def construct(self, a):
        return a * self.width + self.__dict__["width"] * 10

    def give(self, width: float) -> None:
        self.__dict__.update(width=width)


class ByAllOfThem(Plainly):
    def construct(self, a):
        return a * sum(v for k, v in vars(self).items() if k.startswith("wi"))

    def give(self, width: float) -> None:
        vars(self)[f"wi{width}"] = width


class ByObject(Plainly):
    def construct(self, a):
        return a * object.__getattribute__(self, "width")

    def give(self, width: float) -> None:
        object.__setattr__(self, "width", width)


class SetsByObject(Plainly):
    def __setattr__(self, name, value):
        if name == "width":
            object.__setattr__(self, name, value * 2)
        else:
            super().__setattr__(name, value)

    def construct(self, a):
        return a * self.width

    def give(self, width: float) -> None:
        self.width = width


class WritesItsDict(Plainly):
    def construct(self, a):
        self.__dict__["width"] += 1
        return a * self.width

    def give(self, width: float) -> None:
        self.width += width


class WritesByObject(Plainly):
    def construct(self, a):
        object.__setattr__(self, "width", self.width + 1)
        return a * self.width

    give = WritesItsDict.give


@pytest.mark.parametrize("kind", [ByItsDict, ByAllOfThem, ByObject, SetsByObject, WritesItsDict, WritesByObject])
def test_attributes_past_setattr_are_seen(kind: type[Any]) -> None:
    shown = []
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        net = kind()
        shown.append([])
        for width in (2.0, 2.0, 3.0, 5.0, 6.0, 7.0):
            net.give(width)
            shown[-1].append((first(net(x())), net.width))
    ms.set_context(mode=ms.PYNATIVE_MODE)
    assert shown[0] == shown[1]


def test_a_number_that_a_loop_on_a_tensor_counts() -> None:
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.count = 1

        def construct(self, a):
            i = Tensor(0)
            while i < 3:
                self.count += 1
                i = i + 1
            return a * self.count

    net = Net()
    assert [(first(net(x())), net.count) for _ in range(5)] == [(4.0, 4), (7.0, 7), (10.0, 10), (13.0, 13), (16.0, 16)]


class Recorder:
    def __init__(self) -> None:
        self.log: collections.deque[str] = collections.deque()

    def hook(self, cell: Any, inputs: Any, output: Any) -> None:
        self.log.append(type(cell).__name__)


def test_a_hook_acts_once_a_call() -> None:
    names: list[str] = []
    recorder = Recorder()
    net = nn.ReLU()
    net.register_forward_hook(lambda cell, inputs, output: names.append("forward"))
    net.register_forward_hook(recorder.hook)
    net.register_forward_pre_hook(lambda cell, inputs: names.append("pre"))
    for count in range(1, 5):
        net(x())
        assert (names, list(recorder.log)) == (["pre", "forward"] * count, ["ReLU"] * count)


def test_a_list_of_the_state_is_returned_itself() -> None:
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.items = [1.0]

        def construct(self, a):
            return a * self.items[-1], self.items

    net = Net()
    for expected in (1.0, 2.0, 3.0):
        result, items = net(x())
        assert first(result) == expected and items is net.items
        items.append(expected + 1)


def test_explain_says_what_can_not_be_watched() -> None:
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.steps = iter(range(9))

        def construct(self, a):
            return a * next(self.steps)

    net = Net()
    assert [first(net(x())) for _ in range(3)] == [0.0, 1.0, 2.0]
    note = effects.notes()["calls that run in parts"]
    assert any("Net reads 'steps', which is an iterator (range_iterator): nothing shows how far it is" in line for line in note)


# ---- many lengths

class Row(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Dense(6, 3, weight_init="ones", has_bias=False)

    def construct(self, a):
        return self.dense(a) / a.shape[0]


def test_axes_of_many_lengths_open_by_themselves() -> None:
    net = Row()
    draw = np.random.default_rng(0)
    for size in [*range(2, 60, 3), *range(2, 60)]:
        data = draw.standard_normal((size, 6)).astype(np.float32)
        expected = np.repeat(data.sum(1, keepdims=True), 3, 1) / size
        np.testing.assert_allclose(net(Tensor(data)).asnumpy(), expected, rtol=1e-4, atol=1e-5)
    assert len(dispatch.graphs(net)) <= 8


def test_captures_that_cost_more_than_they_save_come_to_an_end() -> None:
    class Unrolled(nn.Cell):
        def construct(self, a):
            factor = 0.0
            for _ in range(a.shape[0]):        # needs the number: one graph for each length
                factor += 0.5
            return a * factor

    net = Unrolled()
    for size in [*range(2, 50), *range(2, 50), *range(2, 50)]:
        with contextlib.suppress(UserWarning):
            assert first(net(ops.ones((size, 2)))) == size / 2
    assert len(dispatch.graphs(net)) < 40


def test_a_training_step_with_batches_of_any_size() -> None:
    def losses(mode: int) -> list[float]:
        ms.set_context(mode=mode)
        ms.set_seed(4)
        net = nn.SequentialCell(nn.Dense(6, 8), nn.ReLU(), nn.Dense(8, 3))
        step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.CrossEntropyLoss()), nn.Momentum(net.trainable_params(), 0.1, 0.9))
        step.set_train()
        draw = np.random.default_rng(1)
        results = []
        for size in draw.integers(1, 40, 30):
            data, labels = draw.standard_normal((size, 6)).astype(np.float32), draw.integers(0, 3, size).astype(np.int32)
            results.append(first(step(Tensor(data), Tensor(labels))))
        if mode == ms.GRAPH_MODE:
            assert len(dispatch.graphs(step)) < 10
        return results

    np.testing.assert_allclose(losses(ms.GRAPH_MODE), losses(ms.PYNATIVE_MODE), rtol=1e-4)


# ---- a graph that fails

class Base(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.p, self.q = (Parameter(np.array([1.0, 2.0], np.float32), name=name) for name in "pq")
        self.table = Parameter(np.array([[1.0, 2.0], [3.0, 4.0]], np.float32), name="table")
        self.count, self.sum = 1.0, Tensor(np.zeros(1, np.float32))


class Index(Base):
    def construct(self, a, i):
        ops.assign(self.p, self.p + a)
        y = ops.gather(self.table, i, 0)
        ops.assign(self.q, self.q + 1)
        return y


class Attributes(Base):
    def construct(self, a, i):
        self.sum = self.sum + 1
        self.count = self.count + 1
        ops.assign(self.p, self.p * 2)
        y = self.table[i]
        ops.assign(self.q, self.q + y[0])
        return y * self.count


class Asserts(Base):
    def construct(self, a, i):
        ops.assign(self.p, self.p + a)
        assert i.sum() < 3
        ops.assign(self.q, self.q + a)
        return a


class Raises(Base):
    def construct(self, a, i):
        ops.assign_add(self.p, a)
        if i.sum() > 3:
            raise ValueError("too much")
        ops.assign_add(self.q, a)
        return a


class Draws(Base):
    def __init__(self) -> None:
        super().__init__()
        self.dropout = nn.Dropout(p=0.5)
        self.set_train()

    def construct(self, a, i):
        y = self.dropout(ops.ones((64,)))
        ops.assign_add(self.p, a)
        return y.sum() + ops.gather(self.table, i, 0).sum()


class Norms(Base):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(2)
        self.set_train()

    def construct(self, a, i):
        return self.norm(ops.stack([a, a + 1])).sum() + ops.gather(self.table, i, 0).sum()


class InPlace(Base):
    def construct(self, a, i):
        ops.assign_add(self.table, ops.gather(self.table, i, 0))
        return a


class Views(Base):
    def construct(self, a, i):
        self.table[0] = a
        return ops.gather(self.table, i, 0)


class Divides(Base):
    def construct(self, a, i):
        ops.assign_add(self.p, a)
        y = ops.floor_div(Tensor(np.array([6, 7], np.int32)), 6 - i)
        ops.assign_add(self.q, a)
        return y


class Trained(Base):
    def construct(self, a, i):
        ops.assign_add(self.q, a)
        return (ops.gather(self.table, i, 0) * self.p).sum()


class Gradients(Base):
    def construct(self, a, i):
        gradient = ms.grad(lambda b: (b * self.p).sum(), 0, [self.p])(a)
        ops.assign_sub(self.p, gradient[1][0])
        y = ops.gather(self.table, i, 0)
        ops.assign_add(self.q, y[0])
        return y


def _in_training(net: Base) -> nn.Cell:
    step = nn.TrainOneStepCell(net, nn.Momentum(net.trainable_params(), 0.1, 0.9))
    step.set_train()
    return step


NETS: list[Callable[[], nn.Cell]] = [
    Index, Attributes, Asserts, Raises, Draws, Norms, InPlace, Views, Divides, Gradients, lambda: _in_training(Trained()),
    lambda: _in_training(Norms()),
]


def _calls(make: Callable[[], nn.Cell], mode: int, level: str) -> list[Any]:
    ms.set_context(mode=mode, jit_config={"jit_level": level})
    ms.set_seed(5)
    net = make()
    cell = getattr(net, "network", net)
    shown = []
    for number, indices in enumerate([[0, 1], [1, 0], [0, 6], [1, 1], [9, 0], [0, 0]]):
        try:
            result: Any = net(Tensor(np.array([number + 1.0, 2.0], np.float32)), Tensor(np.array(indices, np.int32)))
            result = np.round(result.asnumpy(), 4).tolist()
        except (IndexError, ValueError, AssertionError, ZeroDivisionError, RuntimeError) as error:
            result = type(error).__name__
        values = {p.name: np.round(p.asnumpy(), 3).tolist() for p in net.get_parameters()}
        shown.append((result, values, cell.count, cell.sum.asnumpy().tolist()))
    return shown


@pytest.mark.parametrize("level", ["O0", pytest.param("O1", marks=pytest.mark.slow)])
@pytest.mark.parametrize("make", NETS, ids=lambda make: getattr(make, "__name__", "training"))
def test_a_call_that_fails_leaves_what_pynative_leaves(make: Callable[[], nn.Cell], level: str) -> None:
    assert _calls(make, ms.GRAPH_MODE, level) == _calls(make, ms.PYNATIVE_MODE, level)


def test_a_graph_that_fails_prints_once() -> None:
    class Net(Base):
        def construct(self, a, i):
            print("begins")
            ops.assign_add(self.p, a)
            return ops.gather(self.table, i, 0)

    ms.set_context(jit_syntax_level=ms.COMPATIBLE)
    try:
        net, printed = Net(), io.StringIO()
        net(x(), Tensor([0, 1], ms.int32))
        with contextlib.redirect_stdout(printed):
            net(x(), Tensor([1, 1], ms.int32))
            with pytest.raises(IndexError):
                net(x(), Tensor([9, 1], ms.int32))
    finally:
        ms.set_context(jit_syntax_level=ms.LAX)
    assert printed.getvalue().count("begins") == 2
    assert net.p.asnumpy().tolist() == [4.0, 8.0]


def test_a_program_that_names_getattribute_leaves_cells_as_they_are() -> None:
    """The hook that Cell has during a trace is not a part of the program's state, although the program names it."""
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Dense(2, 2)

        def construct(self, x: Any) -> Any:
            return self.layer(x) if self.__getattribute__("training") else x

    assert Net()(x()).asnumpy().tolist() == [1.0, 2.0]
    assert "__getattribute__" not in vars(nn.Cell)
