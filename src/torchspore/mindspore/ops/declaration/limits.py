"""Limits of constructor arguments by kind: lengths of windows, fractions, finite numbers, words."""
from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from torchspore.base.text import list_choices, short


def check_lengths(name: str, counts: tuple[int, ...], least: int = 1, wrong_count: type[Exception] = ValueError, **arguments: Any) -> None:
    """Raises if an argument is neither an int of at least `least` nor a tuple of such ints with a length in `counts`.

    `wrong_count` is the error for a tuple of another length: ValueError, but TypeError for the layers where MindSpore raises that.
    """
    for key, value in arguments.items():
        wrote = f"{name}({key}={short(value)})"
        parts = value if isinstance(value, tuple) and counts else (value,)
        for part in parts:
            if not _is_int(part):
                expected = "an int or a tuple of ints" if counts else "an int"
                raise TypeError(f"{wrote}: expected {expected}, got {type(part).__name__}.")
        if isinstance(value, tuple) and len(value) not in counts:
            raise wrong_count(f"{wrote}: expected an int or {' or '.join(map(str, sorted(counts)))} of them, got {len(value)}.")
        if any(part < least for part in parts):
            raise ValueError(f"{wrote}: expected ints from {least} on.")


def _is_int(value: Any) -> bool:
    """Return whether a value is an int or has an integer value; `__index__` alone proves nothing for arrays and Tensors."""
    try:
        operator.index(value)
    except (TypeError, ValueError):
        return False
    return not isinstance(value, bool)


def check_finite(name: str, **arguments: Any) -> None:
    """Raises ValueError if a number is infinite or NaN; values that are not floats pass."""
    for key, value in arguments.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"{name}({key}={value}): expected a finite number.")


def check_real(name: str, least: float | None = None, above: float | None = None, most: float | None = None, **arguments: Any) -> None:
    """Raises TypeError if an argument is not a float (an int is not), ValueError if it is not finite or outside the limits."""
    for key, value in arguments.items():
        if not isinstance(value, float):
            raise TypeError(f"{name}({key}={short(value)}): expected a float, got {type(value).__name__}.")
        check_finite(name, **{key: value})
        low = (least is not None and value < least) or (above is not None and value <= above)
        if low or (most is not None and value > most):
            raise ValueError(f"{name}({key}={value}): expected a number {_describe_range(least, above, most)}.")


def _describe_range(least: float | None, above: float | None, most: float | None) -> str:
    start = [f"from {least:g}"] if least is not None else [f"above {above:g}"] if above is not None else []
    end = [f"up to {most:g}"] if most is not None else ["on"] if least is not None else []
    return " ".join([*start, *end])


def check_words(name: str, key: str, value: Any, words: tuple[str, ...]) -> None:
    """Raises ValueError if an argument is not one of the words."""
    if not isinstance(value, str) or value not in words:
        raise ValueError(f"{name}({key}={short(value)}): expected {list_choices(words)}.")


def check_divisor(name: str, divisor_override: Any) -> None:
    """Raises if `divisor_override`, which replaces a window's size as divisor, is neither None nor an int of at least 1."""
    if divisor_override is not None:
        check_lengths(name, (), divisor_override=divisor_override)


def small(word: Any) -> Any:
    """Return a word in lower case, because 2.10 accepts either case for some; other values stay unchanged."""
    return word.lower() if isinstance(word, str) else word


Rule = Callable[[str, str, Any], None]
"""Raises if an argument (class name, argument name, value) is outside its limits."""


def _lengths(*counts: int, least: int = 1) -> Rule:
    return lambda name, key, value: check_lengths(name, counts, least, **{key: value})


def _real(least: float | None = None, above: float | None = None, most: float | None = None) -> Rule:
    return lambda name, key, value: check_real(name, least, above, most, **{key: value})


def _int_range(least: int, most: int) -> Rule:
    def check(name: str, key: str, value: Any) -> None:
        if not _is_int(value) or not least <= value <= most:
            raise ValueError(f"{name}({key}={short(value)}): expected an int from {least} to {most}.")

    return check


def _words(*words: str, either_case: bool = False) -> Rule:
    return lambda name, key, value: check_words(name, key, value.lower() if either_case and isinstance(value, str) else value, words)


