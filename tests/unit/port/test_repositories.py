"""Idioms of public repositories: packages that are not installed, folders without `__init__.py`, layers in lists, internal checks."""
from __future__ import annotations

from pathlib import Path

import pytest

from torchspore.cli import port as command
from torchspore.port import complete_port

HEAD = "import mindspore as ms\nfrom mindspore import nn, ops\n\n\n"


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def cell(init: str, construct: str, head: str = HEAD, parameters: str = "") -> str:
    lines = [f"        {line}" for line in init.splitlines()]
    body = [f"        {line}" for line in construct.splitlines()]
    return head + "\n".join([
        "class Net(nn.Cell):", f"    def __init__(self{parameters}):", "        super().__init__()", *lines, "",
        "    def construct(self, x):", *body,
    ]) + "\n"


def verified(path: Path, arguments: str = "", shape: str = "2,4") -> complete_port.Outcome:
    """Return the port of `Net`, which equals the original."""
    outcome = complete_port.port_file(str(path), ["Net"], arguments, [shape])
    assert not outcome.ported.problems, outcome.ported.problems
    assert outcome.verdicts and all(verdict.is_equal for verdict in outcome.verdicts), outcome.verdicts
    return outcome


def test_packages_that_are_not_installed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    head = "import absent_one.drawing as drawing\nfrom absent_two import bar\nfrom .more import SIZE\nLINE = drawing.style.line\n"
    head += "try:\n    import absent_three\nexcept ImportError:\n    absent_three = None\nassert absent_three is None\n" + HEAD
    write(tmp_path, {
        "models/net.py": cell("self.layer = nn.Dense(SIZE, 3)", "return self.layer(x)", head),
        "models/__init__.py": "import absent_two.inner\n", "models/more.py": "SIZE = 4\n",
    })
    words = [f"{tmp_path / 'models/net.py'}:Net", "--args", "", "--example", "2,4", "--out", str(tmp_path / "out")]
    assert command.run(words) == 0
    assert "not installed, and without effect on this comparison: absent_one, absent_two" in capsys.readouterr().err
    (tmp_path / "models/calling.py").write_text(cell("self.layer = nn.Dense(4, 3)", "return self.layer(x)", head + "bar()\n"))
    assert command.run([word.replace("net.py", "calling.py") for word in words]) == 2
    assert "No module named 'absent_two'" in capsys.readouterr().err


def test_relative_imports_without_a_package_file(tmp_path: Path) -> None:
    write(tmp_path, {"relative/net.py": cell("self.layer = nn.Dense(SIZE, 3)", "return self.layer(x)", "from .sizes import SIZE\n" + HEAD),
                     "relative/sizes.py": "SIZE = 4\n"})
    assert set(verified(tmp_path / "relative/net.py").ported.files) == {"relative/net.py", "relative/sizes.py"}


def test_functions_of_numbers(tmp_path: Path) -> None:
    init = "self.layer = nn.Dense(4, heads * size)\nself.size = size"
    write(tmp_path, {"net.py": cell(init, "return self.layer(x) / ms.numpy.sqrt(self.size)", parameters=", heads, size")})
    assert "/ torch.sqrt(torch.as_tensor(self.size))" in verified(tmp_path / "net.py", "2, 3").ported.text


def test_a_tensor_named_cls(tmp_path: Path) -> None:
    construct = "box, cls = self.layer(x)[:, :2], self.layer(x)[:, 2:]\nreturn ops.sigmoid(cls) * box"
    write(tmp_path, {"net.py": cell("self.layer = nn.Dense(4, 4)", construct)})
    assert "torch.sigmoid(cls)" in verified(tmp_path / "net.py").ported.text


def test_layers_in_lists_and_dicts(tmp_path: Path) -> None:
    init = "self.blocks = []\nfor _ in range(2):\n    self.blocks.append(nn.Dense(4, 4))\nself.named = {'last': nn.Dense(4, 4)}"
    write(tmp_path, {"net.py": cell(init, "for block in self.blocks:\n    x = block(x)\nreturn self.named['last'](x)")})
    assert verified(tmp_path / "net.py").verdicts[0].parameters == 6


def test_internal_checks_and_fans(tmp_path: Path) -> None:
    head = "import math\nfrom mindspore._checkparam import Rel, Validator as check\n"
    head += "from mindspore.common import initializer as init\n" + HEAD
    lines = """
check.check_equal_int(size % 2, 0, "size", "Net")
check.check_int_range(size, 1, 8, Rel.INC_LEFT, "size", "Net")
self.size = check.check_positive_int(size, "size")
check.check_value_type("size", size, (int, float), self.cls_name)
self.layer = nn.Dense(self.size, 3)
self.bound = 1 / math.sqrt(init._calculate_correct_fan((3, size), mode="fan_in"))
"""
    write(tmp_path, {"net.py": cell(lines.strip(), "return self.layer(x) * self.bound", head, parameters=", size")})
    outcome = verified(tmp_path / "net.py", "4")
    assert outcome.module is not None
    for size in (3, 8, -2):
        with pytest.raises(ValueError, match="expected a number"):
            outcome.module.Net(size)
    with pytest.raises(TypeError, match="expected int, got float"):
        outcome.module.Net(4.0)


def test_empty_sequences_and_paddings_of_six_numbers(tmp_path: Path) -> None:
    init = "self.rnn = nn.LSTM(4, 3, bidirectional=True, batch_first=True)\nself.lengths = ms.Tensor([2, 0, 5], ms.int32)"
    write(tmp_path, {"net.py": cell(init, "y, (h, c) = self.rnn(x, seq_length=self.lengths)\nreturn y, h, c")})
    verified(tmp_path / "net.py", shape="3,5,4")
    init = "self.conv = nn.Conv3d(2, 3, (1, 3, 3), pad_mode=mode, padding=tuple(sizes))"
    write(tmp_path, {"conv/net.py": cell(init, "return self.conv(x)", parameters=", mode, sizes")})
    verified(tmp_path / "conv/net.py", "'pad', [0, 0, 1, 1, 2, 2]", "2,2,3,4,5")
