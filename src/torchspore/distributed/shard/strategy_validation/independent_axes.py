"""Operators that treat some axes as independent and keep the others unsplit: Fourier transforms, boxes, distances."""
from __future__ import annotations

from torchspore.distributed.shard.strategy_validation.axis_labels import UNCUT, Call, Family, Form, Labels, labels


def _transform(axis: tuple[int, ...] | None) -> Family:
    """Return the family of transforms along an argument's axes, or along these if the call names none; None stands for all axes."""

    def family(call: Call) -> Form:
        rank = len(call.shapes[0])
        named = call.get("dim", "dims", "axis", "axes", default=axis)
        along = range(rank) if named is None else [named] if isinstance(named, int) else named
        axes = labels(rank)
        uncut = {axes[at % rank]: f"axis {at % rank} is transformed" for at in along}
        return Form(inputs=(axes,), outputs=(axes,), order=axes, uncut=uncut)

    return family


def last_two_uncut(call: Call) -> Form:
    """Matrices in the last two axes, each computed independently."""
    rank = len(call.shapes[0])
    axes = labels(rank)
    uncut = {axes[at]: f"axis {at} belongs to a matrix" for at in range(max(0, rank - 2), rank)}
    return Form(inputs=(axes,), outputs=(axes,), order=axes, uncut=uncut)


def least_squares(call: Call) -> Form:
    """Matrices (..., m, n), each with an equation's right-hand sides (..., m, k) or (..., m). What a driver does not compute is empty."""
    (*batch_shape, rows, columns), driver = call.shapes[0], call.get("driver")
    batch, empty = labels(len(batch_shape)), (UNCUT,)
    rest = empty * (len(call.shapes[1]) - len(batch))
    residuals = (*batch, UNCUT) if rows > columns and driver != "gelsy" else empty
    rank, singular_values = batch if driver != "gels" else empty, (*batch, UNCUT) if driver in ("gelsd", "gelss") else empty
    return Form(
        inputs=((*batch, UNCUT, UNCUT), (*batch, *rest)), outputs=((*batch, *rest), residuals, rank, singular_values), order=batch,
    )


def encoded_boxes(call: Call) -> Form:
    """Two lists (n, 4) of boxes, pair by pair."""
    boxes = ("n", UNCUT)
    return Form(inputs=(boxes, boxes), outputs=(boxes,), order=("n",))


def valid_boxes(call: Call) -> Form:
    """A list (n, 4) of boxes and the sizes of an image, which stay unsplit."""
    return Form(inputs=(("n", UNCUT), (UNCUT,)), outputs=(("n",),), order=("n",))


def overlaps(call: Call) -> Form:
    """Each of n boxes with each of m boxes: a table (m, n)."""
    return Form(inputs=(("n", UNCUT), ("m", UNCUT)), outputs=(("m", "n"),), order=("n", "m"))


def cropped(call: Call) -> Form:
    """Parts of images (b, h, w, c) that boxes (n, 4) name, each with the number of its image."""
    return Form(
        inputs=(("b", UNCUT, UNCUT, "c"), ("n", UNCUT), ("n",)), outputs=(("n", UNCUT, UNCUT, "c"),), order=("b", "n", "c"),
    )


def aligned(call: Call) -> Form:
    """Parts of images (b, c, h, w) that regions (n, 5) name."""
    return Form(inputs=(("b", "c", UNCUT, UNCUT), ("n", UNCUT)), outputs=(("n", "c", UNCUT, UNCUT),), order=("b", "n", "c"))


def distances(call: Call) -> Form:
    """Each row (..., p, k) with each row (..., r, k), batch by batch: a table (..., p, r)."""
    batch: Labels = labels(len(call.shapes[0]) - 2, "b")
    return Form(
        inputs=((*batch, "p", UNCUT), (*batch, "r", UNCUT)), outputs=((*batch, "p", "r"),), order=(*batch, "p", "r"),
    )


def outer(call: Call) -> Form:
    """Each number of one list with each number of another."""
    return Form(inputs=(("p",), ("r",)), outputs=(("p", "r"),), order=("p", "r"))


def sampled(call: Call) -> Form:
    """Images (n, c, h, w), read at the points of a grid (n, h, w, 2)."""
    return Form(
        inputs=(("n", "c", UNCUT, UNCUT), ("n", UNCUT, UNCUT, UNCUT)), outputs=(("n", "c", UNCUT, UNCUT),), order=("n", "c"),
    )


def chosen(call: Call) -> Form:
    """Positions of a random choice among all numbers: nothing may be split."""
    rank = len(call.shapes[0])
    return Form(inputs=((UNCUT,) * rank,), outputs=((UNCUT, UNCUT), (UNCUT,)), order=())


def summed_diagonal(call: Call) -> Form:
    """The sum of a diagonal of two axes, which stay unsplit."""
    rank = len(call.shapes[0])
    diagonal = {call.axis("axis1", default=1), call.axis("axis2", default=0)}
    axes = tuple(UNCUT if axis in diagonal else f"d{axis}" for axis in range(rank))
    rest = tuple(label for label in axes if label != UNCUT)
    return Form(inputs=(axes,), outputs=(rest,), order=rest)


def triangular_equations(call: Call) -> Form:
    """Matrices (..., n, n) and right sides (..., n) or (..., n, m): MindSpore accepts a split of each axis."""
    matrix, right = call.shapes
    batch: Labels = labels(len(matrix) - 2, "b")
    sides = (*batch, *(f"s{axis}" for axis in range(len(right) - len(batch))))
    return Form(inputs=((*batch, "r", "k"), sides), outputs=(sides,), order=(*batch, "r", "k", *sides[len(batch):]))


FAMILIES: dict[str, Family] = {
    "TraceV2": summed_diagonal, "SolveTriangular": triangular_equations,
    **dict.fromkeys("FFT IFFT RFFT IRFFT HFFT IHFFT DCT IDCT".split(), _transform((-1,))),
    **dict.fromkeys("FFT2 IFFT2 RFFT2 IRFFT2 HFFT2 IHFFT2".split(), _transform((-2, -1))),
    **dict.fromkeys("FFTN IFFTN RFFTN IRFFTN HFFTN IHFFTN DCTN IDCTN FFTShift IFFTShift".split(), _transform(None)),
    "Cholesky": last_two_uncut, "LstsqV2": least_squares,
    "BoundingBoxEncode": encoded_boxes, "BoundingBoxDecode": encoded_boxes, "CheckValid": valid_boxes,
    "IOU": overlaps, "CropAndResize": cropped, "ROIAlign": aligned, "Cdist": distances, "Outer": outer, "GridSampler2D": sampled,
    "RandomChoiceWithMask": chosen,
}
