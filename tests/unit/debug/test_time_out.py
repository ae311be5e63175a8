"""`op_timeout`: what really hangs is stopped, named, and leaves no children."""
from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.processes import Run

from torchspore.blackbox import stacks, watcher

WITHOUT_NATIVE = {"TORCHSPORE_NO_NATIVE": "1"}
SVD = """
import time, mindspore as ms
x = ms.ops.standard_normal((3000, 3000))              # on a busy machine it takes a second too
ms.set_context(op_timeout=1)
print(time.time(), flush=True)
ms.ops.svd(x)
print("not reached")
"""
HOLDS_PYTHON = """
import ctypes, subprocess, time, numpy as np, mindspore as ms
ms.set_context(op_timeout=1, mode=0)
child = subprocess.Popen(["sleep", "600"])
def stuck(x):
    while True:
        ctypes.PyDLL(None).sleep(600)
net = ms.ops.Custom(stuck, out_shape=lambda s: s, out_dtype=lambda d: d, func_type="pyfunc")
print(time.time(), child.pid, flush=True)
net(ms.Tensor(np.ones(3, np.float32)))
"""
SLEEPS_IN_C = """
import ctypes, time, mindspore as ms
ms.set_context(op_timeout=1)
library = ctypes.LOADER(None)
def hang(x):
    library.sleep(600)
    return x
print(time.time(), flush=True)
ms.ops.Custom(hang, lambda s: s, lambda d: d, func_type="pyfunc")(ms.Tensor(1.0))
print("not reached", flush=True)
open("after", "w").write("x")
"""
PIPELINE = """
import time, mindspore as ms, mindspore.dataset as ds
ms.set_context(op_timeout=1)
def rows():
    yield (1,)
    print(time.time(), flush=True)
    time.sleep(600)
for row in ds.GeneratorDataset(rows, ["x"]).create_dict_iterator():
    pass
"""
PATIENT = """
import time, numpy as np, mindspore as ms
ms.set_context(op_timeout=1)
time.sleep(1.5)                                     # Python, no operator
ms.set_context(op_timeout=0)
ms.ops.Custom(lambda x: time.sleep(1.5) or x, func_type="pyfunc")(ms.Tensor(np.ones(3, np.float32)))
ms.set_context(op_timeout=900)
print("done")
"""
PROFILED = """
import time, numpy as np, mindspore as ms
ms.set_context(op_timeout=1, enable_profiling=True, profiling_options='{"output": "prof", "training_trace": "on"}')
class Net(ms.nn.Cell):
    def construct(self, x):
        for _ in range(4):
            time.sleep(0.4)
            x = ms.ops.add(x, 1)
        return x
print(Net()(ms.Tensor(np.ones(1, np.float32))))
"""


def ended(run: Callable[..., Run], tmp_path: Path, program: str, extra: dict[str, str] | None = None) -> tuple[Run, list[str]]:
    """Runs a program that must be stopped soon after its limit of one second (two on a quiet machine); gives the words that it printed."""
    (tmp_path / "hang.py").write_text(program)
    ran = run("run", "hang.py", extra=extra)
    words = ran.out.split()
    assert ran.code not in (0, 1), ran.err
    assert time.time() - float(words[0]) < 10                      # the hanging call itself would take a minute and more
    assert "All threads:" in ran.err
    assert "not reached" not in words
    return ran, words


def says_it_ran(what: str, ran: Run) -> bool:
    """Whether the message says for how long something has run, whatever it was: that hangs on who else uses the machine."""
    return re.search(re.escape(what) + r" has run for [1-9]\d*\.\d s", ran.err) is not None


def test_an_operator_of_torch_is_stopped_and_named(run: Callable[..., Run], tmp_path: Path, native: None) -> None:
    ran, _ = ended(run, tmp_path, SVD)
    assert says_it_ran("op_timeout=1: svd (aten::linalg_svd)", ran)
    assert "at hang.py:6; the program is ended." in ran.err
    assert "hint: set_context(op_timeout=...) limits the seconds that one operator may take" in ran.err
    assert ran.code == 124


