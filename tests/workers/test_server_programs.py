"""Unusual programs in a parameter server job: the numbers of one process, or an error that says what the program must change."""
from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import server_jobs
from support.server_jobs import EXITED

pytest.importorskip("grpc")
ALONE = dict.fromkeys(("RANK", "WORLD_SIZE", "MS_ROLE", "MS_NODE_ID", "MS_WORKER_NUM"), "<unset>")


def _run(number: int, servers: int, port: int, name: str, arguments: tuple[Any, ...]) -> Any:
    return server_jobs.run_role(number, servers, port, globals()[name], *arguments)


def _worker() -> int:
    return int(os.environ.get("MS_NODE_ID", 0))


def _part(value: np.ndarray) -> Any:
    """Return this process's part of a batch, as a Tensor."""
    from mindspore import Tensor

    count = int(os.environ.get("MS_WORKER_NUM", 1))
    return Tensor(np.array_split(value, count)[_worker() % count])


def _batch(step: int) -> tuple[Any, Any]:
    random = np.random.RandomState(step)
    return _part(random.randn(8, 4).astype(np.float32)), _part(random.randn(8, 2).astype(np.float32))


def _begin(mode: int) -> bool:
    """Set the context; return whether this process has a role in a job."""
    import mindspore as ms

    ms.set_context(mode=mode, device_target="CPU")
    if "MS_ROLE" in os.environ:
        ms.set_ps_context(enable_ps=True)
    ms.set_seed(3)
    return "MS_ROLE" in os.environ


def _net(mode: int) -> Any:
    from mindspore import nn

    has_role = _begin(mode)
    net = nn.SequentialCell(nn.Dense(4, 6), nn.ReLU(), nn.Dense(6, 2))
    if has_role:
        net.set_param_ps()
    return net


def _step(net: Any, optimizer: Any) -> Any:
    from mindspore import nn

    return nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer)


def _values(cell: Any) -> dict[str, np.ndarray]:
    return {parameter.name: parameter.asnumpy().astype(np.float32).copy() for parameter in cell.get_parameters()}


def _clip(mode: int) -> Any:
    """The program clips the weights after each step, as in a Wasserstein GAN."""
    import mindspore as ms
    from mindspore import Tensor, nn, ops

    net = _net(mode)
    step = _step(net, nn.RMSProp(net.trainable_params(), 0.05))
    for number in range(5):
        step(*_batch(number))
        if number < 4:
            for parameter in net.trainable_params():
                parameter.set_data(ops.clip_by_value(parameter, Tensor(-0.1, ms.float32), Tensor(0.1, ms.float32)))
    return _values(net)


def _clip_in_step(mode: int) -> Any:
    """The training cell clips the weights, and its `construct` takes the gradient."""
    from mindspore import nn, ops

    net = _net(mode)

    class Step(nn.TrainOneStepCell):
        def construct(self, *batch: Any) -> Any:
            loss = self.network(*batch)
            gradients = self.grad(self.network, self.weights)(*batch, ops.ones_like(loss))
            loss = ops.depend(loss, self.optimizer(gradients))
            for parameter in self.weights:
                ops.assign(parameter, ops.clip_by_value(parameter, -0.1, 0.1))
            return loss

    step = Step(nn.WithLossCell(net, nn.MSELoss()), nn.RMSProp(net.trainable_params(), 0.05))
    for number in range(4):
        step(*_batch(number))
    return _values(net)


def _jit(mode: int) -> Any:
    """A function with @jit has the gradient and the update."""
    import mindspore as ms
    from mindspore import nn

    net = _net(mode)
    optimizer, loss_fn = nn.AdamWeightDecay(net.trainable_params(), 0.05), nn.MSELoss()
    gradient = ms.value_and_grad(lambda x, y: loss_fn(net(x), y), None, optimizer.parameters)

    @ms.jit
    def step(x: Any, y: Any) -> Any:
        loss, gradients = gradient(x, y)
        optimizer(gradients)
        return loss

    for number in range(4):
        step(*_batch(number))
    return _values(net)


def _late_context(mode: int) -> Any:
    """The program enables the parameter server after it has created the optimizer."""
    import mindspore as ms
    from mindspore import nn

    ms.set_context(mode=mode, device_target="CPU")
    ms.set_seed(3)
    net = nn.SequentialCell(nn.Dense(4, 6), nn.ReLU(), nn.Dense(6, 2))
    step = _step(net, nn.Momentum(net.trainable_params(), 0.1, 0.9))
    if "MS_ROLE" in os.environ:
        ms.set_ps_context(enable_ps=True)
        net.set_param_ps()
    for number in range(3):
        step(*_batch(number))
    return _values(net)


