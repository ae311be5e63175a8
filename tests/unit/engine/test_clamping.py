"""Clamping has MindSpore's gradient at a bound in every version of torch."""
from __future__ import annotations

import pytest
import torch

from torchspore.engine.formulas import clamping

X = torch.tensor([-1.0, 0.0, 0.5, 1.0, 2.0, float("nan")])


@pytest.fixture(params=[False, True], ids=["as before torch 2.14", "as from torch 2.14 on"])
def _version(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param is False and clamping._DIFFERS_AT_BOUNDS:
        pytest.skip("this torch passes other gradients at a bound")
    monkeypatch.setattr(clamping, "_DIFFERS_AT_BOUNDS", request.param)


@pytest.mark.usefixtures("_version")
@pytest.mark.parametrize("low", [None, 0.0, "tensor", "nan"])
@pytest.mark.parametrize("high", [None, 1.0, "tensor", -3.0])
def test_an_element_at_a_bound_passes_its_gradient_to_the_input(low: float | str | None, high: float | str | None) -> None:
    if low is None and high is None:
        pytest.skip("no bound")
    bounds = {"tensor": {0: torch.zeros(6), 1: torch.ones(6)}, "nan": {0: torch.tensor([0.0, float("nan")] * 3)}}
    lower, upper = (bounds[bound][at].clone().requires_grad_() if isinstance(bound, str) else bound for at, bound in enumerate((low, high)))
    x = X.clone().requires_grad_()
    out = clamping.clamp(x, lower, upper)
    expected = X
    for name, bound in (("min", lower), ("max", upper)):
        if bound is not None:
            expected = torch.clamp(expected, **{name: bound.detach() if isinstance(bound, torch.Tensor) else bound})
    torch.testing.assert_close(out.detach(), expected, rtol=0, atol=0, equal_nan=True)
    out.sum().backward()
    if low in (None, 0.0, "tensor") and high in (None, 1.0, "tensor"):
        below, above = low is None, high is None
        assert x.grad is not None and x.grad[:5].tolist() == [float(below), 1.0, 1.0, 1.0, float(above)]
        if isinstance(lower, torch.Tensor):
            assert lower.grad is not None and lower.grad[:5].tolist() == [1.0, 0.0, 0.0, 0.0, 0.0]
        if isinstance(upper, torch.Tensor):
            assert upper.grad is not None and upper.grad[:5].tolist() == [0.0, 0.0, 0.0, 0.0, 1.0]


@pytest.mark.usefixtures("_version")
def test_the_dtype_is_torchs() -> None:
    half, single = torch.tensor([1.0], dtype=torch.float16), torch.tensor([1.0])
    for x, low in ((torch.tensor([1, 2]), 1.5), (half, 0.5), (single, torch.tensor(0.5).double())):
        value = x.requires_grad_() if x.is_floating_point() else x
        assert clamping.clamp(value, low).dtype == torch.clamp(value, min=low).dtype
