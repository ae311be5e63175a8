"""Operators over lists of Tensors, and the steps of optimizers."""
from __future__ import annotations

from torchspore.distributed.shard.propagation_rules.registry import OperatorCall, splits
from torchspore.distributed.shard.propagation_rules.rule import Dims, Naming, Rule
from torchspore.engine.tensors import tree

_LISTS = (
    "add", "sub", "mul", "div", "sqrt", "neg", "pow", "addcmul", "addcdiv", "lerp", "reciprocal", "abs", "exp", "zero", "copy", "maximum",
    "minimum", "sign", "clamp_max", "clamp_min", "log", "rsqrt",
)


@splits("_fused_adam_", "_fused_adamw_", "_fused_sgd_", "_fused_adagrad_", *(f"_foreach_{name}" for name in _LISTS),
        *(f"_foreach_{name}_" for name in _LISTS))
def lists(call: OperatorCall) -> Rule | None:
    """Tensors at one position of all lists are split alike; a Tensor of another shape is unsplit."""
    naming = Naming()
    first = next(value for value in call.args.values() if isinstance(value, (list, tuple)) and tree_has_tensors(value))
    item_dims = [naming.all(t.shape) for t in first]
    inputs: list[Dims] = []
    for value in call.args.values():
        if isinstance(value, (list, tuple)):
            for at, t in enumerate(value):
                if hasattr(t, "shape"):
                    alike = len(value) == len(first) and t.shape == first[at].shape
                    inputs.append(item_dims[at] if alike else naming.all(t.shape, True))
        elif hasattr(value, "shape"):
            inputs.append(naming.all(value.shape, True))
    outputs = [item_dims[at] if at < len(item_dims) else None for at, _ in enumerate(call.outputs)]
    if any(out is None or dims is None or tuple(out.shape) != tuple(naming.sizes[dim[0]] for dim in dims)
           for out, dims in zip(call.outputs, outputs)):
        return None
    return naming.rule(inputs, [dims for dims in outputs if dims is not None])


def tree_has_tensors(value: object) -> bool:
    """Return whether a list contains Tensors."""
    return any(hasattr(leaf, "shape") for leaf in tree.leaves(value))
