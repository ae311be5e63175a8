"""`print_file_path`: the file that ops.Print writes, `parse_print`, and what becomes of damaged ones."""
from __future__ import annotations

import inspect
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops
from support import processes

from torchspore.engine.execution import print_file, printing


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "deep" / "print.pb"
    printing.select("")
    ms.set_context(mode=ms.PYNATIVE_MODE)


class Prints(nn.Cell):
    def construct(self, x: Any) -> Any:
        ops.print_("x", x, 3, [x, 2.5, True])
        return ops.InsertGradientOf(gradient)(x * x)


def gradient(value: Any) -> Any:
    ops.print_("gradient", value)
    return value


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def test_prints_go_to_the_file_and_parse_print_reads_them(mode: int, file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    ms.set_context(mode=mode, print_file_path=str(file))
    assert ms.get_context("print_file_path") == str(file) and not file.parent.exists()
    values = np.array([[1.5, -2.0]], np.float32)
    ms.grad(Prints())(Tensor(values))
    assert capfd.readouterr().out == ""
    result = ms.parse_print(str(file))             # while it is written: nothing waits in a buffer
    assert [value if isinstance(value, str) else (str(value.dtype), value.asnumpy().tolist()) for value in result] == [
        "x", ("Float32", values.tolist()), ("Int64", 3), ("Float32", values.tolist()), ("Float32", 2.5), ("Bool", True),
        "gradient", ("Float32", [[1.0, 1.0]]),
    ]
    assert file.stat().st_mode & 0o777 == 0o600
    printing.select("")
    assert file.stat().st_mode & 0o777 == 0o400
    ms.set_context(print_file_path=str(file))       # it exists: another name is taken, and answered
    path = ms.get_context("print_file_path")
    assert path != str(file) and path.startswith(f"{file}.") and abs(int(path.rpartition(".")[2]) - time.time()) < 60


@pytest.mark.parametrize("kind", [name for name in print_file.TYPES if not name.startswith("Complex")])
def test_every_dtype_and_shape_comes_back(kind: str, file: Path) -> None:
    tensors = [Tensor(np.ones(shape), getattr(ms, kind.lower() if kind != "Bool" else "bool_")) for shape in ((), (0, 3), (2, 3))]
    ms.set_context(print_file_path=str(file))
    ops.print_(*tensors)
    read = ms.parse_print(str(file))
    assert [(str(shown.dtype), shown.shape, shown.astype(ms.float32).asnumpy().sum()) for shown in read] == [
        (kind, array.shape, array.astype(ms.float32).asnumpy().sum()) for array in tensors]


ENDINGS = {"raises": "raise ValueError('over')", "is killed": "os.kill(os.getpid(), signal.SIGKILL)",
           "is ended": "os.kill(os.getpid(), signal.SIGTERM); time.sleep(9)", "crashes": "os.abort()", "ends": "pass"}
PROGRAM = """
import os, signal, sys, time
import mindspore as ms
from mindspore import Tensor, ops
ms.set_context(print_file_path="print.pb")
ops.print_("one", Tensor([1.0, 2.0]))
if len(sys.argv) == 2:
    for ending, statement in {endings!r}.items():
        if ending == sys.argv[1]:
            exec(statement)
"""


def test_the_file_is_complete_however_the_program_ends(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM.format(endings=ENDINGS))
    started = {}
    for ending in ENDINGS:
        folder = tmp_path / ending
        folder.mkdir()
        started[ending] = subprocess.Popen(
            [sys.executable, "-m", "torchspore", "run", "../program.py", ending], cwd=folder, env=processes.environment(),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for ending, process in started.items():
        code = process.wait(timeout=100)
        assert (code == 0) is (ending == "ends"), ending
        if ending == "is ended":
            assert code == -signal.SIGTERM
        file = tmp_path / ending / "print.pb"
        result = ms.parse_print(str(file))
        assert result[0] == "one" and result[1].asnumpy().tolist() == [1.0, 2.0] and len(result) == 2
        assert (file.stat().st_mode & 0o777 == 0o400) is (ending in ("raises", "ends")), ending


def test_numbers_and_texts_that_the_file_has_no_form_for(file: Path) -> None:
    ms.set_context(print_file_path=str(file))
    ops.print_(2**70, "a\ud800b\0")
    printing.select("")
    assert ms.parse_print(str(file)) == [str(2**70), "a\\ud800b\0"]


def test_a_full_disk_is_reported_once_and_the_file_stays_readable(
        file: Path, user_texts: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    ms.set_context(print_file_path=str(file))
    ops.print_("before")
    write, room = os.write, [10]

    def full(handle: int, contents: Any) -> int:
        if not room[0]:
            raise OSError(28, "No space left on device")
        done = write(handle, bytes(contents)[: room[0]])
        room[0] -= done
        return done

    monkeypatch.setattr(print_file.os, "write", full)
    for _ in range(3):
        ops.print_("what no longer fits", Tensor(np.ones(100, np.float32)))
    monkeypatch.undo()
    assert len(user_texts) == 1 and "No space left on device" in user_texts[0] and str(file) in user_texts[0] and __file__ in user_texts[0]
    assert ms.parse_print(str(file)) == ["before"]


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def test_a_file_that_cannot_be_created_is_reported_once_and_the_screen_is_used(
    mode: int, tmp_path: Path, user_texts: list[str], capfd: pytest.CaptureFixture[str], file: Path,
) -> None:
    (tmp_path / "deep").write_text("no folder")
    ms.set_context(mode=mode, print_file_path=str(file))
    for _ in range(2):
        Prints()(Tensor([1.0]))
    assert len(user_texts) == 1 and f"{file} can't be created (" in user_texts[0] and "ops.Print writes to the screen" in user_texts[0]
    assert user_texts[0].startswith(f"{__file__}:{inspect.getsourcelines(Prints.construct)[1] + 1}: ")
    assert capfd.readouterr().out.splitlines()[0] == "x"


def test_two_gigabytes_in_one_call_are_refused(file: Path) -> None:
    printing.select(str(file), most=1000)
    ops.print_("little", Tensor(np.ones(200, np.float32)))
    with pytest.raises(ValueError) as error:
        ops.print_(Tensor(np.ones(300, np.float32)))
    assert str(error.value).endswith(
        "print_(input_x[0]: Float32[300]): expected less than 2 GB in one call, got 0.0 GB.\n\nhint: print a part of it.")


def test_processes_with_one_name_write_separate_files(tmp_path: Path) -> None:
    files = [print_file.PrintFile(str(tmp_path / "print.pb")) for _ in range(3)]
    for number, writer in enumerate(files):
        assert writer.is_ready(None)
        writer.write([("text", str(number))], None)
    assert len({entry.path for entry in files}) == 3
    assert [ms.parse_print(str(entry.path)) for entry in files] == [["0"], ["1"], ["2"]]
    for writer in files:
        writer.close()


def file_content(file: Path) -> bytes:
    opened = print_file.PrintFile(str(file))
    assert opened.is_ready(None)
    opened.write([("text", "first"), ("number", 7), ("text", "last")], None)
    opened.close()
    return file.read_bytes()


def test_damaged_files_are_named_and_what_can_be_read_is_read(tmp_path: Path) -> None:
    contents = file_content(tmp_path / "whole.pb")
    damaged = tmp_path / "damaged.pb"

    def parsed(data: bytes) -> list[Any]:
        damaged.write_bytes(data)
        return ms.parse_print(str(damaged))

    with pytest.warns(UserWarning, match=r"damaged\.pb.*has 6 bytes, of which 3 are there; the readable part is returned"):
        assert [str(entry) for entry in parsed(contents[:-3])] == ["first", "7"]
    with pytest.warns(UserWarning, match="at byte 38 no value begins"):
        assert parsed(b"\x0a\x07\x0a\x05first" + contents[9:] + b"junk")[0] == "first"
    for data, kind, text in (
        (b"", ValueError, "the file is empty"),
        (b"not protobuf", ValueError, "failed to read the print file"),
        (b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", ValueError, "of which 0 are there"),          # 2 ** 63 bytes
        (b"\x0a" + b"\xff" * 20, ValueError, "no value begins"),
        (tensor([2, 3], b"Float32", b"1234"), RuntimeError, "of shape [2, 3] in Float32 has 4 bytes"),
        (tensor([2**40, 2**40], b"Float32", b"1234"), RuntimeError, "has 4 bytes"),
        (tensor([1], b"Object", b"cos\nsystem\n(S'touch hit'\ntR."), RuntimeError, "unknown type 'Object'"),
    ):
        with pytest.raises(kind) as error:
            parsed(data)
        assert text in str(error.value) and "damaged.pb" in str(error.value)
    with pytest.raises(FileNotFoundError):
        ms.parse_print(str(tmp_path / "missing.pb"))
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(OSError, match="expected a plain file"):
        ms.parse_print(str(tmp_path / "fifo"))


def tensor(dims: list[int], kind: bytes, content: bytes) -> bytes:
    value = print_file._messages()["Value"]()
    value.tensor.dims.extend(dims)
    value.tensor.tensor_type, value.tensor.tensor_content = kind.decode(), content
    entry = value.SerializeToString()
    return b"\x0a" + bytes([len(entry)]) + entry


ORACLE = """
import sys
from mindspore.train import print_pb2
import numpy as np
made = print_pb2.Print()
made.ParseFromString(open(sys.argv[1], "rb").read())
print([v.desc if v.HasField("desc") else (v.tensor.tensor_type, list(v.tensor.dims),
      np.frombuffer(v.tensor.tensor_content, getattr(np, v.tensor.tensor_type.lower())).tolist()) for v in made.value])
theirs = print_pb2.Print()
theirs.value.add().desc = "theirs"
tensor = theirs.value.add().tensor
tensor.dims.extend([2]); tensor.tensor_type = "Int32"; tensor.tensor_content = np.array([5, 6], np.int32).tobytes()
open(sys.argv[2], "wb").write(theirs.SerializeToString())
"""


@pytest.mark.slow
def test_real_mindspore_reads_our_file_and_we_read_its(file: Path, tmp_path: Path) -> None:
    python = os.environ.get("ORACLE") or shutil.which("python", path="/work/oracle/bin")
    if not python:
        pytest.skip("no MindSpore here: ORACLE names its Python")
    ms.set_context(print_file_path=str(file))
    ops.print_("ours", Tensor([[1.0, 2.0]]), 3)
    completed = subprocess.run([python, "-c", ORACLE, str(file), str(tmp_path / "theirs.pb")], capture_output=True, text=True, timeout=100)
    assert completed.stdout.splitlines()[-1] == "['ours', ('Float32', [1, 2], [1.0, 2.0]), ('Int64', [], [3])]", completed.stderr
    text, numbers = ms.parse_print(str(tmp_path / "theirs.pb"))
    assert text == "theirs" and numbers.asnumpy().tolist() == [5, 6] and numbers.dtype == ms.int32
