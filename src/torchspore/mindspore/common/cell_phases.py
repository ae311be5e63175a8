"""The Cells of this process by the name of their compilation phase."""
from __future__ import annotations

import weakref
from typing import Any

PHASES: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()
"""Cells by their `current_phase`."""
