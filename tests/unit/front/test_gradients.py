"""Gradient transforms: what they give back, and what they leave alone."""
from __future__ import annotations

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, ParameterTuple, Tensor, nn, ops


def plain(result):
    """Nested Tensors as nested lists."""
    if isinstance(result, (tuple, list)):
        return [plain(item) for item in result]
    return result.asnumpy().tolist() if isinstance(result, Tensor) else result


def product(x, y):
    return x * x * y


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = Parameter(Tensor([2.0]), name="w")
        self.b = Parameter(Tensor([1.0]), name="b")

    def construct(self, x):
        return self.w * x


X, Y = Tensor([3.0, 1.0]), Tensor([2.0, 5.0])


def test_by_position(mode: int) -> None:
    assert plain(ms.grad(product)(X, Y)) == [12, 10]
    assert plain(ms.grad(product, 1)(X, Y)) == [9, 1]
    assert plain(ms.grad(product, (0, 1))(X, Y)) == [[12, 10], [9, 1]]
    assert plain(ms.value_and_grad(product, (1,))(X, Y)) == [[18, 5], [9, 1]]


def test_an_input_that_is_not_used_gets_zeros(mode: int) -> None:
    assert plain(ms.grad(lambda x, y: x.sum(), (0, 1))(X, Y)) == [[1, 1], [0, 0]]
    net = Net()
    assert plain(ms.grad(net, None, net.trainable_params())(X)) == [[4], [0]]


def test_a_result_of_several_elements_or_values_is_summed(mode: int) -> None:
    assert plain(ms.grad(lambda x: (x * 2, x * x))(X)) == [8, 4]


def test_aux_values_are_not_differentiated(mode: int) -> None:
    def with_aux(x, y):
        return product(x, y), x + y, y * 100

    gradient, aux = ms.grad(with_aux, 0, None, True)(X, Y)
    assert plain(gradient) == [12, 10] and plain(aux) == [[5, 6], [200, 500]]
    value, gradient = ms.value_and_grad(with_aux, 0, None, has_aux=True)(X, Y)
    assert plain(value) == [[18, 5], [5, 6], [200, 500]] and plain(gradient) == [12, 10]


def test_gradients_with_their_ids(mode: int) -> None:
    net = Net()
    gradients = ms.grad(net, 0, net.trainable_params(), return_ids=True)(X)
    assert ms.get_grad(gradients, 0).asnumpy().tolist() == [2, 2]
    assert ms.get_grad(gradients, net.w).asnumpy().tolist() == [4]
    assert ms.get_grad(gradients, "b").asnumpy().tolist() == [0]
    assert gradients[0][0] == 0 and gradients[1][0][0] == "w"


def test_weighing_the_result(mode: int) -> None:
    weight = Tensor([10.0, 1.0])
    assert plain(ms.grad(lambda x: x * x, sens_param=True)(X, weight)) == [60, 2]
    assert plain(ops.GradOperation(sens_param=True)(lambda x: x * x)(X, weight)) == [60, 2]


def test_grad_operation_gives_all_inputs_and_parameters(mode: int) -> None:
    net = Net()
    weights = ParameterTuple(net.trainable_params())
    assert plain(ops.GradOperation()(product)(X, Y)) == [12, 10]
    assert plain(ops.GradOperation(get_all=True)(product)(X, Y)) == [[12, 10], [9, 1]]
    assert plain(ops.GradOperation(get_by_list=True)(net, weights)(X)) == [[4], [0]]
    assert plain(ops.GradOperation(get_all=True, get_by_list=True)(net, weights)(X)) == [[[2, 2]], [[4], [0]]]


def test_one_value_in_two_positions_has_two_gradients() -> None:
    x = Tensor(3.0)
    assert plain(ms.grad(product, (0, 1))(x, x)) == [18, 9]


