"""tools/host_reads.py: which calls it lists, and that every one of the source has a reason."""
from __future__ import annotations

import ast
import json
from pathlib import Path

import host_reads
import pytest


@pytest.mark.parametrize("text", [
    "x.item()", "x.tolist()", "x.cpu()", "x.detach().numpy()", "x.nonzero()", "torch.nonzero(x)", "torch.unique(x)", "torch.tensor([1])",
    "torch.as_tensor(v, device=d)", "torch.from_numpy(a)", "torch.equal(a, b)", "bool(x.any())", "bool((x > 0).all())", "int(x.max())",
    "float(torch.log(x))", "int(-x.min())",
])
def test_a_read_is_listed(text: str) -> None:
    node = ast.parse(text, mode="eval").body
    assert isinstance(node, ast.Call) and host_reads.is_host_read(node)


@pytest.mark.parametrize("text", [
    "np.unique(x)", "np.nonzero(x)", "ops.equal(a, b)", "int(x)", "bool(flag)", "float(text)", "x.to(device)", "torch.zeros(3)",
    "values.count(1)", "generator.item(3)", "int(np.max(x))",
])
def test_what_waits_for_no_device_is_not_listed(text: str) -> None:
    node = ast.parse(text, mode="eval").body
    assert isinstance(node, ast.Call) and not host_reads.is_host_read(node)


def test_every_call_of_the_source_has_a_reason() -> None:
    assert host_reads.problems(json.loads(host_reads.TABLE.read_text(encoding="utf-8"))) == []


def test_a_missing_an_unknown_and_a_stale_reason_are_named() -> None:
    table = json.loads(host_reads.TABLE.read_text(encoding="utf-8"))
    key = next(iter(table))
    del table[key]
    table["engine/none.py::f::x.item()"] = "because"
    missing, unknown, stale = host_reads.problems(table)
    assert "no reason in tools/host_reads.json" in missing and key in missing
    assert "'because' is no reason" in unknown and "has no such call any more" in stale


def test_waits_of_a_run_are_named_where_no_call_is_listed(tmp_path: Path) -> None:
    def line_of(file: str, text: str) -> str:
        lines = (host_reads.SOURCE / file).read_text(encoding="utf-8").splitlines()
        return f"{host_reads.SOURCE / file}:{next(number for number, line in enumerate(lines, 1) if text in line)}"

    listed = next(iter(host_reads.calls()))
    seen = tmp_path / "waits.txt"
    seen.write_text("\n".join([
        f"item at {host_reads.SOURCE / listed.file}:{listed.line}",                          # a listed call
        f"nonzero at {line_of('base/frames.py', 'def user_line')}",                          # no hot path
        "nonzero at no line of a program",
        *[f"nonzero at {line_of('mindspore/ops/elementwise/arithmetic.py', 'def ')}"] * 2,
    ]), encoding="utf-8")
    unlisted, = host_reads.unlisted_waits(seen)
    assert unlisted.startswith("nonzero at src/torchspore/mindspore/ops/elementwise/arithmetic.py:")
