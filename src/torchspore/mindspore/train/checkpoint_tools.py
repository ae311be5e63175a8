"""The operations of `torchspore ckpt`: read any kind of file, describe and compare its parameters, convert names to and from torch's."""
from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from torchspore.base import bfloat16, checkpoint_file, files
from torchspore.base.checkpoint_file import TEXT, Entry
from torchspore.base.text import message, short
from torchspore.export import safetensors_files
from torchspore.export.safetensors_files import Stored
from torchspore.mindspore.train import sharded_conversion, sharded_files, torch_layers, torch_names
from torchspore.mindspore.train.torch_names import Converted, Plan
from torchspore.translations import translatable, translate

_KINDS = {".ckpt": "ckpt", ".safetensors": "safetensors", ".dcp": "dcp", ".pt": "torch", ".pth": "torch", ".bin": "torch"}


class Difference(NamedTuple):
    """A difference of two files: the parameter, the property, and its value in each file."""

    name: str
    what: str
    first: str
    second: str


FITS, NONE = translatable("fits"), translatable("none")
"""The states of a checksum."""


def read(name: str) -> tuple[list[Entry], str]:
    """Read the parameters of a file of any kind, and the state of its checksum.

    Raises ValueError if the file does not exist or its suffix is unknown, FileFormatError for a damaged one.
    """
    path, kind = Path(name).expanduser(), _kind(name, _KINDS)
    if not (path.is_dir() if kind == "dcp" else path.is_file()):
        expected = translate("a folder that exists: {path}") if kind == "dcp" else translate("a file that exists: {path}")
        raise ValueError(message(name, expected.format(path=path.absolute())))
    if kind == "dcp":
        return list(sharded_files.entries(path)), FITS
    if kind == "ckpt":
        entries, is_checked = checkpoint_file.read(path)
        return entries, FITS if is_checked else NONE
    stored = safetensors_files.read(path) if kind == "safetensors" else safetensors_files.read_torch(path)
    return [Entry(*item) for item in stored], NONE


def describe(entry: Entry) -> dict[str, Any]:
    """Describe a parameter: name, type, shape, number of values, bytes; for numbers also mean, minimum, maximum, and whether finite."""
    description = {"name": entry.name, "type": entry.type_name, "shape": list(entry.shape), "mean": None, "smallest": None, "largest": None}
    if entry.type_name == TEXT:
        return {**description, "values": 1, "bytes": len(entry.values.encode("utf-32-le")), "finite": True}
    description |= {"values": int(entry.values.size), "bytes": int(entry.values.nbytes), "finite": True}
    values = _wide(entry)
    if values.size and values.dtype.kind in "fiu":
        description["finite"] = bool(np.isfinite(values).all())
        description["mean"] = float(values.mean(dtype=np.float64))
        description |= {"smallest": values.min().item(), "largest": values.max().item()}
    return description


def _wide(entry: Entry) -> np.ndarray:
    """Return the values as numbers: bfloat16 as float32, bools as uint8."""
    if entry.type_name == "BFloat16":
        return bfloat16.to_float32(entry.values)
    values: np.ndarray = entry.values
    return values.astype(np.uint8) if values.dtype.kind == "b" else values


def differences(first: str, second: str, rtol: float = 0.0, atol: float = 0.0) -> tuple[list[Difference], int]:
    """Return the differences of two files, in the order of the first, and the number of equal parameters.

    Values differ where |a - b| > atol + rtol * |b|; NaN equals NaN.
    """
    first_entries, second_entries = ({entry.name: entry for entry in read(name)[0]} for name in (first, second))
    names = [*first_entries, *(name for name in second_entries if name not in first_entries)]
    compared = [_difference(name, first_entries.get(name), second_entries.get(name), rtol, atol) for name in names]
    return [item for item in compared if item is not None], compared.count(None)


