"""The dtype of every binary operator over all pairs of dtypes and kinds of scalars, against real MindSpore 2.10."""
from __future__ import annotations

import json
import re
from pathlib import Path

import mindspore as ms
import pytest
from parity import promotion

RECORD = json.loads((Path(__file__).parent / "records" / "promotion.json").read_text(encoding="utf-8"))
EXPECTED = {case: result for result, cases in RECORD["results"].items() for case in cases}


def is_intended(case: str, expected: str, found: str) -> bool:
    """Whether docs/differences.md lists this difference ("dtypes of two operands")."""
    if expected == "bool":                       # 2.10 answers one False for `Tensor == NumPy scalar`, we compare
        return found in ("Bool", "TypeError") and "np." in case
    if "//" in case and "complex" in case:       # a floor of complex numbers has no meaning
        return found == "TypeError"
    if expected in ("TypeError", "crash"):       # 2.10's CPU lacks the kernel; which pairs mix is its rule all the same
        return found != "KeyError" and bool(
            re.search(r"complex|bfloat16|\*\* (True|np\.bool_)|True -|% |\* 0d|(==|!=|<|>)", case)
        ) and not _mixes_wide(case)
    return False


def _mixes_wide(case: str) -> bool:
    """Whether uint16, uint32 or uint64 meets another dtype than itself and bool: a rule, not a missing kernel."""
    left, _, right = case.replace("0d ", "").split(" ")
    both = {left, right} & set(promotion.DTYPES) - {"bool_"}
    return len(both) == 2 and bool(both & {"uint16", "uint32", "uint64"})


@pytest.mark.parametrize(("symbol", "left"), promotion.groups())
def test_dtypes_are_those_of_2_10(symbol: str, left: str) -> None:
    found = promotion.answers(ms, symbol, left)
    other = {case: (EXPECTED[case], found[case]) for case in found if EXPECTED[case] != found[case]}
    wrong = {case: pair for case, pair in other.items() if not is_intended(case, *pair)}
    assert not wrong


def test_every_case_was_recorded() -> None:
    assert {case for symbol, left in promotion.groups() for case in promotion.names(symbol, left)} == set(EXPECTED)
