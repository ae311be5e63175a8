"""`mindspore.Parameter`: a named Tensor that belongs to a Cell and that an optimizer changes."""
from __future__ import annotations

import copy
import itertools
import sys
from collections.abc import Iterable
from typing import Any

from torchspore.base.frames import is_user_file
from torchspore.base.text import message, short, with_type
from torchspore.context import effects
from torchspore.engine.execution import thread_state
from torchspore.engine.memory import memory_owners
from torchspore.engine.native import allocator
from torchspore.engine.split_layouts.sharded_value import RowShard
from torchspore.engine.tensors import change_counters, creation, dtypes
from torchspore.engine.tensors import tensor as engine
from torchspore.engine.tensors.delayed_values import DelayedValue, draw_in, is_delayed
from torchspore.engine.tensors.tensor import TensorBase, raw, rebind, write
from torchspore.mindspore.common import deferred_init
from torchspore.mindspore.common.tensor import Tensor, check_device, copied_attributes, description_of_part
from torchspore.translations import translate

DEFAULT_NAME = "Parameter"
_unnamed = itertools.count()


class _Flag:
    """An attribute of a Parameter that is a bool, or an int from 0 on. Raises TypeError for other values."""

    def __init__(self, kind: type) -> None:
        self._kind = kind

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, parameter: Any, owner: type) -> Any:
        if parameter is None:
            return self
        try:
            return parameter.__dict__[self._name]
        except KeyError:
            raise AttributeError(self._name) from None

    def __set__(self, parameter: Any, value: Any) -> None:
        if type(value) is not self._kind or value < 0:
            expected = "a bool" if self._kind is bool else "an int from 0 on"
            raise TypeError(f"Parameter {parameter.name!r}: {self._name}={value!r:.40}: expected {expected}.")
        parameter.__dict__[self._name] = value


