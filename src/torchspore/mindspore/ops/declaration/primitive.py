"""Primitives: the class form of operators. Instances hold the constructor's arguments."""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from torchspore.base.frames import user_line
from torchspore.base.function_parameters import Parameters, parameters_of
from torchspore.base.text import list_choices, message, short, with_hint, with_type
from torchspore.context import effects
from torchspore.context.store import STORE
from torchspore.engine import process
from torchspore.engine.execution import thread_state
from torchspore.engine.front_end import FRONT
from torchspore.engine.random.operator_streams import OperatorStream
from torchspore.engine.random.seeded_streams import Stream
from torchspore.engine.tensors import change_counters
from torchspore.engine.tensors.tensor import frame
from torchspore.errors import WrongKind
from torchspore.mindspore.ops.declaration import strategy_checks
from torchspore.mindspore.ops.declaration.call_keys import MOST_CALLS, call_key
from torchspore.mindspore.ops.declaration.explain import replaced
from torchspore.mindspore.ops.declaration.primitive_limits import LIMITS, check_relations
from torchspore.public_names import older_calls
from torchspore.translations import translate


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


_REFUSED: dict[Any, frozenset[type]] = {
    kind.__name__: frozenset({str, bool, int, float, complex, list, tuple, dict, type(None)}) - taken
    for kind, taken in ((bool, {bool}), (int, {int}), (float, {float, int}), (str, {str}))
}
"""Types that an argument with this annotation must not have; the operator judges others (NumPy's numbers, Tensors)."""


_WORDS = {
    **dict.fromkeys((("Loss", "reduction"), ("Entropy", "reduction")), ("mean", "sum", "none")),
    ("KLDivLoss", "reduction"): ("mean", "sum", "none", "batchmean"),
    ("Pool", "pad_mode"): ("same", "valid", "pad"),
    ("MaxPoolWithArgmax", "pad_mode"): ("same", "valid"),
    ("GridSampler", "padding_mode"): ("zeros", "border", "reflection"),
    ("GridSampler", "interpolation_mode"): ("bilinear", "nearest", "bicubic"),
    ("Meshgrid", "indexing"): ("xy", "ij"),
    ("ResizeLinear1D", "coordinate_transformation_mode"): ("align_corners", "half_pixel"),
    ("TensorScatterElements", "reduction"): ("none", "add"),
    ("Matrix", "align"): ("left_right", "right_left", "left_left", "right_right"),
}
"""By a part of a primitive's name and an argument: the lower-case words that it accepts. The last entry that fits counts."""


def check_kinds(name: str, kind: str, **arguments: Any) -> None:
    """Raises TypeError if an argument of the class `name` is not a `kind`: 'bool', 'int', 'float' (or an int) or 'str'."""
    for key, value in arguments.items():
        if value.__class__ in _REFUSED[kind]:
            _refuse(name, key, value, kind)


def _refuse(name: str, key: str, value: Any, kind: str) -> None:
    raise TypeError(message(f"{name}({key}={short(value)})", with_type(f"{'an' if kind == 'int' else 'a'} {kind}", value)))


def _refuse_seed(name: str, value: Any) -> None:
    kind, got = (ValueError, short(value)) if value.__class__ is int else (TypeError, type(value).__name__)
    expected = translate("{expected}, got {kind}").format(expected=translate("an int from 0 on"), kind=got)
    raise kind(message(f"{name}(seed={short(value)})", expected))


