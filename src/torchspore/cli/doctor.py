"""`torchspore doctor`: computes something small on each device, and looks at what programs may need beside it."""
from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec

RIGHT, WRONG, LEFT_OUT = "✓", "✗", "-"
EXTRAS = {
    "tensorboardX": ("TensorBoard's files of SummaryRecord (curves.html needs nothing)", "pip install 'torchspore[summary]'"),
    "onnx": ("mindspore.export to ONNX", "pip install 'torchspore[export]'"),
    "cryptography": ("encrypted checkpoints", "pip install 'torchspore[encryption]'"),
    "sentencepiece": ("SentencePieceTokenizer", "pip install 'torchspore[text]'"),
    "av": ("videos", "pip install 'torchspore[video]'"),
}
"""What the package of each optional extra is for, and how to install the extra."""


@dataclass(frozen=True)
class Finding:
    """One line: whether it is right, wrong or merely absent, what was looked at, what was found, and the command that mends it."""

    mark: str
    what: str
    found: str = ""
    mend: str = ""


def run(words: Sequence[str]) -> int:
    """The command; gives 1 where something is wrong."""
    parser = argparse.ArgumentParser(
        prog="torchspore doctor",
        description="Computes small jobs on each device and compares what they give with NumPy's results; looks at what programs may need.",
    )
    parser.parse_args(list(words))
    wrong = 0
    for finding in findings():
        wrong += finding.mark == WRONG
        print(f"{_mark(finding.mark)} {finding.what}" + (f": {finding.found}" if finding.found else ""), flush=True)
        if finding.mend:
            print(f"    {'mend it' if finding.mark == WRONG else 'to have it'}: {finding.mend}", flush=True)
    print(f"\n{wrong} things are wrong." if wrong > 1 else "\n1 thing is wrong." if wrong else "\nAll is well.")
    return 1 if wrong else 0


def _mark(mark: str) -> str:
    """The mark as this terminal can write it, in colour where it may."""
    try:
        mark.encode(sys.stdout.encoding or "ascii")
        shown = mark
    except (UnicodeEncodeError, LookupError):
        shown = {RIGHT: "ok", WRONG: "X"}.get(mark, mark)
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return shown
    return {RIGHT: "\x1b[32m", WRONG: "\x1b[31m"}.get(mark, "") + shown + "\x1b[0m"


def findings() -> Iterator[Finding]:
    """All that is looked at, one after the other."""
    yield from _torch()
    for target in ("CPU", "GPU", "Ascend"):
        yield from _device(target)
    yield _compiler()
    yield from _folders()
    yield _workers()
    for name, (use, command) in EXTRAS.items():
        yield Finding(RIGHT, name) if find_spec(name) is not None else Finding(LEFT_OUT, name, f"not installed; {use}", command)


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
    from torchspore.engine.core import device, device_facts, gpu_kinds
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
            yield Finding(WRONG, f"{name}: {job}", _short(error), _mend(target, error))
        else:
            yield Finding(RIGHT, f"{name}: {job}", "the result is right")


def _absent(target: str) -> Finding:
    """A device that is not there; one whose driver is there and that torch can't use is wrong."""
    from torchspore.engine.core import device_diagnosis

    wrong = device_diagnosis.broken(target)
    if wrong is not None:
        return Finding(WRONG, target, wrong.why, wrong.command)
    return Finding(LEFT_OUT, target, "this machine has none")


def _mend(target: str, error: Exception) -> str:
    from torchspore.mindspore.installation import WrongResult

    if isinstance(error, WrongResult):
        return f"{sys.executable} -m pip install --force-reinstall torch"
    return "torchspore run --device CPU train.py" if target != "CPU" else "torchspore env"


def _compiler() -> Finding:
    """Graph levels O1 and O2, and graph kernels, compile C++."""
    named = os.environ.get("CXX")
    found = shutil.which(named) if named else next((path for name in ("g++", "clang++", "c++") if (path := shutil.which(name))), None)
    if found:
        return Finding(RIGHT, "C++ compiler", found)
    why = f"CXX={named} is not there" if named else "none; jit_level O1 and O2 run as O0"
    return Finding(WRONG if named else LEFT_OUT, "C++ compiler", why, "unset CXX" if named else "apt-get install g++")


def _folders() -> Iterator[Finding]:
    for what, folder, command in (
        ("folder for temporary files", tempfile.gettempdir(), "export TMPDIR=$HOME/tmp"), ("this folder", os.getcwd(), "cd ~"),
    ):
        try:
            with tempfile.TemporaryFile(dir=folder) as file:
                file.write(b"0" * 4096)
        except OSError as error:
            yield Finding(WRONG, what, f"{folder} can't be written ({error.strerror})", command)
        else:
            yield Finding(RIGHT, what, f"{folder} can be written")


def _workers() -> Finding:
    """Worker processes of data pipelines hand rows over by shared memory."""
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
    except Exception:                 # a broken driver raises whatever it likes; its device is told as absent
        return 0


def _short(error: Exception) -> str:
    text = str(error).splitlines()
    return (text[0] if text else type(error).__name__)[:200]
