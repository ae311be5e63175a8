"""The classes of operators' primitives: `@op(primitive='ReLU')` creates `ops.ReLU`, whose instances hold the constructor's arguments."""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from torchspore.base.frames import user_line
from torchspore.base.function_parameters import Parameters, parameters_of
from torchspore.base.text import list_choices, message, short, with_hint
from torchspore.engine.random.operator_streams import OperatorStream
from torchspore.engine.random.seeded_streams import Stream
from torchspore.engine.tensors import change_counters
from torchspore.engine.tensors.tensor import frame
from torchspore.errors import WrongKind
from torchspore.mindspore.ops.declaration.call_keys import MOST_CALLS, call_key
from torchspore.mindspore.ops.declaration.explain import replaced
from torchspore.mindspore.ops.declaration.kind_checks import REFUSED, refuse_kind, refuse_seed
from torchspore.mindspore.ops.declaration.primitive import Primitive
from torchspore.mindspore.ops.declaration.primitive_limits import LIMITS, check_relations
from torchspore.public_names import older_calls

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
        self._kinds = {p: kind for p in init if (kind := parameters.annotations.get(p, "")) in REFUSED}
        self._words = {p: allowed for (part, p), allowed in _WORDS.items() if p in self._kinds and part in name}
        self._limits = LIMITS.get(name, {})

    def check(self, key: str, value: Any) -> Any:
        """Return the argument `key` in the form for the operator. Raises TypeError or ValueError for a wrong value."""
        name, kinds, words = self._name, self._kinds, self._words
        if key in kinds and value.__class__ in REFUSED[kinds[key]]:
            refuse_kind(name, key, value, kinds[key])
        if key in words and not isinstance(value, str):
            refuse_kind(name, key, value, "str")
        if key in words and value.lower() not in words[key]:
            raise ValueError(message(f"{name}({key}={short(value)})", list_choices(words[key])))
        if key in self._limits:
            self._limits[key](name, key, value)
        if key == "seed" and value is not None and (value.__class__ in REFUSED["int"] or (value.__class__ is int and value < 0)):
            refuse_seed(name, value)
        return value.lower() if key in words else value


class _MethodOnDemand:
    """A method of declared primitives: its first use builds all methods of the class. 800 classes would otherwise slow the import."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        cls = next(base for base in (type(instance) if owner is None else owner).__mro__ if "_declaration" in vars(base))
        build_methods(cls)
        return vars(cls)[self._name].__get__(instance, owner)


class DeclaredPrimitive(Primitive):
    """Base class of the primitives that `@op` declares."""

    _declaration: tuple[str, Callable[..., Any], tuple[str, ...]]
    """The name, the function and the parameters of the constructor."""


for _name in ("__init__", "__call__", "__setattr__", "add_prim_attr"):
    setattr(DeclaredPrimitive, _name, _MethodOnDemand(_name))


def primitive_class(name: str, function: Callable[..., Any], init: tuple[str, ...]) -> type[Primitive]:
    """Create the class form of `function`: its constructor takes the parameters named in `init`, its call takes the others.

    Each primitive of a function with the parameter `operator_stream` passes it a separate stream, for seeds in the call.
    """
    body = {"__doc__": function.__doc__, "__module__": "torchspore.mindspore.ops.operations", "_declaration": (name, function, init)}
    return type(name, (DeclaredPrimitive,), body)


def build_methods(cls: type[Primitive]) -> None:
    """Give a class of `primitive_class` its constructor and its call. Raises ValueError for parameters that its function does not have."""
    name, function, init = vars(cls)["_declaration"]
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
    methods = {
        "__init__": _constructor(name, signature, checks, "operator_stream" in parameters.names),
        "__call__": _call_method(name, function, parameters, called, function_only),
        "add_prim_attr": add_prim_attr, "__setattr__": __setattr__, "_called": called,
    }
    for method, implementation in methods.items():
        setattr(cls, method, implementation)


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
