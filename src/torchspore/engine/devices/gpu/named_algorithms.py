"""Whether options name cuDNN's algorithms: the condition of each convolution. `convolution` runs them and is loaded only then."""
from __future__ import annotations


class _Algorithms:
    """The state of the options that name cuDNN's algorithms."""

    def __init__(self) -> None:
        self.are_named = False
        """True if an option names an algorithm for a direction."""


ALGORITHMS = _Algorithms()
