"""What a program does to values that are kept for the backward pass."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import pytest
from mindspore import Tensor, nn, ops


class Product(nn.Cell):
    """x * y."""

    def construct(self, x: Tensor, y: Tensor) -> Tensor:
        return x * y


def _pair() -> tuple[Tensor, Tensor]:
    return Tensor([1.0, 2.0]), Tensor([3.0, 4.0])


def _values(gradients: Any) -> list[Any]:
    return [g.asnumpy().tolist() for g in gradients]


def test_hooks_see_saved_and_restored_tensors() -> None:
    packed, unpacked = [], []

    def pack(t: Tensor) -> Tensor:
        packed.append(t.asnumpy().tolist())
        return t + 1

    def unpack(t: Tensor) -> Tensor:
        unpacked.append(t.asnumpy().tolist())
        return t

    def forward(x: Tensor, y: Tensor) -> Tensor:
        with ms.saved_tensors_hooks(pack, unpack):
            out = x * y
        return out * 10

    assert _values(ops.grad(forward, (0, 1))(*_pair())) == [[40.0, 50.0], [20.0, 30.0]]
    assert sorted(packed) == [[1.0, 2.0], [3.0, 4.0]] and sorted(unpacked) == [[2.0, 3.0], [4.0, 5.0]]


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def test_hooks_of_a_cell_and_of_a_function(mode: int) -> None:
    ms.set_context(mode=mode)
    net = Product()
    net.register_saved_tensors_hooks(lambda t: t + 1, lambda t: t)
    assert _values(ops.grad(net, (0, 1))(*_pair())) == [[4.0, 5.0], [2.0, 3.0]]
    assert net(*_pair()).asnumpy().tolist() == [3.0, 8.0]
    function = ms.register_saved_tensors_hooks(lambda t: t * 2, lambda t: t)(lambda x, y: x * y)
    assert _values(ms.jit(ops.grad(function, (0, 1)))(*_pair())) == [[6.0, 8.0], [2.0, 4.0]]


def test_what_is_packed_may_be_anything() -> None:
    net = Product()
    net.register_saved_tensors_hooks(lambda t: t.asnumpy().tolist(), lambda array: Tensor(array))
    assert _values(ops.grad(net, (0, 1))(*_pair())) == [[3.0, 4.0], [1.0, 2.0]]


def test_hooks_that_do_not_fit() -> None:
    with pytest.raises(TypeError, match=r"saved_tensors_hooks\(pack_hook=3\): expected a function of one value, got int"):
        ms.saved_tensors_hooks(3, print)  # type: ignore[arg-type]
    net = Product()
    net.register_saved_tensors_hooks(lambda t: t, lambda t: 3)
    with pytest.raises(TypeError, match="unpack_hook gave a int: expected a Tensor"):
        ops.grad(net)(*_pair())
    net.register_saved_tensors_hooks(lambda t: t, lambda t: t.sum())
    with pytest.raises(ValueError, match=r"unpack_hook gave a Tensor of shape \(\) and float32: expected shape \(2,\) and float32"):
        ops.grad(net)(*_pair())


def test_swapped_tensors() -> None:
    a, b = Tensor([1.0]), ms.Parameter(Tensor([2, 3]), name="b")
    ms.swap_tensors(a, b)
    assert isinstance(a, ms.Parameter) and a.name == "b" and a.asnumpy().tolist() == [2, 3]
    assert type(b) is Tensor and b.asnumpy().tolist() == [1.0]
    with pytest.raises(TypeError, match="swap_tensors"):
        ms.swap_tensors(a, 3)  # type: ignore[arg-type]
