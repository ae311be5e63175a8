"""What models of public repositories do beyond the tests of each rule: each case made one of them fail."""
from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from support.training_scripts import MODEL, assert_verified, ported

from torchspore.port import complete_port
from torchspore.port.analysis.source import PortError, Source
from torchspore.port.rewriting import torch_file

HEAD = """import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common.initializer import HeUniform, initializer


"""
MODELS = {
    "items of a Parameter": ("""class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.weight = Parameter(ops.randn((2, 3, 4)))
        for i in range(2):
            self.weight[i] = initializer(HeUniform(), self.weight[i].shape, self.weight[i].dtype)

    def construct(self, x):
        return ops.matmul(x, self.weight.sum(0).T)
""", "", "5,4"),
    "a class of layers with MindSpore's arguments": ("""class Up(nn.Conv2dTranspose):
    def __init__(self, channels, kernel_size, pad_mode, padding):
        super().__init__(channels, channels, kernel_size, stride=2, pad_mode=pad_mode, padding=padding, has_bias=True)


class Volume(nn.Conv3d):
    def __init__(self, channels):
        super().__init__(1, channels, 3)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.up, self.same, self.volume, self.norm = Up(3, 4, "pad", 1), Up(3, 3, "same", 0), Volume(2), nn.BatchNorm3d(2)

    def construct(self, x):
        return self.norm(self.volume(self.same(self.up(x)).expand_dims(1)))
""", "", "2,3,5,6"),
    "dropout without layers": ("""class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.drop, self.drop3d, self.dense = ops.Dropout2D(0.8), ops.Dropout3D(), nn.Dense(6, 2)

    def construct(self, x):
        x, _ = self.drop(x)
        y, _ = self.drop3d(x.expand_dims(2))
        return self.dense(ops.dropout(y.squeeze(2), 0.3, self.training))
""", "", "2,3,5,6"),
    "lower precision": ("""class Net(nn.Cell):
    def __init__(self, table):
        super().__init__()
        self.table = table
        self.first, self.second = nn.Dense(6, 5).to_float(ms.float16), nn.Dense(5, 2)

    def construct(self, x):
        return self.second(ops.relu(self.first(ops.matmul(x, self.table))).astype(ms.float32))
""", "Tensor(np.eye(6, dtype=np.float32))", "4,6"),
    "sizes of layers": ("""class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv, self.dense = nn.Conv2d(3, 4, 3), nn.Dense(4, 2)
        self.sizes = []
        for _, cell in self.cells_and_names():
            if isinstance(cell, nn.Conv2d):
                self.sizes.append(cell.in_channels * cell.kernel_size[0])
            elif isinstance(cell, nn.Dense):
                self.sizes.append(cell.in_channels + cell.out_channels)
        self.sizes.append(self.dense.in_channels)

    def construct(self, x):
        return self.dense(self.conv(x).mean((2, 3))) * sum(self.sizes)
""", "", "2,3,5,6"),
    "a ParameterTuple with names": ("""class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.factors = ms.ParameterTuple([Parameter(initializer("ones", (4,)), name=f"factor_{i}") for i in range(2)])

    def construct(self, x):
        return x * self.factors[0] + self.factors[1]
""", "", "3,4"),
    "decorators, logs and checkpoints": ("""from mindspore import load_param_into_net, log as logger
from mindspore.ops.primitive import constexpr
from mindspore.train.serialization import load_checkpoint


@constexpr
def first_state(shape):
    return Tensor(np.ones(shape), ms.float32)


class Net(nn.Cell):
    def __init__(self, path=None):
        super().__init__()
        self.dense = nn.Dense(4, 2)
        logger.warning("a net without weights" if path is None else path)
        if path is not None:
            load_param_into_net(self.dense, load_checkpoint(path))

    def construct(self, x):
        return self.dense(x) + first_state((x.shape[0], 2))
""", "", "3,4"),
    "statistics by an argument": ("""class Block(nn.Cell):
    def __init__(self, use_batch_statistics):
        super().__init__()
        self.norm = nn.BatchNorm2d(3, use_batch_statistics=use_batch_statistics)

    def construct(self, x):
        return self.norm(x)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.blocks = nn.SequentialCell([Block(value) for value in (None, False, True)])
        self.norm = nn.BatchNorm2d(3, use_batch_statistics=False)

    def construct(self, x):
        return self.norm(self.blocks(x))
""", "", "2,3,5,6"),
    "four numbers as padding": ("""def conv(size, padding=0):
    return nn.Conv2d(3, 3, size, pad_mode="pad", padding=padding)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.convs = nn.SequentialCell([conv((1, 7), padding=(0, 0, 3, 3)), conv(3, padding=1), conv((3, 1), (1, 1, 0, 0))])

    def construct(self, x):
        return self.convs(x)
""", "", "2,3,5,6"),
    "a crop and reversed sequences": ("""class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.crop, self.reverse = nn.CentralCrop(0.6), ops.ReverseSequence(seq_dim=0, batch_dim=1)

    def construct(self, x):
        y = self.crop(x).sum((0, 1))
        return self.reverse(x[0, 0], Tensor([2, 3, 1, 0, 5, 4], ms.int32)), ops.ReverseSequence(2)(x[0], Tensor([2, 3, 1], ms.int32)), y
""", "", "2,3,5,6"),
    "an initializer of the program": ("""from mindspore.common import initializer as init


class Linear(init.Initializer):
    def __init__(self, scale=2.0):
        super().__init__(scale=scale)
        self.scale = scale

    def _initialize(self, arr):
        arr[:] = np.linspace(0, self.scale, arr.size).reshape(arr.shape)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(4, 2, weight_init=Linear(3.0))

    def construct(self, x):
        return self.dense(x)
""", "", "3,4"),
    "the momentum of norms": ("""class Net(nn.Cell):
    def __init__(self, momentum=0.3):
        super().__init__()
        self.norms = nn.SequentialCell([nn.BatchNorm2d(3), nn.BatchNorm2d(3)])
        self.last = nn.BatchNorm2d(3)
        for _, cell in self.norms.cells_and_names():
            if isinstance(cell, nn.BatchNorm2d):
                cell.momentum = 0.1
        self.last.momentum = momentum

    def construct(self, x):
        return self.last(self.norms(x))
""", "", "2,3,5,6"),
    "statistics compared in float64": ("""class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm2d(3, momentum=0.1)

    def construct(self, x):
        y = self.norm(x)
        return y * 1e5 - (y * 1e5 + 1e-3)
""", "", "2,3,5,6"),
    "a pooling of powers": ("""class Net(nn.Cell):
    def construct(self, x):
        return ops.lp_pool2d(x, norm_type=1, kernel_size=(x.shape[2], x.shape[3]), stride=(x.shape[2], x.shape[3]))
""", "", "2,3,5,6"),
}


