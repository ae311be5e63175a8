"""Argument checks of the dataset functions, and the limits that programs import from here.

A wrong Python type is a TypeError, a wrong value a ValueError, as in MindSpore 2.10. Messages end with MindSpore's sentence, which programs
and tests look for.
"""
from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np

from torchspore.base import arguments
from torchspore.base.text import list_choices, message, short, split_hint
from torchspore.context import effects

INT8_MIN, INT8_MAX = -128, 127
INT16_MIN, INT16_MAX = -(2**15), 2**15 - 1
INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
UINT8_MIN, UINT8_MAX = 0, 255
UINT16_MIN, UINT16_MAX = 0, 2**16 - 1
UINT32_MIN, UINT32_MAX = 0, 2**32 - 1
UINT64_MIN, UINT64_MAX = 0, 2**64 - 1
FLOAT_MIN_INTEGER, FLOAT_MAX_INTEGER = -16777216, 16777216
DOUBLE_MIN_INTEGER, DOUBLE_MAX_INTEGER = -9007199254740992, 9007199254740992
POS_INT_MIN = 1


def check_type(
    call: str, argument: str, value: Any, types: type | tuple[type, ...], expected: str, *, hint: str | None = None,
) -> None:
    """Raises TypeError unless `value` is one of `types`; a bool is not a number."""
    try:
        arguments.check_type(call, argument, value, types, expected, hint=hint)
    except TypeError as error:
        raise TypeError(with_sentence(str(error), type_sentence(argument, value, types))) from None


_INT_FIRST = frozenset((
    "ref_value", "amin", "top_db", "power", "freq_low", "freq_high", "mask_value", "momentum", "f_min", "f_max", "fixed_rate",
    "trigger_level", "trigger_time", "search_time", "allowed_gap", "pre_trigger_time", "boot_time", "noise_up_time", "noise_down_time",
    "noise_reduction_amount", "measure_freq", "measure_duration", "measure_smooth_time", "hp_filter_freq", "lp_filter_freq",
    "hp_lifter_freq", "lp_lifter_freq", "cutoff", "alpha",
))
"""Arguments for which MindSpore lists int before float."""
_TUPLE_FIRST = frozenset(("scale", "ratio"))
"""Arguments for which MindSpore lists tuple before list."""


def type_sentence(argument: str, value: Any, types: type | tuple[type, ...]) -> str:
    """Return MindSpore's sentence for a value of another type than `types`, in its order: a tuple for a bool among numbers, else a list."""
    accepted = types if isinstance(types, tuple) else (types,)
    if set(accepted) == {int, float}:
        accepted = (int, float) if argument.partition("[")[0] in _INT_FIRST else (float, int)
    if set(accepted) == {list, tuple} and argument in _TUPLE_FIRST:
        accepted = (tuple, list)
    shown = accepted if isinstance(value, bool) and {int, float} & set(accepted) else list(accepted)
    return f"Argument {argument} with value {value} is not of type {shown}, but got {type(value)}."


def check_bool(call: str, argument: str, value: Any) -> None:
    """Raises TypeError unless `value` is True or False."""
    check_type(call, argument, value, bool, "True or False")


def with_sentence(text: str, sentence: str) -> str:
    """Return a message with a sentence of MindSpore's before its hint."""
    head, _ = split_hint(text)
    return f"{head} {sentence}{text.removeprefix(head)}"


