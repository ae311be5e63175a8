"""Names and shapes of parameters in MindSpore and in torch, for `torchspore ckpt to-torch` and `from-torch`.

Source: the state_dict of torch.nn's modules, and `parameters_dict()` of the same layers of MindSpore 2.10. This file knows only the names
and shapes of a checkpoint; `torch_layers.py` knows the Cell and needs no guesses.
"""
from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from torchspore.base.text import message, with_hint
from torchspore.translations import translate

Shape = tuple[int, ...]
Shapes = Mapping[str, Shape]

_NORM = {"gamma": "weight", "beta": "bias"}
_STATISTICS = {"moving_mean": "running_mean", "moving_variance": "running_var"}
_ROOT_STATISTICS = {"mean": "running_mean", "variance": "running_var"}
"""A norm that is saved as the root Cell: MindSpore writes the names of its Parameters instead of the names of its attributes."""
_FEED_FORWARD = {"dense1": "linear1", "dense2": "linear2"}
_OPTIMIZER_STATE = frozenset({
    "moments", "moment", "moment1", "moment2", "accum", "accum_update", "stat", "linear", "mean_square", "mean_grad", "prev", "step_size",
    "adam_m", "adam_v", "lamb_m", "lamb_v", "ax_", "exp_avg", "exp_avg_sq", "exp_avg_sq_row", "exp_avg_sq_col", "vhat", "ada_max_m",
})
_PROGRESS = frozenset({
    "global_step", "learning_rate", "beta1_power", "beta2_power", "momentum", "epoch_num", "step_num", "epoch", "step", "scale_sense",
    "current_iterator_step", "last_overflow_iterator_step",
})
_ONLY_TORCH = "num_batches_tracked"
"""The name of torch's step count of a batch norm; MindSpore has no such count."""


class Converted(NamedTuple):
    """The name and shape of a parameter in the other framework."""

    name: str
    shape: Shape


class Plan(NamedTuple):
    """A plan for renaming and reshaping parameters.

    `parameters` maps names to their counterparts; `omitted` lists names without a counterpart; `notes` are sentences for the user.
    """

    parameters: dict[str, Converted]
    omitted: list[str]
    notes: list[str]


def to_torch(shapes: Shapes, conv: str | None = None) -> Plan:
    """Convert MindSpore's names and shapes to torch's.

    `conv` ('1d' or '2d') decides the meaning of weights of shape (out, in, 1, k). Raises ValueError if it is required but missing, and if
    two parameters would get one name.
    """
    omitted = [name for name in shapes if _is_training_state(name, shapes)]
    converted = {name: shape for name, shape in shapes.items() if name not in omitted}
    notes: list[str] = []
    sequences = _conv1d_weights(converted, conv, notes)
    is_volume = _has_volumes(converted)
    parameters = {}
    for name, shape in converted.items():
        shape = (*shape[:2], *shape[3:]) if name in sequences else shape
        parameters[name] = Converted(_torch_name(name, converted, is_volume), shape)
    statistics = [name for name in converted if parameters[name].name.rpartition(".")[2] == "running_mean"]
    if any(_last(name) in ("moving_mean", "mean") for name in statistics):
        text = translate("{names}: BatchNorm and InstanceNorm have the same names. The values are written for BatchNorm. "
                         "For InstanceNorm pass --cell")
        notes.append(text.format(names=_listed(statistics)))
    is_norm = any(_last(name) == "gamma" and parameters[name].name != name for name in converted)
    is_conv = any(len(shape) > 3 and _last(name) == "weight" for name, shape in converted.items())
    if is_norm or is_conv:
        notes.append(translate("a checkpoint has no settings. Compare pad_mode (MindSpore: 'same'), epsilon (LayerNorm: 1e-7) and "
                               "data_format with the torch module. --cell lists the settings that differ"))
    return Plan(_distinct(parameters), omitted, notes)


