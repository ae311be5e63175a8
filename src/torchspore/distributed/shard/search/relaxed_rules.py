"""The possible splits of an operator if its lowering is included: those of `rules`, and those that lowerings carry out."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torchspore.distributed.shard.rules import Given, rule_of
from torchspore.distributed.shard.rules.rule import Dims, Naming, Rule


@dataclass(frozen=True)
class Wide:
    """A rule, the factors that a result may be cut along though no operand has them, and what a cut exchanges inside of the operator."""

    rule: Rule
    own: frozenset[int] = frozenset()
    messages: int = 0
    """How many exchanges the lowering makes where a factor of `seen` is cut."""
    seen: frozenset[int] = frozenset()
    share: float = 0.0
    """The share of the first operand that each of these exchanges carries."""


Maker = Callable[[Given], Wide | None]
_MAKERS: dict[str, Maker] = {}


def _widens(*names: str) -> Callable[[Maker], Maker]:
    def enter(maker: Maker) -> Maker:
        _MAKERS.update(dict.fromkeys(names, maker))
        return maker

    return enter


def wide(given: Given) -> Wide | None:
    """Return the possible splits of a call; None if it runs unsplit on each device."""
    maker = _MAKERS.get(given.target._opname)
    found = maker(given) if maker is not None else None
    if found is not None:
        return found
    rule = rule_of(given)
    return None if rule is None else Wide(rule)


def _reduced(*dims: Dims) -> dict[int, str]:
    return {factor: "sum" for each in dims for dim in each for factor in dim}


@_widens("embedding")
def _embedding(given: Given) -> Wide:
    naming = Naming()
    rows, width = naming.all(given.shape("weight"))
    places = naming.all(given.shape("indices"))
    return Wide(naming.rule([(rows, width), places], [(*places, width)], reduced=_reduced((rows,))))


@_widens("embedding_dense_backward")
def _embedding_gradient(given: Given) -> Wide | None:
    out = given.outputs[0]
    if out is None or given["scale_grad_by_freq"] or given["padding_idx"] >= 0:
        return None
    naming = Naming()
    rows, width = naming.all(out.shape)
    places = naming.all(given.shape("indices"))
    return Wide(naming.rule([(*places, width), places], [(rows, width)], reduced=_reduced(places)), frozenset(rows))


@_widens("index_select")
def _rows(given: Given) -> Wide | None:
    shape = given.shape("self")
    if not shape or len(given.shape("index")) != 1 or given.axis("dim", len(shape)) != 0:
        return None
    naming = Naming()
    dims, places = naming.all(shape), naming.new(given.shape("index")[0])
    return Wide(naming.rule([dims, (places,)], [(places, *dims[1:])], reduced=_reduced(dims[:1])))


@_widens("index_add")
def _rows_added(given: Given) -> Wide | None:
    out, source = given.outputs[0], given.shape("source")
    if out is None or not source or given.axis("dim", len(source)) != 0 or given.args.get("alpha", 1) != 1 or len(given.inputs) != 3:
        return None
    naming = Naming()
    places, rows, rest = naming.new(source[0]), naming.new(out.shape[0]), naming.all(source[1:])
    zeros = naming.all(given.shape("self"), locked=True)
    rule = naming.rule([zeros, (places,), (places, *rest)], [(rows, *rest)], reduced=_reduced((places,)))
    return Wide(rule, frozenset(rows))


@_widens("new_zeros", "new_ones", "new_full", "new_empty")
def _made_new(given: Given) -> Wide | None:
    out = given.outputs[0]
    if out is None or tuple(out.shape) == tuple(given.inputs[0].shape):
        return None
    naming = Naming()
    dims = naming.all(given.inputs[0].shape)
    return Wide(naming.rule([dims], [naming.all(out.shape, locked=True)]))


@_widens("nll_loss_forward", "nll_loss_backward")
def _nll_loss(given: Given) -> Wide | None:
    scores = given.shape("self")
    if len(scores) != 2:
        return None
    naming, weighed = Naming(), given.args.get("weight") is not None
    rows, classes = naming.new(scores[0]), naming.new(scores[1], locked=weighed)
    dims: list[Dims] = []
    for name, value in given.args.items():
        if hasattr(value, "shape"):
            named = {"self": (rows, classes), "weight": (naming.new(scores[1], locked=True),)}
            dims.append(named.get(name, (rows,) if len(value.shape) else ()))
    if given.target._opname == "nll_loss_backward":
        return Wide(naming.rule(dims, [(rows, classes)]), messages=0)
    outputs: list[Dims] = [(rows,) if out is not None and len(out.shape) else () for out in given.outputs]
    return Wide(naming.rule(dims, outputs), messages=2, seen=frozenset((*rows, *classes)))


@_widens("_softmax", "_log_softmax", "_softmax_backward_data", "_log_softmax_backward_data")
def _softmax(given: Given) -> Wide | None:
    shape = tuple(given.inputs[0].shape)
    if not shape or given.args.get("half_to_float"):
        return None
    naming, axis = Naming(), given.axis("dim", len(shape))
    dims = naming.all(shape)
    count = 1 if given.target._opname.endswith("backward_data") else 2
    rule = naming.rule([dims] * len(given.inputs), [dims])
    return Wide(rule, messages=count, seen=frozenset(dims[axis]), share=1 / max(1, shape[axis]))


@_widens("native_batch_norm", "native_batch_norm_backward")
def _batch_norm(given: Given) -> Wide | None:
    x = given.args["input"]
    if not given.args.get("training", given.args.get("train", False)):
        return None
    naming = Naming()
    full = naming.all(x.shape)

    def dims(t: object) -> Dims:
        shape = tuple(t.shape)  # type: ignore[attr-defined]
        return full if len(shape) == len(full) else (full[1],) if shape == (x.shape[1],) else naming.all(shape, locked=True)

    rule = naming.rule([dims(t) for t in given.inputs], [dims(t) for t in given.outputs if t is not None])
    others = frozenset(factor for at, dim in enumerate(full) if at != 1 for factor in dim)
    return Wide(rule, messages=2, seen=others, share=x.shape[1] / max(1, x.numel()))


@_widens("native_dropout", "rand_like", "randn_like", "randint_like")
def _drawn(given: Given) -> Wide:
    naming = Naming()
    dims = naming.all(given.inputs[0].shape)
    return Wide(naming.rule([dims] * len(given.inputs), [dims for out in given.outputs if out is not None]))


@_widens("addmm", "linear")
def _product_and_sum(given: Given) -> Wide | None:
    found = rule_of(given)
    if found is None or len(given.inputs) != 3:
        return None
    is_linear = given.target._opname == "linear"
    inner = found.inputs[0 if is_linear else 1][-1]
    rule = Rule(found.inputs, found.outputs, found.sizes, reduced={inner[0]: "sum"}, locked=found.locked - frozenset(inner))
    return Wide(rule)
