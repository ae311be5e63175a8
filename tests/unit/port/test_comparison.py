"""Ported Modules beside the Cells: values and gradients; what is refused; the command."""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from torchspore.cli import port as command
from torchspore.port import complete_port
from torchspore.port.analysis.source import PortError, Source, read
from torchspore.port.rewriting import torch_file
from torchspore.port.verification import comparison, example_inputs

HEAD = """import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common.initializer import initializer
from mindspore.ops import operations as P


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
"""


def write_net(folder: Path, init: str, construct: str) -> Path:
    """Write a file with a Cell."""
    lines = [f"        {line}" for line in init.splitlines()] + ["", "    def construct(self, x, *rest):"]
    path = folder / "net_of_test.py"
    path.write_text(HEAD + "\n".join([*lines, *(f"        {line}" for line in construct.splitlines())]) + "\n", encoding="utf-8")
    return path


IMAGE, ROWS, SEQUENCE = "2,4,9,10", "3,4", "2,5,4"
LAYERS = {
    "nn.Conv2d(4, 6, 3, stride=2)": IMAGE, "nn.Conv2d(4, 6, (3, 2), stride=(2, 3), dilation=1, has_bias=True)": IMAGE,
    "nn.Conv2d(4, 6, 4)": IMAGE, "nn.Conv2d(4, 4, 3, 1, 'pad', (1, 1, 2, 2), group=2)": IMAGE, "nn.Conv1d(4, 3, 3, 2)": "2,4,9",
    "nn.Conv3d(4, 3, 3, 2)": "2,4,5,6,7", "nn.Conv2dTranspose(4, 3, 3, 2)": IMAGE, "nn.Conv2dTranspose(4, 3, 2, 3)": IMAGE,
    "nn.Conv2dTranspose(4, 3, 4, 2, 'pad', 1, has_bias=True)": IMAGE, "nn.Conv2dTranspose(4, 3, 3, 2, 'valid')": IMAGE,
    "nn.Conv1dTranspose(4, 3, 3, 2)": "2,4,9", "nn.MaxPool2d(3, 2, 'same')": IMAGE, "nn.MaxPool2d(2, 2)": IMAGE,
    "nn.AvgPool2d(3, 2, 'same')": IMAGE, "nn.AvgPool2d(3, 1)": IMAGE, "nn.MaxPool1d(2, 2)": "2,4,9",
    "nn.AvgPool1d(3, 2, 'same')": "2,4,9",
    "nn.AdaptiveAvgPool2d((3, None))": IMAGE, "nn.BatchNorm2d(4, momentum=0.99)": IMAGE, "nn.BatchNorm1d(4)": ROWS,
    "nn.GroupNorm(2, 4, affine=False)": IMAGE, "nn.InstanceNorm2d(4)": IMAGE, "nn.LayerNorm((4,))": ROWS,
    "nn.LayerNorm([9, 10], 2, 2, epsilon=1e-3)": IMAGE,
    "nn.Dense(4, 3, activation='gelu')": ROWS, "nn.Dense(4, 3, 'xavier_uniform', 'ones')": ROWS,
    "nn.Embedding(7, 3, padding_idx=0)": "2,5,int32:7",
    "nn.PReLU(4)": IMAGE, "nn.GELU()": ROWS, "nn.ELU(0.5)": ROWS, "nn.LeakyReLU()": ROWS, "nn.HSwish()": ROWS,
    "nn.Softmax()": ROWS,
    "nn.FastGelu()": ROWS, "nn.LSTM(4, 3, 2, bidirectional=True, batch_first=True)": SEQUENCE, "nn.GRU(4, 3)": SEQUENCE,
    "nn.Pad(((0, 0), (0, 0), (1, 2), (3, 1)), 'REFLECT')": IMAGE, "nn.OneHot(depth=5)": "4,int32:5",
    "nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True)": SEQUENCE, "nn.MultiheadAttention(4, 2)": "",
}


@pytest.mark.parametrize("layer", [layer for layer, shape in LAYERS.items() if shape])
def test_layers_compute_the_same(layer: str, tmp_path: Path) -> None:
    path = write_net(tmp_path, f"self.layer = {layer}", "return self.layer(x)")
    verdict, = complete_port.port_file(str(path), None, "", [LAYERS[layer]]).verdicts
    assert verdict.is_equal, verdict