class Parameter(Tensor):
    """A Tensor that is part of a network's state.

    `default_input` is a Tensor, a number, an array or an initializer's result; its values are copied. If `name` is None, the attribute of
    the Cell becomes the name. `requires_grad` sets whether optimizers train it. Raises TypeError for a name that is not a str.
    """

    __slots__ = ()
    __parameter__ = True

    layerwise_parallel = _Flag(bool)
    parallel_optimizer = _Flag(bool)
    cache_enable = _Flag(bool)
    comm_fusion = _Flag(int)

    def __init__(
        self, default_input: Any, name: str | None = None, requires_grad: bool = True, layerwise_parallel: bool = False,
        parallel_optimizer: bool = True, storage_format: str = "", device: str | None = None,
    ) -> None:
        if device is not None:
            check_device("Parameter", device)
        if isinstance(default_input, TensorBase):
            with engine.outside():
                t = deferred_init.initial_values(default_input) if default_input.has_init else default_input._t
                if is_delayed(t):
                    self._t = DelayedValue(t.initial)
                    self._t.belongs_to(self)
                else:
                    self._t = t.detach().clone()
        else:
            if isinstance(default_input, bool):
                raise ValueError(
                    f"Parameter({default_input}): expected a number, got a bool.\n\nhint: write Tensor({default_input})."
                )
            self._t = creation.from_data(default_input, dtypes.int32 if isinstance(default_input, int) else None)
        self.name = name
        self.requires_grad = requires_grad
        self.layerwise_parallel, self.parallel_optimizer, self.storage_format = layerwise_parallel, parallel_optimizer, storage_format
        self.is_init, self.sliced, self.cache_enable, self.comm_fusion = False, False, False, 1
        if allocator.is_on:
            memory_owners.born(self)

    def init_data(self, layout: Any = None, set_sliced: bool = False) -> Parameter:
        """Return the Parameter with its initial values, which exist from the start unless `init_param_in_compile` delays them.

        One process stores all of it, so `layout`, a tuple, has no effect; `set_sliced` marks it as split. Raises TypeError otherwise.
        """
        if layout is not None and not isinstance(layout, tuple):
            raise TypeError(f"Parameter.init_data(layout={layout!r:.40}): expected a tuple or None, got {type(layout).__name__}.")
        if set_sliced:
            self.sliced = True
        draw_in(self)
        return self

    def set_param_ps(self, init_in_server: bool = False) -> None:
        """Let the servers of `set_ps_context` store this Parameter; with `init_in_server` they draw its initial values too.

        Raises RuntimeError in a process without a parameter server.
        """
        from torchspore.mindspore.common import server_session

        server_session.mark(self, init_in_server)

    def register_hook(self, hook_fn: Any) -> Any:
        """As `Tensor.register_hook`: calls `hook_fn(gradient)` when a gradient of this Parameter is computed."""
        return super().register_hook(hook_fn)

    @property
    def name(self) -> str:
        """The name in checkpoints; `Parameter#7` until a Cell or the program sets one."""
        return self._name  # type: ignore[no-any-return]

    @name.setter
    def name(self, value: str | None) -> None:
        if value is None or (isinstance(value, str) and not value.strip()):
            value = f"{DEFAULT_NAME}#{next(_unnamed)}"
        if not isinstance(value, str):                      # a ValueError, as in MindSpore
            raise ValueError(f"Parameter(name={value!r}): expected a str, got {type(value).__name__}.\n\nhint: write name='weight'.")
        if "_name" in self.__dict__:
            _refuse_in_graph(self._name, "name", "name the Parameter in __init__")
        self._name = value

    @property
    def requires_grad(self) -> bool:
        """True if optimizers train it."""
        for link in self.__dict__.get(engine.LINKS, ()):
            link.take_flag()
        return self._requires_grad  # type: ignore[no-any-return]

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise TypeError(message(f"Parameter {self.name!r}: requires_grad={value!r}", with_type("a bool", value)))
        if "_requires_grad" in self.__dict__:
            _refuse_in_graph(self._name, "requires_grad", "set it outside of the call, or use PYNATIVE_MODE without @jit")
        self._requires_grad = value
        for link in self.__dict__.get(engine.LINKS, ()):
            link.give_flag(value)
        change_counters.rebinds += 1
        around = engine.frame()
        while around is not None:
            around.flag_set(self, value)
            around = around.outer

    @property
    def is_unnamed(self) -> bool:
        """True if neither a Cell nor the program has named it."""
        return _is_parameter_generated(self._name)

    @property
    def inited_param(self) -> Parameter:
        """Return the Parameter itself, which already has its initial values."""
        return self

    @property
    def data(self) -> Tensor:
        """A Tensor in the same memory: changes of one are visible in the other, until `set_data` gives the Parameter other memory."""
        return engine.wrap(raw(self))  # type: ignore[no-any-return]

    @data.setter
    def data(self, value: Any) -> None:
        self.set_data(value)

    @property
    def init_mode(self) -> None:
        """The Tensor from which the Parameter will be initialized; None, because it has its values from the start."""
        return None

    @property
    def param_info(self) -> Parameter:
        """The description of this Parameter: the Parameter itself (name, requires_grad, layerwise_parallel, …)."""
        return self

    def value(self) -> Tensor:
        """Return a Tensor of the current values, which later assignments to the Parameter do not change."""
        return engine.wrap(raw(self).clone())  # type: ignore[no-any-return]

    def set_data(self, data: Any, slice_shape: bool = False) -> Parameter:
        """Copy the values of `data`, also of another shape, in the Parameter's dtype. Return the Parameter.

        `slice_shape` announces another shape, such as that of a slice; it is accepted without it too, as in MindSpore 2.10.
        Tensors that shared memory with the Parameter (`data`, `asnumpy()`) keep their values.
        """
        if not isinstance(slice_shape, bool):
            raise TypeError(message(f"Parameter {self.name!r}: set_data(slice_shape={slice_shape!r})", "a bool"))
        if not isinstance(data, (TensorBase, int, float)):
            call_text = f"Parameter {self.name!r}: set_data({type(data).__name__})"
            raise TypeError(message(call_text, with_type("a Tensor, an int or a float", data)))
        if isinstance(data, float) and not (self._t.dtype.is_floating_point or self._t.dtype.is_complex):
            raise TypeError(translate(
                "Incoming Parameter dtype can not be converted to current dtype implicitly. Current dtype is {dtype}, and incoming is "
                "Float. Use .set_dtype(xxx) to change the dtype."
            ).format(dtype=self.dtype))
        source = raw(data) if isinstance(data, TensorBase) else creation.from_data(data)
        source = source.to(self._t.dtype)
        if isinstance(self._t, RowShard) and source.shape == self._t.shape:
            write(self, source)
            return self
        layout = self.__dict__.get("_sharded_layout") or getattr(self._t, "sharded_layout", None)      # a shared optimizer state
        if layout is not None and hasattr(source, "sharded_layout"):
            from torchspore.distributed.shard import gather

            source = gather.equally_split_part(source, layout)
        elif layout is not None and (source.shape != self._t.shape or tuple(source.shape) == layout.shape):
            from torchspore.distributed.shard import gather

            source = gather.local_part_of_data(self, source, layout)
            if gather.is_absent(layout):
                rebind(self, source)
                return self
        if source.shape == self._t.shape and engine.frame() is not None:
            write(self, source)
        else:
            is_part = "_sharded_layout" in self.__dict__ or source.shape == self._t.shape
            rebind(self, source.detach().clone())
            self._store_sharded_layout(layout if is_part else None)
        return self

    def _store_sharded_layout(self, layout: Any) -> None:
        """Make new values of a split Parameter the local part of the full value."""
        if layout is not None and engine.frame() is None:
            from torchspore.distributed.shard import gather

            self._t = gather.stored_value(self._t, layout)

    def clone(self, init: Any = "same") -> Parameter:
        """A Parameter of the same name, shape and flags: with the same values, or filled by the initializer `init`."""
        if isinstance(init, str) and init == "same":
            return copy.copy(self)
        from torchspore.mindspore.common.initializer import initializer

        clone = self._with(deferred_init.initial_values(initializer(init, self.shape, self.dtype)))
        if is_delayed(clone._t):
            clone._t.belongs_to(clone)
        clone._store_sharded_layout(self.__dict__.get("_sharded_layout"))
        return clone

    def copy(self) -> Parameter:
        """Return a Parameter of the same name, flags and values."""
        return copy.copy(self)

    def __copy__(self) -> Parameter:
        return self._with(raw(self).clone())

    def _with(self, t: Any) -> Parameter:
        """Return a Parameter of the same name and flags with other values."""
        parameter: Parameter = engine.new_object(type(self))
        parameter._t = t
        parameter.__dict__.update(copied_attributes(self))
        if allocator.is_on:
            memory_owners.born(parameter)
        return parameter

    def add_pipeline_stage(self, stage: int) -> None:
        """Store that `stage` of a pipeline uses the Parameter too. The stages themselves follow from the Cells that use it.

        Raises TypeError for a value that is not an int from 0 on.
        """
        if isinstance(stage, bool) or not isinstance(stage, int) or stage < 0:
            raise TypeError(message(f"add_pipeline_stage({short(stage)})", "an int from 0 on: the number of a stage"))
        self.__dict__.setdefault("_pipeline_stage_list", []).append(stage)
        effects.note("distribution", "add_pipeline_stage has no effect: the stages of a Parameter follow from the Cells that use it")

    def __repr__(self) -> str:
        holding_text = description_of_part(self)
        facts = f"name={self.name}, shape={self.shape}, dtype={self.dtype}, requires_grad={self.requires_grad}"
        return f"Parameter ({facts}, {holding_text})" if holding_text else f"Parameter ({facts})"

    __str__ = __repr__


