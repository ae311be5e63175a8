"""The base classes of primitives, which are operators in class form."""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from torchspore.base.text import list_choices, message, short, with_type
from torchspore.context import effects
from torchspore.context.store import STORE
from torchspore.engine import process
from torchspore.engine.execution import thread_state
from torchspore.engine.front_end import FRONT
from torchspore.mindspore.ops.declaration import strategy_checks


class Primitive:
    """Base class of operators in class form: a name, attributes, and a call.

    Users subclass it too, with `@prim_attr_register` on their `__init__`.
    """

    _repr_ignore_list = ("input_names", "output_names", "in_strategy")

    def __init__(self, name: str | None = None) -> None:
        self.name = name or type(self).__name__
        self.attrs: dict[str, Any] = {}
        self.init_attrs: dict[str, Any] = {"name": self.name}
        self.instance_name = self.name
        self.primitive_target: str | None = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__call__" in cls.__dict__ and not cls.__module__.startswith("torchspore."):
            from torchspore.mindspore.ops.declaration import user_primitives

            cls.__call__ = user_primitives.with_inferred_result(cls.__dict__["__call__"])  # type: ignore[method-assign]

    def __call__(self, *args: Any) -> Any:
        raise NotImplementedError(
            f"{type(self).__name__}: expected a subclass with a __call__.\n\nhint: define __call__(self, *inputs) on {type(self).__name__}."
        )

    def add_prim_attr(self, name: str, value: Any) -> Primitive:
        """Set the attribute `name`, also readable as `primitive.name`. Raises TypeError for a name that is not a str."""
        if not isinstance(name, str):
            raise TypeError(message(f"{self.name}.add_prim_attr(name={short(name)})", with_type("a str", name)))
        self.__dict__[name] = value
        self.attrs[name] = value
        return self

    def del_prim_attr(self, name: str) -> Primitive:
        """Remove the attribute `name`; return the primitive."""
        self.__dict__.pop(name, None)
        self.attrs.pop(name, None)
        return self

    def set_prim_instance_name(self, instance_name: str) -> Primitive:
        """Name this instance; return it."""
        self.instance_name = instance_name
        return self

    def init_prim_io_names(self, inputs: list[str], outputs: list[str]) -> None:
        """Name the inputs and the outputs."""
        self.add_prim_attr("input_names", inputs)
        self.add_prim_attr("output_names", outputs)

    def set_device(self, device_target: str) -> Primitive:
        """Request a device for this operator. Return the primitive.

        Operators run on the device of the context, which '' and 'DEVICE' name; `torchspore explain` reports a request for another one.

        Raises:
            ValueError: `device_target` is not 'CPU', 'GPU' or 'Ascend'.
        """
        if isinstance(device_target, str) and device_target.upper() in ("", "DEVICE"):
            device_target = str(STORE.get("device_target"))
        if device_target not in ("CPU", "GPU", "Ascend"):
            raise ValueError(f"{self.name}.set_device({short(device_target)}): expected {list_choices(('CPU', 'GPU', 'Ascend'))}.")
        if device_target != STORE.get("device_target"):
            effects.note("operators", f"{self.name}.set_device({device_target!r}) has no effect here, because every operator runs on the "
                                      f"context's device_target, {STORE.get('device_target')!r}")
        self.primitive_target = device_target
        return self.add_prim_attr("primitive_target", device_target)

    def set_stage(self, stage: int) -> Primitive:
        """Set the attribute `stage`, as MindSpore does. Return the primitive. `Cell.pipeline_stage` decides where a graph is cut."""
        effects.note("operators", f"{self.name}.set_stage({stage!r}) has no effect here, because Cell.pipeline_stage assigns stages")
        return self.add_prim_attr("stage", stage)

    def place(self, role: str, rank_id: int) -> Primitive:
        """Set the process that runs this operator. Return the primitive. Only this process, role 'MS_WORKER', can be named.

        Raises:
            ValueError: `role` is not 'MS_WORKER', or `rank_id` is another process.
        """
        if role != "MS_WORKER":
            raise ValueError(f"{self.name}.place({role!r}, {rank_id!r}): expected the role 'MS_WORKER'.")
        if rank_id != process.rank():
            raise ValueError(f"{self.name}.place({role!r}, {rank_id!r}): expected {process.rank()}, the rank of this process.\n\n"
                             "hint: use Cell.pipeline_stage or ops.Send and ops.Receive to compute in another process.")
        return self

    def shard(self, in_strategy: Any = None, out_strategy: Any = None) -> Primitive:
        """Set how the inputs, and the results, are split among devices; return the primitive.

        A strategy is a tuple with a tuple of numbers for each Tensor, the number of parts per dimension, or a Layout for each
        Tensor; an input that is a tuple of Tensors may have a tuple of these. Raises TypeError and ValueError for other values; a
        call of the primitive checks whether the strategy fits.
        """
        in_strategy, out_strategy = map(strategy_checks.flattened, (in_strategy, out_strategy))
        strategy_checks.check(self.name, in_strategy, out_strategy)
        self.out_strategy = out_strategy
        if in_strategy is not None:
            self.__class__ = _laying_out(type(self))
            layer = self.__dict__.pop("_part_of", None)
            if layer is not None:
                layer._compute_by_parts_(self.name)
        for key, strategy in (("in_layout", in_strategy), ("out_layout", out_strategy)):
            if strategy and strategy_checks.is_layout(strategy[0]):
                self.add_prim_attr(key, strategy_checks.as_attributes(strategy))
        return self.add_prim_attr("in_strategy", in_strategy)

    def recompute(self, mode: bool = True) -> Primitive:
        """Set whether a backward pass computes this operator again instead of keeping its intermediate values. Return the primitive.

        Raises:
            TypeError: `mode` is not a bool.
        """
        if not isinstance(mode, bool):
            raise TypeError(message(f"{self.name}.recompute({short(mode)})", with_type("a bool", mode)))
        if mode:
            self.__class__ = _recomputing_class(type(self))
        self.attrs["recompute"] = mode         # an attribute of the object would hide this method
        return self

    def __repr__(self) -> str:
        shown = {key: value for key, value in self.attrs.items() if key not in self._repr_ignore_list}
        return f"Prim[{self.name}]<{', '.join(f'{key}={value}' for key, value in shown.items())}>"


