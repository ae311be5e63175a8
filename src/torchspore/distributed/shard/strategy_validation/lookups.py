"""Operators that read or write rows by their indexes."""
from __future__ import annotations

from dataclasses import replace
from math import prod

from torchspore.distributed.shard.strategy_validation.axis_labels import UNCUT, Call, Cuts, Family, Form, Labels, labels, on_all_devices


def gather(call: Call) -> tuple[Form, ...]:
    """Rows of a table by an array of indexes.

    The axes of the indexes and the table's other axes may be split together. A table split along the axis of the lookup is accepted in
    three cases: unsplit indexes, with the result split along its first axis; indexes split along their first axis by the remaining devices,
    with a result that is unsplit along the table's axis; and, along another axis than the first, unsplit indexes.
    """
    table, numbers = call.shapes[:2]
    axis = call.axis("axis", "dim", default=0)
    batches = int(call.get("batch_dims", default=0))
    rows, index_labels = labels(len(table), "t"), labels(len(numbers), "i")
    if batches:
        index_labels = rows[:batches] + index_labels[batches:]
    result = (*rows[:axis], *index_labels[batches:], *rows[axis + 1:])
    order = (*index_labels, *rows[batches:])
    usual = Form(inputs=(rows, index_labels), outputs=(result,), order=order, uncut={rows[axis]: f"axis {axis} of the table is looked up"})
    if batches or len(table) > 2:
        return (usual,)
    if axis:
        joined = {"both": (rows[0], rows[1])}
        uncut = (UNCUT,) * len(numbers)
        return usual, Form(inputs=(rows, uncut), outputs=(("both", *uncut),), order=rows, joined=joined, check=on_all_devices)
    return (usual, *_cut_rows(rows, index_labels, numbers))


def _cut_rows(rows: Labels, index_labels: Labels, numbers: tuple[int, ...]) -> tuple[Form, ...]:
    """Return the forms in which the first axis of a table is split: partial sums are scattered along the indexes, or summed on all devices.

    Without an out_strategy the first form that fits is used, as in MindSpore.
    """
    others = rows[1:]
    uncut = (UNCUT,) * len(numbers)

    def check_full_numbers(cuts: Cuts, devices: int) -> str | None:
        if prod(cuts[label] for label in others) > 1:
            return on_all_devices(cuts, devices)
        return None

    def scattered(cuts: Cuts, devices: int) -> str | None:
        if numbers[0] % cuts[rows[0]]:
            return "rows that a sum can be scattered along"
        return check_full_numbers(cuts, devices)

    def cut_numbers(cuts: Cuts, devices: int) -> str | None:
        if cuts[index_labels[0]] == 1:
            return "numbers that are whole, or cut along their first axis"
        if len(numbers) > 1 and prod(cuts[label] for label in others) > 1:
            return "a table cut along its first axis alone where numbers have several axes"
        return on_all_devices(cuts, devices)

    def cut_rows_of_numbers(cuts: Cuts, devices: int) -> str | None:
        if numbers[0] % (cuts[index_labels[0]] * cuts[rows[0]]):
            return "rows that a sum can be scattered along"
        return cut_numbers(cuts, devices)

    forms = [
        Form(inputs=(rows, uncut), outputs=((rows[0], *uncut[1:], *others),), order=rows, check=scattered,
             repeats_first=True, is_chosen_by_output=True),
        Form(inputs=(rows, uncut), outputs=((*uncut, *others),), order=rows, check=check_full_numbers,
             repeats_first=True, is_chosen_by_output=True),
    ] if numbers else []
    if index_labels and others:
        forms.append(
            Form(inputs=(rows, index_labels), outputs=((*index_labels, *others),), order=(*index_labels, *rows), check=cut_numbers,
                 is_chosen_by_output=True)
        )
        forms.append(
            Form(inputs=(rows, index_labels), outputs=(("both", *index_labels[1:], *others),), order=(*index_labels, *rows),
                 check=cut_rows_of_numbers, is_chosen_by_output=True, joined={"both": (index_labels[0], rows[0])})
        )
    return tuple(forms)