def to_mindspore(shapes: Shapes, conv: str | None = None) -> Plan:
    """Convert torch's names and shapes to MindSpore's, by names and shapes alone.

    A weight of one axis with a bias is a norm's `gamma`; without a bias it is a PReLU's, or a norm's if its name contains one. `conv='2d'`
    leaves weights of three axes unchanged. Raises ValueError if two parameters would get one name.
    """
    converted = {name: shape for name, shape in shapes.items() if _last(name) != _ONLY_TORCH}
    is_volume = _has_volumes(converted)
    parameters = {name: Converted(_mindspore_name(name, converted, is_volume), shape) for name, shape in converted.items()}
    notes: list[str] = []
    sequences = [name for name, shape in converted.items() if len(shape) == 3 and _last(name) == "weight" and conv != "2d"]
    for name in sequences:
        parameters[name] = parameters[name]._replace(shape=(*converted[name][:2], 1, *converted[name][2:]))
    if sequences:
        text = translate("written for Conv1d, with the axis of length 1 that MindSpore has: {names}. "
                         "For BiDense and mint.nn.Conv1d pass --cell, --like or --conv 2d")
        notes.append(text.format(names=_listed(sequences)))
    slopes = [name for name in converted if _last(parameters[name].name) in ("w", "a") and _last(name) == "weight"]
    if slopes:
        text = translate("written for PReLU: {names}. If these are weights of a norm, pass --cell or --like")
        notes.append(text.format(names=_listed(slopes)))
    tables = [name for name, shape in converted.items() if len(shape) == 2 and parameters[name].name == name
              and _last(name) == "weight" and _with_last(name, "bias") not in converted]
    if tables:
        text = translate("written for Dense layers without a bias: {names}. For Embedding pass --cell or --like")
        notes.append(text.format(names=_listed(tables)))
    return Plan(_distinct(parameters), [name for name in shapes if name not in converted], notes)


def like(shapes: Shapes, counterparts: Mapping[str, Converted], originals: Shapes) -> Plan:
    """Convert torch's names and shapes to those of `originals`, MindSpore's, whose torch names and shapes are `counterparts`.

    Raises ValueError, which names them, for entries without a counterpart of the same shape. Scalars, such as an epoch, need none.
    """
    by_torch_name = {converted.name: name for name, converted in counterparts.items()}
    converted = [name for name in shapes if _last(name) != _ONLY_TORCH and (shapes[name] or name in by_torch_name)]
    lost = [name for name in converted if name not in by_torch_name or counterparts[by_torch_name[name]].shape != shapes[name]]
    if lost:
        name = lost[0]
        counterpart = by_torch_name.get(name)
        expected = (f"the shape {list(counterparts[counterpart].shape)}, as {counterpart!r} has" if counterpart
                    else "a name that the other file has in MindSpore's spelling")
        more = f" ({len(lost)} such)" if len(lost) > 1 else ""
        raise ValueError(message(f"{name!r} of shape {list(shapes[name])}{more}", expected))
    absent = [name for torch_name, name in by_torch_name.items() if torch_name not in shapes]
    notes = [translate("the file of torch has no values for {names}").format(names=_listed(absent))] if absent else []
    parameters = {name: Converted(by_torch_name[name], originals[by_torch_name[name]]) for name in converted}
    return Plan(parameters, [name for name in shapes if name not in parameters], notes)


def _is_training_state(name: str, shapes: Shapes) -> bool:
    """Return whether a parameter is a value of the optimizer or of the progress of training, for which a torch Module has no name."""
    prefix, _, suffix = name.partition(".")
    is_state = prefix in _OPTIMIZER_STATE and shapes.get(suffix) == shapes[name]
    return is_state or (name in _PROGRESS and len(shapes) > 1 and (shapes[name] in ((), (1,)) or name == "learning_rate"))


def _conv1d_weights(shapes: Shapes, conv: str | None, notes: list[str]) -> set[str]:
    """Return the weights (out, in, 1, k) that belong to Conv1d or Conv1dTranspose.

    Raises ValueError if a file also has weights of two-dimensional kernels: both kinds of layers are possible then.
    """
    weights = {name: shape for name, shape in shapes.items() if len(shape) == 4 and _last(name) == "weight"}
    flat = [name for name, shape in weights.items() if shape[2] == 1]
    if not flat or conv == "2d":
        return set()
    if conv == "1d":
        return set(flat)
    long = [name for name in flat if weights[name][3] > 1]
    if len(flat) == len(weights) and long:
        text = translate("written for Conv1d: {names}. If these are Conv2d weights with a kernel of (1, k), pass --conv 2d or --cell")
        notes.append(text.format(names=_listed(flat)))
        return set(flat)
    if not long and len(flat) < len(weights):
        return set()                             # 1x1 kernels together with larger ones: Conv2d
    unclear = long or flat
    raise ValueError(with_hint(
        f"{_listed(unclear)}: a weight of shape {list(weights[unclear[0]])} is a Conv1d's or a Conv2d's; the file does not tell which.",
        "pass --cell MODULE:FACTORY, or --conv 1d or --conv 2d",
    ))


