"""The commands in the code blocks of README.md, docs/commands.md and the guides."""
from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", "docs/commands.md", *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs/guides").glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.S | re.M)


def blocks_of(page: str) -> list[tuple[str, str]]:
    """Return the language and the text of each code block of a page."""
    return BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))


def commands_of(page: str) -> Iterator[list[str]]:
    """Yield the words after `torchspore` of each command of a page, also of those that another program starts."""
    for language, text in blocks_of(page):
        if language == "sh":
            for line in text.replace("\\\n", " ").splitlines():
                words = shlex.split(line, comments=True)
                if "torchspore" in words and not {"cd", "docker", "mpirun", "srun"} & {*words}:
                    yield words[words.index("torchspore") + 1:]
