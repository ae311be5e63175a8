"""`AutoParallel`: a network with settings of parallel execution, which act while it is called."""
from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torchspore.base.arguments import check_int_type
from torchspore.base.text import list_choices, message, short
from torchspore.context import effects
from torchspore.context.store import STORE
from torchspore.context.strategy_files import op_strategies
from torchspore.distributed import device_count
from torchspore.mindspore.nn.cell import Cell
from torchspore.public_names import missing

_OPTIONS = {
    "dataset_strategy.config": "dataset_strategy", "set_group_ckpt_save_file.file_path": "group_ckpt_save_file",
    "comm_fusion.config": "comm_fusion", "pipeline.stages": "pipeline_stages", "pipeline.output_broadcast": "pipeline_result_broadcast",
    "dump_local_norm.file_path": "dump_local_norm_path",
}
_FILES = {"load_param_strategy_file.file_path": "load_file", "save_param_strategy_file.file_path": "save_file"}
_OPERATOR_FILES = {"load_operator_strategy_file.file_path": "LOAD", "save_operator_strategy_file.file_path": "SAVE"}
_SWITCHED = {
    "enable_fp32_communication": ("force_fp32_communication", True), "enable_gradients_mean": ("gradients_mean", True),
    "disable_gradient_fp32_sync": ("gradient_fp32_sync", False), "disable_loss_repeated_mean": ("loss_repeated_mean", False),
    "no_init_parameters_in_compile": ("init_param_in_compile", False), "print_local_norm": ("dump_local_norm", True),
    "enable_device_local_norm": ("dump_device_local_norm", True),
}
MODES = ("semi_auto", "sharding_propagation", "recursive_programming")


