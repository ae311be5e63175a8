"""Adds a stub to the wheel for each module in modules.txt. Every name in such a module is untyped."""
from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

STUB = "from typing import Any\n\ndef __getattr__(name: str) -> Any: ...\n"


class ModuleStubs(BuildHookInterface):
    """Writes the stubs into a temporary folder and includes them."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Fill `force_include` of the build with one file for each line of modules.txt."""
        del version
        folder = Path(tempfile.mkdtemp())
        lines = Path(self.root, "modules.txt").read_text(encoding="utf-8").splitlines()
        for path in (line for line in lines if line and not line.startswith("#")):
            stub = folder / path
            stub.parent.mkdir(parents=True, exist_ok=True)
            stub.write_text(STUB, encoding="utf-8")
            build_data["force_include"][str(stub)] = f"mindspore-stubs/{path}"
