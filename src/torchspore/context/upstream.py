"""Private names of MindSpore's context that upstream programs and tests use, on the same store."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from torchspore.base.text import message, short, with_type
from torchspore.context import public
from torchspore.context.options import names_of
from torchspore.context.store import STORE
from torchspore.errors import NotOffered

# Names that differ from the option: the method's suffix -> the option's name.
_OTHER_NAMES = {
    "strategy_search_mode": "search_mode",
    "all_reduce_fusion_split_indices": "all_reduce_fusion_config",
    "param": "",
}


class Context:
    """The object behind `mindspore.context._context()`: each option as an attribute, a `get_` and a `set_` method.

    `get_param` and `set_param` take an option's name.
    """

    _api = "context"
    _get: Callable[[str], Any] = staticmethod(public.get_context)
    _set: Callable[..., None] = staticmethod(public.set_context)

    def get_param(self, param: str) -> Any:
        """Return an option's value."""
        return self._get(param)

    def set_param(self, param: str, value: object) -> None:
        """Set an option."""
        self._set(**{param: value})

    def get_jit_config(self) -> dict[str, Any]:
        """Return `jit_config` as it was set."""
        config: dict[str, Any] = public.get_context("jit_config")
        return config

    def __getattr__(self, name: str) -> Any:
        """Resolve `get_<option>`, `set_<option>`, `get_<option>_is_set` and plain `<option>`."""
        verb, _, suffix = name.partition("_")
        option = _OTHER_NAMES.get(suffix, suffix)
        names = names_of(self._api)
        if verb == "set" and option in names:
            return partial(self.set_param, option)
        if verb == "get" and option in names:
            return partial(self._get, option)
        if verb == "get" and option.endswith("_is_set") and option.removesuffix("_is_set") in names:
            return partial(self._is_set, option.removesuffix("_is_set"))
        if name in names:
            return self._get(name)
        raise NotOffered(f"{type(self).__name__}.{name}: this option or method does not exist.")

    def _is_set(self, name: str) -> bool:
        key = name if self._api == "context" else f"{self._api}.{name}"
        return STORE.code_setting(key) is not None


class AutoParallelContext(Context):
    """The object behind `mindspore.parallel._auto_parallel_context.auto_parallel_context()`."""

    _api = "auto_parallel"
    _get = staticmethod(public.get_auto_parallel_context)
    _set = staticmethod(public.set_auto_parallel_context)

    def reset(self) -> None:
        """Reset every option of parallel execution to its default."""
        public.reset_auto_parallel_context()

    def get_enable_all_reduce_fusion(self) -> bool:
        """Return whether sums of gradients are joined in messages: `openstate` of `comm_fusion`."""
        return bool((public.get_auto_parallel_context("comm_fusion") or {}).get("openstate", True))

    def set_enable_all_reduce_fusion(self, enable_all_reduce_fusion: bool) -> None:
        """Set whether sums of gradients are joined in messages: `openstate` of `comm_fusion`, which gathers have in common."""
        if not isinstance(enable_all_reduce_fusion, bool):
            wrote = f"set_enable_all_reduce_fusion({short(enable_all_reduce_fusion)})"
            raise TypeError(message(wrote, with_type("a bool", enable_all_reduce_fusion)))
        config = public.get_auto_parallel_context("comm_fusion") or {}
        public.set_auto_parallel_context(comm_fusion={**config, "openstate": enable_all_reduce_fusion})

    get_enable_all_gather_fusion = get_enable_reduce_scatter_fusion = get_enable_all_reduce_fusion
    set_enable_all_gather_fusion = set_enable_reduce_scatter_fusion = set_enable_all_reduce_fusion

    def allreduce_fusion_threshold_mb(self) -> int:
        """Return the size of joined sums of gradients in MB."""
        return self._threshold("allreduce")

    def allgather_fusion_threshold_mb(self) -> int:
        """Return the size of joined gathers in MB."""
        return self._threshold("allgather")

    def reducescatter_fusion_threshold_mb(self) -> int:
        """Return the size of joined scattered sums in MB."""
        return self._threshold("reducescatter")

    @staticmethod
    def _threshold(kind: str) -> int:
        config = ((public.get_auto_parallel_context("comm_fusion") or {}).get(kind) or {}).get("config")
        return config if isinstance(config, int) else 64


K_CONTEXT = Context()
_AUTO_PARALLEL = AutoParallelContext()


def _context() -> Context:
    """Return the context object."""
    return K_CONTEXT


def auto_parallel_context() -> AutoParallelContext:
    """Return the object of parallel execution."""
    return _AUTO_PARALLEL


def get_jit_config() -> dict[str, Any]:
    """Return `jit_config` as it was set."""
    return K_CONTEXT.get_jit_config()