_UNNAMED: dict[str, tuple[str, ...]] = {
    "alpha": ("CutMixBatch", "MixUpBatch"), "batch_size": ("MixUp",), "bits": ("RandomPosterize",), "brightness": ("RandomColorAdjust",),
    "contrast": ("RandomColorAdjust",), "degrees": ("RandomColor", "RandomSharpness"), "gain": ("AdjustGamma",), "gamma": ("AdjustGamma",),
    "hue": ("RandomColorAdjust",), "length": ("CutOut",), "max_attempts": ("RandomErasing",), "num_patches": ("CutOut",),
    "ratio": ("RandomErasing",), "saturation": ("RandomColorAdjust",), "saturation_factor": ("AdjustSaturation",),
    "scale": ("RandomAffine", "RandomCropDecodeResize", "RandomErasing", "RandomResizedCrop", "RandomResizedCropWithBBox"),
    "sharpness_factor": ("AdjustSharpness",), "threshold": ("RandomSolarize",), "value": ("RandomErasing",),
    "size": (
        "CenterCrop", "Crop", "FiveCrop", "RandomCrop", "RandomCropDecodeResize", "RandomCropWithBBox", "RandomResize",
        "RandomResizeWithBBox", "RandomResizedCrop", "RandomResizedCropWithBBox", "Resize", "ResizeWithBBox", "ResizedCrop", "TenCrop",
    ),
}
"""Arguments that MindSpore's sentence about intervals does not name, by their transforms."""


def interval_error(text: str, argument: str, interval: str, call: str = "") -> ValueError:
    """Return the error for a value outside of an interval."""
    subject = "Input" if call in _UNNAMED.get(argument, ()) else f"Input {argument}"
    return ValueError(with_sentence(text, f"{subject} is not within the required interval of {interval}."))


def check_processes(call: str, python_multiprocessing: Any, max_rowsize: Any, workers: Any) -> None:
    """Checks the arguments about worker processes, and reports to `explain` where Python functions run.

    Raises TypeError for wrong types, ValueError for a size of rows below -1.
    """
    check_type(call, "python_multiprocessing", python_multiprocessing, bool, "True or False")
    if max_rowsize is not None:
        check_type(call, "max_rowsize", max_rowsize, (int, list), "an int or a list of them")
        for size in max_rowsize if isinstance(max_rowsize, list) else [max_rowsize]:
            check_type(call, "max_rowsize", size, int, "an int or a list of them")
            if size < -1:
                raise ValueError(message(f"{call}(max_rowsize={short(max_rowsize)})", "sizes in MB from -1 on"))
        if not python_multiprocessing or workers is None or workers < 2:
            effects.note("data", f"{call}(max_rowsize={max_rowsize}): no effect here, because no rows go to other processes")
    if python_multiprocessing and workers is not None and workers > 1:
        where = f"{workers} worker processes" if hasattr(os, "fork") else (
            "threads, because this system has no fork; in processes after ds.config.set_multiprocessing_start_method('spawn')")
        effects.note("data", f"{call}(python_multiprocessing=True): Python functions run in {where}")


def check_offload(offload: Any) -> None:
    """Checks `map`'s `offload`, and reports to `explain` where transforms run."""
    if offload is not None:
        check_type("map", "offload", offload, bool, "True, False or None")
        if offload:
            effects.note("data", "map(offload=True): transforms run on the host; the rows are the same")


def check_int(call: str, argument: str, value: Any, low: int, high: int = INT32_MAX, *, hint: str | None = None) -> None:
    """Raises TypeError unless `value` is an int, ValueError unless it is in [low, high]."""
    check_type(call, argument, value, int, "an int", hint=hint)
    try:
        arguments.check_int(call, argument, value, low, high, hint=hint)
    except ValueError as error:
        raise interval_error(str(error), argument, f"[{low}, {high}]", call) from None


def check_num_samples(call: str, value: Any) -> None:
    """Raises TypeError unless `num_samples` is an int, ValueError unless it is in [0, INT64_MAX]."""
    try:
        check_int(call, "num_samples", value, 0, INT64_MAX)
    except ValueError as error:
        sentence = f"num_samples exceeds the boundary between 0 and {INT64_MAX}(INT64_MAX)!"
        raise ValueError(with_sentence(str(error), sentence)) from None