@pytest.mark.parametrize("case", MODELS)
def test_models(case: str, tmp_path: Path) -> None:
    text, arguments, example = MODELS[case]
    path = tmp_path / "net_of_test.py"
    path.write_text(HEAD + text, encoding="utf-8")
    outcome = complete_port.port_file(str(path), ["Net"], arguments, [example])
    assert not outcome.ported.problems, outcome.ported.problems
    verdict, *_ = outcome.verdicts
    assert verdict.is_equal, verdict


def test_a_class_that_reads_a_cell_of_the_program_is_omitted() -> None:
    ported_file = torch_file.port(Source(HEAD + """class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(4, 2)

    def construct(self, x):
        return self.dense(x)


net = Net()
optimizer = nn.SGD(net.trainable_params())


class Loss(nn.Cell):
    def construct(self, x):
        return net(x).sum()
"""))
    assert ported_file.classes == ["Net"] and not ported_file.problems
    assert ported_file.omitted_classes["Loss"].text == "Loss reads net, which the program creates"


def test_packages_without_mindspore_stay_as_they_are() -> None:
    text = "from easydict import EasyDict as edict\n" + HEAD + """config = edict({"size": 4})


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(config.size, 2)

    def construct(self, x):
        return self.dense(x)
"""
    assert torch_file.port(Source(text)).text.startswith("from easydict import EasyDict as edict\nfrom torch import nn\n")


