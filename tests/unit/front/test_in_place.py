"""Operators and methods that write into their Tensor, for which MindSpore 2.10 has no kernel on the CPU, against NumPy."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops

X = np.array([[1.0, -2.0, 3.0], [0.5, 0.25, -1.5], [4.0, 2.0, 1.0]], np.float32)
P = np.abs(X) + np.float32(0.5)
I = np.array([2, 0, 1])


def with_rows(add: bool) -> np.ndarray[Any, Any]:
    result = X.copy() if add else np.zeros_like(X)
    result[I] += P
    return result


def put(values: np.ndarray[Any, Any], at: Any, new: Any) -> np.ndarray[Any, Any]:
    copy = values.copy()
    copy[at] = new
    return copy


WRITES: dict[str, tuple[Any, Any]] = {
    "exp_": (lambda x: x.exp_(), np.exp(X)), "log_": (lambda x: x.abs().log_(), np.log(np.abs(X))),
    "floor_": (lambda x: x.floor_(), np.floor(X)), "sign_": (lambda x: x.sign_(), np.sign(X)), "tanh_": (lambda x: x.tanh_(), np.tanh(X)),
    "sigmoid_": (lambda x: x.sigmoid_(), 1 / (1 + np.exp(-X))), "zero_": (lambda x: ops.zero_(x), 0 * X),
    "inplace_sigmoid": (lambda x: ops.inplace_sigmoid(x), 1 / (1 + np.exp(-X))),
    "clamp_": (lambda x: ops.clamp_(x, -1.0, 1.0), X.clip(-1, 1)), "erf": (lambda x: ops.tanh_(x), np.tanh(X)),
    "masked_fill_": (lambda x: x.masked_fill_(x > 0, 3.0), np.where(X > 0, 3, X)),
    "masked_scatter_": (lambda x: x.masked_scatter_(x > 2, Tensor(P)), put(X, X > 2, P.reshape(-1)[:2])),
    "fill_diagonal_": (lambda x: x.fill_diagonal_(9.0), np.where(np.eye(3) > 0, 9, X)),
    "index_add_": (lambda x: x.index_add_(0, Tensor(I), Tensor(P)), with_rows(True)),
    "index_copy_": (lambda x: x.index_copy_(0, Tensor(I), Tensor(P)), with_rows(False)),
    "index_fill_": (lambda x: x.index_fill_(0, Tensor([1]), 2.0), put(X, 1, 2)),
    "index_put_": (lambda x: x.index_put_((Tensor([0]), Tensor([2])), Tensor([7.0])), put(X, (0, 2), 7)),
    "scatter_": (lambda x: x.scatter_(1, Tensor([[0], [2]]), Tensor([[7.0], [8.0]])), put(put(X, (0, 0), 7), (1, 2), 8)),
    "scatter_add_": (lambda x: x.scatter_add_(1, Tensor([[0]]), Tensor([[7.0]])), put(X, (0, 0), 8)),
    "put_": (lambda x: x.put_(Tensor([0, 4]), Tensor([7.0, 8.0])), put(put(X, (0, 0), 7), (1, 1), 8)),
    "put_function": (lambda x: ops.put_(x, Tensor([0]), Tensor([7.0]), True), put(X, (0, 0), 8)),
    "addmm_": (lambda x: x.addmm_(Tensor(X), Tensor(P), beta=2), 2 * X + X @ P),
    "remainder_": (lambda x: x.remainder_(2.0), X % 2), "floor_divide_": (lambda x: x.floor_divide_(2.0), X // 2),
}
CALLS: dict[str, tuple[Any, Any]] = {
    "erfinv_": (lambda: ops.erf(ops.erfinv_(Tensor(X / 5))), X / 5), "take": (lambda: ops.take(Tensor(X), Tensor([0, 4])), [1, 0.25]),
    "type_as": (lambda: ops.type_as(Tensor(X), Tensor(I)), X.astype(np.int64)), "embedding": (lambda: ops.embedding(
        Tensor(I), Tensor(X), max_norm=1.0,
    ), X[I] / np.maximum(np.linalg.norm(X[I], axis=1, keepdims=True), 1)),
    "baddbmm_ext": (lambda: ops.baddbmm_ext(*[Tensor(X[None])] * 3, beta=2), 2 * X[None] + X @ X),
    "einsum_ext": (lambda: ops.einsum_ext("ij,kj->ik", Tensor(X), Tensor(P)), X @ P.T),
    "kthvalue": (lambda: Tensor(X).kthvalue(2, 1)[0], np.sort(X, 1)[:, 1]), "new_full": (lambda: Tensor(X).new_full((2,), 7), [7, 7]),
    "eigvals": (lambda: ops.sort(ops.real(Tensor(X @ X.T).eigvals()))[0], np.linalg.eigvalsh(X @ X.T)),
    "triangular_solve": (lambda: Tensor(P).triangular_solve(Tensor(np.triu(P)))[0], np.linalg.solve(np.triu(P), P)),
    "new_empty": (lambda: Tensor(X).new_empty((2, 1)), [[0], [0]]), "to_coo": (lambda: Tensor(X).to_coo().to_dense(), X),
    "to_csr": (lambda: Tensor(X).to_csr().to_dense(), X), "bernoulli_ext": (lambda: ops.bernoulli_ext(ops.ones((2,))), [1, 1]),
}


@pytest.mark.parametrize("name", WRITES)
def test_writes_of_functions(name: str, mode: int) -> None:
    call, expected = WRITES[name]

    class Net(nn.Cell):
        def construct(self, x: Tensor) -> Tensor:
            return call(x)

    np.testing.assert_allclose(Net()(Tensor(X.copy())).asnumpy(), expected, rtol=1e-5, atol=1e-6)
    x = Tensor(X.copy())
    result = call(x)
    assert result is x or name == "log_"


@pytest.mark.parametrize("name", CALLS)
def test_results_of_functions(name: str, mode: int) -> None:
    call, expected = CALLS[name]
    array = call().asnumpy()
    assert array.shape == np.shape(expected)
    np.testing.assert_allclose(array, expected, rtol=1e-3, atol=1e-4)


def test_random_ones_stay_in_place() -> None:
    ms.set_seed(1)
    for call, mean, spread in (
        (lambda x: ops.normal_(x, 2.0, 0.5), 2, 0.5), (lambda x: ops.uniform_(x, 1.0, 3.0), 2, 3**-0.5),
        (lambda x: ops.bernoulli_(x, 0.25), 0.25, 0.1875**0.5), (lambda x: ops.exponential_(x, 2.0), 0.5, 0.5),
        (lambda x: ops.random_(x, 0, 10), 4.5, 8.25**0.5), (lambda x: x.uniform(0.0, 2.0), 1, 3**-0.5),
        (lambda x: x.log_normal(0.0, 0.25).log(), 0, 0.25), (lambda x: ops.clamp(x.cauchy(1.0, 0.1), 0.9, 1.1), 1, None),
    ):
        x = ops.zeros((20000,))
        array = call(x).asnumpy()
        assert array.shape == (20000,) and abs(array.mean() - mean) < 0.05
        if spread is not None:
            assert abs(array.std() - spread) < 0.05
    assert int(ops.random_(ops.zeros((1000,), ms.int8)).asnumpy().max()) <= 127
    with pytest.raises(TypeError, match="generator=3: expected None"):
        ops.normal_(ops.zeros((2,)), generator=3)


def test_a_gradient_is_cut_in_place() -> None:
    def function(x: Tensor) -> Tensor:
        y = x * 2
        ops.stop_gradient_(y)
        return x * y

    np.testing.assert_allclose(ms.grad(function)(Tensor(X)).asnumpy(), 2 * X)


def test_data() -> None:
    x = Tensor(X.copy())
    x.data = Tensor(P)
    assert (x.asnumpy() == P).all() and (x.data.asnumpy() == P).all()
    with pytest.raises(TypeError, match=r"Tensor.data = ...: expected a Tensor, got int"):
        x.data = 3


@pytest.mark.parametrize("call", [
    lambda x: x.add_(0.5), lambda x: x.mul_(Tensor([0.5, 1.0])), lambda x: x.div_(2), lambda x: x.exp_(), lambda x: x.tanh_(),
    lambda x: x.clamp_(0.5, 1.5), lambda x: x.floor_divide_(0.5), lambda x: x.add_(Tensor([1j, 1])),
])
def test_fractions_are_not_written_into_integers(call: Any) -> None:
    x = Tensor([1, 2])
    with pytest.raises(TypeError, match=r"expected a result that Int64 can hold, got (Float|Complex)"):
        call(x)
    assert x.asnumpy().tolist() == [1, 2]


def test_what_fits_is_written() -> None:
    assert Tensor([4, 2]).div_(3, rounding_mode="floor").asnumpy().tolist() == [1, 0]
    assert Tensor([1.0]).mul_(Tensor([2])).dtype == ms.float32 and Tensor([1.0], ms.float16).add_(Tensor([1.0])).dtype == ms.float16
    x = Tensor([1, 2])
    assert x.copy_(Tensor([1.5, 2.5])).asnumpy().tolist() == [1, 2] and x.set_const_arg(True) is x
