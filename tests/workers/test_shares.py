"""`enable_parallel_optimizer`: numbers of an optimizer that is not cut, with a part of its memory."""
from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from support.patches import replace
from test_data_parallel import alone, batches, begin, close, make_net, optimizer, trained, weights

RANKS = 2
OPTIMIZERS = ("SGD", "Momentum", "Adam", "AdamWeightDecay", "Lamb")


def cut(mode: int, level: str, way: str, names: tuple[str, ...] = OPTIMIZERS, more: dict[str, Any] | None = None) -> dict[str, Any]:
    """For each optimizer the weights of a rank after the steps."""
    config = {"parallel_optimizer_threshold": 0, "optimizer_level": level}
    rank = begin(mode, gradients_mean=True, enable_parallel_optimizer=True, parallel_optimizer_config=config, **(more or {}))
    from torchspore.distributed.comm import groups

    return {name: trained(make_net(), name, batches(rank, groups.size()), way) for name in names}


@pytest.mark.parametrize("mode", [0, 1])
@pytest.mark.parametrize("level, way", [
    ("level1", "cell"), ("level2", "scale"), ("level3", "cell"),
    *[pytest.param(*case, marks=pytest.mark.slow) for case in (
        ("level2", "cell"), ("level2", "clipped"), ("level3", "scale"), ("level3", "clipped"))],
])
def test_a_shared_optimizer_gives_the_numbers_of_an_unsharded_one(workers: Any, mode: int, level: str, way: str) -> None:
    expected = {name: alone(mode, name) for name in OPTIMIZERS}
    for result in workers(RANKS, cut, mode, level, way):
        for name in OPTIMIZERS:
            close(result[name], expected[name])


EVERY = {
    "Adagrad": lambda nn, p: nn.Adagrad(p, 0.1), "RMSProp": lambda nn, p: nn.RMSProp(p, 0.01),
    "Adadelta": lambda nn, p: nn.Adadelta(p, 0.5),
    "AdaMax": lambda nn, p: nn.AdaMax(p, 0.01), "ASGD": lambda nn, p: nn.ASGD(p, 0.1), "Rprop": lambda nn, p: nn.Rprop(p, 0.01),
    "FTRL": lambda nn, p: nn.FTRL(p, learning_rate=0.1), "ProximalAdagrad": lambda nn, p: nn.ProximalAdagrad(p, learning_rate=0.1),
    "LazyAdam": lambda nn, p: nn.LazyAdam(p, 0.01), "AdamOffload": lambda nn, p: nn.AdamOffload(p, 0.01),
    "AdaFactor": lambda nn, p: nn.AdaFactor(p, scale_parameter=False, relative_step=False, learning_rate=0.01),
    "LARS": lambda nn, p: nn.LARS(nn.Momentum(p, 0.1, 0.9)),
    "centralized": lambda nn, p: nn.Adam([{"params": p, "grad_centralization": True, "weight_decay": 0.1, "order_params": p}], 0.01),
    "nesterov": lambda nn, p: nn.SGD(p, 0.1, momentum=0.9, nesterov=True, weight_decay=0.1),
}


def each_optimizer(level: str | None) -> dict[str, list[np.ndarray]]:
    """The weights of a rank after the steps, by every other optimizer."""
    import mindspore as ms
    from mindspore import nn

    rank = 0
    if level is not None:
        config = {"parallel_optimizer_threshold": 0, "optimizer_level": level}
        rank = begin(1, gradients_mean=True, enable_parallel_optimizer=True, parallel_optimizer_config=config)
    results = {}
    for name, make in EVERY.items():
        net = make_net()
        step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), make(nn, net.trainable_params())).set_train()
        for x, y in batches(rank, 1 if level is None else RANKS):
            step(ms.Tensor(x), ms.Tensor(y))
        results[name] = weights(net)
    return results


@pytest.mark.parametrize("level", ["level2", *[pytest.param(name, marks=pytest.mark.slow) for name in ("level1", "level3")]])
def test_every_optimizer_can_be_shared(workers: Any, level: str) -> None:
    expected = each_optimizer(None)
    for result in workers(RANKS, each_optimizer, level):
        for name in EVERY:
            close(result[name], expected[name], 2e-6)


def peak_of_step(step: Any, x: Any) -> int:
    """The most bytes that a step takes beside those held before it: the least of eight steps.

    gloo's thread drops the operands of an exchange a moment after the exchange ends. A step in which the thread is late takes one or two
    weights more, so that single steps of equal programs differ by up to 2 MiB here.
    """
    from torchspore.engine.native import allocator

    peaks = []
    assert allocator.start(), allocator.why_not()
    try:
        for _ in range(8):
            before = allocator.figures().used
            allocator.reset_peak()
            step(x, x)
            peaks.append(allocator.figures().peak - before)
    finally:
        allocator.stop()
    return min(peaks)


