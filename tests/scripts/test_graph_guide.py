"""Every command of the guides below runs, and `torchspore explain` shows that its switch acts."""
from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from support import processes

ROOT = Path(__file__).resolve().parents[2]
GUIDES = ("graph-mode", "execution", "save-graphs", "precision", "memory", "graph-kernels", "tuning", "data")


def sections(guide: str) -> dict[str, str]:
    """The texts of a guide's sections, by what stands after the colon of their titles."""
    text = (ROOT / "docs" / "guides" / f"{guide}.md").read_text(encoding="utf-8")
    parts = re.findall(r"^## ([^\n]*)\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    return {title.rpartition(": ")[2].strip(): part for title, part in parts}


SECTIONS = {name: text for guide in GUIDES for name, text in sections(guide).items()}
GUIDE_OF = {name: guide for guide in GUIDES for name in sections(guide)}
APPLIED = {
    "Compile cache": "enable_compile_cache", "precompile_only": "precompile_only", "max_call_depth": "max_call_depth",
    "check_bprop": "check_bprop", "grad_for_scalar": "grad_for_scalar", "support_binary": "support_binary", "debug_level": "debug_level",
    "disable_format_transform": "disable_format_transform", "jit_config": "jit_config", "jit_syntax_level": "jit_syntax_level",
    "runtime_num_threads": "runtime_num_threads", "exec_order": "exec_order",
    "jit_compile": "ascend_config",
    "save_graphs": "save_graphs", "save_graphs_path": "save_graphs_path", "reserve_class_name_in_scope": "reserve_class_name_in_scope",
    "precision_mode": "ascend_config", "enable_auto_mixed_precision": "enable_auto_mixed_precision",
    "enable_reduce_precision": "enable_reduce_precision", "memory_optimize_level": "memory_optimize_level",
    "memory_offload": "memory_offload",
    "sys.mem_reuse": "env_config_path", "enable_sparse": "enable_sparse",
    "enable_graph_kernel": "enable_graph_kernel", "opt_level": "graph_kernel_flags", "graph_kernel_flags": "graph_kernel_flags",
    "dump_as_text": "graph_kernel_flags", "path": "graph_kernel_flags", "aoe_tune_mode": "aoe_tune_mode",
    "torchspore tune": "aoe_tune_mode", "aoe_config": "aoe_config", "auto_tune_mode": "auto_tune_mode",
}
WITHOUT_EFFECT = {"op_debug_option": "ascend_config"}
_SAMPLES = ("precompile_only", "save_graphs", "A pipeline", "Workers")


def blocks(text: str, kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


WITH_COMMANDS = [
    pytest.param(name, marks=[pytest.mark.slow, *([pytest.mark.sample] if name in _SAMPLES else [])])
    for name, text in SECTIONS.items() if blocks(text, "sh")
]


@pytest.mark.parametrize("name", WITH_COMMANDS)
def test_the_commands_of_a_section_run(name: str, tmp_path: Path) -> None:
    before = sections(GUIDE_OF[name])
    for program in [program for text in [*before.values(), SECTIONS[name]] for program in blocks(text, "python")]:
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
        ran = processes.torchspore(*words[1:], cwd=tmp_path, extra=variables, timeout=400)
        assert ran.code == 0, f"{line}\n{ran.out}\n{ran.err}"
        printed += ran.out
    for named, outcome in ((APPLIED, "applied"), (WITHOUT_EFFECT, "no effect here")):
        if name in named:
            rows = [row for row in printed.splitlines() if row.startswith(named[name] + " ")]
            assert any(f" {outcome}: " in row for row in rows), printed


def test_each_switch_has_its_section() -> None:
    assert {*APPLIED, *WITHOUT_EFFECT} <= set(SECTIONS)
