"""What importing torchspore costs and leaves alone."""
from __future__ import annotations

import subprocess
import sys

from support import processes


def in_process(code: str, *options: str) -> str:
    ended = subprocess.run([sys.executable, *options, "-c", code], capture_output=True, text=True, env=processes.environment(), timeout=60)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout + ended.stderr


def test_import_loads_no_torch_and_installs_nothing() -> None:
    code = "import sys; before = list(sys.meta_path); import torchspore; print('torch' in sys.modules, sys.meta_path == before)"
    assert in_process(code) == "False True\n"


def test_install_loads_no_torch() -> None:
    code = "import sys, torchspore; torchspore.install(); print('torch' in sys.modules, 'numpy' in sys.modules)"
    assert in_process(code) == "False False\n"


def test_import_loads_one_module_of_ours() -> None:
    """What it costs is measured in benchmarks/imports.py; here is why it costs nothing."""
    code = "import sys; before = set(sys.modules); import torchspore; print(*sorted(set(sys.modules) - before))"
    assert in_process(code).split() == ["__future__", "torchspore"]
