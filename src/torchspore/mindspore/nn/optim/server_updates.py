"""The update of Parameters that servers store: the gradients go to the servers, and new values come back."""
from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from torchspore.base.lazy_modules import import_lazily
from torchspore.engine.tensors.tensor import raw, wrap
from torchspore.mindspore.common import optimizer_states
from torchspore.mindspore.common.server_session import SESSION

if TYPE_CHECKING:
    from torchspore.distributed.parameter_server import assignment, operators, values
else:
    import_lazily(globals(), *(f"torchspore.distributed.parameter_server.{name}" for name in ("assignment", "operators", "values")))
from torchspore.mindspore.ops.optimizers.state import assign


def is_served(optimizer: Any) -> bool:
    """Return whether servers update Parameters of this optimizer."""
    return SESSION.client is not None and id(optimizer) in SESSION.keys


def is_true_anywhere(flag: Any) -> Any:
    """Return a bool Tensor of the shape of `flag`: whether it is True on any worker of the job; `flag` without a job.

    All workers must skip the same steps, because a server waits for the gradients of all.
    """
    return flag if SESSION.client is None else wrap(operators.any_worker(raw(flag)))


def is_true_on_all(flag: Any) -> Any:
    """Return a bool Tensor of the shape of `flag`: whether it is True on all workers of the job; `flag` without a job."""
    return flag if SESSION.client is None else wrap(~operators.any_worker(~raw(flag)))


def push(optimizer: Any, gradients: Any) -> None:
    """Push the gradients of a step to the servers and assign the new values of dense Parameters."""
    key = SESSION.keys[id(optimizer)]
    items = SESSION.client.plans[key].items
    optimizer._check_gradients_(gradients)
    parameters = optimizer.__dict__["parameters"]
    dense = [item.index for item in items if item.kind == assignment.DENSE]
    tables = [item.index for item in items if item.kind != assignment.DENSE]
    dense_gradients = [raw(gradients[index]).to(parameters[index]._t.dtype) for index in dense]
    parts = [values.rows_of(gradients[index], parameters[index]._t.dtype) for index in tables]
    scalars = [raw(scalar).reshape(()) for scalar in optimizer_states.scalars(optimizer)]
    results = operators.step(
        dense_gradients, [raw(parameters[index]) for index in dense], [ids for ids, _ in parts], [rows for _, rows in parts], scalars,
        optimizer_states.decays(optimizer), key, dense, tables, [index for index in tables if values.has_all_rows(gradients[index])],
    )
    for index, result in zip(dense, results):
        assign(parameters[index], wrap(result))
    if "_updated_here_" not in optimizer.__dict__:
        optimizer.__dict__["_updated_here_"] = frozenset(range(len(parameters))) - SESSION.indexes[key]


def run(optimizer: Any, update: Callable[[], Any], gradients: Any) -> Any:
    """Run a call of an optimizer: push the gradients if servers update Parameters, and let `update` do the rest."""
    if not is_served(optimizer):
        return update()
    push(optimizer, gradients)
    if optimizer_states.is_divisible(optimizer):
        return update()                                    # the Parameters that servers do not store, and the step
    for inner in optimizer_states.nested_optimizers(optimizer):
        inner._advance_()
    return True


def groups_here(optimizer: Any, groups: Iterable[Any]) -> list[Any]:
    """Return the groups without the Parameters that another process updates."""
    indexes = optimizer.__dict__.get("_updated_here_")
    if indexes is None:
        return list(groups)
    parts = (replace(group, indexes=[index for index in group.indexes if index in indexes]) for group in groups)
    return [group for group in parts if group.indexes]
