"""Training with `set_ps_context`: the numbers of one process, whatever the optimizer, the layers, the mode and the number of processes."""
from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import server_jobs
from support.server_jobs import EXITED

pytest.importorskip("grpc")
STEPS, BATCH, ROWS = 6, 8, 40


def _job(workers: Any, counts: tuple[int, int], function: Callable[..., Any], *arguments: Any, **options: Any) -> list[Any]:
    """What the workers of a job return, with this many workers and servers."""
    number, servers = counts
    results = workers(number + servers + 1, _run, number, servers, server_jobs.free_port(), function.__name__, arguments, **options)
    assert results[number:] == [EXITED] * (servers + 1)
    return list(results[:number])


def _run(number: int, servers: int, port: int, name: str, arguments: tuple[Any, ...]) -> Any:
    return server_jobs.run_role(number, servers, port, globals()[name], *arguments)


def _batch(step: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """This process's part of the ids, features and labels of a step."""
    random = np.random.RandomState(step)
    ids, (x, y) = random.randint(0, ROWS, (BATCH, 3)).astype(np.int32), (random.randn(BATCH, n).astype(np.float32) for n in (6, 1))
    count = int(os.environ.get("MS_WORKER_NUM", 1))
    return tuple(np.array_split(value, count)[int(os.environ.get("MS_NODE_ID", 0)) % count] for value in (ids, x, y))  # type: ignore[return-value]


OPTIMIZERS = {
    "SGD": {"learning_rate": 0.1, "momentum": 0.9, "weight_decay": 0.01},
    "Momentum": {"learning_rate": 0.1, "momentum": 0.9, "use_nesterov": True},
    "Adam": {"learning_rate": 0.01}, "AdamWeightDecay": {"learning_rate": 0.01, "weight_decay": 0.1}, "LazyAdam": {"learning_rate": 0.01},
    "Adagrad": {"learning_rate": 0.1}, "RMSProp": {"learning_rate": 0.01, "centered": True}, "FTRL": {"learning_rate": 0.1},
    "ProximalAdagrad": {"learning_rate": 0.1}, "AdaMax": {"learning_rate": 0.01}, "Adadelta": {"learning_rate": 1.0},
    "ASGD": {"learning_rate": 0.1},
    "Rprop": {"learning_rate": 0.01}, "Lamb": {"learning_rate": 0.01}, "LARS": {}, "Own": {"learning_rate": 0.1}, "Groups": {},
    "Schedule": {}, "Array": {}, "AdaFactor": {"learning_rate": 0.01, "relative_step": False, "scale_parameter": False},
}


def _optimizer(name: str, parameters: Any) -> Any:
    from mindspore import nn, ops

    if name == "LARS":
        return nn.LARS(nn.Momentum(parameters, 0.1, 0.9), coefficient=0.1)
    if name == "Groups":
        first, rest = parameters[:2], parameters[2:]
        return nn.Adam([{"params": first, "lr": 0.05, "weight_decay": 0.1}, {"params": rest}], 0.01)
    if name == "Schedule":
        return nn.Momentum(parameters, nn.ExponentialDecayLR(0.1, 0.5, 2), 0.9)
    if name == "Array":
        return nn.Momentum(parameters, [0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001], 0.9)
    if name == "Own":
        class Own(nn.Optimizer):
            def construct(self, gradients: Any) -> bool:
                total = sum((g * g).sum() for g in gradients)          # a formula that needs all gradients
                for parameter, gradient in zip(self.parameters, gradients):
                    ops.assign_sub(parameter, self.learning_rate * gradient / ops.sqrt(total + 1))
                return True

        return Own(0.1, parameters)
    return getattr(nn, name)(parameters, **OPTIMIZERS[name])


def _train(mode: int, optimizer: str, on_servers: str = "all", cache: int = 0, steps: int = STEPS, folder: str = "") -> dict[str, Any]:
    """Train a net with two tables; return losses and final values. `on_servers` is 'all', 'tables' or '' for one process."""
    import mindspore as ms
    from mindspore import Tensor, nn, ops

    ms.set_context(mode=mode, device_target="CPU")
    if on_servers:
        ms.set_ps_context(enable_ps=True)
    ms.set_seed(5)

    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            cached = {"vocab_cache_size": cache} if cache else {}
            self.deep = nn.EmbeddingLookup(ROWS, 4, target="DEVICE", sparse=optimizer != "Own", **cached)
            self.wide = nn.Embedding(ROWS, 1)
            self.hidden, self.out = nn.Dense(18, 5), nn.Dense(5, 1)

        def construct(self, ids: Any, x: Any) -> Any:
            deep = ops.concat([self.deep(ids).reshape(ids.shape[0], -1), x], 1)
            return self.out(ops.tanh(self.hidden(deep))) + self.wide(ids).sum(1)

    net = Net()
    if on_servers == "all":
        net.set_param_ps()
    elif on_servers:
        net.wide.set_param_ps()
        net.deep.embedding_table.set_param_ps()
    inner = _optimizer(optimizer, net.trainable_params())
    loss_fn = nn.MSELoss()
    step = nn.TrainOneStepCell(nn.WithLossCell(_Pair(net), loss_fn), inner)
    losses = []
    for number in range(steps):
        ids, x, y = map(Tensor, _batch(number))
        losses.append(float(step((ids, x), y).asnumpy()))
    values = {parameter.name: parameter.asnumpy().copy() for parameter in net.get_parameters()}
    if folder and os.environ.get("MS_NODE_ID", "0") == "0":
        ms.save_checkpoint(net, folder)
    return {"losses": losses, "values": values}


def _Pair(net: Any) -> Any:
    from mindspore import nn

    class Pair(nn.Cell):
        def __init__(self) -> None:
            super().__init__(auto_prefix=False)
            self.net = net

        def construct(self, data: Any) -> Any:
            return self.net(*data)

    return Pair()


def _check(results: list[Any], alone: Any, tolerance: float = 1e-6) -> None:
    losses = np.mean([result["losses"] for result in results], 0)
    np.testing.assert_allclose(losses, alone["losses"], rtol=1e-5, atol=max(1e-5, tolerance))
    for result in results:
        for name, value in alone["values"].items():
            np.testing.assert_allclose(result["values"][name], value, rtol=1e-5, atol=tolerance, err_msg=name)


def _alone(workers: Any, *arguments: Any) -> Any:
    variables = dict.fromkeys(("RANK", "WORLD_SIZE", "MS_ROLE", "MS_NODE_ID", "MS_WORKER_NUM"), "<unset>")
    return workers(1, _train, *arguments, **variables)[0]


QUICK = ("Adam", "LazyAdam", "Own")


@pytest.mark.parametrize("name", [
    name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in OPTIMIZERS
])
def test_every_optimizer_gives_the_numbers_of_one_process(workers: Any, name: str) -> None:
    tolerance = 1e-3 if name == "Lamb" else 2e-6          # Lamb divides gradients near 0 by their size, and rounding grows
    _check(_job(workers, (2, 2), _train, 1, name), _alone(workers, 1, name, ""), tolerance)


@pytest.mark.parametrize(("name", "cache", "on_servers"), [("Adam", 24, "all"), ("FTRL", 30, "tables"), ("LazyAdam", 24, "all")])
def test_graph_mode_and_caches(workers: Any, name: str, cache: int, on_servers: str) -> None:
    alone = _alone(workers, 0, name, "")
    if on_servers == "all":
        _check(_job(workers, (2, 1), _train, 0, name, on_servers, cache), alone)
    else:                                                 # each worker updates the dense layers by its own gradients
        (result,) = _job(workers, (1, 2), _train, 0, name, on_servers, cache)
        _check([result], alone)


def _train_by_model(on_servers: bool) -> Any:
    import mindspore as ms
    from mindspore import nn

    ms.set_context(mode=0, device_target="CPU")
    if on_servers:
        ms.set_ps_context(enable_ps=True)
    from mindspore.communication import get_group_size, get_rank, init

    init()
    ms.set_seed(2)
    net = nn.SequentialCell(nn.Dense(6, 8), nn.ReLU(), nn.Dense(8, 1))
    if on_servers:
        net.set_param_ps()
    random = np.random.RandomState(0)
    x, y = random.randn(32, 6).astype(np.float32), random.randn(32, 1).astype(np.float32)
    data = ms.dataset.NumpySlicesDataset((x, y), ["x", "y"], shuffle=False).batch(4 if on_servers else 8)
    if on_servers:                                        # worker 0 has the first half of each batch of one process
        order = np.arange(32).reshape(4, 2, 4)[:, get_rank() % 2].reshape(-1)
        data = ms.dataset.NumpySlicesDataset((x[order], y[order]), ["x", "y"], shuffle=False).batch(4)
    optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
    model = ms.Model(net, nn.MSELoss(), optimizer, metrics={"mse"})

    class Lower(ms.Callback):
        def on_train_step_end(self, run_context: Any) -> None:
            optimizer.learning_rate.set_data(ms.Tensor(0.1 / run_context.original_args().cur_step_num, ms.float32))

    model.train(2, data, callbacks=[Lower()], dataset_sink_mode=False)
    return {
        "values": [p.asnumpy() for p in net.get_parameters()], "step": int(optimizer.global_step.asnumpy()[0]),
        "rate": float(optimizer.get_lr().asnumpy()), "size": get_group_size(),
    }


def test_model_train_follows_a_rate_that_a_callback_sets(workers: Any) -> None:
    variables = dict.fromkeys(("RANK", "WORLD_SIZE"), "<unset>")
    alone = workers(1, _train_by_model, False, **variables)[0]
    for result in _job(workers, (2, 1), _train_by_model, True):
        assert (result["step"], result["size"]) == (alone["step"], 2) == (8, 2)
        assert result["rate"] == alone["rate"]
        for value, expected in zip(result["values"], alone["values"]):
            np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-6)


