"""Terminal sessions as SVG pictures: runs commands with a program, and draws what they print.

`terminal.svg` shows three commands with the README's program, `explain.svg` the outcome of many options.
"""
from __future__ import annotations

import fcntl
import html
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WIDTH = 110
COLUMN = 12.2
"""The width of a column in rich's pictures."""
WIDE = "\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6"
"""The characters that take two columns."""
TRANSIENT = re.compile(" is being compiled|runs for the first time|, after \\d+ s:|正在.*编译|首次执行|已用时")
"""A line that appears only while something is compiled, or on a slow machine."""
OPTIONS_PROGRAM = """
import mindspore as ms
from mindspore import nn, ops

ms.set_context(mode=ms.GRAPH_MODE, jit_config={"jit_level": "O1"}, deterministic="ON", max_device_memory="4GB",
               runtime_num_threads=2, save_graphs=1, save_graphs_path="graphs", ascend_config={"matmul_allow_hf32": True})
ms.set_seed(1)
net = nn.SequentialCell(nn.Dense(4, 8), nn.ReLU(), nn.Dense(8, 1))
step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.02))
step(ops.ones((2, 4)), ops.zeros((2, 1)))
""".lstrip()


def program() -> str:
    """Return the program of the README."""
    match = re.search(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.S | re.M)
    assert match is not None, "README.md has no program"
    return match[1]


def terminal_output(command: Sequence[str], folder: Path) -> str:
    """Run a command in a terminal that is WIDTH characters wide; return what it prints, with its colours."""
    reader, writer = pty.openpty()
    fcntl.ioctl(writer, termios.TIOCSWINSZ, struct.pack("HHHH", 40, WIDTH, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(WIDTH)}
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


def session(text: str, commands: Sequence[str], folder: Path) -> str:
    """Return the text of a session in the folder, with its colours, without lines that appear only while something is compiled."""
    parts = []
    (folder / "train.py").write_text(text, encoding="utf-8")
    for words in commands:
        command = [sys.executable, "-m", "torchspore", *words.split()]
        parts += [f"\x1b[1;32m$\x1b[0m torchspore {words}", terminal_output(command, folder)]
    lines = "\n".join(part.rstrip() for part in parts).replace(str(folder), "~").split("\n")
    return "\n".join(line for line in lines if not TRANSIENT.search(line)) + "\n"


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
        return with_wide_characters(console.export_svg(title="torchspore", code_format=style, unique_id="terminal"))


def with_wide_characters(picture: str) -> str:
    """Return the picture with two columns for each Chinese character: rich gives each character one, so that they overlap."""
    from rich.cells import cell_len

    text = re.compile(r'<text class="(terminal-r\d+)" x="([\d.]+)" y="([\d.]+)" textLength="[\d.]+" ([^>]*)>(.*?)</text>', re.S)
    runs = re.compile(f"[{WIDE}]+|[^{WIDE}]+")

    def separated(match: re.Match[str]) -> str:
        style, x, y, others, content = match.groups()
        position, parts = float(x), []
        for run in runs.findall(html.unescape(content)):
            width = cell_len(run) * COLUMN
            escaped = html.escape(run).replace("\xa0", "&#160;")
            parts.append(f'<text class="{style}" x="{position:g}" y="{y}" textLength="{width:g}" {others}>{escaped}</text>')
            position += width
        return "".join(parts)

    return text.sub(separated, picture)


def shown_lines(picture: str) -> list[str]:
    """Return the words of each line of text in a picture, without its title, with N for the numbers of times and memory."""
    lines: dict[float, list[tuple[float, str]]] = {}
    for x, y, text in re.findall(r'<text class="terminal-r\d+" x="([\d.]+)" y="([\d.]+)"[^>]*>(.*?)</text>', picture, re.S):
        lines.setdefault(float(y), []).append((float(x), html.unescape(text).replace("\xa0", " ")))
    texts = ["".join(text for _, text in sorted(parts)) for _, parts in sorted(lines.items())]
    numbers = re.compile(r"(?<=ready in ).*|(?<=用时).*|[\d.]+(?= B\b|%| operators)")
    return [numbers.sub("N", " ".join(text.split())) for text in texts if text.strip()]


def write(into: Path, folder: Path) -> list[Path]:
    """Write both pictures. Return their paths."""
    sessions = {
        "terminal": session(program(), ("run train.py", "explain train.py", "check train.py"), folder),
        "explain": session(OPTIONS_PROGRAM, ("explain train.py",), folder).partition("\n\n")[0] + "\n",
    }
    for name, text in sessions.items():
        (into / f"{name}.svg").write_text(drawn(text), encoding="utf-8")
    return [into / f"{name}.svg" for name in sessions]
