"""Operators that MindSpore 2.10 has no kernel for on the CPU, or takes in graphs only: against NumPy and by hand."""
from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn, ops

from torchspore.graph import dispatch

M = np.array([[1.0, 2.0, 3.0], [4.0, -5.0, 6.0]], np.float32)
V = np.array([3.0, 1.0, 4.0, 2.0], np.float32)


def t(value: Any, dtype: Any = np.float32) -> Tensor:
    return Tensor(np.array(value, dtype))


CASES: dict[str, Any] = {
    "fmin": (lambda: ops.fmin(t([1, np.nan, 3]), t([2, 2, np.nan])), [1, 2, 3]),
    "Fmin": (lambda: ops.Fmin()(t([1, np.nan]), t([0, 2])), [0, 2]),
    "nextafter": (lambda: ops.nextafter(t([1.0]), t([2.0])), np.nextafter(np.float32([1]), np.float32([2]))),
    "NextAfter": (lambda: ops.NextAfter()(t([1.0]), t([0.0])), np.nextafter(np.float32([1]), np.float32([0]))),
    "LerpScalar": (lambda: ops.LerpScalar()(t(V), t(V * 2), 0.5), V * 1.5),
    "tensor_muls": (lambda: ops.tensor_muls(t(V), 2), V * 2),
    "fills": (lambda: ops.fills(t(V), 2.0), np.full(4, 2, np.float32)),
    "Fills": (lambda: ops.Fills()(t(V), t(2.0)), np.full(4, 2, np.float32)),
    "matrix_exp": (lambda: ops.matrix_exp(t([[0, 1], [0, 0]])), [[1, 1], [0, 1]]),
    "MatrixExp": (lambda: ops.MatrixExp()(t([[0, 0], [0, 1]])), [[1, 0], [0, np.e]]),
    "EuclideanNorm": (lambda: ops.EuclideanNorm(True)(t(M), Tensor([1])), np.sqrt((M * M).sum(1, keepdims=True))),
    "Einsum": (lambda: ops.Einsum("ij,kj->ik")((t(M), t(M))), M @ M.T),
    "Ormqr": (lambda: ops.abs(ops.Ormqr(transpose=True)(*ops.geqrf(t(M.T)), t(M.T))), np.abs(np.vstack([np.linalg.qr(M.T)[1], [0, 0]]))),
    "ormqr": (lambda: ops.abs(ops.ormqr(*ops.geqrf(t(M.T)), t(M.T), True, True)), np.abs(np.vstack([np.linalg.qr(M.T)[1], [0, 0]]))),
    "Quantile": (lambda: ops.Quantile(dim=1)(t(M), 0.25), np.quantile(M, 0.25, 1)),
    "quantile": (lambda: ops.quantile(t(M), t([0.25, 0.5])), np.quantile(M, [0.25, 0.5])),
    "nanquantile": (lambda: ops.nanquantile(t([1, np.nan, 3, 2]), 0.5), 2),
    "CountNonZero": (lambda: ops.CountNonZero(dims=[1])(t(M)), [3, 3]),
    "HistogramFixedWidth": (lambda: ops.HistogramFixedWidth(3)(t([-1, 0.5, 2.5, 9]), t([0, 3])), [2, 0, 2]),
    "ConfusionMatrix": (lambda: ops.ConfusionMatrix(2)(Tensor([0, 1, 1]), Tensor([0, 0, 1])), [[1, 0], [1, 1]]),
    "SplitV": (lambda: ops.SplitV([1, -1], 1, 2)(t(M))[1], M[:, 1:]),
    "Roll": (lambda: ops.Roll(1, 0)(t(V)), np.roll(V, 1)),
    "TransposeExtView": (lambda: ops.TransposeExtView()(t(M), 0, 1), M.T),
    "Expand": (lambda: ops.Expand()(t(V), (2, 4)), np.stack([V, V])),
    "BatchToSpace": (lambda: ops.BatchToSpace(2, [[0, 0], [0, 1]])(t(np.arange(8).reshape(4, 1, 1, 2))), [[[[0, 2, 1], [4, 6, 5]]]]),
    "BatchToSpaceNDV2": (lambda: ops.BatchToSpaceNDV2()(t(np.arange(4).reshape(4, 1, 1, 1)), [2, 2], [[0, 0], [0, 0]]), [
        [[[0], [1]], [[2], [3]]],
    ]),
    "SpaceToBatch": (lambda: ops.SpaceToBatch(2, [[0, 0], [0, 0]])(t([[[[0, 1], [2, 3]]]])), np.arange(4).reshape(4, 1, 1, 1)),
    "CopyWithSlice": (lambda: ops.CopyWithSlice()(t(M), t(V[:3])), np.stack([V[:3], V[:3]])),
    "DynamicShape": (lambda: ops.DynamicShape()(t(M)), [2, 3]),
    "bucketize": (lambda: ops.bucketize(t([1, 2, 3, 4]), [1, 3]), [0, 1, 1, 2]),
    "bucketize_right": (lambda: ops.bucketize(t([1, 2, 3, 4]), [1, 3], right=True), [1, 1, 2, 2]),
    "NonMaxSuppressionV3": (lambda: ops.NonMaxSuppressionV3()(
        t([[0, 0, 2, 2], [0, 0, 2, 1.9], [5, 5, 6, 6]]), t([0.5, 0.9, 0.3]), Tensor(3), t(0.5), t(0.1),
    ), [1, 2]),
    "Coalesce": (lambda: ops.Coalesce()(Tensor([[0, 0], [1, 1]]), t([3, 4]), Tensor([2, 2]))[1], [7]),
    "AccumulateNV2": (lambda: ops.AccumulateNV2()([t(V), t(V)]), V * 2),
    "accumulate_n": (lambda: ops.accumulate_n([t(V), t(V)]), V * 2),
    "ScalarToArray": (lambda: ops.ScalarToArray()(2.5), 2.5),
    "scalar_to_array": (lambda: ops.scalar_to_array(2), 2),
    "reshape_": (lambda: ops.reshape_(t(M), (3, 2)), M.reshape(3, 2)),
    "augassign": (lambda: ops.augassign_mul(ops.augassign_div(t(V), t(V)), 3), np.full(4, 3, np.float32)),
    "augassign_floordiv": (lambda: ops.augassign_floordiv(t(V), 2) + ops.augassign_mod(t(V), 2), V // 2 + V % 2),
    "bitwise_not": (lambda: Tensor([5, -1]).bitwise_not(), [-6, 0]),
    "masked_scatter": (lambda: t(M).masked_scatter(Tensor(M < 0), t([9])), np.where(M < 0, 9, M)),
    "FloatStatus": (lambda: ops.FloatStatus()(t([1, np.inf])), [1]),
    "FloatStatus_fine": (lambda: ops.FloatStatus()(t([1, 2])), [0]),
    "LARSUpdate": (lambda: ops.LARSUpdate(epsilon=0.0, hyperpara=0.5)(t([3, 4]), t([0, 2]), t(25), t(4), 0.1, 1.0), np.array(
        [0.3, 2.4],
    ) * (0.5 * 5 / (2 + 0.1 * 5))),
    "InsertGradientOf": (lambda: ms.grad(lambda x: ops.InsertGradientOf(lambda g: g * 3)(x) * 2)(t(V)), np.full(4, 6, np.float32)),
}


@pytest.mark.parametrize("name", CASES)
def test_by_hand(name: str, mode: int) -> None:
    call, expected = CASES[name]
    array = call().asnumpy()
    assert array.shape == np.shape(expected)
    np.testing.assert_allclose(array, expected, rtol=1e-5, atol=1e-5)


def parameters(*values: np.ndarray) -> list[Parameter]:
    return [Parameter(Tensor(value.copy()), name=f"p{i}") for i, value in enumerate(values)]


def test_steps_without_a_kernel(mode: int) -> None:
    p, a = parameters(M, M * 0)
    ops.ApplyKerasMomentum(use_nesterov=True)(p, a, 0.1, t(M), 0.5)
    np.testing.assert_allclose(p.asnumpy(), M - 0.1 * M * 1.5, rtol=1e-6)
    p, a = parameters(M, M * 0)
    ops.FusedWeightScaleApplyMomentum()(t(0.5), t(2.0), p, a, 0.1, t(M), 0.9)
    np.testing.assert_allclose(p.asnumpy(), M - 0.1 * M * 2.5, rtol=1e-6)
    p, a = parameters(M, M * 0)
    ops.ScatterNonAliasingAdd()(p, Tensor([[0, 1]]), t([5]))
    assert p.asnumpy()[0, 1] == 7
    p, a = parameters(M, np.ones_like(M))
    ops.SparseApplyProximalAdagrad()(p, a, 0.1, 0.0, 0.0, t(M[:1]), Tensor([1]))
    np.testing.assert_allclose(p.asnumpy()[1], M[1] - 0.1 * M[0] / np.sqrt(1 + M[0] ** 2), rtol=1e-5)
    assert (p.asnumpy()[0] == M[0]).all()
    p, a, u = parameters(M, np.ones_like(M), np.ones_like(M))
    ops.SparseApplyAdadelta(0.0)(p, a, u, 0.1, 0.5, t(M[:1]), Tensor([1]))
    np.testing.assert_allclose(p.asnumpy()[1], M[1] - 0.1 * M[0] / np.sqrt(0.5 + 0.5 * M[0] ** 2), rtol=1e-5)
    first, second = parameters(M, M), parameters(M, M)
    for (p, a), (linear,) in ((first, parameters(M)), (second, parameters(M))):
        step = ops.SparseApplyFtrl(0.1, 0.1, 0.1, -0.5) if p is first[0] else ops.SparseApplyFtrlV2(0.1, 0.1, 0.1, 0.0, -0.5)
        ops.assign(a, ops.abs(a))
        step(p, a, linear, t(M), Tensor([0, 1]))
    np.testing.assert_array_equal(first[0].asnumpy(), second[0].asnumpy())


def test_adam_without_its_parameter() -> None:
    numbers = [t(v) for v in (0.9, 0.99, 0.1, 0.9, 0.99, 1e-8)]
    p, m, v = parameters(M, M * 0, M * 0)
    ops.Adam()(p, m, v, *numbers, t(M))
    zero_m, zero_v = parameters(M * 0, M * 0)
    change = ops.AdamNoUpdateParam()(zero_m, zero_v, *numbers, t(M))
    np.testing.assert_allclose(M + change.asnumpy(), p.asnumpy(), rtol=1e-6)
    assert (zero_m.asnumpy() == m.asnumpy()).all() and (zero_v.asnumpy() == v.asnumpy()).all()


def test_adam_of_half_precision() -> None:
    p, m, v = parameters(M.astype(np.float16), M * 0, M * 0)
    single_precision = parameters(M, M * 0, M * 0)
    ops.FusedCastAdamWeightDecay()(p, m, v, 0.1, 0.9, 0.99, 1e-8, 0.1, t(M, np.float16))
    ops.AdamWeightDecay()(*single_precision, 0.1, 0.9, 0.99, 1e-8, 0.1, t(M))
    assert p.dtype == ms.float16
    np.testing.assert_allclose(p.asnumpy(), single_precision[0].asnumpy(), rtol=2e-3)
    np.testing.assert_array_equal(m.asnumpy(), single_precision[1].asnumpy())


@pytest.mark.parametrize("value", [1.0, np.inf])
def test_a_status_knows_what_it_depends_on(value: float, mode: int) -> None:
    """The way of 1.x programs on Ascend: a status that is made to depend on the gradients."""

    class Step(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.allocate, self.clear, self.get = ops.NPUAllocFloatStatus(), ops.NPUClearFloatStatus(), ops.NPUGetFloatStatus()

        def construct(self, x: Tensor) -> Tensor:
            status = self.allocate()
            status = ops.depend(status, x)
            x = ops.depend(x, self.clear(status))
            y = x * 2
            status = ops.depend(status, y)
            result = self.get(status)
            status = ops.depend(status, result)
            return ops.reduce_sum(status, (0,))

    assert bool(Step()(t([1.0, value])) > 0) == np.isinf(value)


def test_a_status_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match=r"NPUGetFloatStatus\(x: Float32\[8\]\): expected a status that depends on a value"):
        ops.NPUGetFloatStatus()(ops.NPUAllocFloatStatus()())


def test_structures(mode: int) -> None:
    assert ops.tuple_getitem((1, 2), 1) == ops.list_getitem([1, 2], 1) == ops.dict_getitem({"a": 2}, "a") == 2
    assert ops.tuple_setitem((1, 2), 0, 5) == (5, 2) and ops.list_setitem([1, 2], 0, 5) == [5, 2] and ops.list_len([1]) == 1
    assert ops.dict_setitem({"a": 1}, "b", 2) == {"a": 1, "b": 2} and ops.make_dict(("a",), (1,)) == {"a": 1}
    assert ops.tuple_equal((1,), (1,)) and not ops.list_equal([1], [2]) and ops.tuple_reversed((1, 2)) == (2, 1)
    assert ops.tuple_div((4, 9), (2, 3)) == (2, 3) and ops.make_list(1, 2) == [1, 2] and ops.make_slice(1, 5, 2) == slice(1, 5, 2)
    assert ops.tail((1, 2, 3)) == (2, 3) and ops.zip_operation((1, 2), (3, 4)) == ((1, 3), (2, 4))
    assert ops.switch(True, 1, 2) == 1 and ops.switch_layer(Tensor(1), ("a", "b")) == "b" and ops.array_to_scalar(Tensor(3)) == 3
    assert ops.bool_and(True, False) is False and ops.bool_or(True, False) and ops.bool_not(False) and ops.bool_eq(True, True)
    assert ops.string_eq("a", "a") and ops.string_concat("a", "b") == "ab" and ops.is_(M, M) and ops.is_not(M, V)
    assert ops.in_dict("a", {"a": 1}) and ops.not_in_dict("b", {"a": 1}) and ops.scalar_ne(1, 2)
    assert ops.reduced_shape((2, 3), 1) == (2, 1) and ops.reduced_shape((2, 3), ()) == (1, 1)
    assert ops.TensorToTuple()(t([1, 2])) == (1.0, 2.0)
    assert ops.ms_hasnext((1,)) and ops.ms_next((1, 2)) == (1, (2,)) and ops.iter_converter({"a": 1}) == ("a",)


def test_environments() -> None:
    p = Parameter(t(V), name="w")
    env = ops.environ_set(ops.environ_create(), ops.ref_to_embed(p), 2.0)
    assert ops.environ_get(env, "w", 0) == 2 and ops.environ_get(env, "x", 0) == 0
    assert ops.environ_add(env, {"w": 1.0, "x": 5}) == {"w": 3.0, "x": 5}
    assert ops.env_get(env, p) == 2 and (ops.env_get({}, p).asnumpy() == 0).all()


def test_names_of_1_0() -> None:
    assert ops.ControlDepend()(1, 2) is True and ops.control_depend(1, 2) is True

    @ops.core(loop=True)
    def function(x: Any) -> Any:
        return x

    assert function._func_graph_flags == {"core": True, "loop": True}


def test_records_of_kernels() -> None:
    info = ops.TBERegOp("add").partial_flag(True).kernel_name("k").input(0, "x", False, "required", "all").output(0, "z").dtype_format(
        ops.DataType.F16_Default, ops.DataType.F16_5HD,
    ).get_op_info()
    assert info["kernel"] == "k" and info["partial_flag"] and info["inputs"] == [
        {"index": 0, "name": "x", "paramType": "required", "needCompile": False, "shape": "all"},
    ]

    @ops.op_info_register(info)
    def add_impl() -> None:
        """A kernel of another device."""

    @ops.custom_info_register(info)
    def other() -> None:
        """A function for Custom."""

    assert add_impl.op_info is info and other.reg_info == (info,)
    with pytest.raises(ValueError, match="dtype_format of 1 items: expected 2, one for each input and output"):
        ops.CpuRegOp("a").input(0, "x").output(0, "y").dtype_format(ops.DataType.F32_Default).get_op_info()
    with pytest.raises(ValueError, match="expected 'pyfunc' or 'hybrid'; kernels of the other kinds are built for MindSpore's own runtime"):
        ops.Custom("./add.so:Add", lambda x: x, lambda x: x, "aot")


def test_a_kernel_without_gradient_says_so() -> None:
    custom = ops.Custom(ops.ms_kernel(lambda a: a * 2), func_type="hybrid")
    assert (custom(t(V)).asnumpy() == V * 2).all()
    with pytest.raises(RuntimeError, match="expected a bprop, because a gradient is requested"):
        ms.grad(lambda x: custom(x))(t(V))


def test_dumps_and_assertions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ops.TensorDump()(str(tmp_path / "a.npy"), t(V))
    ops.tensordump(str(tmp_path / "b"), t(M), "in")
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names[0].startswith("a_float32_") and names[1].startswith("b_in_float32_")
    assert (np.load(tmp_path / names[1]) == M).all()
    ops.Assert()(Tensor(True), [t(V)])
    with pytest.raises(RuntimeError, match="Assert: the condition is false"):
        ops.Assert(2)(False, [t(V)])
    assert capsys.readouterr().out == "For 'Assert' condition is false.\ninput data: [3. 1.]\n"


def test_a_graph_dumps_each_time(mode: int, tmp_path: Path) -> None:
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.dump = ops.TensorDump("in")

        def construct(self, x: Tensor) -> Tensor:
            y = x * 2
            self.dump(str(tmp_path / "y"), y)
            return y.sum()

    net = Net()
    for factor in (1, 2):
        assert ms.grad(net)(t(V * factor)).asnumpy().tolist() == [2] * V.size
        net(t(V * factor))
    paths = sorted(tmp_path.iterdir(), key=lambda path: int(path.stem.rpartition("_")[2]))
    assert [path.stem.rpartition("_")[0] for path in paths] == ["y_in_float32"] * 4
    assert [np.load(path).tolist() for path in paths] == [(V * 2).tolist()] * 2 + [(V * 4).tolist()] * 2
    assert len(dispatch.graphs(net)) == (mode == ms.GRAPH_MODE)


def test_a_graph_prints_each_time(mode: int, capsys: pytest.CaptureFixture[str]) -> None:
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.print = ops.Print()

        def construct(self, x: Tensor) -> Tensor:
            y = x + 1
            self.print("y", y)
            return y * 2

    net = Net()
    assert [float(net(t(1.0))), float(net(t(2.0)))] == [4, 6]
    form = "{}" if mode == ms.GRAPH_MODE else "Tensor(shape=[], dtype=Float32, value= {})"
    assert capsys.readouterr().out == f"y\n{form.format(2)}\ny\n{form.format(3)}\n"


def test_vmap_of_a_gradient(mode: int) -> None:
    result = ops.vmap(ms.grad(lambda x: (x**3).sum()))(t(M))
    np.testing.assert_allclose(result.asnumpy(), 3 * M**2, rtol=1e-5)
    with pytest.raises(ValueError, match="expected an axis in in_axes for at least one argument"):
        ops.vmap(ops.sin, None)(t(M))
    with pytest.raises(TypeError, match="vmap of a list of 1: expected two Cells or more"):
        ops.vmap([nn.ReLU()])


def test_vmap_of_an_ensemble_gives_each_cell_its_slice(mode: int) -> None:
    class KeepsLast(nn.Cell):
        def __init__(self):
            super().__init__()
            self.last = ms.Parameter(t([0.0, 0.0]), name="last")

        def construct(self, x, y):
            ops.assign(self.last, x * 2)
            return self.last + x * y, 3

    cells = nn.CellList([KeepsLast(), KeepsLast()])
    mapped = ops.vmap(cells, (1, None), (1, 0))
    slices, number = mapped(t([[1.0, 2.0], [3.0, 4.0]]), t(10.0))
    assert slices.asnumpy().tolist() == [[12.0, 24.0], [36.0, 48.0]] and number.asnumpy().tolist() == [3, 3]
    assert [cell.last.asnumpy().tolist() for cell in cells] == [[2.0, 6.0], [4.0, 8.0]]
    gradient = ms.grad(ops.vmap(cells, (0, None), (0, None)), 0)(t([[1.0, 2.0], [3.0, 4.0]]), t(10.0))
    assert gradient.asnumpy().tolist() == [[10.0, 10.0], [10.0, 10.0]]
    with pytest.raises(ValueError, match="expected as many slices along axis 0"):
        ops.vmap(cells)(t([1.0, 2.0, 3.0]), t(10.0))


def test_functions_as_operators(mode: int) -> None:
    twice = ops.Morph(lambda x: x * 2, lambda shape: shape, lambda dtype: dtype, lambda x, out, dout: (dout * 5,))
    if mode == ms.PYNATIVE_MODE:
        with pytest.raises(RuntimeError, match="Morph is only supported in GRAPH_MODE"):
            twice(t(V))
        assert (ms.jit(lambda x: twice(x))(t(V)).asnumpy() == 2 * V).all()
    else:
        assert (twice(t(V)).asnumpy() == 2 * V).all()
        assert (ms.grad(lambda x: twice(x))(t(V)).asnumpy() == 5).all()
        rows = ops.Morph(lambda row, table: table[row], lambda row, table: row, lambda row, table: row)      # infers the dtype of the rows
        assert rows(t([2], np.int32), t(V)).dtype == ms.float32                                              # 2.10 gives the same
        scaled = ops.Morph(lambda x, a=t(V), b=t(V): x * a + b, lambda *shapes: shapes[0], lambda *types: types[0])
        assert (scaled(t(V), b=t(0 * V)).asnumpy() == V * V).all()
    both = ops.PyFunc(lambda a, b: (a + b, a * b), [ms.float32] * 2, [(4,)] * 2, [ms.float32] * 2, [(4,)] * 2)
    assert [output.asnumpy().tolist() for output in both((t(V), t(V)))] == [(2 * V).tolist(), (V * V).tolist()]
    assert all((one.asnumpy() == other.asnumpy()).all() for one, other in zip(both(t(V), t(V)), both([t(V), t(V)])))
    counter = itertools.count(5)
    without_inputs = ops.PyFunc(lambda: np.array(next(counter), np.int32), [], [], [ms.int32], [()])
    assert [int(without_inputs()[0]) for _ in range(2)] == [5, 6]
    shaped = ops.PyFunc(lambda a, b: (a.reshape(4), b * 1.5), [ms.float32] * 2, [(2, 2), ()], [ms.float32] * 2, [(2, 2), ()])
    assert [output.asnumpy().tolist() for output in shaped(t(V), t([2.0]))] == [V.reshape(2, 2).tolist(), 3.0]
    with pytest.raises(TypeError, match="PyFunc: expected Int32 of result 0, got float64"):
        ops.PyFunc(lambda: 1.5, [], [], [ms.int32], [()])()
    with pytest.raises(ValueError, match=r"PyFunc: expected shape \(2,\) of input 0, got \(4,\)"):
        ops.PyFunc(lambda a: a, [ms.float32], [(2,)], [ms.float32], [(2,)])(t(V))
    with pytest.raises(TypeError, match="PyFunc: expected Float16 of input 0, got float32"):
        ops.PyFunc(lambda a: a, [ms.float16], [(4,)], [ms.float16], [(4,)])((t(V),))
    with pytest.raises(ValueError, match=r"Scan\(xs=None\): expected a length"):
        ops.Scan()(lambda carry, x: (carry, x), 1, None)
    assert ops._VirtualDataset()(t(V)).shape == (4,)


def test_hyper_map_of_unequal_structures(mode: int) -> None:
    pair = (t(V), t(V))

    class Net(nn.Cell):
        def construct(self, second: Any) -> Any:
            return ops.HyperMap()(lambda x, y: x * y, pair, second)

    if mode == ms.PYNATIVE_MODE:                                      # as in MindSpore: the longer tuple is cut
        assert len(Net()((1, 2, 3))) == len(Net()([1, 2])) == 2
        return
    with pytest.raises(ValueError, match=r"The tuples in HyperMap should have the same length\. Got 2, 3\."):
        Net()((1, 2, 3))
    with pytest.raises(TypeError, match="the types of arguments in HyperMap must be consistent, got a tuple and a list"):
        Net()([1, 2])


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, scale: float, hidden: np.ndarray) -> np.ndarray:
    scores = np.where(hidden, -np.inf, q @ k.swapaxes(-1, -2) * scale)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


