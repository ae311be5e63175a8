"""O1 without waiting: O0's numbers until the other process is done, then a faster form that gives them too; nothing else moves."""
from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import Tensor, nn, ops
from support import fake_timings, kernel_compilers

from torchspore.context import effects
from torchspore.engine import process
from torchspore.graph import pipeline
from torchspore.graph.backend import eager_codegen, inductor, measurement
from torchspore.graph.compile_cache import autotune_cache
from torchspore.graph.fx.modules import copy_module
from torchspore.graph.tiers import compiler_process, reasons_to_wait, tiered_code
from torchspore.graph.tiers.compiler_process import SECTION, CompilerProcess, Job

FORM = "channels last"
plain = pipeline._compile_plain


class Compiler:
    """Stands for the other process: it has a form for a graph when the test says so."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.factor, self.seconds, self.runs = 1.0, 0.0, 0
        self.clock = 0.0

    def submit(self, job: Job) -> None:
        self.jobs.append(job)

    def end(self, factor: float = 1.0, seconds: float = 0.5, error: str = "", failure: str = "") -> None:
        """Its form gives O0's results times `factor` and takes `seconds`, where O0's form takes one second."""
        self.factor, self.seconds = factor, seconds
        for job in self.jobs:
            job.error, job.failure, job.seconds = error, failure, 2.0
            if not error:
                job.receive(job.key, FORM)
            job.when_done()
        self.jobs.clear()

    def compile_plain(self, module: Any) -> Callable[..., list[Any]]:
        """In place of `pipeline._compile_plain`."""
        code = plain(module)

        def run(*inputs: torch.Tensor) -> list[Any]:
            self.clock += 1.0
            return code(*inputs)

        return run

    def compile(self, module: Any, inputs: Any, settings: Any, persistent: Any) -> Callable[..., list[Any]]:
        """In place of `pipeline.compile_completely`."""
        if settings.level == "O0":
            return plain(module)
        code = eager_codegen.compile(copy_module(module))

        def run(*inputs: torch.Tensor) -> list[Any]:
            self.runs += 1
            self.clock += self.seconds
            return [out * self.factor for out in code(*inputs)]

        return run


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch) -> Iterator[Compiler]:
    autotune_cache.forget()
    monkeypatch.setenv("TORCHSPORE_WAIT", "0")
    stand_in = Compiler()
    monkeypatch.setattr(tiered_code, "COMPILER", stand_in)
    monkeypatch.setattr(pipeline, "compile_completely", stand_in.compile)
    monkeypatch.setattr(pipeline, "_compile_plain", stand_in.compile_plain)
    ms.set_context(mode=ms.GRAPH_MODE, jit_config={"jit_level": "O1"})
    with effects.fresh(), inductor.compiled_by(kernel_compilers.nobody), measurement.timed_by(lambda: stand_in.clock):
        yield stand_in
    autotune_cache.forget()
    ms.set_context(mode=ms.PYNATIVE_MODE, jit_config={}, deterministic="OFF", save_graphs=0)


class Net(nn.Cell):
    """Random numbers, statistics that are written, and a counter."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.drop, self.last = nn.Dense(8, 16), nn.BatchNorm1d(16), nn.Dropout(p=0.4), nn.Dense(16, 4)
        self.calls = ms.Parameter(Tensor(0.0), requires_grad=False)

    def construct(self, x):
        self.calls += 1
        return self.last(self.drop(ops.relu(self.norm(self.first(x)))))


def training(steps: int, level: str, between: Callable[[int], None] = lambda step: None) -> tuple[list[float], list[Any], Any]:
    """Losses, Parameters at the end, and what the program draws afterwards."""
    ms.set_context(mode=ms.GRAPH_MODE, jit_config={"jit_level": level})
    ms.set_seed(7)
    net = Net()
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.Adam(net.trainable_params(), 1e-2)).set_train()
    rows = np.random.RandomState(0)
    losses = []
    for index in range(steps):
        between(index)
        x, y = Tensor(rows.randn(32, 8).astype(np.float32)), Tensor(rows.randn(32, 4).astype(np.float32))
        losses.append(float(step(x, y)))
    return losses, [p.asnumpy() for p in net.get_parameters()], ops.standard_normal((3,)).asnumpy()


