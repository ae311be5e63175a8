"""`AutoParallel`: a network with settings of parallel execution, which one process checks and keeps."""
from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from torchspore.base.text import message, one_of, short
from torchspore.context import effects
from torchspore.mindspore.nn.cell import Cell
from torchspore.names import missing

MODES = ("semi_auto", "sharding_propagation", "recursive_programming")


class AutoParallel(Cell):
    """A network, or function, with settings of parallel execution. One process runs the network as it is.

    Each setting is checked and kept, and `explain` says that it changes nothing here. Raises ValueError for another mode, TypeError for
    what is neither Cell nor function.
    """

    def __init__(self, network: Any, parallel_mode: str = "semi_auto") -> None:
        super().__init__(auto_prefix=False)
        if not isinstance(network, Cell) and not callable(network):
            raise TypeError(message(f"AutoParallel({short(network)})", f"a Cell or a function, got {type(network).__name__}"))
        if parallel_mode not in MODES:
            raise ValueError(message(f"AutoParallel(parallel_mode={short(parallel_mode)})", one_of(MODES)))
        self.network = network
        self._parallel_mode = parallel_mode
        self._settings: dict[str, Any] = {}
        self._keep("AutoParallel", parallel_mode=parallel_mode)

    def construct(self, *args: Any, **kwargs: Any) -> Any:
        """What the network gives."""
        return self.network(*args, **kwargs)

    def _keep(self, call: str, **values: Any) -> None:
        self._settings.update({f"{call}.{name}": value for name, value in values.items()})
        shown = ", ".join(f"{name}={short(value)}" for name, value in values.items())
        effects.note("distribution", f"{call}({shown}): nothing to do with one process")

    def _path(self, call: str, file_path: Any, is_absolute: bool = False) -> None:
        if not isinstance(file_path, str):
            raise TypeError(message(f"{call}({short(file_path)})", f"a path, got {type(file_path).__name__}"))
        if is_absolute and not os.path.isabs(file_path):
            raise KeyError(message(f"{call}({file_path!r})", "an absolute path"))
        self._keep(call, file_path=file_path)

    def load_param_strategy_file(self, file_path: str) -> None:
        """Names the file that strategies of Parameters are read from."""
        self._path("load_param_strategy_file", file_path)

    def save_param_strategy_file(self, file_path: str) -> None:
        """Names the file that strategies of Parameters are written to; one process has none to write."""
        self._path("save_param_strategy_file", file_path)

    def load_operator_strategy_file(self, file_path: str) -> None:
        """Names the file, by an absolute path, that strategies of operators are read from."""
        self._path("load_operator_strategy_file", file_path, True)

    def save_operator_strategy_file(self, file_path: str) -> None:
        """Names the file, by an absolute path, that strategies of operators are written to."""
        self._path("save_operator_strategy_file", file_path, True)

    def set_group_ckpt_save_file(self, file_path: str) -> None:
        """Names the file that groups of processes are written to."""
        self._path("set_group_ckpt_save_file", file_path)

    def dump_local_norm(self, file_path: str) -> None:
        """Names the folder for norms of gradients before they are summed."""
        self._path("dump_local_norm", file_path)

    def dataset_strategy(self, config: Any) -> None:
        """Says how rows are shared: 'data_parallel', 'full_batch', or a tuple of tuples or Layouts."""
        if not isinstance(config, (str, tuple)):
            raise TypeError(message(f"dataset_strategy({short(config)})", f"a str or a tuple, got {type(config).__name__}"))
        if isinstance(config, str) and config not in ("full_batch", "data_parallel"):
            raise ValueError(message(f"dataset_strategy({config!r})", "'full_batch' or 'data_parallel'"))
        self._keep("dataset_strategy", config=config)

    def hsdp(self, shard_size: int = -1, threshold: int = 64, optimizer_level: str = "level1") -> None:
        """Says how the optimizer's state is shared: by so many processes (-1: all), for Parameters from `threshold` KB on."""
        for name, value in (("shard_size", shard_size), ("threshold", threshold)):
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(message(f"hsdp({name}={short(value)})", f"an int, got {type(value).__name__}"))
        if shard_size != -1 and shard_size < 1:
            raise ValueError(message(f"hsdp(shard_size={shard_size})", "an int from 1 on, or -1"))
        if threshold < 0:
            raise ValueError(message(f"hsdp(threshold={threshold})", "an int from 0 on"))
        if optimizer_level not in ("level1", "level2", "level3"):
            raise ValueError(message(f"hsdp(optimizer_level={short(optimizer_level)})", one_of(("level1", "level2", "level3"))))
        self._keep("hsdp", shard_size=shard_size, threshold=threshold, optimizer_level=optimizer_level)

    def pipeline(self, stages: int = 1, output_broadcast: bool = False, interleave: bool = False, scheduler: str = "1f1b") -> None:
        """Says over how many stages the network is spread."""
        if isinstance(stages, bool) or not isinstance(stages, int):
            raise TypeError(message(f"pipeline(stages={short(stages)})", f"an int, got {type(stages).__name__}"))
        if stages < 1:
            raise ValueError(message(f"pipeline(stages={stages})", "an int from 1 on"))
        for name, value in (("output_broadcast", output_broadcast), ("interleave", interleave)):
            if not isinstance(value, bool):
                raise TypeError(message(f"pipeline({name}={short(value)})", f"True or False, got {type(value).__name__}"))
        schedulers = ("1f1b", "gpipe", "seqpipe", "seqvpp", "seqsmartvpp", "zero_bubble_v")
        if scheduler not in schedulers:
            raise ValueError(message(f"pipeline(scheduler={short(scheduler)})", one_of(schedulers)))
        self._keep("pipeline", stages=stages, output_broadcast=output_broadcast, interleave=interleave, scheduler=scheduler)

    def get_pipeline_stages(self) -> int:
        """How many stages `pipeline` named; 1 where it was not called."""
        return int(self._settings.get("pipeline.stages", 1))

    def comm_fusion(self, config: dict[str, Any]) -> None:
        """Says which messages between processes travel together."""
        if not isinstance(config, dict):
            raise TypeError(message(f"comm_fusion({short(config)})", f"a dict, got {type(config).__name__}"))
        kinds = ("openstate", "allreduce", "allgather", "reducescatter")
        for name in config:
            if name not in kinds:
                raise KeyError(message(f"comm_fusion({{{short(name)}: ...}})", one_of(kinds)))
        self._keep("comm_fusion", config=config)

    def transformer_opt(self, file_path: str | None) -> None:
        """Names a file of speed-up switches; None or '' names none."""
        if file_path:
            self._path("transformer_opt", file_path)


def _switch(name: str, doc: str) -> Callable[[AutoParallel], None]:
    def switch(self: AutoParallel) -> None:
        self._keep(name)

    switch.__name__ = name
    switch.__qualname__ = f"AutoParallel.{name}"
    switch.__doc__ = doc
    return switch


for _name, _doc in {
    "no_init_parameters_in_compile": "Leaves Parameters without values while compiling.",
    "disable_strategy_file_only_for_trainable_params": "Lets strategy files hold Parameters that are not trained, too.",
    "enable_fp32_communication": "Sums between processes in float32.",
    "print_local_norm": "Prints norms of gradients before they are summed.",
    "enable_device_local_norm": "Prints the norm of each device's gradients.",
    "enable_gradients_mean": "Divides summed gradients by their number.",
    "disable_gradient_fp32_sync": "Sums gradients in the dtype that they have.",
    "disable_loss_repeated_mean": "Takes no mean in the backward pass of what several devices repeat.",
}.items():
    setattr(AutoParallel, _name, _switch(_name, _doc))

__getattr__ = missing(__name__)