@pytest.mark.parametrize("layout", ["BNSD", "BSND", "BSH", "SBH"])
def test_flash_attention_score(layout: str, mode: int) -> None:
    q, k, v = np.random.RandomState(0).randn(3, 2, 4, 5, 6).astype(np.float32)
    orders = {"BNSD": (0, 1, 2, 3), "BSND": (0, 2, 1, 3), "BSH": (0, 2, 1, 3), "SBH": (2, 0, 1, 3)}

    def laid(x: np.ndarray) -> Tensor:
        x = x.transpose(orders[layout])
        return Tensor((x.reshape(*x.shape[:2], -1) if layout in ("BSH", "SBH") else x).copy())

    hidden = np.triu(np.ones((5, 5), bool), 1)
    expected = laid(attention(q, k, v, 0.4, hidden)).asnumpy()
    inputs = {"scalar_value": 0.4, "input_layout": layout}
    for more in ({"attn_mask": Tensor(hidden)}, {"sparse_mode": 2}, {"sparse_mode": 3}, {"next_tokens": 0}):
        array = ops.flash_attention_score(laid(q), laid(k), laid(v), 4, **inputs, **more).asnumpy()
        np.testing.assert_allclose(array, expected, rtol=1e-4, atol=1e-5)
    single_head = ops.flash_attention_score(laid(q), laid(k[:, :1]), laid(v[:, :1]), 4, **inputs).asnumpy()
    wide = [np.repeat(x[:, :1], 4, 1) for x in (k, v)]
    np.testing.assert_allclose(single_head, laid(attention(q, *wide, 0.4, hidden & False)).asnumpy(), rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match=r"prefix=...: expected None"):
        ops.flash_attention_score(laid(q), laid(k), laid(v), 4, prefix=Tensor([1]), **inputs)


