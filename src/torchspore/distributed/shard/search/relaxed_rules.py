"""The possible splits of an operator if its lowering is included: those of `rules`, and those that lowerings carry out."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torchspore.distributed.shard.propagation_rules import OperatorCall, rule_of
from torchspore.distributed.shard.propagation_rules.rule import Dims, Naming, Rule


@dataclass(frozen=True)
class Wide:
    """A rule, the factors that a result may be split along although no operand has them, and the exchanges inside of the operator."""

    rule: Rule
    local_factors: frozenset[int] = frozenset()
    messages: int = 0
    """The number of exchanges of the lowering if a factor of `seen` is split."""
    seen: frozenset[int] = frozenset()
    share: float = 0.0
    """The share of the first operand that each of these exchanges carries."""


Maker = Callable[[OperatorCall], Wide | None]
_MAKERS: dict[str, Maker] = {}


def _widens(*names: str) -> Callable[[Maker], Maker]:
    def enter(maker: Maker) -> Maker:
        _MAKERS.update(dict.fromkeys(names, maker))
        return maker

    return enter


def wide(call: OperatorCall) -> Wide | None:
    """Return the possible splits of a call; None if it runs unsplit on each device."""
    maker = _MAKERS.get(call.target._opname)
    relaxed = maker(call) if maker is not None else None
    if relaxed is not None:
        return relaxed
    rule = rule_of(call)
    return None if rule is None else Wide(rule)


def _reduced(*dims: Dims) -> dict[int, str]:
    return {factor: "sum" for each in dims for dim in each for factor in dim}


@_widens("embedding")
def _embedding(call: OperatorCall) -> Wide:
    naming = Naming()
    rows, width = naming.all(call.shape("weight"))
    index_dims = naming.all(call.shape("indices"))
    return Wide(naming.rule([(rows, width), index_dims], [(*index_dims, width)], reduced=_reduced((rows,))))


@_widens("embedding_dense_backward")
def _embedding_gradient(call: OperatorCall) -> Wide | None:
    out = call.outputs[0]
    if out is None or call["scale_grad_by_freq"] or call["padding_idx"] >= 0:
        return None
    naming = Naming()
    rows, width = naming.all(out.shape)
    index_dims = naming.all(call.shape("indices"))
    return Wide(naming.rule([(*index_dims, width), index_dims], [(rows, width)], reduced=_reduced(index_dims)), frozenset(rows))


@_widens("index_select")
def _rows(call: OperatorCall) -> Wide | None:
    shape = call.shape("self")
    if not shape or len(call.shape("index")) != 1 or call.axis("dim", len(shape)) != 0:
        return None
    naming = Naming()
    dims, index_dims = naming.all(shape), naming.new(call.shape("index")[0])
    return Wide(naming.rule([dims, (index_dims,)], [(index_dims, *dims[1:])], reduced=_reduced(dims[:1])))


@_widens("index_add")
def _rows_added(call: OperatorCall) -> Wide | None:
    out, source = call.outputs[0], call.shape("source")
    if out is None or not source or call.axis("dim", len(source)) != 0 or call.args.get("alpha", 1) != 1 or len(call.inputs) != 3:
        return None
    naming = Naming()
    index_dims, rows, rest = naming.new(source[0]), naming.new(out.shape[0]), naming.all(source[1:])
    zeros = naming.all(call.shape("self"), locked=True)
    rule = naming.rule([zeros, (index_dims,), (index_dims, *rest)], [(rows, *rest)], reduced=_reduced((index_dims,)))
    return Wide(rule, frozenset(rows))


@_widens("look_up")
def _looked_up(call: OperatorCall) -> Wide:
    shape = call.shape("x")
    naming, dim = Naming(), call.axis("dim", len(shape))
    dims, index_dims = naming.all(shape), naming.all(call.shape("index"))
    if dim:
        naming.locked.update(dims[dim])
    reduced = {} if dim else _reduced(dims[:1])
    return Wide(naming.rule([dims, index_dims], [(*dims[:dim], *index_dims, *dims[dim + 1:])], reduced=reduced))


@_widens("add_rows")
def _rows_added_to_zeros(call: OperatorCall) -> Wide:
    shape, count = call.shape("source"), len(call.shape("index"))
    naming, dim = Naming(), call.axis("dim", len(shape) - count + 1)
    dims, rows = naming.all(shape), naming.new(call["length"], locked=bool(dim))
    index_dims = dims[dim:dim + count]
    rule = naming.rule([dims, index_dims], [(*dims[:dim], rows, *dims[dim + count:])], reduced=_reduced(index_dims))
    return Wide(rule, frozenset() if dim else frozenset(rows))


@_widens("new_zeros", "new_ones", "new_full", "new_empty")
def _new_full(call: OperatorCall) -> Wide | None:
    out = call.outputs[0]
    if out is None or tuple(out.shape) == tuple(call.inputs[0].shape):
        return None
    naming = Naming()
    dims = naming.all(call.inputs[0].shape)
    return Wide(naming.rule([dims], [naming.all(out.shape, locked=True)]))


@_widens("nll_loss_forward", "nll_loss_backward")
def _nll_loss(call: OperatorCall) -> Wide | None:
    scores = call.shape("self")
    if len(scores) != 2:
        return None
    naming, weighed = Naming(), call.args.get("weight") is not None
    rows, classes = naming.new(scores[0]), naming.new(scores[1], locked=weighed)
    dims: list[Dims] = []
    for name, value in call.args.items():
        if hasattr(value, "shape"):
            named = {"self": (rows, classes), "weight": (naming.new(scores[1], locked=True),)}
            dims.append(named.get(name, (rows,) if len(value.shape) else ()))
    if call.target._opname == "nll_loss_backward":
        return Wide(naming.rule(dims, [(rows, classes)]), messages=0)
    outputs: list[Dims] = [(rows,) if out is not None and len(out.shape) else () for out in call.outputs]
    return Wide(naming.rule(dims, outputs), messages=2, seen=frozenset((*rows, *classes)))


@_widens("_softmax", "_log_softmax", "_softmax_backward_data", "_log_softmax_backward_data")
def _softmax(call: OperatorCall) -> Wide | None:
    shape = tuple(call.inputs[0].shape)
    if not shape or call.args.get("half_to_float"):
        return None
    naming, axis = Naming(), call.axis("dim", len(shape))
    dims = naming.all(shape)
    count = 1 if call.target._opname.endswith("backward_data") else 2
    rule = naming.rule([dims] * len(call.inputs), [dims])
    return Wide(rule, messages=count, seen=frozenset(dims[axis]), share=1 / max(1, shape[axis]))


@_widens("native_batch_norm", "native_batch_norm_backward")
def _batch_norm(call: OperatorCall) -> Wide | None:
    x = call.args["input"]
    if not call.args.get("training", call.args.get("train", False)):
        return None
    naming = Naming()
    full = naming.all(x.shape)

    def dims(t: object) -> Dims:
        shape = tuple(t.shape)  # type: ignore[attr-defined]
        return full if len(shape) == len(full) else (full[1],) if shape == (x.shape[1],) else naming.all(shape, locked=True)

    rule = naming.rule([dims(t) for t in call.inputs], [dims(t) for t in call.outputs if t is not None])
    others = frozenset(factor for at, dim in enumerate(full) if at != 1 for factor in dim)
    return Wide(rule, messages=2, seen=others, share=x.shape[1] / max(1, x.numel()))


@_widens("native_dropout", "rand_like", "randn_like", "randint_like")
def _drawn(call: OperatorCall) -> Wide:
    naming = Naming()
    dims = naming.all(call.inputs[0].shape)
    return Wide(naming.rule([dims] * len(call.inputs), [dims for out in call.outputs if out is not None]))


@_widens("addmm", "linear")
def _product_and_sum(call: OperatorCall) -> Wide | None:
    found = rule_of(call)
    if found is None or len(call.inputs) != 3:
        return None
    is_linear = call.target._opname == "linear"
    inner = found.inputs[0 if is_linear else 1][-1]
    rule = Rule(found.inputs, found.outputs, found.sizes, reduced={inner[0]: "sum"}, locked=found.locked - frozenset(inner))
    return Wide(rule)
