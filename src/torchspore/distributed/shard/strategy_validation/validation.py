"""Checks whether a strategy fits an operator's form, and computes the resulting layouts."""
from __future__ import annotations

import itertools
from collections.abc import Iterable
from math import prod
from typing import Any, NamedTuple

from torchspore.base.text import message
from torchspore.distributed.shard.strategy_validation import elementwise
from torchspore.distributed.shard.strategy_validation.axis_labels import ANY, UNCUT, Call, Cuts, Form, Labels, Shape
from torchspore.distributed.shard.strategy_validation.grid_products import grid_product
from torchspore.distributed.shard.strategy_validation.layout import MapEntry, TensorLayout, read, replicated_layout

Strategy = tuple[tuple[int, ...], ...]
Spoken = tuple[tuple[Labels, Shape], ...]
_MOST_TRIED = 20_000


class Fit(NamedTuple):
    """The result of a strategy: the grid of devices, the layouts of the inputs that are Tensors, and those of the outputs."""

    device_matrix: tuple[int, ...]
    inputs: tuple[TensorLayout, ...]
    outputs: tuple[TensorLayout, ...]
    ignored: str | None = None
    """Why the strategy was left out, where MindSpore looks at none for this operator."""


_OUTPUT = "out_strategy "
_WITHOUT_OUT_LAYOUTS = elementwise.FAMILIES.keys() - {"Cast", "Select", "AddN", "Assign", "AssignAdd", "AssignSub", "Accumulate"} | {
    "Softmax", "LogSoftmax", "LayerNorm", "RmsNorm", "Split", "ExpandDims", "CumSum", "Squeeze",
}
"""Operators for which MindSpore 2.10 refuses a Layout of the result, even if it is the only possible one."""


class Misfit(Exception):
    """The reason why a strategy does not fit; it does not leave this package."""


def fit(call: Call, forms: tuple[Form, ...], in_strategy: Any, out_strategy: Any, devices: int) -> Fit:
    """Return the layouts of a strategy of numbers or of Layouts. Raises ValueError for one that does not fit, with the nearest one that
    does."""
    if call.name in _WITHOUT_OUT_LAYOUTS and out_strategy is not None and is_of_layouts(out_strategy):
        description = f"{call} with out_strategy {_shown(out_strategy)}"
        raise ValueError(message(description, "no out_strategy, as the layouts of its inputs say it"))
    reasons = []
    for form in _that_count(call, forms, in_strategy):
        try:
            if is_of_layouts(in_strategy):
                return by_layouts(call, form, tuple(map(read, in_strategy)), out_strategy, devices)
            return _by_numbers(call, form, cuts_of(call, form, in_strategy, devices), out_strategy, devices)
        except Misfit as reason:
            reasons.append(str(reason))
    if forms[0].lenient:
        laid = ([replicated_layout(len(axes), devices) for axes in part] for part in (forms[0].inputs, forms[0].outputs))
        inputs, outputs = map(tuple, laid)
        return Fit((devices,), inputs, outputs, reasons[0])
    if is_of_layouts(in_strategy):
        raise ValueError(message(f"{call} with in_strategy {_shown(in_strategy)} on {devices} devices", reasons[0]))
    near = nearest(call, forms, in_strategy, devices)
    hint = f"the nearest that fits is {near}" if near and near != _tupled(in_strategy) else None
    strategies = f"in_strategy {in_strategy}" + (f" and out_strategy {out_strategy}" if out_strategy is not None else "")
    of_output = [reason.removeprefix(_OUTPUT) for reason in reasons if reason.startswith(_OUTPUT)]
    expected = _OUTPUT + " or ".join(of_output) if of_output else reasons[0]
    raise ValueError(message(f"{call} with {strategies} on {devices} devices", expected, hint=None if of_output else hint))


def _that_count(call: Call, forms: tuple[Form, ...], strategy: Any) -> tuple[Form, ...]:
    """Return the forms; if the strategy omits an input that a form may split, only the forms that may split an omitted input."""
    try:
        cut_inputs = {at for form in forms for at, (axes, _) in enumerate(form.spoken(call.shapes)) if set(axes) - {UNCUT}}
        return (
            forms if len(strategy) > max(cut_inputs, default=-1) else tuple(form for form in forms if _would_cut(form, call, len(strategy)))
        )
    except TypeError:
        return forms                                           # not a strategy; each form reports that


def _would_cut(form: Form, call: Call, after: int) -> bool:
    return any(set(axes) - {UNCUT} for axes, _ in form.spoken(call.shapes)[after:])


def _tupled(strategy: Any) -> Strategy:
    return tuple(map(tuple, strategy))


