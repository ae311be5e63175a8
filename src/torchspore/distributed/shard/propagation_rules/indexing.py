"""Lookups in tables, and losses that pick classes."""
from __future__ import annotations

from torchspore.distributed.shard.propagation_rules.registry import OperatorCall, splits
from torchspore.distributed.shard.propagation_rules.rule import Naming, Rule


@splits("embedding")
def embedding(call: OperatorCall) -> Rule | None:
    """Rows of a table (v, d) by indices: the indices and d may be split. A table split along v has a lowering."""
    table, indices = call.shape("weight"), call.shape("indices")
    naming = Naming()
    rows, width, index_dims = naming.new(table[0], locked=True), naming.new(table[1]), naming.all(indices)
    return naming.rule([(rows, width), index_dims], [(*index_dims, width)])


@splits("index_select")
def index_select(call: OperatorCall) -> Rule | None:
    """Rows along one unsplit dimension; the indices and the other dimensions may be split."""
    shape = call.shape("self")
    if not shape or len(call.shape("index")) != 1:
        return None
    naming, at = Naming(), call.axis("dim", len(shape))
    dims = naming.all(shape)
    naming.lock(dims[at])
    index_dims = naming.new(call.shape("index")[0])
    return naming.rule([dims, (index_dims,)], [(*dims[:at], index_dims, *dims[at + 1 :])])


@splits("embedding_dense_backward")
def embedding_gradient(call: OperatorCall) -> Rule | None:
    """The gradient of the table: a sum over the indices."""
    out, indices = call.outputs[0], call.shape("indices")
    if out is None or call["scale_grad_by_freq"]:
        return None
    naming = Naming()
    rows, width, index_dims = naming.new(out.shape[0], locked=True), naming.new(out.shape[1]), naming.all(indices)
    return naming.rule([(*index_dims, width), index_dims], [(rows, width)], reduced={factor: "sum" for dim in index_dims for factor in dim})


@splits("gather", "scatter", "scatter_add")
def gather(call: OperatorCall) -> Rule | None:
    """The indexed dimension of the input is unsplit; along other dimensions of equal length all operands are split alike.

    The indices and the result of a gather may also be split along the indexed dimension.
    """
    shapes = [tuple(t.shape) for t in call.inputs]
    out = call.outputs[0]
    if out is None:
        return None
    naming, rank = Naming(), len(shapes[0])
    at = call.axis("dim", rank)
    dims = []
    for axis in range(rank):
        sizes = [shape[axis] for shape in shapes] + [out.shape[axis]]
        dims.append(naming.new(sizes[0]) if axis != at and len(set(sizes)) == 1 else None)
    gathered_dims = [
        tuple(dim or naming.new(shape[axis], locked=True) for axis, dim in enumerate(dims)) for shape in (*shapes, tuple(out.shape))
    ]
    if len(shapes) == 2 and rank and out.shape[at] == shapes[1][at]:
        index_dim = naming.new(out.shape[at])
        gathered_dims[1:] = [(*operand_dims[:at], index_dim, *operand_dims[at + 1:]) for operand_dims in gathered_dims[1:]]
    return naming.rule(gathered_dims[:-1], gathered_dims[-1:])


@splits("nll_loss_backward")
def nll_loss_gradient(call: OperatorCall) -> Rule | None:
    """(n, c) from a gradient that is one number, or n numbers."""
    scores = call.shape("self")
    if len(scores) != 2:
        return None
    naming = Naming()
    rows, classes = naming.new(scores[0]), naming.new(scores[1], locked=True)
    inputs = []
    for name in ("grad_output", "self", "target", "weight", "total_weight"):
        t = call.args.get(name)
        if t is not None:
            inputs.append({"self": (rows, classes), "target": (rows,), "weight": (classes,)}.get(name, (rows,) if t.ndim else ()))
    return naming.rule(inputs, [(rows, classes)])
