"""A Cell and a torch model with the converted weights run on one input, and their results are compared."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch

from torchspore.base.text import message
from torchspore.engine.execution import thread_state
from torchspore.engine.tensors import tree
from torchspore.engine.tensors.tensor import raw, transform, wrap
from torchspore.mindspore.nn.cell import Cell

_TYPES = {"float32": torch.float32, "float16": torch.float16, "float64": torch.float64, "int32": torch.int32, "int64": torch.int64}
_SEED = 20240229
_SHORT = 8
"""Length of a sequence of tokens that nobody chose."""


class Comparison(NamedTuple):
    """The shapes of the inputs, the largest difference of the results, the largest result, and the position of the difference."""

    inputs: list[str]
    difference: float
    largest: float
    result: str

    def is_equal(self, tolerance: float) -> bool:
        """Return whether the difference is at most `tolerance` of the largest result. NaN in one result is a difference."""
        return bool(self.difference <= tolerance * self.largest)


class NoInput(ValueError):
    """Nobody named an input, and the models do not tell one."""


def compare(cell: Cell, model: torch.nn.Module, texts: list[str] | None = None) -> Comparison:
    """Run both in evaluation mode. `texts` are the shapes and types of the inputs, such as `1,3,224,224` and `2,8:int64`.

    Raises NoInput if no input is known that the Cell accepts, ValueError if the results have other shapes.
    """
    choices = [[_tensor(text, model) for text in texts]] if texts else list(_choices(model))
    if not choices:
        raise NoInput("the models do not tell the shape of their input: pass --input, such as --input 1,3,224,224")
    cell.set_train(False)
    error: Exception | None = None
    for inputs in choices:
        try:
            ours = _run_cell(cell, inputs)
            with torch.no_grad():
                theirs = model.eval()(*inputs)
        except Exception as raised:
            error = raised
            continue
        return _compared(inputs, ours, theirs)
    assert error is not None
    what = "an input that the Cell and the model accept"
    kind = ValueError if texts else NoInput
    raise kind(message(f"{' '.join(map(_described, choices[-1]))}: {type(error).__name__}: {error}", what, hint="pass --input")) from error


def _run_cell(cell: Cell, inputs: list[torch.Tensor]) -> Any:
    tensors = tuple(wrap(t.to(torch.int32) if t.dtype is torch.int64 else t.clone()) for t in inputs)
    with torch.no_grad():
        return transform(thread_state.in_pynative(cell, tensors, {}), raw)


def _tensor(text: str, model: torch.nn.Module) -> torch.Tensor:
    """Return random values of a shape such as `1,3,224,224` or `2,8:int64`. Raises ValueError for another text."""
    shape_text, _, type_name = text.partition(":")
    try:
        shape = tuple(int(part) for part in shape_text.split(",") if part.strip())
        dtype = _TYPES[type_name or "float32"]
        if any(length < 1 for length in shape):
            raise ValueError
    except (ValueError, KeyError):
        raise ValueError(message(f"--input {text}", f"lengths and a type of {', '.join(_TYPES)}: 1,3,224,224 or 2,8:int64")) from None
    return _random(shape, dtype, _token_count(model))


def _random(shape: tuple[int, ...], dtype: torch.dtype, limit: int) -> torch.Tensor:
    generator = np.random.default_rng(_SEED)
    if dtype.is_floating_point:
        return torch.from_numpy(generator.standard_normal(shape).astype(np.float32)).to(dtype)
    return torch.from_numpy(generator.integers(0, limit, shape)).to(dtype)


def _token_count(model: torch.nn.Module) -> int:
    count = getattr(getattr(model, "config", None), "vocab_size", None)
    sizes = [module.num_embeddings for module in model.modules() if isinstance(module, torch.nn.Embedding)]
    return int(count or (min(sizes) if sizes else 2))


def _choices(model: torch.nn.Module) -> Iterator[list[torch.Tensor]]:
    """Yield inputs that the model declares, or that fit its first layer."""
    size = (getattr(model, "pretrained_cfg", None) or {}).get("input_size")
    if size:
        yield [_random((1, *size), torch.float32, 2)]
        return
    first = next((module for module in model.modules() if isinstance(module, (
        torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Conv3d, torch.nn.Linear, torch.nn.Embedding))), None)
    if hasattr(model, "config") and hasattr(model.config, "vocab_size"):
        ids = _random((1, _SHORT), torch.int64, _token_count(model))
        yield [ids, ids] if getattr(model.config, "is_encoder_decoder", False) else [ids]
        yield [ids, torch.ones_like(ids)]
    elif isinstance(first, torch.nn.Embedding):
        yield [_random((1, _SHORT), torch.int64, first.num_embeddings)]
    elif isinstance(first, torch.nn.Linear):
        yield [_random((2, first.in_features), torch.float32, 2)]
        yield [_random((2, _SHORT, first.in_features), torch.float32, 2)]
    elif first is not None:
        dimensions = {"Conv1d": 1, "Conv2d": 2, "Conv3d": 3}.get(next(
            name.__name__ for name in (torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Conv3d) if isinstance(first, name)), 2)
        for length in (224, 32, 28):
            yield [_random((1, first.in_channels, *(min(length, 32) if dimensions == 3 else length,) * dimensions), torch.float32, 2)]


def _compared(inputs: list[torch.Tensor], ours: Any, theirs: Any) -> Comparison:
    our_tensors, their_tensors = list(_tensors(ours)), list(_tensors(theirs))
    texts = [_described(t) for t in inputs]
    pairs = list(zip(our_tensors, their_tensors))
    shapes = [[list(t.shape) for t in tensors] for tensors in (our_tensors, their_tensors)]
    if not pairs or any(first.shape != second.shape for first, second in pairs):
        got = f"the Cell's results have the shapes {shapes[0]}, the torch model's {shapes[1]}"
        raise ValueError(message(got, "results of equal shapes"))
    difference, largest, position = 0.0, 0.0, "result 0"
    for number, (first, second) in enumerate(pairs):
        largest = max(largest, float(second.detach().double().abs().nan_to_num().max()) if second.numel() else 0.0)
        distance = _distance(first, second)
        if distance > difference:
            difference, position = distance, f"result {number}"
    extra = abs(len(our_tensors) - len(their_tensors))
    return Comparison(texts, difference, largest, position + (f"; {extra} results of one side have no counterpart" if extra else ""))


def _distance(first: torch.Tensor, second: torch.Tensor) -> float:
    """Return the largest difference; infinity where only one side is NaN or infinite."""
    a, b = first.detach().double(), second.detach().double()
    is_equal = (a == b) | (a.isnan() & b.isnan())
    distance = torch.where(is_equal, torch.zeros_like(a), (a - b).abs())
    return float(distance.nan_to_num(nan=float("inf"), posinf=float("inf")).max()) if distance.numel() else 0.0


def _tensors(result: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors of numbers in a result, such as the outputs of transformers, in their order."""
    if isinstance(result, torch.Tensor):
        yield result
    elif isinstance(result, dict):
        for value in result.values():
            yield from _tensors(value)
    elif isinstance(result, (list, tuple)):
        for value in result:
            yield from _tensors(value)
    elif hasattr(result, "__dict__") and not callable(result):
        for value in tree.leaves(vars(result)):
            if isinstance(value, torch.Tensor):
                yield value


def _described(t: torch.Tensor) -> str:
    return f"{','.join(map(str, t.shape))}:{str(t.dtype).removeprefix('torch.')}"
