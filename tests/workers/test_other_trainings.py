"""Ranks whose exchanges are equal and mean other numbers are named in every rank: another factor, another rate, another context."""
from __future__ import annotations

import re
from typing import Any

import pytest
from support.patches import replace


def _start(mode: int) -> Any:
    import mindspore as ms
    from mindspore import communication

    from torchspore.distributed.comm import watchdog

    replace(watchdog, LATE=0.3, RETRY_SECONDS=0.1)
    communication.init()
    ms.set_context(mode=mode)
    ms.set_seed(1)
    return ms, communication.get_rank()


def _step(ms: Any, rank: int, differs: str) -> Any:
    """A step in which one thing differs by the rank."""
    from mindspore import nn

    is_split = differs.startswith("split")
    context: dict[str, Any] = {"parallel_mode": "semi_auto_parallel" if is_split else "data_parallel", "gradients_mean": True}
    if rank and differs.endswith("gradients_mean"):
        context["gradients_mean"] = False
    if rank and differs == "grad_accumulation_step":
        context["grad_accumulation_step"] = 2
    ms.set_auto_parallel_context(**context)
    net = nn.WithLossCell(nn.Dense(3, 2), nn.MSELoss())
    optimizer = nn.Momentum(net.trainable_params(), 0.5 if rank and differs == "rate" else 0.1, 0.9)
    return nn.TrainOneStepCell(net, optimizer)


def _custom_step(ms: Any, rank: int, differs: str) -> Any:
    """A step of the program's own around a reducer."""
    from mindspore import nn, ops

    ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)

    class Step(nn.Cell):
        def __init__(self) -> None:
            super().__init__(auto_prefix=False)
            self.net = nn.WithLossCell(nn.Dense(3, 2), nn.MSELoss())
            rate, decay = 0.5 if rank and differs == "own rate" else 0.1, 0.01 if rank and differs == "own decay" else 0.0
            self.optimizer = nn.Momentum(self.net.trainable_params(), rate, 0.9, weight_decay=decay)
            self.reducer = nn.DistributedGradReducer(self.optimizer.parameters)
            self.gradients = ops.GradOperation(get_by_list=True)

        def construct(self, x: Any, y: Any) -> Any:
            return self.optimizer(self.reducer(self.gradients(self.net, self.optimizer.parameters)(x, y)))

    return Step()


def _train(differs: str, mode: int) -> Any:
    import numpy as np

    ms, rank = _start(mode)
    step = (_custom_step if differs.startswith("own") else _step)(ms, rank, differs)
    x, y = ms.Tensor(np.ones((4, 3)), ms.float32), ms.Tensor(np.ones((4, 2)), ms.float32)
    for _ in range(4):
        step(x, y)
    return True


DIFFERENCES = {
    "gradients_mean": ("gradients over processes", "means of 2", "sums"),
    "grad_accumulation_step": ("an update by Momentum", "at every step", "at one step of 2"),
    "split gradients_mean": ("set_auto_parallel_context(gradients_mean)", "True", "False"),
    "rate": ("the learning rate of Momentum", "0.1", "0.5"), "own rate": ("the learning rate of Momentum", "0.1", "0.5"),
    "own decay": ("the weight decay of Momentum", "0", "0.01"),
}


@pytest.mark.parametrize("differs, mode", [
    pytest.param("gradients_mean", 0, marks=pytest.mark.slow), ("gradients_mean", 1), ("grad_accumulation_step", 1), ("rate", 1),
    ("own rate", 1), pytest.param("own rate", 0, marks=pytest.mark.slow), pytest.param("own decay", 1, marks=pytest.mark.slow),
    pytest.param("split gradients_mean", 0, marks=pytest.mark.slow), pytest.param("grad_accumulation_step", 0, marks=pytest.mark.slow),
])
def test_another_training_is_named_in_both(workers: Any, differs: str, mode: int) -> None:
    subject, *message = DIFFERENCES[differs]
    for rank, ended in enumerate(workers.ended(2, _train, differs, mode, seconds=40)):
        assert ended.error == "CommunicationError", ended
        text = re.sub(r"[^ (]*/(test_\w+\.py):\d+", r"\1:N", re.sub(r"[0-9a-f]{8}", "N", re.sub(r"for \d+\.\d s", "for N s", ended.text)))
        what = "Broadcast(0) of int64[1]" if differs.startswith("split") else "AllReduce(sum) of float32[8]"
        line = "(test_other_trainings.py:N)"
        assert text == (
            f"test_other_trainings.py:N: rank {rank} waits in {what} over world (its number 1) for N s; rank {1 - rank} is "
            f"in it too, but computes otherwise. {subject}: {message[rank]} {line} here, {message[1 - rank]} {line} in rank {1 - rank}.\n\n"
            "hint: every rank must train with one context, one optimizer and one scale of the loss, or weights drift apart unseen."
        )


