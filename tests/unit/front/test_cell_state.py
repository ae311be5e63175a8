"""State of Cells in both modes: attributes that change, Parameters that are assigned, the order of it."""
from __future__ import annotations

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn, ops


class Scaled(nn.Cell):
    def __init__(self):
        super().__init__()
        self.factor, self.shift, self.count = 2, Tensor([10.0]), 0

    def construct(self, x):
        self.count = self.count + 1
        return x * self.factor + self.shift + self.count


def test_a_changed_attribute_is_used_by_the_next_call(mode: int) -> None:
    net, x = Scaled(), Tensor([1.0])
    assert net(x).asnumpy().tolist() == [13]
    net.factor = 5
    assert net(x).asnumpy().tolist() == [17]
    net.shift = Tensor([0.0])
    assert net(x).asnumpy().tolist() == [8]
    assert net.count == 3


def test_training_is_false_at_birth_and_set_everywhere() -> None:
    net = nn.SequentialCell(nn.Dense(2, 2), nn.Dropout(p=0.5))
    assert not net.training and not net[1].training
    assert net.set_train() is net and net[1].training
    net.set_train(False)
    assert not net[0].training


def test_dropout_follows_training(mode: int) -> None:
    net, x = nn.Dropout(p=0.5), Tensor(np.ones(1000, np.float32))
    assert float(net(x).sum()) == 1000
    net.set_train()
    assert 300 < int((net(x) == 0).sum()) < 700
    net.set_train(False)
    assert float(net(x).sum()) == 1000


