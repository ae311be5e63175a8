"""`torchspore ckpt to-torch --like TARGET` and `from-torch --like TARGET`: names and layouts are matched with a torch model."""
from __future__ import annotations

import re
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import nn, ops

from torchspore.cli import ckpt

MODEL = """
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width, stride):
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn = nn.BatchNorm2d(width, eps={eps})

    def forward(self, x):
        return torch.relu(self.bn(self.conv(x)))


class Net(nn.Module):
    def __init__(self, width=4, stride=1):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 1)
        self.layer = nn.Sequential(Block(width, 1), Block(width, stride))
        self.fc = nn.Linear(width, 2)

    def forward(self, x):
        return self.fc(self.layer(self.stem(x)).mean((2, 3)))


class Pair(nn.Module):
    def __init__(self, names):
        super().__init__()
        for name in names:
            self.add_module(name, nn.Linear(4, 4))

    def forward(self, x):
        for layer in self.children():
            x = layer(x).sin()
        return x
"""


class Block(nn.Cell):
    def __init__(self, stride: int, mode: str) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(4, 4, 3, stride, pad_mode=mode, padding=1 if mode == "pad" else 0)
        self.norm = nn.BatchNorm2d(4)

    def construct(self, x: Any) -> Any:
        return ops.relu(self.norm(self.convolution(x)))


class Net(nn.Cell):
    """The Net of MODEL, under other names and in another nesting."""

    def __init__(self, stride: int = 1, mode: str = "pad") -> None:
        super().__init__()
        self.backbone = nn.SequentialCell(nn.Conv2d(3, 4, 1, has_bias=True), nn.CellList([Block(1, mode), Block(stride, mode)]))
        self.classifier = nn.Dense(4, 2)

    def construct(self, x: Any) -> Any:
        x = self.backbone[0](x)
        for block in self.backbone[1]:
            x = block(x)
        return self.classifier(x.mean((2, 3)))


class Chain(nn.Cell):
    def __init__(self, names: list[str]) -> None:
        super().__init__()
        for name in names:
            setattr(self, name, nn.Dense(4, 4))

    def construct(self, x: Any) -> Any:
        for layer in self.cells():
            x = ops.sin(layer(x))
        return x


def filled(net: Any) -> Any:
    random = np.random.RandomState(1)
    for parameter in net.get_parameters():
        parameter.set_data(ms.Tensor((random.rand(*parameter.shape) + 0.1).astype(np.float32)))
    return net


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(MODEL.replace("{eps}", "1e-5"))
    (tmp_path / "other_eps.py").write_text(MODEL.replace("{eps}", "1e-3"))
    path = list(sys.path)
    yield
    sys.path[:] = path


@pytest.fixture
def cell(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], Any]:
    """Save a Cell with values as net.ckpt, and make it the Cell of `--cell nets:net`."""
    module = types.ModuleType("nets_of_the_test")
    monkeypatch.setitem(sys.modules, "nets_of_the_test", module)

    def save(net: Any) -> Any:
        module.net = filled(net)  # type: ignore[attr-defined]
        ms.save_checkpoint(net, "net.ckpt")
        return net

    return save


CELL = ("--cell", "nets_of_the_test:net")


def run(*words: str) -> int:
    return ckpt.run(list(words))


def loaded(name: str, **arguments: Any) -> torch.nn.Module:
    """A model of model.py with the values of out.pt."""
    from torchspore.torch_modules.weights import targets

    model: torch.nn.Module = getattr(targets.load("model.py"), name)(**arguments)
    model.load_state_dict(torch.load("out.pt", weights_only=True))
    return model.eval()


@pytest.mark.parametrize("options", [(), CELL])
def test_other_names_and_nesting_are_matched_by_structure(options: tuple[str, ...], cell: Any, capsys: Any) -> None:
    net = cell(Net())
    assert run("to-torch", "--like", "model.py:Net(width=4)", *options, "net.ckpt", "out.pt") == 0
    assert ("verified: input 1,3,224,224:float32" in capsys.readouterr().out) is bool(options)
    x = np.random.RandomState(2).randn(2, 3, 8, 8).astype(np.float32)
    with torch.no_grad():
        np.testing.assert_allclose(loaded("Net")(torch.from_numpy(x)).numpy(), net.set_train(False)(ms.Tensor(x)).asnumpy(), rtol=1e-5)
    assert run("from-torch", "--like", "model.py:Net", *CELL, "out.pt", "back.ckpt") == 0
    assert run("diff", "net.ckpt", "back.ckpt") == 0


