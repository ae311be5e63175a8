"""The program and the commands of docs/guides/profiling.md run and leave what the page says."""
from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from support.processes import Run

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "profiling.md"


def test_the_commands_of_the_page(run: Callable[..., Run], tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    (program,) = re.findall(r"^```python\n(.*?)^```", text, re.S | re.M)
    (commands,) = re.findall(r"^```sh\n(.*?)^```", text, re.S | re.M)
    (tmp_path / "train.py").write_text(program)
    outputs = []
    for line in commands.splitlines():
        result = run(*line.split()[1:])
        assert result.code == 0, result.err
        outputs.append(result.out)
    assert "16 steps" in outputs[1] and "backward" in outputs[1]
    assert (tmp_path / "report" / "report.html").exists() and (tmp_path / "summary" / "curves.html").exists()
    assert list((tmp_path / "profile").glob("*_ascend_ms/ASCEND_PROFILER_OUTPUT/trace_view.html"))
    for image in re.findall(r"\]\((images/[^)]+)\)", text):
        assert (PAGE.parent / image).exists(), image