def test_code_that_holds_pythons_lock_is_stopped_with_its_children(run: Callable[..., Run], tmp_path: Path) -> None:
    ran, words = ended(run, tmp_path, HOLDS_PYTHON, WITHOUT_NATIVE)
    assert says_it_ran("op_timeout=1: Custom stuck", ran)
    assert "at hang.py:7; the program is ended." in ran.err
    assert watcher._state(int(words[1])) in ("", "Z")              # its new parent may not have looked at it yet


@pytest.mark.parametrize("loader", ["CDLL", "PyDLL"])
def test_a_call_that_sleeps_in_c_is_stopped_before_the_code_after_it_runs(run: Callable[..., Run], tmp_path: Path, loader: str) -> None:
    ran, _ = ended(run, tmp_path, SLEEPS_IN_C.replace("LOADER", loader))
    assert "at hang.py:6; the program is ended." in ran.err
    assert ran.code == 124
    assert not (tmp_path / "after").exists()


def test_a_step_of_the_data_pipeline_is_stopped(run: Callable[..., Run], tmp_path: Path) -> None:
    ran, _ = ended(run, tmp_path, PIPELINE, WITHOUT_NATIVE)
    assert says_it_ran("the data pipeline of GeneratorDataset", ran)
    assert "at hang.py:8; the pipeline is at hang.py:7; the program is ended." in ran.err
    assert ran.code == 124


def test_what_is_no_operator_or_has_no_limit_goes_on(run: Callable[..., Run], tmp_path: Path) -> None:
    (tmp_path / "patient.py").write_text(PATIENT)
    ran = run("explain", "patient.py", extra=WITHOUT_NATIVE)
    assert (ran.code, ran.out.splitlines()[0]) == (0, "done")
    assert ("applied: the program ends if an operator or a step of its data takes more than 900 s; operators of the front end alone "
            "are watched, not those in graphs and gradients (TORCHSPORE_NO_NATIVE=1)") in ran.out


PROGRAM_AFTER = """
import os, threading, time, mindspore as ms
files = len(os.listdir("/proc/self/fd"))
def watched():
    children = open(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read().split()
    return bool(children), "torchspore-recorder" in [thread.name for thread in threading.enumerate()]
for _ in range(20):
    ms.set_context(op_timeout=1)
    assert watched() == (True, True)
    ms.ops.ones((2, 2))
    ms.set_context(op_timeout=0)
    assert watched() == (False, False)
assert len(os.listdir("/proc/self/fd")) <= files + 2
ms.set_context(op_timeout=1)
if os.fork() == 0:                                  # what a child does is its own matter
    ms.set_context(op_timeout=60)
    ms.ops.Custom(lambda x: time.sleep(2) or x, func_type="pyfunc")(ms.ops.ones((3,)))
    os._exit(0)
print(os.wait()[1])
print(time.time(), flush=True)
ms.ops.Custom(lambda x: time.sleep(60) or x, func_type="pyfunc")(ms.ops.ones((3,)))
"""


def test_switched_off_it_leaves_nothing_and_can_be_switched_on_again(run: Callable[..., Run], tmp_path: Path) -> None:
    (tmp_path / "again.py").write_text(PROGRAM_AFTER)
    ran = run("run", "again.py")
    status, started = ran.out.split()
    assert status == "0" and ran.code == stacks.EXIT_CODE, ran.err
    assert time.time() - float(started) < 1 + 2 + 0.5
    assert says_it_ran("Custom <lambda>", ran)


def test_nothing_watches_where_nobody_asked() -> None:
    from torchspore.blackbox import marks
    from torchspore.graph.save_graphs import session
    from torchspore.mindspore.nn import Cell
    from torchspore.observe.debug import black_box, recorded_steps

    assert (black_box.RECORDER.box, marks.is_enabled, recorded_steps.ACTIVE.runner, session.keeper) == (None, False, None, None)
    assert not hasattr(Cell.__call__, "plain")


@pytest.mark.slow
def test_a_cell_in_a_profile_is_no_operator(run: Callable[..., Run], tmp_path: Path, native: None) -> None:
    (tmp_path / "profiled.py").write_text(PROFILED)
    ran = run("run", "profiled.py")
    assert (ran.code, ran.out) == (0, "[5.]\n"), ran.err