class AutoParallel(Cell):
    """A network, or function, with separate settings of parallel execution, which the context has during its calls.

    A single process runs the network unchanged, and `explain` reports it. Raises ValueError for another mode, TypeError unless the network
    is a Cell or function.
    """

    def __init__(self, network: Any, parallel_mode: str = "semi_auto") -> None:
        super().__init__(auto_prefix=False)
        if not isinstance(network, Cell) and not callable(network):
            raise TypeError(message(f"AutoParallel({short(network)})", f"a Cell or a function, got {type(network).__name__}"))
        if parallel_mode not in MODES:
            raise ValueError(message(f"AutoParallel(parallel_mode={short(parallel_mode)})", list_choices(MODES)))
        self.network = network
        self._parallel_mode = parallel_mode
        self._settings: dict[str, Any] = {}
        self._keep_("AutoParallel", parallel_mode=parallel_mode)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with self._acting():
            return super().__call__(*args, **kwargs)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compiles the network for these arguments with its settings, and runs nothing."""
        with self._acting():
            super().compile(*args, **kwargs)

    @contextmanager
    def _acting(self) -> Iterator[None]:
        """A block in which the context has these settings."""
        token = STORE.open_scope()
        files, settings = dict(op_strategies), self._settings
        try:
            STORE.change("auto_parallel", self._context(), "AutoParallel")
            if "transformer_opt.file_path" in settings:
                path = settings["transformer_opt.file_path"]
                STORE.change("context", {"ascend_config": {"parallel_speed_up_json_path": path}}, "AutoParallel.transformer_opt")
            if self._parallel_mode == "sharding_propagation":        # elsewhere MindSpore ignores them too
                op_strategies.update({mode: settings[name] for name, mode in _OPERATOR_FILES.items() if name in settings})
            yield
        finally:
            op_strategies.clear()
            op_strategies.update(files)
            STORE.close_scope(token)

    def _context(self) -> dict[str, Any]:
        """Return the settings as arguments of `set_auto_parallel_context`."""
        mode = self._parallel_mode
        options: dict[str, Any] = {"parallel_mode": "semi_auto_parallel" if mode == "semi_auto" else "auto_parallel"}
        if mode != "semi_auto":
            options["search_mode"] = mode
        settings = self._settings
        options |= {option: settings[name] for name, option in _OPTIONS.items() if name in settings}
        options |= {option: value for name, (option, value) in _SWITCHED.items() if name in settings}
        if "dump_local_norm" in settings:
            options["dump_local_norm"] = True
        if self.get_pipeline_stages() > 1:
            options["pipeline_config"] = {
                "pipeline_interleave": settings["pipeline.interleave"], "pipeline_scheduler": settings["pipeline.scheduler"],
            }
        files = {member: settings[name] for name, member in _FILES.items() if name in settings}
        if "disable_strategy_file_only_for_trainable_params" in settings:
            files["only_trainable_params"] = False
        if files:
            options["strategy_ckpt_config"] = files
        if "hsdp.threshold" in settings:
            options |= {"enable_parallel_optimizer": True, "parallel_optimizer_config": {
                "parallel_optimizer_threshold": settings["hsdp.threshold"], "optimizer_level": settings["hsdp.optimizer_level"],
                "optimizer_weight_shard_size": settings["hsdp.shard_size"],
            }}
        return options

    def construct(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the network's output."""
        return self.network(*args, **kwargs)

    def _keep_(self, call: str, **values: Any) -> None:
        self._settings.update({call: True, **{f"{call}.{name}": value for name, value in values.items()}})
        shown = ", ".join(f"{name}={short(value)}" for name, value in values.items())
        if device_count.devices()[0] == 1:
            effects.note("distribution", f"{call}({shown}): nothing to do with one process")

    def _path(self, call: str, file_path: Any, is_absolute: bool = False) -> None:
        if not isinstance(file_path, str):
            raise TypeError(message(f"{call}({short(file_path)})", f"a path, got {type(file_path).__name__}"))
        if is_absolute and not os.path.isabs(file_path):
            raise KeyError(message(f"{call}({file_path!r})", "an absolute path"))
        self._keep_(call, file_path=file_path)

    def load_param_strategy_file(self, file_path: str) -> None:
        """Sets the file from which strategies of Parameters are read."""
        self._path("load_param_strategy_file", file_path)

    def save_param_strategy_file(self, file_path: str) -> None:
        """Sets the file to which strategies of Parameters are written; a single process writes none."""
        self._path("save_param_strategy_file", file_path)

    def load_operator_strategy_file(self, file_path: str) -> None:
        """Sets the file, by an absolute path, from which strategies of operators are read."""
        self._path("load_operator_strategy_file", file_path, True)

    def save_operator_strategy_file(self, file_path: str) -> None:
        """Sets the file, by an absolute path, to which strategies of operators are written."""
        self._path("save_operator_strategy_file", file_path, True)

    def set_group_ckpt_save_file(self, file_path: str) -> None:
        """Sets the file to which groups of processes are written."""
        self._path("set_group_ckpt_save_file", file_path)

    def dump_local_norm(self, file_path: str) -> None:
        """Sets the folder for norms of gradients before they are summed."""
        self._path("dump_local_norm", file_path)

    def dataset_strategy(self, config: Any) -> None:
        """Sets the distribution of rows: 'data_parallel', 'full_batch', or a tuple of tuples or Layouts."""
        if not isinstance(config, (str, tuple)):
            raise TypeError(message(f"dataset_strategy({short(config)})", f"a str or a tuple, got {type(config).__name__}"))
        if isinstance(config, str) and config not in ("full_batch", "data_parallel"):
            raise ValueError(message(f"dataset_strategy({config!r})", "'full_batch' or 'data_parallel'"))
        self._keep_("dataset_strategy", config=config)

    def hsdp(self, shard_size: int = -1, threshold: int = 64, optimizer_level: str = "level1") -> None:
        """Sets the sharding of the optimizer's state: the number of processes (-1: all), for Parameters of at least `threshold` KB."""
        for name, value in (("shard_size", shard_size), ("threshold", threshold)):
            check_int_type("hsdp", name, value)
        if shard_size != -1 and shard_size < 1:
            raise ValueError(message(f"hsdp(shard_size={shard_size})", "an int from 1 on, or -1"))
        if threshold < 0:
            raise ValueError(message(f"hsdp(threshold={threshold})", "an int from 0 on"))
        if optimizer_level not in ("level1", "level2", "level3"):
            raise ValueError(message(f"hsdp(optimizer_level={short(optimizer_level)})", list_choices(("level1", "level2", "level3"))))
        self._keep_("hsdp", shard_size=shard_size, threshold=threshold, optimizer_level=optimizer_level)

    def pipeline(self, stages: int = 1, output_broadcast: bool = False, interleave: bool = False, scheduler: str = "1f1b") -> None:
        """Sets the number of pipeline stages of the network."""
        check_int_type("pipeline", "stages", stages)
        if stages < 1:
            raise ValueError(message(f"pipeline(stages={stages})", "an int from 1 on"))
        for name, value in (("output_broadcast", output_broadcast), ("interleave", interleave)):
            if not isinstance(value, bool):
                raise TypeError(message(f"pipeline({name}={short(value)})", f"True or False, got {type(value).__name__}"))
        schedulers = ("1f1b", "gpipe", "seqpipe", "seqvpp", "seqsmartvpp", "zero_bubble_v")
        if scheduler not in schedulers:
            raise ValueError(message(f"pipeline(scheduler={short(scheduler)})", list_choices(schedulers)))
        self._keep_("pipeline", stages=stages, output_broadcast=output_broadcast, interleave=interleave, scheduler=scheduler)

    def get_pipeline_stages(self) -> int:
        """Returns the number of stages of `pipeline`; 1 by default."""
        return int(self._settings.get("pipeline.stages", 1))

    def comm_fusion(self, config: dict[str, Any]) -> None:
        """Sets the fusion of messages between processes."""
        if not isinstance(config, dict):
            raise TypeError(message(f"comm_fusion({short(config)})", f"a dict, got {type(config).__name__}"))
        kinds = ("openstate", "allreduce", "allgather", "reducescatter")
        for name in config:
            if name not in kinds:
                raise KeyError(message(f"comm_fusion({{{short(name)}: ...}})", list_choices(kinds)))
        self._keep_("comm_fusion", config=config)

    def transformer_opt(self, file_path: str | None) -> None:
        """Sets a file of speed-up switches; None or '' unsets it."""
        if file_path:
            self._path("transformer_opt", file_path)


