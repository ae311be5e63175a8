"""What `torchspore ckpt` does with files: reads any kind, describes and compares what they hold, and renames it for torch and back."""
from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from torchspore.base import files
from torchspore.base.text import message, short
from torchspore.mindspore.train import checkpoint_file, torch_layers, torch_names
from torchspore.mindspore.train.checkpoint_file import TEXT, Entry
from torchspore.mindspore.train.torch_names import Converted, Plan
from torchspore.observe import tensor_files
from torchspore.observe.tensor_files import Stored

_KINDS = {".ckpt": "ckpt", ".safetensors": "safetensors", ".pt": "torch", ".pth": "torch", ".bin": "torch"}


class Difference(NamedTuple):
    """Where two files differ: the parameter, in what, and what stands in each."""

    name: str
    what: str
    first: str
    second: str


def read(name: str) -> tuple[list[Entry], str]:
    """The parameters of a file of any kind, and what is known of its checksum.

    Raises ValueError where there is no such file or its name has no known end, FileFormatError for one that is damaged.
    """
    path, kind = Path(name).expanduser(), _kind(name, _KINDS)
    if not path.is_file():
        raise ValueError(message(name, f"a file that exists: {path.absolute()}"))
    if kind == "ckpt":
        entries, is_checked = checkpoint_file.read(path)
        return entries, "fits" if is_checked else "none"
    stored = tensor_files.read(path) if kind == "safetensors" else tensor_files.read_torch(path)
    return [Entry(*one) for one in stored], "none"


def describe(entry: Entry) -> dict[str, Any]:
    """What is shown of a parameter: name, type, shape, number of values, bytes; of numbers mean, smallest, largest and whether finite."""
    about = {"name": entry.name, "type": entry.type_name, "shape": list(entry.shape), "mean": None, "smallest": None, "largest": None}
    if entry.type_name == TEXT:
        return {**about, "values": 1, "bytes": len(entry.values.encode("utf-32-le")), "finite": True}
    about |= {"values": int(entry.values.size), "bytes": int(entry.values.nbytes), "finite": True}
    values = _wide(entry)
    if values.size and values.dtype.kind in "fiu":
        about["finite"] = bool(np.isfinite(values).all())
        about["mean"] = float(values.mean(dtype=np.float64))
        about |= {"smallest": values.min().item(), "largest": values.max().item()}
    return about


def _wide(entry: Entry) -> np.ndarray:
    """The values as numbers: bfloat16 as float32, bools as uint8."""
    if entry.type_name == "BFloat16":
        wide: np.ndarray = (entry.values.astype(np.uint32) << 16).view(np.float32)
        return wide
    values: np.ndarray = entry.values
    return values.astype(np.uint8) if values.dtype.kind == "b" else values


def differences(first: str, second: str, rtol: float = 0.0, atol: float = 0.0) -> tuple[list[Difference], int]:
    """Where two files differ, in the order of the first, and how many parameters are equal.

    Values differ where |a - b| > atol + rtol * |b|; NaN equals NaN.
    """
    one, other = ({entry.name: entry for entry in read(name)[0]} for name in (first, second))
    told = [_difference(name, one.get(name), other.get(name), rtol, atol) for name in [*one, *(name for name in other if name not in one)]]
    return [item for item in told if item is not None], told.count(None)


def _difference(name: str, one: Entry | None, other: Entry | None, rtol: float, atol: float) -> Difference | None:
    if one is None or other is None:
        return Difference(name, "only in one", *(f"{entry.type_name} {list(entry.shape)}" if entry else "-" for entry in (one, other)))
    if one.type_name != other.type_name:
        return Difference(name, "type", one.type_name, other.type_name)
    if one.type_name == TEXT:
        return None if one.values == other.values else Difference(name, "text", short(one.values), short(other.values))
    if one.shape != other.shape:
        return Difference(name, "shape", str(list(one.shape)), str(list(other.shape)))
    left, right = (_wide(entry).astype(np.complex128 if entry.values.dtype.kind == "c" else np.float64).ravel() for entry in (one, other))
    unlike = ~np.isclose(left, right, rtol, atol, equal_nan=True)
    if not rtol and not atol and one.values.dtype.kind in "iu" and one.type_name != "BFloat16":
        unlike = (one.values != other.values).ravel()                        # whole numbers beyond 2**53 are no float64
    if not unlike.any():
        return None
    with np.errstate(invalid="ignore"):
        most = int(np.argmax(np.where(unlike, np.nan_to_num(np.abs(left - right), nan=np.inf), -1.0)))
    at = [int(n) for n in np.unravel_index(most, one.shape)] if one.shape else []
    return Difference(name, f"{int(unlike.sum()):,} of {left.size:,} values, most at {at}", f"{left[most]:.9g}", f"{right[most]:.9g}")


