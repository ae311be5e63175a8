"""The files of a split that the context names: strategies of operators with layouts of Parameters, and groups of devices."""
from __future__ import annotations

from pathlib import Path
from typing import Any

from torchspore.context import effects
from torchspore.context.effects import Outcome
from torchspore.context.store import STORE
from torchspore.engine.shard import devices
from torchspore.engine.shard.strategies import TensorLayout
from torchspore.mindspore.train import strategy_file
from torchspore.mindspore.train.strategy_file import StrategyFile, stored

_CONFIG = "auto_parallel.strategy_ckpt_config."
_files: dict[str, StrategyFile] = {}


def written(split: Any) -> None:
    """Writes the files for one graph that was split. Raises OSError."""
    path, groups = str(STORE.get(_CONFIG + "save_file")), str(STORE.get("auto_parallel.group_ckpt_save_file"))
    if path:
        _strategies(Path(path), split)
    if groups:
        _groups(Path(groups), split)


def _strategies(path: Path, split: Any) -> None:
    file = _files.setdefault(str(path.absolute()), StrategyFile())          # several graphs of a run, one file
    trained_only = bool(STORE.get(_CONFIG + "only_trainable_params"))
    for name, (matrix, places, shape, trained) in split.spread.parameters.items():
        if trained or not trained_only:
            file.layouts[name] = stored(TensorLayout(matrix or (split.spread.count,), places), shape)
    file.strategies.update({name: (0, [list(one) for one in strategy]) for name, strategy in split.spread.strategies.items()})
    strategy_file.write(path, file)
    effects.report(_CONFIG + "save_file", Outcome.applied(f"{len(file.strategies)} strategies and {len(file.layouts)} layouts in {path}"))
    effects.report(_CONFIG + "only_trainable_params", Outcome.applied(f"{len(file.layouts)} layouts are in the file"))


def _groups(path: Path, split: Any) -> None:
    mesh, rank = split.local.mesh, devices.rank()
    used = {step.axes for placed in split.local.placed for step, _ in placed.steps if step.kind != "cut"}
    made = {"-".join(map(str, mesh.group(rank, axes))): mesh.group(rank, axes) for axes in sorted(used)}
    cutting = {axis for layout, _ in split.local.inputs for axis in layout.axes}
    same = mesh.group(rank, [axis for axis in range(len(mesh.sizes)) if axis not in cutting])
    strategy_file.write_groups(path, made, same)
    effects.report("auto_parallel.group_ckpt_save_file", Outcome.applied(f"{len(made)} groups in {path}"))

