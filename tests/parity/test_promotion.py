"""The dtype of every binary operator over all pairs of dtypes and kinds of scalars, against real MindSpore 2.10."""
from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import mindspore as ms
import pytest
from parity import promotion

RECORD = json.loads((Path(__file__).parent / "records" / "promotion.json").read_text(encoding="utf-8"))
EXPECTED = {case: result for result, cases in RECORD["results"].items() for case in cases}


ZERO_AXES = {
    "Int8": "int8 * 0d int16, int8 * 0d int32, int8 * 0d uint8",
    "UInt8": "uint8 * 0d int8, uint8 * 0d int16, uint8 * 0d int32",
    "Float16": "float16 * 0d bfloat16, float16 / 0d bfloat16",
    "BFloat16": "bfloat16 * 0d float16, bfloat16 * 0d float32, bfloat16 * 0d float64, bfloat16 / 0d float16, bfloat16 / 0d float32, "
                "bfloat16 / 0d float64",
    "Complex64": "bfloat16 * 0d complex128, float32 * 0d complex128, complex64 * 0d float64, complex64 * 0d complex128, "
                 "bfloat16 / 0d complex128, float32 / 0d complex128, complex64 / 0d float64, complex64 / 0d complex128",
}
"""Where 2.10's CPU lacks the kernel: what its rule gives, that a Tensor without axes does not promote another one in `*` and `/`."""
BY_RULE = {case: answer for answer, cases in ZERO_AXES.items() for case in cases.split(", ")}


def intended(case: str, recorded: str) -> tuple[str, str] | None:
    """Why we mean to differ from what was recorded, and what is the answer then; None where we do not (docs/differences.md)."""
    left, symbol, right = case.replace("0d ", "").split(" ")
    if symbol == "//" and recorded.startswith("Complex"):
        return "a floor of complex numbers has no meaning", "TypeError"
    if recorded not in ("TypeError", "crash") or _mixes_wide(left, right):
        return None
    if case in BY_RULE:
        return "no kernel on 2.10's CPU: 0-d Tensors", BY_RULE[case]
    if symbol in ("==", "!=", "<", "<=", ">", ">="):
        return "no kernel on 2.10's CPU: comparisons", "Bool"
    for other in "+-*":                          # which pairs mix is one rule for all of them
        like = EXPECTED[case.replace(f" {symbol} ", f" {other} ")]
        if like not in ("TypeError", "crash"):
            return "no kernel on 2.10's CPU: arithmetic", like
    return None


def _mixes_wide(left: str, right: str) -> bool:
    """Whether uint16, uint32 or uint64 meets another dtype than itself and bool: a rule, not a missing kernel."""
    both = {left, right} & set(promotion.DTYPES) - {"bool_"}
    return len(both) == 2 and bool(both & {"uint16", "uint32", "uint64"})


@pytest.mark.parametrize(("symbol", "left"), promotion.groups())
def test_dtypes_are_those_of_2_10(symbol: str, left: str) -> None:
    """Every case has one answer: the recorded one, or in a difference that is meant the one that its reason gives."""
    result = promotion.answers(ms, symbol, left)
    wrong = {}
    for case, answer in result.items():
        reason = intended(case, EXPECTED[case])
        if answer != EXPECTED[case] and (reason is None or answer != reason[1]):
            wrong[case] = (EXPECTED[case], reason, answer)
    assert not wrong


def test_the_differences_are_so_many() -> None:
    reasons = Counter()
    for symbol, left in promotion.groups():
        for case, answer in promotion.answers(ms, symbol, left).items():
            if answer != EXPECTED[case]:
                reasons[intended(case, EXPECTED[case])[0]] += 1
    assert reasons == {
        "no kernel on 2.10's CPU: comparisons": 321, "no kernel on 2.10's CPU: arithmetic": 261, "no kernel on 2.10's CPU: 0-d Tensors": 22,
        "a floor of complex numbers has no meaning": 110,
    }


def test_every_case_was_recorded() -> None:
    assert {case for symbol, left in promotion.groups() for case in promotion.names(symbol, left)} == set(EXPECTED)