@contextmanager
def settings_of(network: Any) -> Iterator[None]:
    """A block in which the context has the settings of a network, if it is an AutoParallel."""
    if not isinstance(network, AutoParallel):
        yield
        return
    with network._acting():
        yield


def _switch(name: str, doc: str) -> Callable[[AutoParallel], None]:
    def switch(self: AutoParallel) -> None:
        self._keep_(name)

    switch.__name__ = name
    switch.__qualname__ = f"AutoParallel.{name}"
    switch.__doc__ = doc
    return switch


for _name, _doc in {
    "no_init_parameters_in_compile": "Leaves Parameters without values while compiling.",
    "disable_strategy_file_only_for_trainable_params": "Includes Parameters that are not trained in strategy files.",
    "enable_fp32_communication": "Sums between processes in float32.",
    "print_local_norm": "Prints norms of gradients before they are summed.",
    "enable_device_local_norm": "Prints the norm of each device's gradients.",
    "enable_gradients_mean": "Divides summed gradients by their number.",
    "disable_gradient_fp32_sync": "Sums gradients in their dtype.",
    "disable_loss_repeated_mean": "Omits the mean in the backward pass of operators that several devices repeat.",
}.items():
    setattr(AutoParallel, _name, _switch(_name, _doc))

__getattr__ = missing(__name__)
