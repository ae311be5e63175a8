"""The random numbers of MindSpore's CPU kernels, for the operators that draw them."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from torchspore.base.arguments import is_int
from torchspore.engine.devices import device
from torchspore.engine.random import operator_streams
from torchspore.engine.random.seeded_streams import Stream
from torchspore.engine.tensors.dtypes import FROM_TORCH

T = torch.Tensor


def is_on_host() -> bool:
    """Return whether MindSpore's CPU kernels would draw."""
    return device.current().type == "cpu"


def checked_seed(seed: Any) -> int:
    """Return the seed of an operator; None counts as 0. Raises TypeError if it is not an int, ValueError below 0."""
    if seed is None:
        return 0
    if not is_int(seed):
        raise TypeError(f"seed={seed!r:.40}: expected an int, got {type(seed).__name__}.")
    if seed < 0:
        raise ValueError(f"seed={seed}: expected an int from 0 on.")
    return seed


def of_function(kernel_name: str, seed: Any, kind: str, shape: Sequence[int], *numbers: float) -> T:
    """Draw values of a kind in `distributions.DRAWS` for the function whose seeds are counted under `kernel_name`."""
    return operator_streams.drawn(operator_streams.of_function(kernel_name, checked_seed(seed)), kind, shape, *numbers)


def by_program_seed(kernel_name: str, kind: str, shape: Sequence[int], *numbers: float) -> T:
    """Draw them for a function of `mindspore.numpy`, which also uses the program's seed as the operator's seed."""
    return operator_streams.drawn(operator_streams.of_function(kernel_name, None), kind, shape, *numbers)


def of_primitive(source: Stream, kind: str, shape: Sequence[int], *numbers: float, key: str = "") -> T | None:
    """Draw them for a primitive with seeds; return None if it has no seeds, or if it does not draw on the CPU.

    Its generator continues for each shape and `key`.
    """
    if source.operator is None or not is_on_host():
        return None
    return operator_streams.drawn(source.operator, kind, shape, *numbers, key=key)


def has_int_kernel(low: Any, high: Any) -> bool:
    """Return whether MindSpore's kernel for ints can draw from this range."""
    return is_on_host() and -(2**31) <= low < high < 2**31


def by_function(kernel_name: str, seed: Any, kind: str, parameters: Sequence[T], shape: Sequence[int]) -> T:
    """Draw values of a kind in `parameter_draws.PARAMETER_DRAWS` for the function whose seeds are counted under `kernel_name`."""
    source = operator_streams.of_function(kernel_name, checked_seed(seed))
    return operator_streams.drawn_by(source, kind, [parameter.detach() for parameter in parameters], shape)


def by_primitive(source: Stream, kind: str, parameters: Sequence[T], shape: Sequence[int], key: str) -> T | None:
    """Draw them for a primitive with seeds; return None if it has no seeds, or if it does not draw on the CPU.

    Its generator continues for each `shape` and `key`.
    """
    if source.operator is None or not is_on_host():
        return None
    return operator_streams.drawn_by(source.operator, kind, [parameter.detach() for parameter in parameters], shape, key=key)


def by_stream(
    source: operator_streams.OperatorStream | None, kind: str, parameters: Sequence[T], shape: Sequence[int], *options: float,
    key: str = "",
) -> T:
    """Draw a kind whose parameters include the seeds; `source` is None for a function, which starts from its seeds in each call."""
    source = operator_streams.of_function(kind, 0) if source is None else source
    return operator_streams.drawn_by(source, kind, [parameter.detach() for parameter in parameters], shape, *options, key=key)


def check_float(name: str, value: T) -> None:
    """Raises TypeError for a Tensor of a dtype that MindSpore's kernels do not accept (float16, float32 and float64)."""
    if value.dtype not in (torch.float16, torch.float32, torch.float64):
        raise TypeError(f"{name} of {FROM_TORCH[value.dtype]}: expected Float16, Float32 or Float64.")
