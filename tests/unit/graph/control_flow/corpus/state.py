"""Lists, tuples, dicts, attributes and Parameters as the state of branches and loops; methods; Cells."""
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

W = Tensor(np.array([0.5, -1.0, 2.0], np.float32))


def list_in_branch(x):
    parts = [x, x * 2]
    if x.sum() > 0:
        parts = [parts[1], parts[0] * W]
    return parts[0] - parts[1]


def list_written_in_branch(x):
    parts = [x, x * 2]
    if x.sum() > 0:
        parts[0] = parts[0] * W
    return parts[0] + parts[1]


def list_grown_by_both(x):
    parts = []
    if x.sum() > 0:
        parts.append(x * W)
    else:
        parts.append(x + 1)
    return parts[0] * len(parts)


def tuple_in_loop(x):
    pair = (x, x * 0)
    i = Tensor(0)
    while i < 3:
        pair = (pair[0] * 0.5, pair[1] + pair[0])
        i = i + 1
    return pair[0] + pair[1]


def list_in_loop(x):
    state = [x, W]
    i = Tensor(0)
    while i < 3:
        state[0] = state[0] * 0.5 + state[1]
        state[1] = state[1] * 0.9
        i = i + 1
    return state[0] * state[1]


def dict_in_loop(x):
    state = {"at": x, "count": 0}
    while state["at"].sum() > 1:
        state["at"] = state["at"] / 2
        state["count"] = state["count"] + 1
    return state["at"] * W, state["count"]


def dict_in_branch(x):
    results = {"a": x}
    if x.sum() > 0:
        results["b"] = x * W
    else:
        results["b"] = x - W
    return results["a"] * results["b"]


class Plain:
    def __init__(self, value):
        self.value, self.steps = value, 0


def object_in_loop(x):
    box = Plain(x)
    while box.value.sum() > 1:
        box.value = box.value * 0.5
        box.steps += 1
    return box.value, box.steps


def unpacked(x):
    (a, b), *rest = (x, W), x * 2, x * 3
    if x.sum() > 0:
        a, *rest = rest[0], rest[1], b
    return a + b + rest[0]


class Base(nn.Cell):
    def __init__(self):
        super().__init__()
        self.weight = Parameter(Tensor(np.array([1.0, 0.5, -0.5], np.float32)), name="weight")
        self.inner = Inner()
        self.scale = 2.0
        self.kept = Tensor(np.zeros(3, np.float32))

    def helper(self, x):
        if x.sum() > 1:
            return x * self.weight
        return x + self.weight


class Inner(nn.Cell):
    def __init__(self):
        super().__init__()
        self.weight = Parameter(Tensor(np.array([0.1, 0.2, 0.3], np.float32)), name="inner_weight")

    def construct(self, x):
        if x.max() > 1:
            x = x * self.weight
        return x + self.weight


class Method(Base):
    def construct(self, x):
        return self.helper(x) + self.helper(-x)


class InnerCell(Base):
    def construct(self, x):
        y = self.inner(x)
        if y.sum() > 0:
            y = self.inner(y * self.scale)
        return y * self.weight


class LoopOverCells(Base):
    def __init__(self):
        super().__init__()
        self.blocks = nn.CellList([Inner(), Inner(), Inner()])

    def construct(self, x):
        for cell in self.blocks:
            x = cell(x)
            if x.sum() > 6:
                break
        return x * self.weight


class WeightInLoop(Base):
    def construct(self, x):
        i = Tensor(0)
        while i < 3:
            x = ops.tanh(x * self.weight)
            i = i + 1
        return x


class KeepsTensor(Base):
    def construct(self, x):
        if x.sum() > 0:
            self.kept = self.kept * 0.5 + 1
        return x * self.weight + self.kept


class KeepsInLoop(Base):
    def construct(self, x):
        i = Tensor(0)
        while i < 2:
            self.kept = self.kept + 1
            i = i + 1
        return x * self.weight + self.kept


class Super(Base):
    def helper(self, x):
        if x.sum() > 0:
            return super().helper(x) * 2
        return super().helper(x)

    def construct(self, x):
        return self.helper(x)


class Private(Base):
    def __init__(self):
        super().__init__()
        self.__hidden = 3.0

    def construct(self, x):
        if x.sum() > 0:
            x = x * self.__hidden
        return x * self.weight


class CustomBprop(Base):
    """A gradient of its own inside a branch."""

    def __init__(self):
        super().__init__()
        self.doubled = Doubled()

    def construct(self, x):
        if x.sum() > 0:
            return self.doubled(x) * self.weight
        return x * self.weight


class Doubled(nn.Cell):
    def construct(self, x):
        return x * 2

    def bprop(self, x, out, dout):
        return (dout * 100,)


FUNCTIONS = [
    list_in_branch, list_written_in_branch, list_grown_by_both, tuple_in_loop, list_in_loop, dict_in_loop, dict_in_branch, object_in_loop,
    unpacked,
]
CELLS = [Method, InnerCell, LoopOverCells, WeightInLoop, KeepsTensor, KeepsInLoop, Super, Private, CustomBprop]
