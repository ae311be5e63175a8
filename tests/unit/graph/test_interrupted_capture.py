"""An exception from outside (Ctrl-C, an alarm) during the first capture does not break later captures."""
from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from types import FrameType

import pytest

from torchspore.engine.torch_internals.uninterrupted_import import UninterruptedImport

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="alarms of POSIX")


class _Late(Exception):
    pass


def _raise(number: int, frame: FrameType | None) -> None:
    raise _Late


def test_an_import_continues_after_an_interruption(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slow_module_for_alarms.py").write_text("import time\nBEGUN = 1\ntime.sleep(1)\nDONE = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    modules = UninterruptedImport("slow_module_for_alarms")
    before = signal.signal(signal.SIGALRM, _raise)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(_Late):
            modules.finish()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    modules.finish()
    module = sys.modules.pop("slow_module_for_alarms")
    assert module.DONE == 1


def test_a_module_that_fails_goes_to_the_caller() -> None:
    UninterruptedImport("a_module_that_does_not_exist").finish()


_SCRIPT = """
import signal
import mindspore as ms
from mindspore import nn, ops
ms.set_context(mode=0, jit_syntax_level=ms.STRICT)
class Net(nn.Cell):
    def construct(self, x):
        return ops.relu(x) + 1
class Late(Exception): pass
def late(*_): raise Late
x = ops.ones((2, 2))
signal.signal(signal.SIGALRM, late)
signal.setitimer(signal.ITIMER_REAL, 0.7)
try:
    Net()(x)
except Exception: pass
signal.setitimer(signal.ITIMER_REAL, 0)
print(Net()(x).asnumpy().tolist())
"""


@pytest.mark.slow
def test_the_next_capture_runs(tmp_path: Path) -> None:
    script = tmp_path / "interrupted.py"
    script.write_text(_SCRIPT)
    command = [sys.executable, "-m", "torchspore", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.stdout.strip() == "[[2.0, 2.0], [2.0, 2.0]]", done.stderr
