"""Gradient transforms: `grad`, `value_and_grad`, `GradOperation`."""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any

from torchspore.base import once
from torchspore.base.frames import user_line
from torchspore.base.lazy_modules import import_lazily
from torchspore.base.text import message, short, with_hint, with_type
from torchspore.context.store import STORE
from torchspore.engine.autograd import scalar_gradients
from torchspore.engine.execution import thread_state
from torchspore.engine.front_end import FRONT
from torchspore.engine.tensors import tensor as engine
from torchspore.engine.tensors import torch_interop, tree
from torchspore.engine.tensors.mutable_containers import MUTABLE_CONTAINERS, unmark
from torchspore.engine.tensors.number import Number
from torchspore.engine.tensors.tensor import Composite, TensorBase, tensors
from torchspore.graph import forward_cache
from torchspore.mindspore.common.parameter import Parameter
from torchspore.mindspore.common.tensor import Tensor
from torchspore.observe.debug import recorded_steps
from torchspore.translations import translate

if TYPE_CHECKING:
    from torchspore.graph import dispatch, graph_breaks
else:
    import_lazily(globals(), "torchspore.graph.dispatch", "torchspore.graph.graph_breaks")


def _positions(grad_position: Any, function: str) -> tuple[int, ...]:
    if grad_position is None:
        return ()
    positions = (grad_position,) if isinstance(grad_position, int) and not isinstance(grad_position, bool) else grad_position
    if not isinstance(positions, tuple) or not all(isinstance(p, int) and p >= 0 for p in positions):
        raise TypeError(
            f"{function}(grad_position={grad_position!r}): expected None, an int from 0 on or a tuple of them."
            "\n\nhint: write grad_position=(0, 1)."
        )
    return positions


def _weights(weights: Any, function: str) -> tuple[list[Parameter], bool]:
    """Return the Parameters, and whether `weights` is a single Parameter."""
    if weights is None:
        return [], False
    if isinstance(weights, Parameter):
        return [weights], True
    parameters = list(weights)
    if not all(isinstance(w, Parameter) for w in parameters):
        raise TypeError(f"{function}(weights=...): expected Parameters.\n\nhint: write weights=net.trainable_params().")
    return parameters, False




def _check_records_gradients() -> None:
    """Raise RuntimeError inside `_no_grad`."""
    if thread_state.local.refuses_gradients:
        raise RuntimeError(
            "In no_grad context, you can not calculate gradient.\n\nhint: create the gradient function outside of `with _no_grad():`."
        )


def named_after(fn: Any) -> Callable[[Any], Any]:
    """`functools.wraps` without the attributes: a Cell's attributes are its network, and a graph belongs to one function."""
    return functools.wraps(fn if hasattr(fn, "__name__") else type(fn), updated=())