def _changed_numbers(mode: int) -> Any:
    """The program changes the weight decay, the momentum and the global step during the training."""
    import mindspore as ms
    from mindspore import Tensor, nn

    net = _net(mode)
    optimizer = nn.Momentum(net.trainable_params(), nn.ExponentialDecayLR(0.1, 0.5, 2), 0.9, weight_decay=0.1)
    step = _step(net, optimizer)
    for number in range(4):
        step(*_batch(number))
        if number == 1:
            optimizer.weight_decay = 0.9
            optimizer.momentum.set_data(Tensor(0.5, ms.float32))
            optimizer.global_step.set_data(Tensor([5], ms.int32))
    return _values(net)


def _states(mode: int) -> Any:
    """The states of the optimizer, and a training that goes back to a checkpoint with them."""
    import mindspore as ms
    from mindspore import nn

    net = _net(mode)
    step = _step(net, nn.Adam(net.trainable_params(), nn.ExponentialDecayLR(0.1, 0.5, 2)))
    for number in range(3):
        step(*_batch(number))
    saved = {name: ms.Parameter(ms.Tensor(value), name=name) for name, value in _values(step).items() if name != "global_step"}
    saved["global_step"] = ms.Parameter(ms.Tensor([3], ms.int32), name="global_step")
    for number in range(3):
        step(*_batch(number))
    ms.load_param_into_net(step, saved)
    for number in range(3):
        step(*_batch(number))
    return _values(step) | {f"saved {name}": value.asnumpy().astype(np.float32) for name, value in saved.items()}


def _lars(mode: int) -> Any:
    """LARS runs on one server, with the states of the optimizer that it wraps; the rate falls by a schedule."""
    from mindspore import nn

    net = _net(mode)
    step = _step(net, nn.LARS(nn.Momentum(net.trainable_params(), nn.ExponentialDecayLR(0.1, 0.5, 2), 0.9), coefficient=0.1))
    for number in range(4):
        step(*_batch(number))
    return {name: value for name, value in _values(step).items() if not name.startswith("fake")}


def _accumulated(mode: int) -> Any:
    """The gradients of two batches are summed in Parameters, which the program clears in place."""
    from mindspore import nn, ops

    net = _net(mode)
    optimizer = nn.Adam(net.trainable_params(), 0.05)

    class Step(nn.Cell):
        def __init__(self) -> None:
            super().__init__(auto_prefix=False)
            self.net, self.optimizer, self.weights = nn.WithLossCell(net, nn.MSELoss()), optimizer, optimizer.parameters
            self.sums, self.gradient = optimizer.parameters.clone("sum", init="zeros"), ops.GradOperation(get_by_list=True)

        def construct(self, x: Any, y: Any, is_last: bool) -> Any:
            loss = self.net(x, y)
            for total, gradient in zip(self.sums, self.gradient(self.net, self.weights)(x, y)):
                ops.assign_add(total, gradient)
            if is_last:
                loss = ops.depend(loss, self.optimizer(self.sums))
                for total in self.sums:
                    ops.assign(total, ops.zeros_like(total))
            return loss

    step = Step()
    for number in range(6):
        step(*_batch(number), number % 2 == 1)
    return _values(net)


def _overflow(mode: int, has_manager: bool) -> Any:
    """A batch of one worker overflows: all workers skip that step."""
    import mindspore as ms
    from mindspore import Tensor, nn

    net = _net(mode)
    optimizer = nn.Momentum(net.trainable_params(), 0.05, 0.9)
    scale = nn.DynamicLossScaleUpdateCell(2.0**4, 2, 2) if has_manager else Tensor(16.0, ms.float32)
    step = nn.TrainOneStepWithLossScaleCell(nn.WithLossCell(net, nn.MSELoss()), optimizer, scale)
    flags = []
    for number in range(5):
        x, y = (value.asnumpy() for value in _batch(number))
        if number == 2 and _worker() % 2 == 0:
            x = x * np.float32(np.inf)
        _, flag, after = step(Tensor(x), Tensor(y))
        flags += [float(flag.asnumpy()), float(after.asnumpy())]
    return _values(net) | {"flags": np.array(flags), "step": optimizer.global_step.asnumpy()}


def _all_finite(mode: int) -> Any:
    """A step written by hand asks `all_finite`, which all workers decide together."""
    import mindspore as ms
    from mindspore import Tensor, nn

    net = _net(mode)
    optimizer, loss_fn = nn.Momentum(net.trainable_params(), 0.05, 0.9), nn.MSELoss()
    gradient = ms.value_and_grad(lambda x, y: loss_fn(net(x), y), None, optimizer.parameters)
    for number in range(4):
        x, y = (value.asnumpy() for value in _batch(number))
        if number == 2 and _worker() % 2 == 0:
            x = x * np.float32(np.inf)
        _, gradients = gradient(Tensor(x), Tensor(y))
        if ms.amp.all_finite(gradients):
            optimizer(gradients)
    return _values(net)


