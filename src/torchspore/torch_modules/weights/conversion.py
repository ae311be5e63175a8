"""`torchspore ckpt to-torch --like` and `from-torch --like`: weights move between a Cell's checkpoint and a given torch model."""
from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from torchspore.base.checkpoint_file import TEXT, Entry
from torchspore.base.text import message
from torchspore.engine.tensors.tensor import wrap
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.train import checkpoint_tools, torch_layers
from torchspore.torch_modules.weights import comparison, plans, presets, settings, sides, targets
from torchspore.torch_modules.weights.comparison import Comparison
from torchspore.torch_modules.weights.plans import Plan, Sides
from torchspore.torch_modules.weights.presets import Choices
from torchspore.torch_modules.weights.slots import Recipe, Shape, Slot, recipes
from torchspore.translations import translate


class Request(NamedTuple):
    """The options of a conversion with a target."""

    like: str
    config: str | None = None
    cell: str | None = None
    maps: Sequence[str] = ()
    is_partial: bool = False
    fused: str | None = None
    rotary: str = "half"
    matrices: str | None = None
    convention: str | None = None
    verifies: bool | None = None
    inputs: Sequence[str] = ()


class Report(NamedTuple):
    """The result of a conversion: names without a counterpart, notes, and the comparison of both models, if they ran."""

    omitted: list[str]
    notes: list[str]
    comparison: Comparison | None


class Opposite(NamedTuple):
    """The torch side: the model, or None for a file of torch, and its tensors."""

    model: torch.nn.Module | None
    slots: list[Slot]


def to_torch(source: str, output: str, request: Request) -> Report:
    """Write a checkpoint as the state_dict of the torch model or file that `request.like` names.

    Raises ValueError, and writes nothing, if a tensor has no certain counterpart.
    """
    checkpoint_tools.check_output(output, is_torch=True)
    entries, shapes = _read(source)
    cell = None if request.cell is None else torch_layers.cell_of(request.cell)
    mindspore = sides.of_checkpoint(shapes, _integers(entries)) if cell is None else sides.of_cell(cell)
    optimizer_state = [name for name in shapes if name not in {slot.name for slot in mindspore}]
    _check_shapes(source, mindspore, shapes, f"--cell {request.cell}")
    opposite = _opposite(request, cell is not None and request.verifies is not False)
    result, notes = _planned(Sides(mindspore, opposite.slots), request, True, opposite.model)
    written = _values(recipes(result.links, "torch"), entries)
    _check_ties(opposite.slots, written)
    notes += _settings(cell, opposite.model, result)
    compared = _compared(cell, opposite.model, entries, written, request, notes)
    checkpoint_tools.write(output, written)
    return Report([*optimizer_state, *(slot.name for slot in result.mindspore)], notes, compared)


def from_torch(source: str, output: str, request: Request) -> Report:
    """Write torch's state_dict as a checkpoint of the Cell, the checkpoint or the conventions that `request` names.

    Raises ValueError, and writes nothing, if a tensor has no certain counterpart.
    """
    checkpoint_tools.check_output(output, is_torch=False)
    entries, shapes = _read(source)
    cell = None if request.cell is None else torch_layers.cell_of(request.cell)
    has_names = is_checkpoint(request.like)                  # a checkpoint of the same net, whose names are taken
    opposite = Opposite(None, sides.of_torch_file(shapes)) if has_names else _opposite(
        request, cell is not None and request.verifies is not False)
    _check_ties(opposite.slots, list(entries.values()))
    slots = sides.in_file(opposite.slots, shapes)
    needed = [slot for slot in slots if not slot.is_buffer or slot.name in shapes]
    _check_shapes(source, needed, shapes, f"--like {request.like}")
    counts = {name for name in shapes if name.endswith("num_batches_tracked")}
    surplus = sorted(set(shapes) - counts - {name for slot in needed for name in (slot.name, *slot.aliases)})
    if surplus and not request.is_partial:
        raise ValueError(message(f"{source}: {', '.join(map(repr, surplus[:5]))}", f"tensors of --like {request.like}, or --partial"))
    choices = _choices(request, opposite.model)
    if cell is not None:
        mindspore = sides.of_cell(cell)
    elif has_names:
        like, like_shapes = _read(request.like)
        mindspore = sides.of_checkpoint(like_shapes, _integers(like))
    elif request.convention == "mindformers":
        mindspore = presets.mindspore_slots(needed, choices)
    else:
        mindspore = sides.names_by_layers(opposite.model, needed)
    result, notes = _planned(Sides(mindspore, needed), request, False, opposite.model)
    written = _values(recipes(result.links, "mindspore"), entries)
    notes += _settings(cell, opposite.model, result)
    compared = _compared(cell, opposite.model, {entry.name: entry for entry in written}, list(entries.values()), request, notes)
    checkpoint_tools.write(output, written)
    return Report([*sorted(counts), *surplus, *(slot.name for slot in result.torch)], notes, compared)


def is_checkpoint(like: str) -> bool:
    """Return whether `--like` names a file of weights and not a model."""
    return checkpoint_tools.is_known(like)


def _read(source: str) -> tuple[dict[str, Entry], dict[str, Shape]]:
    entries = {entry.name: entry for entry in checkpoint_tools.read(source)[0] if entry.type_name != TEXT}
    return entries, {name: tuple(entry.shape) for name, entry in entries.items()}