def test_a_file_of_torch_as_target(cell: Any) -> None:
    from torchspore.torch_modules.weights import targets

    cell(Net())
    torch.save(targets.build("model.py:Net").state_dict(), "like.pt")
    assert run("to-torch", "--like", "like.pt", "net.ckpt", "out.pt") == 0
    assert set(torch.load("out.pt")) | {"layer.0.bn.num_batches_tracked", "layer.1.bn.num_batches_tracked"} == set(torch.load("like.pt"))


def test_a_checkpoint_as_target_gives_the_names(cell: Any, capsys: Any) -> None:
    from torchspore.torch_modules.weights import targets

    cell(Net())
    torch.save(targets.build("model.py:Net").state_dict(), "net.pt")
    assert run("from-torch", "--like", "net.ckpt", "net.pt", "out.ckpt") == 0
    assert set(ms.load_checkpoint("out.ckpt")) == set(ms.load_checkpoint("net.ckpt"))
    torch.save(targets.build("model.py:Pair(['alpha', 'beta'])").state_dict(), "pair.pt")
    cell(Chain(["first", "second"]))
    assert run("from-torch", "--like", "net.ckpt", "pair.pt", "pair.ckpt") == 2
    assert "--map 'alpha=first'" in capsys.readouterr().err
    assert run("from-torch", "--like", "net.ckpt", "--map", "alpha=first", "pair.pt", "pair.ckpt") == 0


def test_settings_that_differ_are_named_and_the_comparison_fails(cell: Any, capsys: Any) -> None:
    cell(Net(2, "same"))
    assert run("to-torch", "--like", "other_eps.py:Net(stride=2)", *CELL, "--input", "1,3,8,8", "net.ckpt", "out.pt") == 1
    printed = capsys.readouterr().out
    assert "backbone.1.1.convolution and layer.1.conv: pad_mode='same' with stride (2, 2) pads by the size of the input" in printed
    assert "backbone.1.0.norm and layer.0.bn (and 1 more pairs): set eps=1e-05 in torch, which has 0.001" in printed
    assert "DIFFERENT: input 1,3,8,8:float32" in printed and Path("out.pt").exists()
    assert run("to-torch", "--like", "other_eps.py:Net(stride=2)", *CELL, "--no-verify", "net.ckpt", "out.pt") == 0


@pytest.mark.parametrize(("ours", "theirs"), [
    (["first", "second"], ["alpha", "beta"]),
    (["fc1", "fc2"], ["fc2", "fc3"]),                        # the equal name would be the wrong pair
    (["dense1", "dense2", "dense3"], ["k", "q", "v"]),
    (["fc1", "fc2", "fc3"], ["fc1", "fc2"]),
])
def test_ambiguous_names_are_listed_and_never_guessed(ours: list[str], theirs: list[str], cell: Any, capsys: Any) -> None:
    cell(Chain(ours))
    target = f"model.py:Pair({theirs})"
    assert run("to-torch", "--like", target, "net.ckpt", "out.pt") == 2
    assert not Path("out.pt").exists()
    error = capsys.readouterr().err
    if len(ours) > len(theirs):
        assert f"only in the file: {ours[-1]}.weight" in error
        assert run("to-torch", "--like", target, "--partial", "net.ckpt", "out.pt") == 0
        return
    lines = [f"{our}={their}" for our, their in zip(ours, theirs)]
    assert f"--map '{lines[0]}'" in error
    maps = [word for line in lines for word in ("--map", line)]
    assert run("to-torch", "--like", target, *CELL, *maps, "net.ckpt", "out.pt") == 0
    assert "verified" in capsys.readouterr().out
    back = [word for our, their in zip(ours, theirs) for word in ("--map", f"{their}={our}")]
    assert run("from-torch", "--like", target, *CELL, *back, "out.pt", "back.ckpt") == 0
    assert run("diff", "net.ckpt", "back.ckpt") == 0