def _has_volumes(shapes: Shapes) -> bool:
    """Return whether the net has layers for volumes, so that `bn2d` is the inner layer of MindSpore's BatchNorm3d."""
    statistics = {name for name in shapes if _last(name) in _STATISTICS}
    only_inner = bool(statistics) and all(name.startswith("bn2d.") for name in shapes)
    return only_inner or any(len(shape) == 5 and _last(name) == "weight" for name, shape in shapes.items())


def _torch_name(name: str, shapes: Shapes, is_volume: bool) -> str:
    head, _, last = name.rpartition(".")
    if last in (*_NORM, *_STATISTICS, *_ROOT_STATISTICS) and _is_norm(head, shapes):
        inner, _, layer = head.rpartition(".")
        head = inner if layer == "bn2d" and is_volume else head
        renamed = {**_NORM, **_STATISTICS, **({} if head else _ROOT_STATISTICS)}
        return _joined(head, renamed.get(last, last))
    if last == "embedding_table" or _is_slope(name, shapes):
        return _joined(head, "weight")
    return _with_feed_forward(name, shapes, _FEED_FORWARD)


def _mindspore_name(name: str, shapes: Shapes, is_volume: bool) -> str:
    head, _, last = name.rpartition(".")
    has_statistics = _joined(head, "running_mean") in shapes
    inner = _joined(head, "bn2d") if has_statistics and is_volume else head
    statistics = _STATISTICS if inner else _ROOT_STATISTICS
    back = {torch_name: name_in_mindspore for name_in_mindspore, torch_name in statistics.items()}
    if last in back:
        return _joined(inner, back[last])
    shape = shapes.get(_joined(head, "weight"), ())
    if last in ("weight", "bias") and len(shape) == 1:
        has_bias = _joined(head, "bias") in shapes
        if has_bias or has_statistics or "norm" in head.lower() or head.rpartition(".")[2].startswith("ln"):
            return _joined(inner, "gamma" if last == "weight" else "beta")
        return _joined(head, "w") if head else "a"
    layer = head.rpartition(".")[2].lower()
    if last == "weight" and len(shape) == 2 and "embed" in layer and _joined(head, "bias") not in shapes:
        return _joined(head, "embedding_table")
    return _with_feed_forward(name, shapes, {torch_name: name_in_mindspore for name_in_mindspore, torch_name in _FEED_FORWARD.items()})


def _is_norm(head: str, shapes: Shapes) -> bool:
    """Return whether the parameters under `head` are a norm's gamma and beta of one shape. A lone `gamma` belongs to a custom layer."""
    gamma, beta = (shapes.get(_joined(head, last)) for last in ("gamma", "beta"))
    return gamma is not None and gamma == beta


def _is_slope(name: str, shapes: Shapes) -> bool:
    """Return whether this is the weight of a PReLU: `act.w` without other parameters of its layer, or `a` as the file's only parameter."""
    head, _, last = name.rpartition(".")
    if len(shapes[name]) != 1:
        return False
    if not head:
        return last == "a" and len(shapes) == 1
    return last == "w" and sum(other.startswith(f"{head}.") for other in shapes) == 1


def _with_feed_forward(name: str, shapes: Shapes, renamed: Mapping[str, str]) -> str:
    """Return the name with renamed feed-forward layers of a Transformer's layer: those next to a `self_attn`."""
    parts = name.split(".")
    if len(parts) < 2 or parts[-2] not in renamed:
        return name
    head = ".".join(parts[:-2])
    if _joined(head, "self_attn.out_proj.weight") not in shapes:
        return name
    return _joined(head, f"{renamed[parts[-2]]}.{parts[-1]}")


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _joined(head: str, last: str) -> str:
    return f"{head}.{last}" if head else last


def _with_last(name: str, last: str) -> str:
    return _joined(name.rpartition(".")[0], last)


def _listed(names: list[str]) -> str:
    """Return the first five names as text."""
    shown = ", ".join(repr(name) for name in names[:5])
    return shown if len(names) < 6 else f"{shown} and {len(names) - 5} more"


def _distinct(parameters: dict[str, Converted]) -> dict[str, Converted]:
    """Return the parameters unchanged, after checking that no two have one counterpart."""
    sources: dict[str, str] = {}
    for name, converted in parameters.items():
        other = converted.name
        if sources.setdefault(other, name) != name:
            raise ValueError(message(f"{sources[other]!r} and {name!r}", f"two parameters, where both are {other!r} in the other file"))
    return parameters
