"""The distribution of a transformer's operators over devices: the numbers of parts of data and model in split graphs."""
from __future__ import annotations

from typing import Any

from torchspore.base.arguments import is_int
from torchspore.base.text import message, short


def check_share(name: str, value: Any) -> int:
    """Return the share `value`. Raises TypeError unless it is an int, ValueError for one below 1."""
    if not is_int(value):
        raise TypeError(message(f"{name}={short(value)}", f"an int, got {type(value).__name__}"))
    if value < 1:
        raise ValueError(message(f"{name}={value}", "an int from 1 on"))
    return value


class OpParallelConfig:
    """Shares of data and of the model."""

    def __init__(self, data_parallel: int = 1, model_parallel: int = 1) -> None:
        self.data_parallel = check_share("data_parallel", data_parallel)
        self.model_parallel = check_share("model_parallel", model_parallel)


def shares(config: Any) -> tuple[int, int] | None:
    """Return the shares of data and model of a configuration; None if both are 1, so that operators follow their inputs."""
    parts = config.data_parallel, config.model_parallel
    return None if parts == (1, 1) else parts


class MoEParallelConfig:
    """Shares of data, of the model and of experts; `dpmp` has the first two."""

    def __init__(self, data_parallel: int = 1, model_parallel: int = 1, expert_parallel: int = 1) -> None:
        self.dpmp = OpParallelConfig(data_parallel, model_parallel)
        self.data_parallel, self.model_parallel = data_parallel, model_parallel
        self.expert_parallel = check_share("expert_parallel", expert_parallel)


default_dpmp_config = OpParallelConfig()
default_moeparallel_config = MoEParallelConfig()


def _check_config(config: Any) -> None:
    """Raises TypeError for a configuration without shares."""
    for name in ("data_parallel", "model_parallel"):
        if not hasattr(config, name):
            raise TypeError(message(f"parallel_config={short(config)}", f"a configuration with {name}, got {type(config).__name__}"))