class Adds(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = Parameter(Tensor([1.0]), name="w")

    def construct(self, x):
        self.w = self.w + x
        return self.w * 10


def test_assigning_an_attribute_updates_the_parameter(mode: int) -> None:
    net, attribute_value = Adds(), None
    attribute_value = net.w
    assert [float(net(Tensor([2.0]))) for _ in range(3)] == [30, 50, 70]
    assert net.w is attribute_value and isinstance(net.w, Parameter) and float(net.w) == 7 and net.w.name == "w"


class Ordered(nn.Cell):
    """Reads, assigns and reads again; `depend` asks for what Python's order gives anyway."""

    def __init__(self):
        super().__init__()
        self.w = Parameter(Tensor([1.0]), name="w")

    def construct(self, x):
        before = self.w * 1
        done = ops.assign(self.w, x)
        between = ops.depend(self.w, done) * 1
        ops.assign_add(self.w, x)
        ops.assign_sub(self.w, Tensor([1.0]))
        return before, between, self.w * 1


def test_assignments_keep_the_order_of_the_program(mode: int) -> None:
    net = Ordered()
    assert [float(t) for t in net(Tensor([4.0]))] == [1, 4, 7]
    assert [float(t) for t in net(Tensor([5.0]))] == [7, 5, 9]
    assert float(net.w) == 9


class KeepsInput(nn.Cell):
    def construct(self, x):
        x[0] = 7.0
        return x.sum()


def test_a_write_to_an_input_is_seen_at_once_and_by_the_caller(mode: int) -> None:
    x = Tensor([1.0, 2.0])
    assert float(KeepsInput()(x)) == 9
    assert x.asnumpy().tolist() == [7, 2]


class Hooked(nn.Cell):
    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(2, 2, weight_init="ones", bias_init="zeros")

    def construct(self, x):
        return self.dense(x)


def test_hooks_see_what_passes_and_may_replace_it() -> None:
    net, seen = Hooked(), []
    handles = [
        net.dense.register_forward_pre_hook(lambda cell, inputs: seen.append(("pre", inputs[0].asnumpy().tolist()))),
        net.dense.register_forward_hook(lambda cell, inputs, output: seen.append(("after", output.asnumpy().tolist()))),
        net.dense.register_backward_pre_hook(lambda cell, gradients: seen.append(("pre backward", gradients[0].asnumpy().tolist()))),
        net.dense.register_backward_hook(
            lambda cell, inner, outer: seen.append(("backward", inner[0].asnumpy().tolist(), outer[0].asnumpy().tolist()))
        ),
    ]
    gradient = ms.grad(net)(Tensor([[1.0, 2.0]]))
    assert seen == [
        ("pre", [[1, 2]]), ("after", [[3, 3]]), ("pre backward", [[1, 1]]), ("backward", [[2, 2]], [[1, 1]]),
    ]
    assert gradient.asnumpy().tolist() == [[2, 2]]
    for handle in handles:
        handle.remove()
        handle.remove()
    net(Tensor([[1.0, 2.0]]))
    assert len(seen) == 4


def test_hooks_that_give_something_back_replace_it(mode: int) -> None:
    net = Hooked()
    net.dense.register_forward_pre_hook(lambda cell, inputs: (inputs[0] * 2,))
    net.dense.register_forward_hook(lambda cell, inputs, output: output + 1)
    net.dense.register_backward_hook(lambda cell, inner, outer: (inner[0] * 100,))
    assert net(Tensor([[1.0, 2.0]])).asnumpy().tolist() == [[7, 7]]
    assert ms.grad(net)(Tensor([[1.0, 2.0]])).asnumpy().tolist() == [[400, 400]]


class Half(nn.Cell):
    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(2, 2).to_float(ms.float16)
        self.last = nn.Dense(2, 2)

    def construct(self, x):
        return self.dense(x)


def test_to_float_computes_in_half_and_does_not_cast_back(mode: int) -> None:
    net = Half()
    out = net(Tensor(np.ones((1, 2), np.float32)))
    assert out.dtype == ms.float16 and net.dense.weight.dtype == ms.float32
    with pytest.raises(TypeError):
        net.last(out)


HELD = {                        # measured on 2.10, in both modes: dtypes that a Parameter of each dtype can take
    ms.float16: (ms.float16, ms.int32, ms.int64, ms.bool_, ms.int8),
    ms.float32: (ms.float16, ms.float32, ms.int32, ms.int64, ms.bool_, ms.int8),
    ms.float64: (ms.float16, ms.float32, ms.float64, ms.int32, ms.int64, ms.bool_, ms.int8),
    ms.int32: (ms.int32, ms.bool_, ms.int8),
    ms.int64: (ms.int32, ms.int64, ms.bool_, ms.int8),
    ms.int8: (ms.bool_, ms.int8),
}
WRITES = {
    "assign": ops.assign, "assign_add": ops.assign_add, "AssignSub": ops.AssignSub(),
    "scatter_update": lambda stored, value: ops.scatter_update(stored, Tensor([0, 1]), value),
    "ScatterNdAdd": lambda stored, value: ops.ScatterNdAdd()(stored, Tensor([[0], [1]]), value),
    "ScatterNonAliasingAdd": lambda stored, value: ops.ScatterNonAliasingAdd()(stored, Tensor([[0], [1]]), value),
}


@pytest.mark.parametrize("name", WRITES)
def test_a_write_does_not_narrow_its_value(name: str, mode: int) -> None:
    for stored, taken in HELD.items():
        for dtype in HELD:
            if name == "AssignSub" and dtype == ms.bool_:
                continue
            parameter, value = Parameter(Tensor([1, 2], stored)), Tensor([1, 1], dtype)
            if dtype in taken:
                assert WRITES[name](parameter, value).dtype == stored
            else:
                with pytest.raises(TypeError, match=r"Data type conversion is not supported for a 'Parameter'.*"):
                    WRITES[name](parameter, value)
                assert parameter.asnumpy().tolist() == [1, 2]


class Takes(nn.Cell):
    def __init__(self, dtype):
        super().__init__()
        self.stored = Parameter(Tensor([1, 2], dtype))

    def construct(self, x):
        self.stored = x
        return self.stored + 0


def test_an_assigned_attribute_narrows_its_value_in_pynative_alone(mode: int) -> None:
    """As in 2.10: Graph mode refuses what PyNative narrows."""
    assert Takes(ms.float32)(Tensor([3, 4], ms.int32)).asnumpy().tolist() == [3, 4]
    if mode == ms.PYNATIVE_MODE:
        assert Takes(ms.int32)(Tensor([3.0, 4.0])).asnumpy().tolist() == [3, 4]
        return
    with pytest.raises(TypeError, match="Int32 cannot take Float32 without narrowing it"):
        Takes(ms.int32)(Tensor([3.0, 4.0]))
    with pytest.raises(TypeError, match="Float32 cannot take Float64"):
        Takes(ms.float32)(Tensor([3.0, 4.0], ms.float64))


def test_a_number_that_an_integer_cannot_hold() -> None:
    with pytest.raises(TypeError, match="Int32 cannot take a float"):
        ops.assign_add(Parameter(Tensor([1, 2], ms.int32)), 1.5)


def test_no_graph_names_a_parameter(mode: int) -> None:
    class Renames(Takes):
        def construct(self, x):
            self.stored.name = "other"
            return x

    net = Renames(ms.float32)
    if mode == ms.GRAPH_MODE:
        with pytest.raises(ValueError, match="Do not support to set attribute for a parameter"):
            net(Tensor([1.0]))
        assert net.stored.name == "stored"
    else:
        net(Tensor([1.0]))
        assert net.stored.name == "other"


def test_a_listed_weight_that_is_not_trained(mode: int) -> None:
    """As in 2.10: its gradient is 0 in PyNative, in graphs it is the derivative."""
    net = Takes(ms.float32)
    net.construct = lambda x: x * net.stored
    net.stored.requires_grad = False
    gradient = ms.grad(net, None, [net.stored])
    in_graph = ms.jit(lambda x: gradient(x)[0])
    x = Tensor([4.0, 5.0])
    assert gradient(x)[0].asnumpy().tolist() == ([4, 5] if mode == ms.GRAPH_MODE else [0, 0])
    assert in_graph(x).asnumpy().tolist() == [4, 5]


class Freezes(Takes):
    """Sets the flag of its Parameter while it runs: by a statement, a method or setattr."""

    def __init__(self, way: str) -> None:
        super().__init__(ms.float32)
        self.way = way

    def construct(self, x):
        if self.way == "statement":
            self.stored.requires_grad = False
        elif self.way == "method":
            self.stored.requires_grad_(False)
        else:
            setattr(self.stored, "requires_grad", False)
        return x * self.stored


@pytest.mark.parametrize("way", ["statement", "method", "setattr"])
def test_no_graph_changes_what_is_trained(mode: int, way: str) -> None:
    net, x = Freezes(way), Tensor([4.0, 5.0])
    function = ms.jit(lambda x: net(x)) if mode == ms.PYNATIVE_MODE else net
    refusal = "'requires_grad_' is not supported" if way == "method" else "Do not support to set attribute for a parameter"
    with pytest.raises(RuntimeError if way == "method" else ValueError, match=refusal):
        ms.grad(function, None, [net.stored])(x)
    assert net.stored.requires_grad
    if mode == ms.PYNATIVE_MODE:
        assert ms.grad(net, None, [net.stored])(x)[0].asnumpy().tolist() == [0, 0] and not net.stored.requires_grad
