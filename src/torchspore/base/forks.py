"""What happens when the program is forked."""
from __future__ import annotations

import os
from collections.abc import Callable


def at_fork(**callbacks: Callable[[], object]) -> None:
    """Register functions, as `os.register_at_fork` does: `before`, `after_in_parent`, `after_in_child`.

    Windows has no fork, and so nothing to register.
    """
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(**callbacks)
