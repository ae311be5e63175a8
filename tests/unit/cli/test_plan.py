"""Errors of `torchspore plan` about its options."""
from __future__ import annotations

import pytest

from torchspore.cli import plan

ERRORS = {
    "--devices 5000": ("--devices 5000: expected a number from 1 to 4096", "--devices 8"),
    "--html none/plan.html": ("--html none/plan.html: expected a file in an existing folder", "--html plan.html"),
    "--latency fast": ("--latency fast: expected a number above 0", "--latency 50"),
    "--wide 3": ("--wide: no such option", "the program's own options after its name"),
    "--devces 3": ("--devces: no such option", "--devices"),
    "--machine h1": (
        "--machine h1: expected h100, a100, ascend910, measured (after torchspore calibrate), or a JSON file", "--machine h100",
    ),
}


@pytest.mark.parametrize("words", ERRORS)
def test_an_option_is_refused(words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TORCHSPORE_PLAN", raising=False)
    assert plan.run([*words.split(), "x.py"]) == 2
    problem, hint = ERRORS[words]
    assert capsys.readouterr().err == f"torchspore plan {problem}.\n\nhint: write {hint}.\n"
