"""`torchspore ckpt to-torch` and `from-torch` for each layer: torch loads the file, computes the same, and the file comes back equal."""
from __future__ import annotations

import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import nn

from torchspore.cli import ckpt

PAD = {"pad_mode": "pad", "padding": 1, "has_bias": True}
LAYERS: dict[str, tuple[Callable[[], Any], Callable[[], Any], tuple[int, ...]]] = {
    "dense": (lambda: nn.Dense(4, 5), lambda: torch.nn.Linear(4, 5), (2, 4)),
    "conv1d": (lambda: nn.Conv1d(3, 4, 3, **PAD), lambda: torch.nn.Conv1d(3, 4, 3, padding=1), (2, 3, 8)),
    "conv2d": (lambda: nn.Conv2d(4, 6, 3, group=2, **PAD), lambda: torch.nn.Conv2d(4, 6, 3, padding=1, groups=2), (2, 4, 8, 8)),
    "conv3d": (lambda: nn.Conv3d(3, 4, 3, **PAD), lambda: torch.nn.Conv3d(3, 4, 3, padding=1), (1, 3, 5, 5, 5)),
    "conv1dtranspose": (lambda: nn.Conv1dTranspose(3, 4, 3, **PAD), lambda: torch.nn.ConvTranspose1d(3, 4, 3, padding=1), (2, 3, 8)),
    "batchnorm1d": (lambda: nn.BatchNorm1d(4), lambda: torch.nn.BatchNorm1d(4), (3, 4)),
    "batchnorm2d": (lambda: nn.BatchNorm2d(4), lambda: torch.nn.BatchNorm2d(4), (3, 4, 5, 5)),
    "batchnorm3d": (lambda: nn.BatchNorm3d(4), lambda: torch.nn.BatchNorm3d(4), (3, 4, 2, 2, 2)),
    "layernorm": (lambda: nn.LayerNorm((4,), epsilon=1e-5), lambda: torch.nn.LayerNorm(4), (3, 4)),
    "groupnorm": (lambda: nn.GroupNorm(2, 4), lambda: torch.nn.GroupNorm(2, 4), (3, 4, 5, 5)),
    "prelu": (lambda: nn.PReLU(3), lambda: torch.nn.PReLU(3), (2, 3, 4, 4)),
    "lstm": (lambda: nn.LSTM(4, 5, 2, bidirectional=True, batch_first=True),
             lambda: torch.nn.LSTM(4, 5, 2, bidirectional=True, batch_first=True), (2, 3, 4)),
    "gru": (lambda: nn.GRU(4, 5, batch_first=True), lambda: torch.nn.GRU(4, 5, batch_first=True), (2, 3, 4)),
    "encoder": (lambda: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True),
                lambda: torch.nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True), (2, 3, 8)),
    "encoders": (lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), 2),
                 lambda: torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True), 2), (2, 3, 8)),
}
CELL = ("--cell", "module_of_the_test:factory")
INSTANCE = (lambda: nn.InstanceNorm2d(4), lambda: torch.nn.InstanceNorm2d(4, affine=True), (3, 4, 5, 5))


class Around(nn.Cell):
    """A net with one layer, whose parameters carry the layer's name."""

    def __init__(self, layer: nn.Cell) -> None:
        super().__init__()
        self.layer = layer

    def construct(self, x: ms.Tensor) -> Any:
        return self.layer(x)


class TorchAround(torch.nn.Module):
    """The same in torch."""

    def __init__(self, layer: torch.nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: torch.Tensor) -> Any:
        return self.layer(x)


def filled(net: Any) -> Any:
    """The net in evaluation, with random values."""
    random = np.random.RandomState(1)
    for parameter in net.get_parameters():
        parameter.set_data(ms.Tensor((random.rand(*parameter.shape) * 0.5 + 0.1).astype(np.float32)))
    return net.set_train(False)


def check_to_torch(net: Any, twin: Any, shape: tuple[int, ...], *options: str) -> None:
    """The checkpoint of `net` loads into `twin`, which computes the same."""
    x = np.random.RandomState(2).randn(*shape).astype(np.float32)
    expected = net(ms.Tensor(x))
    ms.save_checkpoint(net, "net.ckpt")
    assert ckpt.run(["to-torch", "net.ckpt", "net.pt", *options]) == 0
    twin.load_state_dict(torch.load("net.pt"))
    with torch.no_grad():
        result = twin.eval()(torch.from_numpy(x))
    expected, result = (value[0] if isinstance(value, tuple) else value for value in (expected, result))
    np.testing.assert_allclose(result.numpy(), expected.asnumpy(), rtol=1e-4, atol=1e-5)


