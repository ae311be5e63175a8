"""`torchspore.as_module`: a Cell as a torch Module."""
from __future__ import annotations

import copy
import inspect
import io
from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import Tensor, nn, ops
from torch.nn.utils import prune

import torchspore


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.head = nn.Dense(4, 2)
        self.scale = Tensor([1.0, 2.0])

    def construct(self, x: Any) -> Any:
        return self.head(ops.relu(self.norm(self.conv(x))).mean((2, 3))) * self.scale


def images(seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).standard_normal((2, 3, 6, 6), np.float32))


def module_of(cell: nn.Cell | None = None, **options: Any) -> Any:
    return torchspore.as_module(Net() if cell is None else cell, **options)


def test_parameters_are_those_of_the_cell() -> None:
    net = Net()
    net.head.bias.requires_grad = False
    module = module_of(net)
    assert set(module.state_dict()) == set(net.state_dict())
    assert [name for name, p in module.named_parameters() if p.requires_grad] == [p.name for p in net.trainable_params()]
    assert [name for name, _ in module.named_buffers()] == ["norm.moving_mean", "norm.moving_variance"]
    for name, value in module.state_dict().items():
        assert value.data_ptr() == net.state_dict()[name].data_ptr()
    assert module.head.weight is dict(module.named_parameters())["head.weight"] and module.get_submodule("norm").cell is net.norm
    module.head.weight.data.fill_(3)
    assert (net.head.weight.asnumpy() == 3).all()


@pytest.mark.parametrize("graph_mode", [False, True])
def test_training_equals_pynative_bit_for_bit(graph_mode: bool) -> None:
    ms.set_seed(1)
    net, x = Net().set_train(), images()
    reference = copy.deepcopy(net)
    module = module_of(net)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    step = nn.SGD(reference.trainable_params(), 0.1)
    gradient = ms.value_and_grad(lambda a: (reference(a) ** 2).sum(), None, reference.trainable_params())
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        if graph_mode:
            ms.set_context(mode=ms.GRAPH_MODE)             # torch drives: the mode has no effect inside
        try:
            loss = (module(x) ** 2).sum()
        finally:
            ms.set_context(mode=ms.PYNATIVE_MODE)
        loss.backward()
        optimizer.step()
        expected, gradients = gradient(Tensor(x.numpy()))
        step(gradients)
        losses.append((loss.item(), float(expected)))
    assert all(mine == theirs for mine, theirs in losses)
    for mine, theirs in zip(net.get_parameters(), reference.get_parameters()):
        assert (mine.asnumpy() == theirs.asnumpy()).all(), mine.name
    with torch.no_grad():
        assert torch.equal(module(x), reference(Tensor(x.numpy())).torch())


def test_the_training_mode_is_that_of_the_cell() -> None:
    net = Net()
    module = module_of(net)
    assert not module.training
    module.train()
    assert net.training and net.norm.training and net.get_flags()["training"]
    net.set_train(False)
    assert not module.training and not module.norm.training
    module.norm.train()
    assert net.norm.training and not net.training


def test_hooks_see_torch_tensors_and_change_the_result() -> None:
    module, x = module_of(), images().requires_grad_()
    seen = []
    handles = [
        module.norm.register_forward_hook(lambda _, inputs, output: seen.append((type(inputs[0]), tuple(output.shape)))),
        module.head.register_forward_pre_hook(lambda _, inputs: (inputs[0] * 0,)),
        module.conv.register_full_backward_hook(lambda _, before, after: seen.append(("backward", tuple(after[0].shape)))),
    ]
    result = module(x)
    result.sum().backward()
    expected = module.head.bias * torch.tensor([1.0, 2.0])
    assert torch.equal(result, expected.expand(2, 2)) and (torch.Tensor, (2, 4, 6, 6)) in seen and ("backward", (2, 4, 6, 6)) in seen
    for handle in handles:
        handle.remove()
    seen.clear()
    module(x)
    assert not seen


def test_new_memory_on_either_side_is_shared_again() -> None:
    net, x = Net(), images()
    module = module_of(net)
    module.double()
    assert net.head.weight.dtype == net.scale.dtype == ms.float64 and module(x.double()).dtype is torch.float64
    module.float()
    net.head.weight.set_data(Tensor(np.ones((2, 4), np.float32)))
    assert (module.head.weight == 1).all() and module.head.weight.data_ptr() == net.head.weight.data_ptr()
    module.load_state_dict({name: torch.zeros_like(value) for name, value in module.state_dict().items()}, assign=True)
    assert not net.head.weight.asnumpy().any() and module.head.weight.data_ptr() == net.head.weight.data_ptr()
    module.head.bias.requires_grad_(False)
    module(x)
    assert not net.head.bias.requires_grad
    net.head.bias.requires_grad = True
    module(x)
    assert module.head.bias.requires_grad