def _bits(on_servers: bool) -> Any:
    """Rows whose gradients are small integers: their sums are exact in any order, so that all bits must be equal."""
    import mindspore as ms
    from mindspore import Tensor, nn

    ms.set_context(mode=1, device_target="CPU")
    if on_servers:
        ms.set_ps_context(enable_ps=True)
    ms.set_seed(1)
    table = nn.EmbeddingLookup(ROWS, 3, target="DEVICE")
    if on_servers:
        table.set_param_ps()
    optimizer = nn.LazyAdam(table.trainable_params(), 0.1)
    gradient = ms.value_and_grad(lambda ids, scale: (table(ids) * scale).sum(), None, optimizer.parameters)
    for step in range(5):
        ids, _, _ = _batch(step)
        workers = int(os.environ.get("MS_WORKER_NUM", 1))
        optimizer(gradient(Tensor(ids), Tensor(np.float32(workers * (step + 1))))[1])
    return table.embedding_table.asnumpy().tobytes()


def test_sparse_updates_are_equal_in_all_bits(workers: Any) -> None:
    variables = dict.fromkeys(("RANK", "WORLD_SIZE", "MS_ROLE", "MS_NODE_ID", "MS_WORKER_NUM"), "<unset>")
    alone = workers(1, _bits, False, **variables)[0]
    assert _job(workers, (2, 2), _bits, True) == [alone, alone]


