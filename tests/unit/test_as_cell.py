"""`torchspore.as_cell`: a torch Module as a Cell."""
from __future__ import annotations

import copy
import pickle
import sys
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import Tensor, nn, ops

import torchspore

DATA = np.random.default_rng(0).standard_normal((6, 3)).astype(np.float32)
LABELS = np.array([0, 1, 0, 1, 1, 0], np.int32)
X = Tensor(DATA)


@pytest.fixture
def in_mode(mode: int) -> Any:
    yield mode
    ms.set_context(mode=ms.PYNATIVE_MODE)


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Dense(3, 3)
        self.body = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.ReLU(), torch.nn.Linear(4, 2))

    def construct(self, x: Any) -> Any:
        return self.body(self.first(x))


def net_and_twin() -> tuple[Net, torch.nn.Module]:
    """Return a net, and the same in torch alone."""
    torch.manual_seed(0)
    ms.set_seed(0)
    net = Net()
    twin = torch.nn.Sequential(torch.nn.Linear(3, 3), copy.deepcopy(net.body.module))
    twin[0].load_state_dict({"weight": net.first.weight.torch(), "bias": net.first.bias.torch()})
    return net, twin


def difference(net: nn.Cell, twin: torch.nn.Module, data: np.ndarray = DATA) -> float:
    with torch.no_grad():
        return float((net(Tensor(data)).torch() - twin(torch.from_numpy(data))).abs().max())


def test_names_and_flags() -> None:
    net, _ = net_and_twin()
    statistics = ["body.1.running_mean", "body.1.running_var", "body.1.num_batches_tracked"]
    assert [p.name for p in net.untrainable_params()] == statistics
    trained = ["body.0.weight", "body.0.bias", "body.1.weight", "body.1.bias", "body.3.weight", "body.3.bias"]
    assert [p.name for p in net.trainable_params()] == ["first.weight", "first.bias", *trained]
    assert [name for name, _ in net.parameters_and_names()][2:] == [*trained[:4], *statistics, *trained[4:]]
    assert net.body.module[0].weight.data_ptr() == net.trainable_params()[2].data_ptr()
    frozen = torchspore.as_cell(torch.nn.Linear(2, 2).requires_grad_(False))
    assert not frozen.trainable_params() and len(list(frozen.get_parameters())) == 2


def test_training_equals_torch(in_mode: int) -> None:
    net, twin = net_and_twin()
    net.set_train()
    twin.train()
    loss_of = nn.CrossEntropyLoss()
    optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
    expected_optimizer = torch.optim.SGD(twin.parameters(), 0.1, momentum=0.9)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, loss_of), optimizer).set_train()
    for _ in range(3):
        loss = step(X, Tensor(LABELS))
        expected_optimizer.zero_grad()
        expected = torch.nn.functional.cross_entropy(twin(torch.from_numpy(DATA)), torch.from_numpy(LABELS).long())
        expected.backward()
        expected_optimizer.step()
        assert float(loss) == pytest.approx(expected.item(), rel=1e-6)
    state, expected_state = net.body.module.state_dict(), twin[1].state_dict()
    for name, value in expected_state.items():
        torch.testing.assert_close(state[name], value, msg=name)
    assert state["1.num_batches_tracked"] == 3
    net.set_train(False)
    assert difference(net, twin.eval()) < 1e-6


def test_a_gradient_in_graph_mode_is_one_graph() -> None:
    net, _ = net_and_twin()
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        step = ms.value_and_grad(lambda x: net(x).sum(), None, net.trainable_params())
        step(X)
        assert len(torchspore.graphs(step)) == 1
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)


def twice(_: Any, __: Any, output: Any) -> Any:
    return output * 2


def test_changes_of_the_module_act(in_mode: int) -> None:
    net, twin = net_and_twin()
    twin.eval()
    assert difference(net, twin) < 1e-6
    for change in (
        lambda body: body[1].train(), lambda body: body[1].eval(), lambda body: setattr(body[1], "eps", 0.5),
        lambda body: body[2].register_forward_hook(twice), lambda body: body[0].weight.data.fill_(0.1),
        lambda body: setattr(body, "2", torch.nn.Tanh()),
    ):
        change(net.body.module)
        change(twin[1])
        assert difference(net, twin) < 1e-6


