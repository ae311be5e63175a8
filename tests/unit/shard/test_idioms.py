"""Idioms of programs in split graphs, beside one device: losses, results and Parameters."""
from __future__ import annotations

import mindspore as ms
import numpy as np
import pytest
from support.split_idioms import IDIOMS, Cut

NARROW = {"half": 2e-3, "brain": 2e-2}
"""Products of half precision are rounded once a part."""


def over(monkeypatch: pytest.MonkeyPatch, devices: int, strategy: str) -> None:
    monkeypatch.setenv("TORCHSPORE_SIMULATE", str(devices))
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy=strategy)


SLOW = pytest.mark.slow
QUICK = ("own_bprop", "hooks", "loops", "written_slices", "slices_in_a_row", "vmap", "jvp")


@pytest.mark.parametrize(("devices", "cut", "strategy"), [
    (4, (2, 2), "data_parallel"), *(pytest.param(*case, marks=SLOW) for case in (
        (2, (2, 1), "full_batch"), (2, (1, 2), "data_parallel"), (2, None, "full_batch"), (4, None, "data_parallel"),
    )),
])
@pytest.mark.parametrize("name", [name if name in QUICK else pytest.param(name, marks=SLOW) for name in IDIOMS])
def test_it_is_as_on_one_device(name: str, devices: int, cut: Cut, strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = IDIOMS[name](None)
    over(monkeypatch, devices, strategy)
    result = IDIOMS[name](cut)
    assert len(result) == len(alone)
    for expected, other in zip(alone, result):
        scale = max(1e-3, float(np.abs(expected).max()))
        np.testing.assert_allclose(other / scale, expected / scale, atol=NARROW.get(name, 2e-6), rtol=0)
