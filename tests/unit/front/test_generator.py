"""Generators of random numbers."""
from __future__ import annotations

import mindspore as ms
import numpy as np
import pytest
from mindspore import Generator, Tensor, mint, ops


def test_a_state_can_be_taken_up_again(mode: int) -> None:
    ms.manual_seed(3)
    state = ms.get_rng_state()
    first = ops.rand(3).asnumpy()
    ms.set_rng_state(state)
    np.testing.assert_array_equal(ops.rand(3).asnumpy(), first)
    assert ms.initial_seed() == 3


def test_set_seed_starts_the_default_generator() -> None:
    ms.set_seed(5)
    first = mint.rand(3).asnumpy()               # ops.rand has a seed of its own in MindSpore, which manual_seed does not set
    ms.manual_seed(5)
    np.testing.assert_array_equal(mint.rand(3).asnumpy(), first)
    assert isinstance(ms.seed(), int)
    ms.set_seed(5)


def test_a_separate_generator() -> None:
    first = Generator().manual_seed(7)
    assert first.initial_seed() == 7
    other = Generator()
    other.set_state(first.get_state())
    np.testing.assert_array_equal(other.get_state().asnumpy(), first.get_state().asnumpy())
    assert first.seed() == first.initial_seed()


def test_what_does_not_fit() -> None:
    for wrong, kind in (("a", TypeError), (True, TypeError), (2**65, ValueError)):
        with pytest.raises(kind, match="manual_seed"):
            Generator().manual_seed(wrong)
    with pytest.raises(TypeError, match="set_state"):
        Generator().set_state(3)
    with pytest.raises(ValueError, match="a Tensor from get_state"):
        Generator().set_state(Tensor([1.0]))