def _run(owner: Any, fn: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run the transform of `fn` directly, or as a captured graph in GRAPH_MODE."""
    if recorded_steps.ACTIVE.runner is not None:
        label = f"{recorded_steps.GRADIENT} {getattr(fn, '__qualname__', type(fn).__qualname__)}"
        return recorded_steps.run(owner, label, fn, lambda *a, **k: _run_now(owner, fn, function, a, k), args, kwargs)
    return _run_now(owner, fn, function, args, kwargs)


def _run_now(owner: Any, fn: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if STORE.graph_mode and not thread_state.local.in_pynative and not engine.frame() and not forward_cache.is_recorded_call(fn):
        return dispatch.call_outermost(owner, function, args, kwargs)
    return function(*args, **kwargs)


def _once(fn: Any, key: tuple[Any, ...], weights: Sequence[Any], make: Callable[[], Callable[..., Any]]) -> Callable[..., Any]:
    """Call `make`; in GRAPH_MODE, cache its result by function or Cell, key and weights, so that its graphs are reused."""
    is_cacheable = isinstance(fn, FunctionType) or (FRONT.cell is not None and isinstance(fn, FRONT.cell))
    if not is_cacheable or engine.frame() is not None or not thread_state.is_graph_mode():
        return make()
    cache, cache_key = dispatch.transforms_of(fn), (*key, *map(id, weights))  # a transform keeps its weights alive, and so their ids
    transform = cache.get(cache_key)
    if transform is None:
        if len(cache) >= _MAX_TRANSFORMS:
            cache.clear()
        transform = cache[cache_key] = make()
    return transform


_MAX_TRANSFORMS = 32
"""The number of transforms cached for each function or Cell."""


def _joined(by_position: list[Any], by_weight: list[Any], position: Any, weights: Any, alone: bool) -> Any:
    """Combine the gradients into the caller's result; a single input gradient is not in a tuple, whatever `grad_position` was."""
    inputs = by_position[0] if len(by_position) == 1 else tuple(by_position)
    parameters = by_weight[0] if alone else tuple(by_weight)
    if position is None:
        return parameters
    return (inputs, parameters) if weights is not None else inputs


def value_and_grad(
    fn: Any, grad_position: Any = 0, weights: Any = None, has_aux: bool = False, return_ids: bool = False, sens_param: bool = False,
) -> Callable[..., Any]:
    """Return a function that returns (result of `fn`, gradients).

    Gradients are of the inputs at `grad_position` (an int, a tuple or None) and of `weights`; with both, a pair of them. With `has_aux`
    only the first result is differentiated; with `sens_param` the last argument weighs it. Raises ValueError if there is nothing to
    differentiate by, TypeError for wrong arguments.
    """
    return _transform(fn, "value_and_grad", grad_position, weights, has_aux, return_ids, True, sens_param)


def grad(
    fn: Any, grad_position: Any = 0, weights: Any = None, has_aux: bool = False, return_ids: bool = False, sens_param: bool = False,
) -> Callable[..., Any]:
    """Return a function that returns the gradients of `fn`, and with `has_aux` also its results from the second on."""
    return _transform(fn, "grad", grad_position, weights, has_aux, return_ids, False, sens_param)


def _transform(
    fn: Any, name: str, grad_position: Any, weights: Any, has_aux: bool, return_ids: bool, with_value: bool, sens_param: bool,
) -> Callable[..., Any]:
    if not callable(fn):
        raise TypeError(message(f"{name}({fn!r:.40})", "a function or a Cell"))
    _check_records_gradients()
    if grad_position is None and weights is None:
        raise ValueError(
            f"{name}(grad_position=None, weights=None): expected something to differentiate by."
            "\n\nhint: write weights=net.trainable_params()."
        )
    positions = _positions(grad_position, name)
    parameters, alone = _weights(weights, name)
    for flag, value in (("has_aux", has_aux), ("return_ids", return_ids), ("sens_param", sens_param)):
        if not isinstance(value, bool):
            raise TypeError(message(f"{name}({flag}={value!r})", with_type("a bool", value)))

    options = grad_position, has_aux, return_ids, with_value, sens_param
    build = functools.partial(_build_transform, fn, positions, parameters, alone, weights, *options)
    return _once(fn, (name, type(weights), *options), parameters, build)


def _build_transform(
    fn: Any, positions: tuple[int, ...], parameters: list[Parameter], alone: bool, weights: Any, grad_position: Any, has_aux: bool,
    return_ids: bool, with_value: bool, sens_param: bool,
) -> Callable[..., Any]:
    """Build the function that `_transform` returns."""

    def computed(*args: Any, **kwargs: Any) -> Any:
        args, sens = (args[:-1], args[-1]) if sens_param else (args, None)
        inputs = (*args, *kwargs.values()) if kwargs else args
        if positions:
            _check_positions("value_and_grad" if with_value else "grad", positions, inputs)
        tensor_positions: Sequence[int] = positions
        if not _are_tensors(inputs):
            inputs = scalar_gradients.lift(inputs, positions)
            tensor_positions = _of_tensors(positions, inputs)
        call = graph_breaks.part(fn) if thread_state.breaking else fn
        result, flat, by_weight = forward_cache.gradients(
            fn, call, *_split(inputs, kwargs), _keys(tensor_positions, len(args), kwargs), parameters, sens, has_aux,
        )
        by_position = flat
        if tensor_positions is not positions:
            by_position = [_arranged(inputs[position], gradient) for position, gradient in zip(tensor_positions, flat)]
        gradients = _joined(by_position, by_weight, grad_position, weights, alone)
        if return_ids:
            gradients = _with_ids(by_position, by_weight, tensor_positions, parameters, grad_position, weights, alone)
        if with_value:
            return result, gradients
        return (gradients, result[1:]) if has_aux else gradients

    @named_after(fn)
    def transformed(*args: Any, **kwargs: Any) -> Any:
        if recorded_steps.ACTIVE.runner is None and not STORE.graph_mode:            # `_run`, without its calls
            return computed(*args, **kwargs)
        return _run(transformed, fn, computed, args, kwargs)

    return transformed


def _with_ids(
    by_position: list[Any], by_weight: list[Any], positions: Sequence[int], parameters: list[Parameter], position: Any, weights: Any,
    alone: bool,
) -> Any:
    first = [(p, g) for p, g in zip(positions, by_position)]
    second = [(w.name, g) for w, g in zip(parameters, by_weight)]
    return _joined(first, second, position, weights, alone)


def get_grad(gradients: Any, identifier: Any) -> Any:
    """Return the gradient of a position (int) or a Parameter (or its name) from the result of `grad(..., return_ids=True)`.

    Raises RuntimeError if it is absent, TypeError for another identifier.
    """
    if not isinstance(identifier, (int, str, Parameter)):
        raise TypeError(f"For `get_grad`, the `x` should be an integer or a Parameter, but got {short(identifier)}.")
    identity = identifier.name if isinstance(identifier, Parameter) else identifier

    def search(node: Any) -> Any:
        if isinstance(node, tuple) and len(node) == 2 and isinstance(node[0], (int, str)):
            return node[1] if node[0] == identity else None
        return next((match for item in node if (match := search(item)) is not None), None) if isinstance(node, (tuple, list)) else None

    gradient = search(gradients)
    if gradient is None:
        raise RuntimeError(f"get_grad({identity!r}): Can not find the gradient for position or Parameter {identity!r}."
                           "\n\nhint: differentiate with return_ids=True.")
    return gradient


def _are_tensors(inputs: Sequence[Any]) -> bool:
    return not [argument for argument in inputs if not isinstance(argument, Tensor)]


def _check_positions(name: str, positions: Sequence[int], args: tuple[Any, ...]) -> None:
    for position in positions:
        if position >= len(args):
            raise ValueError(
                f"{name}(grad_position={position}): expected a position from 0 to {len(args) - 1}; "
                f"the call has {len(args)} arguments."
            )


def _of_tensors(positions: Sequence[int], args: tuple[Any, ...], must_differ: bool = True) -> list[int]:
    """Return the positions with a gradient: of Tensors, sparse values, and lists, tuples and dicts with Tensors that `mutable` marks.

    With `grad_for_scalar` unmarked containers have gradients too. With `must_differ` a warning names an unmarked container at one of the
    positions. Raises TypeError for torch tensors.
    """
    for position in positions:
        torch_interop.refuse("a gradient", args[position])
    differentiable = [position for position in positions if _has_gradient(args[position])]
    if must_differ and len(differentiable) < len(positions):
        for position in set(positions).difference(differentiable):
            _warn_of_unmarked(position, args[position])
    return differentiable


def _has_gradient(argument: Any) -> bool:
    if isinstance(argument, (TensorBase, Composite)):
        return True
    is_marked = isinstance(argument, MUTABLE_CONTAINERS) or STORE.get("grad_for_scalar")
    return is_marked and any(True for _ in tensors(argument))


def _warn_of_unmarked(position: int, argument: Any) -> None:
    """Warn once for each line of the program that a container with Tensors has no gradient."""
    if FRONT.warn is None or not any(True for _ in tensors(argument)):
        return
    kind, line = type(argument).__name__, user_line()
    if once.first_time(("unmarked container", line)):
        FRONT.warn(with_hint(
            translate("{line}: argument {position} is a {kind}, so it has no gradient, as in MindSpore").format(
                line=line, position=position, kind=kind),
            translate("write mindspore.mutable(...) around it"),
        ))


def _split(inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the positional and the keyword arguments of a call whose inputs are the former followed by the latter."""
    if not kwargs:
        return inputs, kwargs
    return inputs[:-len(kwargs)], dict(zip(kwargs, inputs[-len(kwargs):]))


def _keys(positions: Sequence[int], count: int, kwargs: dict[str, Any]) -> Sequence[int | str]:
    """Return positions among the inputs as indexes of the `count` positional arguments and names of keyword arguments."""
    if not kwargs:
        return positions
    names = list(kwargs)
    return [position if position < count else names[position - count] for position in positions]


def _arranged(argument: Any, flat_gradients: Any) -> Any:
    """Arrange the flat gradients of one argument in its structure; a number in it has gradient 0.

    The gradient of a sparse value is a sparse value with indexes of 0 in a graph, and the Tensor for its values in PyNative mode.
    """
    if isinstance(argument, Composite) and flat_gradients is not None:
        return argument.rebuilt(flat_gradients) if thread_state.follows_graph_rules() else flat_gradients[-1]
    if isinstance(argument, TensorBase) or flat_gradients is None:
        return flat_gradients
    gradients = iter(flat_gradients)

    def gradient_of(leaf: Any) -> Any:
        if isinstance(leaf, Composite):
            return tuple(next(gradients) for _ in leaf.parts())
        if isinstance(leaf, TensorBase):
            gradient = next(gradients)
            return gradient if not isinstance(leaf, Number) else 0.0 if isinstance(leaf, float) else 0
        return 0.0 if isinstance(leaf, float) else 0 if isinstance(leaf, int) else None

    return tree.mapped(unmark(argument), gradient_of)


_NO_FUNCTION: Any = object()
"""The default of a call of GradOperation without arguments, which is refused; None is refused with another text."""


class GradOperation:
    """Builds gradient functions: `GradOperation(get_all, get_by_list, sens_param)(fn, weights)`.

    The result is the gradient of the first input; with `get_all`, of all Tensor inputs; with `get_by_list`, of the passed Parameters. With
    `sens_param`, the last argument of the call weighs the output.
    """

    takes_gradients = True

    def __init__(self, get_all: bool = False, get_by_list: bool = False, sens_param: bool = False) -> None:
        for flag, value in (("get_all", get_all), ("get_by_list", get_by_list), ("sens_param", sens_param)):
            if not isinstance(value, bool):
                raise TypeError(message(f"GradOperation({flag}={value!r})", with_type("a bool", value)))
        self.get_all, self.get_by_list, self.sens_param = get_all, get_by_list, sens_param

    def __call__(self, fn: Any = _NO_FUNCTION, weights: Any = None) -> Callable[..., Any]:
        if fn is _NO_FUNCTION:
            raise TypeError("'GradOperation' requires a forward network or function as an input, while the input is empty."
                            "\n\nhint: write GradOperation()(net)(x).")
        if not callable(fn):
            raise TypeError(f"For 'GradOperation', the first argument must be a 'Function' or 'Cell', but got {short(fn)}.")
        _check_records_gradients()
        if type(weights) is list:
            weights = tuple(weights)
        if type(self) is not GradOperation or not (weights is None or isinstance(weights, (Parameter, tuple))):
            return self._build_transform(fn, weights)
        key = type(self), type(weights), self.get_all, self.get_by_list, self.sens_param
        listed = () if weights is None else (weights,) if isinstance(weights, Parameter) else weights
        return _once(fn, key, listed, lambda: GradOperation(*key[2:])._build_transform(fn, weights))

    def _build_transform(self, fn: Any, weights: Any) -> Callable[..., Any]:
        def computed(*args: Any, **kwargs: Any) -> Any:
            sens = None
            if self.sens_param:
                sens = kwargs.pop("sens", None)
                if sens is None:
                    args, sens = args[:-1], args[-1]
            parameters = self._parameters(fn, weights)
            inputs = (*args, *kwargs.values())
            candidates = range(len(inputs)) if self.get_all else [] if self.get_by_list else [0][:len(inputs)]
            positions: Sequence[int] = candidates
            if not _are_tensors(inputs):
                inputs = scalar_gradients.lift(inputs, candidates)
                positions = _of_tensors(candidates, inputs, must_differ=not self.get_all)
            call = graph_breaks.part(fn) if thread_state.breaking else fn
            _, flat, by_weight = forward_cache.gradients(
                fn, call, *_split(inputs, kwargs), _keys(positions, len(args), kwargs), parameters, sens,
            )
            by_position = [_arranged(inputs[position], gradient) for position, gradient in zip(positions, flat)]
            return self._result(by_position, by_weight, isinstance(weights, Parameter))

        @named_after(fn)
        def gradient(*args: Any, **kwargs: Any) -> Any:
            if recorded_steps.ACTIVE.runner is None and not STORE.graph_mode:
                return computed(*args, **kwargs)
            return _run(gradient, fn, computed, args, kwargs)

        return gradient

    def _parameters(self, fn: Any, weights: Any) -> list[Parameter]:
        if not self.get_by_list:
            return []
        if weights is None:
            return list(fn.trainable_params()) if hasattr(fn, "trainable_params") else []
        return _weights(weights, "GradOperation")[0]

    def _result(self, by_position: list[Any], by_weight: list[Any], alone: bool) -> Any:
        parameters = by_weight[0] if alone and by_weight else tuple(by_weight)
        if self.get_by_list:
            return (tuple(by_position), parameters) if self.get_all else parameters
        return tuple(by_position) if self.get_all else (by_position[0] if by_position else ())
