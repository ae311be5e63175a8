"""Initial values that are drawn in parts, and Tensors whose values are drawn at their first use after a Parameter was created."""
from __future__ import annotations

import copy
import pickle
from typing import Any

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common import initializer as initial

from torchspore.engine.random import initial_values, philox
from torchspore.engine.tensors import delayed_values
from torchspore.engine.tensors.delayed_values import is_delayed
from torchspore.mindspore.common import deferred_init

FILLS: dict[str, Any] = {
    "uniform": (philox.fill_uniform, (-0.3, 0.7)), "normal": (philox.fill_normal, (0.1, 2.0)),
    "truncated": (philox.fill_truncated_normal, (-1.0, 2.0, 0.1, 1.5)),
}
DESCRIBED: dict[str, Any] = {
    "zeros": initial.Zero(), "ones": initial.One(), "constant": initial.Constant(0.3), "uniform": initial.Uniform(0.2),
    "normal": initial.Normal(0.5, 0.1), "truncated normal": initial.TruncatedNormal(1.0, 0.0, -1.0, 1.0),
    "Xavier uniform": initial.XavierUniform(2.0), "Xavier normal": initial.XavierNormal(), "He uniform": initial.HeUniform(0.1),
    "He normal": initial.HeNormal(mode="fan_out"), "variance": initial.VarianceScaling(2.0),
    "untruncated variance": initial.VarianceScaling(2.0, "fan_avg", "untruncated_normal"),
}


@pytest.fixture
def delayed(monkeypatch: pytest.MonkeyPatch) -> None:
    """All Parameters are delayed, as those of a graph that several processes are going to split."""
    monkeypatch.setattr(initial, "is_delay_requested", lambda: True)
    monkeypatch.setattr(deferred_init, "is_delay_requested", lambda: True)
    monkeypatch.setattr(deferred_init, "SMALLEST", 0)


@pytest.mark.parametrize("name", FILLS)
@pytest.mark.parametrize("size, offset", [(1, 0), (1, 7), (5, 2), (37, 3), (100, 64), (40000, 32765), (600000, 5)])
def test_a_part_of_a_stream(name: str, size: int, offset: int) -> None:
    fill, numbers = FILLS[name]
    full, part = np.empty(offset + size + 3, np.float32), np.empty(size, np.float32)
    fill(full, 123456789012345, *numbers)
    fill(part, 123456789012345, *numbers, offset=offset)
    np.testing.assert_array_equal(part, full[offset:offset + size])