def memory(level: str) -> dict[str, int]:
    """Bytes of the state, of the weights, and those that a step takes beside both."""
    import mindspore as ms
    from mindspore import nn

    from torchspore.distributed.data_parallel.sharded_weights import RowShardedWeight

    options: dict[str, Any] = {}
    if level:
        options = {"enable_parallel_optimizer": True, "parallel_optimizer_config": {"optimizer_level": level}}
    begin(1, gradients_mean=True, **options)
    layers = [nn.Dense(512, 512, weight_init="zeros", has_bias=False) for _ in range(8)]
    net = nn.SequentialCell(*layers)
    optim = nn.Adam(net.trainable_params(), 0.01)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optim).set_train()
    x = ms.Tensor(np.ones((2, 512), np.float32))
    step(x, x)
    state = sum(p.nbytes for p in (*optim.moment1, *optim.moment2))
    stored = [p._t.rows._t if isinstance(p._t, RowShardedWeight) else p._t for p in net.trainable_params()]
    return {"state": state, "weights": sum(t.nbytes for t in stored), "step": peak_of_step(step, x)}


def test_a_share_takes_its_part_of_the_memory(workers: Any) -> None:
    weight = 512 * 512 * 4
    plain = workers(RANKS, memory, "")
    assert [entry["state"] for entry in plain] == [16 * weight] * RANKS
    for level, most, held in (("level1", 17, 8), ("level2", 7.5, 8), ("level3", 7.5, 4)):
        results = workers(RANKS, memory, level)
        assert [result["weights"] for result in results] == [held * weight] * RANKS
        assert [result["state"] for result in results] == [8 * weight] * RANKS
        assert all(result["step"] < most * weight for result in results), [result["step"] / weight for result in results]


# ---- what is cut


def shapes(options: dict[str, Any], marks: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """The shapes of Adam's first moments on a rank."""
    begin(1, enable_parallel_optimizer=True, **options)
    net = make_net()
    for name, value in marks.items():
        setattr(net[0].weight, name, value)
    return {p.name: tuple(p.shape) for p in optimizer("Adam", net.trainable_params()).moment1}


def test_only_what_is_large_and_may_be_is_cut(workers: Any) -> None:
    small = {"parallel_optimizer_config": {"parallel_optimizer_threshold": 0}}
    for options, marks, expected in (
        ({}, {}, (8, 6)), (small, {}, (4, 6)), (small, {"parallel_optimizer": False}, (8, 6)),
        (small, {"layerwise_parallel": True}, (8, 6)),
    ):
        for result in workers(RANKS, shapes, options, marks):
            assert result["moment1.0.weight"] == expected


def test_a_small_group_has_a_parameter_together(workers: Any) -> None:
    config = {"parallel_optimizer_threshold": 0, "optimizer_weight_shard_size": 2}
    for result in workers(4, shapes, {"parallel_optimizer_config": config}, {}):
        assert result["moment1.0.weight"] == (4, 6)


@pytest.mark.parametrize("size", [-1, pytest.param(2, marks=pytest.mark.slow), 3])
def test_four_ranks_in_groups_give_the_numbers_of_one(workers: Any, size: int) -> None:
    expected = {name: alone(1, name) for name in ("Adam", "Lamb")}
    more = {} if size < 0 else {"optimizer_weight_shard_size": size}
    for result in workers(4, cut, 1, "level2", "cell", ("Adam", "Lamb"), more):
        for name, values in expected.items():
            close(result[name], values, 2e-6)


# ---- files


def saved(folder: str) -> dict[str, Any]:
    """Saves a step's state in the middle of a training, and goes on from the file with a new net."""
    import mindspore as ms
    from mindspore import nn

    config = {"parallel_optimizer_threshold": 0, "optimizer_level": "level2"}
    rank = begin(1, gradients_mean=True, enable_parallel_optimizer=True, parallel_optimizer_config=config)
    file = f"{folder}/rank_{rank}.ckpt"

    def make(seed: int) -> Any:
        net = make_net(seed)
        return net, nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer("Adam", net.trainable_params())).set_train()

    net, step = make(1)
    first, *rest = batches(rank, RANKS)
    step(*map(ms.Tensor, first))
    ms.save_checkpoint(step, file)
    for batch in rest:
        step(*map(ms.Tensor, batch))
    second, other = make(2)
    ms.load_param_into_net(other, ms.load_checkpoint(file))
    for batch in rest:
        other(*map(ms.Tensor, batch))
    return {"straight": weights(net), "again": weights(second)}


def test_files_hold_complete_state(workers: Any, tmp_path: Path) -> None:
    import mindspore as ms

    for result in workers(RANKS, saved, str(tmp_path)):
        close(result["again"], result["straight"])
    files = [ms.load_checkpoint(str(tmp_path / f"rank_{rank}.ckpt")) for rank in range(RANKS)]
    assert tuple(files[0]["moment1.0.weight"].shape) == (8, 6)
    for name, value in files[0].items():
        np.testing.assert_array_equal(value.asnumpy(), files[1][name].asnumpy())


