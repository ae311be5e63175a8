"""Programs subclass what the front end offers and name their own methods and attributes as they like: no name of ours stands in their way.

What MindSpore 2.10's class has not, and our insides call, begins and ends with an underscore (as in Python's own `enum`).
"""
from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
import pytest
from mindspore import Tensor, nn, ops
from mindspore.common.initializer import Initializer, initializer
from mindspore.experimental import optim as experimental
from mindspore.train import Metric

from torchspore.public_names import listing

MODULES = (
    "mindspore.nn", "mindspore.nn.wrap", "mindspore.train", "mindspore.experimental.optim", "mindspore.experimental.optim.lr_scheduler",
    "mindspore.common.initializer", "mindspore.dataset", "mindspore.mint.nn", "mindspore.parallel.nn",
)

OLDER = frozenset({                    # of MindSpore 1.x, 2.2 to 2.6 and their optimizers, losses and containers: programs call them
    "amp_strategy", "assignadd", "current_phase", "decay_flags", "dynamic_decay_flags", "extend", "global_step_increase_tensor",
    "grad_centralization_flags", "has_bprop", "hyper_map", "hyper_map_reverse", "insert", "is_top_cell", "iter", "map_", "map_reverse",
    "optim_filter", "param_rank", "set_param_ps", "weight_decay",
})
EXPERIMENTAL = frozenset({"add_param_group", "get_last_lr", "in_cooldown", "step"})    # of classes whose namesakes alone were recorded


ELSEWHERE = frozenset({"Tensor", "Parameter", "CSRTensor"})


def classes() -> Iterator[tuple[str, type, frozenset[str]]]:
    """The classes that programs may subclass, with what 2.10's have."""
    for module in MODULES:
        home = importlib.import_module(module)
        for name in dir(home):
            cls = getattr(home, name)
            if not inspect.isclass(cls) or name in ELSEWHERE or (module == "mindspore.dataset" and not name.endswith("Sampler")):
                continue
            if name in listing.mindspore_classes():
                yield f"{module}.{name}", cls, listing.mindspore_classes()[name]


def names_of_ours(cls: type) -> Iterator[str]:
    """The names that our own classes give `cls`, but for parts of layers, which give way to a program's."""
    for base in cls.__mro__:
        if base.__module__.startswith("torchspore."):
            yield from (name for name, value in vars(base).items() if not getattr(value, "gives_way", False))


def is_ours(name: str) -> bool:
    return name.startswith("_") and name.endswith("_")


def test_no_class_has_a_name_of_its_own_that_a_program_may_give_away():
    checked = list(classes())
    assert len(checked) > 200
    in_the_way = {
        full: names for full, cls, theirs in checked
        if (names := sorted({n for n in names_of_ours(cls) if n not in theirs and n not in OLDER | EXPERIMENTAL and not is_ours(n)}))
    }
    assert not in_the_way, in_the_way


def test_no_cell_is_born_with_a_name_of_its_own():
    names = {*vars(nn.Cell()), *vars(nn.SequentialCell(nn.ReLU())), *vars(nn.Optimizer(0.1, nn.Dense(2, 2).trainable_params()))}
    assert not {name for name in names if name in {"_hooks", "_flags", "_lower", "_bprop", "_jit_config", "groups", "_shares"}}


@pytest.fixture(params=["GRAPH_MODE", "PYNATIVE_MODE"])
def mode(request: pytest.FixtureRequest) -> Iterator[None]:
    ms.set_context(mode=getattr(ms, request.param))
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