_PLANES, _VOLUMES = _words("NCHW", "NHWC"), _words("NCDHW")
_MODES = _words("same", "valid", "pad")
_POOL: dict[str, Rule] = {"kernel_size": _lengths(2, 4), "strides": _lengths(2, 4), "data_format": _PLANES}
_CONVOLUTION: dict[str, Rule] = {
    "kernel_size": _lengths(2), "stride": _lengths(2, 4), "dilation": _lengths(2, 4), "pad": _lengths(4, least=0), "pad_mode": _MODES,
}
_CONVOLUTION_3D: dict[str, Rule] = {
    "kernel_size": _lengths(3), "stride": _lengths(3, 5), "dilation": _lengths(3, 5), "pad": _lengths(6, least=0),
    "pad_mode": _words("same", "valid", "pad", either_case=True),
}
_FTRL: dict[str, Rule] = {"lr": _real(above=0.0), "l1": _real(least=0.0), "l2": _real(least=0.0), "lr_power": _real(most=0.0)}
_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")

LIMITS: dict[str, dict[str, Rule]] = {
    "ApplyAdagradV2": {"epsilon": _real()},
    "ApplyAdamWithAmsgrad": dict.fromkeys(("beta1", "beta2", "epsilon"), _real()),
    "ApplyMomentum": {"gradient_scale": _real()},
    "ApproximateEqual": {"tolerance": _real()},
    "AvgPool": _POOL,
    "AvgPool3D": {
        "kernel_size": _lengths(3, 5), "strides": _lengths(3, 5), "pad": _lengths(6, least=0), "divisor_override": _lengths(least=0),
    },
    "BatchNorm": {"epsilon": _real(above=0.0, most=1.0), "momentum": _real(least=0.0, most=1.0)},
    "BiasAdd": {"data_format": _words("NCHW", "NHWC", "NCDHW")},
    "Cdist": {"p": _real(least=0.0)},
    "CeLU": {"alpha": _real()},
    "Col2Im": {
        "kernel_size": _lengths(2), "dilation": _lengths(2), "padding": _lengths(2, least=0), "stride": _lengths(2),
    },
    "Conv2D": _CONVOLUTION,
    "Conv2DBackpropInput": _CONVOLUTION,
    "Conv2DTranspose": _CONVOLUTION,
    "Conv3D": _CONVOLUTION_3D,
    "Conv3DTranspose": _CONVOLUTION_3D,
    "CropAndResize": {"extrapolation_value": _real()},
    "Dropout2D": {"keep_prob": _real(least=0.0, most=1.0)},
    "Dropout3D": {"keep_prob": _real(least=0.0, most=1.0)},
    "FillDiagonal": {"fill_value": _real()},
    "FractionalMaxPool3DWithFixedKsize": {"ksize": _lengths(3)},
    "FractionalMaxPoolWithFixedKsize": {"ksize": _lengths(2)},
    "FusedSparseFtrl": _FTRL,
    "HammingWindow": {"alpha": _real(), "beta": _real()},
    "Histogram": {"min": _real(), "max": _real()},
    "LRN": dict.fromkeys(("bias", "alpha", "beta"), _real()),
    "LSTM": {"dropout": _real(least=0.0, most=1.0)},
    "Logit": {"eps": _real()},
    "LogSpace": {"base": _lengths(least=0)},
    "LpNorm": {"p": _lengths(least=0), "epsilon": _real(least=0.0)},
    "MaxPool": _POOL,
    "MaxPool3D": {"kernel_size": _lengths(3, 5), "strides": _lengths(3, 5)},
    "MaxPool3DWithArgmax": {
        "ksize": _lengths(3), "strides": _lengths(3), "pads": _lengths(3, least=0), "dilation": _lengths(3),
    },
    "MaxPoolWithArgmax": _POOL,
    "MultiMarginLoss": {"margin": _real()},
    "NMSWithMask": {"iou_threshold": _real()},
    "Pdist": {"p": _real(least=0.0)},
    "ROIAlign": {"spatial_scale": _real(), "roi_end_mode": _int_range(0, 1)},
    "Range": {"maxlen": _lengths()},
    "Renorm": {"maxnorm": _real()},
    "SparseApplyAdagrad": {"lr": _real()},
    "SparseApplyAdagradV2": {"lr": _real(), "epsilon": _real()},
    "SparseApplyFtrl": _FTRL,
    "SparseApplyFtrlV2": _FTRL,
    "SparseApplyRMSProp": {
        "rho": _real(least=0.0, most=1.0), "momentum": _real(least=0.0), "epsilon": _real(above=0.0),
    },
    "StridedSlice": dict.fromkeys(_MASKS, _lengths(least=0)),
}
"""By primitive and constructor argument. There is no limit where 2.10 refuses what other devices or 1.x accept."""
