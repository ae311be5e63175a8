"""`torchspore doctor`: run small computations on each device, and check what else programs may need."""
from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec

from torchspore.cli.grammar import Parser, returns_exit_code

RIGHT, WRONG, ABSENT = "✓", "✗", "-"
EXTRAS = {
    "shtab": ("shell completion (torchspore completion)", "pip install 'torchspore[completion]'"),
    "tensorboardX": ("TensorBoard's files of SummaryRecord (curves.html needs nothing)", "pip install 'torchspore[summary]'"),
    "onnx": ("mindspore.export to ONNX", "pip install 'torchspore[export]'"),
    "cryptography": ("encrypted checkpoints", "pip install 'torchspore[encryption]'"),
    "grpc": ("parameter servers", "pip install 'torchspore[server]'"),
    "sentencepiece": ("SentencePieceTokenizer", "pip install 'torchspore[text]'"),
    "av": ("videos", "pip install 'torchspore[video]'"),
}
"""The use of each optional extra's package, and the command that installs it."""


@dataclass(frozen=True)
class Finding:
    """One line of the report: its mark, what was checked, the result, and a command that repairs it."""

    mark: str
    description: str
    result: str = ""
    repair: str = ""


def parser() -> Parser:
    """Return the parser of the command."""
    command = Parser(
        prog="torchspore doctor",
        description="Runs small computations on each device and compares the results with NumPy's; checks packages and folders.",
        examples=["torchspore doctor --json"],
    )
    command.add_argument("--json", action="store_true", help="one JSON list, an object for each check")
    return command


@returns_exit_code
def run(words: Sequence[str]) -> int:
    """Run the command; return 1 if something is wrong."""
    options = parser().parse_args(list(words))
    if options.json:
        listed = list(findings())
        print(json.dumps([asdict(finding) for finding in listed], ensure_ascii=False, indent=2))
        return 1 if any(finding.mark == WRONG for finding in listed) else 0
    wrong = 0
    for finding in findings():
        wrong += finding.mark == WRONG
        print(f"{_mark(finding.mark)} {finding.description}" + (f": {finding.result}" if finding.result else ""), flush=True)
        if finding.repair:
            print(f"    {'to fix it' if finding.mark == WRONG else 'to have it'}: {finding.repair}", flush=True)
    print(f"\n{wrong} things are wrong." if wrong > 1 else "\n1 thing is wrong." if wrong else "\nAll is well.")
    return 1 if wrong else 0


def _mark(mark: str) -> str:
    """Return the mark in a form that this terminal can print, in colour if possible."""
    try:
        mark.encode(sys.stdout.encoding or "ascii")
        symbol = mark
    except (UnicodeEncodeError, LookupError):
        symbol = {RIGHT: "ok", WRONG: "X"}.get(mark, mark)
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return symbol
    return {RIGHT: "\x1b[32m", WRONG: "\x1b[31m"}.get(mark, "") + symbol + "\x1b[0m"


def findings() -> Iterator[Finding]:
    """Yield all checks in order."""
    yield from _torch()
    for target in ("CPU", "GPU", "Ascend"):
        yield from _device(target)
    yield _compiler()
    yield from _folders()
    yield _workers()
    for name, (use, command) in EXTRAS.items():
        yield Finding(RIGHT, name) if find_spec(name) is not None else Finding(ABSENT, name, f"not installed; {use}", command)


def _torch() -> Iterator[Finding]:
    try:
        import torch
    except Exception as error:
        yield Finding(WRONG, "torch", _short(error), f"{sys.executable} -m pip install --upgrade 'torch>=2.11'")
        return
    numbers = tuple(int(part) for part in torch.__version__.partition("+")[0].split(".")[:2] if part.isdigit())
    if numbers < (2, 11):
        yield Finding(WRONG, "torch", f"{torch.__version__} is too old", f"{sys.executable} -m pip install --upgrade 'torch>=2.11'")
    else:
        yield Finding(RIGHT, "torch", torch.__version__)


def _device(target: str) -> Iterator[Finding]:
    import torchspore

    torchspore.install()
    from torchspore.engine.devices import device, device_facts, gpu_kinds
    from torchspore.mindspore import context, installation

    count = _or_none(lambda: device.count(target))
    if not count:
        yield _absent(target)
        return
    name = device_facts.name(target, 0) if target != "CPU" else f"CPU ({os.cpu_count()} cores)"
    if target == "GPU":
        name += f" ({gpu_kinds.NAMES[gpu_kinds.kind()]})"
    try:
        context.set_context(device_target=target)
    except Exception as error:
        yield Finding(WRONG, target, _short(error), "unset TORCHSPORE_DEVICE")
        return
    for job, compute in installation.JOBS.items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                compute()
        except Exception as error:
            yield Finding(WRONG, f"{name}: {job}", _short(error), _repair_command(target, error))
        else:
            yield Finding(RIGHT, f"{name}: {job}", "the result is right")


def _absent(target: str) -> Finding:
    """Report a missing device; a device with a driver that torch can't use is wrong."""
    from torchspore.engine.devices import device_diagnosis

    wrong = device_diagnosis.broken(target)
    if wrong is not None:
        return Finding(WRONG, target, wrong.why, wrong.command)
    return Finding(ABSENT, target, "this machine has none")


def _repair_command(target: str, error: Exception) -> str:
    from torchspore.mindspore.installation import WrongResult

    if isinstance(error, WrongResult):
        return f"{sys.executable} -m pip install --force-reinstall torch"
    return "torchspore run --device CPU train.py" if target != "CPU" else "torchspore env"


def _compiler() -> Finding:
    """Check for a C++ compiler, which graph levels O1 and O2 and graph kernels need."""
    named = os.environ.get("CXX")
    names = (named,) if named else ("g++", "clang++", "c++")
    path = next((path for name in names if (path := shutil.which(name))), None)
    if path:
        return Finding(RIGHT, "C++ compiler", path)
    why = f"CXX={named} does not exist" if named else "none; jit_level O1 and O2 run as O0"
    return Finding(WRONG if named else ABSENT, "C++ compiler", why, "unset CXX" if named else "apt-get install g++")


def _folders() -> Iterator[Finding]:
    for description, folder, command in (
        ("folder for temporary files", tempfile.gettempdir(), "export TMPDIR=$HOME/tmp"), ("this folder", os.getcwd(), "cd ~"),
    ):
        try:
            with tempfile.TemporaryFile(dir=folder) as file:
                file.write(b"0" * 4096)
        except OSError as error:
            yield Finding(WRONG, description, f"{folder} can't be written ({error.strerror})", command)
        else:
            yield Finding(RIGHT, description, f"{folder} can be written")


def _workers() -> Finding:
    """Check shared memory, by which worker processes of data pipelines return rows."""
    from multiprocessing import shared_memory

    try:
        block = shared_memory.SharedMemory(create=True, size=1 << 20)
        try:
            block.buf[-1] = 7  # type: ignore[index]
        finally:
            block.close()
            block.unlink()
    except OSError as error:
        why = f"{error.strerror or error}; worker processes of datasets need it"
        return Finding(WRONG, "shared memory", why, "mount -o remount,size=2G /dev/shm")
    return Finding(RIGHT, "shared memory", "worker processes of datasets can use it")


def _or_none(function: Callable[[], int]) -> int:
    try:
        return function()
    except Exception:                 # a broken driver may raise anything; its device is reported as absent
        return 0


def _short(error: Exception) -> str:
    text = str(error).splitlines()
    return (text[0] if text else type(error).__name__)[:200]