def _wrong_constructor_call(name: str, constructor: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> TypeError:
    """Return the error for arguments that do not fit the constructor of the primitive `name`."""
    from torchspore.mindspore.ops.declaration.explain import shown

    arguments = ", ".join([*map(shown, args), *(f"{key}={shown(value)}" for key, value in kwargs.items())])
    bare = constructor.replace(parameters=[p.replace(annotation=inspect.Parameter.empty) for p in constructor.parameters.values()])
    text = f"{name}({arguments}): expected {name}{bare}.".replace("=torch.", "=mindspore.")
    hint = older_calls.explanation([name], constructor.parameters, kwargs)
    return TypeError(with_hint(text, hint) if hint else text)


def _wrong_number_of_inputs(name: str, fewest: int, most: int, number: int) -> str:
    """Return the sentence of MindSpore's compiler for a call of the primitive `name` with too many or too few inputs."""
    if number > most:
        return f"For Operator[{name}], the number of inputs should be less than or equal to {most}, but got {number}."
    return f"For 'S_Prim_{name}', the size of input should be {fewest}, but got {number}."


def _start_stream(name: str, arguments: dict[str, Any]) -> None:
    """Replace a seed among the arguments of the primitive `name` by the stream of random numbers that it starts."""
    if name == "Dropout" and isinstance(arguments["Seed0"], int) and (arguments["Seed0"] or arguments["Seed1"]):
        arguments["Seed0"] = OperatorStream((arguments["Seed0"], int(arguments["Seed1"])))
    seed = arguments.get("seed")
    if isinstance(seed, int) and seed >= 0:
        arguments["seed"] = Stream(seed, arguments.get("seed2", arguments.get("offset", 0)))


def _announce_change(primitive: Any, key: str) -> None:
    """Make graphs that were captured with another value of a primitive's argument void, and end a capture that changes one."""
    around = frame()
    if around is None:
        change_counters.calls_changed()
    elif primitive._frame_of_creation != id(around):      # a primitive of the running call may change: no graph has it
        around.acts_beside(f"changes {primitive.name}.{key}")
        change_counters.calls_changed()


_FUNCTION_ONLY: dict[str, frozenset[str]] = {
    **dict.fromkeys(("Div", "Divs", "InplaceDiv", "InplaceDivs"), frozenset({"rounding_mode"})),
    **dict.fromkeys(("Hardtanh", "ReLU", "SiLU", "Threshold"), frozenset({"inplace"})),
    "MedianExt": frozenset({"dim", "keepdim"}), "NonZeroExt": frozenset({"as_tuple"}), "View": frozenset({"dtype"}),
}
"""By primitive the parameters of its function that calls of the primitive do not take, as in MindSpore 2.10."""


class _ArgumentChecks:
    """The checks of the arguments that a primitive's constructor takes."""

    def __init__(self, name: str, parameters: Parameters, init: tuple[str, ...]) -> None:
        unknown = [parameter for parameter in init if parameter not in parameters.names]
        if unknown:
            raise ValueError(f"{name}: {', '.join(unknown)} are not parameters of its function, which has {', '.join(parameters.names)}.")
        self._name = name
        self._kinds = {p: kind for p in init if (kind := parameters.annotations.get(p, "")) in _REFUSED}
        self._words = {p: allowed for (part, p), allowed in _WORDS.items() if p in self._kinds and part in name}
        self._limits = LIMITS.get(name, {})

    def check(self, key: str, value: Any) -> Any:
        """Return the argument `key` in the form for the operator. Raises TypeError or ValueError for a wrong value."""
        name, kinds, words = self._name, self._kinds, self._words
        if key in kinds and value.__class__ in _REFUSED[kinds[key]]:
            _refuse(name, key, value, kinds[key])
        if key in words and not isinstance(value, str):
            _refuse(name, key, value, "str")
        if key in words and value.lower() not in words[key]:
            raise ValueError(message(f"{name}({key}={short(value)})", list_choices(words[key])))
        if key in self._limits:
            self._limits[key](name, key, value)
        if key == "seed" and value is not None and (value.__class__ in _REFUSED["int"] or (value.__class__ is int and value < 0)):
            _refuse_seed(name, value)
        return value.lower() if key in words else value


def primitive_class(name: str, function: Callable[..., Any], init: tuple[str, ...]) -> type[Primitive]:
    """Build the class form of `function`: its constructor takes the parameters named in `init`, its call takes the others.

    Each primitive of a function with the parameter `operator_stream` passes it a separate stream, for seeds in the call.
    """
    parameters = parameters_of(function)
    checks = _ArgumentChecks(name, parameters, init)
    signature = _signature(parameters, init)
    function_only = _FUNCTION_ONLY.get(name, frozenset())
    called = tuple(p for p in parameters.names if p not in init and p != "operator_stream" and p not in function_only)

    def set_argument(primitive: Any, key: str, value: Any) -> None:
        argument = checks.check(key, value)
        _announce_change(primitive, key)
        primitive._arguments[key] = argument
        _start_stream(name, primitive._arguments)

    def add_prim_attr(self: Any, name: str, value: Any) -> Primitive:
        """Set the attribute `name`. An argument of the constructor is checked as in the constructor, and acts from the next call on."""
        if isinstance(name, str) and name in init:
            set_argument(self, name, value)
        return Primitive.add_prim_attr(self, name, value)

    def __setattr__(self: Any, key: str, value: Any) -> None:
        if key in init:
            self.add_prim_attr(key, value)
        else:
            object.__setattr__(self, key, value)

    add_prim_attr.__qualname__ = f"{name}.add_prim_attr"          # Python's errors for a wrong call print it
    body = {
        "__init__": _constructor(name, signature, checks, "operator_stream" in parameters.names),
        "__call__": _call_method(name, function, parameters, called, function_only), "add_prim_attr": add_prim_attr,
        "__setattr__": __setattr__,
        "_called": called, "__doc__": function.__doc__, "__module__": "torchspore.mindspore.ops.operations",
    }
    return type(name, (Primitive,), body)


_SELF = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
_WITHOUT_ARGUMENTS = inspect.Signature([_SELF])
_EMPTY = inspect.Signature()


def _signature(parameters: Parameters, init: tuple[str, ...]) -> inspect.Signature:
    """Return the signature of a constructor, without `self`."""
    missing = inspect.Parameter.empty
    return inspect.Signature([
        inspect.Parameter(p, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=parameters.defaults.get(p, missing),
                          annotation=parameters.annotations.get(p, missing))
        for p in init
    ]) if init else _EMPTY


def _constructor(name: str, signature: inspect.Signature, checks: _ArgumentChecks, has_stream: bool) -> Callable[..., None]:
    """Return the `__init__` of a primitive; with `has_stream`, each primitive has a separate stream of random numbers."""

    accepted: dict[Any, tuple[dict[str, Any], dict[str, Any]]] = {}
    """The arguments of earlier calls by `call_key`: programs write `P.ReduceSum(keep_dims=True)(x)` in `construct`."""

    def bind(self: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return all arguments by name, and the checked values of those that the call passes."""
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:
            older_spelling = older_calls.renamed_arguments(functools.partial(__init__, self), [name], args, kwargs)
            if older_spelling is None:
                raise _wrong_constructor_call(name, signature, args, kwargs) from None
            bound = signature.bind(*args, **older_spelling)
        checked = {key: checks.check(key, value) for key, value in bound.arguments.items()}
        bound.apply_defaults()
        check_relations(name, bound.arguments)
        return bound.arguments, checked

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        call = call_key(args, kwargs)
        accepted_arguments = None if call is None else accepted.get(call)
        arguments, checked = bind(self, args, kwargs) if accepted_arguments is None else accepted_arguments
        if accepted_arguments is None and call is not None and len(accepted) < MOST_CALLS:
            accepted[call] = arguments, checked
        state = self.__dict__                  # `__setattr__` of the class would check each name
        state.update(name=name, attrs=dict(arguments), init_attrs={"name": name}, instance_name=name, primitive_target=None)
        state.update(arguments)
        state["_arguments"] = bound_arguments = {**arguments, **checked}
        state["_frame_of_creation"] = None if frame() is None else id(frame())
        _start_stream(name, bound_arguments)
        if has_stream:
            bound_arguments["operator_stream"] = OperatorStream((0, 0))

    __init__.__signature__ = (  # type: ignore[attr-defined]
        inspect.Signature([_SELF, *signature.parameters.values()]) if signature.parameters else _WITHOUT_ARGUMENTS)
    return __init__


def _call_method(
    name: str, function: Callable[..., Any], parameters: Parameters, called: tuple[str, ...],
    function_only: frozenset[str],
) -> Callable[..., Any]:
    """Return the `__call__` of a primitive: the parameters `called` of `function` are its inputs."""
    direct = parameters.names[: len(called)] == called
    required = sum(p not in parameters.defaults for p in called)
    takes_any = parameters.any_number in called
    can_pass_by_position = direct and parameters.positional == len(parameters.names)          # faster than by name
    bound = parameters.names[len(called):] if can_pass_by_position else None
    defaults = [parameters.defaults.get(p) for p in called]

    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            if bound is not None and not kwargs and required <= len(args) <= len(called):
                arguments = self._arguments
                if len(arguments) == len(bound):
                    return function(*args, *defaults[len(args):], *[arguments[key] for key in bound])
            if function_only and (len(called) < len(args) <= len(parameters.names) or not function_only.isdisjoint(kwargs)):
                raise WrongKind(f"{user_line()}: {name} with {len(args) + len(kwargs)} inputs: expected {name}()({', '.join(called)}).")
            if direct:
                return function(*args, **kwargs, **self._arguments)
            if len(args) > len(called):
                raise WrongKind(f"{name}: expected {name}()({', '.join(called)}).")
            return function(**dict(zip(called, args)), **kwargs, **self._arguments)
        except TypeError as error:
            number = len(args) + len(kwargs)
            if not takes_any and not required <= number <= len(called):
                explained = replaced(error, function, name, args, kwargs)
                raise WrongKind(f"{explained}\n\n{_wrong_number_of_inputs(name, required, len(called), number)}") from None
            raise

    return __call__


FRONT.primitive = Primitive
