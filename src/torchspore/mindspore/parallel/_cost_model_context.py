"""Figures of the search for parallel strategies, checked and stored: only the device memory acts, because the search estimates seconds."""
from __future__ import annotations

from typing import Any

from torchspore.base.text import list_choices, message, short
from torchspore.context import effects
from torchspore.distributed.shard import machine_model
from torchspore.public_names import missing

DEFAULTS: dict[str, Any] = {
    "device_memory_capacity": 16.0 * 2**30, "costmodel_alpha": 1.0, "costmodel_beta": 400.0, "costmodel_gamma": 0.001,
    "costmodel_communi_threshold": 2048.0, "costmodel_communi_const": 3072.0, "costmodel_communi_bias": 1024.0, "run_phase": 0,
    **dict.fromkeys(("costmodel_allreduce_fusion_algorithm", "costmodel_allreduce_fusion_times"), 0),
    **{f"costmodel_allreduce_fusion_{name}": 0.1 for name in (
        "tail_percent", "tail_time", "allreduce_inherent_time", "allreduce_bandwidth", "computation_time_parameter",
    )},
}
_values = dict(DEFAULTS)
_SWITCHES: dict[str, Any] = {"multi_subgraphs": False, "algo_single_loop": False, "rp_matmul_mem_coef": 0.1}
_switches = dict(_SWITCHES)


def set_cost_model_context(**kwargs: Any) -> None:
    """Set figures of the cost model, all or none. Raises ValueError for another name, TypeError for a value of another type."""
    for name, value in kwargs.items():
        call_text = f"set_cost_model_context({name}={short(value)})"
        if name not in DEFAULTS:
            raise ValueError(message(call_text, list_choices(DEFAULTS)))
        if type(value) is not type(DEFAULTS[name]):
            raise TypeError(message(call_text, f"a {type(DEFAULTS[name]).__name__}, got {type(value).__name__}"))
    _values.update(kwargs)
    if "device_memory_capacity" in kwargs:
        machine_model.set_by_program["capacity"] = kwargs["device_memory_capacity"]
    _report(", ".join(name for name in kwargs if name != "device_memory_capacity"))


def get_cost_model_context(attr_key: str) -> Any:
    """Return a figure of the cost model. Raises ValueError for another name."""
    if attr_key not in DEFAULTS:
        raise ValueError(message(f"get_cost_model_context({short(attr_key)})", list_choices(DEFAULTS)))
    return _values[attr_key]


def reset_cost_model_context() -> None:
    """Reset all figures and switches to their defaults."""
    _values.update(DEFAULTS)
    _switches.update(_SWITCHES)
    machine_model.set_by_program.clear()


def _report(setting: str) -> None:
    if setting:
        effects.note("distribution", f"set_cost_model_context({setting}): no effect here: the search counts seconds of an assumed device")


def _switch(name: str, value: Any, kind: type) -> None:
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, kind):
        raise TypeError(message(f"_set_{name}({short(value)})", f"a {kind.__name__}, got {type(value).__name__}"))
    _switches[name] = value
    _report(name)


def _set_multi_subgraphs(multi_subgraph: bool = True) -> None:
    """Set whether the network makes several subgraphs."""
    _switch("multi_subgraphs", multi_subgraph, bool)


def _get_multi_subgraphs() -> bool:
    """Return the value of `_set_multi_subgraphs`."""
    return bool(_switches["multi_subgraphs"])


def _set_algo_single_loop(single_loop: bool = True) -> None:
    """Set whether the search unrolls loops only once."""
    _switch("algo_single_loop", single_loop, bool)


def _get_algo_single_loop() -> bool:
    """Return the value of `_set_algo_single_loop`."""
    return bool(_switches["algo_single_loop"])


def _set_rp_matmul_mem_coef(coef: float) -> None:
    """Set the weight of memory for matrix products in the recursive search."""
    _switch("rp_matmul_mem_coef", coef, float)


def _get_rp_matmul_mem_coef() -> float:
    """Return the value of `_set_rp_matmul_mem_coef`."""
    return float(_switches["rp_matmul_mem_coef"])


__getattr__ = missing(__name__)
