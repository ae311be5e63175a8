"""Real MindSpore: its Python, a process for a single question, and two workers."""
from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
COMMAND = ROOT / "tools" / "record.py"
RECORDS = ROOT / "tests" / "parity" / "records"


def mindspore() -> ModuleType:
    """Import real MindSpore. Raises SystemExit if `import mindspore` loads torchspore."""
    package = importlib.import_module("mindspore")
    if hasattr(package, "__torchspore__"):
        raise SystemExit("this is torchspore: records come from real MindSpore (--python)")
    return package


def add_python(parser: argparse.ArgumentParser) -> None:
    """Add the option for MindSpore's Python, and the mark of a process that runs in it."""
    help_text = "the Python that has mindspore 2.10 and numpy 1.26.4; .oracle/bin/python by default"
    parser.add_argument("--python", type=Path, default=ROOT / ".oracle/bin/python", help=help_text)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)


def python(arguments: argparse.Namespace) -> Path:
    """Return the path of MindSpore's Python. Links stay: Python finds its virtual environment by the path. Raises SystemExit."""
    path: Path = arguments.python.absolute()
    if not path.exists():
        raise SystemExit(f"{path} does not exist: --python expects the Python that has mindspore 2.10")
    return path


def run_inside(arguments: argparse.Namespace, words: Sequence[str] = (), **options: Any) -> subprocess.CompletedProcess[str]:
    """Run the subject again in MindSpore's Python, with `words` after its name. `options` go to subprocess.run."""
    command = [str(python(arguments)), str(COMMAND), arguments.subject, "--inside", *words]
    return subprocess.run(command, text=True, **options)


def output_of(arguments: argparse.Namespace, words: Sequence[str], **options: Any) -> str:
    """Return the output of MindSpore's Python with these words. Raises subprocess.CalledProcessError."""
    variables = {**os.environ, "GLOG_v": "3"}
    return subprocess.run([str(python(arguments)), *words], env=variables, check=True, stdout=subprocess.PIPE, text=True, **options).stdout


def run_two_workers(arguments: argparse.Namespace, folder: str, words: Sequence[str] = (), port: int = 18400,
                    environment: Mapping[str, str] = {}, **options: Any) -> int:
    """Run the subject in two processes of MindSpore's msrun, which logs into `folder`; return the exit status.

    Raises subprocess.TimeoutExpired.
    """
    programs = python(arguments).parent
    command = [
        str(programs / "msrun"), "--worker_num", "2", "--local_worker_num", "2", "--master_port", str(port), "--join", "True",
        "--log_dir", f"{folder}/logs", str(COMMAND), arguments.subject, "--inside", *words,
    ]
    variables = {**os.environ, **environment, "PATH": f"{programs}:{os.environ['PATH']}"}
    return subprocess.run(command, cwd=folder, env=variables, **options).returncode


def worker_logs(folder: str) -> dict[str, str]:
    """Return the logs of the two workers by file name."""
    return {log.name: log.read_text(errors="replace") for log in sorted(Path(folder, "logs").glob("worker_*.log"))}


def answer_of_fork(question: Callable[[], Any]) -> Any:
    """Return the JSON value of `question` computed in a forked process; None if the process dies."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        with os.fdopen(writing, "w") as pipe:
            pipe.write(json.dumps(question()))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else None
