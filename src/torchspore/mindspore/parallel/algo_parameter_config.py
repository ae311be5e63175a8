"""Parameters of MindSpore's search for parallel strategies: checked and stored; the search here ignores them, and `explain` reports it."""
from __future__ import annotations

from typing import Any

from torchspore.base.text import list_choices, message, short
from torchspore.context import effects
from torchspore.public_names import missing

DEFAULTS: dict[str, Any] = {
    "fully_use_devices": False, "elementwise_op_strategy_follow": False, "enable_algo_approxi": False, "algo_approxi_epsilon": 0.1,
    "tensor_slice_align_enable": False, "tensor_slice_align_size": 16,
}
_values = dict(DEFAULTS)


def set_algo_parameters(**kwargs: Any) -> None:
    """Sets parameters of the search for strategies.

    `fully_use_devices`, `elementwise_op_strategy_follow`, `enable_algo_approxi` and `tensor_slice_align_enable` are bools,
    `algo_approxi_epsilon` is a float in (0, 1], `tensor_slice_align_size` an int in [1, 1024]. A call is applied completely or not at all.
    Raises ValueError for other names and values, TypeError for other types.
    """
    for name, value in kwargs.items():
        _check(name, value)
    _values.update(kwargs)
    if kwargs:
        why = "the search shares products out among all devices, and cuts other operators as that costs least"
        effects.note("distribution", f"set_algo_parameters({', '.join(kwargs)}): no effect here: {why}")


def _check(name: str, value: Any) -> None:
    call_text = f"set_algo_parameters({name}={short(value)})"
    if name not in DEFAULTS:
        raise ValueError(message(call_text, list_choices(DEFAULTS)))
    kind = type(DEFAULTS[name])
    if type(value) is not kind:
        raise TypeError(message(call_text, f"a {kind.__name__}, got {type(value).__name__}"))
    if name == "algo_approxi_epsilon" and not 0 < value <= 1:
        raise ValueError(message(call_text, "a float in (0, 1]"))
    if name == "tensor_slice_align_size" and not 1 <= value <= 1024:
        raise ValueError(message(call_text, "an int in [1, 1024]"))


def get_algo_parameters(attr_key: str) -> Any:
    """Returns the value of a parameter. Raises ValueError for another name."""
    if attr_key not in DEFAULTS:
        raise ValueError(message(f"get_algo_parameters({short(attr_key)})", list_choices(DEFAULTS)))
    return _values[attr_key]


def reset_algo_parameters() -> None:
    """Resets all parameters to their defaults."""
    _values.update(DEFAULTS)


__getattr__ = missing(__name__)
