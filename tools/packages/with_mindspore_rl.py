"""mindspore_rl 0.7.0: its modules import, and DQN and PPO train two episodes in both modes.

Its environments import gym 0.26.2, which asks NumPy for a name that NumPy 2 lacks; the rows define it.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from module_imports import compare_modes, import_all

PACKAGE = "mindspore_rl==0.7.0"
NEEDS = ("gym==0.26.2", "gym-notices", "cloudpickle", "matplotlib", "contourpy", "cycler", "fonttools", "kiwisolver", "pyparsing", "pyyaml",
         "python-dateutil", "six", "astor", "packaging")
Row = tuple[str, str, Callable[[], dict[str, Any] | None]]


def rows(options: dict[str, Any]) -> Iterator[Row]:
    """Yield (name, group, function to run) of each row."""
    del options
    yield "every module", "imports", lambda: import_all("mindspore_rl", ("d4rl is not installed",))
    yield "DQN", "training", lambda: compare_modes(_dqn_losses)
    yield "PPO", "training", lambda: compare_modes(_ppo_losses)


def _prepare(mode: int) -> None:
    import mindspore as ms
    import numpy as np

    np.bool8 = np.bool_  # type: ignore[attr-defined]
    ms.set_context(mode=mode)
    ms.set_seed(1)
    np.random.seed(1)


def _losses(session: Any, trainer: type) -> list[float]:
    """Train two episodes. Return the loss and the reward of each."""
    from mindspore_rl.utils.callback import Callback  # type: ignore[import-not-found]

    values: list[float] = []

    class Recorder(Callback):  # type: ignore[misc]
        def episode_end(self, params: Any) -> None:
            values.extend(float(value.asnumpy().mean()) for value in (params.loss, params.total_rewards))

    session.callbacks = [Recorder()]
    session.run(class_type=trainer, episode=2)
    return values


def _dqn_losses(mode: int) -> list[float]:
    from mindspore_rl.algorithm.dqn import config  # type: ignore[import-not-found]
    from mindspore_rl.algorithm.dqn.dqn_session import DQNSession  # type: ignore[import-not-found]
    from mindspore_rl.algorithm.dqn.dqn_trainer import DQNTrainer  # type: ignore[import-not-found]

    _prepare(mode)
    for parameters in (config.collect_env_params, config.eval_env_params):
        parameters["GymEnvironment"] = {"name": "CartPole-v1", "seed": 1}
    return _losses(DQNSession(), DQNTrainer)


def _ppo_losses(mode: int) -> list[float]:
    import toy_environment
    from mindspore_rl.algorithm.ppo import config  # type: ignore[import-not-found]
    from mindspore_rl.algorithm.ppo.ppo_session import PPOSession  # type: ignore[import-not-found]
    from mindspore_rl.algorithm.ppo.ppo_trainer import PPOTrainer  # type: ignore[import-not-found]

    _prepare(mode)
    toy_environment.register()
    for parameters in (config.collect_env_params, config.eval_env_params):
        parameters["GymEnvironment"] = {"name": toy_environment.NAME, "seed": 1}
    for environment in ("collect_environment", "eval_environment"):           # the learner squeezes an axis of one environment
        config.algorithm_config[environment] |= {"number": 2, "num_parallel": 2}
    config.algorithm_config["replay_buffer"]["capacity"] = 20
    config.trainer_params["duration"] = 20
    config.learner_params["iter_times"] = 3
    return _losses(PPOSession(), PPOTrainer)