EXPRESSIONS = {
    "ops.maximum(x, 0.5) + ops.minimum(x, x * 2)": ROWS, "P.StridedSlice()(x, (0, 1), (3, 4), (1, 2))": ROWS,
    "P.Slice()(x, (0, 1), (2, -1))": ROWS,
    "ops.gather(x, Tensor([2, 0], ms.int32), 1)": ROWS, "ops.gather_nd(x, Tensor([[0, 1], [2, 3]], ms.int32))": ROWS,
    "ops.one_hot(Tensor([0, 3, 9], ms.int32), 4, Tensor(1.0), Tensor(0.0)) * x[:3]": ROWS, "P.L2Normalize(axis=1)(x)": ROWS,
    "ops.unsorted_segment_sum(x, Tensor([1, 0, 1], ms.int32), 2)": ROWS, "P.DivNoNan()(x, ops.relu(x))": ROWS,
    "P.ResizeBilinearV2()(x, (5, 20))": IMAGE, "P.ResizeNearestNeighbor((5, 7), True)(x)": IMAGE,
    "P.BiasAdd()(x, x[0, :, 0, 0])": IMAGE,
    "ops.deformable_conv2d(x, x[:, :, :3, :2], ops.tile(x[:, :, :7, :9], (1, 5, 1, 1))[:, :18], (3, 2), (1, 1, 1, 1), (0, 0, 0, 0))": IMAGE,
    "ops.deformable_conv2d(x, x[:, :2, :1, :1], ops.tile(x[:, :, :5], (1, 2, 1, 1))[:, :6], (1, 1), (1, 1, 2, 1), (1, 0, 0, 0), None,"
    " (1, 1, 1, 1), 2, 2)": IMAGE,
    "x.transpose(1, 0).repeat(2, 0) ** 2": ROWS, "x[::-1] * x.std(axis=0)": ROWS,
    "P.ReduceMean(True)(x, (2, 3)) - ops.mean(x)": IMAGE,
    "ops.softmax(x, 0) + P.Softmax()(x) * x.max(axis=1, keepdims=True)": ROWS,
    "P.Split(1, 2)(x)[0] - ops.split(x, 2, 1)[1]": ROWS,
    "ops.cumsum(x, 1) + ops.logsumexp(x, 1, True) + ops.norm(x, dim=1, keepdim=True)": ROWS,
    "ops.floor_div(x, 0.3) * x + x % 0.7": ROWS,
    "P.SoftmaxCrossEntropyWithLogits()(x, ops.softmax(x))[0]": ROWS, "ops.cross_entropy(x, Tensor([0, 1, 3], ms.int32))": ROWS,
    "ops.tensor_scatter_elements(x, Tensor([[0], [1], [2]], ms.int32), x[:, :1], 1, 'add')": ROWS, "P.L2Loss()(x)": ROWS,
    "nn.SoftmaxCrossEntropyWithLogits(sparse=True)(x, Tensor([0, 1, 3], ms.int32))": ROWS,
    "nn.SoftmaxCrossEntropyWithLogits()(x, Tensor([[0.5, 0.9, 0, 0], [0, 0, 0, 0], [0, 2, 3, 0]]))": ROWS,
    "nn.SoftmaxCrossEntropyWithLogits(reduction='mean')(x, Tensor([[0.5, 0.9, 0, 0], [0, 0, 0, 0], [0, 2, 3, 0]]))": ROWS,
    "nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction='sum')(x, Tensor([0, -1, 4], ms.int32))": ROWS,
    "nn.ClipByNorm()(x, Tensor(0.5, ms.float32))": ROWS,
}


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_operators_compute_the_same(expression: str, tmp_path: Path) -> None:
    path = write_net(tmp_path, "pass", f"return {expression}")
    verdict, = complete_port.port_file(str(path), None, "", [EXPRESSIONS[expression]]).verdicts
    assert verdict.is_equal, verdict


def test_a_port_that_differs_says_so(tmp_path: Path) -> None:
    path = write_net(tmp_path, "self.dense = nn.Dense(4, 2)", "return ops.tanh(self.dense(x))")
    text = torch_file.port(read(str(path))).text
    recording = example_inputs.recording(str(path), "Net", "", ["3,4"])
    good, = comparison.verify(text, ["Net"], recording)
    bad, = comparison.verify(text.replace("torch.tanh(", "torch.sigmoid("), ["Net"], recording)
    wrong_gradient, = comparison.verify(text.replace("self.dense(x))", "self.dense(x).detach())"), ["Net"], recording)
    missing, = comparison.verify(text.replace("nn.Linear(4, 2)", "nn.Sequential(nn.Linear(4, 2))"), ["Net"], recording)
    assert good.is_equal and not bad.is_equal and bad.forward > 1e-2
    assert wrong_gradient.forward == 0 and wrong_gradient.gradient > 1e-2
    assert "no counterpart" in missing.reason
    extra, = comparison.verify(text.replace("nn.Linear(4, 2)", "nn.Linear(4, 2)\n        self.more = nn.Linear(1, 1)"), ["Net"], recording)
    assert "no Parameter for more.weight" in extra.reason