@pytest.mark.usefixtures("mode")
class TestPrograms:
    def test_a_cell_has_separate_methods(self):
        class Net(nn.Cell):
            def __init__(self):
                super().__init__()
                self.layer = nn.Dense(3, 1, weight_init="ones", bias_init="zeros")
                self._load("weights")
                self._register(1)

            def _load(self, path):
                self.loaded = path

            def _register(self, number):
                self.number = number

            def _owner(self):
                return 2

            def _changed(self):
                return 3

            def _forward(self, x):
                return self.layer(x) * self._owner()

            def _run(self, x):
                return self._forward(x) + self._changed()

            def construct(self, x):
                return self._run(x)

        net = Net().set_grad()
        x = Tensor(np.ones((2, 3), np.float32))
        for _ in range(2):
            assert net(x).asnumpy().tolist() == [[9.0], [9.0]]
            grads = ops.grad(net, None, net.trainable_params())(x)
        assert [g.asnumpy().tolist() for g in grads] == [[[4.0, 4.0, 4.0]], [4.0]] and net.loaded == "weights"

    def test_a_layer_has_cells_under_names_that_ours_used_inside(self):
        class Layer(nn.Conv2d):
            def __init__(self):
                super().__init__(3, 4, 3)
                self.pool, self.transposed, self.padded = nn.MaxPool2d(2), nn.ReLU(), nn.BatchNorm2d(4)
                self.axes, self.kind = 7, "mine"

            def construct(self, x):
                return self.pool(self.padded(self.transposed(super().construct(x))))

        assert Layer()(Tensor(np.ones((1, 3, 8, 8), np.float32))).shape == (1, 4, 7, 7)

    def test_an_optimizer_has_separate_states_and_steps(self):
        class CustomOptimizer(nn.Optimizer):
            def __init__(self, params, rate):
                super().__init__(rate, params)
                self.moments = self.parameters.clone(prefix="moments", init="zeros")
                self.updates, self.groups, self.share, self.counter = 3, [1], 0.5, 0
                self.apply = ops.ApplyMomentum()

            def _update(self, gradients):
                return gradients

            def construct(self, gradients):
                rate = self.get_lr()
                for index, gradient in enumerate(self._update(gradients)):
                    self.apply(self.parameters[index], self.moments[index], rate, gradient, self.share)
                return True

        net = nn.Dense(3, 1, weight_init="ones", bias_init="zeros")
        optimizer = CustomOptimizer(net.trainable_params(), 0.1)
        both = ops.value_and_grad(lambda x: net(x).sum(), None, optimizer.parameters)
        x = Tensor(np.ones((2, 3), np.float32))
        for expected in (6.0, 4.4):
            loss, grads = both(x)
            assert float(loss) == pytest.approx(expected)
            optimizer(grads)
        assert optimizer.moments[1].asnumpy().tolist() == [3.0]

    def test_a_step_accumulates_as_it_likes(self):
        class Step(nn.TrainOneStepCell):
            def __init__(self, network, optimizer, sens=1.0):
                super().__init__(network, optimizer, sens)
                self.accumulation, self.accumulation_steps = False, 4

            def _begin(self, loss):
                return ops.fill(loss.dtype, loss.shape, self.sens)

            def construct(self, *inputs):
                loss = self.network(*inputs)
                grads = self.grad(self.network, self.weights)(*inputs, self._begin(loss))
                return ops.depend(loss, self.optimizer(self.grad_reducer(grads)))

        net = nn.Dense(3, 1, weight_init="ones", bias_init="zeros")
        step = Step(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.1)).set_train()
        x, y = Tensor(np.ones((2, 3), np.float32)), Tensor(np.ones((2, 1), np.float32))
        assert [round(float(step(x, y)), 4) for _ in range(2)] == [4.0, 0.16]

    def test_a_loss_reduces_as_its_flags_say(self):
        class Loss(nn.LossBase):
            def __init__(self):
                super().__init__("mean")
                self.average, self.reduction = False, "none"

            def construct(self, a, b):
                return self.get_loss(a * b)

        x = Tensor(np.full((2, 3), 2, np.float32))
        assert float(Loss()(x, x)) == 24.0


def test_a_sampler_keeps_indices_and_a_length():
    class Backwards(ds.Sampler):
        def __init__(self, count):
            super().__init__(3)
            self.indices, self.length, self.open, self.reading = list(range(count))[::-1], count, 1, 2

        def __iter__(self):
            yield from self.indices

    source = ds.NumpySlicesDataset(np.arange(5), column_names=["a"], sampler=Backwards(5))
    assert [int(a) for (a,) in source.create_tuple_iterator(output_numpy=True)] == [4, 3, 2]
    assert source.get_dataset_size() == 3


def test_an_initializer_keeps_values():
    class CustomInitializer(Initializer):
        def __init__(self):
            super().__init__()
            self.values, self.tensor = 3, 2

        def _initialize(self, arr):
            arr[:] = self.values

    assert initializer(CustomInitializer(), [2]).init_data().asnumpy().tolist() == [3.0, 3.0]


def test_a_metric_takes_as_it_likes():
    class CustomMetric(Metric):
        def __init__(self):
            super().__init__()
            self._need, self._take = 1, 2
            self.clear()

        def clear(self):
            self.total = 0.0

        def update(self, *inputs):
            self.total += float(self._convert_data(inputs[0]).sum()) * self._take

        def eval(self):
            return self.total + self._need

    metric = CustomMetric()
    metric.update(Tensor([1.0, 2.0]))
    assert metric.eval() == 7.0


def test_schedules_of_optimizers_keep_rates():
    class Halving(experimental.lr_scheduler.LRScheduler):
        def __init__(self, optimizer):
            self._rates, self._at, self._set = 1, 2, 3
            super().__init__(optimizer)

        def get_lr(self):
            return [group["lr"] * 0.5 for group in self.optimizer.param_groups]

    optimizer = experimental.Adam(nn.Dense(2, 2).trainable_params(), lr=0.1)
    Halving(optimizer).step()
    assert float(optimizer.param_groups[0]["lr"]) == pytest.approx(0.025)