def notes() -> list[str]:
    return effects.notes().get(SECTION, [])


def test_training_with_a_switch_in_the_middle_continues_as_at_o0(compiler: Compiler) -> None:
    expected = training(20, "O0")
    runs: list[int] = []

    def between(step: int) -> None:
        runs.append(compiler.runs)
        if step == 6:
            assert len(compiler.jobs) == 1
            compiler.end(factor=1 + 1e-6)

    losses, parameters, draws = training(20, "O1", between)
    assert losses[:7] == expected[0][:7], "not O0's bits before the switch"
    np.testing.assert_allclose(losses, expected[0], rtol=1e-4)
    assert losses[12:] != expected[0][12:], "the new form runs"
    for ours, theirs in zip(parameters, expected[1], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-5)
    np.testing.assert_array_equal(draws, expected[2])
    # call 7 checks the form, 8 to 13 compare it in turns, and the rest runs it
    assert runs[:7] == [0] * 7 and compiler.runs == 1 + 3 + (20 - 13)
    (line,) = notes()
    assert "'channels last' was compiled in 2.0 s and took over after call 7: 2.00 times faster (1000.000 -> 500.000 ms)" in line


def test_the_first_call_measures_and_compiles_nothing(compiler: Compiler) -> None:
    with measurement.measured_by(fake_timings.nobody):
        training(3, "O1")
    assert compiler.runs == 0
    (line,) = notes()
    assert line.endswith("its faster form was not ready when the program ended; all 3 calls ran as at O0 (TORCHSPORE_WAIT=1 waits for it)")


