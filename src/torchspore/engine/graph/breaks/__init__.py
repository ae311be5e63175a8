"""Calls that no single graph can hold, run in parts: statements that can't be captured run in Python, those between them as graphs."""
from __future__ import annotations
