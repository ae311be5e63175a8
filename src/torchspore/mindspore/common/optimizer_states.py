"""Optimizers of the parameter server: which state the servers store, and which numbers the workers send with each step."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from torchspore.mindspore.common.parameter import Parameter, ParameterTuple

if TYPE_CHECKING:
    from torchspore.distributed.parameter_server.assignment import Plan


def is_divisible(optimizer: Any) -> bool:
    """Return whether processes may update different Parameters: not if the formula of a user class needs all of them."""
    return optimizer._updates_by_group_ and not is_user_class(optimizer)


def is_user_class(optimizer: Any) -> bool:
    """Return whether the program has defined the formula of this optimizer."""
    return not type(optimizer).construct.__module__.startswith("torchspore.")


def nested_optimizers(optimizer: Any) -> list[Any]:
    """Return the optimizer, and the one that LARS wraps."""
    inner = optimizer.__dict__["_cells"].get("opt")
    return [optimizer] if inner is None else [optimizer, inner]


def tuples(optimizer: Any) -> Iterator[tuple[str, Any]]:
    """Yield the tuples with one Parameter of state for each Parameter of the optimizer, by their names."""
    count = len(optimizer.__dict__["parameters"])
    for name, value in vars(optimizer).items():
        if isinstance(value, ParameterTuple) and len(value) == count and name not in ("parameters", "_parameters"):
            yield name, value


def scalars(optimizer: Any) -> list[Parameter]:
    """Return the Parameters with one element that the workers send with each step: learning rates, global step, powers of betas.

    Workers advance them as servers do, so that a value that the program changes on the workers acts on the servers.
    """
    if is_divisible(optimizer):
        by_parameter = {id(state) for _, states in tuples(optimizer) for state in states}
        by_parameter |= {id(parameter) for parameter in optimizer.__dict__["parameters"]}
        chosen = [p for _, p in optimizer.parameters_and_names() if id(p) not in by_parameter and p.size == 1]
    else:
        chosen = [group.rate for group in optimizer._groups_ if isinstance(group.rate, Parameter)]
        if not is_user_class(optimizer):
            chosen += [inner.global_step for inner in nested_optimizers(optimizer)]
    return list({id(parameter): parameter for parameter in chosen}.values())


def decays(optimizer: Any) -> list[float]:
    """Return the constant weight decays of the groups, 0 for a schedule; the workers send them with each step."""
    groups = [group for inner in nested_optimizers(optimizer) for group in inner._groups_]
    return [float(group.decay) if isinstance(group.decay, (int, float)) else 0.0 for group in groups]


def set_decays(optimizer: Any, values: list[float]) -> None:
    """Set the constant weight decays of the groups, in the order of `decays`."""
    iterator = iter(values)
    for inner in nested_optimizers(optimizer):
        pairs = [(group, next(iterator)) for group in inner._groups_]
        inner._groups_ = [replace(group, decay=value) if isinstance(group.decay, (int, float)) else group for group, value in pairs]


def remote_states(optimizer: Any, plan: Plan) -> dict[str, tuple[Parameter, int]]:
    """Return the states that servers store, by name: the Parameter, and the index of the optimizer's Parameter whose server has it."""
    indexes = {item.index for item in plan.items}
    if is_divisible(optimizer):
        chosen = {id(state): index for _, states in tuples(optimizer) for index, state in enumerate(states) if index in indexes}
        return {name: (p, chosen[id(p)]) for name, p in optimizer.parameters_and_names() if id(p) in chosen}
    # One server runs this optimizer: it has all states except those that the workers send.
    excluded = {id(p) for p in (*optimizer.__dict__["parameters"], *scalars(optimizer))}
    excluded |= {id(inner.global_step) for inner in nested_optimizers(optimizer)}
    members = [(prefix, inner) for prefix, inner in zip(("", "opt."), nested_optimizers(optimizer))]
    # Without the Parameters of other Cells: a user class may have the network as an attribute.
    named = [(prefix + name, p) for prefix, inner in members for name, p in inner.parameters_and_names(expand=False)]
    return {name: (p, min(indexes)) for name, p in named if id(p) not in excluded}