def check_number(call: str, argument: str, value: Any, low: float, high: float, *, above: bool = False) -> None:
    """Raises TypeError unless `value` is a number, ValueError if it is outside of [low, high], or of (low, high] with `above`.

    NaN is outside of no interval, as in MindSpore.
    """
    check_type(call, argument, value, (int, float), "a number")
    if value < low or value > high or (above and value == low):
        low, high = _SHOWN_BOUNDS.get((argument, call), (low, high))
        if (low, high) == (0, 1) and (argument, call) in _FLOAT_BOUNDS:
            low, high = 0.0, 1.0
        elif (low, high) == (0, 1) and (argument, call) in _INT_BOUNDS:
            low, high = 0, 1
        elif (low, high, argument) == (0, 1, "prob"):
            low, high = 0.0, 1.0
        text = message(f"{call}({argument}={value!r})", f"a number {'above' if above else 'from'} {low:g} to {high:g}")
        raise interval_error(text, argument, f"{'(' if above else '['}{low}, {high}]", call)


_FLOAT_BOUNDS = frozenset({("ratio", "BoundingBoxAugment"), ("distortion_scale", "RandomPerspective")})
_SHOWN_BOUNDS = {("shift", "DCShift"): (-2.0, 2.0), ("delay_ms", "Phaser"): (0, 5.0)}
_INT_BOUNDS = frozenset({("prob", "CutMixBatch")})
"""Arguments whose bounds MindSpore shows as floats or ints."""


def as_number(value: Any) -> Any:
    """Return True and False as 1 and 0, a NumPy number as Python's, and any other value unchanged."""
    if isinstance(value, (bool, np.bool_)):
        return int(value)
    return value.item() if isinstance(value, np.number) else value


def check_choice(call: str, argument: str, value: Any, choices: Iterable[Any]) -> None:
    """Raises ValueError unless `value` is one of `choices`."""
    allowed = list(choices)
    if value not in allowed:
        raise ValueError(message(f"{call}({argument}={short(value)})", list_choices(allowed)))


def check_callable(call: str, argument: str, value: Any) -> None:
    """Raises TypeError unless `value` can be called."""
    if not callable(value):
        raise TypeError(message(f"{call}({argument}={short(value)})", f"a function, got {type(value).__name__}"))


def checked_columns(call: str, argument: str, value: Any) -> list[str]:
    """Return column names as a list: one str or a list of different, non-empty ones."""
    names = [value] if isinstance(value, str) else value
    check_type(call, argument, names, (list, tuple), "a column name or a list of them")
    if not names:
        raise ValueError(message(f"{call}({argument}={names!r})", "at least one column name"))
    for index, name in enumerate(names):
        if not isinstance(name, str):
            text = message(f"{call}({argument}={short(names)})", f"column names that are str, got {type(name).__name__}")
            raise TypeError(with_sentence(text, type_sentence(f"{argument}[{index}]", name, str)))
        if not name:
            raise ValueError(message(f"{call}({argument}={names!r})", "column names that are not empty"))
    if len(set(names)) != len(names):
        raise ValueError(message(f"{call}({argument}={names!r})", "column names that differ from each other"))
    return list(names)


def check_columns(columns: Any, name: str) -> None:
    """Raises TypeError for anything but a column name or a list of them, ValueError for an empty list, empty names and duplicates."""
    check_type("check_columns", "name", name, str, "a str")
    check_type("check_columns", name, columns, (str, list), "a column name or a list of them")
    checked_columns("check_columns", name, columns)


def check_workers(call: str, value: Any) -> None:
    """Raises unless `num_parallel_workers` is None or at least 1. It may exceed the number of cores, because threads are cheap."""
    if value is not None:
        check_int(call, "num_parallel_workers", value, 1)


def check_shards(call: str, num_shards: Any, shard_id: Any) -> None:
    """Raises unless `num_shards` and `shard_id` are both None, or an int and a smaller one."""
    if num_shards is None and shard_id is None:
        return
    if num_shards is None or shard_id is None:
        arguments = f"num_shards={num_shards!r}, shard_id={shard_id!r}"
        raise ValueError(message(f"{call}({arguments})", "both or neither", hint=f"write {call}(..., num_shards=2, shard_id=0)"))
    check_int(call, "num_shards", num_shards, 1)
    check_int(call, "shard_id", shard_id, 0)
    if shard_id >= num_shards:
        raise ValueError(message(f"{call}(num_shards={num_shards}, shard_id={shard_id})", f"a shard_id from 0 to {num_shards - 1}"))
