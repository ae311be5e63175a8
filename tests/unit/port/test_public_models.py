"""What models of public repositories do beyond the tests of each rule: each case made one of them fail."""
from __future__ import annotations

from pathlib import Path

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
    verdict, = outcome.verdicts
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
