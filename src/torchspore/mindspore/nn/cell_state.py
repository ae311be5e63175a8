"""The state of a Cell: buffers in addition to Parameters, the state as a dictionary, and conversion to another dtype."""
from __future__ import annotations

import functools
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from torchspore.base.text import message, with_type
from torchspore.engine.tensors import change_counters, dtypes
from torchspore.engine.tensors.tensor import raw, rebind
from torchspore.errors import NameRefused
from torchspore.mindspore.common.tensor import Tensor, check_device
from torchspore.mindspore.nn.cell_hooks import HookHandle

_EXTRA = "_extra_state"


class _IncompatibleKeys(namedtuple("_IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """The names that load_state_dict missed, and those that it could not assign."""

    def __repr__(self) -> str:
        return super().__repr__() if self.missing_keys or self.unexpected_keys else "<All keys matched successfully>"


class HideableMethod:
    """A method that an inner Cell or a Parameter of the same name hides. Older versions of MindSpore lack the method."""

    gives_way = True

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        functools.update_wrapper(self, function)

    def __get__(self, cell: Any, owner: type | None = None) -> Any:
        if cell is not None:
            name = self._function.__name__
            for store_name in ("_cells", "_params"):
                if name in cell.__dict__.get(store_name, ()):
                    return cell.__dict__[store_name][name]
        return self._function.__get__(cell, owner)


class CellState:
    """The methods of a Cell for its state. Buffers are attributes that `register_buffer` named."""

    _cells: OrderedDict[str, Any]
    _params: OrderedDict[str, Any]
    cells_and_names: Callable[..., Any]

    # ---- buffers

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Make `tensor` a part of this Cell's state with the name `name`: not a Parameter, but in state_dict if `persistent`.

        Raises TypeError if it is not a Tensor or None, KeyError for a name that is taken, empty or has a dot.
        """
        if not isinstance(name, str):
            raise TypeError(f"register_buffer(name={name!r:.40}): buffer name should be a string, got {type(name).__name__}.")
        if not name or "." in name:
            raise NameRefused(f"register_buffer({name!r}): " + ('buffer name cannot contain ".".' if name else "expected a name."))
        buffers = self.__dict__.setdefault("_buffers", OrderedDict())
        if name not in buffers and (name in self._params or name in self._cells or hasattr(type(self), name) or name in self.__dict__):
            raise NameRefused(f"register_buffer({name!r}): {type(self).__name__}.{name} exists already.\n\nhint: give it another name.")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"register_buffer({name!r}): expected a Tensor or None, got {type(tensor).__name__}.")
        buffers[name] = bool(persistent)
        setattr(self, name, tensor)

    def _direct_buffers_(self, persistent_only: bool = False) -> Iterator[tuple[str, Any]]:
        for name, persistent in self.__dict__.get("_buffers", {}).items():
            value = self.__dict__.get(name)
            if value is not None and (persistent or not persistent_only):
                yield name, value

    def named_buffers(self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True) -> Iterator[tuple[str, Any]]:
        """Yield the buffers of this Cell, and with `recurse` of all Cells inside it, with their dotted names.

        Each Tensor occurs once, unless `remove_duplicate` is False.
        """
        seen: set[int] = set()
        for cell_name, cell in self.cells_and_names(name_prefix=prefix) if recurse else [(prefix, self)]:
            for name, value in cell._direct_buffers_():
                if not remove_duplicate or id(value) not in seen:
                    seen.add(id(value))
                    yield f"{cell_name}.{name}" if cell_name else name, value

    @HideableMethod
    def buffers(self, recurse: bool = True) -> Iterator[Any]:
        """Yield the buffers of this Cell, and with `recurse` of all Cells inside it."""
        for _, value in self.named_buffers(recurse=recurse):
            yield value

    def get_buffer(self, target: str) -> Tensor:
        """Return the buffer with the dotted name `target`. Raises AttributeError if there is none."""
        path, _, name = target.rpartition(".")
        cell = self.get_sub_cell(path)  # type: ignore[attr-defined]
        if name not in cell.__dict__.get("_buffers", {}):
            raise AttributeError(f"{type(cell).__name__} has no attribute {name!r} that is a buffer.")
        return getattr(cell, name)  # type: ignore[no-any-return]

    # ---- the complete state

    def state_dict(self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """Return Parameters and persistent buffers of this Cell and all Cells inside it, by their dotted names after `prefix`.

        The values are those of the Cell, not copies. `keep_vars` concerns gradient records, which Parameters here do not carry, so it has
        no effect. `destination` is filled and returned.
        """
        for name, value in zip(("destination", "prefix", "keep_vars"), args):
            destination, prefix, keep_vars = (
                value if name == "destination" else destination, value if name == "prefix" else prefix,
                value if name == "keep_vars" else keep_vars,
            )
        state = OrderedDict() if destination is None else destination
        for hook in self._state_hooks_("state_dict_pre"):
            hook(self, prefix, keep_vars)
        for name, parameter in self._params.items():
            if parameter is not None:
                state[prefix + name] = parameter
        for name, value in self._direct_buffers_(persistent_only=True):
            state[prefix + name] = value
        if type(self).get_extra_state is not CellState.get_extra_state:
            state[prefix + _EXTRA] = self.get_extra_state()
        for name, cell in self._cells.items():
            if cell is not None:
                cell.state_dict(destination=state, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in self._state_hooks_("state_dict_post"):
            hook(self, state, prefix, {})
        return state

    def get_extra_state(self) -> Any:
        """Return further state for state_dict; a Cell with further state defines this and `set_extra_state`."""
        raise RuntimeError(f"{type(self).__name__}: expected a method get_extra_state.\n\nhint: define it together with set_extra_state.")

    def set_extra_state(self, state: Any) -> None:
        """Restore the result of `get_extra_state`."""
        raise RuntimeError(
            f"{type(self).__name__}: expected a method set_extra_state for {state!r:.40}.\n\nhint: define it together with get_extra_state."
        )

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> Any:
        """Copy the values of `state_dict` into the Parameters and buffers of these names.

        Return (missing_keys, unexpected_keys). Raises TypeError if it is not a dict, RuntimeError for other shapes, and with `strict` for
        missing and unexpected names.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(message(f"load_state_dict({state_dict!r:.40})", with_type("a dict", state_dict)))
        values = OrderedDict(state_dict)
        missing: list[str] = []
        errors: list[str] = []
        loaded_names = self._load_(values, "", strict, missing, errors)
        unexpected = [name for name in values if name not in loaded_names]
        if strict:
            errors += [f"{name!r} is missing in it" for name in missing] + [f"{name!r} is unexpected" for name in unexpected]
        if errors:
            raise RuntimeError(f"load_state_dict into {type(self).__name__}: " + "; ".join(errors[:8]) + ".")
        incompatible_keys = _IncompatibleKeys(missing, unexpected)
        for hook in self._state_hooks_("load_state_dict_post"):
            hook(self, incompatible_keys)
        return incompatible_keys

    def _load_(self, values: Any, prefix: str, strict: bool, missing: list[str], errors: list[str]) -> set[str]:
        for hook in self._state_hooks_("load_state_dict_pre"):
            hook(self, values, prefix, {}, strict, missing, [], errors)
        loaded_names: set[str] = set()
        parameters = [(name, target) for name, target in self._params.items() if target is not None]
        targets = parameters + list(self._direct_buffers_(persistent_only=True))
        for name, target in targets:
            key = prefix + name
            loaded_names.add(key)
            if key not in values:
                missing.append(key)
            elif not isinstance(values[key], Tensor):
                errors.append(f"{key!r} is not a Tensor but {type(values[key]).__name__}")
            elif values[key].shape != target.shape:
                errors.append(f"{key!r} has shape {values[key].shape}, and {target.shape} here")
            else:
                source = raw(values[key])
                rebind(target, source.to(raw(target).dtype).detach().clone())
        if type(self).set_extra_state is not CellState.set_extra_state:
            key = prefix + _EXTRA
            loaded_names.add(key)
            if key in values:
                self.set_extra_state(values[key])
            else:
                missing.append(key)
        for name, cell in self._cells.items():
            if cell is not None:
                loaded_names |= cell._load_(values, f"{prefix}{name}.", strict, missing, errors)
        change_counters.cell_changed()
        return loaded_names

    # ---- hooks of both

    def _state_hooks_(self, kind: str) -> list[Any]:
        return list(self.__dict__.get("_hooks_of_state", {}).get(kind, {}).values())

    def _register_state_hook_(self, kind: str, hook: Callable[..., Any]) -> HookHandle:
        if not callable(hook):
            raise TypeError(message(f"register_{kind}_hook({hook!r:.40})", with_type("a function", hook)))
        hooks = self.__dict__.setdefault("_hooks_of_state", {}).setdefault(kind, OrderedDict())
        number = max(hooks, default=-1) + 1
        hooks[number] = hook
        return HookHandle(hooks, number)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """Call `hook(cell, prefix, keep_vars)` before state_dict."""
        return self._register_state_hook_("state_dict_pre", hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """Call `hook(cell, state_dict, prefix, local_metadata)` after state_dict; it may change the dictionary."""
        return self._register_state_hook_("state_dict_post", hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """Call `hook(cell, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)` before loading."""
        return self._register_state_hook_("load_state_dict_pre", hook)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """Call `hook(cell, incompatible_keys)` after load_state_dict; it may empty the lists."""
        return self._register_state_hook_("load_state_dict_post", hook)

    # ---- another dtype or device

    def _tensors_(self, recurse: bool = True) -> Iterator[Any]:
        for _, cell in self.cells_and_names() if recurse else [("", self)]:
            yield from (parameter for parameter in cell._params.values() if parameter is not None)
            yield from (value for _, value in cell._direct_buffers_())

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """Cast floating-point Parameters and buffers: `to(dtype)`, `to(tensor)` or `to(device, dtype)`; return the Cell.

        The device must be that of the process, or None; `non_blocking` has no effect, because nothing moves. Raises TypeError for
        an integer dtype and for other arguments.
        """
        device, dtype = _destination(args, kwargs)
        if device is not None:
            check_device("Cell.to", device)
        if dtype is None:
            return self
        if not dtypes.to_torch(dtype).is_floating_point and not dtypes.to_torch(dtype).is_complex:
            raise TypeError(f"Cell.to({dtype}): expected a dtype of floating or complex numbers.")
        for tensor in self._tensors_():
            values = raw(tensor)
            if values.is_floating_point() or values.is_complex():
                rebind(tensor, values.to(dtypes.to_torch(dtype)))
        change_counters.cell_changed()
        return self

    def to_empty(self, *, device: str | None = None, recurse: bool = True) -> Any:
        """Give Parameters and buffers new, uninitialized memory; return the Cell."""
        if device is not None:
            check_device("Cell.to_empty", device)
        for tensor in self._tensors_(recurse):
            rebind(tensor, raw(tensor).new_empty(raw(tensor).shape))
        change_counters.cell_changed()
        return self


def _destination(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    """Return (device, dtype) from the arguments of `to`."""
    unknown = [name for name in kwargs if name not in ("device", "dtype", "non_blocking", "tensor")]
    if unknown:
        raise TypeError(f"Cell.to({unknown[0]}=...): expected device, dtype or non_blocking.")
    device, dtype = kwargs.get("device"), kwargs.get("dtype")
    values = [*args, *([kwargs["tensor"]] if "tensor" in kwargs else [])]
    for value in values:
        if isinstance(value, Tensor):
            dtype = value.dtype
        elif isinstance(value, dtypes.Type):
            dtype = value
        elif isinstance(value, str):
            device = value
        elif value is not None and not isinstance(value, bool):
            raise TypeError(f"Cell.to({value!r:.40}): expected a device, a dtype or a Tensor, got {type(value).__name__}.")
    if dtype is not None and not isinstance(dtype, dtypes.Type):
        raise TypeError(f"Cell.to(dtype={dtype!r:.40}): expected a MindSpore dtype, got {type(dtype).__name__}.")
    return device, dtype
