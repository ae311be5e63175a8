"""What Parameters are called: checkpoints are made of these names."""
from __future__ import annotations

import copy

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, ParameterTuple, Tensor, nn


def names(cell: nn.Cell) -> list[str]:
    return [parameter.name for parameter in cell.get_parameters()]


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm2d(3)
        self.layers = nn.SequentialCell(nn.Dense(2, 2), nn.ReLU(), nn.Dense(2, 2, has_bias=False))
        self.scale = Parameter(Tensor([1.0]))
        self.shift = Parameter(Tensor([1.0]), name="own_name")


NET = [
    "scale", "own_name", "bn.moving_mean", "bn.moving_variance", "bn.gamma", "bn.beta",
    "layers.0.weight", "layers.0.bias", "layers.2.weight",
]


def test_names_are_paths_of_attributes() -> None:
    assert sorted(names(Net())) == sorted(NET)


def test_a_bare_batch_norm_says_mean() -> None:
    assert names(nn.BatchNorm2d(3)) == ["mean", "variance", "gamma", "beta"]


def test_a_parameter_without_a_name_takes_the_attributes() -> None:
    net, alone = Net(), Parameter(Tensor([1.0]))
    assert net.scale.name == "scale" and net.shift.name == "own_name"
    assert alone.name.startswith("Parameter#") and Parameter(Tensor([1.0])).name != alone.name


def test_a_copy_keeps_the_names() -> None:
    net = Net()
    copied = copy.deepcopy(net)
    assert names(copied) == names(net)
    copied.scale.set_data(Tensor([5.0]))
    assert float(net.scale) == 1


def test_a_prefix_replaces_the_one_before() -> None:
    net = Net()
    net.update_parameters_name("a.")
    net.update_parameters_name("b.")
    assert "b.layers.0.weight" in names(net) and not any(name.startswith(("a.", "b.a.")) for name in names(net))


class Plain(nn.Cell):
    def __init__(self, auto_prefix):
        super().__init__(auto_prefix=auto_prefix)
        self.inner = nn.Dense(2, 2, has_bias=False)


def test_auto_prefix_can_be_turned_off() -> None:
    assert names(Plain(True)) == ["inner.weight"] and names(Plain(False)) == ["weight"]


def test_cells_and_names_are_dotted() -> None:
    result = [name for name, _ in Net().cells_and_names()]
    assert result == ["", "bn", "layers", "layers.0", "layers.1", "layers.2"]
    assert list(Net().parameters_dict()) == names(Net())


def test_a_shared_parameter_is_listed_once() -> None:
    net = nn.SequentialCell(nn.Dense(2, 2, has_bias=False), nn.Dense(2, 2, has_bias=False))
    net[1].weight = net[0].weight
    assert names(net) == ["0.weight"]


@pytest.mark.parametrize(("make", "expected"), [
    (lambda net: nn.Momentum(net.trainable_params(), 0.1, 0.9), [
        "global_step", "momentum", "moments.weight", "moments.bias", "learning_rate",
    ]),
    (lambda net: nn.Adam(net.trainable_params()), [
        "global_step", "learning_rate", "beta1_power", "beta2_power", "moment1.weight", "moment1.bias", "moment2.weight", "moment2.bias",
    ]),
])
def test_the_names_of_an_optimizers_state(make: object, expected: list[str]) -> None:
    net = nn.Dense(2, 2)
    assert {*expected} <= {*names(make(net))}


def test_one_name_twice_is_refused_by_an_optimizer() -> None:
    a, b = (Parameter(Tensor([1.0]), name="w") for _ in range(2))
    with pytest.raises(ValueError):
        nn.SGD([a, b], 0.1)
    with pytest.raises(ValueError):
        nn.SGD([a, a], 0.1)
    with pytest.raises(ValueError):
        ParameterTuple([a, b])
    assert len(nn.SGD([Parameter(Tensor([1.0])), Parameter(Tensor([2.0]))], 0.1).parameters) == 2


def test_a_parameter_tuple_clones_under_a_prefix() -> None:
    clone = ParameterTuple([Parameter(Tensor([1.0]), name="a"), Parameter(Tensor([2.0]), name="b")]).clone("old", "zeros")
    assert [p.name for p in clone] == ["old.a", "old.b"] and [float(p) for p in clone] == [0, 0]


def test_recurrent_names_do_not_exist_twice_after_reassignment() -> None:
    net = Net()
    net.layers = nn.SequentialCell(nn.Dense(2, 2))
    assert "layers.2.weight" not in names(net) and "layers.0.weight" in names(net)


def test_set_data_takes_another_shape_and_keeps_the_dtype() -> None:
    parameter = Parameter(Tensor([1.0, 2.0]), name="w")
    assert parameter.set_data(Tensor(np.ones((3, 1)))) is parameter
    assert parameter.shape == (3, 1) and parameter.dtype == ms.float32
    number = Parameter(Tensor([1, 2]), name="n")
    number.set_data(Tensor([1.5, 2.5]))
    assert number.dtype == ms.int64 and number.asnumpy().tolist() == [1, 2]


def test_name_of_the_class_and_own_gradient() -> None:
    class Own(nn.Cell):
        def construct(self, x):
            return x

        def bprop(self, x, out, dout):
            return (dout,)

    assert (Own().cls_name, nn.Dense(2, 2).cls_name, Own().has_bprop, nn.Dense(2, 2).has_bprop) == ("Own", "Dense", True, False)
    cell = Own()
    cell.cls_name = "other"
    assert cell.cls_name == "other" and "cls_name" in dir(nn.Cell)


def test_set_data_refuses_arrays_and_floats_for_ints() -> None:
    with pytest.raises(TypeError, match="expected a Tensor, an int or a float, got ndarray"):
        Parameter(Tensor([1.0]), name="w").set_data(np.ones(1))
    with pytest.raises(TypeError, match="Incoming Parameter dtype can not be converted to current dtype implicitly"):
        Parameter(1, name="w").set_data(1.5)
