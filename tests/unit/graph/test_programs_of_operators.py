"""Small operators of a graph's code run as one call of C++: the same results and errors, and Python's lines where code takes part."""
from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import Tensor, nn, ops
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from torchspore.engine.native import operators
from torchspore.engine.torch_internals.torch_private import graph_of
from torchspore.graph.backend import eager_codegen, programs

pytestmark = pytest.mark.skipif(not operators.is_loaded(), reason="`torchspore doctor --build` builds the programs")

T = torch.Tensor
X = torch.arange(1.0, 13.0).reshape(3, 4) / 5


def codes(function: Callable[..., list[T]], *inputs: T) -> tuple[Any, Any, str]:
    """Return the code of a function with programs, its code without them, and the text of the former."""
    module = graph_of(function, inputs)
    text, _ = eager_codegen.source(module)
    with_programs = eager_codegen.compile(module)
    create, programs._new_program = programs._new_program, None
    try:
        return with_programs, eager_codegen.compile(module), text
    finally:
        programs._new_program = create


def bits(t: Any) -> Any:
    return (t.dtype, t.shape, t.stride(), t.contiguous().reshape(-1).view(torch.uint8).tolist()) if isinstance(t, T) else t


FUNCTIONS: dict[str, Callable[[T], list[T]]] = {
    "arithmetic": lambda x: [(x + 1) * 2.5 - x / 3, torch.exp(-x).sum(), (x - 1).abs().sqrt()],
    "numbers": lambda x: [x + float("inf"), x * float("nan"), x.pow(2), x + True, 2 ** x, torch.add(x, x, alpha=3), x.clamp(0.5, 1)],
    "shapes": lambda x: [x.reshape(4, 3).t() + 1, x.unsqueeze(0).permute(2, 0, 1) * 2, x[1:, ::2].contiguous(), x.expand(2, 3, 4) + 0],
    "products": lambda x: [torch.addmm(x[0, :3], x, x.t()) @ x, torch.bmm(x[None], x.t()[None]).relu(), torch.nn.functional.linear(x, x)],
    "several results": lambda x: [*[part * 2 for part in x.split(2, 1)], torch.topk(x, 2)[0] + 1, *torch.max(x, 1), torch.unbind(x)[1] + 1],
    "lists": lambda x: [
        torch.cat([x, x * 2], 1) + 1, torch.stack([x, x]).mean((0, 2), keepdim=True), x.index_select(0, torch.tensor([2, 0])),
    ],
    "indices": lambda x: [
        x[torch.tensor([0, 2])] + 1, x[:, torch.tensor([1])] * 2, torch.gather(x, 1, torch.zeros(3, 1, dtype=torch.int64)) + 1,
    ],
    "dtypes": lambda x: [
        x.to(torch.float64).sum(0) * 2, (x > 1).to(torch.int32) + 1, x.half() * 2, torch.softmax(x, -1, torch.float64) + 1,
    ],
    "creation": lambda x: [torch.zeros_like(x) + x, torch.full((2, 3), 1.5) * 2, torch.arange(4) + 1, x.new_ones(2) + torch.eye(2)],
    "layers": lambda x: [torch.layer_norm(x, (4,), x[0], x[1]) + 1, torch.nn.functional.gelu(x, approximate="tanh") * 2,
                         torch.nn.functional.max_pool2d(x[None, None], 2) + 1, torch.log_softmax(x, 1).neg()],
    "bools": lambda x: [torch.logical_not(x > 1).any(), torch.where(x > 1, x, 0.0) + 1, (x > 1) & (x < 2), torch.isfinite(x).all()],
    "a result twice": lambda x: (lambda y: [y, y * 2, y])(x + 1), "an input": lambda x: [x, x + 1 - 1, x.view(12) + 1],
    "an unsafe view": lambda x: [torch.ops.aten._unsafe_view.default(x, (12,)), x * 2 + 1],
    "a view of a result": lambda x: (lambda y: [y, y.view(12), y[0]])(x * 2 + 1), "no input": lambda x: [torch.ones(3) * 2 + 1],
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_are_those_of_python(name: str) -> None:
    code, in_python, text = codes(FUNCTIONS[name], X)
    assert "run_program" in text, text
    with torch.no_grad():
        results, expected = code(X), in_python(X)
    assert list(map(bits, results)) == list(map(bits, expected))
    shared, expected_shared = ([[a is b for b in some] for a in some] for some in (results, expected))
    assert shared == expected_shared
    bases, expected_bases = ([t._base is not None for t in some] for some in (results, expected))
    assert bases == expected_bases


def test_what_stays_in_python() -> None:
    def write(x: T) -> list[T]:
        y = x * 2
        y.add_(1)
        return [y - 1, y]

    for function in (write, lambda x: [torch.dropout(x + 1, 0.5, True) + 1], lambda x: [torch.rand_like(x) + x]):
        code, in_python, text = codes(function, X)
        lines = [line for line in text.splitlines() if "run_program" not in line]
        assert any(word in line for line in lines for word in ("add_", "dropout", "rand", "bernoulli", "copy_")), text
        torch.manual_seed(3)
        results = code(X)
        torch.manual_seed(3)
        assert list(map(bits, results)) == list(map(bits, in_python(X)))
    _, _, text = codes(lambda x: [x * 2 + 1], torch.ones(200, 200))
    assert "run_program" not in text                          # on many elements Python's time does not count
    _, _, text = codes(lambda x: [x * 2], X)
    assert "run_program" not in text                          # a single operator


def test_errors_name_the_operator() -> None:
    table = torch.ones(3, 2)

    def function(x: T, at: T) -> list[T]:
        return [(torch.nn.functional.embedding(at, x * 2) + 1).sum()]

    code, in_python, text = codes(function, table, torch.tensor([0, 1]))
    assert "run_program" in text
    wrong = torch.tensor([0, 7])
    outcomes = []
    for each in (code, in_python, code):
        with pytest.raises(IndexError) as error:
            each(table, wrong)
        places = [entry.frame.f_globals.get("places") for entry in error.traceback if str(entry.path) == "<captured graph>"]
        outcomes.append((str(error.value), len(places) > 0))
    assert outcomes[0] == outcomes[1] == outcomes[2] and code(table, torch.tensor([0, 1]))[0].item() == 12


def test_an_error_in_a_graph_names_the_users_line() -> None:
    class Net(nn.Cell):
        def construct(self, table: Any, at: Any) -> Any:
            rows = ops.gather(table * 2, at, 0)
            return (rows + 1).sum()

    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        net, table = Net(), Tensor(np.ones((3, 2), np.float32))
        assert net(table, Tensor([0, 1])).asnumpy() == 12
        messages = []
        for _ in range(2):
            with pytest.raises(Exception) as error:
                net(table, Tensor([0, 7]))
            messages.append(str(error.value))
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)
    assert messages[0] == messages[1] and "test_programs_of_operators.py" in messages[0] and ": gather(" in messages[0]