def _small_table(mode: int, rows: int) -> Any:
    """A table with fewer rows than servers."""
    from mindspore import nn

    has_role = _begin(mode)
    net = nn.SequentialCell(nn.EmbeddingLookup(rows, 4, target="DEVICE"), nn.Dense(4, 2))
    if has_role:
        net.set_param_ps()
    step = _step(net, nn.Adam(net.trainable_params(), 0.05))
    for number in range(4):
        ids = np.random.RandomState(number).randint(0, rows, 8).astype(np.int32)
        step(_part(ids), _batch(number)[1])
    return _values(step)


def _large_table(mode: int, path: str) -> Any:
    """A table of 1 MB, whose rows the servers draw; worker 0 saves a checkpoint."""
    import mindspore as ms
    from mindspore import nn

    from torchspore.engine.tensors.delayed_values import is_delayed

    has_role = _begin(mode)
    net = nn.SequentialCell(nn.EmbeddingLookup(20_000, 16, target="DEVICE", vocab_cache_size=500 * has_role), nn.Dense(16, 2))
    if has_role:
        assert is_delayed(net[0].embedding_table._t)
        net[1].set_param_ps()
    step = _step(net, nn.LazyAdam(net.trainable_params(), 0.05))
    for number in range(4):
        step(_part(np.random.RandomState(number).randint(0, 20_000, 8).astype(np.int32)), _batch(number)[1])
    if _worker() == 0:
        ms.save_checkpoint(step, f"{path}{has_role:d}.ckpt")
    return _values(step)


def test_a_large_table_is_drawn_by_the_servers_and_saved_in_blocks(workers: Any, tmp_path: Path) -> None:
    import mindspore as ms

    path = str(tmp_path / "net")
    alone = workers(1, _large_table, 1, path, **ALONE)[0]
    results = workers(5, _run, 2, 2, server_jobs.free_port(), "_large_table", (1, path))
    saved = ms.load_checkpoint(path + "1.ckpt")
    assert list(saved) == list(alone) == list(ms.load_checkpoint(path + "0.ckpt"))
    used = np.unique([np.random.RandomState(number).randint(0, 20_000, 8) for number in range(4)])
    table, expected = results[0]["0.embedding_table"], alone["0.embedding_table"]
    assert np.array_equal(np.delete(table, used, 0), np.delete(expected, used, 0))
    for name, value in alone.items():
        np.testing.assert_allclose(results[1][name], value, rtol=1e-5, atol=2e-6, err_msg=name)
        assert np.array_equal(saved[name].asnumpy().reshape(value.shape), results[0][name]), name


SLOW = pytest.mark.slow
EQUAL = [
    ("_clip", 1, ()), ("_states", 0, ()), ("_changed_numbers", 0, ()), ("_overflow", 0, (True,)), ("_jit", 1, ()),
    *(pytest.param(*case, marks=SLOW) for case in (
        ("_clip", 0, ()), ("_clip_in_step", 0, ()), ("_clip_in_step", 1, ()), ("_jit", 0, ()), ("_late_context", 0, ()),
        ("_late_context", 1, ()), ("_changed_numbers", 1, ()), ("_states", 1, ()), ("_lars", 0, ()), ("_lars", 1, ()),
        ("_accumulated", 0, ()), ("_accumulated", 1, ()), ("_overflow", 1, (True,)), ("_overflow", 0, (False,)), ("_overflow", 1, (False,)),
        ("_all_finite", 0, ()), ("_all_finite", 1, ()), ("_small_table", 0, (1,)), ("_small_table", 1, (2,)),
    )),
]


@pytest.mark.parametrize(("name", "mode", "arguments"), EQUAL)
def test_the_numbers_are_those_of_one_process(workers: Any, name: str, mode: int, arguments: tuple[Any, ...]) -> None:
    alone = workers(1, globals()[name], mode, *arguments, **ALONE)[0]
    results = workers(6, _run, 2, 3, server_jobs.free_port(), name, (mode, *arguments))
    assert results[2:] == [EXITED] * 4
    for result in results[:2]:
        assert list(result) == list(alone)
        for parameter, value in alone.items():
            np.testing.assert_allclose(result[parameter], value, rtol=1e-5, atol=2e-6, err_msg=parameter)


# ---- programs that are refused


