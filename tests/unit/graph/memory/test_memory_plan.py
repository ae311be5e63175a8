"""The memory plan of level O0: a lower peak with equal bits; interrupts and errors in the middle of a step."""
from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import Tensor, nn, ops

from torchspore.context import effects
from torchspore.context.public import scope
from torchspore.engine.torch_internals.torch_private import make_fx
from torchspore.graph.backend import early_update_guard
from torchspore.graph.fx import failing_operators
from torchspore.graph.passes import memory
from torchspore.graph.passes.in_place import overwrite

NET = """
import os, sys
import mindspore as ms, numpy as np
from mindspore import nn, ops
ms.set_context(mode=ms.GRAPH_MODE, **eval(sys.argv[1]))
ms.set_seed(1)

class Block(nn.Cell):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm((384,)), nn.Dense(384, 1536), nn.Dense(1536, 384)

    def construct(self, x):
        return x + self.down(ops.gelu(self.up(self.norm(x))))

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.embedding, self.blocks = nn.Embedding(500, 384), nn.SequentialCell([Block() for _ in range(6)])

    def construct(self, ids):
        return (self.blocks(self.embedding(ids)) ** 2).mean()

net = Net()
step = nn.TrainOneStepCell(net, nn.Adam(net.trainable_params(), 1e-3)).set_train()
ids = ms.Tensor(np.arange(512, dtype=np.int32) % 500)
"""
PRINTS = """
import hashlib
losses = [float(step(ids)) for _ in range(2)]
ms.runtime.reset_peak_memory_stats()
before = ms.runtime.memory_allocated()
losses.append(float(step(ids)))
digest = hashlib.sha256(b"".join(p.asnumpy().tobytes() for p in net.trainable_params())).hexdigest()
print(losses, digest, ms.runtime.max_memory_allocated() - before, sep="\\n")
"""


@pytest.fixture(autouse=True)
def graph_mode() -> Iterator[None]:
    with scope(mode=ms.GRAPH_MODE):
        yield


def run_program(program: str, options: str = "{}", **variables: str) -> list[str]:
    environment = {**os.environ, **variables}
    with tempfile.TemporaryDirectory() as folder:              # control flow is converted only if there is a source file
        path = Path(folder) / "program.py"
        path.write_text("import torchspore; torchspore.install()\n" + program, encoding="utf-8")
        process = subprocess.run([sys.executable, str(path), options], capture_output=True, text=True, env=environment, timeout=300)
    assert not process.returncode, process.stderr
    return process.stdout.splitlines()


def test_a_training_step_takes_less_memory_and_computes_equal_bits() -> None:
    planned = run_program(NET + "ms.runtime.memory_allocated()\n" + PRINTS)
    plain = run_program(NET + "ms.runtime.memory_allocated()\n" + PRINTS, TORCHSPORE_MEMORY_PLAN="0")
    assert planned[:2] == plain[:2]
    assert int(planned[2]) < 0.8 * int(plain[2]), (planned, plain)


def test_explain_reports_the_plan() -> None:
    report = """
step(ids)
from torchspore.context import effects
print(*effects.notes()["memory of graphs"])
"""
    (line,) = run_program(NET + report)
    assert "MB at most instead of" in line or "MiB at most instead of" in line, line
    assert "Parameters are updated as soon as their gradients are computed" in line and "run again in the backward half" in line


def test_a_limit_of_memory_leaves_updates_at_the_end() -> None:
    """A program that catches OutOfMemory continues with unchanged Parameters."""
    program = NET + """
from torchspore.context import effects
step(ids)
print(*effects.notes().get("memory of graphs", ["no plan"]))
old = [p.asnumpy().copy() for p in net.trainable_params()]
held = []
try:
    while True:
        held.append(ops.ones((256, 1024)))
except MemoryError:
    for _ in range(8):
        held.pop()
try:
    step(ids)
    print("ran")
except MemoryError:
    print("failed")
print(all((a == p.asnumpy()).all() for a, p in zip(old, net.trainable_params())))
"""
    lines = run_program(program, "{'max_device_memory': '0.6GB'}")
    assert "updated as soon" not in lines[0]
    assert lines[1:] == ["failed", "True"], lines


def test_an_interrupt_ends_between_two_steps() -> None:
    """Ctrl-C in a planned step is handled after the step, so that all Parameters belong to the same step."""
    program = NET + """
import signal, threading, time
step(ids)
states = {0: [p.asnumpy().copy() for p in net.trainable_params()]}
is_over = threading.Event()
def interrupt():
    time.sleep(0.3)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt).start()
count = 0
try:
    while True:
        step(ids)
        count += 1
except KeyboardInterrupt:
    pass
reached = [p.asnumpy().copy() for p in net.trainable_params()]

ms.set_seed(1)
net = Net()
step = nn.TrainOneStepCell(net, nn.Adam(net.trainable_params(), 1e-3)).set_train()
found = []
step(ids)
for number in range(count + 2):
    found.append(all((a == p.asnumpy()).all() for a, p in zip(reached, net.trainable_params())))
    step(ids)
print(count, found)
assert sum(found) == 1
"""
    assert run_program(program)


