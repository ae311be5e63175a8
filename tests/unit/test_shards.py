"""Parts of the tests, which one session each can run."""
from __future__ import annotations

import pytest

from tests.conftest import select_shard

NAMES = [f"tests/test_{file}.py::test_{number}" for file in "abcdefgh" for number in range(50)]


def test_each_test_is_in_one_shard_and_shards_are_about_equal() -> None:
    parts = [select_shard(NAMES, f"{number}/4") for number in (1, 2, 3, 4)]
    assert all(sum(selected) == 1 for selected in zip(*parts))
    assert all(60 <= sum(part) <= 140 for part in parts)
    assert all(select_shard(NAMES, "1/1"))


@pytest.mark.parametrize("shard", ["0/4", "5/4", "1", "a/b", "1/0", ""])
def test_a_text_that_names_no_shard_is_refused(shard: str) -> None:
    with pytest.raises(pytest.UsageError, match="expected the number of a part"):
        select_shard(NAMES, shard)
