"""The orders that MindSpore's samplers and shuffle buffer draw from a seed, number for number.

Its data engine is C++: the samplers use the 32-bit Mersenne twister with the standard library's `shuffle`, the shuffle buffer the 64-bit
one, MindRecord files `minstd_rand0`. All are public algorithms (Matsumoto and Nishimura 1998; Nishimura 2000; libstdc++'s
`uniform_int_distribution` draws by scaling and rejection, and its `shuffle` takes two positions from one draw while they fit).
The records are in `tests/parity/cases/dataset_order.py` and `mindrecord.py`.
"""
from __future__ import annotations

from collections.abc import MutableSequence
from typing import Any

import numpy as np

_WORD = (1 << 64) - 1
_SPAN = 2**32 - 1


class _Engine:
    """The draws of libstdc++ from an engine with `span` + 1 different numbers."""

    __slots__ = ()
    span = _SPAN

    def __call__(self) -> int:
        raise NotImplementedError

    def below(self, count: int) -> int:
        """Draw an integer in [0, count), uniformly."""
        scale = self.span // count
        past = count * scale
        while True:
            word = self()
            if word < past:
                return word // scale

    def shuffle(self, items: MutableSequence[Any]) -> None:
        """Shuffle in place, in the order that libstdc++ produces for this state."""
        count = len(items)
        if self.span // max(count, 1) < count:
            for index in range(1, count):
                other = self.below(index + 1)
                items[index], items[other] = items[other], items[index]
            return
        index = 1
        if count % 2 == 0 and count:
            other = self.below(2)
            items[1], items[other] = items[other], items[1]
            index = 2
        while index < count:
            first, second = divmod(self.below((index + 1) * (index + 2)), index + 2)
            items[index], items[first] = items[first], items[index]
            items[index + 1], items[second] = items[second], items[index + 1]
            index += 2


class Twister32(_Engine):
    """The 32-bit Mersenne twister; calling it gives the next integer in [0, 2**32)."""

    __slots__ = ("_next", "_words")

    def __init__(self, seed: int) -> None:
        # RandomState's legacy seeding is the one of the twister, and its raw stream is the twister's output.
        self._words = np.random.RandomState(seed % 2**32)._bit_generator
        self._next = iter(())

    def __call__(self) -> int:
        for word in self._next:
            return word
        self._next = iter(self._words.random_raw(1024).tolist())
        return next(self._next)


class Minimal(_Engine):
    """The standard library's `minstd_rand0` (Lewis, Goodman and Miller 1969), less 1: the next integer in [0, 2**31 - 2)."""

    __slots__ = ("_state",)
    span = 2**31 - 3

    def __init__(self, seed: int) -> None:
        self._state = seed % (2**31 - 1) or 1

    def __call__(self) -> int:
        self._state = self._state * 16807 % (2**31 - 1)
        return self._state - 1


class Twister64:
    """The 64-bit Mersenne twister; calling it gives the next integer in [0, 2**64)."""

    __slots__ = ("_next", "_state")

    def __init__(self, seed: int) -> None:
        state = [seed & _WORD]
        for index in range(1, 312):
            state.append((6364136223846793005 * (state[-1] ^ (state[-1] >> 62)) + index) & _WORD)
        self._state = state
        self._next = iter(())

    def __call__(self) -> int:
        for word in self._next:
            return word
        self._next = iter(self._refill())
        return next(self._next)

    def _refill(self) -> list[int]:
        state = self._state
        for index in range(312):
            mixed = (state[index] & 0xFFFFFFFF80000000) | (state[(index + 1) % 312] & 0x7FFFFFFF)
            state[index] = state[(index + 156) % 312] ^ (mixed >> 1) ^ (0xB5026F5AA96619E9 if mixed & 1 else 0)
        words = []
        for word in state:
            word ^= (word >> 29) & 0x5555555555555555
            word ^= (word << 17) & 0x71D67FFFEDA60000
            word ^= (word << 37) & 0xFFF7EEE000000000
            words.append((word ^ (word >> 43)) & _WORD)
        return words