@pytest.mark.parametrize("dtype", [ms.float32, ms.float16, ms.bfloat16, ms.float64])
@pytest.mark.parametrize("name", DESCRIBED)
def test_parts_have_the_bits_of_the_full_values(name: str, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(initial_values, "_BLOCK", 50)
    ms.set_seed(5)
    full = Tensor(shape=(12, 9, 2), dtype=dtype, init=DESCRIBED[name])._t
    after = np.random.rand()
    ms.set_seed(5)
    description = DESCRIBED[name]._describe_((12, 9, 2), dtype)
    assert np.random.rand() == after and description.dtype is full.dtype
    for part in (None, [slice(0, 12), slice(0, 9), slice(0, 2)], [slice(4, 8), slice(0, 9), slice(0, 2)],
                 [slice(3, 6), slice(3, 6), slice(1, 2)], [slice(0, 12), slice(6, 9), slice(0, 2)]):
        torch.testing.assert_close(description.draw(part), full if part is None else full[tuple(part)], rtol=0, atol=0)


@pytest.mark.parametrize("init", [initial.Orthogonal(), initial.Sparse(0.5), initial.Identity(), initial.Constant(np.ones((4, 4)))])
def test_other_initializers_are_not_delayed(init: Any, delayed: None) -> None:
    assert not is_delayed(Parameter(initial.initializer(init, [4, 4]), name="w")._t)


def test_an_initializer_of_the_program_is_not_delayed(delayed: None) -> None:
    class Ramp(initial.Normal):
        def _initialize(self, arr: Any) -> None:
            arr[...] = np.arange(arr.size).reshape(arr.shape)

    parameter = Parameter(initial.initializer(Ramp(), [2, 3]), name="w")
    assert not is_delayed(parameter._t) and parameter.asnumpy().tolist() == [[0, 1, 2], [3, 4, 5]]


USES: dict[str, Any] = {
    "asnumpy": lambda p: p.asnumpy(), "operator": lambda p: (p * 2).asnumpy() / 2, "copy": lambda p: copy.copy(p).asnumpy(),
    "deepcopy": lambda p: copy.deepcopy(p).asnumpy(), "pickle": lambda p: pickle.loads(pickle.dumps(p)).asnumpy(),
    "data": lambda p: p.data.asnumpy(), "value": lambda p: p.value().asnumpy(), "init_data": lambda p: p.init_data().asnumpy(),
    "clone": lambda p: p.clone().asnumpy(), "Parameter": lambda p: Parameter(p, name="other").asnumpy(),
    "list": lambda p: np.array(p.tolist(), np.float32), "rows": lambda p: np.stack([row.asnumpy() for row in p]),
    "gradient": lambda p: ms.grad(lambda x: (x * p).sum())(Tensor(np.ones((6, 4), np.float32))).asnumpy(),
    "graph": lambda p: ms.jit(lambda: p + 0)().asnumpy(), "dlpack": lambda p: ms.utils.dlpack.from_dlpack(
        ms.utils.dlpack.to_dlpack(p)).asnumpy(),
    "torch": lambda p: torch.from_dlpack(p._t).numpy(),
}


@pytest.mark.parametrize("use", USES)
def test_the_first_use_draws_the_values(use: str, delayed: None) -> None:
    ms.set_seed(2)
    parameter = Parameter(initial.initializer("normal", [6, 4]), name="w")
    assert is_delayed(parameter._t) and parameter.shape == (6, 4) and parameter.dtype == ms.float32 and parameter.size == 24
    description = parameter._t.initial
    np.testing.assert_array_equal(USES[use](parameter), description.draw().numpy())
    np.testing.assert_array_equal(parameter.asnumpy(), description.draw().numpy())
    assert type(parameter._t) is torch.Tensor


def test_writes_reach_every_tensor_in_the_memory(delayed: None) -> None:
    parameter = Parameter(initial.initializer("ones", [3]), name="w")
    view = parameter.data
    assert is_delayed(parameter._t)
    view[0] = 5.0
    assert parameter.asnumpy().tolist() == view.asnumpy().tolist() == [5.0, 1.0, 1.0]
    ops.assign_add(parameter, Tensor(np.ones(3, np.float32)))
    assert view.asnumpy().tolist() == [6.0, 2.0, 2.0]


def test_new_values_are_taken_without_drawing(delayed: None, monkeypatch: pytest.MonkeyPatch) -> None:
    net = nn.Dense(3, 4)
    monkeypatch.setattr(delayed_values.DelayedValue, "draw", lambda self: pytest.fail("drew the values"))
    ms.load_param_into_net(net, {p.name: Parameter(Tensor(np.full(p.shape, 2, np.float32)), name=p.name) for p in net.get_parameters()})
    assert float(net.weight.asnumpy().sum()) == 24.0


def test_two_parameters_of_one_initial_tensor_are_equal_and_independent(delayed: None) -> None:
    tensor = initial.initializer("normal", [4, 4])
    first, second = Parameter(tensor, name="a"), Parameter(tensor, name="b")
    ops.assign(first, Tensor(np.zeros((4, 4), np.float32)))
    np.testing.assert_array_equal(second.asnumpy(), tensor.asnumpy())
    assert second.asnumpy().any() and not first.asnumpy().any()


def test_the_state_of_an_optimizer_is_delayed(delayed: None) -> None:
    ms.set_seed(3)
    net = nn.Dense(4, 4)
    optimizer = nn.Adam(net.trainable_params(), 0.1)
    assert all(is_delayed(p._t) for p in (*net.get_parameters(), *optimizer.moment1, *optimizer.moment2))
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer)
    x = Tensor(np.ones((2, 4), np.float32))
    losses = [float(step(x, x)) for _ in range(3)]
    assert losses[0] > losses[1] > losses[2] and optimizer.moment1[0].asnumpy().any()
