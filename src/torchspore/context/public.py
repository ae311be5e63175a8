"""The functions of `mindspore.context`, all on one store."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from torchspore.base.text import message, short
from torchspore.context import plan as _plan
from torchspore.context.options import OPTIONS
from torchspore.context.store import STORE
from torchspore.context.strategy_files import op_strategies
from torchspore.errors import OptionTypeError, OptionValueError
from torchspore.translations import translate

GRAPH_MODE = 0
PYNATIVE_MODE = 1
STRICT = 0
COMPATIBLE = 1
LAX = 2
RELEASE = 0
DEBUG = 1


class ParallelMode:
    """The names of the parallel modes."""

    STAND_ALONE = "stand_alone"
    DATA_PARALLEL = "data_parallel"
    HYBRID_PARALLEL = "hybrid_parallel"
    SEMI_AUTO_PARALLEL = "semi_auto_parallel"
    AUTO_PARALLEL = "auto_parallel"
    MODE_LIST = [STAND_ALONE, DATA_PARALLEL, HYBRID_PARALLEL, SEMI_AUTO_PARALLEL, AUTO_PARALLEL]


def _read(api: str, attr_key: object, call: str) -> Any:
    """Return the value of an option by the name passed to a getter; dictionaries and lists are copies."""
    if not isinstance(attr_key, str):
        hint = translate("for example {example}").format(example=f"{call}('{_EXAMPLE[api]}')")
        raise OptionTypeError(message(f"{call}({short(attr_key)})", translate("the name of an option"), hint=hint))
    option = _plan.find(api, attr_key, call)
    if not option.readable:
        raise OptionValueError(translate("{call}({name!r}): {name} can only be set.").format(call=call, name=attr_key))
    if option.shown_if is not None and not STORE.get(option.shown_if):
        return option.default
    value = STORE.get(option.key)
    return copy.deepcopy(value) if isinstance(value, (dict, list)) else value


_EXAMPLE = {"context": "mode", "auto_parallel": "parallel_mode", "ps": "enable_ps", "offload": "offload_path"}
_PLAIN = {
    key for key, option in OPTIONS.items()
    if option.api == "context" and (option.member_of is None or option.top_level) and not isinstance(option.default, (dict, list))
    and not option.members and option.readable and option.shown_if is None
}


def set_context(**kwargs: Any) -> None:
    """Set options of the context; all are checked before the first is applied."""
    STORE.change("context", kwargs, "set_context")


def get_context(attr_key: str) -> Any:
    """Return the value of an option that is active in this thread, in MindSpore's normalised form."""
    if attr_key.__class__ is str and attr_key in _PLAIN:
        return STORE.get(attr_key)
    if attr_key.__class__ is str and attr_key in _FACTS:
        return _FACTS[attr_key]
    return _read("context", attr_key, "get_context")


_FACTS = {"enable_ge": False, "enable_debug_runtime": False}
"""Facts that programs query like options: whether CANN's graph engine runs the graphs, and whether MindSpore's runtime checks itself."""


def set_auto_parallel_context(**kwargs: Any) -> None:
    """Set options of parallel execution; all are checked before the first is applied."""
    STORE.change("auto_parallel", kwargs, "set_auto_parallel_context")


def get_auto_parallel_context(attr_key: str) -> Any:
    """Return the value of an option of parallel execution."""
    return _read("auto_parallel", attr_key, "get_auto_parallel_context")


def reset_auto_parallel_context() -> None:
    """Reset every option of parallel execution to its default, and forget the files of `set_op_strategy_config`."""
    STORE.reset("auto_parallel")
    op_strategies.clear()


def set_ps_context(**kwargs: Any) -> None:
    """Set options of the parameter server; all are checked before the first is applied."""
    STORE.change("ps", kwargs, "set_ps_context")


def get_ps_context(attr_key: str) -> Any:
    """Return the value of an option of the parameter server."""
    return _read("ps", attr_key, "get_ps_context")


def reset_ps_context() -> None:
    """Reset every option of the parameter server to its default."""
    STORE.reset("ps")


def set_offload_context(offload_config: dict[str, Any]) -> None:
    """Set where data is moved that does not fit on the device."""
    STORE.change("offload", {"offload_config": offload_config}, "set_offload_context")


def get_offload_context() -> dict[str, Any]:
    """Return the dictionary last passed to `set_offload_context`."""
    return copy.deepcopy(dict(STORE.get("offload.offload_config")))


def set_device(device_target: str, device_id: int | None = None) -> None:
    """Set the option `device_target` and, if it is not None, `device_id`."""
    values: dict[str, object] = {"device_target": device_target}
    if device_id is not None:
        values["device_id"] = device_id
    STORE.change("context", values, "set_device")


class _DeviceInfo(NamedTuple):
    """A device: its target and its index."""

    device_target: str
    device_id: int


_DeviceInfo.__name__ = "DeviceInfo"       # the name in its repr; only mindspore.device_manager exports it


def get_current_device() -> _DeviceInfo:
    """Return (`device_target`, `device_id`) that are active in this thread."""
    return _DeviceInfo(STORE.get("device_target"), STORE.get("device_id"))


def set_deterministic(deterministic: bool) -> None:
    """Set the option `deterministic` to 'ON' or 'OFF'; it may be called again."""
    if not isinstance(deterministic, bool):
        raise OptionTypeError(message(f"set_deterministic({short(deterministic)})", translate("True or False")))
    STORE.change("context", {"deterministic": "ON" if deterministic else "OFF"}, "set_deterministic")


def set_recursion_limit(recursion_limit: int = 1000) -> None:
    """Set the option `max_call_depth`."""
    STORE.change("context", {"max_call_depth": recursion_limit}, "set_recursion_limit")


@contextmanager
def scope(**kwargs: Any) -> Iterator[None]:
    """Set options for the block and this thread or task only; at the end, also after an error, the previous values are active again.

    `set_context` inside the block changes the block's values. A thread started inside sees the values of the process. Options that act on
    the whole process (`deterministic`, `runtime_num_threads`; their pages say so) act in all threads until the block ends, and every
    thread's getter returns them; they raise ScopeRefused outside the main thread, or while other threads of the program run.
    """
    token = STORE.open_scope()
    try:
        STORE.change("context", kwargs, "scope")
        yield
    finally:
        STORE.close_scope(token)


def _unwrapped(api: str, call: str) -> Callable[..., None]:
    def setter(**kwargs: Any) -> None:
        STORE.change(api, kwargs, call)

    return setter


# Upstream tests call `set_context.__wrapped__(...)` to bypass MindSpore's decorator; here it does the same as the function.
for _setter, _api in ((set_context, "context"), (set_auto_parallel_context, "auto_parallel"), (set_ps_context, "ps")):
    _setter.__wrapped__ = _unwrapped(_api, _setter.__name__)  # type: ignore[attr-defined]
