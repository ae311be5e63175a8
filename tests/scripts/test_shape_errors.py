"""A shape error shows the user's lines and one message: in both modes, in Cells and in gradients of them, for whole families."""
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.processes import Run

RunFixture = Callable[..., Run]
PROGRAM = """
import sys, traceback
import numpy as np
import mindspore as ms
from mindspore import Tensor, nn, ops
ms.set_context(mode=int(sys.argv[1]))

class Net(nn.Cell):
    def __init__(self, which):
        super().__init__()
        self.conv, self.dense, self.loss, self.which = nn.Conv2d(3, 4, 3), nn.Dense(4, 8), nn.MSELoss(), which

    def construct(self, x):
        if self.which == "matmul":
            return ops.matmul(x, x)
        if self.which == "at":
            return x @ x
        if self.which == "conv":
            return self.conv(x)
        if self.which == "concat":
            return ops.concat((x, ops.ones((3, 9))), 0)
        if self.which == "reshape":
            return x.reshape((7, 7))
        if self.which == "broadcast":
            return x + ops.ones((5,))
        if self.which == "cross_entropy":
            return ops.cross_entropy(x, ops.ones((9,), ms.int32))
        if self.which == "loss":
            return self.loss(x, ops.ones((5,)))
        return self.dense(x)

class Gradient(nn.Cell):
    def __init__(self, net):
        super().__init__()
        self.net, self.weights = net, ms.ParameterTuple(net.trainable_params())
        self.grad = ops.GradOperation(get_by_list=True)

    def construct(self, x):
        return self.grad(self.net, self.weights)(x)

def forms(net):
    return {"cell": net, "gradient": Gradient(net), "transform": ms.value_and_grad(net, None, net.trainable_params())}

x = Tensor(np.ones((2, 3), np.float32))
if len(sys.argv) > 2:
    forms(Net(sys.argv[2]))[sys.argv[3]](x)
for which in ("matmul", "at", "conv", "concat", "reshape", "broadcast", "cross_entropy", "loss", "dense"):
    for form, call in forms(Net(which)).items():
        try:
            call(x)
        except ValueError as error:
            text = "".join(traceback.format_exception_only(type(error), error))
            assert text.startswith(f"ValueError: shapes.py:") and len(text.splitlines()) <= 12, text
            frames = traceback.extract_tb(error.__traceback__)
            assert int(sys.argv[1]) or form == "transform" or len(frames) <= 6, (which, form, [f"{f.filename}:{f.lineno}" for f in frames])
        else:
            raise SystemExit(f"{which} as {form} ran")
"""


def line(text: str) -> int:
    """The number of the program's line that holds this text."""
    return next(number for number, content in enumerate(PROGRAM.splitlines(), 1) if text in content)


MAIN, GRADIENT, MATMUL = line("forms(Net(sys.argv[2]))"), line("return self.grad("), line("return ops.matmul(")


@pytest.mark.parametrize("mode", ["0", "1"])
def test_families_give_one_message_and_nothing_of_torch(mode: str, run: RunFixture, tmp_path: Path) -> None:
    (tmp_path / "shapes.py").write_text(PROGRAM)
    assert run("run", "shapes.py", mode) == Run(0, "", "")


@pytest.mark.parametrize(("mode", "form"), [
    ("0", "gradient"), ("1", "transform"),
    *(pytest.param(*others, marks=pytest.mark.slow) for others in (("0", "cell"), ("0", "transform"), ("1", "cell"), ("1", "gradient"))),
])
def test_what_a_program_prints_that_ends_so(mode: str, form: str, run: RunFixture, tmp_path: Path) -> None:
    (tmp_path / "shapes.py").write_text(PROGRAM)
    lines = run("run", "shapes.py", mode, "matmul", form).err.splitlines()
    assert lines[0] == "Traceback (most recent call last):" and len(lines) <= 12
    assert [line for line in lines if line.startswith("  File ")] == [
        f'  File "shapes.py", line {MAIN}, in <module>',
        *([f'  File "shapes.py", line {GRADIENT}, in construct'] if form == "gradient" else []),
        f'  File "shapes.py", line {MATMUL}, in construct',
    ]
    assert lines[-3:] == [
        f"ValueError: shapes.py:{MATMUL}: matmul(input: Float32[2, 3], other: Float32[2, 3]): expected as many rows in other as input has "
        "columns: shapes (2, 3) and (2, 3) have 2 and 3.",
        "", "hint: transpose other: other.swapaxes(-1, -2).",
    ]
