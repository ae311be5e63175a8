"""Every command of docs/guides/graph-mode.md runs, and `torchspore explain` shows that its switch acts."""
from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import running

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs" / "guides" / "graph-mode.md").read_text(encoding="utf-8")
PARTS = re.findall(r"^## ([^\n]*)\n(.*?)(?=^## |\Z)", GUIDE, re.DOTALL | re.MULTILINE)
SECTIONS = {title.rpartition(": ")[2].strip(): text for title, text in PARTS}
APPLIED = {
    "Compile cache": "enable_compile_cache", "precompile_only": "precompile_only", "max_call_depth": "max_call_depth",
    "check_bprop": "check_bprop", "grad_for_scalar": "grad_for_scalar", "support_binary": "support_binary", "debug_level": "debug_level",
    "disable_format_transform": "disable_format_transform", "jit_config": "jit_config", "jit_syntax_level": "jit_syntax_level",
}
_SAMPLES = ("precompile_only", "max_call_depth")


def blocks(text: str, kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


WITH_COMMANDS = [
    pytest.param(name, marks=[pytest.mark.slow, *([pytest.mark.sample] if name in _SAMPLES else [])])
    for name, text in SECTIONS.items() if blocks(text, "sh")
]


@pytest.mark.parametrize("name", WITH_COMMANDS)
def test_the_commands_of_a_section_run(name: str, tmp_path: Path) -> None:
    for program in blocks(SECTIONS[name], "python"):
        (tmp_path / program.splitlines()[0].removeprefix("#").strip()).write_text(program)
    printed = ""
    for line in "".join(blocks(SECTIONS[name], "sh")).splitlines():
        words = shlex.split(line)
        variables = {}
        while "=" in words[0]:
            variable, _, value = words.pop(0).partition("=")
            variables[variable] = value
        if words[0] == "python":
            assert (ROOT / words[1]).exists(), line          # benchmarks take minutes, and print what they find
            continue
        assert words[0] == "torchspore", line
        ran = running.torchspore(*words[1:], cwd=tmp_path, extra=variables, timeout=400)
        assert ran.code == 0, f"{line}\n{ran.out}\n{ran.err}"
        printed += ran.out
    if name in APPLIED:
        rows = [row for row in printed.splitlines() if row.startswith(APPLIED[name] + " ")]
        assert any(" applied: " in row for row in rows), printed


def test_each_switch_has_its_section() -> None:
    assert set(APPLIED) <= set(SECTIONS)