def test_the_training_mode() -> None:
    module = torch.nn.Sequential(torch.nn.Dropout(0.5))
    cell = torchspore.as_cell(module)
    assert not cell.training and not module.training and not module[0].training          # as every new Cell
    parent = nn.SequentialCell(cell)
    parent.set_train()
    assert cell.training and module[0].training
    module.eval()
    assert not cell.training


def test_checkpoints(tmp_path: Path) -> None:
    net, _ = net_and_twin()
    file = str(tmp_path / "net.ckpt")
    ms.save_checkpoint(net, file)
    stored = ms.load_checkpoint(file)
    assert set(stored) == {p.name for p in net.get_parameters()}
    other, _ = net_and_twin()
    for parameter in other.get_parameters():
        parameter.set_data(ops.zeros_like(parameter))
    assert not ms.load_param_into_net(other, stored)[0]
    assert torch.equal(other.body.module[0].weight, net.body.module[0].weight)
    np.testing.assert_array_equal(other(X).asnumpy(), net(X).asnumpy())


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))])
def test_copies(copied: Callable[[Any], Any]) -> None:
    net, _ = net_and_twin()
    net.body.module[2].register_forward_hook(twice)
    other = copied(net)
    assert [p.name for p in other.get_parameters()] == [p.name for p in net.get_parameters()]
    np.testing.assert_array_equal(other(X).asnumpy(), net(X).asnumpy())
    other.body.module[0].weight.data.zero_()
    assert net.body.module[0].weight.any() and not other.trainable_params()[2].asnumpy().any()


def test_mixed_precision(in_mode: int) -> None:
    net, _ = net_and_twin()
    dtypes = []
    net.body.module[3].register_forward_hook(lambda _, __, output: dtypes.append(output.dtype))
    net.to_float(ms.bfloat16)(X)
    assert dtypes[0] is torch.bfloat16 and net.body.module[0].weight.dtype is torch.float32
    dtypes.clear()
    other, _ = net_and_twin()
    other.body.module[3].register_forward_hook(lambda _, __, output: dtypes.append(output.dtype))
    ms.amp.auto_mixed_precision(other, "auto", ms.float16)(X)
    assert dtypes[0] is torch.float16


class Pair(NamedTuple):
    a: Any
    b: Any


class Results(torch.nn.Module):
    def __init__(self, result: Callable[[Any], Any]) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 2)
        self.result = result

    def forward(self, x: Any, scale: float = 1.0) -> Any:
        return self.result(self.linear(x) * scale)


def test_arguments_and_results(in_mode: int) -> None:
    cell = torchspore.as_cell(Results(lambda y: {"pair": Pair(y, [y, None, 3, "text"]), "ordered": OrderedDict(x=y)}))
    result = cell(X, scale=2.0)
    assert type(result["pair"].a) is Tensor and type(result["ordered"]["x"]) is Tensor and list(result["pair"].b[1:]) == [None, 3, "text"]
    with pytest.raises(TypeError, match="as_cell of Results: the result has a value of type object"):
        torchspore.as_cell(Results(lambda _: object()))(X)
    with pytest.raises(TypeError, match="a sparse or nested result"):
        torchspore.as_cell(Results(lambda y: y.to_sparse()))(X)


@pytest.mark.parametrize("make", [
    lambda: torch.nn.LSTM(3, 4), lambda: torch.nn.MultiheadAttention(3, 1), lambda: torch.nn.utils.parametrizations.weight_norm(
        torch.nn.Linear(3, 2)), lambda: torch.nn.TransformerEncoderLayer(3, 1, 8, 0.0), lambda: torch.nn.GRUCell(3, 4),
])
def test_gradients_of_modules_with_parameters_in_lists_and_parametrizations(in_mode: int, make: Callable[[], Any]) -> None:
    torch.manual_seed(1)
    module = make().train()
    expected = copy.deepcopy(module)
    cell = torchspore.as_cell(module).set_train()
    copies = 3 if isinstance(module, torch.nn.MultiheadAttention) else 1

    def first(result: Any) -> Any:
        return (result[0] if isinstance(result, tuple) else result).sum() if not isinstance(module, torch.nn.TransformerEncoderLayer) else (
            (result * result * result).sum())

    _, gradients = ms.value_and_grad(lambda x: first(cell(*[x] * copies)), None, cell.trainable_params())(X)
    first(expected(*[torch.from_numpy(DATA)] * copies)).backward()
    for gradient, parameter, (name, value) in zip(gradients, cell.trainable_params(), expected.named_parameters(), strict=True):
        assert parameter.name == name
        np.testing.assert_allclose(gradient.asnumpy(), value.grad.numpy(), rtol=1e-5, atol=1e-6, err_msg=name)


