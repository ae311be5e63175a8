"""LeNet, an MLP, ResNet-18 and a GPT of four layers train: the loss falls, and both modes give the same numbers."""
from __future__ import annotations

import importlib
import sys
from pathlib import Path

import mindspore as ms
import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.mark.parametrize(
    "program", ["mlp", "lenet", pytest.param("resnet18", marks=pytest.mark.slow), pytest.param("gpt", marks=pytest.mark.slow)],
)
def test_the_loss_falls_alike_in_both_modes(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    losses = {}
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        ms.set_seed(1)
        step = importlib.import_module(f"programs.{program}").step()
        losses[mode] = [float(step().asnumpy()) for _ in range(6)]
        ms.set_context(mode=ms.PYNATIVE_MODE)
    assert losses[0] == losses[1]
    assert losses[0][-1] < losses[0][0]
    for name in [name for name in sys.modules if name == "programs" or name.startswith("programs.")]:
        del sys.modules[name]