def check_from_torch(twin: Any, *options: str) -> set[str]:
    """What comes back equals net.ckpt. Return the names of net.ckpt that did not come back."""
    torch.save(twin.state_dict(), "back.pt")
    assert ckpt.run(["from-torch", "back.pt", "back.ckpt", *options]) == 0
    back, original = ms.load_checkpoint("back.ckpt"), ms.load_checkpoint("net.ckpt")
    for name in back:
        np.testing.assert_array_equal(back[name].asnumpy(), original[name].asnumpy())
    return set(original) - set(back)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("is_root", [True, False])
@pytest.mark.parametrize("name", [name for name in LAYERS if name != "batchnorm3d"])
def test_names_and_shapes_are_enough(name: str, is_root: bool) -> None:
    make, make_torch, shape = LAYERS[name]
    net, twin = (make(), make_torch()) if is_root else (Around(make()), TorchAround(make_torch()))
    check_to_torch(filled(net), twin, shape)
    assert check_from_torch(twin) == set()
    assert check_from_torch(twin, "--like", "net.ckpt") == set()


def test_a_batch_norm_of_volumes_as_the_root() -> None:
    make, make_torch, shape = LAYERS["batchnorm3d"]
    twin = make_torch()
    check_to_torch(filled(make()), twin, shape)
    assert check_from_torch(twin, "--like", "net.ckpt") == set()


@pytest.mark.parametrize("name", [*LAYERS, "instancenorm"])
def test_the_cell_decides(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make, make_torch, shape = {**LAYERS, "instancenorm": INSTANCE}[name]
    use_factory(monkeypatch, lambda: Around(make()))
    twin = TorchAround(make_torch())
    check_to_torch(filled(Around(make())), twin, shape, *CELL)
    statistics = {"layer.moving_mean", "layer.moving_variance"} if name == "instancenorm" else set()
    assert check_from_torch(twin, *CELL) == statistics


def use_factory(monkeypatch: pytest.MonkeyPatch, factory: Callable[[], Any]) -> None:
    """Make `--cell module_of_the_test:factory` call this function."""
    module = types.ModuleType("module_of_the_test")
    module.factory = factory  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "module_of_the_test", module)


def test_settings_that_compute_other_values_are_listed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def factory() -> nn.Cell:
        return nn.SequentialCell(nn.Conv2d(1, 2, 3, stride=2), nn.Conv2d(2, 2, 3), nn.LayerNorm((4,)), nn.Dense(4, 4, activation="relu"))

    use_factory(monkeypatch, factory)
    ms.save_checkpoint(factory(), "net.ckpt")
    assert ckpt.run(["to-torch", "net.ckpt", "net.pt", *CELL]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "written: net.pt",
        "note: 0: pad_mode='same' with stride=(2, 2) has no counterpart in torch: pad the input by torch.nn.functional.pad.",
        "note: 1: pad_mode='same' is padding='same' in torch.",
        "note: 2: set eps=1e-07 in torch, whose default is 1e-05.",
        "note: 3: torch.nn.Linear has no activation: apply it after the layer.",
    ]


def test_layers_without_a_counterpart_are_listed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    use_factory(monkeypatch, lambda: nn.SequentialCell(nn.MultiFieldEmbeddingLookup(7, 4, 2)))
    ms.save_checkpoint({"0.embedding_table": ms.Tensor(np.ones((7, 4), np.float32))}, "net.ckpt")
    assert ckpt.run(["to-torch", "net.ckpt", "net.pt", *CELL]) == 2
    assert capsys.readouterr().err == (
        "torchspore ckpt: torch.nn has no such layers: 0 (MultiFieldEmbeddingLookup).\n\n"
        "hint: --keep-names writes all parameters under MindSpore's names.\n"
    )
    assert not Path("net.pt").exists()


