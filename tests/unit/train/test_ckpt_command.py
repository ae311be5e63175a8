"""`torchspore ckpt`: what it shows, how it compares, and that a net means the same in torch after the way there and back."""
from __future__ import annotations

import json
import os
import pickle
from pathlib import Path

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import nn
from safetensors.torch import load_file, save_file

from torchspore.cli import ckpt
from torchspore.mindspore.train import checkpoint_tools


class Net(nn.Cell):
    """One layer of each kind whose parameters have other names in torch."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(7, 4)
        self.norm = nn.LayerNorm((4,), epsilon=1e-5)
        self.dense = nn.Dense(4, 6)
        self.batch = nn.BatchNorm1d(6)

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        return self.batch(self.dense(self.norm(self.words(x))))


class TorchNet(torch.nn.Module):
    """The same net in torch."""

    def __init__(self) -> None:
        super().__init__()
        self.words = torch.nn.Embedding(7, 4)
        self.norm = torch.nn.LayerNorm((4,))
        self.dense = torch.nn.Linear(4, 6)
        self.batch = torch.nn.BatchNorm1d(6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.batch(self.dense(self.norm(self.words(x))))


def trained() -> Net:
    """A net whose values are all distinct."""
    net, chance = Net(), np.random.RandomState(3)
    for parameter in net.get_parameters():
        parameter.set_data(ms.Tensor(chance.rand(*parameter.shape).astype(np.float32) + 0.5))
    return net.set_train(False)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("end", ["pt", "safetensors"])
def test_a_net_means_the_same_in_torch(here: Path, end: str) -> None:
    net, words = trained(), np.array([1, 5, 6], np.int32)
    ms.save_checkpoint(net, "net.ckpt")
    assert ckpt.run(["to-torch", "net.ckpt", f"net.{end}"]) == 0
    twin = TorchNet().eval()
    state = torch.load(f"net.{end}") if end == "pt" else load_file(f"net.{end}")
    twin.load_state_dict({**state, "batch.num_batches_tracked": torch.tensor(0)})
    expected = twin(torch.from_numpy(words)).detach().numpy()
    np.testing.assert_allclose(net(ms.Tensor(words)).asnumpy(), expected, rtol=1e-5)


def test_the_way_back_is_the_same_file(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ms.save_checkpoint(trained(), "net.ckpt")
    twin = TorchNet()
    assert ckpt.run(["to-torch", "net.ckpt", "net.pt"]) == 0
    twin.load_state_dict(torch.load("net.pt"), strict=False)
    torch.save({"epoch": 3, "state_dict": twin.state_dict()}, "twin.pth")
    assert ckpt.run(["from-torch", "twin.pth", "back.ckpt", "--like", "net.ckpt"]) == 0
    assert "batch.num_batches_tracked" in capsys.readouterr().out
    assert ckpt.run(["diff", "net.ckpt", "back.ckpt"]) == 0
    assert ckpt.run(["from-torch", "twin.pth", "guessed.ckpt"]) == 0
    names = set(ms.load_checkpoint("guessed.ckpt"))
    assert {"norm.gamma", "norm.beta", "batch.gamma", "batch.moving_variance", "dense.weight", "words.weight"} <= names


def test_diff_names_the_position(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, other = np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(6, dtype=np.float32).reshape(2, 3)
    other[1, 2] += 0.5
    large_numbers = np.array([2**53, 2**53 + 1])
    ms.save_checkpoint({"w": ms.Tensor(first), "n": ms.Tensor(large_numbers)}, "a.ckpt")
    ms.save_checkpoint({"w": ms.Tensor(other), "n": ms.Tensor(large_numbers[::-1].copy())}, "b.ckpt")
    assert ckpt.run(["diff", "a.ckpt", "b.ckpt"]) == 1
    output = capsys.readouterr().out
    assert "1 of 6 values, most at [1, 2]" in output
    assert "2 of 2 values" in output, "numbers that are one as float64"
    assert ckpt.run(["diff", "a.ckpt", "b.ckpt", "--atol", "1"]) == 0


def test_bfloat16_goes_through_bit_by_bit(here: Path) -> None:
    bits = torch.tensor([0.1, -3.0, float("nan"), float("inf")], dtype=torch.bfloat16)
    save_file({"half": bits}, "h.safetensors")
    assert ckpt.run(["from-torch", "h.safetensors", "h.ckpt", "--keep-names"]) == 0
    assert ckpt.run(["to-torch", "h.ckpt", "h.pt", "--keep-names"]) == 0
    assert torch.equal(torch.load("h.pt")["half"].view(torch.int16), bits.view(torch.int16))


def test_show_as_json(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ms.save_checkpoint({"w": ms.Tensor([1.0, np.nan])}, "w.ckpt", append_dict={"epoch": 4, "note": "x"})
    assert ckpt.run(["show", "w.ckpt", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["checksum"] == "fits"
    assert [(parameter["name"], parameter["type"], parameter["finite"]) for parameter in record["parameters"]] == [
        ("w", "Float32", False), ("epoch", "Int64", True), ("note", "str", True)
    ]


class Trap:
    """What a hostile file would make run."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, ("ran",)


