"""Operators of inference: attention over caches, rotated positions, routing of tokens to experts, products of quantized matrices."""
from __future__ import annotations

from torchspore.distributed.shard.strategy_validation.axis_labels import ANY, UNCUT, Call, Cuts, Family, Form, Labels, Shape
from torchspore.distributed.shard.strategy_validation.products import matrix_product

_LETTERS = {"B": "b", "N": "n", "S": UNCUT, "D": UNCUT, "H": "n", "T": "b"}


def full_attention(call: Call) -> tuple[Form, ...]:
    """query, key and value as `input_layout` says: batch and heads may be split, alike for all three; heads of keys may also stay unsplit.

    The optional Tensors after them are split along their batch or heads, or not at all.
    """
    name = str(call.get("input_layout", default="BSH"))
    heads = int(call.get("num_heads", "head_num", default=1))
    layouts = name.split("_")
    query = tuple(_LETTERS[letter] for letter in layouts[0])
    result = tuple(_LETTERS[letter] for letter in layouts[-1])
    shared = tuple(UNCUT if label == "n" else label for label in query)
    sizes = {**dict(zip(query, call.shapes[0])), "n": heads}
    order = tuple(dict.fromkeys(label for label in query if label != UNCUT))

    def check_full_heads(cuts: Cuts, devices: int) -> str | None:
        return f"a number of parts that divides the {heads} heads, got {cuts['n']}" if heads % cuts["n"] else None

    split_rest = tuple(_optional(shape, sizes, call.shapes[0][-1]) for shape in call.shapes[3:])
    masks = tuple(labels if len(shape) > 1 else (UNCUT,) * len(shape) for labels, shape in zip(split_rest, call.shapes[3:]))
    return tuple(
        Form(inputs=(query, keys, keys, *rest), outputs=(result, (UNCUT,) * 4), order=order, check=check_full_heads)
        for rest in dict.fromkeys((split_rest, masks)) for keys in (query, shared)
    )


def fused_attention(call: Call) -> tuple[Form, ...]:
    """query, key and value as `input_layout` says: batch and heads may be split, and the positions of queries, or of keys beside one query.

    Heads of keys may stay unsplit. Of the optional Tensors after them only the batch is split; MindSpore does not read their other numbers.
    """
    layout = str(call.get("input_layout", default="BSH"))
    if "S" not in layout or "_" in layout:
        return full_attention(call)
    heads = int(call.get("num_heads", "head_num", default=1))
    at = layout.index("S")
    is_single = call.shapes[0][at] == 1
    query = tuple("s" if letter == "S" and not is_single else _LETTERS[letter] for letter in layout)
    keys = tuple("k" if letter == "S" and is_single else _LETTERS[letter] for letter in layout)
    batch = call.shapes[0][layout.index("B")]
    rest = tuple(("b" if shape[0] == batch else UNCUT, *(ANY,) * (len(shape) - 1)) if shape else () for shape in call.shapes[3:])
    order = tuple(dict.fromkeys(label for label in (*query, *keys) if label != UNCUT))
    statistics = ("b", "n", UNCUT if is_single else "s", UNCUT)

    def check_full_heads(cuts: Cuts, devices: int) -> str | None:
        return f"a number of parts that divides the {heads} heads, got {cuts['n']}" if heads % cuts["n"] else None

    return tuple(
        Form(inputs=(query, labels, labels, *rest), outputs=(query, statistics), order=order, check=check_full_heads)
        for labels in dict.fromkeys((keys, tuple(UNCUT if label == "n" else label for label in keys)))
    )


def _optional(shape: Shape, sizes: dict[str, int], width: int) -> Labels:
    """The labels of a mask or shift (b, [n], ...), of lengths (b,), or of a scale for keys and values (2, features) or (2, n, 1, d)."""
    batch, heads = sizes.get("b"), sizes["n"]
    if len(shape) > 1 and shape[0] == 2 and (shape[1:] == (width,) or (len(shape) == 4 and shape[1:3] == (heads, 1) and batch != 2)):
        return (UNCUT, "n", *(UNCUT,) * (len(shape) - 2))
    first = "b" if shape and shape[0] == batch else UNCUT
    second = "n" if len(shape) == 4 and shape[1] == heads > 1 else UNCUT
    return (first, second, *(UNCUT,) * (len(shape) - 2))[:len(shape)]


