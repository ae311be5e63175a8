"""What a graph can't hold runs as PyNative, and says so; everything else runs as a graph. Both give PyNative's numbers over three calls."""
from __future__ import annotations

import cProfile
import pstats
import random
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops

import torchspore
from torchspore.context import effects
from torchspore.engine.tensors import tensor as engine
from torchspore.engine.torch_internals.torch_private import FakeTensor
from torchspore.graph import dispatch
from torchspore.graph.specialization import graph_table

COUNT = 5


class Base(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        ms.set_seed(3)
        self.dense = nn.Dense(4, 4)
        self.count, self.factor, self.calls, self.said = 0, 2.0, [], ""
        self.hidden = Tensor(np.zeros((2, 4), np.float32))
        self.table = np.arange(4, dtype=np.float32)


class BranchOnTensor(Base):
    def construct(self, x):
        return x * 2 if self.dense(x).sum() > 0 else x * 3


class AsNumpy(Base):
    def construct(self, x):
        return x * float(self.dense(x).asnumpy().sum())


class NumpyRandom(Base):
    def construct(self, x):
        return self.dense(x) * float(np.random.rand())


class PythonRandom(Base):
    def construct(self, x):
        return self.dense(x) * random.random()


ONES = np.ones(4, np.float32)


class FreshArray(Base):
    def construct(self, x):
        return self.dense(x) + Tensor(ONES * 3)          # of an array whose contents may change


class Prints(Base):
    def construct(self, x):
        print("construct runs")
        return self.dense(x)


class WritesAttribute(Base):
    def construct(self, x):
        self.count += 1
        return self.dense(x) * self.count


class WritesText(Base):
    def construct(self, x):
        self.said += "."
        return self.dense(x) * 2


class Appends(Base):
    def construct(self, x):
        self.calls.append(1)
        return self.dense(x) * len(self.calls)


class WritesGlobal(Base):
    def construct(self, x):
        global COUNT
        COUNT = COUNT + 1
        return self.dense(x) * COUNT


class Raises(Base):
    def construct(self, x):
        if self.factor > 1:
            raise KeyError("stop")
        return self.dense(x)


class CatchesOwn(Base):
    def construct(self, x):
        try:
            raise KeyError("stop")
        except KeyError:
            return self.dense(x)


class KeepsTensor(Base):
    def construct(self, x):
        self.hidden = self.hidden + self.dense(x)
        return self.hidden * 1


class ChangesParameter(Base):
    def construct(self, x):
        self.dense.weight = self.dense.weight + 1
        return self.dense(x)


class HeldArray(Base):
    def construct(self, x):
        return self.dense(x) + Tensor(self.table)


class HeldArrayCast(Base):
    """The array is float32 and the Tensor made of it is not: a later run makes it in the dtype that was asked for."""

    def construct(self, x):
        return self.dense(x) + Tensor(self.table, ms.float64)


class Literals(Base):
    def construct(self, x):
        return self.dense(x) * Tensor(self.factor) + Tensor([1.0, 2, 3, 4])


class Drops(Base):
    def construct(self, x):
        ops.dropout(x, 0.5)
        return ops.dropout(self.dense(x), 0.5)


class Normalises(Base):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(4)
        self.set_train()

    def construct(self, x):
        return self.norm(self.dense(x))


class WritesInput(Base):
    def construct(self, x):
        x[0] = self.dense(x)[1]
        return x + 1


class MakesCells(Base):
    """The zoo's clip_grad makes its ClipByNorm in the call."""

    def construct(self, x):
        class Halves(nn.Cell):
            def __init__(self, by):
                self.early = 0.5
                super().__init__()
                self.by, self.inner = by, nn.SequentialCell(nn.ReLU(), nn.Softmax(-1))

            def construct(self, y):
                return self.inner(y) * self.by * self.early

        return Halves(self.factor)(nn.ClipByNorm()(self.dense(x), Tensor([0.5])))


class GivesItselfACell(Base):
    def construct(self, x):
        self.extra = nn.ReLU()
        return self.extra(self.dense(x))


class Nested(Base):
    def construct(self, x, scale=1):
        return {"y": self.dense(x) * scale, "same": [x, None, 3]}["y"]


REFUSED = {
    AsNumpy: "reads the values of a Tensor on the host",
    NumpyRandom: "draws random numbers from Python or NumPy",
    PythonRandom: "draws random numbers from Python or NumPy",
    FreshArray: "makes a Tensor of a NumPy array that is computed in the call",
    Prints: "calls print",
    WritesText: "writes the attribute 'said' of WritesText",
    GivesItselfACell: "changes a list, a dict or an object in place",
    Appends: "changes a list, a dict or an object in place",
    WritesGlobal: "assigns the variable 'COUNT'",
}
HELD = [
    WritesAttribute, BranchOnTensor, CatchesOwn, KeepsTensor, ChangesParameter, HeldArray, HeldArrayCast,
    Literals, Drops, Normalises, WritesInput, MakesCells, Nested]


def three_calls(kind: type[Base], mode: int) -> tuple[list[Any], Base]:
    global COUNT
    COUNT = 5
    ms.set_context(mode=mode)
    net = kind()
    random.seed(1)
    ms.set_seed(5)
    seen = []
    for call in range(3):
        x = Tensor(np.random.RandomState(call).randn(2, 4).astype(np.float32))
        y = net(x)
        seen.append([t.asnumpy().copy() for t in (y, x, net.hidden, *net.get_parameters())] + [net.count, len(net.calls), COUNT])
    return seen, net


@pytest.fixture(autouse=True)
def pynative_after():
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


@pytest.mark.parametrize("kind", [*REFUSED, *HELD])
def test_both_modes_are_equal_over_three_calls(kind: type[Base]) -> None:
    eager, _ = three_calls(kind, ms.PYNATIVE_MODE)
    graphed, net = three_calls(kind, ms.GRAPH_MODE)
    for eager_value, other in zip(eager, graphed):
        for a, b in zip(eager_value, other):
            np.testing.assert_array_equal(a, b)
    assert len(dispatch.graphs(net)) == (kind in HELD)


@pytest.mark.parametrize("kind", REFUSED)
def test_a_refusal_names_the_line(kind: type[Base]) -> None:
    three_calls(kind, ms.GRAPH_MODE)
    lines = [line for line in effects.notes()["calls that run in parts"] if f" {kind.__name__} " in line]
    assert any(REFUSED[kind] in line and f"{__file__}:" in line for line in lines)


def test_an_exception_comes_out_as_in_pynative() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    net = Raises()
    for _ in range(2):
        with pytest.raises(KeyError, match="stop"):
            net(Tensor(np.ones((2, 4), np.float32)))
    net.factor = 0.5
    assert net(Tensor(np.ones((2, 4), np.float32))).shape == (2, 4)


def test_capture_alone_touches_nothing() -> None:
    net, x = KeepsTensor(), Tensor(np.ones((2, 4), np.float32))
    before = [p.asnumpy().copy() for p in net.get_parameters()]
    state, numpy_state, python_state = ms.ops.rand(1), np.random.get_state()[2], random.getstate()
    del state
    net.compile(x)
    assert all(np.array_equal(a, p.asnumpy()) for a, p in zip(before, net.get_parameters()))
    assert not net.hidden.asnumpy().any()
    assert np.random.get_state()[2] == numpy_state and random.getstate() == python_state
    assert len(dispatch.graphs(net)) == 1


def test_a_number_that_the_program_assigns_is_an_input_of_one_graph() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    net, x = Literals(), Tensor(np.ones((2, 4), np.float32))
    first = net(x).asnumpy()
    net.factor = 3.0
    assert not np.array_equal(first, net(x).asnumpy())
    net.factor = 2.0
    assert np.array_equal(first, net(x).asnumpy())
    assert len(dispatch.graphs(net)) == 1


def test_a_new_tensor_in_an_attribute_is_used_without_a_new_capture() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    net, x = KeepsTensor(), Tensor(np.ones((2, 4), np.float32))
    net(x)
    net.hidden = Tensor(np.full((2, 4), 7, np.float32))
    np.testing.assert_allclose(net(x).asnumpy() - net.dense(x).asnumpy(), 7, atol=1e-5)
    assert len(dispatch.graphs(net)) == 1


def test_one_graph_per_shape_and_dtype() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    net = Nested()
    for shape in ((2, 4), (3, 4), (2, 4)):
        net(Tensor(np.ones(shape, np.float32)))
    net(Tensor(np.ones((2, 4), np.float32)), 2)
    assert len(dispatch.graphs(net)) == 3


def test_switching_modes_on_a_live_cell_gives_equal_numbers() -> None:
    net, x = Normalises(), Tensor(np.random.RandomState(0).randn(2, 4).astype(np.float32))
    net.set_train(False)
    results = []
    for mode in (0, 1, 0, 1, 1, 0):
        ms.set_context(mode=mode)
        results.append(net(x).asnumpy())
    assert all(np.array_equal(results[0], r) for r in results)


def test_a_graph_can_be_printed() -> None:
    net = Nested()
    net.compile(Tensor(np.ones((2, 4), np.float32)))
    text = str(torchspore.graphs(net)[0])
    assert "float32[2, 4] = input" in text and "aten.linear" in text and text.splitlines()[-1].startswith("return")




def test_copies_drop_their_graphs() -> None:
    import copy
    import pickle

    net = Nested()
    net.compile(Tensor(np.ones((2, 4), np.float32)))
    assert not dispatch.graphs(copy.deepcopy(net)) and not dispatch.graphs(pickle.loads(pickle.dumps(net)))
    assert [p.name for p in copy.deepcopy(net).get_parameters()] == [p.name for p in net.get_parameters()]


def test_what_a_kernel_refuses_names_the_operator_and_the_line() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    net = nn.Embedding(5, 3)
    net(Tensor([1, 2]))
    with pytest.raises(IndexError, match=r"test_capture\.py:\d+: gather\(input_params: Float32\[5, 3\]"):
        net(Tensor([1, 9]))
    assert net(Tensor([3, 4])).shape == (2, 3)


class Tiles(Base):
    def construct(self, x, count):
        return ops.tile(self.dense(x), (count, 1))


def test_what_keeps_changing_is_not_captured_for_ever_and_reported_once() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    net, x = Tiles(), Tensor(np.ones((2, 4), np.float32))
    with pytest.warns(UserWarning, match=r"test_capture\.py:\d+: Tiles is called with something that keeps changing") as message:
        for count in range(1, 21):
            assert net(x, count).shape == (2 * count, 4)
    assert len(message) == 1
    assert len(dispatch.graphs(net)) == graph_table.WASTED
    net(x, 1)
    assert len(dispatch.graphs(net)) == graph_table.WASTED


def test_a_graph_that_served_again_lets_new_ones_be_captured() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    net = Nested()
    for _ in range(2):
        for rows in range(1, 13):
            net(Tensor(np.ones((rows, 4), np.float32)))
            net(Tensor(np.ones((rows, 4), np.float32)))
    assert len(dispatch.graphs(net)) == 6          # one for each of five lengths, then one for all that follow


class Settings:
    def __init__(self) -> None:
        self.factor = 2.0


class Configured(Base):
    def __init__(self) -> None:
        super().__init__()
        self.settings, self.scales = Settings(), [1.0, 2.0]

    def construct(self, x):
        return x * self.settings.factor * self.scales[1]


def test_a_change_inside_a_list_or_an_object_is_seen() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    net, x = Configured(), Tensor([1.0])
    assert float(net(x)) == 4.0
    net.settings.factor = 3.0
    assert float(net(x)) == 6.0
    net.scales[1] = 5.0
    assert float(net(x)) == 15.0
    assert len(dispatch.graphs(net)) == 3


class Remembers(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.kept = Tensor([10.0])

    def construct(self, x):
        return x - self.kept


def test_an_argument_that_is_also_an_attribute_is_not_taken_for_it_later() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    net = Remembers()
    assert float(net(net.kept)) == 0.0
    assert float(net(Tensor([1.0]))) == -9.0
    assert float(net(net.kept)) == 0.0


class Dense(Base):
    def construct(self, x):
        return self.dense(x)


def test_a_profiled_program_is_captured_too() -> None:
    profile = cProfile.Profile()
    profile.enable()
    ms.set_context(mode=ms.GRAPH_MODE)
    net = Dense()
    net(Tensor(np.ones((2, 4), np.float32)))
    sorted([3, 1, 2])
    profile.disable()
    assert len(dispatch.graphs(net)) == 1
    assert any("sorted" in str(function) for function in pstats.Stats(profile).stats), "the profile ended with the capture"


@pytest.mark.parametrize("file", ["graph/capture/capture.py", "engine/torch_internals/static_trace.py"])
def test_a_defect_of_the_capture_is_reported_as_such(file: str, capfd: pytest.CaptureFixture[str]) -> None:
    names = {"raw": engine.raw, "FakeTensor": FakeTensor}
    text = "def length(x):\n    return object().nothing if isinstance(raw(x), FakeTensor) else x.shape[0]"
    exec(compile(text, f"/x/torchspore/{file}", "exec"), names)
    ms.set_context(mode=ms.GRAPH_MODE)

    class Shape(Base):
        def construct(self, x):
            return self.dense(x) * names["length"](x)

    assert Shape()(Tensor(np.ones((2, 4), np.float32))).shape == (2, 4)
    notes = effects.notes()["calls that run in parts"]
    assert any(f"raises AttributeError in torchspore's own {file}:" in note and "'nothing'" in note for note in notes)
    assert f"a defect of torchspore ended the capture of a graph in {file}:" in capfd.readouterr().err


def test_names_of_cells_may_hold_dots_and_slashes() -> None:
    class Odd(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            setattr(self, "a.b/c", nn.Dense(2, 2))

        def construct(self, x):
            return getattr(self, "a.b/c")(x) + x

    net, x = Odd(), Tensor(np.ones((2, 2), np.float32))
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        net(x)
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)
    (graph,) = dispatch.graphs(net)
    scopes = {node.meta["scope"] for node in graph.module.graph.nodes if "scope" in node.meta}
    assert scopes <= {"", "Default", "Default/a.b/c-Dense"}
