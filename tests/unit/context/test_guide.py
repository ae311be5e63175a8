"""The code blocks of the guide run, in order, as one program."""
from __future__ import annotations

import re
from pathlib import Path
from typing import Any

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guides" / "context.md"


def test_the_guides_blocks_run() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    space: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, str(GUIDE), "exec"), space)
    assert len(blocks) == 3