def _by_numbers(call: Call, form: Form, cuts: Cuts, out_strategy: Any, devices: int) -> Fit:
    matrix = tuple(cuts[label] for label in form.order)
    repeated = devices // prod(matrix)
    ahead = repeated > 1 and form.repeats_first
    matrix = (repeated, *matrix) if ahead else (*matrix, repeated) if repeated > 1 else matrix or (1,)
    axis_positions = {label: len(matrix) - 1 - position - ahead for position, label in enumerate(form.order)}

    def placed(label: str) -> MapEntry:
        map_entry = tuple(axis_positions[part] for part in form.joined.get(label, (label,)) if part not in (UNCUT, ANY) and cuts[part] > 1)
        return map_entry[0] if len(map_entry) == 1 else map_entry or -1

    inputs, outputs = ([TensorLayout(matrix, tuple(map(placed, axes))) for axes in part] for part in (form.inputs, form.outputs))
    if out_strategy is not None:
        outputs[0] = _scattered(call, form, cuts, axis_positions, outputs[0], out_strategy)
    return Fit(matrix, tuple(inputs), tuple(outputs))


def is_of_layouts(strategy: Any) -> bool:
    """Return whether a strategy is made of Layouts."""
    return bool(strategy) and all(isinstance(item, TensorLayout) or hasattr(item, "to_dict") for item in strategy)


def _shown(strategy: Any) -> str:
    return "(" + "; ".join(str(read(item)) for item in strategy) + ")"


def cuts_of(call: Call, form: Form, strategy: Any, devices: int) -> Cuts:
    """Return the number of parts of each label. Raises Misfit."""
    if form.shared:
        raise Misfit("Layouts")
    spoken = form.spoken(call.shapes)
    strategy = _completed(strategy, spoken)
    _check_count(strategy, spoken)
    cuts: dict[str, int] = dict.fromkeys(form.order, 1)
    seen: set[str] = set()
    for position, ((axes, shape), part) in enumerate(zip(spoken, strategy)):
        for axis, (size, label, cut) in enumerate(zip(shape, axes, part)):
            where = f"axis {axis} of input {position}"
            _check_number(cut, size, where, devices)
            if label == UNCUT:
                if cut > 1:
                    raise Misfit(f"1 at {where}, which can't be cut")
            elif label == ANY:
                continue
            elif label in seen and cuts[label] != cut:
                raise Misfit(f"{cuts[label]} at {where}, as where the same axis stands before, got {cut}")
            else:
                cuts[label] = cut
                seen.add(label)
    for label, reason in form.uncut.items():
        if cuts.get(label, 1) > 1:
            raise Misfit(f"an uncut axis, got {cuts[label]}: {reason}")
    unfit = form.check(cuts, devices) if form.check else None
    if unfit:
        raise Misfit(unfit)
    needed = prod(cuts[label] for label in form.order)
    if devices % needed:
        raise Misfit(f"a number of devices that {needed}, the product of its cuts, divides")
    return cuts


def _completed(strategy: Any, spoken: Spoken) -> Any:
    """Return the strategy with the omitted trailing tuples of ones: those of inputs that cannot be split."""
    if not isinstance(strategy, (tuple, list)) or any(label != UNCUT for axes, _ in spoken[len(strategy):] for label in axes):
        return strategy
    return (*strategy, *((1,) * len(axes) for axes, _ in spoken[len(strategy):]))


def _check_count(strategy: Any, spoken: Spoken) -> None:
    if not isinstance(strategy, (tuple, list)) or not all(isinstance(part, (tuple, list)) for part in strategy):
        raise Misfit("a tuple of tuples")
    if len(strategy) != len(spoken):
        raise Misfit(f"{len(spoken)} tuples, one for each input, got {len(strategy)}")
    for position, (part, (_, shape)) in enumerate(zip(strategy, spoken)):
        if len(part) != len(shape):
            raise Misfit(f"{len(shape)} numbers for input {position}, got {len(part)}")


def _check_number(cut: Any, size: int, where: str, devices: int) -> None:
    if isinstance(cut, bool) or not isinstance(cut, int) or cut < 1:
        raise Misfit(f"a whole number from 1 on at {where}, got {cut!r}")
    if devices & (devices - 1) == 0 and cut & (cut - 1):
        raise Misfit(f"a power of 2 at {where}, as the number of devices is one, got {cut}")
    if size % cut:
        raise Misfit(f"a number that divides {size} at {where}, got {cut}")


def nearest(call: Call, forms: tuple[Form, ...], strategy: Any, devices: int) -> Strategy | None:
    """Return the fitting strategy that differs from this one in the fewest numbers; None if it differs in too many."""
    fits = [fit for form in forms if (fit := _nearest(call, form, strategy, devices))]
    return min(fits, key=lambda candidate: candidate[0][0])[1] if fits else None


