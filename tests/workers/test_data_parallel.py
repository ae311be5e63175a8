"""Data parallel training over real processes: equal to one process with the whole batch."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

RANKS = 2
STEPS = 3
SMALL = 1e-4
"""With the usual 1e-8 these make whole steps of gradients that are nothing but rounding (the bias of attention's keys)."""


def begin(mode: int = 1, **options: Any) -> int:
    """Joins the other ranks; the rank of this one."""
    import mindspore as ms
    from mindspore.communication import get_rank, init

    init()
    ms.set_context(mode=mode)
    ms.set_auto_parallel_context(parallel_mode="data_parallel", **options)
    return get_rank()


def make_net(seed: int = 1) -> Any:
    """Three Dense layers with weights of NumPy's."""
    import mindspore as ms
    from mindspore import nn

    random = np.random.RandomState(seed)

    def dense(rows: int, columns: int) -> Any:
        weight = ms.Tensor(random.uniform(-0.5, 0.5, (columns, rows)).astype(np.float32))
        return nn.Dense(rows, columns, weight_init=weight, bias_init="zeros")

    return nn.SequentialCell(dense(6, 8), nn.ReLU(), dense(8, 4), nn.ReLU(), dense(4, 2))


def batches(part: int = 0, of: int = 1) -> list[tuple[np.ndarray, np.ndarray]]:
    """The batches of all steps, or this rank's part of each."""
    random = np.random.RandomState(7)
    results = []
    for _ in range(STEPS):
        x, y = random.rand(8, 6).astype(np.float32), random.rand(8, 2).astype(np.float32)
        rows = slice(part * 8 // of, (part + 1) * 8 // of)
        results.append((x[rows], y[rows]))
    return results


def optimizer(name: str, parameters: Any) -> Any:
    """One of MindSpore's optimizers."""
    from mindspore import nn

    return {
        "SGD": lambda: nn.SGD(parameters, 0.1, momentum=0.9),
        "Momentum": lambda: nn.Momentum(parameters, 0.1, 0.9),
        "Adam": lambda: nn.Adam(parameters, 0.01, eps=SMALL),
        "AdamWeightDecay": lambda: nn.AdamWeightDecay(parameters, 0.01, eps=SMALL, weight_decay=0.01),
        "Lamb": lambda: nn.Lamb(parameters, 0.01, eps=SMALL, weight_decay=0.01),
    }[name]()


def weights(net: Any) -> list[np.ndarray]:
    """The values of all Parameters."""
    return [p.asnumpy().copy() for p in net.get_parameters()]


def trained(net: Any, name: str, data: Any, way: str) -> list[np.ndarray]:
    """Trains for the steps; gives the weights."""
    import mindspore as ms
    from mindspore import nn, ops

    loss_fn, optim = nn.MSELoss(), optimizer(name, net.trainable_params())
    if way == "cell":
        step = nn.TrainOneStepCell(nn.WithLossCell(net, loss_fn), optim).set_train()
        for x, y in data:
            step(ms.Tensor(x), ms.Tensor(y))
        return weights(net)
    if way == "scale":
        scale = nn.FixedLossScaleUpdateCell(1024.0)
        step = nn.TrainOneStepWithLossScaleCell(nn.WithLossCell(net, loss_fn), optim, scale).set_train()
        for x, y in data:
            step(ms.Tensor(x), ms.Tensor(y))
        return weights(net)
    reducer = nn.DistributedGradReducer(optim.parameters)
    gradient = ops.value_and_grad(lambda x, y: loss_fn(net(x), y), None, optim.parameters)
    for x, y in data:
        _, grads = gradient(ms.Tensor(x), ms.Tensor(y))
        if way == "clipped":
            grads = ops.clip_by_global_norm(grads, 100.0)
        optim(reducer(grads))
    return weights(net)


def of_ranks(mode: int, name: str, way: str, options: dict[str, Any]) -> list[np.ndarray]:
    """The weights of one rank after the steps."""
    rank = begin(mode, gradients_mean=True, **options)
    return trained(make_net(), name, batches(rank, RANKS), way)


def alone(mode: int, name: str, way: str = "cell") -> list[np.ndarray]:
    """The weights of one process that has the whole batch."""
    import mindspore as ms

    ms.set_context(mode=mode)
    try:
        return trained(make_net(), name, batches(), way)
    finally:
        ms.set_context(mode=1)


def close(results: list[np.ndarray], expected: list[np.ndarray], rtol: float = 1e-6) -> None:
    for result, other in zip(results, expected, strict=True):
        np.testing.assert_allclose(result, other, rtol=rtol, atol=1e-7)


@pytest.mark.parametrize("mode", [0, 1])
@pytest.mark.parametrize("name, way", [
    ("SGD", "cell"), ("Momentum", "functional"), ("Adam", "clipped"), ("AdamWeightDecay", "cell"), ("Lamb", "scale"),
])
def test_two_ranks_train_as_one_process(workers: Any, mode: int, name: str, way: str) -> None:
    expected = alone(mode, name)
    for result in workers(RANKS, of_ranks, mode, name, way, {}):
        close(result, expected)


# ---- how gradients travel


def messages(way: str, options: dict[str, Any], numbers: list[int] | None = None) -> dict[str, Any]:
    """How many messages there are, and how many left while the backward pass ran; the weights."""
    import mindspore as ms
    from mindspore import nn, ops

    rank = begin(1, gradients_mean=True, **options)
    net = make_net()
    for number, parameter in zip(numbers or [], net.trainable_params()):
        parameter.comm_fusion = number
    optim = optimizer("SGD", net.trainable_params())
    reducer = nn.DistributedGradReducer(optim.parameters)
    gradient = ops.value_and_grad(lambda x, y: nn.MSELoss()(net(x), y), None, optim.parameters)
    early = []
    for x, y in batches(rank, RANKS):
        _, grads = gradient(ms.Tensor(x), ms.Tensor(y))
        early.append(reducer._ahead.count)
        if way == "changed":
            grads = tuple(g * 1.0 for g in grads)
        optim(reducer(grads))
    return {"messages": len(reducer._plan.buckets), "early": early, "weights": weights(net)}


@pytest.mark.parametrize("options, numbers, count", [
    ({}, None, 1),
    ({"comm_fusion": {"openstate": False}}, None, 6),
    ({"comm_fusion": {"allreduce": {"mode": "auto", "config": None}}}, None, 1),
    ({"comm_fusion": {"allreduce": {"mode": "index", "config": [1, 3]}}}, None, 3),
    ({"all_reduce_fusion_config": [1]}, None, 2),
    ({"all_reduce_fusion_config": [0]}, None, 2),
    ({"all_reduce_fusion_config": [1, 3]}, None, 3),
    ({}, [3, 3, 3, 5, 5, 5], 2),
    ({}, [0, 0, 3, 3, 1, 1], 4),
])
def test_gradients_travel_in_as_many_messages_as_the_context_says(workers: Any, options: Any, numbers: Any, count: int) -> None:
    expected = alone(1, "SGD")
    for result in workers(RANKS, messages, "own", options, numbers):
        assert result["messages"] == count
        close(result["weights"], expected)


def test_messages_leave_while_the_backward_pass_runs(workers: Any) -> None:
    for result in workers(RANKS, messages, "own", {"comm_fusion": {"openstate": False}}):
        assert result["early"] == [0, 6, 12]               # the first step shows that nobody changes the gradients


def test_changed_gradients_are_summed_as_they_are(workers: Any) -> None:
    expected = alone(1, "SGD")
    for result in workers(RANKS, messages, "changed", {}):
        assert result["early"] == [0, 0, 0]
        close(result["weights"], expected)


# ---- graphs


def step_graph(level: str, options: dict[str, Any]) -> dict[str, Any]:
    """The operators of the graph of a step, in their order."""
    import mindspore as ms
    from mindspore import nn

    import torchspore

    rank = begin(0, gradients_mean=True, **options)
    net = make_net()
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer("SGD", net.trainable_params())).set_train()
    step.set_jit_config(ms.JitConfig(jit_level=level))
    for x, y in batches(rank, RANKS):
        step(ms.Tensor(x), ms.Tensor(y))
    graphs = torchspore.graphs(step)
    from torchspore.graph.passes.communication import overlap_exchanges

    nodes = [str(n.target) for n in overlap_exchanges(graphs[0].module).graph.nodes if n.op == "call_function"]
    return {"graphs": len(graphs), "nodes": nodes, "weights": weights(net)}


@pytest.mark.parametrize("level", ["O0", pytest.param("O1", marks=pytest.mark.slow), pytest.param("O2", marks=pytest.mark.slow)])
@pytest.mark.parametrize("options, count", [({}, 1), ({"all_reduce_fusion_config": [1, 3]}, 3), ({"comm_fusion": {"openstate": False}}, 6)])
def test_sums_are_nodes_of_the_graph(workers: Any, level: str, options: Any, count: int) -> None:
    expected = alone(0, "SGD")
    for result in workers(RANKS, step_graph, level, options):
        assert result["graphs"] == 1
        assert sum("all_reduce" in name for name in result["nodes"]) == count
        close(result["weights"], expected)


def test_sums_start_early_and_are_waited_for_late(workers: Any) -> None:
    for result in workers(RANKS, step_graph, "O0", {"comm_fusion": {"openstate": False}}):
        nodes = result["nodes"]
        first = next(index for index, name in enumerate(nodes) if "all_reduce" in name)
        later = nodes[first:]
        assert any(name.startswith(("aten.mm", "aten.t.")) for name in later)    # the backward pass goes on
        waits = [index for index, name in enumerate(nodes) if "wait_tensor" in name]
        assert waits[0] > max(index for index, name in enumerate(nodes) if "all_reduce" in name)


# ---- a loss scale


def overflowing(mode: int, shares: bool) -> dict[str, Any]:
    """Four steps with a loss scale; in the third one the batch of rank 1 alone overflows."""
    import mindspore as ms
    from mindspore import nn

    import torchspore

    config = {"enable_parallel_optimizer": True, "parallel_optimizer_config": {"parallel_optimizer_threshold": 0}} if shares else {}
    rank = begin(mode, gradients_mean=True, **config)
    net = make_net()
    step = nn.TrainOneStepWithLossScaleCell(
        nn.WithLossCell(net, nn.MSELoss()), optimizer("Momentum", net.trainable_params()), nn.DynamicLossScaleUpdateCell(1024.0, 2, 2),
    ).set_train()
    lines = []
    for at, (x, y) in enumerate([*batches(rank, RANKS), batches(rank, RANKS)[0]]):
        _, overflow, scale = step(ms.Tensor(x * (1e30 if at == 2 and rank == 1 else 1)), ms.Tensor(y))
        lines.append([bool(overflow.asnumpy()), float(scale.asnumpy())])
    return {"told": lines, "weights": weights(net), "graphs": [graph.runs for graph in torchspore.graphs(step)]}


@pytest.mark.parametrize("shares", [False, True])
def test_all_ranks_leave_out_the_step_in_which_one_overflows(workers: Any, shares: bool) -> None:
    in_parts, graphed = workers(RANKS, overflowing, 1, shares), workers(RANKS, overflowing, 0, shares)
    for part in (*in_parts, *graphed):
        assert part["told"] == [[False, 1024.0], [False, 2048.0], [True, 1024.0], [False, 1024.0]]
        close(part["weights"], in_parts[0]["weights"])
    assert [result["graphs"] for result in graphed] == [[4]] * RANKS


# ---- several parts of a batch


def in_parts(mode: int, way: str, ranks: int, shares: bool) -> list[np.ndarray]:
    """The weights after training with batches in two parts each."""
    import mindspore as ms
    from mindspore import nn

    options: dict[str, Any] = {}
    if shares:
        config = {"parallel_optimizer_threshold": 0, "optimizer_level": "level2"}
        options = {"enable_parallel_optimizer": True, "parallel_optimizer_config": config}
    rank = 0
    if ranks > 1:
        rank = begin(mode, gradients_mean=True, **options)
    ms.set_context(mode=mode)
    if way == "steps":
        ms.set_auto_parallel_context(grad_accumulation_step=2)
    try:
        net = make_net()
        cell = nn.WithLossCell(net, nn.MSELoss())
        if way == "cell":
            cell = nn.GradAccumulationCell(cell, 2)
        step = nn.TrainOneStepCell(cell, optimizer("SGD", net.trainable_params())).set_train()
        for x, y in batches(rank, ranks):
            halves = [(x[0::2], y[0::2]), (x[1::2], y[1::2])] if way == "steps" else [(x, y)]
            for part in halves:
                step(*map(ms.Tensor, part))
        return weights(net)
    finally:
        ms.reset_auto_parallel_context()
        ms.set_context(mode=1)


@pytest.mark.parametrize("mode", [0, 1])
@pytest.mark.parametrize("way", ["cell", "steps"])
def test_gradients_of_parts_are_added_up(workers: Any, mode: int, way: str) -> None:
    alone_in_parts = in_parts(mode, way, 1, False)
    if way == "steps":
        close(alone_in_parts, alone(mode, "SGD"))                 # the mean of two halves is that of the whole batch
    for shares in (False, True):
        for result in workers(RANKS, in_parts, mode, way, RANKS, shares):
            close(result, alone_in_parts)


# ---- what is refused


def refused(what: str) -> str:
    """The error of a context that does not fit the processes."""
    import mindspore as ms
    from mindspore import nn

    options = {"device_num": 4} if what == "device_num" else {"global_rank": 5} if what == "global_rank" else {}
    rank = begin(1, **options)
    net = make_net()
    try:
        optim = optimizer("SGD", net.trainable_params())
        if what == "adasum":
            optim = nn.AdaSumByGradWrapCell(optim)
        step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optim)
        step(*map(ms.Tensor, batches(rank, RANKS)[0]))
    except RuntimeError as error:
        return str(error)
    return "nothing"


