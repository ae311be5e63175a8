"""Parameters of the search for parallel strategies."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import pytest


def test_what_is_set_is_given_and_reset() -> None:
    ms.set_algo_parameters(fully_use_devices=True, algo_approxi_epsilon=0.5)
    try:
        assert ms.get_algo_parameters("fully_use_devices") is True and ms.get_algo_parameters("algo_approxi_epsilon") == 0.5
    finally:
        ms.reset_algo_parameters()
    assert ms.get_algo_parameters("fully_use_devices") is False and ms.get_algo_parameters("tensor_slice_align_size") == 16


@pytest.mark.parametrize(("keywords", "kind"), [
    ({"colour": 1}, ValueError), ({"fully_use_devices": 1}, TypeError), ({"algo_approxi_epsilon": 1}, TypeError),
    ({"algo_approxi_epsilon": 1.5}, ValueError), ({"tensor_slice_align_size": 0}, ValueError),
])
def test_what_does_not_fit_changes_nothing(keywords: dict[str, Any], kind: type[Exception]) -> None:
    with pytest.raises(kind, match="set_algo_parameters"):
        ms.set_algo_parameters(enable_algo_approxi=True, **keywords)
    assert ms.get_algo_parameters("enable_algo_approxi") is False
    with pytest.raises(ValueError, match="get_algo_parameters"):
        ms.get_algo_parameters("colour")
