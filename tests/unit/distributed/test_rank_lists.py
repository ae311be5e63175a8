"""Lists of ranks as text: short ones spelled out, long ones with ranges; each text gives its ranks back."""
from __future__ import annotations

import random

import pytest

from torchspore.distributed.comm import rank_lists


@pytest.mark.parametrize("ranks, text", [
    ((3,), "3"),
    ((0, 1), "0_1"),
    ((5, 1, 3), "5_1_3"),
    (tuple(range(8)), "0_1_2_3_4_5_6_7"),
    (tuple(range(512)), "0-511"),
    (tuple(range(0, 512, 8)), "0-504+8"),
    ((*range(16), *range(32, 48)), "0-15_32-47"),
    ((9, 8, 7, *range(20, 40, 2), 40, 41), "9_8_7_20-40+2_41"),
    ((0, 0, 1, 1, 2, 2, 3, 3, 4), "0_0_1_1_2_2_3_3_4"),
])
def test_texts(ranks: tuple[int, ...], text: str) -> None:
    assert rank_lists.to_text(ranks) == text and rank_lists.from_text(text) == ranks


def test_random_lists_are_read_back() -> None:
    source = random.Random(1)
    for _ in range(500):
        start, step = source.randrange(100), source.randrange(1, 9)
        ranks = [*range(start, start + step * source.randrange(20), step), *source.sample(range(2000), source.randrange(20))]
        if source.random() < 0.5:
            ranks.sort()
        if ranks:
            assert rank_lists.from_text(rank_lists.to_text(ranks)) == tuple(ranks)
            assert len(rank_lists.to_text(ranks)) <= len("_".join(map(str, ranks)))


@pytest.mark.parametrize("text", ["", "a", "1-", "-3", "1__2", "1+2", "1-2+", "0-4+0"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a rank"):
        rank_lists.from_text(text)