def to_torch(
    source: str, output: str, keep_names: bool = False, cell: str | None = None, conv: str | None = None,
) -> tuple[list[str], list[str]]:
    """Write a checkpoint as torch's state_dict, with torch's names and shapes. Return the names without a counterpart, and notes.

    `cell` is `MODULE:FACTORY`, which makes the Cell of the checkpoint. `conv` is '1d' or '2d', for weights that fit both.
    Raises ValueError, and writes nothing, where a parameter cannot be converted.
    """
    kind = _output(output, [end for end in _KINDS if end != ".ckpt"])
    entries, _ = read(source)
    tensors = [entry for entry in entries if entry.type_name != TEXT]
    shapes = {entry.name: entry.shape for entry in tensors}
    if keep_names:
        converted = Plan({name: Converted(name, shape) for name, shape in shapes.items()}, [], [])
    elif cell is not None:
        converted = _by_cell(shapes, cell, source)
    else:
        converted = torch_names.to_torch(shapes, conv)
    _write(output, kind, _converted(tensors, converted))
    return [entry.name for entry in entries if entry.name not in converted.parameters], converted.notes


def _by_cell(shapes: dict[str, tuple[int, ...]], cell: str, source: str) -> Plan:
    """The plan that a Cell gives for the parameters of a file. Raises ValueError where the file lacks parameters of the Cell."""
    net = torch_layers.cell_of(cell)
    plan = torch_layers.plan(net)
    originals = {parameter.name: tuple(parameter.shape) for parameter in net.get_parameters()}
    wrong = [name for name in plan.parameters if shapes.get(name) != originals[name]]
    if wrong:
        name = wrong[0]
        shape = f"of shape {list(shapes[name])}" if name in shapes else "missing"
        more = f", and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        raise ValueError(message(f"{source}: {name!r} is {shape}{more}", f"the shape {list(originals[name])}, as in --cell {cell}"))
    state = set(torch_names.to_torch(shapes, "2d").omitted)
    extra = [name for name in shapes if name not in plan.parameters and name not in plan.omitted and name not in state]
    if extra:
        raise ValueError(message(f"{source}: {', '.join(map(repr, extra[:5]))}", f"parameters of --cell {cell}, which has no such names"))
    return plan


def _converted(entries: list[Entry], plan: Plan) -> list[Entry]:
    """The entries of a plan under their new names, in their new shapes."""
    return [
        entry._replace(name=converted.name, shape=converted.shape, values=entry.values.reshape(converted.shape))
        for entry in entries if (converted := plan.parameters.get(entry.name)) is not None
    ]


def from_torch(
    source: str, output: str, keep_names: bool = False, like: str | None = None, cell: str | None = None, conv: str | None = None,
) -> tuple[list[str], list[str]]:
    """Write torch's state_dict as a checkpoint with MindSpore's names and shapes. Return the names without a counterpart, and notes.

    `like` is a checkpoint of the same net, `cell` is `MODULE:FACTORY`, which makes the net; without both, names and shapes decide.
    """
    kind = _output(output, [end for end in _KINDS if _KINDS[end] != "torch"])
    entries, _ = read(source)
    shapes = {entry.name: entry.shape for entry in entries}
    if keep_names:
        plan = Plan({name: Converted(name, shape) for name, shape in shapes.items()}, [], [])
    elif cell is not None:
        net = torch_layers.cell_of(cell)
        known = torch_layers.plan(net)
        plan = torch_names.like(shapes, known.parameters, {one.name: tuple(one.shape) for one in net.get_parameters()})
        plan.notes.extend(known.notes)
    elif like is not None:
        originals = {entry.name: entry.shape for entry in read(like)[0] if entry.type_name != TEXT}
        plan = torch_names.like(shapes, _counterparts(shapes, originals, conv), originals)
    else:
        plan = torch_names.to_mindspore(shapes, conv)
    _write(output, kind, _converted(entries, plan))
    return [name for name in shapes if name not in plan.parameters], plan.notes


def _counterparts(shapes: dict[str, tuple[int, ...]], originals: dict[str, tuple[int, ...]], conv: str | None) -> dict[str, Converted]:
    """Torch's names and shapes for `originals`; the file of torch decides which weights are a Conv1d's, by their three axes."""
    converted = torch_names.to_torch(originals, "2d" if conv is None else conv).parameters
    for name, counterpart in converted.items():
        shape = originals[name]
        if conv is None and len(shape) == 4 and shape[2] == 1 and shapes.get(counterpart.name) == (*shape[:2], shape[3]):
            converted[name] = counterpart._replace(shape=shapes[counterpart.name])
    return converted


def _output(name: str, ends: Iterable[str]) -> str:
    """The kind of a file to write. Raises ValueError for another end and for a folder that is not there."""
    folder = Path(name).expanduser().absolute().parent
    if not folder.is_dir():
        raise ValueError(message(name, f"a folder that exists: {folder}"))
    return _kind(name, ends)


def _kind(name: str, ends: Iterable[str]) -> str:
    end = Path(name).suffix
    if end not in ends:
        raise ValueError(message(name, f"a file name that ends with {', '.join(ends)}"))
    return _KINDS[end]


def _write(output: str, kind: str, entries: list[Entry]) -> None:
    path = Path(output).expanduser().absolute()
    if kind == "ckpt":
        checkpoint_file.write(path, iter(entries))
        return
    write = tensor_files.write if kind == "safetensors" else tensor_files.write_torch
    with files.atomic_file(path, durable=True) as file:
        write(file.name, [Stored(*entry) for entry in entries])
