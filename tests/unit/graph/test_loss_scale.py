"""Training with a loss scale: in GRAPH_MODE the step with its branch on overflow is one graph, and its numbers are PyNative's."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, amp, nn, ops
from mindspore import dataset as ds
from mindspore.ops import composite
from mindspore.train import Callback, DynamicLossScaleManager, FixedLossScaleManager, Model

from torchspore.graph import dispatch

LABELS = np.ones((4, 3), np.float32)
BATCHES = [np.full((4, 5), 1e30 if at == 3 else 0.1 * (at + 1), np.float32) for at in range(6)]
"""The fourth one overflows."""


@pytest.fixture(autouse=True)
def pynative_after() -> Iterator[None]:
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


def started() -> nn.Cell:
    random = np.random.default_rng(3)
    net = nn.SequentialCell(nn.Dense(5, 6, activation="relu"), nn.Dense(6, 3))
    for weight in net.trainable_params():
        weight.set_data(Tensor(random.standard_normal(weight.shape).astype(np.float32)))
    return net


class Zoo(nn.TrainOneStepWithLossScaleCell):
    """A step as published models write it: from the parts of its base, with gradients that are clipped."""

    def construct(self, x: Any, y: Any) -> Any:
        loss = self.network(x, y)
        scale = self.scale_sense
        status, scale = self.start_overflow_check(loss, scale)
        grads = self.grad(self.network, self.weights)(x, y, composite.ones_like(loss) * ops.cast(scale, ops.dtype(loss)))
        grads = self.hyper_map(ops.partial(nn.wrap.loss_scale._grad_scale, scale), grads)
        grads = self.grad_reducer(composite.clip_by_global_norm(grads, 1.0))
        cond = self.get_overflow_status(status, grads)
        overflow = self.process_loss_scale(cond)
        if overflow:
            succeeded = False
        else:
            succeeded = self.optimizer(grads)
        return ops.depend((loss, cond, scale), succeeded)


def wrapped(kind: Any, update: Callable[[], Any]) -> Callable[[Any, Any], Any]:
    return lambda net, optimizer: kind(nn.WithLossCell(net, nn.MSELoss()), optimizer, update()).set_train()


def functional(net: Any, optimizer: Any) -> Any:
    """A step of functions alone, under `jit`."""
    scaler = amp.DynamicLossScaler(1024.0, 2, 2)
    gradient = ops.value_and_grad(lambda x, y: scaler.scale(nn.MSELoss()(net(x), y)), None, optimizer.parameters)

    @ms.jit
    def step(x: Any, y: Any) -> Any:
        loss, grads = gradient(x, y)
        finite = amp.all_finite(grads)
        if finite:
            loss = ops.depend(loss, optimizer(scaler.unscale(grads)))
        scaler.adjust(finite)
        return scaler.unscale(loss), finite, scaler.scale_value

    return step


STEPS = {
    "dynamic": wrapped(nn.TrainOneStepWithLossScaleCell, lambda: nn.DynamicLossScaleUpdateCell(1024.0, 2, 2)),
    "fixed": wrapped(nn.TrainOneStepWithLossScaleCell, lambda: nn.FixedLossScaleUpdateCell(1024.0)),
    "a Tensor": wrapped(nn.TrainOneStepWithLossScaleCell, lambda: Tensor(1024.0, ms.float32)),
    "zoo": wrapped(Zoo, lambda: nn.DynamicLossScaleUpdateCell(1024.0, 2, 2)),
    "functional": functional,
}
OPTIMIZERS = {
    "Momentum": lambda p: nn.Momentum(p, [0.1, 0.05, 0.02], 0.9),
    "Adam": lambda p: nn.Adam(p, nn.ExponentialDecayLR(0.01, 0.9, 2), weight_decay=0.01),
    "Lamb": lambda p: nn.Lamb(p, 0.01),
}


def trained(kind: str, optimizer: str, mode: int) -> tuple[list[np.ndarray], Any]:
    """What the steps give, all state after them, and the step."""
    ms.set_context(mode=mode)
    net = started()
    updater = OPTIMIZERS[optimizer](net.trainable_params())
    step = STEPS[kind](net, updater)
    outputs = [[np.array(tensor.asnumpy(), np.float64) for tensor in step(Tensor(x), Tensor(LABELS))] for x in BATCHES]
    state = list(updater.get_parameters()) if kind == "functional" else list(step.get_parameters())
    return [*np.array(outputs), *[p.asnumpy().copy() for p in state]], step


@pytest.mark.parametrize(("kind", "optimizer"), [*((kind, "Momentum") for kind in STEPS), ("dynamic", "Adam"), ("zoo", "Lamb")])
def test_the_step_is_one_graph_with_equal_numbers(kind: str, optimizer: str) -> None:
    plain, _ = trained(kind, optimizer, ms.PYNATIVE_MODE)
    graphed, step = trained(kind, optimizer, ms.GRAPH_MODE)
    assert len(plain) == len(graphed)
    for plain_value, other in zip(plain, graphed):
        np.testing.assert_array_equal(plain_value, other)
    (graph,) = dispatch.graphs(step)
    assert graph.runs == len(BATCHES)
    if kind != "functional":
        assert all(not dispatch.graphs(inner) for _, inner in step.cells_and_names() if inner is not step)


@pytest.mark.parametrize("manager", [
    lambda: DynamicLossScaleManager(1024.0, 2, 2), lambda: FixedLossScaleManager(1024.0), lambda: FixedLossScaleManager(1024.0, False),
], ids=["dynamic", "fixed", "fixed, overflow taken"])
@pytest.mark.parametrize("sink", [False, True], ids=["called", "sink"])
def test_model_trains_in_one_graph(manager: Callable[[], Any], sink: bool) -> None:
    class Steps(Callback):
        def step_end(self, run_context: Any) -> None:
            self.step = run_context.original_args().train_network

    results = []
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        net, seen = started(), Steps()
        scale = manager()
        own = 1.0 if scale.get_drop_overflow_update() else 1024.0
        optimizer = nn.Momentum(net.trainable_params(), 0.01, 0.9, loss_scale=own)
        data = ds.NumpySlicesDataset({"x": np.concatenate(BATCHES[:3]), "y": np.concatenate([LABELS] * 3)}, shuffle=False).batch(4)
        Model(net, nn.MSELoss(), optimizer, loss_scale_manager=scale, amp_level="O2").train(2, data, callbacks=seen, dataset_sink_mode=sink)
        results.append([p.asnumpy().copy() for p in (*net.get_parameters(), *optimizer.get_parameters())])
    for first, other in zip(*results):
        np.testing.assert_array_equal(first, other)
    assert [graph.runs for graph in dispatch.graphs(seen.step)] == [6]
