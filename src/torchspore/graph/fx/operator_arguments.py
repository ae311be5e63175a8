"""The arguments of an operator's node."""
from __future__ import annotations

from typing import Any

from torch.fx.node import Node

from torchspore.engine.torch_internals.torch_private import is_operator


def arguments_by_name(node: Node) -> dict[str, Any]:
    """Return the arguments of a call by their names in the schema, in its order; by their positions if it has no schema."""
    if not is_operator(node.target):
        return {**{str(at): value for at, value in enumerate(node.args)}, **node.kwargs}
    arguments = {argument.name: value for argument, value in zip(node.target._schema.arguments, node.args)}
    return {**arguments, **node.kwargs}