def _shared() -> Any:
    from mindspore import nn

    net = _net(1)
    step = _step(net, nn.Momentum(net.trainable_params(), 0.1, 0.9))
    other = _step(net, nn.Adam(net.trainable_params(), 0.1))
    step(*_batch(0))
    other(*_batch(1))


def _second_optimizer() -> Any:
    from mindspore import nn

    net = _net(1)
    _step(net, nn.Momentum(net.trainable_params(), 0.1, 0.9))(*_batch(0))
    nn.Adam(net.trainable_params(), 0.1)


def _late_mark() -> Any:
    from mindspore import nn

    net = _net(1)
    _step(net, nn.Momentum(net.trainable_params(), 0.1, 0.9))(*_batch(0))
    nn.Dense(2, 2).set_param_ps()


def _tied() -> Any:
    from mindspore import nn, ops

    _begin(1)

    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(6, 4)

        def construct(self, ids: Any) -> Any:
            return ops.matmul(self.embedding(ids), self.embedding.embedding_table.T)

    net = Net()
    net.set_param_ps()
    ids, labels = np.arange(8, dtype=np.int32) % 6, np.ones((8, 6), np.float32)
    _step(net, nn.Adam(net.trainable_params(), 0.1))(_part(ids), _part(labels))


def _outside() -> Any:
    from mindspore import nn

    _begin(1)
    net = nn.SequentialCell(nn.EmbeddingLookup(6, 4, target="DEVICE"), nn.Dense(4, 2))
    net.set_param_ps()
    _step(net, nn.Adam(net.trainable_params(), 0.1))(_part(np.arange(8, dtype=np.int32)), _batch(0)[1])


def _other_shape() -> Any:
    import mindspore as ms
    from mindspore import nn

    _begin(1)
    net = nn.SequentialCell(nn.EmbeddingLookup(6, 4, target="DEVICE"), nn.Dense(4, 2))
    net.set_param_ps()
    _step(net, nn.Adam(net.trainable_params(), 0.1))(_part(np.arange(8, dtype=np.int32) % 6), _batch(0)[1])
    net[0].embedding_table.set_data(ms.Tensor(np.zeros((5, 4), np.float32)))


def _unequal_steps() -> Any:
    from mindspore import nn

    net = _net(1)
    step = _step(net, nn.Adam(net.trainable_params(), 0.1))
    for number in range(3 + 2 * (_worker() % 2)):
        step(*_batch(number))


def _unequal_flags() -> Any:
    import mindspore as ms

    _unequal_steps_of = _net(1)
    step = _step(_unequal_steps_of, ms.nn.Adam(_unequal_steps_of.trainable_params(), 0.1))
    step(*_batch(0))
    if _worker() % 2:
        ms.amp.all_finite(ms.Tensor(1.0))


def _unequal_rates() -> Any:
    from mindspore import nn

    net = _net(1)
    _step(net, nn.Adam(net.trainable_params(), 0.1 * (1 + _worker())))(*_batch(0))


REFUSED: list[tuple[Callable[..., Any], str]] = [
    (_shared, "'0.weight' on servers, in Momentum and in Adam: expected each Parameter on servers in one optimizer."),
    (_second_optimizer, "Adam of '0.weight', which servers store, after the first step: expected all optimizers before the first gradient "
                        "or graph."),
    (_late_mark, "set_param_ps of 'weight' after the first step: expected set_param_ps before the first gradient or graph."),
    (_tied, "a gradient of embedding.embedding_table with NaN in all rows; servers store the table, and only lookups can read it: expected "
            "nn.Embedding and nn.EmbeddingLookup as its only readers."),
    (_outside, "which has 6 rows on servers."),
    (_other_shape, "set_data of '0.embedding_table', which servers store: expected shape [6, 4], got [5, 4]."),
    (_unequal_steps, "the program of worker 0 has ended after 3 steps of Adam 0; step 4 of Adam 0 needs all workers."),
    (_unequal_flags, "the program of worker 0 has ended after 1 steps of Adam 0; a decision of all workers waits for it."),
    (_unequal_rates, "at step 1 of Adam 0, another worker {"),
]


@pytest.mark.parametrize(("program", "text"), [
    pytest.param(program, text, marks=() if program in (_second_optimizer, _unequal_steps) else SLOW) for program, text in REFUSED
])
def test_a_program_that_cannot_be_served_is_refused(workers: Any, program: Any, text: str) -> None:
    ended = workers.ended(4, _run, 2, 1, server_jobs.free_port(), program.__name__, ())
    assert not any(process.is_late for process in ended)
    assert any(text in str(process.text) for process in ended[:2]), [(process.error, process.text) for process in ended]