def test_rotary_position_embedding(mode: int) -> None:
    x = np.arange(8, dtype=np.float32).reshape(1, 1, 2, 4)
    cos, sin = np.full_like(x, 0.5), np.full_like(x, 2.0)
    halves = np.concatenate([-x[..., 2:], x[..., :2]], -1)
    pairs = np.stack([-x[..., 1::2], x[..., ::2]], -1).reshape(x.shape)
    for turned, way in ((halves, 0), (pairs, 1)):
        array = ops.rotary_position_embedding(Tensor(x), Tensor(cos), Tensor(sin), way).asnumpy()
        np.testing.assert_allclose(array, x * 0.5 + turned * 2)


def test_two_operators_of_one_name_are_refused() -> None:
    from torchspore.mindspore.ops.declaration.declare import op

    def gamma(x: Any) -> Any:
        return x

    with pytest.raises(ValueError, match=r"gamma of .*: expected a unique name"):
        op()(gamma)


def test_norms_of_sums(mode: int) -> None:
    gamma = t([1, 2, 3])
    out, factor, x = ops.add_rms_norm(t(M), t(M), gamma)
    expected = 1 / np.sqrt((4 * M * M).mean(-1, keepdims=True))
    np.testing.assert_allclose(factor.asnumpy(), expected, rtol=1e-5)
    np.testing.assert_allclose(out.asnumpy(), 2 * M * expected * [1, 2, 3], rtol=1e-5)
    assert (x.asnumpy() == 2 * M).all()
    out, mean, factor, x = ops.add_layer_norm(t(M), t(M), gamma, t([1, 1, 1]), additional_output=True)
    wide = 2 * M
    np.testing.assert_allclose(mean.asnumpy(), wide.mean(-1, keepdims=True), rtol=1e-5)
    normal = (wide - wide.mean(-1, keepdims=True)) / np.sqrt(wide.var(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(out.asnumpy(), normal * [1, 2, 3] + 1, rtol=1e-4)
    assert factor.shape == (2, 1) and (x.asnumpy() == wide).all()


def test_moved() -> None:
    assert (ops.move_to(t(V), "CPU").asnumpy() == V).all() and (ops.MoveTo()([1, 2], "CPU", True).asnumpy() == [1, 2]).all()
    with pytest.raises(ValueError, match="to='moon': expected 'CPU', 'Ascend' or 'GPU'"):
        ops.move_to(t(V), "moon")


def test_identity_returns_its_argument(mode: int) -> None:
    gradients = (Tensor([1.0]), Tensor([2.0]))
    for value in (gradients[0], gradients, None, 3, "a"):
        assert ops.identity(value) is value
    assert ms.grad(lambda x: (ops.identity(x) ** 2).sum())(gradients[1]).asnumpy().tolist() == [4.0]
    assert ops.Identity()(gradients[0]).asnumpy().tolist() == [1.0]
    with pytest.raises(TypeError):
        ops.Identity()(gradients)


def test_primitives_of_mint_functions() -> None:
    from mindspore.ops import auto_generate as G

    x = t(np.array([[-1.0, 2.0]], np.float32))
    assert np.allclose(G.EluExt(0.5)(x).asnumpy(), [[0.5 * (np.exp(-1.0) - 1), 2.0]])
    assert G.StackExt(1)((x, x)).asnumpy().tolist() == [[[-1, 2], [-1, 2]]]
    on, off = Tensor(2.0, ms.float32), Tensor(-1.0, ms.float32)
    rows = G.OneHotExt(0)(Tensor([0, 2, 5], ms.int64), 3, on, off)
    assert rows.asnumpy().tolist() == [[2, -1, -1], [-1, -1, -1], [-1, 2, -1]]
    assert G.OneHotExt()(Tensor([0, 2], ms.int64), -1, on, off).asnumpy().tolist() == [[2, -1, -1], [-1, -1, 2]]


@pytest.mark.parametrize(("name", "expected"), [
    ("list_greater_equal", [True, False, True]), ("list_greater_than", [False, False, True]), ("list_le", [True, True, False]),
    ("list_lt", [False, True, False]),
])
def test_lists_are_compared_as_python_orders_them(name: str, expected: list[bool]) -> None:
    pairs = (([1, 2], [1, 2]), ([1, 2], [1, 3]), ([2], [1, 3]))
    assert [getattr(ops, name)()(x, y) for x, y in pairs] == expected


def test_sequence_add_offset_gives_where_each_part_begins() -> None:
    assert ops.SequenceAddOffset()((1, 2), (3,)) == [0, 2]
