"""The random transforms draw from MindSpore's distributions: recorded in 2.10, compared as distributions; equal seeds give equal rows."""
from __future__ import annotations

import json

import mindspore as ms
import numpy as np
import pytest
from parity import random_transforms as ours

RECORD = json.loads(ours.RECORD.read_text(encoding="utf-8"))["quantiles"]
NUMBERS = ("brightness", "centre down", "centre across")
APART = 0.10
"""How far two samples of 1,000 of one distribution may be apart: Kolmogorov and Smirnov's 0.1 %, and 0.01 for the record's 100 steps."""


NEAR = 0.01
"""Rounding of a pixel moves a picture's numbers by less."""


def distance(left: np.ndarray, right: np.ndarray) -> float:
    """The largest difference of the shares up to any value, where values may be off by NEAR."""
    def above(array: np.ndarray, other: np.ndarray) -> float:
        at, theirs = np.sort(array), np.sort(other)
        share_above = np.searchsorted(at, at, side="right") / len(at)
        return float((share_above - np.searchsorted(theirs, at + NEAR, side="right") / len(theirs)).max())

    return max(above(left, right), above(right, left))


@pytest.mark.parametrize("name", sorted(RECORD))
def test_draws_are_distributed_as_in_2_10(name: str) -> None:
    result = ours.drawn(ms, ours.transforms(ms)[name], 3)
    apart = {
        number: (distance(values, np.array(recorded)), np.quantile(values, (0, 0.5, 1)).round(2).tolist(), recorded[::50])
        for number, values, recorded in zip(NUMBERS, result.T, RECORD[name])
    }
    assert max(measured[0] for measured in apart.values()) < APART, apart


@pytest.mark.parametrize("name", sorted(RECORD))
def test_equal_seeds_draw_equal_rows(name: str) -> None:
    make = ours.transforms(ms)[name]
    assert np.array_equal(ours.drawn(ms, make, 5, 100), ours.drawn(ms, make, 5, 100))
    assert not np.array_equal(ours.drawn(ms, make, 5, 100), ours.drawn(ms, make, 6, 100))


def test_the_record_has_every_transform() -> None:
    assert set(RECORD) == set(ours.transforms(ms))
