"""The commands of pages that read a model of a library or the files of another run.

Small modules named `timm` and `transformers` replace the libraries, so that nothing is downloaded.
"""
from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from support.page_commands import PAGES, commands_of
from support.processes import Run

ROOT = Path(__file__).resolve().parents[2]
MODELS = {
    "model.py": """
from torch import nn


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv1, self.bn1, self.fc = nn.Conv2d(3, width, 3, bias=False), nn.BatchNorm2d(width), nn.Linear(width, 4)

    def forward(self, x):
        return self.fc(self.bn1(self.conv1(x)).relu().mean((2, 3)))
""",
    "timm.py": """
import model


def is_model(name):
    return name == "resnet50"


def create_model(name, pretrained):
    assert not pretrained
    return model.Net(64)
""",
    "transformers.py": """
import types

import torch
from torch import nn


class Conv1D(nn.Module):
    def __init__(self, outputs, inputs):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(inputs, outputs)), nn.Parameter(torch.randn(outputs))


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.ln_1, self.ln_2, self.attn, self.mlp = nn.LayerNorm(width), nn.LayerNorm(width), nn.Module(), nn.Module()
        self.attn.c_attn, self.attn.c_proj = Conv1D(3 * width, width), Conv1D(width, width)
        self.mlp.c_fc, self.mlp.c_proj = Conv1D(4 * width, width), Conv1D(width, 4 * width)


class GPT2LMHeadModel(nn.Module):
    config_class = types.SimpleNamespace

    def __init__(self, config):
        super().__init__()
        self.config, width, self.transformer = config, config.n_embd, nn.Module()
        self.transformer.wte, self.transformer.wpe = nn.Embedding(config.vocab_size, width), nn.Embedding(config.n_positions, width)
        self.transformer.h, self.transformer.ln_f = nn.ModuleList(Block(width) for _ in range(config.n_layer)), nn.LayerNorm(width)
        self.lm_head = nn.Linear(width, config.vocab_size, bias=False)
        self.lm_head.weight = self.transformer.wte.weight
""",
    "train.py": """
from mindspore import nn, ops


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.head = nn.Conv2d(3, 64, 3, pad_mode="valid"), nn.BatchNorm2d(64, eps=1e-5), nn.Dense(64, 4)

    def construct(self, x):
        return self.head(ops.relu(self.norm(self.conv(x))).mean((2, 3)))


def create_net():
    return Net()
""",
    "save.py": """
import json

import mindspore as ms
import model
import torch
import train
import transformers

config = {"vocab_size": 11, "n_positions": 8, "n_embd": 8, "n_layer": 2, "n_head": 2}
open("config.json", "w").write(json.dumps(config))
torch.save(transformers.GPT2LMHeadModel(transformers.GPT2LMHeadModel.config_class(**config)).state_dict(), "gpt2.pt")
torch.save(model.Net(64).state_dict(), "model.pt")
ms.save_checkpoint(train.create_net(), "net.ckpt")
""",
}
PROGRAM = """
import os

import mindspore as ms
import numpy as np
from mindspore import nn

ms.set_seed(1)
ms.set_context(mode=ms.GRAPH_MODE if "TORCHSPORE_TUNING" in os.environ else ms.PYNATIVE_MODE)
net = nn.SequentialCell(nn.Dense(64, 64), nn.ReLU(), nn.Dense(64, 4))
step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.1))
profiler = ms.Profiler(output_path="profile") if "PROFILE" in os.environ else None
for _ in range(2):
    print(step(ms.Tensor(np.ones((8, 64), np.float32)), ms.Tensor(np.ones((8, 4), np.float32))))
if profiler is not None:
    profiler.analyse()
"""
DUMP = {"common_dump_settings": {"dump_mode": 0, "net_name": "Net", "iteration": "all", "saved_data": "full", "input_output": 0,
                                 "kernels": [], "support_device": [0]}}
AFTER_A_RUN = {"calibrate", "tune", "port", "rdr", "replay", "diff", "trace"}


def commands_with(page: str, word: str) -> list[list[str]]:
    """Return the commands of a page that have this word."""
    return [words for words in commands_of(page) if word in words]


def finish(ended: Run, code: int = 0) -> Run:
    """Check the exit code of a command."""
    assert ended.code == code, ended.out + ended.err
    return ended


@pytest.mark.slow
@pytest.mark.sample
def test_commands_with_a_torch_model_run(run: Callable[..., Run], tmp_path: Path) -> None:
    for name, text in MODELS.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    finish(run("run", "save.py", timeout=400))
    gpt2 = ("--like", "transformers:GPT2LMHeadModel", "--config", "config.json")
    finish(run("ckpt", "from-torch", *gpt2, "--convention", "mindformers", "gpt2.pt", "gpt2.ckpt", timeout=400))
    outputs = {}
    for page in ("docs/guides/pytorch.md", "docs/commands.md"):
        for words in commands_with(page, "--like"):
            ended = finish(run(*words, timeout=400))
            assert (tmp_path / words[-1]).exists()
            outputs[words[-1]] = ended.out + ended.err
    assert {*outputs} == {"resnet50.pt", "model.safetensors", "net.ckpt", "net.pt"}
    assert all("largest difference" in outputs[name] for name in ("resnet50.pt", "net.ckpt")), outputs
    finish(run("ckpt", "diff", "gpt2.pt", "model.safetensors", timeout=400))


def test_other_commands_with_a_torch_model_run_elsewhere() -> None:
    """The guide about checkpoints has a test of its own."""
    assert {page for page in PAGES if commands_with(page, "--like")} == {
        "docs/commands.md", "docs/guides/pytorch.md", "docs/guides/checkpoints.md"}


def write_runs(run: Callable[..., Run], folder: Path) -> None:
    """Write the files that docs/commands.md names: of a recorder, of dumps, a profile, graphs to tune."""
    (folder / "train.py").write_text(PROGRAM, encoding="utf-8")
    (folder / "net.py").write_text(MODELS["train.py"], encoding="utf-8")
    shutil.copytree(ROOT / "tests/unit/distributed/flight_recorder/kind", folder / "logs")
    recorder = {"MS_RDR_ENABLE": "1", "MS_RDR_MODE": "2", "MS_RDR_REPLAY": "1", "MS_RDR_PATH": str(folder / "record")}
    runs: list[dict[str, str]] = [recorder, {"PROFILE": "1"}]
    for name in ("dump_a", "dump_b"):
        settings = {"common_dump_settings": {**DUMP["common_dump_settings"], "path": str(folder / name)}}
        (folder / f"{name}.json").write_text(json.dumps(settings), encoding="utf-8")
        runs.append({"MINDSPORE_DUMP_CONFIG": str(folder / f"{name}.json")})
    runs.append({"TORCHSPORE_TUNING": str(folder / "tuning"), "TORCHSPORE_FORCE_AOE_TUNE_MODE": "offline"})
    for variables in runs:
        finish(run("run", "train.py", extra=variables, timeout=400))


@pytest.mark.slow
def test_commands_after_a_run(run: Callable[..., Run], tmp_path: Path) -> None:
    write_runs(run, tmp_path)
    limits = {"XDG_CACHE_HOME": str(tmp_path / "home"), "TORCHSPORE_TUNE_SECONDS": "5"}
    executed = set()
    for words in commands_of("docs/commands.md"):
        if words[0] in AFTER_A_RUN:
            ended = run(*words, extra=limits, timeout=600)
            assert ended.code == 0, f"torchspore {shlex.join(words)}: {ended.code}\n{ended.out}{ended.err}"
            executed.add(words[0])
    assert executed == AFTER_A_RUN