@pytest.mark.slow
def test_one_training_is_trained_in_all(workers: Any) -> None:
    for mode in (0, 1):
        for differs in ("nothing", "own nothing"):
            assert workers(2, _train, differs, mode) == [True, True]


def _train_in_groups(mode: int) -> Any:
    """Each group trains something of its own, by a schedule that knows its rank; all sum a number of theirs."""
    import numpy as np
    from mindspore import communication, nn, ops

    ms, rank = _start(mode)
    for rank_number in range(2):
        communication.create_group(f"group {rank_number}", [rank_number])
    ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
    net = nn.WithLossCell(nn.Dense(3, 2), nn.MSELoss())
    optimizer = nn.Momentum(net.trainable_params(), 0.5 if rank else 0.1, 0.9)
    step = nn.TrainOneStepCell(net, optimizer)
    step.grad_reducer = nn.DistributedGradReducer(optimizer.parameters, True, 1, group=f"group {rank}")
    x, y = ms.Tensor(np.ones((4, 3)), ms.float32), ms.Tensor(np.ones((4, 2)), ms.float32)
    total = ops.AllReduce()
    for _ in range(2):
        step(x, y)
        result = total(ms.Tensor([float(rank + 1)]))
    return result.asnumpy().tolist()


@pytest.mark.slow
def test_groups_that_train_other_things_may_meet(workers: Any) -> None:
    assert workers(2, _train_in_groups, 1) == [[3.0], [3.0]]


def test_local_values_are_not_reported() -> None:
    """A false alarm ends a training: neither addresses of objects are said nor what a schedule of the program's knows of its process."""
    import numpy as np
    from mindspore import Tensor, nn

    from torchspore.mindspore.nn.wrap import settings_report

    class Schedule(nn.LearningRateSchedule):
        def __init__(self, rate: float, rank: int) -> None:
            super().__init__()
            self.rate, self.rank, self.prints, self.file, self.members = rate, rank, rank == 0, f"rates_{rank}.txt", [rank]

    class Plain:
        pass

    assert [settings_report._describe(Schedule(0.1, rank)) for rank in range(2)] == ["Schedule(rate=0.1)"] * 2
    assert settings_report._describe(Schedule(0.2, 0)) == "Schedule(rate=0.2)"
    assert [settings_report._describe(value) for value in (Plain(), {"a": Plain()}, np.float32(0.5), None, True, 3)] == [
        "Plain", "dict", "0.5", "None", "True", "3",
    ]
    several = [[nn.ExponentialDecayLR(0.1 * rate, 0.9, 4) for _ in range(5)] for rate in (1, 1, 2)]
    first, again, other = map(settings_report._describe, several)
    assert first == again != other
    assert settings_report._describe([Plain()] * 5) == settings_report._describe([Plain() for _ in range(5)])
    assert settings_report._describe([Tensor([1.0])] * 5) != settings_report._describe([Tensor([2.0])] * 5)


def test_descriptions_differ_for_different_values() -> None:
    import numpy as np
    from mindspore import nn

    from torchspore.mindspore.nn.wrap import settings_report

    weights = nn.Dense(2, 2).trainable_params()
    decays = [nn.ExponentialDecayLR(0.1, 0.9, steps) for steps in (4, 5)]
    values: list[Any] = [0.1, 0.2, [0.1, 0.2, 0.3], [0.1, 0.25, 0.3], np.linspace(0, 1, 9).tolist(), *decays]
    descriptions = [settings_report._describe(nn.Momentum(weights, value, 0.9).learning_rate) for value in values]
    assert [re.sub("[0-9a-f]{8}", "N", message) for message in descriptions] == [
        "0.1", "0.2", *["RateTable(3 values from 0.1 to 0.3 (N))"] * 2, "RateTable(9 values from 0 to 1 (N))",
        *[f"ExponentialDecayLR(learning_rate=0.1, decay_rate=0.9, decay_steps={steps}, is_stair=False)" for steps in (4, 5)],
    ]
    assert len(set(descriptions)) == len(descriptions)
    second = [settings_report._describe(nn.Momentum(weights, value, 0.9).learning_rate) for value in values]
    assert second == descriptions