class Refusing(nn.Cell):
    """A Cell whose gradient reads indices that only its backward pass can refuse."""

    def construct(self, x, at):
        return x * 2

    def bprop(self, x, at, out, dout):
        return dout * 2 + ops.gather(dout.reshape(-1)[:4], at, 0).sum(), ops.zeros_like(at)


def test_a_backward_pass_that_refuses_its_values_changes_no_parameter() -> None:
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.SequentialCell([nn.Dense(1536, 1536) for _ in range(6)])
            self.refusing, self.last = Refusing(), nn.Dense(1536, 1536)

        def construct(self, x, at):
            return (self.last(self.refusing(self.layers(x), at)) ** 2).mean()

    net = Net()
    step = nn.TrainOneStepCell(net, nn.Momentum(net.trainable_params(), 0.01, 0.9)).set_train()
    x = Tensor(np.ones((64, 1536), np.float32) / 100)
    step(x, Tensor(np.array([1, 2], np.int32)))
    assert any("Parameters are updated as soon" in str(note) for note in effects.notes().get("memory of graphs", []))
    before = [parameter.asnumpy().copy() for parameter in net.trainable_params()]
    with pytest.raises(Exception, match=r"index|out of"):
        step(x, Tensor(np.array([1, 9], np.int32)))
    for old, parameter in zip(before, net.trainable_params()):
        np.testing.assert_array_equal(old, parameter.asnumpy())


def test_an_error_in_the_middle_of_the_updates_warns() -> None:
    def update(a: torch.Tensor, b: torch.Tensor) -> list[torch.Tensor]:
        a.add_(1)
        b.add_(1)
        return [a]

    module = make_fx(update)(torch.zeros(2), torch.zeros(2))
    def run(a: torch.Tensor, b: torch.Tensor) -> list[torch.Tensor]:
        a.add_(1)
        raise RuntimeError("no memory")

    guarded = early_update_guard.guard_updates(run, module)
    message = "1 of the 2 Tensors that it updates have new values"
    with pytest.warns(UserWarning, match=message), pytest.raises(RuntimeError, match="no memory"):
        guarded(torch.zeros(2), torch.zeros(2))

    def fail(a: torch.Tensor, b: torch.Tensor) -> list[torch.Tensor]:
        raise RuntimeError("at once")

    with warnings.catch_warnings(), pytest.raises(RuntimeError, match="at once"):
        warnings.simplefilter("error")
        early_update_guard.guard_updates(fail, module)(torch.zeros(2), torch.zeros(2))


def test_signals_wait_for_the_end_of_a_guarded_step() -> None:
    def update(a: torch.Tensor) -> list[torch.Tensor]:
        return [a.add_(1)]

    module = make_fx(update)(torch.zeros(2))
    def run(a: torch.Tensor) -> list[torch.Tensor]:
        threading.Thread(target=os.kill, args=(os.getpid(), signal.SIGINT)).start()
        time.sleep(0.2)
        return [a.add_(1)]

    a = torch.zeros(2)
    with pytest.raises(KeyboardInterrupt):
        early_update_guard.guard_updates(run, module)(a)
    assert a.tolist() == [1, 1]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("dim", [-1, 2])
def test_gradients_that_overwrite_their_input_have_equal_bits(dtype: torch.dtype, dim: int) -> None:
    def chain(x: torch.Tensor, upstream: torch.Tensor) -> torch.Tensor:
        aten = torch.ops.aten
        grad = upstream * 3
        grad = aten._log_softmax_backward_data(grad, torch.log_softmax(x, dim), dim, dtype)
        grad = aten._softmax_backward_data(grad, torch.softmax(x, dim), dim, dtype)
        grad = aten.gelu_backward(grad, x)
        return aten.threshold_backward(grad, x, 0)

    x, upstream = torch.randn(8, 64, 1024, dtype=dtype), torch.randn(8, 64, 1024, dtype=dtype)
    module = make_fx(chain, tracing_mode="fake")(x, upstream)
    overwrite(module).recompile()
    overloads = [str(node.target) for node in module.graph.nodes if "backward" in str(node.target)]
    assert [name.rpartition(".")[2] for name in overloads] == ["out", "out", "grad_input", "grad_input"], overloads
    assert torch.equal(module(x, upstream), chain(x, upstream))


