"""Graphs that are split, run by processes: each holds its part, and all give what one process gives."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest


def _trained(name: str, data: int, model: int) -> tuple[list[float], dict[str, tuple[int, ...]]]:
    import mindspore as ms
    from mindspore.communication import init
    from support.split_nets import trained

    init()
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")
    losses, step = trained(name, data, model)
    return losses, {p.name: tuple(p.shape) for p in step.get_parameters()}


def _alone(name: str) -> tuple[list[float], dict[str, tuple[int, ...]]]:
    from support.split_nets import trained

    losses, step = trained(name)
    return losses, {p.name: tuple(p.shape) for p in step.get_parameters()}


@pytest.mark.parametrize(("name", "data", "model"), [
    ("gpt", 1, 2), *(pytest.param(*case, marks=pytest.mark.slow) for case in (
        ("gpt", 2, 1), ("towers", 1, 2), ("towers", 2, 1), ("residual", 2, 1), ("lenet", 2, 1), ("gpt", 2, 2), ("gpt", 4, 1), ("gpt", 1, 4),
    )),
])
def test_processes_train_like_one_process(name: str, data: int, model: int, workers: Any) -> None:
    (alone, shapes), = workers(1, _alone, name)
    ranks = workers(data * model, _trained, name, data, model)
    for losses, _ in ranks:
        np.testing.assert_allclose(losses, alone, rtol=2e-6 if name != "residual" else 1e-5)
    cut = {key for key, shape in ranks[0][1].items() if shape != shapes[key]}
    if model == 1:
        assert not cut
    elif name == "gpt":
        assert {"table", "moments.table", "blocks.0.up.weight", "moments.blocks.0.up.weight", "blocks.1.down.weight"} <= cut
        assert "blocks.0.down.bias" not in cut


def _many_layers(optimizer: str, parts: int) -> tuple[list[float], list[np.ndarray], int]:
    import mindspore as ms
    from mindspore import Tensor, nn
    from mindspore.communication import init

    import torchspore

    init()
    ms.set_context(mode=ms.GRAPH_MODE)
    if parts > 1:
        ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")
    random = np.random.RandomState(3)
    values = [Tensor(random.randn(8, 8).astype(np.float32) * 0.3) for _ in range(12)]
    net = nn.SequentialCell([nn.Dense(8, 8, weight_init=value, bias_init="zeros", activation="tanh") for value in values])
    for layer in net:
        layer.matmul.shard(((1, 1), (parts, 1)))        # the columns are cut, the bias is not, and its gradient comes cut
    optimizer_of = {"Momentum": lambda weights: nn.Momentum(weights, 0.1, 0.9), "Adam": lambda weights: nn.Adam(weights, 0.01)}[optimizer]
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer_of(net.trainable_params())).set_train()
    x = random.rand(4, 8).astype(np.float32)
    losses = [float(step(Tensor(x), Tensor(x[::-1].copy()))) for _ in range(4)]
    (graph,) = torchspore.graphs(step)
    gathered = sum(
        "all_gather" in str(node.target) and any(inputs.op == "placeholder" for inputs in node.all_input_nodes)
        for node in graph.module.graph.nodes
    )
    return losses, [p.asnumpy() for p in step.get_parameters() if p.name.endswith("0.weight")], gathered


@pytest.mark.parametrize("optimizer", ["Momentum", pytest.param("Adam", marks=pytest.mark.slow)])
def test_an_optimizer_updates_parts_in_their_memory(optimizer: str, workers: Any) -> None:
    ((alone, weights, _),) = workers(1, _many_layers, optimizer, 1)
    for rank, (losses, parts, gathered) in enumerate(workers(2, _many_layers, optimizer, 2)):
        np.testing.assert_allclose(losses, alone, rtol=1e-6)
        assert gathered == 0
        for part, weight in zip(parts, weights, strict=True):
            np.testing.assert_allclose(part, weight[4 * rank:4 * rank + 4], rtol=1e-5, atol=1e-6)


def _at_level(level: str) -> tuple[list[float], dict[str, np.ndarray], int]:
    import mindspore as ms
    from mindspore.communication import init
    from support.split_nets import trained

    from torchspore.graph.backend import fusion

    init()
    ms.set_context(jit_config={"jit_level": level})
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")
    losses, step = trained("gpt", 1, 2)
    unsplit = {p.name: p._t.numpy().copy() for p in step.get_parameters() if "_sharded_layout" not in p.__dict__}
    return losses, unsplit, len(fusion._kernels)


@pytest.mark.slow
def test_kernels_between_exchanges_are_equal_on_all_ranks(workers: Any) -> None:
    plain, results = workers(2, _at_level, "O0"), workers(2, _at_level, "O1")
    np.testing.assert_allclose(results[0][0], plain[0][0], rtol=1e-5)
    assert results[0][0] == results[1][0] and len(results[0][1]) > 10 and results[0][2] == results[1][2] > 0
    for name, shape in results[0][1].items():
        np.testing.assert_array_equal(shape, results[1][1][name])


def _functional(folder: str, seed: int, mean: bool) -> tuple[list[float], tuple[int, ...], dict[str, Any], float, float]:
    import mindspore as ms
    from mindspore import Tensor, nn
    from mindspore.communication import get_rank, init
    from mindspore.ops import operations as P

    init()
    ms.set_context(mode=ms.GRAPH_MODE)
    ms.set_seed(seed + get_rank())
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch", gradients_mean=mean)

    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.other = (ms.Parameter(ms.ops.randn(shape), name=name) for shape, name in (((16, 32), "one"), ((32, 8), "other")))
            self.first, self.second = P.MatMul().shard(((1, 1), (1, 2))), P.MatMul().shard(((1, 2), (2, 1)))

        def construct(self, x: Any) -> Any:
            return self.second(ms.ops.relu(self.first(x, self.one)), self.other)

    net, loss = Net(), nn.CrossEntropyLoss()
    optimizer = nn.Adam(net.trainable_params(), 1e-2)
    gradients = ms.value_and_grad(lambda x, y: loss(net(x), y), None, optimizer.parameters)
    source = np.random.default_rng(0)
    x, y = Tensor(source.standard_normal((8, 16)).astype(np.float32)), Tensor(source.integers(0, 8, 8).astype(np.int32))
    losses = []
    for _ in range(3):
        value, result = gradients(x, y)
        optimizer(result)
        losses.append(float(value.asnumpy()))
    before = float(net(x).asnumpy().sum())
    ms.save_checkpoint(net, f"{folder}/{get_rank()}.ckpt")
    saved = ms.load_checkpoint(f"{folder}/{get_rank()}.ckpt")
    net.one.set_data(Tensor(np.zeros((16, 32), np.float32)))
    ms.load_param_into_net(net, saved)
    return losses, tuple(net.one.shape), {name: value.asnumpy() for name, value in saved.items()}, before, float(net(x).asnumpy().sum())


def test_functions_checkpoints_and_unequal_seeds(tmp_path: Any, workers: Any) -> None:
    losses, other = workers(2, _functional, str(tmp_path), 1, False)
    np.testing.assert_allclose(losses[0], other[0], rtol=1e-6)
    assert losses[1] == other[1] == (16, 16)                                # each holds half of the columns
    for name, shape in (("one", (16, 32)), ("other", (32, 8))):          # and saves all of them
        assert losses[2][name].shape == shape
        np.testing.assert_array_equal(losses[2][name], other[2][name])
    assert losses[3] == losses[4] == other[3] == other[4]


def _in_pynative() -> str:
    import mindspore as ms
    from mindspore import Tensor, nn
    from mindspore.communication import init

    init()
    ms.set_context(mode=ms.PYNATIVE_MODE)
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel")
    net = nn.Dense(2, 2)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params()))
    try:
        step(Tensor(np.ones((2, 2), np.float32)), Tensor(np.ones((2, 2), np.float32)))
    except RuntimeError as error:
        return str(error)
    return "it ran"


def test_pynative_mode_does_not_split(workers: Any) -> None:
    results = workers(2, _in_pynative)
    assert results[0] == results[1]
    assert results[0].startswith("PYNATIVE_MODE with parallel_mode='semi_auto_parallel': expected GRAPH_MODE: operators are split")


def _searched(strategy: str, mode: str) -> tuple[list[float], dict[str, tuple[int, ...]], dict[str, Any], str]:
    import mindspore as ms
    from mindspore import nn
    from mindspore.communication import init
    from support import split_nets

    from torchspore.graph import dispatch

    class Wide(nn.Cell):
        def __init__(self, data: int, model: int) -> None:
            super().__init__()
            self.up, self.down = nn.Dense(64, 4096), nn.Dense(4096, 16)

        def construct(self, x: Any) -> Any:
            return self.down(ms.ops.relu(self.up(x)))

    split_nets.NETS["wide"] = (Wide, lambda source: source.standard_normal((8, 64)).astype(np.float32), 8)
    if not mode:
        losses, step = split_nets.trained("wide")
        return losses, {p.name: tuple(p.shape) for p in step.get_parameters()}, {}, ""
    init()
    ms.set_auto_parallel_context(parallel_mode="auto_parallel", dataset_strategy=strategy, search_mode=mode)
    losses, step = split_nets.trained("wide")
    split = dispatch.graphs(step)[0].split
    return (
        losses,
        {p.name: tuple(p.shape) for p in step.get_parameters()},
        split.sharded_capture.strategies_by_operator(),
        split.sharded_capture.searched.describe(),
    )


@pytest.mark.parametrize("count, mode", [(2, "recursive_programming"), (2, "dynamic_programming"), (4, "recursive_programming")])
def test_processes_find_the_same_and_train_like_one_process(count: int, mode: str, workers: Any) -> None:
    (alone, shapes, _, _), = workers(1, _searched, "full_batch", "")
    results = workers(count, _searched, "full_batch", mode)
    strategies, description = results[0][2:]
    assert strategies["MatMul_up.weight"] == [[1, 1], [count, 1]]
    for losses, parts, *plan in results:
        np.testing.assert_allclose(losses, alone, rtol=2e-6)
        assert parts["up.weight"] == (4096 // count, 64) and parts["moments.down.weight"] == (16, 4096 // count)
        assert plan == [strategies, description]
    assert shapes["up.weight"] == (4096, 64)


def _convolved(devices: int) -> tuple[Any, ...]:
    import mindspore as ms
    from mindspore import Tensor, nn, ops
    from mindspore.communication import init

    if devices > 1:
        init()
        ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")
    ms.set_context(mode=ms.GRAPH_MODE)
    ms.set_seed(3)
    layer = nn.Conv2d(2, 4, 5, has_bias=True)
    pool = nn.MaxPool2d(2, 2)
    if devices > 1:
        layer.conv2d.shard(((1, 1, devices, 1), (1, 1, 1, 1)))
        pool.max_pool.shard(((1, 1, devices, 1),))

    class Step(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.layer = layer
            self.gradients = ms.value_and_grad(lambda x: (pool(ops.sin(layer(x))) ** 2).sum(), 0, layer.trainable_params())

        def construct(self, x: Any) -> Any:
            return self.gradients(x)

    x = np.random.default_rng(0).standard_normal((2, 2, 24, 6)).astype(np.float32)
    loss, (grad, weights) = Step()(Tensor(x))
    return loss.asnumpy(), grad.asnumpy(), *(weight.asnumpy() for weight in weights)


def test_borders_go_to_neighbours(workers: Any) -> None:
    alone, = workers(1, _convolved, 1)
    for rank, result in enumerate(workers(3, _convolved, 3)):
        for tensor, other in zip(alone, result, strict=True):
            if other.shape != tensor.shape:                   # the gradient of the images: each has its own part
                tensor = tensor[:, :, 8 * rank:8 * (rank + 1)]
            np.testing.assert_allclose(other, tensor, rtol=2e-5, atol=2e-5)


def _custom_sum(kind: str) -> Any:
    import mindspore as ms
    from mindspore import Parameter, Tensor, nn, ops
    from mindspore.communication import init
    from mindspore.ops import operations as P

    init()
    ms.set_context(mode=ms.GRAPH_MODE)
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")

    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.weight = Parameter(Tensor(np.ones((4, 6), np.float32)), name="weight")
            self.product = P.MatMul().shard(((1, 1), (1, 2)) if kind != "whole" else ((2, 1), (1, 1)))

        def construct(self, x: Any) -> Any:
            return self.product(x, self.weight).sum()

    class Step(nn.Cell):
        def __init__(self) -> None:
            super().__init__(auto_prefix=False)
            self.net = Net()
            self.weights = ms.ParameterTuple(self.net.trainable_params())
            self.grad, self.add_up = ops.GradOperation(get_by_list=True), P.AllReduce()

        def construct(self, x: Any) -> Any:
            (gradient,) = self.grad(self.net, self.weights)(x)
            result = ops.isfinite(gradient).astype(ms.float32).sum() if kind == "flag" else ops.square(gradient).sum()
            return self.add_up(result)

    try:
        return float(Step()(Tensor(np.ones((2, 4), np.float32))))
    except RuntimeError as error:
        return str(error)


@pytest.mark.parametrize("kind", ["cut", "flag", "whole"])
def test_sums_that_the_program_makes_itself(kind: str, workers: Any) -> None:
    """A norm that the program adds up over devices would count a cut gradient on each; a flag may be added up, and so may a whole value."""
    for result in workers(2, _custom_sum, kind):
        if kind == "cut":
            assert "test_split.py:" in result and "gradients of split Parameters" in result, result
        else:
            assert result == {"flag": 2 * 24.0, "whole": 2 * 24 * 4.0}[kind]


def _refused(stages: int, cases: tuple[str, ...], level: str) -> list[Any]:
    import mindspore as ms
    from support import failing_kernels

    ms.set_context(jit_config={"jit_level": level})
    failing_kernels.begin(2, stages)
    return failing_kernels.refused(cases, 2, stages)


@pytest.mark.parametrize(("stages", "cases", "level"), [
    (2, ("target",), "O0"), *(pytest.param(1, ("gather", "target", "divide"), level, marks=pytest.mark.slow) for level in ("O0", "O1")),
])
def test_kernels_that_refuse_values_name_the_line(stages: int, cases: tuple[str, ...], level: str, workers: Any) -> None:
    from support import failing_kernels

    *_, result = workers(2, _refused, stages, cases, level)
    assert len(result) == len(cases)
    for case, (kind, text) in zip(cases, result):
        expected, begins = failing_kernels.expected(case, 8 // stages)
        assert kind == expected and begins in text, text


_RIGHT = ("clipped", "scaled, clipped", "beside a whole one", "trained", "averaged weights", "assigned weights", "loss by new weights")
"""What gives numbers; all else an error."""


def _outside(folder: str, is_split: bool) -> dict[str, Any]:
    """What programs compute of gradients and weights that are cut, outside of graphs."""
    import copy

    import mindspore as ms
    from mindspore import ParameterTuple, Tensor, ops
    from mindspore.communication import get_rank, init
    from support.split_idioms import Loss, Net, X, Y

    from torchspore.errors import ValueElsewhere

    if is_split:
        init()
        ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")
    ms.set_context(mode=ms.GRAPH_MODE)
    net = Net((1, 2) if is_split else None)
    weights = ParameterTuple(net.trainable_params())
    gradients = ms.jit(ms.value_and_grad(Loss(net), None, weights))

    @ms.jit
    def clipped(grads: Any) -> Any:
        return ops.clip_by_global_norm(grads, 0.1)

    def trained() -> Any:
        for weight, gradient in zip(weights, gradients(Tensor(X), Tensor(Y))[1]):
            weight.set_data(weight - 0.1 * gradient)
        return gradients(Tensor(X), Tensor(Y))[0]

    copies = [weight.clone() for weight in weights]                       # whole: nothing is cut before the first step
    g = gradients(Tensor(X), Tensor(Y))[1]
    w, other = weights

    def averaged() -> Any:
        for _ in range(2):
            for average, weight in zip(copies, weights):
                average.set_data(0.9 * average + 0.1 * (weight + 1.0))
        path = f"{folder}/averages_{get_rank() if is_split else 2}.ckpt"
        ms.save_checkpoint([{"name": average.name, "data": average} for average in copies], path)
        return ms.load_checkpoint(path)["one"]

    def assigned() -> Any:
        ops.assign(w, Tensor(np.ones((6, 12), np.float32)))
        ops.assign_add(w, Tensor(np.arange(72, dtype=np.float32).reshape(6, 12)))
        other.set_data(Tensor(np.full((12, 4), 0.1, np.float32)))
        return w

    programs = {
        "a first sum": lambda: w.sum(), "a first norm": lambda: ops.norm(other),
        "whole of a like form": lambda: clipped(tuple(Tensor(q.asnumpy()) for q in g))[0] if is_split else 0,
        "clipped": lambda: clipped(g)[0], "scaled, clipped": lambda: clipped(tuple(ops.clip_by_value(q * 3.0, -1.0, 1.0) for q in g))[0],
        "beside a whole one": lambda: clipped((g[0] * Tensor(np.arange(72, dtype=np.float32).reshape(6, 12)), g[1]))[0],
        "trained": trained, "sum": lambda: ops.sum(g[0]), "norm": lambda: ops.norm(g[1]), "mixed": lambda: ops.matmul(g[0], g[1]),
        "clipped outside": lambda: ops.clip_by_global_norm(g, 0.1)[0], "a part": lambda: g[0][:, :2], "flat": lambda: g[0].reshape(-1),
        "of two kinds": lambda: g[0].T[:, :4] + g[1], "finite": lambda: ms.amp.all_finite(g), "random": lambda: ops.dropout(g[0], 0.5),
        "random alike": lambda: ops.rand_like(g[0]), "random integers": lambda: ops.randint_like(g[0].astype(ms.int32), 0, 9),
        "random channels": lambda: ops.dropout2d(g[0].reshape(1, 1, *g[0].shape), 0.5), "coins": lambda: ops.bernoulli(g[0], 0.5, seed=1),
        "a primitive's dropout": lambda: ops.Dropout(0.5, Seed0=1)(g[0])[0], "random slopes": lambda: ops.rrelu(g[0]),
        "averaged weights": averaged, "a weight's sum": lambda: w.sum(), "a weight's mean": lambda: ops.mean(other),
        "a weight's norm": lambda: ops.norm(w), "a weight's largest": lambda: other.value().max(), "a weight's row": lambda: w[0],
        "a copy's sum": lambda: copy.deepcopy(w).sum(), "a clone's sum": lambda: w.clone("ones").sum(), "two": lambda: w @ other,
        "assigned weights": assigned, "an assigned weight's sum": lambda: w.sum(), "one that was set": lambda: ops.norm(other),
        "loss by new weights": lambda: gradients(Tensor(X), Tensor(Y))[0],
    }
    results: dict[str, Any] = {}
    for name, program in programs.items():
        try:
            value = program()
            results[name] = value.asnumpy() if isinstance(value, Tensor) else value
        except ValueElsewhere as error:
            results[name] = str(error)
    return results


def test_gradients_and_weights_that_are_cut_give_right_numbers_outside_of_graphs_or_none(workers: Any, tmp_path: Any) -> None:
    (alone,) = workers(1, _outside, str(tmp_path), False)
    ranks = workers(2, _outside, str(tmp_path), True)
    for name, expected in alone.items():
        parts = [part[name] for part in ranks]
        if name == "whole of a like form":
            continue
        if name in _RIGHT:
            is_full = np.shape(parts[0]) == np.shape(expected)
            np.testing.assert_allclose(parts[0] if is_full else np.concatenate(parts, 1), expected, rtol=1e-5, atol=1e-7, err_msg=name)
        else:
            assert all("test_split.py:" in text and "of which each process holds a part" in text for text in parts), (name, parts)


def _from_parts(axes: tuple[Any, ...], names: tuple[str, str]) -> tuple[list[list[float]], list[list[float]]]:
    """The result of a net whose input lies as a Layout says, of the part that belongs to this process."""
    import mindspore as ms
    from mindspore import Layout, Tensor, nn, ops
    from mindspore.communication import get_rank, init

    init()
    layout = Layout((2, 2), names)(*axes)
    ms.set_context(mode=ms.GRAPH_MODE)
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy=(layout,))
    x = np.arange(32, dtype=np.float32).reshape(4, 8) / 10
    at = dict(zip(names, divmod(get_rank(), 2)))
    part = x
    for axis, name in enumerate(axes):
        if name != "None":
            part = np.split(part, 2, axis)[at[name]]

    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.weight = ms.Parameter(np.arange(32, dtype=np.float32).reshape(8, 4) / 7, name="weight")
            self.matmul, self.total = ops.MatMul().shard(((2, 2), (2, 1))), ops.ReduceSum()

        def construct(self, x: Tensor) -> Tensor:
            return self.total(self.matmul(x, self.weight), 0)

    expected = (x @ (np.arange(32, dtype=np.float32).reshape(8, 4) / 7)).sum(0)
    return Net()(Tensor(part.copy())).asnumpy().tolist(), expected.tolist()


@pytest.mark.parametrize(("axes", "names"), [
    (("dp", "mp"), ("dp", "mp")),
    *(pytest.param(*case, marks=pytest.mark.slow) for case in (
        (("dp", "mp"), ("mp", "dp")), (("None", "mp"), ("dp", "mp")), (("mp", "None"), ("dp", "mp")), (("None", "None"), ("dp", "mp")),
    )),
])
def test_parts_by_layouts(axes: tuple[Any, ...], names: tuple[str, str], workers: Any) -> None:
    for result, expected in workers(4, _from_parts, axes, names):
        np.testing.assert_allclose(result, expected, rtol=1e-5)