@functools.cache
def _laying_out(cls: type[Primitive]) -> type[Primitive]:
    """Base class of primitives with a strategy: where graphs are split, their calls lay out inputs and results."""
    if hasattr(cls, "_laid_out"):
        return cls

    def __call__(self: Primitive, *args: Any, **kwargs: Any) -> Any:
        from torchspore.distributed.shard import strategy_calls

        return strategy_calls.laid_out(self, functools.partial(cls.__call__, self), args, kwargs)

    return _subclass(cls, __call__, "_laid_out")


@functools.cache
def _recomputing_class(cls: type[Primitive]) -> type[Primitive]:
    """Return the subclass of `cls` whose calls a backward pass computes again while the attribute `recompute` is true."""
    if hasattr(cls, "_recomputes"):
        return cls

    def __call__(self: Primitive, *args: Any, **kwargs: Any) -> Any:
        call = functools.partial(cls.__call__, self)
        if self.attrs.get("recompute"):
            from torchspore.engine.autograd.recompute import recomputed

            call = recomputed(call, self.name, None)
        return call(*args, **kwargs)

    return _subclass(cls, __call__, "_recomputes")


def _subclass(cls: type[Primitive], call: Callable[..., Any], mark: str) -> type[Primitive]:
    """Return a subclass of `cls` with another call that looks like `cls`."""
    base, marks = cls.__dict__.get("_derived_from", (cls, ()))
    marks = (*marks, mark)

    def __reduce__(self: Primitive) -> Any:
        return _empty_instance, (base, marks), self.__dict__

    body = {
        "__call__": call, "__reduce__": __reduce__, "__doc__": cls.__doc__, "__module__": cls.__module__,
        "__qualname__": cls.__qualname__, mark: True, "_derived_from": (base, marks),
    }
    return type(cls.__name__, (cls,), body)


def _empty_instance(cls: type[Primitive], marks: tuple[str, ...]) -> Primitive:
    """Return an instance of the subclass of `cls` that these marks name in order, which pickle and deepcopy then fill."""
    for mark in marks:
        cls = _laying_out(cls) if mark == "_laid_out" else _recomputing_class(cls)
    return cls.__new__(cls)


class PrimitiveWithInfer(Primitive):
    """A user-defined primitive that also infers its result's shape and dtype."""


class PrimitiveWithCheck(Primitive):
    """A user-defined primitive that also checks its inputs."""


def prim_attr_register(fn: Callable[..., None]) -> Callable[..., None]:
    """Decorates a primitive's `__init__`, so that each of its arguments becomes an attribute of the primitive."""
    parameters = inspect.signature(fn)

    @functools.wraps(fn)
    def initialise(self: Primitive, *args: Any, **kwargs: Any) -> None:
        if "attrs" not in self.__dict__:
            Primitive.__init__(self)
        bound = parameters.bind(self, *args, **kwargs)
        bound.apply_defaults()
        self.init_attrs = {}
        for name, value in list(bound.arguments.items())[1:]:
            self.add_prim_attr(name, value)
            self.init_attrs[name] = value
        fn(self, *args, **kwargs)

    return initialise


@functools.cache
def _cached_primitive(
    cls: type[Primitive], arguments: tuple[tuple[type, Any], ...], keywords: tuple[tuple[str, type, Any], ...],
) -> Primitive:
    return cls(*(value for _, value in arguments), **{key: value for key, _, value in keywords})


def _get_cache_prim(cls: type[Primitive]) -> Callable[..., Primitive]:
    """Return a function that creates instances of the primitive `cls`, and returns the same one for the same arguments.

    In a graph each call creates a new one, as in MindSpore: a strategy or attribute of a shared instance acts where the program holds it.
    """

    def create(*args: Any, **kwargs: Any) -> Primitive:
        if thread_state.is_in_graph() or thread_state.is_in_jit():
            return cls(*args, **kwargs)
        try:
            return _cached_primitive(cls, tuple((type(a), a) for a in args), tuple((k, type(v), v) for k, v in kwargs.items()))
        except TypeError:           # unhashable arguments, such as lists; another error of the constructor occurs again
            return cls(*args, **kwargs)

    return create


FRONT.primitive = Primitive
