"""What `torchspore plan` says of options that it can't take."""
from __future__ import annotations

import pytest

from torchspore.cli import plan


@pytest.mark.parametrize("words, expected", [
    ("--devices 5000", "a number from 1 to 4096"),
    ("--html none/plan.html", "a file in an existing folder"),
    ("--latency fast", "a number above 0"),
    ("--wide 3", "--devices, --bandwidth, --latency, --tflops, --memory, --capacity with a number, --machine NAME, --html FILE, "
                 "or --strategies FILE"),
])
def test_an_option_that_it_can_not_take(
    words: str, expected: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("TORCHSPORE_PLAN", raising=False)
    assert plan.run([*words.split(), "x.py"]) == 2
    hint = {"--html": "--html plan.html", "--latency": "--latency 50"}.get(words.split()[0], "--devices 8")
    assert capsys.readouterr().err == f"torchspore plan {words}: expected {expected}.\n\nhint: write {hint}.\n"
