"""Programs as people write them, as pipelines whose ranks this process stands for."""
from __future__ import annotations

import numpy as np
import pytest
from support import pipeline_programs

QUICK = ("odd", "gap", "fitted")


@pytest.mark.parametrize("stages", [2, 4])
@pytest.mark.parametrize("name", [
    case if case in QUICK else pytest.param(case, marks=pytest.mark.slow) for case in pipeline_programs.CASES
])
def test_numbers_are_those_of_one_device(name: str, stages: int, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = pipeline_programs.run(name, stages, is_cut=False)
    monkeypatch.setenv("TORCHSPORE_SIMULATE", str(stages * (1 if stages == 2 else 2)))
    cut = pipeline_programs.run(name, stages, is_cut=True)
    np.testing.assert_allclose(cut, alone, rtol=1e-3 if name in ("half", "amp_o2") else 3e-6)      # sums of halves in another order
