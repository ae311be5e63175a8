"""`torchspore run`: programs run as `python` would run them, and what can't be run is said in full."""
from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support import processes
from support.processes import Run

from torchspore.cli.main import COMMANDS

RunFixture = Callable[..., Run]


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


SEEN = "import sys; print(sys.argv, __name__, globals().get('__file__'), sys.path[0], sys.modules['__main__'].__dict__ is globals())\n"


@pytest.mark.parametrize("leading", [["run"], []], ids=["run", "plain"])
def test_script_sees_what_python_would_give_it(leading: list[str], run: RunFixture, tmp_path: Path) -> None:
    write(tmp_path, "sub/show.py", SEEN)
    ended = run(*leading, "sub/show.py", "--mode", "x", "-v")
    assert ended == Run(0, f"['sub/show.py', '--mode', 'x', '-v'] __main__ sub/show.py {tmp_path}/sub True\n", "")


def test_module(run: RunFixture, tmp_path: Path) -> None:
    write(tmp_path, "package/__init__.py", "")
    write(tmp_path, "package/show.py", "import sys; print(sys.argv[1:], __name__, __package__)")
    assert run("run", "-m", "package.show", "1", "2") == Run(0, "['1', '2'] __main__ package\n", "")


def test_code(run: RunFixture) -> None:
    assert run("-c", "import sys; print(sys.argv, __name__)", "1") == Run(0, "['-c', '1'] __main__\n", "")


def test_folder_with_main(run: RunFixture, tmp_path: Path) -> None:
    write(tmp_path, "program/__main__.py", "import beside; print(beside.VALUE)")
    write(tmp_path, "program/beside.py", "VALUE = 7")
    assert run("program") == Run(0, "7\n", "")


@pytest.mark.parametrize(
    ("ending", "code", "err"),
    [("sys.exit()", 0, ""), ("sys.exit(3)", 3, ""), ("sys.exit('no data')", 1, "no data\n"), ("sys.exit(True)", 1, "")],
)
def test_exit_codes(ending: str, code: int, err: str, run: RunFixture) -> None:
    assert run("-c", f"import sys; print('out'); {ending}") == Run(code, "out\n", err)


def test_traceback_begins_at_the_users_line(run: RunFixture, tmp_path: Path) -> None:
    write(tmp_path, "wrong.py", "def divide(x):\n    return x // 0\n\ndivide(1)\n")
    ended = run("wrong.py")
    assert ended.code == 1
    assert ended.err.splitlines() == [
        "Traceback (most recent call last):",
        '  File "wrong.py", line 4, in <module>',
        "    divide(1)",
        *([] if sys.version_info < (3, 13) else ["    ~~~~~~^^^"]),
        '  File "wrong.py", line 2, in divide',
        "    return x // 0",
        *([] if sys.version_info < (3, 11) else ["           ~~^^~~"]),
        f"ZeroDivisionError: {'integer division or modulo' if sys.version_info < (3, 14) else 'division'} by zero",
    ]


def test_syntax_error_is_pythons_own(run: RunFixture, tmp_path: Path) -> None:
    write(tmp_path, "wrong.py", "def f(:\n")
    ended = run("wrong.py")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.splitlines()[0] == '  File "wrong.py", line 1'
    assert ended.err.splitlines()[-1] == "SyntaxError: invalid syntax"


def test_what_a_program_sets_up_for_its_end_still_runs(run: RunFixture) -> None:
    assert run("-c", "import atexit; VALUE = 5; atexit.register(lambda: print(VALUE))") == Run(0, "5\n", "")


