"""Matrix products."""
from __future__ import annotations

from torchspore.distributed.shard.strategy_validation.axis_labels import UNCUT, Call, Family, Form, Labels, labels, on_all_devices


def matrix_product(call: Call) -> tuple[Form, ...]:
    """A product of the last two axes: rows i, the inner axis k, columns j; the axes before them broadcast against each other.

    Both matrices may also be on one grid of all devices, rows along its first axis and columns along its second.
    """
    first, second = call.shapes
    rows, columns = ("i", "k"), ("k", "j")
    if call.get("transpose_a", default=False):
        rows = ("k", "i")
    if call.get("transpose_b", default=False):
        columns = ("j", "k")
    count = max(len(first), len(second)) - 2
    batch = labels(count, "b")
    batches = [_batch(shape[:-2], count) for shape in (first, second)]
    usual = Form(
        inputs=(batches[0] + rows, batches[1] + columns), outputs=((*batch, "i", "j"),), order=(*batch, "i", "k", "j"), scatters="k",
    )
    if batch or (rows, columns) != (("i", "k"), ("k", "j")):
        return (usual,)
    grid = ("x", "y")
    return usual, Form(inputs=(grid, grid), outputs=(grid,), order=grid, check=on_all_devices)


def _batch(shape: tuple[int, ...], count: int) -> Labels:
    return tuple(UNCUT if size == 1 else f"b{count - len(shape) + axis}" for axis, size in enumerate(shape))


def dense(call: Call) -> Form:
    """x (..., k), weight (j, k), and an optional bias (j,)."""
    batch = labels(len(call.shapes[0]) - 1, "i")
    inputs = ((*batch, "k"), ("j", "k"), ("j",))[:len(call.shapes)]
    return Form(inputs=inputs, outputs=((*batch, "j"),), order=(*batch, "k", "j"), scatters="k", lenient=True)


def feed_forward(call: Call) -> Form:
    """x (..., h), weights ([e], h, f) and ([e], f, h), numbers of tokens (e,), biases ([e], f) and ([e], h): rows and f may be split."""
    rows = labels(len(call.shapes[0]) - 1, "i")
    experts = (UNCUT,) * (len(call.shapes[1]) - 2)
    width, hidden = call.shapes[0][-1], call.shapes[1][-1]
    rest: list[Labels] = []
    for shape in call.shapes[3:]:
        is_tokens = bool(experts) and len(shape) == 1
        is_inner = not is_tokens and shape[-1] == hidden and (hidden != width or ("f",) not in [item[-1:] for item in rest])
        rest.append((UNCUT,) * len(shape) if not is_inner else (*experts, "f"))
    inputs = ((*rows, UNCUT), (*experts, UNCUT, "f"), (*experts, "f", UNCUT), *rest)
    return Form(inputs=inputs, outputs=((*rows, UNCUT),), order=(*rows, "f"))


FAMILIES: dict[str, Family] = {
    **dict.fromkeys(("MatMul", "BatchMatMul", "MatMulExt", "BatchMatMulExt", "matmul"), matrix_product), "Dense": dense, "linear": dense,
    "FFN": feed_forward, "FFNExt": feed_forward,
}