def paged_attention(call: Call) -> tuple[Form, ...]:
    """query (n, N, D), (n, 1, N * D) or (n, N * D), two caches (blocks, size, N, D), block numbers (n, most), lengths (n,), masks.

    The tokens, the heads and their features may be split; block numbers and lengths like the tokens, or independently.
    """
    query_shape, cache_shape = call.shapes[:2]
    by_heads = len(query_shape) == 3 and query_shape[-1] == cache_shape[-1]
    query = ("t", "n", "d") if by_heads else ("t", *(UNCUT,) * (len(query_shape) - 2), "n")
    cache = (UNCUT, UNCUT, "n", "d") if by_heads else (UNCUT, UNCUT, "n", UNCUT)[:len(cache_shape)]
    if len(cache_shape) == 3:
        cache = (UNCUT, UNCUT, "n")
    count = next((at for at, shape in enumerate(call.shapes[1:], 1) if len(shape) == 2), 3)
    rest = tuple(_of_tokens(shape, query_shape[0]) for shape in call.shapes[count + 2:])

    def form(blocks: str, lengths: str) -> Form:
        inputs = (query, *(cache,) * (count - 1), (blocks, UNCUT), (lengths,), *rest)
        order = tuple(dict.fromkeys(("t", lengths, blocks, "n", *(("d",) if by_heads else ()))))
        return Form(inputs=inputs[:len(call.shapes)], outputs=(query,), order=order)

    return form("t", "t"), form("b", "c")


def _of_tokens(shape: Shape, tokens: int) -> Labels:
    """The labels of a mask (tokens, heads, q, keys) or of scales (2, heads)."""
    if len(shape) == 4:
        return ("t" if shape[0] == tokens else UNCUT, "n", UNCUT, UNCUT)
    return (UNCUT, "n") if len(shape) == 2 else (UNCUT,) * len(shape)


def cached(call: Call) -> Form:
    """New keys and values (s, N, D) or (b, s, N * D), caches (blocks, size, N, D), slots: heads and features may be split."""
    key, cache = call.shapes[0], next(shape for shape in call.shapes if len(shape) == 4)
    by_heads = key[-1] == cache[-1]
    new = (*(UNCUT,) * (len(key) - 2), "n", "d") if by_heads else (*(UNCUT,) * (len(key) - 1), "n")
    stored = (UNCUT, UNCUT, "n", "d" if by_heads else UNCUT)
    inputs = tuple(stored if len(shape) == 4 else (UNCUT,) if len(shape) == 1 else new for shape in call.shapes)
    return Form(inputs=inputs, outputs=(new,), order=("n", "d") if by_heads else ("n",))


def updated_cache(call: Call) -> Form:
    """A cache, positions and updates: all axes but the first may be split; the axis of the positions stays unsplit here."""
    axis = call.axis("axis", default=-2)
    axes = tuple(UNCUT if at in (0, axis) else f"d{at}" for at in range(len(call.shapes[0])))
    order = tuple(label for label in axes if label != UNCUT)
    return Form(inputs=(axes, (UNCUT,) * len(call.shapes[1]), axes), outputs=(axes,), order=order)


def rotated(call: Call) -> tuple[Form, ...]:
    """Queries and keys (b, s, h) or (b, s, n, d), tables of cosines and sines, which stay unsplit, and positions."""
    rank = len(call.shapes[0])
    rows: Labels = {2: ("b", "n"), 3: ("b", UNCUT, "n")}.get(rank, ("b", UNCUT, "n", UNCUT))
    tables = tuple((UNCUT,) * len(shape) for shape in call.shapes[2:4])
    return tuple(
        Form(inputs=(rows, rows, *tables, *positions), outputs=(rows, rows), order=("n", "b"))
        for positions in ([("b",)], [(UNCUT,)]) if len(call.shapes) == len(tables) + 3
    )


def rotated_tensor(call: Call) -> Form:
    """x, and cosines and sines that broadcast against it; the last axis stays unsplit."""
    shape = call.shapes[0]
    axes = (*(f"d{at}" for at in range(len(shape) - 1)), UNCUT)
    tables = tuple(
        tuple(UNCUT if size == 1 < shape[at] else axes[at] for at, size in enumerate(table)) for table in call.shapes[1:3]
    )
    return Form(inputs=(axes, *tables), outputs=(axes,), order=axes[:-1])


def uncut(call: Call) -> Form:
    """Every input stays unsplit, as MindSpore's rule of the operator requires."""
    return Form(inputs=tuple((UNCUT,) * len(shape) for shape in call.shapes), outputs=(), order=())