def test_interrupt_is_a_clean_end(tmp_path: Path) -> None:
    write(tmp_path, "long.py", "import time\nprint('started', flush=True)\nwhile True:\n    time.sleep(0.01)\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "torchspore", "long.py"],
        cwd=tmp_path, env=processes.environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (130, "")
    assert re.fullmatch(r"interrupted at long\.py:[234]\n", err)


def test_device_is_set_before_the_program_starts(run: RunFixture) -> None:
    ended = run("run", "--device", "cpu", "-c", "import os; print(os.environ['TORCHSPORE_DEVICE'])")
    assert ended == Run(0, "CPU\n", "")


ERRORS = {
    "no program": (["run"], "torchspore run: expected a program.\n\nhint: write `torchspore run train.py`.\n"),
    "no such script": (
        ["run", "trane.py"],
        "torchspore run trane.py: no such file (looked in {folder}).\n\nhint: write `torchspore run train.py`.\n",
    ),
    "no such script, nothing near": (
        ["nowhere/x.py"],
        "torchspore run nowhere/x.py: no such file (looked in {folder}).\n\n"
        "hint: write the path of a Python file, or `-m` before the name of a module.\n",
    ),
    "folder": (["run", "."], "torchspore run .: a folder without __main__.py.\n\nhint: name the program's file.\n"),
    "option": (["run", "--devce", "CPU", "train.py"], "torchspore run --devce: no such option.\n\nhint: write --device.\n"),
    "program's option": (
        ["run", "--epochs", "3", "train.py"],
        "torchspore run --epochs: no such option.\n\nhint: write the program's own options after its name.\n",
    ),
    "device": (
        ["run", "--device", "TPU", "train.py"],
        "torchspore run --device TPU: expected CPU, GPU or Ascend.\n\nhint: write `--device CPU`.\n",
    ),
    "device missing": (["run", "--device"], "torchspore run --device: expected a value after it.\n\nhint: write `--device CPU`.\n"),
    "module missing": (
        ["run", "-m"], "torchspore run -m: expected the name of a module after it.\n\nhint: write `torchspore run -m package.train`.\n",
    ),
    "devices": (
        ["run", "--simulate", "0", "train.py"],
        "torchspore run --simulate 0: expected a number from 1 to 4096.\n\nhint: write --simulate 8.\n",
    ),
    "command": (
        ["chek"],
        f"torchspore chek: expected a command ({', '.join(COMMANDS)}) or a Python file.\n\n"
        "hint: write `torchspore check`.\n",
    ),
    "nothing like a command": (
        ["zzz"],
        f"torchspore zzz: expected a command ({', '.join(COMMANDS)}) or a Python file.\n\n"
        "hint: write `torchspore run zzz` for a program of that name.\n",
    ),
}


@pytest.mark.parametrize(("words", "text"), ERRORS.values(), ids=ERRORS.keys())
def test_what_cannot_be_run_is_reported(words: list[str], text: str, run: RunFixture, tmp_path: Path) -> None:
    write(tmp_path, "train.py", "")
    assert run(*words) == Run(2, "", text.format(folder=tmp_path))


def test_help_and_version(run: RunFixture) -> None:
    import torchspore

    assert run("--version") == Run(0, f"torchspore {torchspore.__version__}\n", "")
    assert run("--help").out.startswith(f"torchspore {torchspore.__version__}: runs unmodified MindSpore programs on PyTorch\n")
    assert run().code == 2
    assert run("run", "--help").out.startswith("usage: torchspore run ")


LENIENT = """from mindspore.nn import Conv7d, ReLU
print("imported")
ReLU()
def late():
    {use}
late()
"""


@pytest.mark.parametrize("use", [
    "Conv7d(1)", *(pytest.param(use, marks=pytest.mark.slow) for use in ("Conv7d.pad", "class Own(Conv7d): pass")),
])
def test_lenient_raises_where_a_missing_name_is_first_used(use: str, run: RunFixture, tmp_path: Path) -> None:
    write(tmp_path, "old.py", LENIENT.format(use=use))
    ended = run("run", "--lenient", "old.py")
    assert (ended.code, ended.out) == (1, "imported\n")
    lines = ended.err.splitlines()
    assert lines[0] == (
        "old.py:1: UserWarning: mindspore.nn.Conv7d is not in torchspore yet, and MindSpore 2.10 has no such name. The import succeeds, "
        "and the first use of the name raises an error."
    )
    assert lines[3:8] == [
        '  File "old.py", line 6, in <module>', "    late()", '  File "old.py", line 5, in late', f"    {use}",
        "torchspore.errors.NotOffered: mindspore.nn.Conv7d is not in torchspore yet, and MindSpore 2.10 has no such name.",
    ]
    assert run("run", "--strict-imports", "old.py").out == ""


FAULT = """
import mindspore as ms
from mindspore import nn, Tensor
import torchspore.mindspore.ops.elementwise.arithmetic as ours

def fault(*given):
    return {}["key"]

fault.__code__ = fault.__code__.replace(co_filename=ours.__file__)
nn.Cell._run_ = fault
def train():
    nn.ReLU()(Tensor([1.0]))
try:
    1 / 0
except ZeroDivisionError:
    train()
"""


def test_calls_of_ours_are_folded_and_an_error_has_one_hint(run: Callable[..., Run], tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(FAULT)
    result = run("run", "train.py")
    lines = result.err.splitlines()
    assert result.code == 1 and result.err.count("hint:") == 1
    assert lines[0] == "Traceback (most recent call last):" and '"train.py", line 14' in lines[1]
    assert sum("calls in torchspore" in line or "call in torchspore" in line for line in lines) == 1
    assert lines[-3:] == [
        "KeyError: 'key'", "", "hint: this may be a bug in torchspore: `torchspore env` prints what a report needs.",
    ]
    full_traceback = run("run", "train.py", extra={"TORCHSPORE_TRACEBACK": "full"})
    assert "cell.py" in full_traceback.err and "cell.py" not in result.err


@pytest.mark.parametrize("words", [["run", "-c", "for i in range(99999): print(i)"], ["explain", "-c", "print('x' * 99999)"]])
def test_a_reader_that_has_seen_enough_ends_the_command_quietly(words: list[str]) -> None:
    command = [sys.executable, "-m", "torchspore", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.read(1)
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 141


def test_another_broken_pipe_is_an_error_of_the_program(run: RunFixture, tmp_path: Path) -> None:
    write(tmp_path, "pipe.py", "import os\nr, w = os.pipe()\nos.close(r)\nos.write(w, b'x')\n")
    ended = run("run", "pipe.py")
    assert ended.code == 1 and "BrokenPipeError" in ended.err


LEAVES = """
import torchspore
torchspore.install()
import os
import mindspore as ms
from mindspore import nn
from torchspore.context import effects

class Net(nn.Cell):
    def construct(self, x):
        if x.sum() > 0:
            x = x + 1
        return x * 2

os.chdir("/")
ms.set_context(mode=ms.GRAPH_MODE)
print(Net()(ms.Tensor([1.0, 2.0])), effects.notes().get("calls that run in parts"))
Net()(ms.Tensor([1.0, 2.0])).reshape(7)
"""


@pytest.mark.parametrize("runner", [processes.torchspore, processes.python], ids=["torchspore run", "python"])
def test_the_source_of_a_script_that_leaves_its_folder(runner: Callable[..., Run], tmp_path: Path) -> None:
    """Its file name is relative to the first folder; Graph mode and tracebacks read the source all the same."""
    write(tmp_path, "sub/leaves.py", LEAVES)
    ended = runner(*(["run"] if runner is processes.torchspore else []), "sub/leaves.py", cwd=tmp_path)
    assert ended.out == "[4. 6.] None\n", ended
    assert "    Net()(ms.Tensor([1.0, 2.0])).reshape(7)" in ended.err.splitlines()