def _difference(name: str, first: Entry | None, second: Entry | None, rtol: float, atol: float) -> Difference | None:
    if first is None or second is None:
        both = (f"{entry.type_name} {list(entry.shape)}" if entry else "-" for entry in (first, second))
        return Difference(name, translatable("only in one"), *both)
    if first.type_name != second.type_name:
        return Difference(name, translatable("type"), first.type_name, second.type_name)
    if first.type_name == TEXT:
        return None if first.values == second.values else Difference(name, translatable("text"), short(first.values), short(second.values))
    if first.shape != second.shape:
        return Difference(name, translatable("shape"), str(list(first.shape)), str(list(second.shape)))
    kind = np.complex128 if first.values.dtype.kind == "c" else np.float64
    first_values, second_values = _wide(first).astype(kind).ravel(), _wide(second).astype(kind).ravel()
    unlike = ~np.isclose(first_values, second_values, rtol, atol, equal_nan=True)
    if not rtol and not atol and first.values.dtype.kind in "iu" and first.type_name != "BFloat16":
        unlike = (first.values != second.values).ravel()                        # float64 can't represent integers beyond 2**53
    if not unlike.any():
        return None
    with np.errstate(invalid="ignore"):
        largest_at = int(np.argmax(np.where(unlike, np.nan_to_num(np.abs(first_values - second_values), nan=np.inf), -1.0)))
    at = [int(n) for n in np.unravel_index(largest_at, first.shape)] if first.shape else []
    summary = translate("{count:,} of {total:,} values, most at {index}").format(count=int(unlike.sum()), total=first_values.size, index=at)
    return Difference(name, summary, f"{first_values[largest_at]:.9g}", f"{second_values[largest_at]:.9g}")


def to_torch(
    source: str, output: str, keep_names: bool = False, cell: str | None = None, conv: str | None = None,
) -> tuple[list[str], list[str]]:
    """Write a checkpoint as torch's state_dict, with torch's names and shapes. Return the names without a counterpart, and notes.

    `cell` is `MODULE:FACTORY`, which returns the Cell of the checkpoint. `conv` is '1d' or '2d', for weights that fit both.
    Raises ValueError, and writes nothing, if a parameter cannot be converted.
    """
    check_output(output, is_torch=True)
    entries, _ = read(source)
    tensors = [entry for entry in entries if entry.type_name != TEXT]
    shapes = {entry.name: entry.shape for entry in tensors}
    if keep_names:
        converted = Plan({name: Converted(name, shape) for name, shape in shapes.items()}, [], [])
    elif cell is not None:
        converted = _by_cell(shapes, cell, source)
    else:
        converted = torch_names.to_torch(shapes, conv)
    write(output, _converted(tensors, converted))
    return [entry.name for entry in entries if entry.name not in converted.parameters], converted.notes


def _by_cell(shapes: dict[str, tuple[int, ...]], cell: str, source: str) -> Plan:
    """Return a Cell's plan for the parameters of a file. Raises ValueError if the file lacks parameters of the Cell."""
    net = torch_layers.cell_of(cell)
    plan = torch_layers.plan(net)
    originals = {parameter.name: tuple(parameter.shape) for parameter in net.get_parameters()}
    wrong = [name for name in plan.parameters if shapes.get(name) != originals[name]]
    if wrong:
        name = wrong[0]
        text = translate("{source}: {name!r} is of shape {shape}") if name in shapes else translate("{source}: {name!r} is missing")
        subject = text.format(source=source, name=name, shape=list(shapes.get(name, ())))
        subject += translate(", and {count} more").format(count=len(wrong) - 1) if len(wrong) > 1 else ""
        expected = translate("the shape {shape}, as in --cell {cell}").format(shape=list(originals[name]), cell=cell)
        raise ValueError(message(subject, expected))
    state = set(torch_names.to_torch(shapes, "2d").omitted)
    extra = [name for name in shapes if name not in plan.parameters and name not in plan.omitted and name not in state]
    if extra:
        expected = translate("parameters of --cell {cell}, which has no such names").format(cell=cell)
        raise ValueError(message(f"{source}: {', '.join(map(repr, extra[:5]))}", expected))
    return plan


def _converted(entries: list[Entry], plan: Plan) -> list[Entry]:
    """Return the entries of a plan under their new names, in their new shapes."""
    return [
        entry._replace(name=converted.name, shape=converted.shape, values=entry.values.reshape(converted.shape))
        for entry in entries if (converted := plan.parameters.get(entry.name)) is not None
    ]


