"""Which files are the user's: errors and graphs are attributed to lines of these."""
from __future__ import annotations

import json
import sysconfig

import pytest

from torchspore.base import frames

_PACKAGES = "/venv/lib/python3.11/site-packages"


@pytest.mark.parametrize("name", ["/home/me/train.py", "<stdin>", "<ipython-input-1>", f"{_PACKAGES}/mindcv/models/resnet.py"])
def test_programs_and_their_libraries(name: str) -> None:
    assert frames.is_user_file(name)


@pytest.mark.parametrize("name", [
    frames.__file__, json.__file__, sysconfig.__file__, "<frozen importlib._bootstrap>", f"{_PACKAGES}/torch/fx/interpreter.py",
    f"{_PACKAGES}/numpy/linalg/linalg.py",
    f"{_PACKAGES}/tqdm/std.py",                      # torch.fx creates progress bars, also in a trace
])
def test_torchspore_torch_and_python(name: str) -> None:
    assert not frames.is_user_file(name)


@pytest.mark.parametrize("name", ["/home/a/env/bin/torchspore", "C:/env/Scripts/torchspore.exe/__main__.py"])
def test_the_command_that_pip_writes_is_no_program_of_the_user(name: str) -> None:
    assert not frames.is_user_file(name)
