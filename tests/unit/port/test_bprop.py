"""Cells that define the gradient of their construct: the port has a torch.autograd.Function."""
from __future__ import annotations

import ast
from pathlib import Path

import pytest
import torch

from torchspore.port import complete_port
from torchspore.port.analysis.source import Source
from torchspore.port.compat.gradients import with_bprop
from torchspore.port.rewriting import torch_file
from torchspore.port.verification import comparison, example_inputs

HEAD = "import mindspore as ms\nfrom mindspore import Parameter, Tensor, nn, ops\n\n\n"
ROUND = """class Round(nn.Cell):
    def construct(self, x):
        return ops.round(x * 4) / 4

    def bprop(self, x, out, dout):
        return (ops.select(ops.abs(x) < 0.5, dout, ops.zeros_like(dout)) + out * 0.25,)


"""
PAIR = """class Pair(nn.Cell):
    def construct(self, x, y):
        return x * x + y, x - y

    def bprop(self, x, y, out, dout):
        return 3 * x * dout[0] + dout[1], 2 * dout[0] + out[1] * 0


"""
SCALED = """class Scaled(nn.Cell):
    def __init__(self, factor):
        super().__init__()
        self.factor, self.weight = factor, Parameter(Tensor([2.0]), name="weight")

    def construct(self, x, times=1):
        return x * self.weight * times

    def bprop(self, x, times, out, dout):
        return (-self.factor * dout * times, 0)


"""
DERIVED = """class Base(nn.Cell):
    def construct(self, x):
        return x * 2

    def bprop(self, x, out, dout):
        return (dout * 5,)


class Derived(Base):
    def construct(self, x):
        return super().construct(x) + 1


"""
NETS = {
    "one result": (ROUND, "Round()", "self.inner(y)"), "two results": (PAIR, "Pair()", "ops.stack(self.inner(y, y * 2))"),
    "a value and a Parameter": (SCALED, "Scaled(0.5)", "self.inner(y, 3)"),
    "an inherited bprop": (DERIVED, "Derived()", "self.inner(y)"),
}


def net(classes: str, created: str, result: str) -> str:
    """Return a file with these classes and a Net that calls one of them."""
    return HEAD + classes + (
        "class Net(nn.Cell):\n    def __init__(self):\n        super().__init__()\n"
        f"        self.body, self.inner = nn.Dense(4, 3), {created}\n\n"
        f"    def construct(self, x):\n        y = ops.tanh(self.body(x))\n        return {result}\n"
    )


@pytest.mark.parametrize("case", NETS)
def test_gradients_are_those_of_bprop(case: str, tmp_path: Path) -> None:
    path = tmp_path / "net_of_test.py"
    path.write_text(net(*NETS[case]), encoding="utf-8")
    outcome = complete_port.port_file(str(path), ["Net"], inputs=["2,4"])
    assert [(verdict.name, verdict.is_equal, verdict.reason) for verdict in outcome.verdicts] == [("Net", True, "")]
    lines = outcome.ported.text.splitlines()
    decorated = [lines[number + 1].strip() for number, line in enumerate(lines) if line == "    @with_bprop"]
    assert decorated and all(line.startswith("def forward(self, x") for line in decorated)
    ast.parse(outcome.ported.text)


def test_a_gradient_that_is_no_longer_bprops_is_detected(tmp_path: Path) -> None:
    path = tmp_path / "net_of_test.py"
    path.write_text(net(ROUND, "Round()", "self.inner(y)"), encoding="utf-8")
    outcome = complete_port.port_file(str(path), ["Net"], inputs=["2,4"], is_compared=False)
    recording = example_inputs.recording(str(path), "Net", None, ["2,4"])
    module = comparison.module_of_text(outcome.ported.text.replace("    @with_bprop\n", ""), "ported")    # rounding has the gradient 0
    assert not comparison.verify(module, ["Net"], recording)[0].is_equal


@pytest.mark.parametrize(("classes", "text"), [
    ("class Net(nn.Cell):\n    def bprop(self, x, out, dout):\n        return (dout,)\n", "defines bprop without construct"),
    ("class Net(nn.Cell):\n    def construct(self, x):\n        return x\n\n    def bprop(self, x, out, dout):\n"
     "        return (dout,), {self.internal_params[0]: dout}\n", "gradients of internal_params"),
])
def test_refused(classes: str, text: str) -> None:
    assert text in torch_file.port(Source(HEAD + classes)).problems[0].text


def test_tensors_in_a_list_are_refused_when_the_port_runs() -> None:
    class Sum(torch.nn.Module):
        @with_bprop
        def forward(self, values: list[torch.Tensor]) -> torch.Tensor:
            return values[0] + values[1]

    x = torch.ones(2)
    assert torch.equal(Sum()([x, x]), x * 2)
    with pytest.raises(TypeError, match="not in a tuple or list"):
        Sum()([x.requires_grad_(), x])
