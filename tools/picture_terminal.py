#!/usr/bin/env python3
"""Records the terminal session of the README as an SVG: runs the commands with the README's program, and draws what they print.

    tools/picture_terminal.py             writes docs/guides/images/terminal.svg
    tools/picture_terminal.py --check     fails if the commands print another text than the picture shows
"""
from __future__ import annotations

import argparse
import fcntl
import html
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "guides" / "images" / "terminal.svg"
WIDTH = 110
COMMANDS = ("run train.py", "explain train.py", "check train.py")


def program() -> str:
    """Return the program of the README."""
    match = re.search(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.S | re.M)
    assert match is not None, "README.md has no program"
    return match[1]


def terminal_output(command: Sequence[str], folder: Path) -> str:
    """Run a command in a terminal that is WIDTH characters wide; return what it prints, with its colours."""
    reader, writer = pty.openpty()
    fcntl.ioctl(writer, termios.TIOCSWINSZ, struct.pack("HHHH", 40, WIDTH, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(WIDTH), "TORCHSPORE_LANG": "en"}
    with subprocess.Popen(command, cwd=folder, stdin=writer, stdout=writer, stderr=writer, env=environment) as child:
        os.close(writer)
        parts = []
        while part := _read(reader):
            parts.append(part)
    os.close(reader)
    if child.returncode:
        raise SystemExit(f"{' '.join(command)}: exit code {child.returncode}\n\n{b''.join(parts).decode()}")
    return b"".join(parts).decode().replace("\r\n", "\n")


def _read(reader: int) -> bytes:
    try:
        return os.read(reader, 1 << 16)
    except OSError:                                        # Linux: the program has closed its end
        return b""


def session() -> str:
    """Return the text of the session, with its colours, without lines that appear only while something is compiled the first time."""
    parts = []
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "train.py").write_text(program(), encoding="utf-8")
        for words in COMMANDS:
            command = [sys.executable, "-m", "torchspore", *words.split()]
            parts += [f"\x1b[1;32m$\x1b[0m torchspore {words}", terminal_output(command, Path(folder))]
    lines = "\n".join(part.rstrip() for part in parts).split("\n")
    return "\n".join(line for line in lines if " is being compiled" not in line) + "\n"


def drawn(text: str) -> str:
    """Return the session as an SVG without fonts of other servers."""
    from rich import _export_format
    from rich.console import Console
    from rich.text import Text

    style = re.sub(r"@font-face \{\{.*?\}\}", "", _export_format.CONSOLE_SVG_FORMAT, flags=re.S)
    style = re.sub(r"Fira Code, ?", "", style)
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        console = Console(record=True, width=WIDTH, file=nowhere, force_terminal=True, color_system="truecolor")
        console.print(Text.from_ansi(text), end="")
        return console.export_svg(title="torchspore", code_format=style, unique_id="terminal")


def shown_lines(picture: str) -> list[str]:
    """Return the words of each line of text in a picture, without its title, with N for the numbers of times and memory."""
    lines: dict[float, list[tuple[float, str]]] = {}
    for x, y, text in re.findall(r'<text class="terminal-r\d+" x="([\d.]+)" y="([\d.]+)"[^>]*>(.*?)</text>', picture, re.S):
        lines.setdefault(float(y), []).append((float(x), html.unescape(text).replace("\xa0", " ")))
    texts = ["".join(text for _, text in sorted(parts)) for _, parts in sorted(lines.items())]
    numbers = re.compile(r"(?<=ready in ).*|[\d.]+(?= B\b|%| operators)")
    return [numbers.sub("N", " ".join(text.split())) for text in texts if text.strip()]


def main(words: Sequence[str] | None = None) -> int:
    """Run the command; return 1 if `--check` sees another text."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare only")
    arguments = parser.parse_args(words)
    picture = drawn(session())
    if not arguments.check:
        PICTURE.write_text(picture, encoding="utf-8")
        print(f"{PICTURE}: {len(picture) // 1024} KB")
        return 0
    printed, shown = shown_lines(picture), shown_lines(PICTURE.read_text(encoding="utf-8"))
    for line in [line for line in printed if line not in shown]:
        print(f"{PICTURE.relative_to(ROOT)} lacks: {line}", file=sys.stderr)
    return int(printed != shown)


if __name__ == "__main__":
    sys.exit(main())
