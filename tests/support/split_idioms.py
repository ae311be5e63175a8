"""Idioms of MindSpore programs, each a function of the strategies of its products: it gives arrays that are the same on any devices."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, ParameterTuple, Tensor, nn, ops
from mindspore.ops import composite as C
from mindspore.ops import functional as F
from mindspore.ops import operations as P

Cut = tuple[int, int] | None
"""Into how many parts rows and columns are cut; None for a program without strategies."""
ROWS, WIDE = 8, 12


def floats(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


X, Y = floats(0, ROWS, 6), floats(1, ROWS, 4)


class Net(nn.Cell):
    """Two products, cut by columns and by rows, and what lies between them."""

    def __init__(self, cut: Cut, between: Any = None) -> None:
        super().__init__()
        self.one = Parameter(Tensor(floats(2, 6, WIDE) * 0.3), name="one")
        self.other = Parameter(Tensor(floats(3, WIDE, 4) * 0.3), name="other")
        self.first, self.second = P.MatMul(), P.MatMul()
        if cut is not None:
            data, model = cut
            self.first.shard(((data, 1), (1, model)))
            self.second.shard(((data, model), (model, 1)))
        self.between = between if between is not None else ops.tanh

    def construct(self, x: Any) -> Any:
        return self.second(self.between(self.first(x, self.one)), self.other)


class Loss(nn.Cell):
    """A mean of squares."""

    def __init__(self, net: nn.Cell) -> None:
        super().__init__(auto_prefix=False)
        self.net = net

    def construct(self, x: Any, y: Any) -> Any:
        return ops.mean((self.net(x) - y) ** 2)


def weights(net: nn.Cell) -> list[np.ndarray]:
    return [p.asnumpy() for p in net.get_parameters()]


def stepped(step: Any, net: nn.Cell, x: np.ndarray = X, y: np.ndarray = Y, steps: int = 3) -> list[np.ndarray]:
    """The losses of a few steps, and the Parameters after them."""
    results = [step(Tensor(x), Tensor(y)) for _ in range(steps)]
    losses = [output[0] if isinstance(output, tuple) else output for output in results]
    return [np.array([float(loss.asnumpy()) for loss in losses]), *weights(net)]


def jvp(cut: Cut) -> list[np.ndarray]:
    net = Net(cut)
    out, tangent = ms.jvp(net, Tensor(X), Tensor(floats(4, ROWS, 6)))
    return [out.asnumpy(), tangent.asnumpy()]


def jacobian(cut: Cut) -> list[np.ndarray]:
    net = Net(cut)
    return [ms.jacfwd(lambda x: ops.sum(net(x), 0))(Tensor(X)).asnumpy(), ms.jacrev(lambda x: ops.sum(net(x), 0))(Tensor(X)).asnumpy()]


def vjp(cut: Cut) -> list[np.ndarray]:
    net = Net(cut)
    out, pull = ms.vjp(net, Tensor(X))
    result = pull(Tensor(Y))
    return [out.asnumpy(), (result[0] if isinstance(result, tuple) else result).asnumpy()]


class Penalty(nn.Cell):
    """A loss with the length of its own gradient."""

    def __init__(self, net: nn.Cell) -> None:
        super().__init__(auto_prefix=False)
        self.net = net
        self.gradient = ms.grad(lambda x: ops.sum(net(x)))

    def construct(self, x: Any, y: Any) -> Any:
        slope = self.gradient(x)
        return ops.mean((self.net(x) - y) ** 2) + ops.mean(ops.sqrt(ops.sum(slope * slope, 1) + 1e-3))


def second_derivatives(cut: Cut) -> list[np.ndarray]:
    net = Net(cut)
    step = nn.TrainOneStepCell(Penalty(net), nn.Momentum(net.trainable_params(), 0.1, 0.9))
    other = Tensor(floats(5, ROWS, 6))
    twice = ms.grad(lambda x: ops.sum(ms.grad(lambda z: ops.sum(net(z) ** 3))(x) * other))
    return [*stepped(step, net), twice(Tensor(X)).asnumpy()]


def vmap(cut: Cut) -> list[np.ndarray]:
    net = Net(None)
    product = P.MatMul()
    if cut is not None:
        product.shard(((cut[0], 1), (1, 1)))

    class Mapped(nn.Cell):
        def construct(self, x: Any) -> Any:
            rows = ops.vmap(lambda row: ops.tanh(ops.matmul(row, net.one)).sum() * row)(x)
            return product(rows, net.one)

    return [Mapped()(Tensor(X)).asnumpy()]


class Clipped(nn.Cell):
    """Rounds; its gradient is that of a clipped identity."""

    def construct(self, x: Any) -> Any:
        return ops.round(x * 4) / 4

    def bprop(self, x: Any, out: Any, dout: Any) -> Any:
        return (ops.select(ops.abs(x) < 1, dout, ops.zeros_like(dout)),)


def own_bprop(cut: Cut) -> list[np.ndarray]:
    net = Net(cut, Clipped())
    return stepped(nn.TrainOneStepCell(Loss(net), nn.Adam(net.trainable_params(), 1e-2)), net)


def hooks(cut: Cut) -> list[np.ndarray]:
    net = Net(cut, ops.InsertGradientOf(lambda dout: dout * 0.5))
    handle = net.one.register_hook(lambda gradient: gradient * 3)
    step = nn.TrainOneStepCell(Loss(net), nn.SGD(net.trainable_params(), 0.1))
    result = stepped(step, net)
    handle.remove()
    return result


class Hooked(nn.Cell):
    """A part with a hook of its own."""

    def construct(self, x: Any) -> Any:
        return ops.tanh(x) * 2


def cell_hooks(cut: Cut) -> list[np.ndarray]:
    between = Hooked()
    between.register_backward_hook(lambda cell, grads_in, out: (grads_in[0] * 2,))
    net = Net(cut, between)
    return stepped(nn.TrainOneStepCell(Loss(net), nn.SGD(net.trainable_params(), 0.1)), net)


def recomputed(cut: Cut) -> list[np.ndarray]:
    between = nn.SequentialCell([nn.Tanh(), nn.Sigmoid()])
    between.recompute()
    net = Net(cut, between)
    return stepped(nn.TrainOneStepCell(Loss(net), nn.Adam(net.trainable_params(), 1e-2)), net)


def half(cut: Cut) -> list[np.ndarray]:
    net = Net(cut).to_float(ms.float16)
    loss = nn.WithLossCell(net, nn.MSELoss())
    manager = nn.DynamicLossScaleUpdateCell(2.0 ** 8, 2, 2)
    return stepped(nn.TrainOneStepWithLossScaleCell(loss, nn.Momentum(net.trainable_params(), 0.1, 0.9), manager), net)


def brain(cut: Cut) -> list[np.ndarray]:
    net = ms.amp.auto_mixed_precision(Net(cut), "O2", ms.bfloat16)
    return stepped(nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.Momentum(net.trainable_params(), 0.1, 0.9)), net)


class OldStep(nn.Cell):
    """The step that programs of 1.x write for themselves."""

    def __init__(self, network: nn.Cell, optimizer: Any, sens: float = 4.0) -> None:
        super().__init__(auto_prefix=False)
        self.network, self.optimizer, self.sens = network, optimizer, sens
        self.network.set_grad()
        self.weights = ParameterTuple(network.trainable_params())
        self.grad = C.GradOperation(get_by_list=True, sens_param=True)
        mode = ms.get_auto_parallel_context("parallel_mode")
        self.reducer: Any = F.identity
        if mode in (ms.ParallelMode.DATA_PARALLEL, ms.ParallelMode.HYBRID_PARALLEL):
            self.reducer = nn.DistributedGradReducer(self.weights, ms.get_auto_parallel_context("gradients_mean"))

    def construct(self, x: Any, y: Any) -> Any:
        loss = self.network(x, y)
        sens = P.Fill()(P.DType()(loss), P.Shape()(loss), self.sens)
        gradients = self.reducer(self.grad(self.network, self.weights)(x, y, sens))
        return F.depend(loss, self.optimizer(gradients))


def own_step(cut: Cut) -> list[np.ndarray]:
    net = Net(cut)
    return stepped(OldStep(Loss(net), nn.Momentum(net.trainable_params(), 0.05, 0.9)), net)


class Accumulating(nn.Cell):
    """Gradients of two calls are summed in Parameters before the optimizer takes them."""

    def __init__(self, network: nn.Cell, optimizer: Any) -> None:
        super().__init__(auto_prefix=False)
        self.network, self.optimizer = network, optimizer
        self.sums = optimizer.parameters.clone(prefix="sums", init="zeros")
        self.count = Parameter(Tensor(0, ms.int32), name="count", requires_grad=False)
        self.gradients = ms.value_and_grad(network, None, optimizer.parameters)
        mode = ms.get_auto_parallel_context("parallel_mode")
        self.reducer: Any = F.identity
        if mode == ms.ParallelMode.DATA_PARALLEL:
            self.reducer = nn.DistributedGradReducer(optimizer.parameters, ms.get_auto_parallel_context("gradients_mean"))
        self.map = C.HyperMap()

    def construct(self, x: Any, y: Any) -> Any:
        loss, result = self.gradients(x, y)
        self.map(F.partial(ops.assign_add), self.sums, result)
        ops.assign_add(self.count, 1)
        if self.count % 2 == 0:
            self.optimizer(self.reducer(self.sums))
            self.map(F.partial(_cleared), self.sums)
        return loss


def _cleared(value: Any) -> Any:
    return ops.assign(value, ops.zeros_like(value))


def accumulated(cut: Cut) -> list[np.ndarray]:
    net = Net(cut)
    return stepped(Accumulating(Loss(net), nn.SGD(net.trainable_params(), 0.1)), net, steps=4)


class Averaging(nn.Cell):
    """A step that keeps a running mean of all Parameters."""

    def __init__(self, step: nn.Cell, parameters: Any) -> None:
        super().__init__(auto_prefix=False)
        self.step, self.own = step, ParameterTuple(parameters)
        self.means = self.own.clone(prefix="ema")

    def construct(self, x: Any, y: Any) -> Any:
        loss = self.step(x, y)
        for mean, one in zip(self.means, self.own):
            ops.assign(mean, mean * 0.9 + one * 0.1)
        return loss


def averaged(cut: Cut) -> list[np.ndarray]:
    net = Net(cut)
    step = Averaging(nn.TrainOneStepCell(Loss(net), nn.Adam(net.trainable_params(), 1e-2)), net.trainable_params())
    return [*stepped(step, net), *(mean.asnumpy() for mean in step.means)]


class Looping(nn.Cell):
    """A loop that a Tensor ends, and one over rows."""

    def __init__(self, net: nn.Cell) -> None:
        super().__init__(auto_prefix=False)
        self.net = net

    def construct(self, x: Any, y: Any) -> Any:
        out, count = self.net(x), Tensor(0)
        while ops.sum(out * out) > 2 and count < 5:
            out = out * 0.7
            count = count + 1
        total = ops.mean((out - y) ** 2)
        for row in out:
            total = total + row.sum() * 0.01
        return total


def loops(cut: Cut) -> list[np.ndarray]:
    net = Net(cut)
    return stepped(nn.TrainOneStepCell(Looping(net), nn.SGD(net.trainable_params(), 0.1)), net)


class Slices(nn.Cell):
    """Parameters that are written by slices and by rows."""

    def __init__(self, net: nn.Cell) -> None:
        super().__init__(auto_prefix=False)
        self.net = net
        self.memory = Parameter(Tensor(np.zeros((ROWS, 4), np.float32)), name="memory", requires_grad=False)
        self.update = P.ScatterNdUpdate()

    def construct(self, x: Any, y: Any) -> Any:
        out = self.net(x)
        self.memory[2:4] = ops.stop_gradient(out[2:4])
        self.memory[:, 1] = self.memory[:, 1] + 1
        self.update(self.memory, Tensor([[0], [5]]), ops.stop_gradient(out[:2]))
        self.net.one[0] = self.net.one[0] * 0.5
        return ops.mean((out + self.memory - y) ** 2)


def written_slices(cut: Cut) -> list[np.ndarray]:
    net = Net(cut)
    layer = Slices(net)
    arrays = [layer(Tensor(X), Tensor(Y)).asnumpy() for _ in range(2)]
    return [np.array(arrays), layer.memory.asnumpy(), net.one.asnumpy()]


def slices_in_a_row(cut: Cut) -> list[np.ndarray]:
    """A part of a value, laid out and written as one row: its strides are not what the layout's stand-in had."""
    class Labels(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.slice, self.reshape = P.StridedSlice(), P.Reshape()
            if cut is not None:
                self.slice.shard(((cut[0], 1),))

        def construct(self, x: Any) -> Any:
            return self.reshape(self.slice(x, (0, 1), (ROWS, 6), (1, 1)), (-1,))

    return [Labels()(Tensor(X)).asnumpy()]


class Printing(nn.Cell):
    """Prints on the way."""

    def __init__(self, net: nn.Cell) -> None:
        super().__init__(auto_prefix=False)
        self.net, self.print = net, P.Print()

    def construct(self, x: Any, y: Any) -> Any:
        out = self.net(x)
        self.print("out", ops.sum(out), ops.shape(out))
        return ops.mean((out - y) ** 2)


def printed(cut: Cut) -> list[np.ndarray]:
    net = Net(cut)
    return stepped(nn.TrainOneStepCell(Printing(net), nn.SGD(net.trainable_params(), 0.1)), net)


class Clipping(nn.Cell):
    """Gradients clipped by their common length, two groups, a falling rate."""

    def __init__(self, network: nn.Cell, optimizer: Any) -> None:
        super().__init__(auto_prefix=False)
        self.gradients, self.optimizer = ms.value_and_grad(network, None, optimizer.parameters), optimizer
        mode = ms.get_auto_parallel_context("parallel_mode")
        self.reducer: Any = F.identity
        if mode == ms.ParallelMode.DATA_PARALLEL:
            self.reducer = nn.DistributedGradReducer(optimizer.parameters, ms.get_auto_parallel_context("gradients_mean"))

    def construct(self, x: Any, y: Any) -> Any:
        loss, result = self.gradients(x, y)
        self.optimizer(ops.clip_by_global_norm(self.reducer(result), 0.1))
        return loss


def clipped(cut: Cut) -> list[np.ndarray]:
    net = Net(cut)
    rate = nn.piecewise_constant_lr([2, 4], [0.1, 0.05])
    groups = [{"params": [net.one], "weight_decay": 0.01}, {"params": [net.other], "lr": 0.2}, {"order_params": net.trainable_params()}]
    return stepped(Clipping(Loss(net), nn.Momentum(groups, rate, 0.9)), net)


def recurrent(cut: Cut) -> list[np.ndarray]:
    class Sentences(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.parts = nn.CellList([
                nn.LSTM(6, 5, num_layers=2, bidirectional=True, batch_first=True), nn.GRU(10, 5, batch_first=True),
                nn.RNN(5, 4, batch_first=True),
            ])
            self.last, self.net = nn.LSTMCell(4, 6), Net(cut)

        def construct(self, x: Any) -> Any:
            for cell in self.parts:
                x, _ = cell(x)
            h = ops.zeros((x.shape[0], 6), ms.float32)
            h, c = self.last(x[:, 0], (h, h))
            return self.net(self.last(x[:, 1], (h, c))[0])

    net = Sentences()
    for seed, parameter in enumerate(net.get_parameters()):
        parameter.set_data(Tensor(floats(100 + seed, *parameter.shape) * 0.4))
    return stepped(nn.TrainOneStepCell(Loss(net), nn.Momentum(net.trainable_params(), 0.1, 0.9)), net, floats(9, ROWS, 5, 6))


IDIOMS: dict[str, Callable[[Cut], list[np.ndarray]]] = {
    idiom.__name__: idiom for idiom in (
        jvp, jacobian, vjp, second_derivatives, vmap, own_bprop, hooks, cell_hooks, recomputed, half, brain, own_step, accumulated,
        averaged, loops, written_slices, slices_in_a_row, printed, clipped, recurrent,
    )
}
TRAINED = ("own_bprop", "hooks", "cell_hooks", "recomputed", "half", "brain", "own_step", "accumulated", "averaged", "printed", "clipped",
           "second_derivatives", "recurrent")
"""Those that train: gradients of parts of a batch have a mean."""
