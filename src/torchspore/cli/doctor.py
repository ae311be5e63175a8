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
from torchspore.translations import english, translatable, translate

RIGHT, WRONG, ABSENT = "✓", "✗", "-"
EXTRAS = {
    "shtab": (translatable("shell completion (torchspore completion)"), "pip install 'torchspore[completion]'"),
    "tensorboardX": (translatable("TensorBoard's files of SummaryRecord (curves.html needs nothing)"), "pip install 'torchspore[summary]'"),
    "onnx": (translatable("mindspore.export to ONNX"), "pip install 'torchspore[export]'"),
    "cryptography": (translatable("encrypted checkpoints"), "pip install 'torchspore[encryption]'"),
    "grpc": (translatable("parameter servers"), "pip install 'torchspore[server]'"),
    "sentencepiece": ("SentencePieceTokenizer", "pip install 'torchspore[text]'"),
    "av": (translatable("videos"), "pip install 'torchspore[video]'"),
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
    command.add_argument("--build", action="store_true", help="first build the C++ short paths of operators for this Python and torch")
    return command


@returns_exit_code
def run(words: Sequence[str]) -> int:
    """Run the command; return 1 if something is wrong."""
    options = parser().parse_args(list(words))
    if options.build:
        from torchspore.engine.native import operators

        operators.build()
    if options.json:
        with english():
            listed = list(findings())
        print(json.dumps([asdict(finding) for finding in listed], ensure_ascii=False, indent=2))
        return 1 if any(finding.mark == WRONG for finding in listed) else 0
    wrong = 0
    for finding in findings():
        wrong += finding.mark == WRONG
        line = translate("{check}: {result}") if finding.result else "{check}"
        print(f"{_mark(finding.mark)} {line.format(check=finding.description, result=finding.result)}", flush=True)
        if finding.repair:
            line = translate("to fix it: {command}") if finding.mark == WRONG else translate("install it with: {command}")
            print(f"    {line.format(command=finding.repair)}", flush=True)
    print(f"\n{_summary(wrong)}")
    return 1 if wrong else 0


def _summary(wrong: int) -> str:
    if wrong > 1:
        return translate("{count} problems found.").format(count=wrong)
    return translate("1 problem found.") if wrong else translate("No problems found.")


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
    yield _short_paths()
    yield from _folders()
    yield _workers()
    for name, (use, command) in EXTRAS.items():
        is_installed = find_spec(name) is not None
        absent = translate("not installed; {use}").format(use=translate(use))
        yield Finding(RIGHT, name) if is_installed else Finding(ABSENT, name, absent, command)


def _torch() -> Iterator[Finding]:
    try:
        import torch
    except Exception as error:
        yield Finding(WRONG, "torch", _short(error), f"{sys.executable} -m pip install --upgrade 'torch>=2.11'")
        return
    numbers = tuple(int(part) for part in torch.__version__.partition("+")[0].split(".")[:2] if part.isdigit())
    if numbers < (2, 11):
        result = translate("{version} is too old").format(version=torch.__version__)
        yield Finding(WRONG, "torch", result, f"{sys.executable} -m pip install --upgrade 'torch>=2.11'")
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
    name = device_facts.name(target, 0) if target != "CPU" else translate("CPU ({count} cores)").format(count=os.cpu_count())
    if target == "GPU":
        name += f" ({gpu_kinds.NAMES[gpu_kinds.kind()]})"
    try:
        context.set_context(device_target=target)
    except Exception as error:
        yield Finding(WRONG, target, _short(error), "unset TORCHSPORE_DEVICE")
        return
    for job, compute in installation.JOBS.items():
        check = translate("{check}: {result}").format(check=name, result=translate(job))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                compute()
        except Exception as error:
            yield Finding(WRONG, check, _short(error), _repair_command(target, error))
        else:
            yield Finding(RIGHT, check, translate("the result is correct"))


def _absent(target: str) -> Finding:
    """Report a missing device; a device with a driver that torch can't use is wrong."""
    from torchspore.engine.devices import device_diagnosis

    wrong = device_diagnosis.broken(target)
    if wrong is not None:
        return Finding(WRONG, target, wrong.why, wrong.command)
    return Finding(ABSENT, target, translate("this machine has none"))


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
    description = translate("C++ compiler")
    if path:
        return Finding(RIGHT, description, path)
    why = translate("CXX={path} does not exist").format(path=named) if named else translate("none; jit_level O1 and O2 run as O0")
    return Finding(WRONG if named else ABSENT, description, why, "unset CXX" if named else "apt-get install g++")


def _short_paths() -> Finding:
    """Check for the C++ short paths of small operators; without them operators are slower, with the same results."""
    from torchspore.engine.native import operators

    description = translate("C++ short paths of operators")
    why, why_not_bundled = operators.missing(), operators.why_not_bundled()
    if operators.is_bundled():
        return Finding(RIGHT, description, translate("from the wheel, for this Python and torch"))
    if not why:
        return Finding(RIGHT, description, translate("built for this Python and torch"))
    result = translate("none; {reason}").format(reason=translate(why))
    if why_not_bundled:
        result = translate("none; {wheel}; {reason}").format(wheel=why_not_bundled, reason=translate(why))
    is_buildable = why in (operators.NOT_BUILT, operators.NOT_LOADED)
    return Finding(ABSENT, description, result, "torchspore doctor --build" if is_buildable else "")


def _folders() -> Iterator[Finding]:
    for description, folder, command in (
        (translate("folder for temporary files"), tempfile.gettempdir(), "export TMPDIR=$HOME/tmp"),
        (translate("this folder"), os.getcwd(), "cd ~"),
    ):
        try:
            with tempfile.TemporaryFile(dir=folder) as file:
                file.write(b"0" * 4096)
        except OSError as error:
            result = translate("{folder} can't be written ({reason})").format(folder=folder, reason=error.strerror)
            yield Finding(WRONG, description, result, command)
        else:
            yield Finding(RIGHT, description, translate("{folder} can be written").format(folder=folder))


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
        why = translate("{reason}; worker processes of datasets need it").format(reason=error.strerror or error)
        return Finding(WRONG, translate("shared memory"), why, "mount -o remount,size=2G /dev/shm")
    return Finding(RIGHT, translate("shared memory"), translate("worker processes of datasets can use it"))


def _or_none(function: Callable[[], int]) -> int:
    try:
        return function()
    except Exception:                 # a broken driver may raise anything; its device is reported as absent
        return 0


def _short(error: Exception) -> str:
    text = str(error).splitlines()
    return (text[0] if text else type(error).__name__)[:200]