def _refuse_in_graph(name: str, attribute: str, hint: str) -> None:
    """Raises ValueError, as MindSpore does, if the program sets an attribute of a Parameter inside of a graph; also inside of as_module."""
    if (thread_state.is_in_graph() or thread_state.is_in_jit()) and is_user_file(sys._getframe(2).f_code.co_filename):
        thread_state.refuse_in_module(f"{attribute} of Parameter {name!r}")
        raise ValueError(f"Do not support to set attribute for a parameter. ({attribute} of {name!r} in a graph)\n\nhint: {hint}.")


class _BufferMeta(type(Tensor)):  # type: ignore[misc]
    """Makes `isinstance(tensor, _Buffer)` True for a Tensor that `_Buffer` returned."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and bool(instance.__dict__.get("_is_buffer", False))


class _Buffer(Tensor, metaclass=_BufferMeta):
    """A Tensor that becomes a buffer of the Cell of which it is made an attribute: state, but not a Parameter.

    Without `persistent` it is not in the Cell's state_dict. Raises ValueError without data, TypeError for data that is not a Tensor.
    """

    def __new__(cls, data: Any, *, persistent: bool = True) -> Any:  # type: ignore[misc]
        """Return a Tensor that shares the memory of `data`."""
        if data is None:
            raise ValueError("_Buffer(None): expected a Tensor.\n\nhint: input data should not be None.")
        if not isinstance(data, Tensor):
            raise TypeError(f"_Buffer({data!r:.40}): type of input data should be Tensor, got {type(data).__name__}.")
        tensor = engine.wrap(raw(data).detach())
        tensor.__dict__.update(_is_buffer=True, persistent=bool(persistent))
        return tensor


def _is_parameter_generated(param_name: str | None) -> bool:
    """Return whether neither a Cell nor the program has named the Parameter."""
    return isinstance(param_name, str) and param_name.startswith(f"{DEFAULT_NAME}#")


class ParameterTuple(tuple[Parameter, ...]):
    """A tuple of Parameters. Raises TypeError for an element that is not one, ValueError for a repeated name."""

    def __new__(cls, iterable: Iterable[Parameter]) -> ParameterTuple:
        data = tuple(iterable)
        seen: set[str] = set()
        parameter_ids: set[int] = set()
        for parameter in data:
            if not isinstance(parameter, Parameter):
                raise TypeError(message("ParameterTuple", with_type("Parameters", parameter)))
            if id(parameter) not in parameter_ids:
                parameter_ids.add(id(parameter))
                if parameter.name in seen:
                    raise ValueError(
                        f"ParameterTuple: the name {parameter.name!r} occurs twice, its name {parameter.name!r} already exists.\n\n"
                        "hint: give each Parameter a unique name."
                    )
                seen.add(parameter.name)
        return tuple.__new__(cls, data)

    def clone(self, prefix: str, init: Any = "same") -> ParameterTuple:
        """Return a tuple of clones whose names begin with `prefix.`."""
        clones = []
        for parameter in self:
            new = parameter.clone(init)
            new.name = f"{prefix}.{new.name}"
            clones.append(new)
        return ParameterTuple(clones)

    def __parameter_tuple__(self) -> None:
        """Mark the class."""
