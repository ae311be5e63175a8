"""Checks of arguments that packages call: what is given back, or the kind of error."""
from __future__ import annotations

import mindspore as ms
import mindspore._checkparam as v
from parity.case import case

CALLS = {
    "check_int": [(3, 1, v.GE, "x", "Net"), (0, 1, v.GE), (2.5, 1, v.GE), (True, 1, v.GE), (3, 3, v.EQ), (3, 4, v.NE), (3, 4, v.GT)],
    "check_float": [(3.0, 1.0, v.GT), (0.5, 1.0, v.GT), (3, 1.0, v.GT), (float("inf"), 1.0, v.GT), (float("nan"), 1.0, v.GT)],
    "check_int_range": [
        (3, 0, 3, v.INC_BOTH), (3, 0, 3, v.INC_LEFT), (0, 0, 3, v.INC_RIGHT), (0, 0, 3, v.INC_NEITHER), ("a", 0, 3, v.INC_BOTH),
    ],
    "check_float_range": [
        (0.5, 0.0, 1.0, v.INC_BOTH), (1.5, 0.0, 1.0, v.INC_BOTH), (1, 0.0, 1.0, v.INC_BOTH), (0.0, 0.0, 1.0, v.INC_RIGHT),
    ],
    "check_positive_int": [(1,), (0,), (-1,), (1.0,), (False,), (None,)],
    "check_non_negative_int": [(0,), (-1,), ("1",)],
    "check_negative_int": [(-1,), (0,)],
    "check_non_positive_int": [(0,), (1,)],
    "check_positive_float": [(0.1,), (0.0,), (1,)],
    "check_non_negative_float": [(0.0,), (-0.1,)],
    "check_negative_float": [(-0.5,), (0.5,)],
    "check_non_positive_float": [(-0.5,), (0.5,)],
    "check_equal_int": [(3, 3), (3, 4)],
    "check_bool": [(True,), (1,), (None,)],
    "check_is_int": [(1,), (True,), (1.0,)],
    "check_is_float": [(1.0,), (1,), (float("inf"),)],
    "check_string": [("a", ["a", "b"]), ("c", ["a", "b"]), (1, ["a"])],
    "check_value_type": [("x", 1, [int]), ("x", True, [int]), ("x", True, [int, bool]), ("x", "a", [int, float]), ("x", None, [int])],
    "check_isinstance": [("x", 1, int), ("x", "a", int), ("x", "a", (int, str))],
    "check_element_type_of_iterable": [("x", [1, 2], [int]), ("x", [1, "a"], [int]), ("x", 3, [int])],
    "check_element_type_of_dict": [("x", {"a": 1}, [str], [int]), ("x", {1: 1}, [str], [int]), ("x", {"a": "b"}, [str], [int])],
    "check_size_and_element_type_of_tuple": [("x", (1, 2), 2, int), ("x", (1, 2), 3, int), ("x", (1, "a"), 2, int), ("x", [1, 2], 2, int)],
    "check_positive_int_sequence": [((1, 2),), ((1, 0),)],
    "check_non_negative_int_sequence": [((0, 2),), ((-1, 0),)],
    "check_positive_float_sequence": [((0.5, 2.0),), ((0.0, 1.0),)],
    "check_axis_in_range": [(1, 3), (-1, 3), (3, 3), (-4, 3), ("a", 3)],
    "check_axis_valid": [(None, 2), (1, 2), ((0, 1), 2), ((0, 0), 2), (2, 2)],
    "infer_out_shape": [((2, 1), (1, 3)), ((2,), (3,)), ((4, 1, 2), (3, 1))],
    "check_str_by_regular": [("abc_1",), ("a b",)],
    "check_file_name_by_regular": [("a/b.ckpt",), ("a?b",), (3,)],
    "check_number": [("x", 3, 1, v.GT, "Net"), ("x", 0, 1, v.GT, "Net")],
    "check_type_name": [("x", ms.float32, [ms.float32, ms.int32], "Net"), ("x", ms.float16, [ms.float32], "Net")],
    "check_subclass": [("x", ms.float32, (ms.float32,), "Net"), ("x", ms.int32, (ms.float32,), "Net")],
    "check": [("x", 1, "y", 1), ("x", 1, "y", 2), ("x", 1, "y", 2, v.LT)],
}


@case(over={f"{name} {index}": (name, arguments) for name, calls in CALLS.items() for index, arguments in enumerate(calls)})
def checked(item):
    name, arguments = item
    try:
        result = getattr(v, name)(*arguments)
    except (TypeError, ValueError) as error:
        return {"raised": type(error).__name__}
    return {"given back": repr(result)}
