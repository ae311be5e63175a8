"""Ports of operators that public programs use often: updates of Parameters, random numbers, distinct values, scalars."""
from __future__ import annotations

from pathlib import Path

import pytest
from unit.port.test_comparison import ROWS, write_net

from torchspore.port import complete_port

UPDATES = {
    "P.ScatterNdUpdate()(self.table, Tensor([[0], [2]], ms.int32), x[:2])": "self.table * x",
    "P.ScatterUpdate()(self.table, Tensor([0, 2], ms.int32), x[:2])": "self.table * x",
    "P.ScatterAdd()(self.table, Tensor([[2, 1], [2, 0]], ms.int32), ops.stack((x[:2], x[1:])))": "self.table * x",
    "P.IndexAdd(axis=1)(self.table, Tensor([0, 3], ms.int32), x[:, :2])": "self.table * x",
    "ops.scatter_nd_update(self.table, Tensor([[0], [2]], ms.int32), x[:2])": "self.table * x",
    "ops.scatter_update(self.table, Tensor([0, 2], ms.int32), x[:2])": "self.table * x",
    "ops.scatter_add(self.table, Tensor([0, 0], ms.int32), x[:2])": "self.table * x",
    "ops.index_add(self.table, Tensor([0, 3], ms.int32), x[:, :2], 1)": "self.table * x",
}
"""Statements, and the result after them."""
EXPRESSIONS = {
    "P.Meshgrid()((x[0], x[:, 0]))[1] * 2": ROWS, "P.Meshgrid(indexing='ij')((x[0], x[:, 0]))[1] * 2": ROWS,
    "P.ArgMinWithValue(axis=1)(x)[1]": ROWS, "P.Mod()(x * 9, x[::-1])": ROWS, "P.Rint()(x * 2) * x": ROWS,
    "P.LinSpace()(Tensor(1, ms.float32), Tensor(10, ms.float32), 4) * x": ROWS, "P.MaskedSelect()(x, x > 0)": ROWS,
    "P.Einsum('ij,kj->ik')((x, x))": ROWS, "ops.addn([x, x, x])": ROWS, "ops.tensor_dot(x, x, ((1,), (1,)))": ROWS,
    "ops.pows(x, 2) + ops.absolute(x)": ROWS, "ms.numpy.power(x, 3) + ms.numpy.copy(x)": ROWS, "ms.numpy.vstack((x, x * 2))": ROWS,
    "ms.numpy.repeat(x, 2, 1)": ROWS, "ms.numpy.repeat(x, [1, 0, 2], 0)": ROWS, "ms.numpy.repeat(x, 3)": ROWS,
    "ops.unique(x)[0]": "9,int32:3", "P.Unique()(x)[1]": "9,int32:3",
    "P.TupleToArray()((1, 2, 3, 4)) * x": ROWS, "ops.tuple_to_array((1, 2)) // 2": ROWS, "P.ScalarToTensor()(2) * x": ROWS,
    "(ops.scalar_to_tensor(2**24 + 1) - 2**24) * x + x": ROWS, "P.ScalarToTensor()(7, ms.int32) // 2": ROWS,
    "nn.MatMul(transpose_x2=True)(x, x)": ROWS, "nn.MatMul(True)(x, x)": ROWS,
    "ops.uniform((3, 4), Tensor(-1, ms.float32), Tensor(2, ms.float32)) * x": ROWS,
    "ops.uniform((3, 4), Tensor(1, ms.int32), Tensor(7, ms.int32), dtype=ms.int32) * x": ROWS,
    "ops.normal((3, 4), Tensor(1, ms.float32), 2.0) * x": ROWS, "ops.randint(1, 9, (3, 4)) * x": ROWS,
    "x[ops.randperm(3)]": ROWS, "x[P.Randperm(max_length=3)(Tensor(3, ms.int32))]": ROWS,
    "P.Randperm(5, -2)(Tensor([3], ms.int32)) + ops.cast(x[0, 0] * 0, ms.int32)": ROWS,
    "P.UniformInt(seed=3)((3, 4), Tensor(1, ms.int32), Tensor(7, ms.int32)) * x": ROWS,
    "P.RandomChoiceWithMask(count=4, seed=1)(x > 0)[0]": ROWS, "P.RandomChoiceWithMask(count=20)(x > 0)[1]": ROWS,
    "ops.rand(3, 4) * x + ops.randn(3, 4)": ROWS,
}


@pytest.mark.parametrize("statement", UPDATES)
def test_updates_of_parameters(statement: str, tmp_path: Path) -> None:
    path = write_net(tmp_path, "self.table = Parameter(Tensor(np.ones((3, 4)), ms.float32))", f"{statement}\nreturn {UPDATES[statement]}")
    verdict, = complete_port.port_file(str(path), None, "", [ROWS]).verdicts
    assert verdict.is_equal, verdict


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_operators_compute_the_same(expression: str, tmp_path: Path) -> None:
    path = write_net(tmp_path, "pass", f"return {expression}")
    verdict, = complete_port.port_file(str(path), None, "", [EXPRESSIONS[expression]]).verdicts
    assert verdict.is_equal, verdict


def test_a_cell_with_a_distribution_is_compared(tmp_path: Path) -> None:
    path = write_net(tmp_path, "self.normal = nn.probability.distribution.Normal(0.0, 2.0)", "return self.normal.log_prob(x)")
    verdict, = complete_port.port_file(str(path), None, "", [ROWS]).verdicts
    assert verdict.is_equal, verdict
