"""An environment of gym for PPO of mindspore_rl, with the six actions for which the network of the package is written."""
from __future__ import annotations

from typing import Any

import gym  # type: ignore[import-not-found]
import numpy as np

NAME = "Toy-v0"


class Toy(gym.Env):  # type: ignore[misc]
    """Six numbers that the actions change; the reward is higher the nearer they are to zero."""

    observation_space = gym.spaces.Box(-1, 1, (6,), np.float32)
    action_space = gym.spaces.Box(-1, 1, (6,), np.float32)
    metadata = {"render_modes": ["rgb_array"]}

    def __init__(self, render_mode: str = "") -> None:
        self.render_mode = render_mode

    def reset(self, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Return a random state."""
        super().reset(seed=seed)
        self.state = self.np_random.uniform(-1, 1, 6).astype(np.float32)
        return self.state, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Return the next state and its reward."""
        self.state = np.clip(self.state + 0.1 * action, -1, 1).astype(np.float32)
        return self.state, -float(np.square(self.state).sum()), False, False, {}


def register() -> None:
    """Make the environment known to gym."""
    if NAME not in gym.envs.registry:
        gym.register(NAME, entry_point="toy_environment:Toy")