def test_nothing_in_a_file_of_torch_runs(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("trap.pt").write_bytes(pickle.dumps({"w": Trap()}))
    torch.save({"w": Trap()}, "zip.pt")
    for name in ("trap.pt", "zip.pt"):
        assert ckpt.run(["from-torch", name, "out.ckpt"]) == 2
        assert name in capsys.readouterr().err
    assert sorted(path.name for path in here.iterdir()) == ["trap.pt", "zip.pt"]


@pytest.mark.parametrize(("line", "message"), [
    (["show", "gone.ckpt"], "a file that exists"),
    (["show", "made.txt"], "a file name that ends with .ckpt"),
    (["to-torch", "w.ckpt", "w.ckpt"], "a file name that ends with .safetensors, .pt"),
    (["from-torch", "two.safetensors", "no/out.ckpt"], "a folder that exists"),
    (["to-torch", "two.safetensors", "out.pt"], "two parameters, where both are 'n.weight'"),
    (["from-torch", "two.safetensors", "out.ckpt", "--like", "w.ckpt"], "tensors without a certain counterpart: 1 of the output"),
    (["shwo", "w.ckpt"], "write `torchspore ckpt show"),
])
def test_errors_are_reported(here: Path, capsys: pytest.CaptureFixture[str], line: list[str], message: str) -> None:
    ms.save_checkpoint({"w": ms.Tensor([1.0])}, "w.ckpt")
    save_file({"n.weight": torch.ones(1), "n.gamma": torch.ones(1), "n.beta": torch.ones(1)}, "two.safetensors")
    assert ckpt.run(line) == 2
    assert message in capsys.readouterr().err
    assert not Path("out.ckpt").exists() and not Path("out.pt").exists()


def test_views_and_tensors_elsewhere(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.save({"turned": torch.conj(torch.tensor([1 + 2j])), "less": torch._neg_view(torch.ones(2))}, "views.pt")
    assert ckpt.run(["from-torch", "views.pt", "views.ckpt", "--keep-names"]) == 0
    results = {entry.name: entry.values.tolist() for entry in checkpoint_tools.read("views.ckpt")[0]}
    assert results == {"turned": [1 - 2j], "less": [-1, -1]}
    torch.save({"w": torch.empty(2, device="meta")}, "meta.pt")
    capsys.readouterr()
    assert ckpt.run(["show", "meta.pt"]) == 2
    assert "meta.pt: 'w' is float32 (meta, strided): expected a state_dict" in capsys.readouterr().err


def test_errors_of_torch_files_give_no_bad_advice(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.save({"w": Path("x")}, "objects.pt")
    Path("nothing.pt").touch()
    assert [ckpt.run(["show", name]) for name in ("objects.pt", "nothing.pt")] == [2, 2]
    assert capsys.readouterr().err.split("\n")[:2] == [
        "torchspore ckpt: objects.pt: other objects than tensors, or damage: expected a file of torch.save(net.state_dict()).",
        "torchspore ckpt: nothing.pt: an empty file: expected a file of torch.save(net.state_dict()).",
    ]


def test_a_name_commands_no_terminal(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.save({"a\nb\x1b[2J": torch.ones(1)}, "names.pt")
    assert ckpt.run(["show", "names.pt"]) == 0
    assert capsys.readouterr().out.split("\n")[1].startswith(r"'a\nb\x1b[2J'  Float32  [1]")
