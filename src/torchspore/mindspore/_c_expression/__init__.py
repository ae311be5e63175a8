"""`mindspore._c_expression`: the parts of MindSpore's C++ module that packages use."""
from __future__ import annotations

from typing import Any

from torchspore.context.public import get_context, set_context
from torchspore.graph.specialization.graph_table import facts_of
from torchspore.mindspore import mint
from torchspore.mindspore._c_expression import amp, typing
from torchspore.mindspore.common.tensor import Tensor
from torchspore.observe.profiling import begin_step as _framework_profiler_step_start
from torchspore.observe.profiling import end_step as _framework_profiler_step_end

TensorPy = Tensor


def get_code_extra(function: Any) -> dict[str, Any] | None:
    """Information about the graphs of a function with `jit`: their number, and the number of their runs.

    None for a function without `jit`, or that has not run. `break_count_` is above 0 if a call could not be one graph.
    """
    compiled = getattr(function, "_compiled", lambda: None)()
    owner = None if compiled is None else compiled._owner()
    if owner is None:
        return None
    graphs, refusals = facts_of(owner, function)
    if not graphs and not refusals:
        return None
    code = {"phase_": f"{function.__qualname__}.pi_jit", "call_count_": sum(graphs)} if graphs else {"call_count_": 0}
    return {"stat": "GRAPH_CALLABLE", "code": code, "compile_count_": len(graphs), "break_count_": refusals}


class MSContext:
    """The context of the process, with the methods of the C++ class."""

    _instance: MSContext | None = None

    @classmethod
    def get_instance(cls) -> MSContext:
        """Return the only instance."""
        cls._instance = cls._instance or cls()
        return cls._instance

    def get_ascend_soc_version(self) -> str:
        """Return the name of the Ascend chip; '' because MindSpore's driver is not used here."""
        return ""

    def is_ascend_plugin_loaded(self) -> bool:
        """Return False: MindSpore's driver is not used here."""
        return False

    def is_pkg_support_device(self, device: str) -> bool:
        """Return whether the program may set `device_target` to `device`."""
        return device in ("CPU", "GPU", "Ascend")

    def get_param(self, key: str) -> Any:
        """Return the option `key` of the context."""
        return get_context(key)

    def set_param(self, key: str, value: Any) -> None:
        """Set the option `key` of the context."""
        set_context(**{key: value})


class ParamInfo:
    """The properties of a Parameter apart from its values, for user-defined classes."""

    def __init__(self) -> None:
        self.name = "Parameter"
        self.requires_grad = True
        self.layerwise_parallel = self.cache_enable = self.parallel_optimizer_comm_recompute = False
        self.parallel_optimizer = True
        self.comm_fusion = 1
        self.key = -1
        self.storage_format = ""
        self.parameter_shape: list[int] | tuple[int, ...] = []
        self.cache_shape: list[int] | tuple[int, ...] = []
        self.origin_shape: list[int] | tuple[int, ...] = []
        self.is_param_init = self.is_pipeline_shared_param = self.use_persistent_storage = False

    def clone(self) -> ParamInfo:
        """Return a copy."""
        copied = ParamInfo()
        copied.__dict__.update(self.__dict__)
        return copied


class CommExecOrderChecker:
    """The check of the order of collectives. Each collective is always compared with those of the other ranks before it runs."""

    _instance: CommExecOrderChecker | None = None

    @classmethod
    def get_instance(cls) -> CommExecOrderChecker:
        """Return the only instance."""
        cls._instance = cls._instance or cls()
        return cls._instance

    def start_collect_exec_order(self) -> None:
        """Do nothing: the comparison is always active."""

    def stop_collect_exec_order(self) -> None:
        """Do nothing: a difference has raised CommunicationError before."""


def pyboost_empty(arguments: Any) -> Tensor:
    """Return an uninitialized Tensor from the list [shape, dtype, device]. Raises ValueError for another device than the CPU."""
    size, dtype, device = arguments
    return mint.empty(*size, dtype=dtype, device=device)  # type: ignore[no-any-return]


__all__ = [
    "CommExecOrderChecker", "MSContext", "ParamInfo", "Tensor", "TensorPy", "_framework_profiler_step_end",
    "_framework_profiler_step_start", "amp", "pyboost_empty", "typing",
]
