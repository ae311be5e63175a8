"""What a strategy that does not fit is told, and what layouts say; that the rules are MindSpore's is tested in tests/parity/strategies."""
from __future__ import annotations

from typing import Any

import pytest

from torchspore.distributed.shard.strategy_validation import TensorLayout, has_rules, layouts_of
from torchspore.distributed.shard.strategy_validation.layout import replicated_layout

MATRICES = ((64, 32), (32, 16))


def refusal(*args: Any, **more: Any) -> str:
    with pytest.raises(ValueError) as result:
        layouts_of(*args, **more)
    return str(result.value)


def test_two_cuts_of_one_axis_are_reported_with_the_nearest_that_fits() -> None:
    assert refusal("MatMul", {}, MATRICES, ((2, 4), (2, 1)), devices=8) == (
        "MatMul of shapes (64, 32), (32, 16) with in_strategy ((2, 4), (2, 1)) on 8 devices: "
        "expected 4 at axis 0 of input 1, as where the same axis stands before, got 2.\n\n"
        "hint: the nearest that fits is ((2, 4), (4, 1))."
    )


@pytest.mark.parametrize(("strategy", "reason"), [
    (((2, 4),), "2 tuples, one for each input, got 1."),
    (((2, 4, 1), (4, 1)), "2 numbers for input 0, got 3."),
    (((0, 1), (1, 1)), "a whole number from 1 on at axis 0 of input 0, got 0."),
    (((True, 1), (1, 1)), "a whole number from 1 on at axis 0 of input 0, got True."),
    (((3, 1), (1, 1)), "a power of 2 at axis 0 of input 0, as the number of devices is one, got 3."),
    (((1, 64), (64, 1)), "a number that divides 32 at axis 1 of input 0, got 64."),
    (((16, 1), (1, 1)), "a number of devices that 16, the product of its cuts, divides."),
    ((4, 1), "a tuple of tuples."),
    ("ab", "a tuple of tuples."),
    (None, "a tuple of tuples."),
])
def test_errors_are_reported(strategy: Any, reason: str) -> None:
    assert refusal("MatMul", {}, MATRICES, strategy, devices=8).split("expected ", 1)[1].split("\n")[0] == reason


def test_an_axis_that_must_stay_unsplit_is_named_with_the_reason() -> None:
    assert "expected an uncut axis, got 2: Softmax needs all of axis 1." in refusal(
        "Softmax", {"axis": -1}, [(16, 32)], ((1, 2),), devices=8,
    )


def test_an_out_strategy_that_is_not_a_layout_of_the_result_is_refused_with_the_layouts() -> None:
    text = refusal("MatMul", {}, MATRICES, ((2, 4), (4, 1)), ((4, 2),), devices=8)
    assert "with in_strategy ((2, 4), (4, 1)) and out_strategy ((4, 2),)" in text
    assert "expected out_strategy ((2, 1),) or ((8, 1),)." in text


def test_a_sum_may_be_scattered_along_its_rows() -> None:
    usual = layouts_of("MatMul", {}, MATRICES, ((2, 4), (4, 1)), devices=8)
    scattered = layouts_of("MatMul", {}, MATRICES, ((2, 4), (4, 1)), ((8, 1),), devices=8)
    assert usual.outputs[0].cuts() == (2, 1)
    assert scattered.outputs[0].cuts() == (8, 1)
    assert [scattered.outputs[0].coordinates(rank)[0] for rank in range(8)] == list(range(8))


def test_devices_that_remain_repeat_the_last_axis() -> None:
    result = layouts_of("ReLU", {}, [(16, 32)], ((2, 2),), devices=8)
    assert result.device_matrix == (2, 2, 2)
    assert [result.inputs[0].coordinates(rank) for rank in range(8)] == [(0, 0), (0, 0), (0, 1), (0, 1), (1, 0), (1, 0), (1, 1), (1, 1)]


def test_a_layout_gives_slices_and_shapes_of_several_axes_on_one() -> None:
    layout = TensorLayout((2, 4), ((0, 1), -1))
    assert layout.cuts() == (8, 1)
    assert layout.slice_shape((16, 3)) == (2, 3)
    assert layout.slices(1, (16, 3)) == (slice(4, 6), slice(0, 3))            # the axis of four is the major one
    with pytest.raises(ValueError, match="divide"):
        layout.slice_shape((12, 3))


def test_axes_of_one_device_go() -> None:
    assert TensorLayout((1, 2, 1, 4), (2, 0)).squeezed() == TensorLayout((2, 4), (1, 0))
    assert replicated_layout(2, 8).is_unsplit()


def test_a_primitive_without_a_rule_is_known_to_have_none() -> None:
    assert has_rules("MatMul")
    assert not has_rules("NonMaxSuppressionV3")
    with pytest.raises(KeyError):
        layouts_of("NonMaxSuppressionV3", {}, [(4, 4)], ((1, 1),), devices=2)


def test_a_strategy_that_mindspore_does_not_look_at_is_omitted_with_the_reason() -> None:
    result = layouts_of("Flatten", {}, [(16, 8)], ((1, 2),), devices=8)
    assert result.inputs[0].is_unsplit()
    assert result.ignored == "an uncut axis, got 2: axis 1 is joined with others"
