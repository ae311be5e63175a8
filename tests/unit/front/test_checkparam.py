"""Checks of arguments under the names of 1.x; those of 2.x are compared with records of 2.10."""
from __future__ import annotations

import mindspore as ms
import pytest
from mindspore import Tensor
from mindspore import _checkparam as checks
from mindspore._checkparam import Rel, Validator


def test_validator_and_relations_of_1_x() -> None:
    assert Validator.check_positive_int(3, "size", "Net") == 3
    assert Validator.check_int(3, 1, Rel.GE, "size", "Net") == 3
    assert Validator.check_integer("size", 3, 1, Rel.GE, "Net") == 3
    assert Validator.check_string("mode", "a", ["a", "b"], "Net") == "a"
    with pytest.raises(ValueError, match=r"Net\(size=5\): expected int in \[0, 3\)\."):
        Validator.check_int_range(5, 0, 3, Rel.INC_LEFT, "size", "Net")
    with pytest.raises(TypeError, match=r"Net\(size=1.5\): expected int, got float\."):
        Validator.check_positive_int(1.5, "size", "Net")


def test_the_decorator() -> None:
    @checks.args_type_check(x=Tensor, count=int)
    def function(x, count=1, name=None):
        return count

    assert function(Tensor([1.0]), 2) == 2
    with pytest.raises(TypeError, match=r"function\(count='a'\): expected int, got str"):
        function(Tensor([1.0]), "a")


def test_dtypes() -> None:
    assert checks.check_astype_dtype("float16") == ms.float16
    with pytest.raises(TypeError):
        checks.check_astype_dtype("colour")
    with pytest.raises(TypeError, match="one dtype for all"):
        checks.check_tensors_dtypes_same_and_valid({"x": ms.float32, "y": ms.int32}, [ms.float32, ms.int32], "Add")


def test_an_int_for_several() -> None:
    assert (checks.once(3), checks.twice(3), checks.triple((1, 2, 3)), checks.twice_sequence([1, 2])) == ((3,), (3, 3), (1, 2, 3), (1, 2))
    assert (checks.once_sequence([1]), checks.triple_sequence(4)) == ((1,), (4, 4, 4))
    for check, value, message in (
        (checks.twice, [1, 2], r"\[1, 2\]: expected an int or a tuple of 2"), (checks.once, (1, 2), "an int or a tuple of 1"),
        (checks.triple, True, "True: expected an int or a tuple of 3"), (checks.triple_sequence, [1], "an int or a tuple or list of 3"),
    ):
        with pytest.raises(TypeError, match=message):
            check(value)


def test_an_int_becomes_a_tuple() -> None:
    pair = checks._expand_tuple(2)
    assert pair(5) == (5, 5) and pair((1, 2)) == (1, 2) and checks.twice(3) == (3, 3) and checks.triple_sequence([1, 2, 3]) == (1, 2, 3)
    for wrong in ((1, 2, 3), "a", [1, 2], 1.5, True, (1, "a"), None):
        with pytest.raises(TypeError, match="expected an int or a tuple of 2"):
            pair(wrong)


def test_the_data_format() -> None:
    assert checks.check_input_format("NCHW") == "NCHW"
    with pytest.raises(ValueError, match="expected 'NCHW'"):
        checks.check_input_format("NHWC")
