"""Names of parameters in MindSpore and in torch: which of them are another word for the same values.

Source: the state_dict of torch.nn's modules, and `parameters_dict()` of the same layers of MindSpore 2.10.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping

from torchspore.base.text import message

_NORM = {"gamma": "weight", "beta": "bias", "moving_mean": "running_mean", "moving_variance": "running_var"}
_TO_TORCH = {**_NORM, "embedding_table": "weight"}
_BACK = {"running_mean": "moving_mean", "running_var": "moving_variance"}
_ONLY_TORCH = "num_batches_tracked"
"""How many steps a batch norm of torch has seen; MindSpore has no such count."""

Shapes = Mapping[str, tuple[int, ...]]


def to_torch(names: Iterable[str]) -> dict[str, str]:
    """The name in torch of each of MindSpore's. Raises ValueError where two of them would become one."""
    return _distinct({name: _with_last(name, _TO_TORCH.get(_last(name), _last(name))) for name in names})


def to_mindspore(shapes: Shapes) -> dict[str, str]:
    """The name in MindSpore of each of torch's, by shape: a weight of one axis is a norm's `gamma`, a bias beside it its `beta`.

    A weight of an embedding can't be told from a Dense layer's: `like` can. Raises ValueError where two of them would become one.
    """
    return _distinct({name: _guessed(name, shapes) for name in shapes if _last(name) != _ONLY_TORCH})


def like(shapes: Shapes, wanted: Shapes) -> dict[str, str]:
    """The name in `wanted`, MindSpore's, of each of torch's.

    Raises ValueError, which names them, for those that have no counterpart of the same shape. Single numbers, such as an epoch, need none.
    """
    counterparts = {torch_name: name for name, torch_name in to_torch(wanted).items()}
    own = [name for name in shapes if _last(name) != _ONLY_TORCH and (shapes[name] or name in counterparts)]
    lost = [name for name in own if counterparts.get(name) is None or wanted[counterparts[name]] != shapes[name]]
    if lost:
        name = lost[0]
        there = counterparts.get(name)
        expected = f"the shape {list(wanted[there])}, as {there!r} has" if there else "a name that the other file has in MindSpore's words"
        more = f" ({len(lost)} such)" if len(lost) > 1 else ""
        raise ValueError(message(f"{name!r} of shape {list(shapes[name])}{more}", expected))
    return {name: counterparts[name] for name in own}


def _guessed(name: str, shapes: Shapes) -> str:
    last = _last(name)
    if last in _BACK:
        return _with_last(name, _BACK[last])
    if last in ("weight", "bias") and len(shapes.get(_with_last(name, "weight"), ())) == 1:
        return _with_last(name, "gamma" if last == "weight" else "beta")
    return name


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _with_last(name: str, last: str) -> str:
    head, dot, _ = name.rpartition(".")
    return f"{head}{dot}{last}"


def _distinct(names: dict[str, str]) -> dict[str, str]:
    """The same names, once it is certain that no two have one counterpart."""
    sources: dict[str, str] = {}
    for name, other in names.items():
        if sources.setdefault(other, name) != name:
            raise ValueError(message(f"{sources[other]!r} and {name!r}", f"two parameters, where both are {other!r} in the other file"))
    return names