def _resume(path: str) -> Any:
    """Train from a checkpoint, which fills the servers."""
    import mindspore as ms

    ms.set_context(mode=1, device_target="CPU")
    ms.set_ps_context(enable_ps=True)
    from mindspore import Tensor, nn

    net = nn.EmbeddingLookup(ROWS, 4, target="DEVICE", vocab_cache_size=20)
    net.set_param_ps()
    optimizer = nn.SGD(net.trainable_params(), 0.0)
    loaded = {"embedding_table": ms.load_checkpoint(path)["deep.embedding_table"]}
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer)
    ids = Tensor(np.arange(4).astype(np.int32))
    step(ids, Tensor(np.zeros((4, 4), np.float32)))
    before = net(ids).asnumpy()
    ms.load_param_into_net(net, loaded)
    step(ids, Tensor(np.zeros((4, 4), np.float32)))
    return before, net(ids).asnumpy(), net.embedding_table.asnumpy()


def test_checkpoints_have_all_values_and_fill_the_servers(workers: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "net.ckpt")
    results = _job(workers, (2, 2), _train, 1, "Adam", "all", 24, 2, path)
    import mindspore as ms

    saved = ms.load_checkpoint(path)
    assert list(saved) == list(results[0]["values"])
    for name, value in results[0]["values"].items():
        assert np.array_equal(saved[name].asnumpy(), value), name
    table = saved["deep.embedding_table"].asnumpy()
    for before, rows, full in _job(workers, (2, 2), _resume, path):
        assert not np.array_equal(before, table[:4]) and np.array_equal(rows, table[:4]) and np.array_equal(full, table)