def from_torch(
    source: str, output: str, keep_names: bool = False, like: str | None = None, cell: str | None = None, conv: str | None = None,
) -> tuple[list[str], list[str]]:
    """Write torch's state_dict as a checkpoint with MindSpore's names and shapes. Return the names without a counterpart, and notes.

    `like` is a checkpoint of the same net, `cell` is `MODULE:FACTORY`, which returns the net; without both, names and shapes decide.
    """
    check_output(output, is_torch=False)
    entries, _ = read(source)
    shapes = {entry.name: entry.shape for entry in entries}
    if keep_names:
        plan = Plan({name: Converted(name, shape) for name, shape in shapes.items()}, [], [])
    elif cell is not None:
        net = torch_layers.cell_of(cell)
        net_plan = torch_layers.plan(net)
        plan = torch_names.like(shapes, net_plan.parameters, {parameter.name: tuple(parameter.shape) for parameter in net.get_parameters()})
        plan.notes.extend(net_plan.notes)
    elif like is not None:
        originals = {entry.name: entry.shape for entry in read(like)[0] if entry.type_name != TEXT}
        plan = torch_names.like(shapes, _counterparts(shapes, originals, conv), originals)
    else:
        plan = torch_names.to_mindspore(shapes, conv)
    write(output, _converted(entries, plan))
    return [name for name in shapes if name not in plan.parameters], plan.notes


def _counterparts(shapes: dict[str, tuple[int, ...]], originals: dict[str, tuple[int, ...]], conv: str | None) -> dict[str, Converted]:
    """Return torch's names and shapes for `originals`; torch's file identifies the weights of a Conv1d by their three axes."""
    converted = torch_names.to_torch(originals, "2d" if conv is None else conv).parameters
    for name, counterpart in converted.items():
        shape = originals[name]
        if conv is None and len(shape) == 4 and shape[2] == 1 and shapes.get(counterpart.name) == (*shape[:2], shape[3]):
            converted[name] = counterpart._replace(shape=shapes[counterpart.name])
    return converted


def check_output(name: str, is_torch: bool) -> None:
    """Raises ValueError if `name` is not a file of torch or MindSpore, or its folder does not exist."""
    folder = Path(name).expanduser().absolute().parent
    if not folder.is_dir():
        raise ValueError(message(name, translate("a folder that exists: {path}").format(path=folder)))
    check_is_no_other(name)
    _kind(name, [end for end, kind in _KINDS.items() if (kind not in ("ckpt", "dcp") if is_torch else kind != "torch")])


def check_is_no_other(name: str) -> None:
    """Raises ValueError if a name that is to be written is that of a folder, a pipe or a device."""
    path = Path(name).expanduser().absolute()
    is_folder = path.suffix == ".dcp"
    if path.exists() and not (path.is_dir() if is_folder else path.is_file()):
        expected = translate("a folder, which {path} is not") if is_folder else translate("a plain file, which {path} is not")
        raise ValueError(message(name, expected.format(path=path)))


def is_known(name: str) -> bool:
    """Return whether the name is that of a file of weights."""
    return Path(name).suffix in _KINDS


def _kind(name: str, ends: Iterable[str]) -> str:
    end = Path(name).suffix
    if end not in ends:
        raise ValueError(message(name, translate("a file name that ends with {suffixes}").format(suffixes=", ".join(ends))))
    return _KINDS[end]


def write(output: str, entries: list[Entry]) -> None:
    """Write tensors into a file of the kind that its name has, completely or not at all."""
    path, kind = Path(output).expanduser().absolute(), _kind(output, _KINDS)
    if kind == "ckpt":
        checkpoint_file.write(path, iter(entries))
        return
    if kind == "dcp":
        sharded_conversion.write_folder(path, entries)
        return
    write = safetensors_files.write if kind == "safetensors" else safetensors_files.write_torch
    with files.atomic_file(path, durable=True) as file:
        write(file.name, [Stored(*entry) for entry in entries])
