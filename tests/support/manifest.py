"""pyproject.toml."""
from __future__ import annotations

from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def read_manifest() -> dict[str, Any]:
    """Return pyproject.toml."""
    try:
        import tomllib
    except ImportError:                      # Python 3.10
        import tomli as tomllib
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def read_project() -> dict[str, Any]:
    """Return the table `project` of pyproject.toml."""
    return dict(read_manifest()["project"])
