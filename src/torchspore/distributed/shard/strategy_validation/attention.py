"""Attention: batch, heads and the positions of queries may be split; with `enable_ring_attention` those of keys and values too."""
from __future__ import annotations

from collections.abc import Mapping

from torchspore.distributed.shard.strategy_validation.axis_labels import UNCUT, Call, Cuts, Family, Form, Labels, Shape

_LETTERS = {"B": "b", "N": "n", "S": "s", "D": UNCUT, "H": "n", "T": "t"}
_OF_KEYS = {"b": "kb", "n": "kn", "s": UNCUT, "t": "kt"}
"""The labels of keys that a program splits by Layouts."""


def attention(call: Call) -> tuple[Form, ...]:
    """query, key and value as `input_layout` says; the results are two statistics, an unused one, and the attention.

    With the attribute `enable_ring_attention` or `enable_flash_sp`, keys and values may be split along the sequence as queries are. Heads
    of keys and values may stay unsplit, like those that all queries share. Masks and shifts are split as the scores (b, n, s, keys), along
    the axes on which they are as long, or not at all. By Layouts, keys may be split in another way than queries.
    """
    layout = str(call.get("input_layout", default="BSH"))
    heads = int(call.get("head_num", default=1))
    query = tuple(_LETTERS[letter] for letter in layout)
    statistics = ("b", "n", "s", UNCUT) if "T" not in layout else query
    order = tuple(label for label in query if label != UNCUT)
    sizes = {**dict(zip(query, call.shapes[0])), "n": heads}
    key_heads = _key_heads(layout, heads, call.shapes)

    def form(keys: Labels, rest: tuple[Labels, ...]) -> Form:
        def check_heads(cuts: Cuts, devices: int) -> str | None:
            if heads % cuts["n"]:
                return f"a number of parts that divides the {heads} heads, got {cuts['n']}"
            of_keys = cuts[keys[query.index("n")]] if keys[query.index("n")] != UNCUT else 1
            if key_heads % of_keys or (heads // cuts["n"]) % (key_heads // of_keys):
                return f"parts whose {heads // cuts['n']} heads of queries are a multiple of those of keys, {key_heads // of_keys or 1}"
            return None

        outputs = (statistics, statistics, (UNCUT,), query)
        shared = frozenset(_OF_KEYS.values()) & {label for labels in (keys, *rest) for label in labels} - {UNCUT}
        return Form(inputs=(query, keys, keys, *rest), outputs=outputs, order=order, check=check_heads, shared=shared)

    if layout == "TND":
        rests = [tuple(("t",) if len(shape) == 1 else (UNCUT,) * len(shape) for shape in call.shapes[3:])]
        key_forms: tuple[Labels, ...] = (query,)
    else:
        full_keys = tuple(UNCUT if label == "s" else label for label in query)
        key_forms = (query, full_keys) if call.get("enable_ring_attention") or call.get("enable_flash_sp") else (full_keys,)
        split_rest = tuple(_of_scores(shape, sizes) for shape in call.shapes[3:])
        rests = list(dict.fromkeys((split_rest, tuple((UNCUT,) * len(shape) for shape in call.shapes[3:]))))
    single_heads = [tuple(UNCUT if label == "n" else label for label in keys) for keys in key_forms]
    by_layouts = tuple(_OF_KEYS.get(label, label) for label in query)
    forms = [form(keys, rest) for rest in rests for keys in (*key_forms, *single_heads)]
    apart = [tuple(("kt",) if part == ("t",) else part for part in rest) for rest in rests]
    return (*forms, *(form(by_layouts, rest) for rest in apart))


def _key_heads(layout: str, heads: int, shapes: tuple[Shape, ...]) -> int:
    """Return the number of heads of keys; at least 1."""
    at = layout.index("H" if "H" in layout else "N")
    if "N" in layout:
        return max(1, shapes[1][at])
    return max(1, shapes[1][at] * heads // max(1, shapes[0][at]))


def _of_scores(shape: Shape, sizes: Mapping[str, int]) -> Labels:
    """Return the labels of a mask or shift: the last axes of (b, n, s, keys), or lengths for each batch (b,)."""
    if len(shape) == 1:
        return ("b",) if shape[0] == sizes.get("b") else (UNCUT,)
    letters = ("b", "n", "s", UNCUT)[-len(shape):]
    return tuple(letter if letter and size == sizes.get(letter) else UNCUT for letter, size in zip(letters, shape))


FAMILIES: dict[str, Family] = {"FlashAttentionScore": attention}