def _lose(victim: str, seconds: float) -> Any:
    """Train until the victim kills itself; return the error and how long it took."""
    import mindspore as ms
    from mindspore import Tensor, nn

    from torchspore.errors import CommunicationError
    from torchspore.mindspore.common import server_session

    ms.set_context(mode=1, device_target="CPU")
    ms.set_ps_context(enable_ps=True)
    net = nn.Dense(2, 2)
    net.set_param_ps()
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.1))
    name = f"{os.environ['MS_ROLE']} {os.environ['MS_NODE_ID']}"
    if name == victim:
        signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        signal.setitimer(signal.ITIMER_REAL, seconds)
    begun = time.monotonic()
    try:
        while time.monotonic() < begun + 30:
            step(Tensor(np.ones((2, 2), np.float32)), Tensor(np.ones((2, 2), np.float32)))
    except CommunicationError as error:
        server_session.leave()
        return str(error), time.monotonic() - begun
    return "no error", 0.0


@pytest.mark.parametrize("victim", ["MS_WORKER 1", "MS_PSERVER 0", "MS_SCHED 0"])
def test_a_killed_process_is_named_by_all_others(workers: Any, victim: str) -> None:
    ended = workers.ended(5, _run, 2, 2, server_jobs.free_port(), "_lose", (victim, 3.0))
    kind = {"MS_WORKER 1": "worker 1 is lost", "MS_PSERVER 0": "server 0 is lost", "MS_SCHED 0": "the scheduler is lost"}[victim]
    killed = {"MS_WORKER 1": 1, "MS_PSERVER 0": 2, "MS_SCHED 0": 4}[victim]
    for number, process in enumerate(ended):
        if number == killed:
            assert process.code == -signal.SIGKILL
        else:
            text, seconds = process.value or (process.error, 0.0)
            assert kind in text and not process.is_late, (number, text, process.out)
            assert seconds < 3.0 + 2.0 * max(1.0, os.getloadavg()[0])


def _fail() -> Any:
    if os.environ["MS_ROLE"] == "MS_WORKER" and os.environ["MS_NODE_ID"] == "1":
        import mindspore as ms

        from torchspore.distributed.parameter_server import roles
        from torchspore.mindspore.common import server_session

        ms.set_ps_context(enable_ps=True)
        server_session.join(roles.read())
        raise ZeroDivisionError("the program of worker 1")
    return _lose("", 0.0)


def test_an_exception_of_one_worker_is_told_to_the_others(workers: Any) -> None:
    ended = workers.ended(4, _run, 2, 1, server_jobs.free_port(), "_fail", ())
    assert ended[1].text == "the program of worker 1"
    assert "worker 1 failed: ZeroDivisionError: the program of worker 1" in ended[0].value[0]