@pytest.mark.parametrize("what, expected", [
    ("device_num", "set_auto_parallel_context(device_num=4) in 'data_parallel': expected 2, the number of processes.\n\n"
                   "hint: leave device_num out."),
    ("adasum", "AdaSumByGradWrapCell over 2 processes: expected one process: the adaptive sum of several is not in torchspore.\n\n"
               "hint: train with the optimizer itself, and gradients_mean=True."),
])
def test_what_does_not_fit_is_refused(workers: Any, what: str, expected: str) -> None:
    assert workers(RANKS, refused, what) == [expected] * RANKS


def test_each_rank_says_its_rank(workers: Any) -> None:
    assert workers(RANKS, refused, "global_rank") == [
        f"set_auto_parallel_context(global_rank=5) in 'data_parallel': expected {rank}, the rank of this process.\n\n"
        "hint: leave global_rank out." for rank in range(RANKS)
    ]


def defaults() -> tuple[Any, ...]:
    """What the context says after init(), where nothing was set."""
    import mindspore as ms
    from mindspore.parallel import _utils

    begin(1)
    return ms.get_auto_parallel_context("device_num"), ms.get_auto_parallel_context("global_rank"), _utils._get_device_num()


def test_device_num_stays_what_it_was(workers: Any) -> None:
    assert workers(RANKS, defaults) == [(1, 0, 2)] * RANKS                    # as real MindSpore 2.10 says it


def explanation() -> str:
    """What `explain` says on this rank."""
    import io

    import mindspore as ms
    from mindspore import nn

    from torchspore.cli import explain

    config = {"parallel_optimizer_threshold": 0, "optimizer_level": "level2"}
    rank = begin(
        1, gradients_mean=True, gradient_fp32_sync=True, parameter_broadcast=True, all_reduce_fusion_config=[1],
        enable_parallel_optimizer=True, parallel_optimizer_config=config,
    )
    net = make_net()
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer("Adam", net.trainable_params()))
    step(*map(ms.Tensor, batches(rank, RANKS)[0]))
    out = io.StringIO()
    explain.table(out)
    return out.getvalue()


def test_explain_says_what_acts(workers: Any) -> None:
    for text in workers(RANKS, explanation):
        for line in (
            "applied: gradients are summed over 2 processes", "applied: sums are divided by 2",
            "no effect here: 'data_parallel' always sums in float32", "applied: process 0 sends its Parameters",
            "6 gradients in 2 messages (cut after the gradients 1) over 2 processes",
            "Adam keeps 1/2 of the state of 6 of 6 Parameters",
        ):
            assert line in text, text