def test_a_written_input_is_not_overwritten() -> None:
    def add_in_place(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.relu(x.add_(y))

    x, y = torch.full((4, 4), -1.0), torch.full((4, 4), -2.0)
    module = overwrite(make_fx(add_in_place, tracing_mode="fake")(x.clone(), y))
    module.recompile()
    assert torch.equal(module(x, y), torch.zeros(4, 4)) and torch.equal(x, torch.full((4, 4), -3.0))


def test_sums_of_many_terms_are_overwritten() -> None:
    def add(*terms: torch.Tensor) -> torch.Tensor:
        total = terms[0] * 2
        for term in terms[1:]:
            total = total + term
        return torch.relu(total)

    terms = [torch.randn(3) for _ in range(1500)]
    module = overwrite(make_fx(add, tracing_mode="fake")(*terms))
    module.recompile()
    targets = {str(node.target) for node in module.graph.nodes if node.op == "call_function"}
    assert targets == {"aten.mul.Tensor", "aten.add_.Tensor", "aten.relu_.default"}
    assert torch.equal(module(*terms), add(*terms))


BEFORE_A_BRANCH = """
import sys
import mindspore as ms, numpy as np
from mindspore import Parameter, Tensor, nn, ops
ms.set_context(mode=ms.GRAPH_MODE, memory_optimize_level="O1")

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = Parameter(Tensor(np.random.RandomState(0).randn(64, 64).astype(np.float32) / 8), name="w")

    def construct(self, x):
        return (ops.relu(ops.matmul(ops.relu(ops.matmul(x, self.w)), self.w)) ** 2).mean()

class Step(nn.Cell):
    def __init__(self):
        super().__init__()
        self.net = Net()
        self.optimizer = nn.SGD(self.net.trainable_params(), 1.0)
        self.gradient = ops.value_and_grad(self.net, None, self.optimizer.parameters)

    def construct(self, x):
        before = ops.abs(self.net.w)
        loss, gradients = self.gradient(x)
        if ops.isfinite(loss):
            self.optimizer(gradients)
        return loss, before

step = Step()
old = step.net.w.asnumpy().copy()
_, before = step(Tensor(np.random.RandomState(1).rand(128, 64).astype(np.float32)))
print((before.asnumpy() == np.abs(old)).all())
"""
WRITTEN_VALUE = """
import mindspore as ms, numpy as np
from mindspore import Parameter, Tensor, nn, ops
ms.set_context(mode=ms.GRAPH_MODE, memory_optimize_level="O1")

class Step(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = Parameter(Tensor(np.random.RandomState(0).randn(64, 64).astype(np.float32) / 8), name="w")
        self.optimizer = nn.SGD([self.w], 0.1)
        self.gradient = ops.value_and_grad(self.forward, None, self.optimizer.parameters)

    def forward(self, z):
        for _ in range(12):
            z = ops.gelu(ops.matmul(z, self.w))
        return (z ** 2).mean()

    def construct(self, x):
        t = ops.abs(x)
        t[0] = 5.0
        z = ops.exp(-t)
        loss, gradients = self.gradient(z)
        self.optimizer(gradients)
        return loss, z * 2

_, z = Step()(Tensor(np.random.RandomState(1).randn(64, 64).astype(np.float32)))
print(np.allclose(z.asnumpy()[0], 2 * np.exp(-5.0)))
"""


@pytest.mark.parametrize("program", [BEFORE_A_BRANCH, WRITTEN_VALUE])
def test_values_that_depend_on_written_memory_are_not_recomputed(program: str) -> None:
    assert run_program(program) == ["True"]


def test_no_state_of_an_optimizer_is_written_before_an_operator_that_may_refuse_its_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_LEAST_PLANNED_PEAK", 0)
    monkeypatch.setattr(memory, "_LEAST_GAIN", -10.0)
    net = nn.SequentialCell(nn.Dense(8, 8), nn.Dense(8, 8))
    optimizer = nn.Adam(net.trainable_params(), 0.1)
    gradient = ms.value_and_grad(lambda x: (net(x) ** 2).mean(), None, optimizer.parameters)

    @ms.jit
    def step(x, at):
        loss, gradients = gradient(x)
        scattered = ops.tensor_scatter_elements(ops.zeros((4,)), at, ops.ones((2,)))
        optimizer(gradients)
        return loss, scattered

    step(ops.ones((2, 8)), Tensor([0, 1], ms.int32))
    before = [parameter.asnumpy().copy() for _, parameter in optimizer.parameters_and_names()]
    with pytest.raises(Exception, match=r"index|out of"):
        step(ops.ones((2, 8)), Tensor([0, 9], ms.int32))
    for old, (_, parameter) in zip(before, optimizer.parameters_and_names()):
        np.testing.assert_array_equal(old, parameter.asnumpy())


@pytest.mark.parametrize("word", ["max_unpool2d", "histogram"])
def test_operators_that_check_values_are_known(word: str) -> None:
    target = torch.ops.aten.max_unpool2d.default if word == "max_unpool2d" else torch.ops.aten.histogram.bin_ct
    graph = torch.fx.Graph()
    node = graph.call_function(target, (graph.placeholder("x"),))
    assert failing_operators.may_fail(node, {node: []})