def test_a_cell_of_another_net_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    use_factory(monkeypatch, lambda: nn.Dense(4, 5))
    ms.save_checkpoint(nn.Dense(3, 5), "net.ckpt")
    assert ckpt.run(["to-torch", "net.ckpt", "net.pt", *CELL]) == 2
    message = "net.ckpt: 'weight' is of shape [5, 3]: expected the shape [5, 4], as in --cell module_of_the_test:factory."
    assert message in capsys.readouterr().err
    ms.save_checkpoint({**dict(nn.Dense(4, 5).parameters_dict()), "more": ms.Tensor([1.0])}, "net.ckpt")
    assert ckpt.run(["to-torch", "net.ckpt", "net.pt", *CELL]) == 2
    assert "net.ckpt: 'more': expected parameters of --cell" in capsys.readouterr().err
    for text, message in (("no_such_module_here:f", "No module named"), ("module_of_the_test:g", "MODULE:FACTORY"),
                          ("factory", "no module")):
        assert ckpt.run(["to-torch", "net.ckpt", "net.pt", "--cell", text]) == 2
        assert message in capsys.readouterr().err
    use_factory(monkeypatch, lambda: 3)
    assert ckpt.run(["to-torch", "net.ckpt", "net.pt", *CELL]) == 2
    assert "a Cell, or a callable that returns one, got int" in capsys.readouterr().err


def test_weights_that_fit_two_layers_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    net = nn.SequentialCell(nn.Conv2d(1, 2, 3), nn.Conv2d(2, 2, (1, 7)), nn.Conv2d(2, 2, 1))
    ms.save_checkpoint(net, "net.ckpt")
    assert ckpt.run(["to-torch", "net.ckpt", "net.pt"]) == 2
    assert capsys.readouterr().err == (
        "torchspore ckpt: '1.weight': a weight of shape [2, 2, 1, 7] is a Conv1d's or a Conv2d's; the file does not tell which.\n\n"
        "hint: pass --cell MODULE:FACTORY, or --conv 1d or --conv 2d.\n"
    )
    assert ckpt.run(["to-torch", "net.ckpt", "net.pt", "--conv", "2d"]) == 0
    assert [tuple(value.shape) for value in torch.load("net.pt").values()] == [(2, 1, 3, 3), (2, 2, 1, 7), (2, 2, 1, 1)]


def test_values_of_the_optimizer_are_omitted(capsys: pytest.CaptureFixture[str]) -> None:
    net = nn.SequentialCell(nn.Dense(4, 5))
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.Adam(net.trainable_params(), 0.1))
    ms.save_checkpoint(step, "net.ckpt", append_dict={"epoch_num": 3})
    assert ckpt.run(["to-torch", "net.ckpt", "net.pt"]) == 0
    assert set(torch.load("net.pt")) == {"0.weight", "0.bias"}
    assert "left out, because the other side has no counterpart: " in capsys.readouterr().out


def test_names_of_the_program_stay() -> None:
    ms.save_checkpoint({"scale.gamma": ms.Tensor([1.0]), "dense1.weight": ms.Tensor([[1.0]]), "w": ms.Tensor([1.0])}, "net.ckpt")
    assert ckpt.run(["to-torch", "net.ckpt", "net.pt"]) == 0
    assert set(torch.load("net.pt")) == {"scale.gamma", "dense1.weight", "w"}


def test_guesses_are_reported(capsys: pytest.CaptureFixture[str]) -> None:
    ms.save_checkpoint(nn.SequentialCell(nn.Conv1d(1, 2, 3), nn.BatchNorm1d(2)), "net.ckpt")
    assert ckpt.run(["to-torch", "net.ckpt", "net.pt"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "written: net.pt",
        "note: written for Conv1d: '0.weight'. If these are Conv2d weights with a kernel of (1, k), pass --conv 2d or --cell.",
        "note: '1.moving_mean': BatchNorm and InstanceNorm have the same names. The values are written for BatchNorm. "
        "For InstanceNorm pass --cell.",
        "note: a checkpoint has no settings. Compare pad_mode (MindSpore: 'same'), epsilon (LayerNorm: 1e-7) and data_format with "
        "the torch module. --cell lists the settings that differ.",
    ]
    torch.save({"a.weight": torch.ones(2, 1, 3), "b.weight": torch.ones(2), "c.weight": torch.ones(2, 3)}, "net.pt")
    assert ckpt.run(["from-torch", "net.pt", "back.ckpt"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "written: back.ckpt",
        "note: written for Conv1d, with the axis of length 1 that MindSpore has: 'a.weight'. "
        "For BiDense and mint.nn.Conv1d pass --cell, --like or --conv 2d.",
        "note: written for PReLU: 'b.weight'. If these are weights of a norm, pass --cell or --like.",
        "note: written for Dense layers without a bias: 'c.weight'. For Embedding pass --cell or --like.",
    ]
    torch.save({"0.weight": torch.ones(2, 1, 3)}, "net.pt")
    assert ckpt.run(["from-torch", "net.pt", "back.ckpt", "--like", "net.ckpt"]) == 0
    assert "note: the file of torch has no values for '1.moving_mean', '1.moving_variance'" in capsys.readouterr().out