class Listed(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Parameter(torch.ones(3)), torch.nn.Parameter(torch.full((3,), 2.0))
        self.both = [self.first, self.second]

    def forward(self, x: Any) -> Any:
        return x * self.both[0] * self.both[1]


def test_gradients_of_parameters_that_a_module_reads_from_a_list(in_mode: int) -> None:
    cell = torchspore.as_cell(Listed())
    gradients = ms.grad(lambda x: cell(x).sum(), None, cell.trainable_params())(X)
    np.testing.assert_allclose(gradients[0].asnumpy(), 2 * DATA.sum(0), rtol=1e-5)
    np.testing.assert_allclose(gradients[1].asnumpy(), DATA.sum(0), rtol=1e-5)
    assert cell.module.both[0] is cell.module.first


class Tied(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = torch.nn.Linear(3, 3, bias=False), torch.nn.Linear(3, 3, bias=False)
        self.b.weight = self.a.weight
        self.register_buffer("count", torch.zeros(1))
        self.register_buffer("scratch", torch.zeros(1), persistent=False)

    def forward(self, x: Any) -> Any:
        self.count = self.count + 1
        self.scratch.add_(2)
        return self.b(self.a(x))


def test_tied_parameters_and_replaced_buffers(in_mode: int) -> None:
    cell = torchspore.as_cell(Tied())
    assert [p.name for p in cell.get_parameters()] == ["count", "a.weight"]
    weight = cell.module.a.weight.detach().clone()
    for _ in range(2):
        gradient = ms.grad(lambda x: cell(x).sum(), None, cell.trainable_params())(X)[0]
    cell(X)
    expected = weight.clone().requires_grad_()
    (torch.from_numpy(DATA) @ expected.T @ expected.T).sum().backward()
    assert expected.grad is not None
    np.testing.assert_allclose(gradient.asnumpy(), expected.grad.numpy(), rtol=1e-5)
    assert (cell.module.count.item(), cell.module.scratch.item()) == (3, 6)
    assert cell.module.a.weight is cell.module.b.weight


class Hidden(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.hidden = {"weight": torch.nn.Parameter(torch.ones(3))}

    def forward(self, x: Any) -> Any:
        return x * self.hidden["weight"]


def test_a_parameter_that_torch_does_not_register_raises() -> None:
    cell = torchspore.as_cell(Hidden())
    with pytest.raises(RuntimeError, match=r"the torch Parameter of shape \[3\], which requires a gradient"):
        ms.grad(lambda x: cell(x).sum())(X)


def test_a_replaced_parameter_raises() -> None:
    module = torch.nn.Linear(3, 2)
    cell = torchspore.as_cell(module)
    module.weight = torch.nn.Parameter(torch.ones(2, 3))
    with pytest.raises(RuntimeError, match="as_cell of Linear: 'weight' was replaced in the Module: expected the parameters that it had"):
        cell(X)


def test_moved_memory_follows() -> None:
    module = torch.nn.Linear(3, 2)
    cell = torchspore.as_cell(module)
    module.double()
    assert cell(X.astype(ms.float64)).dtype == cell.trainable_params()[0].dtype == ms.float64
    cell.to(ms.float32)
    assert cell(X).dtype == ms.float32 and module.weight.dtype is torch.float32
    assert module.weight.data_ptr() == cell.trainable_params()[0].data_ptr()


@pytest.mark.parametrize(("call", "text"), [
    (lambda: torchspore.as_cell(3), r"^as_cell\(3\): expected a torch Module, got int"),
    (lambda: torchspore.as_cell(torch.nn.LazyLinear(2)), "as_cell: 'weight': expected a parameter with dense memory and values"),
    (lambda: torchspore.as_cell(torch.nn.Linear(2, 2, device="meta")), "as_cell: 'weight': expected a parameter with dense memory"),
    pytest.param(
        lambda: torchspore.as_cell(torch.nn.Sequential(torch.jit.trace(torch.nn.Linear(2, 2), torch.ones(2)))),
        r"^as_cell\(Sequential\): expected a Module without parts that torch\.jit has compiled",
        marks=pytest.mark.skipif(sys.version_info >= (3, 14), reason="torch.jit does not support Python 3.14"),
    ),
])
@pytest.mark.filterwarnings("ignore:Lazy modules", "ignore::DeprecationWarning")
def test_refused(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(TypeError, match=text):
        call()


def test_there_and_back() -> None:
    dense, linear = nn.Dense(3, 2), torch.nn.Linear(3, 2)
    assert torchspore.as_cell(torchspore.as_module(dense)) is dense and torchspore.as_module(torchspore.as_cell(linear)) is linear
    assert torchspore.as_cell(dense) is dense
    # A Cell inside of a Module inside of a Cell, and the other way around: one set of Parameters, all of which have gradients.
    cell = torchspore.as_cell(torch.nn.Sequential(torchspore.as_module(dense), torch.nn.Linear(2, 1)))
    gradients = ms.grad(lambda x: cell(x).sum(), None, cell.trainable_params())(X)
    assert len(gradients) == 4 and all(gradient.asnumpy().any() for gradient in gradients)
    net, twin = net_and_twin()
    module = torchspore.as_module(net)
    assert len(list(module.parameters())) == 8
    module(torch.from_numpy(DATA)).sum().backward()
    twin.eval()(torch.from_numpy(DATA)).sum().backward()
    for mine, theirs in zip(module.parameters(), twin.parameters()):
        torch.testing.assert_close(mine.grad, theirs.grad)
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
    for mode in (False, True):
        net.set_train(mode)
        twin.train(mode)
        torch.testing.assert_close(compiled(torch.from_numpy(DATA)), twin(torch.from_numpy(DATA)))
    module.load_state_dict({name: value * 0 for name, value in module.state_dict().items()})
    assert not net.body.module[0].weight.any()


def test_torch_losses_and_model_train() -> None:
    net, _ = net_and_twin()
    loss = torchspore.as_cell(torch.nn.MSELoss())
    model = ms.train.Model(net, loss, nn.SGD(net.trainable_params(), 0.1))
    data = ms.dataset.NumpySlicesDataset((DATA, np.eye(2, dtype=np.float32)[LABELS]), shuffle=False).batch(6)
    before = net.body.module[0].weight.clone()
    model.train(1, data, dataset_sink_mode=False)
    assert net.training and net.body.module.training and not torch.equal(before, net.body.module[0].weight)


def test_recompute(in_mode: int) -> None:
    net, _ = net_and_twin()
    plain = ms.grad(lambda x: net(x).sum(), None, net.trainable_params())(X)
    net.body.recompute()
    for mine, theirs in zip(ms.grad(lambda x: net(x).sum(), None, net.trainable_params())(X), plain):
        np.testing.assert_allclose(mine.asnumpy(), theirs.asnumpy(), rtol=1e-6)


def test_recompute_counts_a_step_once(in_mode: int) -> None:
    net, _ = net_and_twin()
    net.set_train().body.recompute()
    ms.grad(lambda x: net(x).sum(), None, net.trainable_params())(X)
    assert net.body.module[1].num_batches_tracked == 1
    np.testing.assert_allclose(net.body.module[1].running_mean.numpy(), 0.1 * net_mean(net), rtol=1e-5, atol=1e-7)


def net_mean(net: Net) -> Any:
    with torch.no_grad():
        return net.body.module[0](net.first(X).torch()).mean(0).numpy()


def test_recompute_draws_the_same_numbers_of_torch(in_mode: int) -> None:
    class Dropping(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.dense, self.drop = nn.Dense(64, 64), torch.nn.Dropout(0.5)

        def construct(self, x: Any) -> Any:
            return self.drop(self.dense(x)) * 2

    net = Dropping().set_train()
    net.recompute()
    compute = ms.value_and_grad(lambda x: (lambda y: (y.sum(), y))(net(x)), None, net.trainable_params(), has_aux=True)
    (_, result), gradients = compute(Tensor(np.ones((1, 64), np.float32)))
    np.testing.assert_array_equal(gradients[1].asnumpy() != 0, result.asnumpy()[0] != 0)


def test_containers_take_modules() -> None:
    linear = torch.nn.Linear(3, 2)
    named = nn.SequentialCell(OrderedDict({"0": linear}))
    for cell in (nn.SequentialCell(linear), nn.SequentialCell([linear]), named, nn.CellList([linear])):
        assert [p.name for p in cell.get_parameters()] == ["0.weight", "0.bias"]
        assert type(cell[0](X)) is Tensor
    cells = nn.CellDict({"head": linear})
    assert cells["head"](X).shape == (6, 2)
    cell = nn.Cell()
    cell.insert_child_to_cell("head", linear)
    assert len(cell.trainable_params()) == 2


def test_forward_mode_and_vmap() -> None:
    cell = torchspore.as_cell(torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2)))
    ones = Tensor(np.ones((6, 3), np.float32))
    expected = ms.vjp(cell, X)[1](Tensor(np.ones((6, 2), np.float32)))[0].asnumpy().sum()
    np.testing.assert_allclose(ms.jvp(cell, X, ones)[1].asnumpy().sum(), expected, rtol=1e-5)
    np.testing.assert_allclose(ms.vmap(lambda x: cell(x.reshape(1, 3)))(X).asnumpy()[:, 0], cell(X).asnumpy(), rtol=1e-6)


class Shared(nn.Cell):
    """Two Modules of which each has the other's weight, one of them twice."""

    def __init__(self) -> None:
        super().__init__()
        first, second = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
        second.weight = first.weight
        self.modules = (first, second)
        self.first, self.second, self.again = first, second, first

    def construct(self, x: Any) -> Any:
        return self.again(self.second(self.first(x)))


def test_parameters_that_modules_share_occur_once(in_mode: int) -> None:
    """An optimizer would otherwise update a shared weight twice, each time with a part of its gradient."""
    torch.manual_seed(0)
    net = Shared()
    first, second = net.modules
    parameters = net.trainable_params()
    assert len(parameters) == 3
    ms.set_context(mode=in_mode)
    gradients = ms.grad(lambda x: (net(x) ** 2).sum(), None, parameters)(X)
    (first(second(first(torch.from_numpy(DATA)))) ** 2).sum().backward()
    for gradient, t in zip(gradients, (first.weight, first.bias, second.bias)):
        torch.testing.assert_close(gradient.torch(), t.grad)


def test_parameters_of_cells_inside_of_a_module_have_names_of_their_own(tmp_path: Path) -> None:
    body = torch.nn.Sequential(torchspore.as_module(nn.Dense(3, 3)), torchspore.as_module(nn.Dense(3, 2)))
    cell = torchspore.as_cell(body)
    ms.save_checkpoint(cell, str(tmp_path / "net.ckpt"))
    assert list(ms.load_checkpoint(str(tmp_path / "net.ckpt"))) == ["0.weight", "0.bias", "1.weight", "1.bias"]


STEPS = [0]


class Counter(torch.nn.Module):
    """Counts its calls in a tensor that is not a buffer, a global list and an attribute of its class."""

    calls = 0

    def __init__(self) -> None:
        super().__init__()
        self.count = torch.zeros(())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count += 1
        STEPS[0] += 1
        Counter.calls += 1
        return x * self.count * STEPS[0] * Counter.calls


def test_state_outside_of_buffers(in_mode: int) -> None:
    STEPS[0] = Counter.calls = 0
    cell = torchspore.as_cell(Counter())
    ms.set_context(mode=in_mode)
    assert [float(cell(Tensor([1.0]))[0]) for _ in range(4)] == [1.0, 8.0, 27.0, 64.0]


class Returning(torch.nn.Module):
    def __init__(self, result: Callable[[torch.Tensor], Any]) -> None:
        super().__init__()
        self.result = result

    def forward(self, x: torch.Tensor) -> Any:
        return self.result(x)


def test_sizes_and_named_results_of_torch_are_tuples(in_mode: int) -> None:
    ms.set_context(mode=in_mode)
    values, indexes = torchspore.as_cell(Returning(lambda x: torch.topk(x, 2)))(X)
    assert values.shape == (6, 2) and indexes.dtype == ms.int64
    assert torchspore.as_cell(Returning(lambda x: x.shape))(X) == (6, 3)


@pytest.mark.parametrize("result", [object, lambda: {1, 2}, lambda: torch.distributions.Normal(0, 1), lambda: b"text", lambda: slice(1)])
def test_other_results_are_refused(in_mode: int, result: Callable[[], Any]) -> None:
    ms.set_context(mode=in_mode)
    with pytest.raises(TypeError, match=r"(?s)^as_cell of Returning: the result has a value of type .*hint: call as_cell on a Module that"):
        torchspore.as_cell(Returning(lambda _: result()))(X)


def test_optimizers_name_as_cell_for_parameters_of_torch() -> None:
    with pytest.raises(TypeError, match=r"expected Parameters, got Parameter\.\n\nhint: write torchspore\.as_cell\(module\)"):
        nn.SGD(list(torch.nn.Linear(2, 2).parameters()), 0.1)