def test_the_reason_of_an_import_that_ends_early(tmp_path: Path) -> None:
    path = tmp_path / "net_of_test.py"
    path.write_text("import math\n\nmath.sqrt(-1)\n" + HEAD
                    + "class Net(nn.Cell):\n    def construct(self, x):\n        return x\n", encoding="utf-8")
    with pytest.raises(PortError, match=r"the import ended before Net was defined: (math domain error|expected a nonnegative input)"):
        complete_port.port_file(str(path), ["Net"], "", ["3,4"])


NAMES = """for parameter in net.trainable_params():
    print(parameter.name, parameter.shape)
    if parameter.name.endswith("gamma"):
        parameter.requires_grad = False
optimizer = nn.SGD(net.trainable_params(), 0.1)
"""


def test_a_loop_over_parameters_has_their_names(tmp_path: Path) -> None:
    outcome = ported(tmp_path, NAMES + MODEL.format(optimizer="nn.SGD(net.trainable_params(), 0.1)", callbacks="None"))
    assert_verified(outcome)
    assert """
for name, parameter in [(name, parameter) for name, parameter in named_as_before(net) if parameter.requires_grad]:
    print(name, parameter.shape)
    if name.endswith("gamma"):
""" in outcome.ported.text


def test_a_script_of_several_files(tmp_path: Path) -> None:
    (tmp_path / "rates.py").write_text(
        "import numpy as np\n\n\ndef rates(total):\n    values = [0.1 / (step + 1) for step in range(total)]\n"
        "    return np.array(values).astype(np.float32)\n\n\ndef show(*words):\n    print(*words)\n", encoding="utf-8")
    text = """from rates import rates, show


def create(data, batch_size):
    dataset = ds.GeneratorDataset(data, ["x", "y"], shuffle=False)
    return dataset.map(lambda x: x / 10, "x").batch(batch_size)


samples = [(pictures[index], labels[index]) for index in range(24)]
model = Model(net, loss_fn, nn.SGD(net.trainable_params(), rates(9)))
model.train(2, create(samples[:16], 4))
show("done", ms.GRAPH_MODE)
"""
    assert_verified(ported(tmp_path, text))


def test_initial_values_of_the_programs_initializers(tmp_path: Path) -> None:
    text = torch_file.port(Source(HEAD + MODELS["an initializer of the program"][0])).text
    namespace: dict[str, Any] = {"__name__": "net_of_test"}
    exec(text, namespace)
    assert namespace["Net"]().dense.weight[1, 3] == 3.0


CONFIGURED = """import argparse
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("--size", type=int, default=2)
options = parser.parse_args()
size = options.size + int((Path(__file__).resolve().parents[1] / "config/size.txt").read_text(encoding="utf-8"))
"""


def test_files_of_a_project_and_its_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program is a package from which `inner_source` is imported; it reads a file and the words of its command line."""
    for folder in ("net_project/inner_source/utils", "net_project/config"):
        (tmp_path / folder).mkdir(parents=True)
    for package in ("net_project", "net_project/inner_source", "net_project/inner_source/utils"):
        (tmp_path / package / "__init__.py").write_text("", encoding="utf-8")
    (tmp_path / "net_project/config/size.txt").write_text("3", encoding="utf-8")
    (tmp_path / "net_project/inner_source/options.py").write_text(CONFIGURED, encoding="utf-8")
    path = tmp_path / "net_project/inner_source/net.py"
    text = "from inner_source.options import size\n\n\nclass Net(nn.Cell):\n    def __init__(self):\n        super().__init__()\n"
    path.write_text(HEAD.rstrip() + "\n" + text + "        self.dense = nn.Dense(size, 2)\n\n    def construct(self, x):\n"
                    "        return self.dense(x)\n", encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["torchspore", "port", "net.py", "--unknown"])
    verdict, = complete_port.port_file(str(path), ["Net"], "", ["3,5"]).verdicts
    assert verdict.is_equal, verdict