def quantized_product(call: Call) -> tuple[Form, ...]:
    """A matrix product, followed by numbers for the columns (j,) or for groups of rows and columns (groups, j)."""
    flags = {"transpose_a": call.get("transpose_x", "transpose_x1", default=False),
             "transpose_b": call.get("transpose_weight", "transpose_x2", default=False)}
    product = matrix_product(Call(call.name, flags, call.shapes[:2]))[0]
    rows, columns = product.outputs[0][-2:]
    sizes = call.shapes[0][-1 if flags["transpose_a"] else -2], call.shapes[1][-2 if flags["transpose_b"] else -1]

    def numbers(shape: Shape) -> Labels:
        last = UNCUT if not shape or shape[-1] != sizes[1] else columns
        if len(shape) == 1 and last == UNCUT and shape[0] == sizes[0]:
            last = rows
        return (*(UNCUT,) * (len(shape) - 1), last) if shape else ()

    rest = tuple(map(numbers, call.shapes[2:]))
    return (Form(inputs=(*product.inputs, *rest), outputs=product.outputs, order=product.order),)


def grouped_products(call: Call) -> Form:
    """Matrices, as many weights, perhaps as many biases (GroupedMatmul): each pair is split as a product, weights (E, K, N) along K and N.

    With split_item 3 one pair of Tensors, and numbers (E, N), have the ends of the groups behind them.
    """
    turned = bool(call.get("transpose_a", default=False)), bool(call.get("transpose_b", default=False))
    has_groups = int(call.get("split_item", default=0)) == 3
    shapes = call.shapes[:-1] if has_groups else call.shapes
    vectors = 0 if has_groups else sum(len(shape) == 1 for shape in shapes)
    count = 1 if has_groups else (len(shapes) - vectors) // 2

    def matrix(shape: Shape, at: int, last: tuple[str, str], is_turned: bool) -> Labels:
        head = tuple(f"b{at}{axis}" for axis in range(len(shape) - 2)) if last[0].startswith("m") else (UNCUT,) * (len(shape) - 2)
        return (*head, *(reversed(last) if is_turned else last))

    values = [matrix(shape, at, (f"m{at}", f"k{at}"), turned[0]) for at, shape in enumerate(shapes[:count])]
    weights = [matrix(shape, at, (f"k{at}", f"n{at}"), turned[1]) for at, shape in enumerate(shapes[count:2 * count])]
    numbers = [(*(UNCUT,) * (len(shape) - 1), f"n{at % count}") for at, shape in enumerate(shapes[2 * count:])]
    results = tuple((*labels[:-2], f"m{at}", f"n{at}") for at, labels in enumerate(values))
    rest: tuple[Labels, ...] = ((UNCUT,),) if has_groups else ()
    order = tuple(dict.fromkeys(label for labels in (*values, *weights) for label in labels if label != UNCUT))
    same = {label: label[0] + "0" + label[2:] for label in order}                # all pairs are split alike
    inputs = tuple(tuple(same.get(label, label) for label in labels) for labels in (*values, *weights, *numbers, *rest))
    outputs = tuple(tuple(same.get(label, label) for label in labels) for labels in results)
    return Form(inputs=inputs, outputs=outputs, order=tuple(dict.fromkeys(same.values())))


def quantized_rows(call: Call) -> Form:
    """Rows that are scaled to integers, each by its largest number, and the scales; the last axis stays unsplit."""
    axes = (*(f"d{at}" for at in range(len(call.shapes[0]) - 1)), UNCUT)
    return Form(inputs=(axes, (UNCUT,))[:len(call.shapes)], outputs=(axes, axes[:-1]), order=axes[:-1])


FAMILIES: dict[str, Family] = {
    "IncreFlashAttention": full_attention, **dict.fromkeys(("PromptFlashAttention", "FusedInferAttentionScore"), fused_attention),
    **dict.fromkeys(("PagedAttention", "PagedAttentionMask"), paged_attention),
    "ReshapeAndCache": cached, "KVCacheScatterUpdate": updated_cache,
    "ApplyRotaryPosEmb": rotated, "RotaryPositionEmbedding": rotated_tensor,
    **dict.fromkeys(("MoeInitRouting", "MoeFinalizeRouting", "MoeGatingTopKSoftmax", "MoeComputeExpertTokens"), uncut),
    **dict.fromkeys(("WeightQuantBatchMatmul", "QuantBatchMatmul"), quantized_product), "DynamicQuantExt": quantized_rows,
    "GroupedMatmul": grouped_products,
}