# ---- what is refused


@pytest.mark.parametrize("mode", ["stand_alone", "hybrid_parallel"])
def test_other_modes_refuse_it_as_mindspore_does(mode: str) -> None:
    import mindspore as ms

    ms.set_auto_parallel_context(parallel_mode=mode, enable_parallel_optimizer=True)
    try:
        with pytest.raises(RuntimeError) as caught:
            optimizer("Adam", make_net().trainable_params())
    finally:
        ms.reset_auto_parallel_context()
    assert str(caught.value).splitlines()[0] == (
        f"Adam with enable_parallel_optimizer=True in parallel_mode={mode!r}: "
        "expected parallel_mode 'data_parallel', 'semi_auto_parallel' or 'auto_parallel'."
    )


# ---- weights that are kept by rows


def looked_at(mode: int, folder: str) -> dict[str, Any]:
    """What a program sees of weights that are kept by rows: values, shapes, files, evaluation, what it assigns."""
    import mindspore as ms
    from mindspore import nn, ops

    config = {"parallel_optimizer_threshold": 0, "optimizer_level": "level3"}
    rank = begin(mode, gradients_mean=True, enable_parallel_optimizer=True, parallel_optimizer_config=config)
    net = make_net()
    before = weights(net)
    optim = optimizer("Adam", net.trainable_params())
    x = ms.Tensor(batches(0, 1)[0][0])
    weight = net[0].weight
    results: dict[str, Any] = {"same": all(np.array_equal(a, b) for a, b in zip(before, weights(net))), "shape": tuple(weight.shape)}
    results["rows"] = tuple(weight._t.rows.shape)
    results["out"] = net(x).asnumpy()
    weight.set_data(ms.Tensor(np.full((8, 6), 2.0, np.float32)))
    ops.assign(net[2].weight, net[2].weight * 2.0)
    results["set"] = weight.asnumpy(), net[2].weight.asnumpy()
    results["rows still"] = tuple(weight._t.rows.shape)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optim).set_train()
    step(*map(ms.Tensor, batches(rank, RANKS)[0]))
    ms.save_checkpoint(net, f"{folder}/{mode}_{rank}.ckpt")
    results["after"] = weights(net)
    ops.assign_add(weight, ms.Tensor(np.ones((8, 6), np.float32)))
    results["added"] = weight.asnumpy()
    return results


@pytest.mark.parametrize("mode", [0, 1])
def test_weights_stored_by_rows_look_complete(workers: Any, mode: int, tmp_path: Path) -> None:
    import mindspore as ms

    net = make_net()
    out = net(ms.Tensor(batches(0, 1)[0][0])).asnumpy()
    before = weights(net)
    for rank, result in enumerate(workers(RANKS, looked_at, mode, str(tmp_path))):
        assert result["same"]
        assert (result["shape"], result["rows"], result["rows still"]) == ((8, 6), (4, 6), (4, 6))
        np.testing.assert_allclose(result["out"], out, rtol=1e-5)
        np.testing.assert_array_equal(result["set"][0], np.full((8, 6), 2.0, np.float32))
        np.testing.assert_array_equal(result["set"][1], before[2] * 2.0)
        file = ms.load_checkpoint(str(tmp_path / f"{mode}_{rank}.ckpt"))
        np.testing.assert_array_equal(file["0.weight"].asnumpy(), result["after"][0])
        np.testing.assert_allclose(result["added"], result["after"][0] + 1.0)


def gathers(recompute: bool) -> tuple[int, int]:
    """How often the graph of a step gathers, and the most bytes that its values take at a time.

    Not measured: gloo's threads release what they sent a moment later or earlier, by more than the difference.
    """
    import mindspore as ms
    from mindspore import nn

    import torchspore
    from torchspore.graph import pipeline
    from torchspore.graph.passes.memory import lifetimes

    if not recompute:
        replace(pipeline, regather_weights=lambda module: module)
    begin(0, gradients_mean=True, enable_parallel_optimizer=True, parallel_optimizer_config={"optimizer_level": "level3"})
    net = nn.SequentialCell(*[nn.Dense(512, 512, weight_init="zeros", has_bias=False, activation="tanh") for _ in range(8)])
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer("SGD", net.trainable_params())).set_train()
    x = ms.Tensor(np.ones((2, 512), np.float32))
    step(x, x)
    (graph,) = torchspore.graphs(step)
    return sum("all_gather" in str(node.target) for node in graph.module.graph.nodes), lifetimes.peak(graph.module)


def test_graphs_gather_twice_for_the_backward_pass(workers: Any) -> None:
    weight = 512 * 512 * 4
    for (count, peak), (repeated_count, less) in zip(workers(RANKS, gathers, False), workers(RANKS, gathers, True), strict=True):
        assert (count, repeated_count) == (8, 15)                       # the first layer's weight is no part of the backward pass
        assert less < peak - weight, (less / weight, peak / weight)