def embedding(call: Call) -> tuple[Form, ...]:
    """Rows of a table by an array of indexes, which is the first input: the forms of `gather`."""
    numbers, table = call.shapes[:2]
    return tuple(replace(form, inputs=(form.inputs[1], form.inputs[0])) for form in gather(Call(call.name, {}, (table, numbers))))


def gather_along(call: Call) -> Form:
    """Indexes along one unsplit axis; input and indexes are split alike."""
    axes = labels(len(call.shapes[0]))
    axis = call.axis("dim", "axis", default=0)
    return Form(inputs=(axes, axes), outputs=(axes,), order=axes, uncut={axes[axis]: f"axis {axis} is looked up"})


def gather_nd_rows(call: Call) -> Form:
    """Rows by tuples of indexes: the table stays unsplit, and so does the last axis of the indexes."""
    table, numbers = call.shapes[:2]
    index_labels = (*labels(len(numbers) - 1, "i"), UNCUT)
    rest = (UNCUT,) * (len(table) - numbers[-1])
    return Form(inputs=((UNCUT,) * len(table), index_labels), outputs=(index_labels[:-1] + rest,), order=index_labels[:-1])


def scatter(call: Call) -> Form:
    """Rows written by their indexes: the indexes stay unsplit, the table's other axes are split like the updates'.

    Its first axis may be split, too, except for ScatterUpdate.
    """
    table, numbers = call.shapes[:2]
    axes = labels(len(table), "t")
    written_labels = (UNCUT,) * len(numbers) + axes[1:]
    uncut = {axes[0]: "axis 0 is looked up"} if call.name == "ScatterUpdate" else {}
    return Form(inputs=(axes, (UNCUT,) * len(numbers), written_labels), outputs=(axes,), order=axes, uncut=uncut)


def scatter_nd_rows(call: Call) -> Form:
    """Rows written by tuples of indexes: the axes that the tuples name may be split if the operator computes with the old values.

    They stay unsplit for updates, maxima and minima, as in MindSpore.
    """
    table, numbers = call.shapes[:2]
    named = numbers[-1]
    rest = labels(len(table) - named, "t")
    written_labels = (UNCUT,) * (len(numbers) - 1) + rest
    laid = ((UNCUT,) * named if call.name.endswith(("Update", "Max", "Min")) else labels(named, "n")) + rest
    order = tuple(label for label in laid if label != UNCUT)
    return Form(inputs=(laid, (UNCUT,) * len(numbers), written_labels), outputs=(laid,), order=order)


def segments(call: Call) -> Form:
    """Rows joined by the numbers of their segments: split rows give partial results of each segment."""
    values, numbers = call.shapes[:2]
    axes = labels(len(values))
    count = len(numbers)
    return Form(inputs=(axes, axes[:count]), outputs=((UNCUT, *axes[count:]),), order=axes)


FAMILIES: dict[str, Family] = {
    **dict.fromkeys(
        ("Gather", "EmbeddingLookup", "SparseGatherV2", "IndexSelect"), gather,
    ), "GatherD": gather_along, "Embedding": embedding, "GatherNd": gather_nd_rows,
    **dict.fromkeys(("ScatterUpdate", "ScatterAdd", "ScatterSub", "ScatterMul", "ScatterDiv", "ScatterMax", "ScatterMin"), scatter),
    **dict.fromkeys((
        "TensorScatterUpdate", "TensorScatterAdd", "TensorScatterSub", "TensorScatterMax", "TensorScatterMin", "TensorScatterMul",
        "TensorScatterDiv", "ScatterNdUpdate", "ScatterNdAdd", "ScatterNdSub",
    ), scatter_nd_rows),
    **dict.fromkeys(("UnsortedSegmentSum", "UnsortedSegmentMin", "UnsortedSegmentMax", "UnsortedSegmentProd"), segments),
}
