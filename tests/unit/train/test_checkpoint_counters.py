"""ModelCheckpoint and `ascend_config` share the counters of a training: `need_ckpt`, `save_checkpoint_steps`, ..."""
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import nn, train

from torchspore.graph.report import stages

NAMES = ("need_ckpt", "save_checkpoint_steps", "cur_step_num", "last_triggered_step")


def counters() -> tuple[Any, ...]:
    return tuple(ms.get_context(name) for name in NAMES)


class AtStep(train.Callback):  # type: ignore[misc]
    """Calls `functions[step]` when a step begins, and records the counters when it begins and when it has ended."""

    def __init__(self, functions: dict[int, Callable[[], Any]] | None = None) -> None:
        self.functions, self.at_begin, self.at_end = functions or {}, [], []  # type: ignore[var-annotated]
        self.net_calls = 0

    def on_train_step_begin(self, run_context: Any) -> None:
        self.at_begin.append(counters())
        self.functions.get(run_context.original_args().cur_step_num, lambda: None)()

    def on_train_step_end(self, run_context: Any) -> None:
        self.at_end.append(counters())


def set_counter(**values: Any) -> Callable[[], None]:
    return lambda: ms.set_context(ascend_config=values)


def trained(folder: Path, watch: AtStep, config: train.CheckpointConfig, rows: int = 16) -> list[int]:
    """Train one epoch of eight steps; return the steps in the names of the files, in order."""
    data = ms.dataset.NumpySlicesDataset((np.ones((rows, 3), np.float32), np.ones((rows, 2), np.float32)), shuffle=False).batch(2)
    net = nn.Dense(3, 2)
    checkpoint = train.ModelCheckpoint("net", str(folder), config)
    train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1)).train(1, data, callbacks=[checkpoint, watch])
    return sorted(int(path.stem.split("_")[-1]) for path in folder.glob("net-*.ckpt"))


def test_the_context_shows_the_counters_of_a_training(mode: int, tmp_path: Path) -> None:
    watch = AtStep()
    assert trained(tmp_path, watch, train.CheckpointConfig(save_checkpoint_steps=3)) == [3, 6, 8]
    assert watch.at_begin == [(True, 3, 1, 0), (True, 3, 2, 0), (True, 3, 3, 0), (True, 3, 4, 3), (True, 3, 5, 3), (True, 3, 6, 3),
                              (True, 3, 7, 6), (True, 3, 8, 6)]
    assert watch.at_end[2] == (True, 3, 3, 3)
    assert counters() == (False, 3, 8, 8)


@pytest.mark.parametrize(("functions", "steps"), [
    ({}, [4, 8]),
    ({2: set_counter(save_checkpoint_steps=2)}, [2, 4, 6, 8]),
    ({2: set_counter(save_checkpoint_steps=2), 5: set_counter(save_checkpoint_steps=4)}, [2, 4, 8]),
    ({2: set_counter(last_triggered_step=2)}, [6, 8]),
    ({4: set_counter(need_ckpt=False)}, [8]),
    ({4: set_counter(need_ckpt=False), 6: set_counter(need_ckpt=True)}, [6, 8]),
    ({3: set_counter(cur_step_num=40)}, [3, 7, 8]),
], ids=["unchanged", "steps", "steps-and-back", "last-step", "suspended", "suspended-and-back", "current-step"])
def test_a_callback_steers_model_checkpoint_through_the_context(
    mode: int, functions: dict[int, Callable[[], Any]], steps: list[int], tmp_path: Path
) -> None:
    assert trained(tmp_path, AtStep(functions), train.CheckpointConfig(save_checkpoint_steps=4, keep_checkpoint_max=9)) == steps


def test_values_from_before_the_training_change_nothing(tmp_path: Path) -> None:
    ms.set_context(ascend_config={"need_ckpt": False, "save_checkpoint_steps": 1, "last_triggered_step": 5})
    assert trained(tmp_path, AtStep(), train.CheckpointConfig(save_checkpoint_steps=4)) == [4, 8]


def test_a_training_that_saves_by_time_shows_one_step(tmp_path: Path) -> None:
    watch = AtStep()
    trained(tmp_path, watch, train.CheckpointConfig(save_checkpoint_steps=0, save_checkpoint_seconds=1000))
    assert watch.at_begin[0] == (True, 1, 1, 0)


def test_the_counters_of_the_first_of_several_are_shown(tmp_path: Path) -> None:
    data = ms.dataset.NumpySlicesDataset((np.ones((8, 3), np.float32), np.ones((8, 2), np.float32)), shuffle=False).batch(2)
    net, watch = nn.Dense(3, 2), AtStep({2: set_counter(need_ckpt=False)})
    both = [train.ModelCheckpoint(name, str(tmp_path), train.CheckpointConfig(steps)) for name, steps in (("first", 3), ("second", 1))]
    train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1)).train(1, data, callbacks=[*both, watch])
    assert watch.at_begin[3] == (False, 3, 4, 0)
    assert sorted(path.name for path in tmp_path.glob("*.ckpt")) == ["first-1_4.ckpt", *(f"second-1_{step}.ckpt" for step in (1, 2, 3, 4))]


def test_counters_never_rebuild_a_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    compilations = []
    monkeypatch.setattr(stages, "emitted", lambda *_arguments: compilations.append(1))
    net = nn.Dense(3, 2)
    for step in range(1, 6):
        counters = {"need_ckpt": True, "save_checkpoint_steps": 2, "cur_step_num": step, "last_triggered_step": step // 2}
        ms.set_context(ascend_config=counters)
        net(ms.ops.ones((2, 3)))
    assert len(compilations) == 1
    ms.set_context(ascend_config={"jit_compile": False})
    net(ms.ops.ones((2, 3)))
    assert len(compilations) == 2


def test_a_setting_of_another_member_leaves_the_counters(tmp_path: Path) -> None:
    watch = AtStep({3: lambda: ms.set_context(ascend_config={"jit_compile": True})})
    trained(tmp_path, watch, train.CheckpointConfig(save_checkpoint_steps=2))
    assert watch.at_begin[3:5] == [(True, 2, 4, 2), (True, 2, 5, 4)]