def test_a_program_that_ends_early_starts_no_compilation(compiler: Compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TORCHSPORE_WAIT")
    monkeypatch.setattr(reasons_to_wait, "seconds_to_compile", lambda module: 9.5)
    training(9, "O1")                                    # a call takes a second
    assert not compiler.jobs
    (line,) = notes()
    assert "its compilation had not started when the program ended: the 9 calls took less time than a compilation" in line


def test_the_compilation_starts_when_the_calls_have_taken_as_long(compiler: Compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TORCHSPORE_WAIT")
    monkeypatch.setattr(reasons_to_wait, "seconds_to_compile", lambda module: 9.5)
    jobs: list[int] = []

    def between(step: int) -> None:
        jobs.append(len(compiler.jobs))
        if step == 12:
            compiler.end()
        if step == 10:
            assert compiler.jobs[0].patience == tiered_code.PATIENCE * 9.5

    training(20, "O1", between)
    assert jobs[:13] == [0] * 10 + [1] * 3                # the end of the compilation empties the list
    (line,) = notes()
    assert "took over after call 13: 2.00 times faster" in line


def test_a_large_graph_waits_longer() -> None:
    graph = torch.fx.Graph()
    node = graph.placeholder("x")
    for _ in range(100):
        node = graph.call_function(torch.ops.aten.relu.default, (node,))
    graph.output([node])
    assert reasons_to_wait.seconds_to_compile(torch.fx.GraphModule({}, graph)) == 7.0


ANSWERS = """
import json, sys
log = open({log!r}, "a")
for line in sys.stdin:
    print({only_when_idle}, "compiles", json.loads(line)["key"], file=log, flush=True)
    if not {only_when_idle} or line.startswith('{{"key": "small"'):
        print(json.dumps({{"keep": ["form", "fast"]}}), flush=True)
        print(json.dumps({{"end": "", "folder": "", "failure": ""}}), flush=True)
print({only_when_idle}, "ends", file=log, flush=True)
"""


@pytest.fixture
def compile_by_answers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[[str, float], Job]]:
    """Processes that compile every graph, and small ones only while the processors are idle."""
    program = ANSWERS.replace("{log!r}", repr(str(tmp_path / "log")))
    monkeypatch.setattr(compiler_process, "_PROGRAM", program)
    compiler = CompilerProcess()

    def run(key: str, patience: float) -> Job:
        is_done = threading.Event()
        job = Job(key, {"key": key}, is_done.set, None, patience)
        compiler.submit(job)
        assert is_done.wait(60)
        return job

    yield run
    compiler._dismiss()


def wait_for_lines(log: Path, count: int) -> list[str]:
    deadline = time.monotonic() + 60
    while len(lines := log.read_text().splitlines()) < count and time.monotonic() < deadline:
        time.sleep(0.01)
    return lines


def test_a_compilation_that_gets_no_idle_processor_gets_another_process(
    compile_by_answers: Callable[[str, float], Job], tmp_path: Path,
) -> None:
    small = compile_by_answers("small", 100.0)
    assert (small.error, small.results) == ("", {"form": "fast"})
    large = compile_by_answers("large", 0.2)
    assert (large.error, large.results) == ("", {"form": "fast"})
    assert compile_by_answers("next", 100.0).error == ""
    lines = wait_for_lines(tmp_path / "log", 5)
    assert sorted(lines) == ["False compiles large", "False compiles next", "True compiles large", "True compiles small", "True ends"]


def test_a_compilation_from_the_first_call_on_does_not_wait_for_idle_processors(
    compile_by_answers: Callable[[str, float], Job], tmp_path: Path,
) -> None:
    assert compile_by_answers("large", 0.0).error == ""
    assert (tmp_path / "log").read_text() == "False compiles large\n"


@pytest.mark.skipif(not hasattr(os, "SCHED_IDLE"), reason="this system schedules no process only while a processor is idle")
@pytest.mark.parametrize(("only_when_idle", "policy"), [(True, "SCHED_IDLE"), (False, "SCHED_BATCH")])
def test_the_process_leaves_the_processors_to_the_program(only_when_idle: bool, policy: str) -> None:
    program = compiler_process._PROGRAM.format(paths=compiler_process._import_paths(), parent=os.getpid(), only_when_idle=only_when_idle)
    compiler = subprocess.Popen([sys.executable, "-I", "-c", program], stdin=subprocess.PIPE)
    try:
        deadline = time.monotonic() + 60
        while os.sched_getscheduler(compiler.pid) != getattr(os, policy) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert os.sched_getscheduler(compiler.pid) == getattr(os, policy)
        threads = [int(path.name) for path in Path(f"/proc/{compiler.pid}/task").iterdir()]
        assert sorted(map(os.sched_getscheduler, threads)) == sorted([os.SCHED_OTHER, getattr(os, policy)])      # the listener ends it
    finally:
        assert compiler.stdin is not None
        compiler.stdin.close()
        assert compiler.wait(60) == 0


def test_the_request_describes_the_graph(compiler: Compiler) -> None:
    training(1, "O1")
    request = compiler.jobs[0].request
    assert request["threads"] == torch.get_num_threads() and "torchspore.engine.random.operator_streams" in request["homes"]
    assert compiler.jobs[0].patience == 0
    assert request["entry"]["settings"]["level"] == "O1" and len(request["graph"]["nodes"]) > 30


@pytest.mark.parametrize(("changes", "text"), [
    ({"factor": 1.1}, "stays as at O0: the form 'channels last' gives other numbers"),
    ({"factor": float("nan")}, "stays as at O0: the form 'channels last' gives other numbers"),
    ({"seconds": 1.0}, "stays as at O0: the form 'channels last', compiled in 2.0 s, is not faster ("),
    ({"error": "out of memory"}, "stays as at O0: out of memory"),
])  # fmt: skip
def test_a_form_that_is_wrong_or_slow_or_missing_leaves_o0(changes: dict[str, Any], text: str, compiler: Compiler) -> None:
    expected = training(12, "O0")
    losses, _, draws = training(12, "O1", lambda step: compiler.end(**changes) if step == 3 else None)
    if "seconds" not in changes:
        assert losses == expected[0]
    np.testing.assert_allclose(losses, expected[0], rtol=1e-5)
    np.testing.assert_array_equal(draws, expected[2])
    (line,) = notes()
    assert text in line
    runs = compiler.runs
    training(3, "O1")                                       # an equal graph is not compiled again, unless that failed
    assert compiler.runs == runs + (0 if "error" in changes else 3)
    assert bool(compiler.jobs) == ("error" in changes)


def test_a_form_that_cannot_be_built_leaves_o0(compiler: Compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: Any) -> Any:
        raise KeyError("no such form")

    expected = training(8, "O0")[0]
    monkeypatch.setattr(pipeline, "compile_completely", broken)
    assert training(8, "O1", lambda step: compiler.end() if step == 3 else None)[0] == expected
    assert any("stays as at O0: KeyError: 'no such form'" in line for line in notes())


def test_a_missing_compiler_is_reported_once(
    compiler: Compiler, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(inductor._COMPILER, "failure", None)
    for _ in range(2):
        autotune_cache.forget()
        training(4, "O1", lambda step: compiler.end(failure="the C++ compiler is missing (g++)") if step == 2 else None)
    text = "jit_level O1 and O2 generate kernels, and the C++ compiler is missing (g++); graphs run without them."
    assert capfd.readouterr().err.count(text) == 1
    monkeypatch.setattr(inductor._COMPILER, "failure", None)


def test_an_equal_graph_has_the_form_from_its_first_call(compiler: Compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    training(12, "O1", lambda step: compiler.end() if step == 2 else None)
    runs = compiler.runs
    training(5, "O1")
    assert compiler.runs == runs + 5 and not compiler.jobs


def test_two_threads_may_call_while_it_switches(compiler: Compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    net = ms.jit(lambda x: ops.exp(x) * 2)
    x = Tensor(np.linspace(-1, 1, 64, dtype=np.float32))
    expected = net(x).asnumpy()
    compiler.end(factor=1 + 1e-7)
    wrong: list[Any] = []

    def call() -> None:
        with measurement.timed_by(lambda: compiler.clock):
            for _ in range(20):
                if not np.allclose(net(x).asnumpy(), expected, rtol=1e-5):
                    wrong.append(1)

    threads = [threading.Thread(target=call) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and any("took over" in line or "is not faster" in line for line in notes())


def test_an_error_of_the_program_is_its_own_while_a_form_is_checked(compiler: Compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    table = Tensor(np.arange(12, dtype=np.float32).reshape(4, 3))
    look = ms.jit(lambda index: ops.gather(table, index, 0) * 2)
    good, bad = Tensor(np.array([0, 3], np.int32)), Tensor(np.array([0, 9], np.int32))
    look(good)
    compiler.end()
    messages = []
    for _ in range(2):
        with pytest.raises((IndexError, RuntimeError, ValueError)) as raised:
            look(bad)
        messages.append(str(raised.value))
    assert messages[0] == messages[1]
    for _ in range(8):
        np.testing.assert_array_equal(look(good).asnumpy(), [[0, 2, 4], [18, 20, 22]])
    assert any("took over" in line for line in notes())


def waits(compiler: Compiler, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the first call of a net runs the complete form."""
    training(1, "O1")
    return compiler.runs == 1 and not compiler.jobs


def test_torchspore_wait(compiler: Compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHSPORE_WAIT", "1")
    assert waits(compiler, monkeypatch) and not notes()
    for is_at_once in (True, False):
        monkeypatch.setenv("TORCHSPORE_WAIT", "0") if is_at_once else monkeypatch.delenv("TORCHSPORE_WAIT")
        autotune_cache.forget()
        compiler.jobs.clear()
        training(1, "O1")
        assert bool(compiler.jobs) is is_at_once and notes()


def test_deterministic_waits(compiler: Compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    ms.set_context(deterministic="ON")
    assert waits(compiler, monkeypatch)


def test_other_ranks_wait(compiler: Compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "world", process.World(0, 2))
    assert waits(compiler, monkeypatch)
    assert notes()[0].endswith(
        "the first call waits for the compiler: all processes of a distributed run must use the same form at the same step")


def test_saved_graphs_wait(compiler: Compiler, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ms.set_context(save_graphs=1, save_graphs_path=str(tmp_path))
    assert waits(compiler, monkeypatch)


def test_a_compilation_without_a_run_waits(compiler: Compiler) -> None:
    net = Net().set_train(False)
    net.compile(Tensor(np.ones((2, 8), np.float32)))
    assert not compiler.jobs
    net(Tensor(np.ones((2, 8), np.float32)))
    assert compiler.runs == 1


def test_loops_wait(compiler: Compiler) -> None:
    @ms.jit
    def halve(x):
        while x.sum() > 1:
            x = x / 2
        return x

    assert float(halve(Tensor([4.0, 4.0])).sum()) == 1.0
    assert compiler.runs == 1 and notes()[0].endswith("the graph has branches or loops")
