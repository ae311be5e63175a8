"""Random numbers that depend on nothing but their shape and range: the original and the port draw equal ones."""
from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import torch

from torchspore.engine.random import kernel_numbers
from torchspore.engine.random.seeded_streams import Stream
from torchspore.mindspore.ops.random_draws import draws


def _fixed(draw: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    def drawn(*size: Any, dtype: torch.dtype | None = None, device: Any = None, requires_grad: bool = False, **_: Any) -> torch.Tensor:
        shape = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
        numbers = draw(tuple(shape), generator=torch.Generator().manual_seed(0), dtype=torch.float64, device="cpu")
        return numbers.to(dtype=dtype or torch.get_default_dtype(), device=device).requires_grad_(requires_grad)

    return drawn


def _like(draw: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    def drawn(like: torch.Tensor, *, dtype: torch.dtype | None = None, device: Any = None, **_: Any) -> torch.Tensor:
        return draw(tuple(like.shape), dtype=dtype or like.dtype, device=device or like.device)

    return drawn


def _fixed_integers(draw: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    def drawn(*words: Any, generator: Any = None, device: Any = None, **options: Any) -> torch.Tensor:
        return draw(*words, generator=torch.Generator().manual_seed(0), device="cpu", **options).to(device=device)

    return drawn


def _fixed_choice(_: Any, mask: torch.Tensor, count: int) -> torch.Tensor:
    """Return positions of true elements as the function of a port chooses them; -1 if there are fewer than `count`."""
    positions, is_valid = draws._torch_choice(mask, count, Stream())
    return torch.where(is_valid, positions, -1)


@contextlib.contextmanager
def fixed_draws() -> Iterator[None]:
    """While it lasts, random numbers of torch and of MindSpore's operators are those of their shape."""
    uniform, normal = _fixed(torch.rand), _fixed(torch.randn)
    new = {"rand": uniform, "randn": normal, "rand_like": _like(uniform), "randn_like": _like(normal)}
    new.update({name: _fixed_integers(getattr(torch, name)) for name in ("randint", "randperm")})
    with contextlib.ExitStack() as stack:
        for name, function in new.items():
            stack.enter_context(mock.patch.object(torch, name, function))
        for module in (draws, kernel_numbers):
            stack.enter_context(mock.patch.object(module, "is_on_host", lambda: False))
        stack.enter_context(mock.patch.object(draws, "order_of_true", _fixed_choice))
        yield
