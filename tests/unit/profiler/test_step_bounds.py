"""Where steps begin and end: an update ends one, if anything was computed for it."""
from __future__ import annotations

import pytest

from torchspore.observe.profiling import operator_names, step_breakdown
from torchspore.observe.profiling.profile_data import BACKWARD, DATA, FORWARD, UPDATE


def segments(phases: str) -> list[tuple[int, int, str]]:
    """One activity of 10 units for each letter: w(ait), f(orward), b(ackward), u(pdate)."""
    names = {"w": DATA, "f": FORWARD, "b": BACKWARD, "u": UPDATE}
    return [(10 * at, 10 * at + 10, names[letter]) for at, letter in enumerate(phases)]


@pytest.mark.parametrize(("phases", "ends"), [
    ("wfbuwfbuwfbuwfbu", [40, 80, 120, 160]),
    ("wfbuwfbuwfbuwfbuw", [40, 80, 120, 160]),
    ("fbufbufbufbu", [30, 60, 90, 120]),
    ("uwfbuwfbuwfbuwfbuw", [50, 90, 130, 170]),                 # weights are assigned before the training
    ("wfbuwfbuwfbuwfbuwu", [40, 80, 120, 160]),                 # ... and after it
    ("wfbuwuwfbuwfbuwfbu", [40, 100, 140, 180]),                # ... and between two steps
    ("wfbuwfbuwfbuwfbuwfwf", [40, 80, 120, 160]),               # an evaluation
    ("wfbuuuwfbuuuwfbuuuwfbuuu", [60, 120, 180, 240]),          # a kernel for each Parameter
    ("ufbufbu", [40, 70]),
])
def test_steps_of_a_training(phases: str, ends: list[int]) -> None:
    assert [end for _, end in step_breakdown._bounds(segments(phases), [])] == ends


@pytest.mark.parametrize(("operator", "phase"), [
    ("aten::_fused_adam_", UPDATE), ("aten::_fused_sgd_", UPDATE), ("aten::_foreach_add_", UPDATE),
    ("aten::_fused_sdp_choice", FORWARD), ("aten::_fused_rms_norm", FORWARD), ("aten::_fused_rms_norm_backward", BACKWARD),
    ("aten::_fused_dropout", FORWARD),
])
def test_the_phase_of_fused_operators(operator: str, phase: str) -> None:
    assert operator_names.guessed_phase(operator, FORWARD) == phase
