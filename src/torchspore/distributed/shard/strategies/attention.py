"""Attention: batch, heads and the queries' positions may be cut; each query sees all keys."""
from __future__ import annotations

from torchspore.distributed.shard.strategies.axis_labels import UNCUT, Call, Cuts, Family, Form

_LETTERS = {"B": "b", "N": "n", "S": "s", "D": UNCUT, "H": "n", "T": UNCUT}


def attention(call: Call) -> Form:
    """query, key and value as `input_layout` says; the results are two of statistics, an unused one, and that of attention."""
    layout = str(call.get("input_layout", default="BSH"))
    heads = int(call.get("head_num", default=1))
    query = tuple(_LETTERS[letter] for letter in layout)
    keys = tuple(UNCUT if label == "s" else label for label in query)
    rest = ((UNCUT,) * len(shape) for shape in call.shapes[3:])

    def check_full_heads(cuts: Cuts, devices: int) -> str | None:
        return f"a number of parts that divides the {heads} heads, got {cuts['n']}" if heads % cuts["n"] else None

    statistics = ("b", "n", "s", UNCUT)
    order = tuple(label for label in query if label != UNCUT)
    return Form(inputs=(query, keys, keys, *rest), outputs=(statistics, statistics, (UNCUT,), query), order=order, check=check_full_heads)


FAMILIES: dict[str, Family] = {"FlashAttentionScore": attention}