def test_copies_and_files() -> None:
    module, x = module_of().eval(), images()
    module.head.register_forward_hook(double)
    stream = io.BytesIO()
    torch.save(module, stream)
    stream.seek(0)
    for other in (copy.deepcopy(module), torch.load(stream, weights_only=False), copy.deepcopy(torch.nn.Sequential(module))):
        assert torch.equal(other(x), module(x))
        next(other.parameters()).data.zero_()
    assert module.conv.weight.any()


def double(_: Any, __: Any, output: Any) -> Any:
    return output * 2


def test_torchs_names() -> None:
    cell = nn.SequentialCell(nn.Conv1d(3, 4, 3, has_bias=True), nn.BatchNorm1d(4), nn.Embedding(5, 4))
    twin = torch.nn.Sequential(torch.nn.Conv1d(3, 4, 3, padding=1), torch.nn.BatchNorm1d(4), torch.nn.Embedding(5, 4))
    module = module_of(cell, naming="torch")
    twin.load_state_dict(module.state_dict())
    assert torch.equal(twin[0].weight, module.state_dict()["0.weight"])
    twin[0].weight.data.fill_(7)
    twin[1].running_mean.fill_(5)
    assert not any(module.load_state_dict(twin.state_dict()))
    assert (cell[0].weight.asnumpy() == 7).all() and (cell[1].moving_mean.asnumpy() == 5).all()
    outer = torch.nn.ModuleDict({"body": module_of(cell, naming="torch")})
    assert set(outer.state_dict()) == {f"body.{name}" for name in module.state_dict()}
    assert not any(outer.load_state_dict({f"body.{name}": value for name, value in twin.state_dict().items()}))


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda: torchspore.as_module(torch.nn.ReLU()), TypeError, r"^as_module\(ReLU\(\)\): expected a Cell, got ReLU"),
    (lambda: torchspore.as_module(nn.ReLU(), naming="keras"), ValueError, "expected 'mindspore' or 'torch'"),
    (lambda: torchspore.as_module(nn.MultiFieldEmbeddingLookup(4, 2, 3, 2), naming="torch"), ValueError,
      r"torch\.nn has no such layers"),
])
def test_refused(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_a_changed_structure_raises() -> None:
    net = Net()
    module = module_of(net)
    net.head = nn.Dense(4, 3)
    with pytest.raises(RuntimeError, match="as_module of Net: head was added, removed or replaced: expected the structure"):
        module(images())


def test_shared_parameters_and_cells_stay_shared() -> None:
    inner = nn.Dense(3, 3)
    cell = nn.SequentialCell(inner, inner, nn.Dense(3, 3))
    cell[2].weight = inner.weight
    module = module_of(cell)
    assert module.get_submodule("0") is module.get_submodule("1")
    assert module.get_submodule("2").weight is module.get_submodule("0").weight
    assert len(list(module.parameters())) == len(list(cell.get_parameters()))


def test_inside_torchs_transforms_and_mindspores_gradients() -> None:
    net, x = Net(), images()
    module = module_of(net)
    zeros = {name: torch.zeros_like(value) for name, value in module.named_parameters()}
    assert not torch.func.functional_call(module, zeros, (x,)).any() and net.head.weight.asnumpy().any()
    parameters = dict(module.named_parameters())
    by_function = torch.func.grad(lambda values: torch.func.functional_call(module, values, (x,)).sum())(parameters)
    gradients = ms.grad(lambda a: torchspore.from_torch(module(a)).sum(), None, net.trainable_params())(Tensor(x.numpy()))
    module(x).sum().backward()
    for parameter, (name, value), gradient in zip(net.trainable_params(), module.named_parameters(), gradients):
        assert parameter.name == name
        torch.testing.assert_close(by_function[name], value.grad)
        np.testing.assert_allclose(gradient.asnumpy(), value.grad.numpy(), rtol=1e-6, atol=1e-7)


def test_state_that_construct_writes() -> None:
    class Counter(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.count = ms.Parameter(Tensor(0.0), requires_grad=False)
            self.register_buffer("last", Tensor([0.0]))
            self.calls = 0

        def construct(self, x: Any) -> Any:
            ops.assign_add(self.count, Tensor(1.0))
            self.calls += 1
            self.hidden = x * 2
            return x * self.count

    cell = Counter()
    module = module_of(cell)
    x = torch.ones(1, requires_grad=True)
    assert [module(x).item() for _ in range(3)] == [1.0, 2.0, 3.0]
    assert (float(cell.count), cell.calls, cell.hidden.torch().requires_grad) == (3.0, 3, False)
    assert [name for name, _ in module.named_buffers()] == ["last"] and not module.count.requires_grad


def test_torch_functions_inside_of_construct() -> None:
    class Sine(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.weight = ms.Parameter(Tensor([1.0, 2.0]))

        def construct(self, x: Any) -> Any:
            return Tensor.from_torch(torch.sin((x * self.weight).torch())) + torch.cos(x)

    module = module_of(Sine())
    module(torch.ones(2)).sum().backward()
    torch.testing.assert_close(module.weight.grad, torch.cos(torch.tensor([1.0, 2.0])))


def test_autocast_and_structured_results() -> None:
    module = module_of(nn.Dense(3, 2))
    with torch.autocast("cpu", torch.bfloat16):
        assert module(torch.ones(1, 3)).dtype is torch.bfloat16
    outputs, (hidden, cells) = module_of(nn.LSTM(3, 4))(torch.ones(2, 1, 3))
    assert all(type(value) is torch.Tensor for value in (outputs, hidden, cells)) and outputs.requires_grad


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_torchs_checkpoint(use_reentrant: bool) -> None:
    net, x = Net(), images().requires_grad_()
    module = module_of(net)
    module(x).sum().backward()
    expected = [p.grad for p in module.parameters()]
    module.zero_grad()
    torch.utils.checkpoint.checkpoint(module, x, use_reentrant=use_reentrant).sum().backward()
    for parameter, gradient in zip(module.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient)
    drawing = module_of(nn.SequentialCell(nn.Dense(8, 8), nn.Dropout(p=0.5), nn.Dense(8, 8)).set_train())
    with pytest.raises(RuntimeError, match="the second run draws other random numbers than the first"):
        torch.utils.checkpoint.checkpoint(drawing, torch.ones(1, 8, requires_grad=True), use_reentrant=use_reentrant).sum().backward()


def test_recompute_of_the_cell_draws_the_same_numbers() -> None:
    cell = nn.SequentialCell(nn.Dense(64, 64), nn.Dropout(p=0.5)).set_train()
    cell.recompute()
    module = module_of(cell)
    result = module(torch.ones(1, 64))
    result.sum().backward()
    assert torch.equal(module.get_submodule("0").bias.grad != 0, result[0] != 0)


@pytest.mark.sample
def test_torch_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._dynamo.utils import counters

    net, x = Net().set_train(), images()
    reference = module_of(copy.deepcopy(net))
    module = module_of(net)
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
    for each in (compiled, reference):
        (each(x) ** 2).sum().backward()
    for mine, theirs in zip(module.parameters(), reference.parameters()):
        torch.testing.assert_close(mine.grad, theirs.grad)
    torch.testing.assert_close(module.norm.moving_mean, reference.norm.moving_mean)
    before = counters["stats"]["unique_graphs"]
    for mode in (False, True) * 3:
        torch.testing.assert_close(compiled.train(mode)(x), reference.train(mode)(x))
        nn.Dense(2, 2)
    assert counters["stats"]["unique_graphs"] == before + 1
    net.scale, reference.cell.scale = Tensor([5.0, 7.0]), Tensor([5.0, 7.0])         # a change compiles again
    torch.testing.assert_close(compiled(x), reference(x))
    net.head.weight.set_data(Tensor(np.ones((2, 4), np.float32)))
    reference.head.weight.data.fill_(1)
    torch.testing.assert_close(compiled(x), reference(x))
    dropout = torch.compile(module_of(nn.Dropout(p=0.5).set_train()), fullgraph=True, backend="aot_eager")
    assert not torch.equal(dropout(torch.ones(64)), dropout(torch.ones(64)))
    exported = torch.export.export(reference.eval(), (x,))
    torch.testing.assert_close(exported.module()(x), reference(x))


class Assigning(nn.Cell):
    def construct(self, x: Any) -> Any:
        self.last = 1
        return x


class Reading(nn.Cell):
    def construct(self, x: Any) -> Any:
        return x * float(x.sum().asnumpy())


class Naming(nn.Cell):
    def construct(self, x: Any) -> Any:
        return {"x": x}


@pytest.mark.sample
@pytest.mark.parametrize(("cell", "text"), [
    (Assigning, r"torch.compile of as_module\(Assigning\): construct sets Assigning.last"),
    (Reading, r"torch.compile of as_module\(Reading\): construct reads the values of a Tensor"),
    (Naming, "the result has a value of type dict"),
])
def test_what_torch_compile_cannot_trace_is_named(cell: type[nn.Cell], text: str) -> None:
    with pytest.raises(Exception, match=text):
        torch.compile(module_of(cell()), fullgraph=True, backend="aot_eager")(torch.ones(2))
    assert module_of(cell())(torch.ones(2)) is not None


def test_the_signature_is_that_of_construct() -> None:
    """The Trainer of Hugging Face passes the columns that `forward` names, and more arguments if it takes any."""
    class Two(nn.Cell):
        def construct(self, pixels: Any, labels: Any = None) -> Any:
            return pixels if labels is None else pixels + labels

    module = module_of(Two())
    assert list(inspect.signature(module.forward).parameters) == ["pixels", "labels"]
    assert module(images(), labels=images()).equal(images() * 2)
    assert torch.compile(module, fullgraph=True, backend="eager")(images(), labels=images()).equal(images() * 2)


def test_modules_of_one_cell_share_their_parameters() -> None:
    """An optimizer of both would otherwise update a shared weight twice, each time with a part of its gradient."""
    encoder, heads = nn.Dense(3, 3), [nn.Dense(3, 1), nn.Dense(3, 2)]
    modules = torch.nn.ModuleList([module_of(nn.SequentialCell(encoder, head)) for head in heads])
    assert len(list(modules.parameters())) == 6
    x = torch.ones(2, 3)
    sum(each(x).sum() for each in modules).backward()
    weight = module_of(encoder).weight
    expected = sum(head.weight.torch().sum(0) for head in heads)[:, None] * x.sum(0)
    torch.testing.assert_close(weight.grad, expected)


def test_replaced_and_removed_parameters() -> None:
    cell = nn.Dense(3, 2)
    module = module_of(cell)
    module.weight = torch.nn.Parameter(torch.zeros(2, 3), requires_grad=False)
    assert not cell.weight.asnumpy().any() and not cell.weight.requires_grad
    torch.testing.assert_close(module(torch.ones(1, 3)), cell.bias.torch()[None])
    prune.random_unstructured(module, "bias", 0.5)
    with pytest.raises(RuntimeError, match="as_module: 'bias' was removed from the Module's parameters"):
        module(torch.ones(1, 3))
    with pytest.raises(RuntimeError, match=r"expected values on one device, got cpu and meta"):
        module_of(nn.Dense(3, 2))(torch.ones(1, 3, device="meta"))


class Scaled(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.options: dict[str, Any] = {"scale": 1.5, "names": ["a"]}
        self.sizes = [1, 2]
        self.constants = {"tensors": [Tensor([2.0])]}

    def construct(self, x: Any) -> Any:
        return x * self.options["scale"] * len(self.options["names"]) * sum(self.sizes) * self.constants["tensors"][0]


def test_torch_compile_compares_the_contents_of_containers() -> None:
    cell, x = Scaled(), torch.ones(2)
    module = module_of(cell)
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
    for change in (
        lambda: None, lambda: cell.options.update(scale=2.5), lambda: cell.options["names"].append("b"), lambda: cell.sizes.append(3),
        lambda: cell.options.update(scale=1.5),
    ):
        change()
        torch.testing.assert_close(compiled(x), module(x))


OUTSIDE = Tensor([2.0])


class Counting(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[int] = []

    def construct(self, x: Any) -> Any:
        self.calls.append(1)
        return x * len(self.calls)


class Drawing(nn.Cell):
    def construct(self, x: Any) -> Any:
        return x * float(np.random.rand())


class ReadingOutside(nn.Cell):
    def construct(self, x: Any) -> Any:
        return x * OUTSIDE


@pytest.mark.parametrize(("cell", "text"), [
    (Counting, r"as_module\(Counting\): construct changes a list, a dict or an object in place"),
    (Drawing, r"as_module\(Drawing\): construct draws random numbers of Python or NumPy"),
    (ReadingOutside, r"as_module\(ReadingOutside\): construct reads a Tensor that is not an attribute of a Cell"),
])
def test_torch_compile_refuses_other_state(cell: type[nn.Cell], text: str) -> None:
    module = module_of(cell())
    with pytest.raises(Exception, match=text):
        torch.compile(module, fullgraph=True, backend="aot_eager")(torch.ones(2))
    assert not getattr(module.cell, "calls", None)
    assert module(torch.ones(2)) is not None
