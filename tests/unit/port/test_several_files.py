"""Ports of a package: modules, relative imports, the shared helpers, functions that create Cells."""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from torchspore.cli import port as command
from torchspore.port import complete_port
from torchspore.port.analysis.source import PortError

FILES = {
    "zoo/__init__.py": "from .models import *\n",
    "zoo/tools.py": "import json\n\n\ndef even(number):\n    \"\"\"The next even number.\"\"\"\n    return number + number % 2\n",
    "zoo/models/__init__.py": "from .net import *\n",
    "zoo/models/registry.py": "models = {}\n\n\ndef register(function):\n    models[function.__module__.split('.')[-1]] = function\n"
                              "    return function\n",
    "zoo/models/layers/__init__.py": "from . import blocks\nfrom .blocks import *\n",
    "zoo/models/layers/blocks.py": """# 层
import mindspore.nn as nn
import mindspore.ops as ops
from mindspore import Tensor


class Base(nn.Cell):
    def __init__(self):
        super().__init__()
        self.act = ops.ReLU()

    def construct(self, x):
        return self.act(x)


class Mixin:
    scale = 2.0


class Block(Base, Mixin):
\tdef __init__(self, size, norm=nn.BatchNorm2d):
\t\tsuper().__init__()
\t\tself.conv = nn.Conv2d(3, size, 3, stride=2)
\t\tself.norm = norm(size)

\tdef construct(self, x: Tensor) -> Tensor:
\t\treturn super().construct(self.norm(self.conv(x))) * self.scale  # 输出


def unused(x):
    return ops.fold(x)
""",
    "zoo/models/net.py": """'''A net.'''
from mindspore import nn, ops

from ..tools import even
from . import layers
from .layers import Block
from .registry import register


class Net(nn.Cell):
    def __init__(self, size=5, classes=3):
        super().__init__()
        self.block = Block(even(size))
        self.other = layers.Block(4)
        self.head = nn.Dense(even(size), classes)

    def construct(self, x):
        return self.head(ops.mean(self.block(x), (2, 3))) + ops.mean(self.other(x))


@register
def net(**options):
    return Net(**options)
""",
}


def write(folder: Path, files: dict[str, str] = FILES) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.mark.needs("ruff")
def test_a_package_is_ported_with_the_modules_that_it_imports(tmp_path: Path) -> None:
    source = write(tmp_path / "source") / "zoo/models/net.py"
    assert command.run([f"{source}:net", "--args", "classes=4", "--example", "2,3,8,8", "--out", str(tmp_path / "out")]) == 0
    files = {path.relative_to(tmp_path / "out").as_posix(): path.read_text(encoding="utf-8") for path in (tmp_path / "out").rglob("*.py")}
    assert sorted(files) == [
        "zoo/__init__.py", "zoo/compat.py", "zoo/models/__init__.py", "zoo/models/layers/__init__.py", "zoo/models/layers/blocks.py",
        "zoo/models/net.py", "zoo/models/registry.py", "zoo/tools.py"]
    lines = "\nfrom ..tools import even\nfrom . import layers\nfrom .layers import Block\nfrom .registry import register\n"
    assert lines in files["zoo/models/net.py"]
    assert files["zoo/models/layers/__init__.py"] == 'from .blocks import Block\n\n__all__ = ["Block"]\n'
    assert "# 输出" in files["zoo/models/layers/blocks.py"] and "ops.fold" not in files["zoo/models/layers/blocks.py"]
    assert "from ...compat import BatchNorm2d, KeepSizeConv2d\n" in files["zoo/models/layers/blocks.py"]
    assert not any("mindspore" in text for text in files.values())
    done = subprocess.run([sys.executable, "-m", "ruff", "check", "--isolated", "out"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    program = "import torch, zoo.models.net as net; print(tuple(net.net()(torch.zeros(2, 3, 8, 8)).shape))"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path / "out", capture_output=True, text=True)
    assert done.stdout == "(2, 3)\n", done.stderr


def test_a_script_with_modules_beside_it(tmp_path: Path) -> None:
    files = {
        "src/net.py": "from mindspore import nn\n\nfrom src.sizes import SIZE\n\n\nclass Net(nn.Cell):\n    def __init__(self):\n"
                      "        super().__init__()\n        self.dense = nn.Dense(SIZE, 2)\n\n    def construct(self, x):\n"
                      "        return self.dense(x)\n",
        "src/sizes.py": "SIZE = 4\n",
        "train.py": "import mindspore as ms\nimport numpy as np\nfrom mindspore import dataset, nn\n\nfrom src.net import Net\n\n"
                    "net = Net()\nrows = np.random.RandomState(0).randn(8, 4).astype(np.float32)\n"
                    "data = dataset.NumpySlicesDataset((rows, rows[:, :2]), ['a', 'b']).batch(2)\n"
                    "model = ms.Model(net, nn.MSELoss(), nn.Adam(net.trainable_params(), 0.01))\nmodel.train(1, data)\n",
    }
    folder = write(tmp_path / "source", files)
    outcome = complete_port.port_file(str(folder / "train.py"), with_script=True)
    verdict, = outcome.verdicts
    assert verdict.is_equal and verdict.steps == 3, (verdict, outcome.ported.by_hand)
    assert sorted(outcome.ported.files) == ["compat.py", "src/net.py", "src/sizes.py", "train.py"]
    with pytest.raises(PortError, match=r"the port has 4 files .*--out DIR"):
        command._write_files(None, outcome.ported.files, "train.py")


def test_a_problem_of_another_file_names_it(tmp_path: Path) -> None:
    blocks = FILES["zoo/models/layers/blocks.py"].replace("ops.ReLU()", "ops.CropAndResize()")
    folder = write(tmp_path, {**FILES, "zoo/models/layers/blocks.py": blocks})
    problem, *_ = complete_port.port_file(str(folder / "zoo/models/net.py"), is_compared=False).ported.problems
    assert problem.path.endswith("blocks.py") and problem.line == 10 and "ops.CropAndResize has no rule" in problem.text


def test_a_port_runs_no_code_of_the_program_without_a_comparison(tmp_path: Path) -> None:
    folder = write(tmp_path, {**FILES, "zoo/__init__.py": "raise SystemExit('ran')\n", "zoo/data.pkl": "x"})
    ported = complete_port.port_file(str(folder / "zoo/models/net.py"), is_compared=False).ported
    assert "zoo/models/net.py" in ported.files and not ported.problems