def test_numbered_rows_are_paired_in_order(cell: Any) -> None:
    cell(Chain(["fc1", "fc2", "fc3"]))
    assert run("to-torch", "--like", "model.py:Pair(['lin0', 'lin1', 'lin2'])", *CELL, "net.ckpt", "out.pt") == 0


def test_a_wrong_map_fails_the_comparison(cell: Any) -> None:
    cell(Chain(["first", "second"]))
    maps = ("--map", "first=beta", "--map", "second=alpha")
    assert run("to-torch", "--like", "model.py:Pair(['alpha', 'beta'])", *CELL, *maps, "net.ckpt", "out.pt") == 1


def test_blocks_of_equal_shapes_at_other_depths_are_not_confused() -> None:
    """A block whose counterpart is inside of another sub-structure must wait for it, although smaller parts of it fit others."""
    from torchspore.torch_modules.weights import structure
    from torchspore.torch_modules.weights.slots import Slot

    def slots(names: dict[str, int]) -> list[Slot]:
        return [Slot(f"{name}.{kind}", f"{name}.{kind}", shape) for name, width in names.items()
                for kind, shape in (("weight", (width, 3)), ("bias", (width,)))]

    ours = slots({f"features.{block}.layers.{layer}": width for block, widths in enumerate(([8, 8, 4], [6, 8], [8, 5])) for layer, width in
                  enumerate(widths)})
    theirs = slots({"stages.0.0.a": 8, "stages.0.0.b": 8, "stages.0.0.c": 4, "stages.1.0.a": 6, "stages.1.0.b": 8, "stages.1.1.a": 8,
                    "stages.1.1.b": 5})
    matched = structure.match(ours, theirs)
    pairs = {link.mindspore[0].name: link.torch[0].name for link in matched.links}
    for our_name, their_name in pairs.items():
        block = int(our_name.split(".")[1])
        assert their_name.startswith(("stages.0.0", "stages.1.0", "stages.1.1")[block]), pairs


def test_a_layer_is_unique_only_if_no_other_depth_has_an_equal_one() -> None:
    from torchspore.torch_modules.weights import structure
    from torchspore.torch_modules.weights.slots import Slot

    def slots(names: dict[str, int]) -> list[Slot]:
        return [Slot(f"{name}.weight", f"{name}.weight", (width, 3)) for name, width in names.items()]

    matched = structure.match(slots({"norm": 8, "e": 6, "blocks.m": 8, "blocks.c": 5, "blocks.d": 4, "blocks.f": 7}),
                              slots({"head": 8, "d": 4, "f": 7, "wrap.n": 8, "wrap.c": 5, "wrap.e": 6}))
    assert sorted(link.mindspore[0].path for link in matched.links) == ["blocks.c.weight", "blocks.d.weight", "blocks.f.weight", "e.weight"]


def test_lines_of_map_that_are_printed_are_accepted(cell: Any, capsys: Any) -> None:
    """A number on one side only is no pattern."""
    net = nn.Cell()
    net.layers = nn.CellList([nn.Dense(4, 4), nn.Dense(4, 4)])
    cell(net)
    assert run("to-torch", "--like", "model.py:Pair(['alpha', 'beta'])", "net.ckpt", "out.pt") == 2
    lines = re.findall("--map '(.*)'", capsys.readouterr().err)
    maps = [word for line in lines if line in ("layers.0=alpha", "layers.1=beta", "0=alpha", "1=beta") for word in ("--map", line)]
    assert len(maps) == 4
    assert run("to-torch", "--like", "model.py:Pair(['alpha', 'beta'])", *maps, "net.ckpt", "out.pt") == 0


@pytest.mark.parametrize(("target", "text"), [
    ("model.py:Missing", "Missing"), ("nowhere.py:Net", "nowhere.py does not exist"), ("model.py:Net(width=open)", "constants of Python"),
    ("Net", "expected timm:resnet50"), ("model.py:MODEL", "MODEL"), ("model.py:torch.relu", "relu"), ("timm:nothing_of_this_name", "timm"),
    ("no_such_module_at_all:Net", "no_such_module_at_all"), ("model.py:Net(width=5)", "certain"),
])
def test_wrong_targets_are_named(target: str, text: str, cell: Any, capsys: Any) -> None:
    cell(Net())
    assert run("to-torch", "--like", target, "net.ckpt", "out.pt") == 2
    assert text in capsys.readouterr().err and not Path("out.pt").exists()


