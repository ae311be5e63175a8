"""`Tensor.register_hook` and the executors that programs ask; numbers as real MindSpore 2.10 gives them in PyNative mode."""
from __future__ import annotations

import mindspore as ms
import pytest
from mindspore import Parameter, Tensor, nn
from mindspore.common.api import _cell_graph_executor, _no_grad, _pynative_executor


@pytest.fixture(params=[ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["pynative", "graph"])
def mode(request):
    before = ms.get_context("mode")
    ms.set_context(mode=request.param)
    yield request.param
    ms.set_context(mode=before)


def value(gradient) -> float:
    return float(gradient.asnumpy().reshape(-1)[0])


def test_a_hook_sees_and_changes_the_gradient_of_what_was_computed(mode: int) -> None:
    seen = []

    def doubled(gradient):
        seen.append(value(gradient))
        return gradient * 2

    def hooked(x):
        y = x * x
        y.register_hook(doubled)
        return y * 3

    for times in (1, 2):
        assert value(ms.grad(hooked)(Tensor([2.0]))) == 24.0
        assert seen == [3.0] * times                     # in Python, each time


def test_hooks_run_in_the_order_of_their_registration(mode: int) -> None:
    def hooked(x):
        y = x * x
        y.register_hook(lambda gradient: gradient + 1)
        y.register_hook(lambda gradient: gradient * 10)
        taken_away = y.register_hook(lambda gradient: gradient * 1000)
        taken_away.remove()
        y.register_hook(lambda gradient: None)
        return y * 3

    assert value(ms.grad(hooked)(Tensor([2.0]))) == 160.0


def test_a_hook_of_an_input_stays_until_it_is_removed(mode: int) -> None:
    x = Tensor([2.0])
    handle = x.register_hook(lambda gradient: gradient * 2)
    square = ms.grad(lambda t: t * t)
    assert [value(square(x)), len(x.hooks())] == [8.0, 1]
    handle.remove()
    assert [value(square(x)), x.hooks()] == [4.0, []]


def test_a_hook_of_a_parameter_counts_in_every_step(mode: int) -> None:
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.weight = Parameter(Tensor([3.0]), name="weight")

        def construct(self, x):
            return x * self.weight

    net = Net()
    step = ms.value_and_grad(net, None, net.trainable_params())
    assert value(step(Tensor([2.0]))[1][0]) == 2.0
    net.weight.register_hook(lambda gradient: gradient * 2)
    assert [value(step(Tensor([2.0]))[1][0]) for _ in range(2)] == [4.0, 4.0]


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(TypeError, match="expected a function of a gradient, got int"):
        Tensor([1.0]).register_hook(1)


def test_a_parameter_takes_no_hook_inside_of_a_graph() -> None:
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.weight = Parameter(Tensor([3.0]), name="weight")

        def construct(self, x):
            self.weight.register_hook(lambda gradient: gradient)
            return x * self.weight

    before = ms.get_context("mode")
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        with pytest.raises(ValueError, match="Register hook for Parameter inside graph is not supported"):
            Net()(Tensor([1.0]))
    finally:
        ms.set_context(mode=before)


def test_no_gradient_flows_through_no_grad(mode: int) -> None:
    def partly(x):
        with _no_grad():
            y = x * x
        return y * x

    @_no_grad()
    def square(x):
        assert not _pynative_executor.enable_grad()
        return x * x

    assert value(ms.grad(partly)(Tensor([3.0]))) == 9.0
    assert value(ms.grad(lambda x: square(x) * x)(Tensor([3.0]))) == 9.0
    assert _pynative_executor.enable_grad()


def test_the_executor_says_whether_a_gradient_is_taken() -> None:
    events = []

    def cubed(x):
        events.append((_pynative_executor.grad_flag(), _pynative_executor.requires_grad(), _pynative_executor.high_order()))
        return x * x * x

    cubed(Tensor([1.0]))
    ms.grad(cubed)(Tensor([1.0]))
    ms.grad(ms.grad(cubed))(Tensor([1.0]))
    assert events == [(False, False, False), (True, True, False), (True, True, True)]
    _pynative_executor.sync()
    _pynative_executor.clear_res()
    with pytest.raises(TypeError, match="set_enable_grad"):
        _pynative_executor.set_enable_grad(1)


def test_the_graph_executor_captures_and_runs() -> None:
    net = nn.Dense(2, 1, weight_init="ones", bias_init="ones")
    name, done = _cell_graph_executor.compile(net, Tensor([[1.0, 2.0]]), phase="train")
    assert name.startswith("train.Dense.") and done and net.compiled
    assert _cell_graph_executor(net, Tensor([[1.0, 2.0]])).asnumpy().tolist() == [[4.0]]
    with pytest.raises(TypeError, match="expected a Cell or a function"):
        _cell_graph_executor.compile(3)


def test_a_constant_argument_is_computed_with_as_any_other(mode: int) -> None:
    x = Tensor([3.0], const_arg=True)
    square = ms.grad(lambda t: t * t)
    assert x.const_arg and value(square(x)) == 6.0
    x.set_const_arg(False)
    assert not x.const_arg and value(square(x)) == 6.0
    with pytest.raises(TypeError, match="set_const_arg"):
        x.set_const_arg(1)
