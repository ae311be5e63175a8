"""Pipelines by real processes: each holds what its stage needs, all give what one process gives."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest


def begin(is_cut: bool, **more: Any) -> None:
    """GRAPH_MODE, and for one of several processes a pipeline of two stages."""
    import mindspore as ms

    ms.set_context(mode=ms.GRAPH_MODE)
    ms.set_seed(1)
    if is_cut:
        from mindspore.communication import init

        init()
        strategy = {"dataset_strategy": "full_batch", **more}
        ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", pipeline_stages=2, **strategy)


def is_here(tensor: Any) -> bool:
    """Whether this process can read it."""
    try:
        tensor.asnumpy()
    except RuntimeError as error:
        assert "of the pipeline holds" in str(error)
        return False
    return True


def _nets(jobs: list[tuple[str, int, int]], is_cut: bool, strategy: str) -> list[list[float]]:
    """One after the other in the same processes."""
    from support.split_nets import trained

    results = []
    begin(is_cut, dataset_strategy=strategy)
    for at, (name, data, model) in enumerate(jobs):
        results.append(trained(name, data, model, optimizer="scaled" if at else "adam", steps=3, parts=2)[0])
    return results


@pytest.mark.parametrize(("count", "jobs"), [
    (2, [("lenet", 1, 1), ("gpt", 1, 1)]),
    pytest.param(4, [("residual", 2, 1), ("gpt", 1, 2), ("towers", 1, 2)], marks=pytest.mark.slow),
])
def test_processes_train_like_one_process(count: int, jobs: list[tuple[str, int, int]], workers: Any) -> None:
    (alone,) = workers(1, _nets, [(name, 1, 1) for name, _, _ in jobs], False, "")
    for losses in workers(count, _nets, jobs, True, "full_batch", seconds=120):
        for (name, _, _), actual, expected in zip(jobs, losses, alone):
            np.testing.assert_allclose(actual, expected, rtol=1e-5 if name == "residual" else 3e-6, err_msg=name)


def _random(seeds: list[int], stages: int, is_cut: bool) -> list[tuple[list[float], str]]:
    import mindspore as ms
    from support.random_pipelines import trained

    if is_cut:
        from mindspore.communication import init

        init()
    results = []
    for seed in seeds:
        losses, description, _ = trained(seed, stages, is_cut)
        results.append((losses, description))
        ms.reset_auto_parallel_context()
    return results


@pytest.mark.parametrize(("count", "stages", "seeds"), [
    (2, 2, list(range(4))), (4, 4, [1, 2]),
    *(pytest.param(*kind, list(range(10 * at, 10 * at + 10)), marks=pytest.mark.slow)
      for at, kind in enumerate([(2, 2), (4, 2), (3, 3), (4, 4)] * 2)),
])
def test_random_nets(count: int, stages: int, seeds: list[int], workers: Any) -> None:
    (alone,) = workers(1, _random, seeds, stages, False)
    for result in workers(count, _random, seeds, stages, True):
        for (losses, description), (expected, _) in zip(result, alone):
            np.testing.assert_allclose(losses, expected, rtol=1e-5, err_msg=description)


def _functional(folder: str, is_cut: bool) -> dict[str, Any]:
    import mindspore as ms
    from mindspore import Tensor, nn, ops
    from mindspore.communication import get_rank

    begin(is_cut)
    rank = get_rank() if is_cut else 0
    net = nn.SequentialCell([nn.SequentialCell([nn.Dense(16, 512), nn.ReLU()]), nn.Dense(512, 64)])
    net[0].pipeline_stage, net[1].pipeline_stage = 0, 1
    loss = nn.PipelineCell(nn.WithLossCell(net, nn.CrossEntropyLoss()), 4)
    optimizer = nn.Adam(net.trainable_params(), 1e-2)
    gradients = ms.value_and_grad(loss, None, optimizer.parameters)
    source = np.random.default_rng(0)
    x, y = Tensor(source.standard_normal((8, 16)).astype(np.float32)), Tensor(source.integers(0, 64, 8).astype(np.int32))
    losses, there = [], []
    for _ in range(3):
        value, grads = gradients(x, y)
        optimizer(grads)
        losses.append(float(value.asnumpy()))
        there = [is_here(grad) for grad in grads]
    result = net(x)
    result = result.asnumpy() if is_here(result) else str(result)
    ms.save_checkpoint(optimizer, f"{folder}/{rank}.ckpt")
    saved = ms.load_checkpoint(f"{folder}/{rank}.ckpt")
    ms.save_checkpoint(optimizer, f"{folder}/{is_cut}", format="dcp")
    sharded = ms.load_checkpoint(f"{folder}/{is_cut}.dcp", format="dcp")
    assert all(np.array_equal(sharded[name].asnumpy(), tensor.asnumpy()) for name, tensor in saved.items())
    for parameter in optimizer.get_parameters():
        parameter.set_data(ops.zeros(parameter.shape, parameter.dtype))
    ms.load_param_into_net(optimizer, ms.load_checkpoint(f"{folder}/{is_cut}.dcp", format="dcp"))
    bytes_of = {p.name: p._t.untyped_storage().nbytes() if is_here(p) else 0 for p in optimizer.get_parameters()}
    value, _ = gradients(x, y)
    return {"losses": [*losses, float(value.asnumpy())], "there": there, "result": result, "held": bytes_of,
            "saved": {name: tensor.asnumpy() for name, tensor in saved.items()}}


def test_each_process_holds_what_its_stage_needs(workers: Any, tmp_path: Path) -> None:
    (alone,) = workers(1, _functional, str(tmp_path), False)
    first, second = workers(2, _functional, str(tmp_path), True)
    for outcome in (first, second):
        np.testing.assert_allclose(outcome["losses"], alone["losses"], rtol=2e-6)
        for name, value in alone["saved"].items():
            np.testing.assert_allclose(outcome["saved"][name], value, rtol=1e-4, atol=1e-6, err_msg=name)
    # Gradients and large results are where they are needed; elsewhere they say where that is.
    assert (first["there"], second["there"]) == ([True, True, False, False], [False, False, True, True])
    assert first["result"] == "<held by stage 1 of the pipeline>"
    np.testing.assert_allclose(second["result"], alone["result"], rtol=1e-4, atol=1e-5)
    # 16 x 512 weights and two moments there, 512 x 64 here; what the other holds takes nothing.
    assert first["held"]["0.0.weight"] == first["held"]["moment1.0.0.weight"] == 4 * 16 * 512
    assert second["held"]["1.weight"] == second["held"]["moment2.1.weight"] == 4 * 512 * 64
    assert {first["held"][name] for name in ("1.weight", "moment1.1.weight", "1.bias")} == {0}
    assert {second["held"][name] for name in ("0.0.weight", "moment2.0.0.weight")} == {0}


def _of_gradients(is_cut: bool) -> dict[str, Any]:
    """What comes of gradients with which something is done outside of the graph they come from, and losses of two steps with one of it."""
    import mindspore as ms
    from mindspore import Tensor, nn, ops

    begin(is_cut)
    net = nn.SequentialCell([nn.SequentialCell([nn.Dense(16, 32), nn.ReLU()]), nn.Dense(32, 64)])
    net[0].pipeline_stage, net[1].pipeline_stage = 0, 1
    optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
    gradients = ms.value_and_grad(nn.PipelineCell(nn.WithLossCell(net, nn.CrossEntropyLoss()), 2), None, optimizer.parameters)
    source = np.random.default_rng(0)
    x, y = Tensor(source.standard_normal((8, 16)).astype(np.float32)), Tensor(source.integers(0, 64, 8).astype(np.int32))
    changes: dict[str, Any] = {
        "scale": lambda output: [grad * 0.5 for grad in output],
        "scale by a Tensor": lambda output: [grad / Tensor([4.0], ms.float32) for grad in output],
        "clip each": lambda output: [ops.clip_by_value(grad, Tensor(-1e-3), Tensor(1e-3)) for grad in output],
        "cast": lambda output: [grad.astype(ms.float16).astype(ms.float32) for grad in output],
        "sum": lambda output: [grad + ops.zeros_like(grad) for grad in output],
        "beside a whole one": lambda output: [0.9 * ops.ones(grad.shape) + 0.1 * grad for grad in output],
        "clip by norm": lambda output: ops.clip_by_global_norm(output, 0.1),
        "read": lambda output: [Tensor(float(ops.reduce_sum(grad))) for grad in output],
        "join": lambda output: [ops.concat([grad.reshape(-1) for grad in output])],
        "finite": lambda output: [ms.amp.all_finite(output)],
    }
    value, grads = gradients(x, y)
    changed: dict[str, Any] = {}
    for name, change in changes.items():
        try:
            changed[name] = [grad.asnumpy() if is_here(grad) else None for grad in change(grads)]
        except RuntimeError as error:
            changed[name] = str(error)
    optimizer(changes["scale by a Tensor"](grads))
    return {"losses": [float(value), float(gradients(x, y)[0])], **changed}


def test_gradients_of_other_stages(workers: Any) -> None:
    """What is done to each gradient by itself acts where it is; what needs all of them is refused, not computed of nothing."""
    (alone,) = workers(1, _of_gradients, False)
    for rank, result in enumerate(workers(2, _of_gradients, True)):
        np.testing.assert_allclose(result.pop("losses"), alone["losses"], rtol=2e-6)
        for name, grads in result.items():
            if name in ("clip by norm", "read", "join", "finite"):
                assert "test_pipelines.py:" in grads and "of the pipeline holds" in grads and "@ms.jit" in grads, (name, grads)
            else:
                assert [entry is not None for entry in grads] == [rank == 0, rank == 0, rank == 1, rank == 1], name
                for grad, expected in zip(grads, alone[name]):
                    if grad is not None:
                        np.testing.assert_allclose(grad, expected, rtol=1e-4, atol=1e-7, err_msg=name)


def _evaluated(is_cut: bool) -> dict[str, Any]:
    import mindspore as ms
    from mindspore import nn

    begin(is_cut)
    net = nn.SequentialCell([nn.SequentialCell([nn.Dense(16, 32), nn.ReLU()]), nn.Dense(32, 64)])
    net[0].pipeline_stage, net[1].pipeline_stage = 0, 1
    source = np.random.default_rng(0)
    rows = {"x": source.standard_normal((32, 16)).astype(np.float32), "y": source.integers(0, 64, 32).astype(np.int32)}
    model = ms.Model(net, nn.CrossEntropyLoss(), metrics={"loss", "top_5_accuracy"})
    return dict(model.eval(ms.dataset.NumpySlicesDataset(rows, shuffle=False).batch(16)))


def test_metrics_are_computed_everywhere(workers: Any) -> None:
    (alone,) = workers(1, _evaluated, False)
    for actual in workers(2, _evaluated, True):
        assert actual == pytest.approx(alone, rel=1e-6)


def _broadcast() -> Any:
    from mindspore import Tensor, nn

    begin(True, pipeline_result_broadcast=True)
    net = nn.SequentialCell([nn.Dense(16, 64), nn.Dense(64, 64)])
    net[0].pipeline_stage, net[1].pipeline_stage = 0, 1
    return net(Tensor(np.ones((8, 16), np.float32))).asnumpy()


def test_results_go_to_all_stages_on_request(workers: Any) -> None:
    first, second = workers(2, _broadcast)
    assert not np.isnan(first).any()
    np.testing.assert_array_equal(first, second)


def _small(kind: str, is_cut: bool) -> list[float]:
    """Parameters of few numbers, read by one graph and written by another."""
    import mindspore as ms
    from mindspore import Tensor, nn

    begin(is_cut)
    net = nn.SequentialCell([nn.SequentialCell([nn.Dense(8, 8), nn.BatchNorm1d(8)]) for _ in range(2)])
    net[0].pipeline_stage, net[1].pipeline_stage = 0, 1
    loss, optimizer = nn.PipelineCell(nn.WithLossCell(net, nn.MSELoss()), 2), nn.SGD(net.trainable_params(), 0.1)
    x = np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32)
    batch = Tensor(x), Tensor(x[::-1].copy())
    results = []
    if kind == "read first":
        net.set_train(False)
        results.append(float(loss(*batch).asnumpy()))
    net.set_train()
    gradients = ms.value_and_grad(loss, None, optimizer.parameters)
    for _ in range(3):
        value, grads = gradients(*batch)
        optimizer(grads)
        results.append(float(value.asnumpy()))
    net.set_train(False)
    return [*results, float(loss(*batch).asnumpy())]


@pytest.mark.parametrize("kind", ["read first", "trained first"])
def test_what_one_graph_reads_and_another_writes_has_one_home(kind: str, workers: Any) -> None:
    (alone,) = workers(1, _small, kind, False)
    for result in workers(2, _small, kind, True):
        np.testing.assert_allclose(result, alone, rtol=1e-5)


def _shared(length: int, is_cut: bool) -> list[float]:
    """A Parameter of two stages, read by a graph before, and one after, another trains it."""
    from mindspore import Parameter, Tensor, nn, ops

    begin(is_cut)
    source = np.random.default_rng(3)
    shared = Parameter(Tensor(source.standard_normal(length).astype(np.float32)), name="shared")

    class Scaled(nn.Cell):
        def __init__(self, stage: int) -> None:
            super().__init__()
            self.scale, self.dense, self.pipeline_stage = shared, nn.Dense(length, length), stage

        def construct(self, x: Any) -> Any:
            return ops.tanh(self.dense(x) * self.scale)

    net = nn.SequentialCell([Scaled(0), Scaled(1)])
    loss = nn.WithLossCell(net, nn.MSELoss())
    step = nn.TrainOneStepCell(nn.PipelineCell(loss, 2), nn.SGD(net.trainable_params(), 0.1))
    x = Tensor(source.standard_normal((8, length)).astype(np.float32))
    return [float(call(x, x).asnumpy()) for call in (loss, step, step, loss, step)]


@pytest.mark.parametrize("length", [8, 32])
def test_a_shared_parameter_that_is_read_before_it_is_trained(length: int, workers: Any) -> None:
    (alone,) = workers(1, _shared, length, False)
    for result in workers(2, _shared, length, True):
        np.testing.assert_allclose(result, alone, rtol=1e-5)