def test_a_program_is_run_and_its_calls_are_compared(tmp_path: Path) -> None:
    path = write_net(tmp_path, "self.dense = nn.Dense(4, 2)\nself.drop = nn.Dropout(p=0.5)", "return self.drop(self.dense(x))")
    path.write_text(path.read_text() + """

class Loss(nn.Cell):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def construct(self, x, y):
        return ops.mse_loss(self.net(x), y)


class Step(nn.Cell):
    def __init__(self, loss, optimizer):
        super().__init__()
        self.step = nn.TrainOneStepCell(loss, optimizer)

    def construct(self, x, y):
        return self.step(x, y)


net = Net()
step = Step(Loss(net), nn.SGD(net.trainable_params()))
print(step(Tensor(np.ones((3, 4)), ms.float32), Tensor(np.zeros((3, 2)), ms.float32)))
net.set_train(False)(Tensor(np.ones((3, 4)), ms.float32))
""")
    outcome = complete_port.port_file(str(path))
    assert not outcome.why_not
    assert sorted(outcome.ported.omitted_classes) == ["Step"]
    assert {verdict.name: verdict.is_equal for verdict in outcome.verdicts} in ({"Net": True, "Loss": True}, {"Net": True})


BAD = {
    "a lambda": ("net = lambda x: x\n", ":net", "got a lambda"), "a function": ("def net(x):\n    return x\n", ":net", "got a function"),
    "no class": ("x = 1\n", "", "expected a class that derives from mindspore.nn.Cell"),
    "another base": ("class Net:\n    pass\n", ":Net", "its bases are none"),
    "a typo": ("class Net:\n    pass\n", ":Nett", "Did you mean Net"),
    "an imported class": ("from blocks import Net\n", ":Net", "imported from blocks"),
    "no Python": ("def (\n", "", "line 1: expected Python 3"),
    "a binary file": ("x = 1\0", "", "expected Python"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, target, message = BAD[case]
    path = tmp_path / "bad_input.py"
    path.write_text(text, encoding="utf-8")
    assert command.run([f"{path}{target}", "--out", str(tmp_path / "out.py")]) == 2
    assert message in capsys.readouterr().err and not (tmp_path / "out.py").exists()


@pytest.mark.parametrize(("name", "message"), [("a.ipynb", "got a notebook"), ("a.pyc", "has none"), ("missing.py", "can't be read")])
def test_files_without_source(name: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if name != "missing.py":
        (tmp_path / name).write_bytes(b"x")
    assert command.run([str(tmp_path / name)]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(("change", "message"), [
    (("(nn.Cell)", "(nn.Cell, metaclass=type)"), "has a metaclass"), (("return x", "return helper(x)"), "imported from local_blocks"),
    (("return x", "return ops.ROIAlign(x)"), "line 14: ops.ROIAlign has no rule"),
    (("return x", "import mindspore\n        return x"), "an import inside a definition"),
])
def test_what_cannot_be_ported_is_listed_and_nothing_is_written(
    change: tuple[str, str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str],
) -> None:
    path = write_net(tmp_path, "self.a = 1", "return x")
    path.write_text("from local_blocks import helper\n" * ("helper" in change[1]) + path.read_text().replace(*change))
    assert command.run([str(path), "--out", str(tmp_path / "out.py")]) == 1
    assert message in capsys.readouterr().err and not (tmp_path / "out.py").exists()


@pytest.mark.needs("ruff")
def test_the_command_writes_source_and_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_net(tmp_path, "self.conv = nn.Conv2d(3, 4, 3, stride=2)", "return self.conv(x)")
    words = [f"{path}:Net", "--out", str(tmp_path / "out.py"), "--report", str(tmp_path / "port.html")]
    assert command.run(words) == 0                                     # the input is inferred from the first layer
    assert "verified: Net, 1 parameters" in capsys.readouterr().err
    assert "padded by stride" in (tmp_path / "port.html").read_text() and "Not verified" not in (tmp_path / "out.py").read_text()
    assert command.run([*words[:3], "--no-verify"]) == 0
    assert (tmp_path / "out.py").read_text().startswith("# Not verified: --no-verify.\n")
    ruff = subprocess.run([sys.executable, "-m", "ruff", "check", "--isolated", str(tmp_path / "out.py")], capture_output=True, text=True)
    assert ruff.returncode == 0, ruff.stdout


@pytest.mark.parametrize(("words", "message"), [
    (["--example", "3,x"], "expected a shape"), (["--args", "1, 2"], "takes 1 positional"), (["--example", "2,5"], "can't be called with"),
    ([], "can't be inferred"),
])
def test_inputs_that_do_not_fit(words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_net(tmp_path, "self.dense = nn.Dense(4, 2)", "return self.dense(x)")
    if not words:
        path.write_text(path.read_text().replace("x, *rest", "x, y"))
    assert command.run([f"{path}:Net", *words]) == 2
    assert message in capsys.readouterr().err


def test_sources_that_are_no_text() -> None:
    with pytest.raises(PortError, match="expected Python 3 source"):
        Source("class", "x.py")
