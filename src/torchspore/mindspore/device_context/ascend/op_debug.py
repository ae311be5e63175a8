"""Debugging of operators: `op_timeout` and members of the option `ascend_config`."""
from __future__ import annotations

from typing import Any

from torchspore.base.text import list_choices, message, short
from torchspore.context import effects
from torchspore.context.store import STORE
from torchspore.public_names import missing

_DUMPS = {"lite_exception": "2", "lite_exception:disable": "0"}
"""A dict from the scene of a dump to the value of `exception_dump`."""


def execute_timeout(op_timeout: int) -> None:
    """Sets the option `op_timeout`: the maximum seconds of an operator. Raises TypeError unless it is an int, ValueError below 0."""
    STORE.change("context", {"op_timeout": op_timeout}, "ascend.op_debug.execute_timeout")


def debug_option(option_value: str) -> None:
    """Sets the option `op_debug_option`, 'oom'. Raises TypeError unless it is a str, ValueError for another name."""
    if not isinstance(option_value, str):
        raise TypeError(message(f"debug_option({short(option_value)})", f"a str, got {type(option_value).__name__}"))
    STORE.change("context", {"ascend_config": {"op_debug_option": option_value}}, "ascend.op_debug.debug_option")


def aclinit_config(config: dict[str, Any]) -> None:
    """Sets the dump of a failing operator, by 'dump'; 'max_opqueue_num' and 'err_msg_mode' have no effect here, and `explain` reports it.

    Raises ValueError for other keys and values, TypeError unless 'max_opqueue_num' is a str.
    """
    for key, value in config.items():
        call_text = f"aclinit_config({{{key!r}: {short(value)}}})"
        if key == "dump":
            if not isinstance(value, dict) or list(value) != ["dump_scene"] or value["dump_scene"] not in _DUMPS:
                raise ValueError(message(call_text, f"{{'dump_scene': {list_choices(_DUMPS)}}}"))
            STORE.change("context", {"ascend_config": {"exception_dump": _DUMPS[value["dump_scene"]]}}, "ascend.op_debug.aclinit_config")
            continue
        if key == "err_msg_mode" and value not in ("0", "1"):
            raise ValueError(message(call_text, "'0' or '1'"))
        if key == "max_opqueue_num" and not isinstance(value, str):
            raise TypeError(message(call_text, f"a str of a number, got {type(value).__name__}"))
        if key not in ("err_msg_mode", "max_opqueue_num"):
            raise ValueError(message(call_text, list_choices(("max_opqueue_num", "err_msg_mode", "dump"))))
        effects.note("kernels", f"{call_text}: is for AscendCL, which is not used here")


__all__ = ["aclinit_config", "debug_option", "execute_timeout"]
__getattr__ = missing(__name__)