def test_nested_transforms_keep_the_outer_graph(mode: int) -> None:
    inner = ms.grad(lambda x: x * x * x)
    assert float(ms.grad(lambda x: inner(x))(Tensor(2.0))) == 12
    assert float(ms.grad(lambda x: x * inner(x))(Tensor(2.0))) == 36
    assert float(ms.grad(ms.grad(ms.grad(lambda x: x * x * x)))(Tensor(2.0))) == 6


def test_an_assignment_inside_leaves_the_value_that_was_read(mode: int) -> None:
    p = Parameter(Tensor(1.0), name="p")

    def assigning(x):
        y = p * p * x
        ops.assign(p, p + 1)
        return y

    assert float(ms.grad(assigning, None, p)(Tensor(3.0))) == 6
    assert float(p) == 2


def test_what_is_assigned_inside_is_read_afterwards(mode: int) -> None:
    p = Parameter(Tensor(1.0), name="p")

    def assigning(x):
        ops.assign(p, x * 2)
        return p * x

    assert float(ms.grad(assigning)(Tensor(3.0))) == 6          # nothing flows back into what was assigned, as in MindSpore
    assert float(p) == 6 and not p.torch().requires_grad
    by_input, by_weight = ms.grad(assigning, 0, p)(Tensor(3.0))
    assert (float(by_input), float(by_weight)) == (6, 3)        # what is read afterwards counts for the Parameter


def test_a_parameter_that_is_not_finite_can_be_assigned(mode: int) -> None:
    p = Parameter(Tensor([np.nan, np.inf]), name="p")

    def assigning(x):
        ops.assign(p, x * 2)
        return (p * x).sum()

    assert ms.grad(assigning)(Tensor([3.0, 4.0])).asnumpy().tolist() == [6, 8]
    p.set_data(Tensor([np.nan, np.inf]))
    value, _ = ms.value_and_grad(assigning, 0, p)(Tensor([3.0, 4.0]))
    assert float(value) == 50 and p.asnumpy().tolist() == [6, 8]


def test_stop_gradient(mode: int) -> None:
    assert plain(ms.grad(lambda x: ops.stop_gradient(x) * x)(X)) == [3, 1]
    assert plain(ms.grad(lambda x: sum(ops.stop_gradient((x, x * 2))) + x)(X)) == [1, 1]


def test_through_indexes_and_writes(mode: int) -> None:
    def writing(x):
        y = x * 2
        y[0] = x[1] * x[1]
        return y

    assert plain(ms.grad(lambda x: x[1:] * 5 + x[0])(X)) == [1, 5]
    assert plain(ms.grad(writing)(Tensor([1.0, 3.0]))) == [0, 8]
    assert plain(ms.grad(lambda x: x[Tensor([0, 0, 1])] * 3)(X)) == [6, 3]


def test_tuples_and_lists_of_inputs(mode: int) -> None:
    assert plain(ms.grad(lambda pair: pair[0] * pair[1])(ms.mutable((X, Y)))) == [[2, 5], [3, 1]]


def test_a_jit_function_inside() -> None:
    @ms.jit
    def cube(x):
        return x * x * x

    assert plain(ms.grad(cube)(X)) == [27, 3]
    assert plain(ms.grad(lambda x: cube(x) * 2)(X)) == [54, 6]
    assert plain(cube(X)) == [27, 1]


def test_nothing_requires_grad_afterwards(mode: int) -> None:
    net, x = Net(), Tensor([1.0])
    value, gradients = ms.value_and_grad(net, 0, net.trainable_params())(x)
    tensors = [net.w, net.b, x, value, gradients[0], *gradients[1]]
    assert not any(t.torch().requires_grad for t in tensors)


def test_parameters_that_no_one_trains_are_omitted() -> None:
    net = Net()
    net.b.requires_grad = False
    assert [p.name for p in net.trainable_params()] == ["w"] and [p.name for p in net.untrainable_params()] == ["b"]


@pytest.mark.parametrize("dtype", [ms.float16, ms.float32, ms.float64])
def test_gradients_have_the_dtype_of_their_input(dtype: object) -> None:
    assert ms.grad(lambda x: x * x)(Tensor(np.ones(2), dtype)).dtype == dtype