@pytest.mark.parametrize(("words", "text"), [
    (("--map", "nothing=stem"), "--map nothing=stem"), (("--map", "word"), "old=new"), (("--map", "classifier=stem"), "shapes that fit"),
    (("--verify",), "--verify"), (("--config", "{}"), "--config"), (("--keep-names",), "--keep-names with --like"),
])
def test_wrong_options_are_named(words: tuple[str, ...], text: str, cell: Any, capsys: Any) -> None:
    cell(Net())
    assert run("to-torch", "--like", "model.py:Net", *words, "net.ckpt", "out.pt") == 2
    assert text in capsys.readouterr().err and not Path("out.pt").exists()


def test_options_of_a_target_need_one(cell: Any, capsys: Any) -> None:
    cell(Net())
    assert run("to-torch", "--map", "a=b", "net.ckpt", "out.pt") == 2
    assert "--map without --like" in capsys.readouterr().err


def test_names_by_the_layers_of_the_model() -> None:
    """Without a Cell the modules of torch tell the names: a norm's gamma, an embedding's table, the axis of a Conv1d."""
    (Path("layers.py")).write_text(
        "import torch\nclass Net(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.words = torch.nn.Embedding(5, 4)\n        self.mix = torch.nn.Conv1d(4, 4, 3)\n"
        "        self.last = torch.nn.LayerNorm(4)\n"
        "        self.act = torch.nn.PReLU()\n        self.deep = torch.nn.BatchNorm3d(4)\n")
    from torchspore.torch_modules.weights import targets

    torch.save(targets.build("layers.py:Net").state_dict(), "out.pt")
    assert run("from-torch", "--like", "layers.py:Net", "out.pt", "net.ckpt") == 0
    shapes = {name: value.shape for name, value in ms.load_checkpoint("net.ckpt").items()}
    assert shapes == {
        "words.embedding_table": (5, 4), "mix.weight": (4, 4, 1, 3), "mix.bias": (4,), "last.gamma": (4,), "last.beta": (4,), "act.w": (1,),
        "deep.bn2d.gamma": (4,), "deep.bn2d.beta": (4,), "deep.bn2d.moving_mean": (4,), "deep.bn2d.moving_variance": (4,),
    }
    assert run("to-torch", "--like", "layers.py:Net", "net.ckpt", "back.pt") == 0
    assert run("diff", "out.pt", "back.pt") == 1                 # the step count of the norm is torch's only
    assert set(torch.load("out.pt")) - set(torch.load("back.pt")) == {"deep.num_batches_tracked"}


def test_tied_parameters(cell: Any, capsys: Any) -> None:
    Path("tied.py").write_text(
        "import torch\nclass Net(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.words = torch.nn.Embedding(5, 4)\n        self.head = torch.nn.Linear(4, 5, bias=False)\n"
        "        self.head.weight = self.words.weight\n")
    net = nn.Cell()
    net.words, net.head = nn.Embedding(5, 4), nn.Dense(4, 5, has_bias=False)
    cell(net)
    assert run("to-torch", "--like", "tied.py:Net", "net.ckpt", "out.pt") == 2
    assert "they are one parameter in torch" in capsys.readouterr().err
    net.head.weight.set_data(net.words.embedding_table.value())
    ms.save_checkpoint(net, "net.ckpt")
    assert run("to-torch", "--like", "tied.py:Net", "net.ckpt", "out.pt") == 0
    assert set(torch.load("out.pt")) == {"words.weight", "head.weight"}


def test_the_code_of_a_file_does_not_run(capsys: Any) -> None:
    class Evil:
        def __reduce__(self) -> Any:
            return open, ("ran", "w")

    torch.save({"stem.weight": Evil()}, "evil.pt")
    assert run("from-torch", "--like", "model.py:Net", "evil.pt", "net.ckpt") == 2
    assert run("to-torch", "--like", "evil.pt", "evil.pt", "out.pt") == 2
    assert not Path("ran").exists()