def _nearest(call: Call, form: Form, strategy: Any, devices: int) -> tuple[tuple[int, int], Strategy] | None:
    spoken = form.spoken(call.shapes)
    axes = [labels_of_input for labels_of_input, _ in spoken]
    strategy = _completed(strategy, spoken)
    try:
        _check_count(strategy, spoken)
    except Misfit:
        return None
    allowed_cuts = {label: {1} for label in form.order}
    for labels, part in zip(axes, strategy):
        for label, cut in zip(labels, part):
            if label in allowed_cuts and isinstance(cut, int) and cut > 1:
                allowed_cuts[label] |= {below for below in (cut, cut // 2, cut // 4) if below >= 1} | {1}
    if prod(map(len, allowed_cuts.values())) > _MOST_TRIED:
        return None
    best: tuple[tuple[int, int], Strategy] | None = None
    for numbers in itertools.product(*allowed_cuts.values()):
        cuts = dict(zip(allowed_cuts, numbers))
        tried = tuple(tuple(cuts.get(label, 1) for label in labels) for labels in axes)
        try:
            cuts_of(call, form, tried, devices)
        except Misfit:
            continue
        changed = sum(ours != theirs for mine, yours in zip(tried, strategy) for ours, theirs in zip(mine, yours))
        rank = (changed, -prod(numbers))
        if best is None or rank < best[0]:
            best = (rank, tried)
    return best


def _scattered(call: Call, form: Form, cuts: Cuts, axis_positions: dict[str, int], usual: TensorLayout, out_strategy: Any) -> TensorLayout:
    """Return the layout of the output that an out_strategy of numbers requests. Raises Misfit for any but the usual or a scattered one."""
    requested_cuts = tuple(out_strategy[0]) if len(out_strategy) == 1 and isinstance(out_strategy[0], (tuple, list)) else None
    if form.is_chosen_by_output and not is_of_layouts(out_strategy):
        if requested_cuts != usual.cuts():
            raise Misfit(f"{_OUTPUT}({usual.cuts()},)")
        return usual
    if form.scatters is None:
        raise Misfit("no out_strategy: a sum alone has two layouts")
    if is_of_layouts(out_strategy):
        raise Misfit("numbers in out_strategy, as in_strategy has them")
    tensor_map = list(usual.tensor_map)
    both = tuple(axis_positions[label] for label in (_row(form), form.scatters) if label != UNCUT and cuts[label] > 1)
    tensor_map[form.outputs[0].index(_row(form))] = both[0] if len(both) == 1 else both or -1
    requested = TensorLayout(usual.device_matrix, tuple(tensor_map))
    fits = _unfit_rows(call, form, requested) is None
    choices = {usual.cuts(): usual, requested.cuts(): requested} if fits else {usual.cuts(): usual}
    if requested_cuts not in choices:
        raise Misfit(f"{_OUTPUT}{' or '.join(f'({choice},)' for choice in choices)}")
    return choices[requested_cuts]


def _row(form: Form) -> str:
    """Return the label of the output's axis along which a sum may be scattered."""
    return form.outputs[0][-2] if len(form.outputs[0]) > 1 else form.outputs[0][0]


def _unfit_rows(call: Call, form: Form, out: TensorLayout) -> str | None:
    """Return what is expected of an output layout that scatters a sum along its rows; None if the rows divide."""
    label, axis = _row(form), form.outputs[0].index(_row(form))
    sizes = [
        shape[position] for shape, axes in zip(call.shapes, form.inputs) for position, label_at in enumerate(axes) if label_at == label
    ]
    cut = out.cuts()[axis]
    return None if not sizes or sizes[0] % cut == 0 else f"rows of the output that divide by {cut}, got {sizes[0]}"


def by_layouts(call: Call, form: Form, layouts_given: tuple[TensorLayout, ...], out_strategy: Any, devices: int) -> Fit:
    """Return the layouts of a strategy of Layouts. Raises Misfit."""
    matrix = layouts_given[0].device_matrix
    numbers = [
        replicated_layout(len(axes), 1).tensor_map for axes in form.inputs[len(layouts_given) :] if all(label == UNCUT for label in axes)
    ]
    if len(layouts_given) + len(numbers) == len(call.shapes):          # trailing inputs that cannot be split may be omitted
        layouts_given = (*layouts_given, *(TensorLayout(matrix, map_numbers) for map_numbers in numbers))
    if len(layouts_given) != len(call.shapes):
        raise Misfit(f"{len(call.shapes)} Layouts, one for each input, got {len(layouts_given)}")
    if any(layout.device_matrix != matrix for layout in layouts_given) or prod(matrix) != devices:
        raise Misfit(f"Layouts with one device_matrix of {devices} devices")
    on_grid = grid_product(call, layouts_given) if call.name in ("MatMul", "BatchMatMul") and out_strategy is None else None
    if on_grid is not None:
        for position, (shape, layout) in enumerate(zip(call.shapes, layouts_given)):
            _check_layout(layout, shape, position)
        return Fit(matrix, on_grid[0], (on_grid[1],))
    axes: dict[str, tuple[int, ...]] = {}
    for position, (shape, layout) in enumerate(zip(call.shapes, layouts_given)):
        _check_layout(layout, shape, position)
        for axis, label in enumerate(form.inputs[position]):
            here = tuple(device_axis for device_axis in layout.axes(axis) if matrix[device_axis] > 1 and label != ANY)
            if label == UNCUT and here:
                raise Misfit(f"'None' at axis {axis} of input {position}, which can't be cut")
            if axes.setdefault(label, here) != here:
                raise Misfit(f"the same names at axis {axis} of input {position} as where that axis stands before")
    _check_axes(form, axes, matrix)
    def placed(label: str) -> MapEntry:
        return _map((axis for part in form.joined.get(label, (label,)) for axis in axes.get(part, ())), len(matrix))

    laid = [tuple(map(placed, part)) for part in (*form.inputs, *form.outputs)]
    tensor_maps = [TensorLayout(matrix, tensor_map) for tensor_map in laid]
    outputs = tensor_maps[len(form.inputs):]
    if out_strategy is not None:
        outputs[0] = _requested_layout(call, form, axes, outputs[0], out_strategy)
    return Fit(matrix, tuple(tensor_maps[:len(form.inputs)]), tuple(outputs))


def _check_layout(layout: TensorLayout, shape: tuple[int, ...], position: int) -> None:
    if len(layout.tensor_map) != len(shape):
        raise Misfit(f"a Layout of {len(shape)} axes for input {position}, got {len(layout.tensor_map)}")
    for axis, (size, cut) in enumerate(zip(shape, layout.cuts())):
        if size % cut:
            raise Misfit(f"names of a number of devices that divides {size} at axis {axis} of input {position}, got {cut}")


def _check_axes(form: Form, axes: dict[str, tuple[int, ...]], matrix: tuple[int, ...]) -> None:
    used = [axis for label, label_axes in axes.items() if label != UNCUT and label not in form.shared for axis in label_axes]
    if len(used) != len(set(used)):
        raise Misfit("each name for one axis of the operator alone")
    for label, reason in form.uncut.items():
        if prod(matrix[axis] for axis in axes.get(label, ())) > 1:
            raise Misfit(f"'None' at an axis that must not be cut: {reason}")
    cuts = {label: prod(matrix[axis] for axis in axes.get(label, ())) for label in (*form.order, *form.shared)}
    unfit = form.check(cuts, prod(matrix)) if form.check else None
    if unfit:
        raise Misfit(unfit)


def _map(axes: Iterable[int], rank: int) -> int | tuple[int, ...]:
    map_entry = tuple(rank - 1 - axis for axis in axes)
    return map_entry[0] if len(map_entry) == 1 else map_entry or -1


def _cuts_repeats(form: Form, usual: TensorLayout, requested: TensorLayout) -> bool:
    """Return whether a Layout of the result differs from the usual one only in axes that the operator repeats, and divides the repeats."""
    written = form.written or ()
    if requested.device_matrix != usual.device_matrix or len(requested.tensor_map) != len(usual.tensor_map) or not written:
        return False
    of_inputs = {label for labels in form.inputs for label in labels}
    labels, sizes = written[0]
    if tuple(form.outputs[0]) != tuple(labels):
        return False
    return all(
        before == now or (label not in of_inputs and size % cut == 0)
        for label, size, before, now, cut in zip(labels, sizes, usual.tensor_map, requested.tensor_map, requested.cuts())
    )


def _requested_layout(call: Call, form: Form, axes: dict[str, tuple[int, ...]], usual: TensorLayout, out_strategy: Any) -> TensorLayout:
    requested = read(out_strategy[0] if isinstance(out_strategy, (tuple, list)) else out_strategy)
    if requested == usual or (form.written is not None and _cuts_repeats(form, usual, requested)):
        return requested
    if form.scatters is not None:
        tensor_map = list(usual.tensor_map)
        first = form.outputs[0].index(_row(form))
        tensor_map[first] = _map((*axes.get(_row(form), ()), *axes.get(form.scatters, ())), len(usual.device_matrix))
        if requested == TensorLayout(usual.device_matrix, tuple(tensor_map)):
            unfit = _unfit_rows(call, form, requested)
            if unfit:
                raise Misfit(unfit)
            return requested
    raise Misfit(f"{usual} for the output, or its sum scattered along its rows, got {requested}")
