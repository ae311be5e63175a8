"""Attention: batch, heads and the positions of queries may be split; with `enable_ring_attention` those of keys and values too."""
from __future__ import annotations

from collections.abc import Mapping

from torchspore.distributed.shard.strategy_validation.axis_labels import UNCUT, Call, Cuts, Family, Form, Labels, Shape

_LETTERS = {"B": "b", "N": "n", "S": "s", "D": UNCUT, "H": "n", "T": UNCUT}


def attention(call: Call) -> tuple[Form, ...]:
    """query, key and value as `input_layout` says; the results are two statistics, an unused one, and the attention.

    With the attribute `enable_ring_attention` or `enable_flash_sp`, keys and values may be split along the sequence as queries are. Heads
    of keys and values may stay unsplit, like those that all queries share. Masks and shifts are split as the scores (b, n, s, keys), along
    the axes on which they are as long, or not at all.
    """
    layout = str(call.get("input_layout", default="BSH"))
    heads = int(call.get("head_num", default=1))
    query = tuple(_LETTERS[letter] for letter in layout)

    def check_full_heads(cuts: Cuts, devices: int) -> str | None:
        return f"a number of parts that divides the {heads} heads, got {cuts['n']}" if heads % cuts["n"] else None

    statistics = ("b", "n", "s", UNCUT) if "T" not in layout else query
    order = tuple(label for label in query if label != UNCUT)
    sizes = {**dict(zip(query, call.shapes[0])), "n": heads}

    def form(keys: Labels, rest: tuple[Labels, ...]) -> Form:
        outputs = (statistics, statistics, (UNCUT,), query)
        return Form(inputs=(query, keys, keys, *rest), outputs=outputs, order=order, check=check_full_heads)

    full_keys = tuple(UNCUT if label == "s" else label for label in query)
    key_forms = (query, full_keys) if call.get("enable_ring_attention") or call.get("enable_flash_sp") else (full_keys,)
    shared = [tuple(UNCUT if label == "n" else label for label in keys) for keys in key_forms]
    split_rest = tuple(_of_scores(shape, sizes) for shape in call.shapes[3:])
    full_rest = tuple((UNCUT,) * len(shape) for shape in call.shapes[3:])
    return tuple(form(keys, rest) for rest in dict.fromkeys((split_rest, full_rest)) for keys in (*key_forms, *shared))


def _of_scores(shape: Shape, sizes: Mapping[str, int]) -> Labels:
    """Return the labels of a mask or shift: the last axes of (b, n, s, keys), or lengths for each batch (b,)."""
    if len(shape) == 1:
        return ("b",) if shape[0] == sizes.get("b") else (UNCUT,)
    letters = ("b", "n", "s", UNCUT)[-len(shape):]
    return tuple(letter if letter and size == sizes.get(letter) else UNCUT for letter, size in zip(letters, shape))


FAMILIES: dict[str, Family] = {"FlashAttentionScore": attention}