class Functions(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(function.__name__)
        return function(*args, **(kwargs or {}))


class Kernels(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(function._opname)
        return function(*args, **(kwargs or {}))


def test_modes_see_each_operator() -> None:
    code, _, text = codes(lambda x: [(x + 1).exp() * 2], X)
    assert "run_program" in text
    for mode, expected in ((Functions(), ["add", "exp", "mul"]), (Kernels(), ["add", "exp", "mul"])):
        with mode:
            result = code(X)[0]
        seen = [name for name in mode.seen if name != "_set_grad_enabled"]
        assert seen == expected and bits(result) == bits(code(X)[0])


def test_other_inputs_run_in_python() -> None:
    class Kind(torch.Tensor):
        pass

    code, in_python, _ = codes(lambda x: [(x + 1).exp() * 2], X)
    kind = X.as_subclass(Kind)
    assert type(code(kind)[0]) is type(in_python(kind)[0]) is Kind


def test_values_are_freed() -> None:
    code, _, text = codes(lambda x: [(x + 1).exp() * 2, *x.split(2, 1)[1:], torch.cat([x, x]) + 1], X)
    assert "run_program" in text
    wrong = torch.ones(5, 5)
    for argument in (X, wrong[:0]):
        gc.collect()
        before = sum(type(value) is torch.Tensor for value in gc.get_objects())
        for _ in range(100):
            try:
                code(argument)
            except Exception:
                continue
        gc.collect()
        assert sum(type(value) is torch.Tensor for value in gc.get_objects()) <= before + 1


def test_a_dropped_graph_is_freed() -> None:
    def drop_code(*inputs: T) -> weakref.ref[Any]:
        module = graph_of(lambda x: [(x + 1).exp() * 2, x.sum() - 1], inputs)
        code = eager_codegen.compile(module)
        code(*inputs)
        with Functions():
            code(*inputs)                                        # the form in Python exists too
        return weakref.ref(module)

    references = [drop_code(X) for _ in range(3)]
    gc.collect()
    assert not any(reference() for reference in references)


def test_networks_train_alike() -> None:
    def losses(mode: int) -> list[Any]:
        ms.set_seed(1)
        net = nn.SequentialCell(nn.Dense(4, 8, weight_init="ones"), nn.LayerNorm((8,)), nn.Tanh(), nn.Dense(8, 3, weight_init="ones"))
        loss = nn.WithLossCell(net, nn.SoftmaxCrossEntropyWithLogits(True, "mean"))
        step = nn.TrainOneStepCell(loss, nn.Adam(net.trainable_params(), 0.1))
        ms.set_context(mode=mode)
        try:
            return [step(Tensor(X.numpy()), Tensor([0, 1, 2])).asnumpy().item() for _ in range(5)]
        finally:
            ms.set_context(mode=ms.PYNATIVE_MODE)

    assert np.allclose(losses(ms.GRAPH_MODE), losses(ms.PYNATIVE_MODE), 1e-5)