def _integers(entries: dict[str, Entry]) -> set[str]:
    """Return the names of tensors that nothing trains, such as indexes."""
    return {name for name, entry in entries.items() if "Float" not in entry.type_name}


def _check_shapes(source: str, slots: list[Slot], shapes: dict[str, Shape], what: str) -> None:
    """Raises ValueError if a file lacks tensors of a model, or has them in other shapes."""
    wrong = [slot for slot in slots if shapes.get(slot.name) != slot.shape]
    if wrong:
        slot = wrong[0]
        shape = f"of shape {list(shapes[slot.name])}" if slot.name in shapes else "missing"
        more = f", and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        raise ValueError(message(f"{source}: {slot.name!r} is {shape}{more}", f"the shape {list(slot.shape)}, as in {what}"))


def _opposite(request: Request, needs_values: bool) -> Opposite:
    if is_checkpoint(request.like):
        return Opposite(None, sides.of_torch_file(_read(request.like)[1]))
    model = targets.build(request.like, request.config, needs_values)
    return Opposite(model, sides.of_model(model))


def _choices(request: Request, model: torch.nn.Module | None) -> Choices:
    config = getattr(model, "config", None)
    heads: int | None = getattr(config, "num_attention_heads", None)
    keys: int | None = getattr(config, "num_key_value_heads", None) or heads
    return Choices(request.fused, request.rotary, None if heads is None or keys is None else (heads, keys))


def _planned(both: Sides, request: Request, is_to_torch: bool, model: torch.nn.Module | None) -> tuple[Plan, list[str]]:
    both = _with_ties_apart(both)
    result = plans.plan(both, plans.parse_maps(request.maps), is_to_torch, _choices(request, model), request.matrices)
    if not request.is_partial:
        plans.check_complete(result, is_to_torch)
    notes = [translate("the layouts are those of mindformers' {family}").format(family=result.family)] if result.family else []
    absent = [slot.name for slot in (result.torch if is_to_torch else result.mindspore)]
    if absent:
        names = f"{', '.join(absent[:5])}{' ..' if len(absent) > 5 else ''}"
        notes.append(translate("the output has no values for {names}").format(names=names))
    pairs = [(link.mindspore[0], link.torch[0]) for link in result.links if len(link.mindspore) == len(link.torch) == 1]
    renamed = sum(ours.path != theirs.name for ours, theirs in pairs)
    if renamed:
        text = translate("{count} of {total} names have no equal name on the other side; structure, shape and conventions pair them")
        notes.append(text.format(count=renamed, total=len(pairs)))
    return result, notes


def _with_ties_apart(both: Sides) -> Sides:
    """Return torch's tensors with several names as one for each name, where MindSpore's side has several too."""
    paths = {slot.path for slot in both.mindspore}
    separate: list[Slot] = []
    for slot in both.torch:
        names = [slot.name, *slot.aliases]
        equal = [name for name in names if name in paths]
        if len(equal) > 1:
            separate += [slot._replace(name=name, path=name, aliases=()) for name in names]
        elif equal:
            separate.append(slot._replace(path=equal[0]))
        else:
            separate.append(slot)
    return Sides(both.mindspore, separate)


def _values(planned: list[Recipe], entries: dict[str, Entry]) -> list[Entry]:
    return [entry for recipe in planned for entry in recipe.entries(entries)]


def _settings(cell: Cell | None, model: torch.nn.Module | None, result: Plan) -> list[str]:
    return [] if cell is None or model is None else settings.differences(cell, model, result.links)


def _compared(
    cell: Cell | None, model: torch.nn.Module | None, ours: dict[str, Entry], theirs: list[Entry], request: Request, notes: list[str],
) -> Comparison | None:
    """Load both sides and compare them. Raises ValueError if `--verify` requires it and a side is missing."""
    if cell is None or model is None:
        if request.verifies:
            raise ValueError(message("--verify", "--cell, and a model in --like, which both can run"))
        return None
    if request.verifies is False:
        return None
    _load_cell(cell, ours)
    model.load_state_dict({entry.name: _torch_tensor(entry) for entry in theirs}, strict=False)
    try:
        return comparison.compare(cell, model, list(request.inputs))
    except comparison.NoInput as error:
        if request.verifies:
            raise
        notes.append(translate("not verified: {reason}").format(reason=error))
        return None


def _load_cell(cell: Cell, entries: dict[str, Entry]) -> None:
    with torch.no_grad():
        for parameter in cell.get_parameters():
            if parameter.name in entries:
                parameter.set_data(wrap(_torch_tensor(entries[parameter.name])))


def _check_ties(slots: list[Slot], entries: list[Entry]) -> None:
    """Raises ValueError for tensors with different values that are one parameter of the torch model."""
    by_name = {entry.name: entry for entry in entries}
    for slot in slots:
        first, *others = [name for name in (slot.name, *slot.aliases) if name in by_name] or [""]
        for other in others:
            if not np.array_equal(by_name[first].values, by_name[other].values):
                raise ValueError(message(f"{first!r} and {other!r} have different values", "equal values: they are one parameter in torch"))


def _torch_tensor(entry: Entry) -> torch.Tensor:
    t = torch.from_numpy(np.array(entry.values)).reshape(entry.shape)
    return t.view(torch.bfloat16) if entry.type_name == "BFloat16" else t
