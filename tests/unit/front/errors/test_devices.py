"""Errors of operators whose operands are on two devices; torch's texts, because this machine has one device."""
from __future__ import annotations

import pytest

from torchspore.mindspore.ops.declaration.reasons import of_call

SAME = "Expected all tensors to be on the same device, but "


@pytest.mark.parametrize(("text", "devices"), [
    ("found at least two devices, cuda:0 and cpu!", "cuda:0 and cpu"),
    ("found at least two devices, cpu and cuda:1! (when checking argument for argument mat1 in method wrapper_CUDA_mm)", "cpu and cuda:1"),
    ("got mat2 is on cpu, different from other tensors on cuda:0 (when checking argument in method wrapper_CUDA_bmm)", "cpu and cuda:0"),
])
def test_both_devices_are_named(text: str, devices: str) -> None:
    kind, sentence, hint = of_call(RuntimeError(SAME + text))
    assert (kind, sentence) == (RuntimeError, f"expected values on one device, got {devices}.")
    assert hint is not None and "move_to" in hint
