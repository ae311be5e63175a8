"""Checkpoints that are damaged or made to do harm, threads that write, programs that are killed while they do."""
from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import nn
from support import full_disk, memory_use, processes

from torchspore.mindspore.train.serialization import wait_for_writers


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Dense(2, 3)
        self.bn = nn.BatchNorm1d(3)


def saved(folder: Path) -> bytes:
    ms.save_checkpoint(Net(), str(folder / "net.ckpt"))
    return (folder / "net.ckpt").read_bytes()


def loaded(folder: Path, content: bytes, format: str = "ckpt") -> dict[str, object]:
    """What a file of these bytes holds; its errors name it."""
    path = folder / f"made.{format}"
    path.write_bytes(content)
    started = time.monotonic()
    try:
        return ms.load_checkpoint(str(path), format=format)
    except ValueError as error:
        assert str(path) in str(error) and len(str(error).splitlines()) <= 12 and len(str(error)) < 2000
        raise
    finally:
        assert time.monotonic() - started < 5


def test_no_flipped_bit_is_loaded(tmp_path: Path) -> None:
    content_before, chance = saved(tmp_path), random.Random(0)
    for _ in range(300):
        content = bytearray(content_before)
        content[chance.randrange(len(content) - 17)] ^= 1 << chance.randrange(8)      # before the checksum's own mark
        with pytest.raises(ValueError, match="checksum"):
            loaded(tmp_path, bytes(content))


def field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2]) + number_of(len(content)) + content


def number_of(value: int) -> bytes:
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def parameter(name: bytes = b"w", dims: bytes = b"\x08\x01", kind: bytes = b"Float32", content: bytes = bytes(4)) -> bytes:
    return field(1, field(1, name) + field(2, dims + field(2, kind) + field(3, content)))


@pytest.mark.parametrize("content", [
    b"\x08\x01", b"\x12\x01a", b"\x0a\x00", parameter(b"\xff\xfe"), parameter(kind=b"\xff"), parameter(kind=b"Nothing"),
    parameter(dims=b"\x08" + number_of((1 << 64) - 1)), parameter(dims=b"\x08" + number_of(1 << 62)), parameter(dims=b"\x08\x01" * 200_000),
    parameter(dims=field(1, b"\xff\xff\xff\xff\x7f" * 100_000)), parameter(dims=b"\x08\x00\x08" + number_of(1 << 62), content=b""),
    parameter(dims=b"\x08" + number_of(1 << 31) + b"\x08" + number_of(1 << 31) + b"\x08\x04", content=b""),
    parameter(dims=b"\x08\x00", kind=b"str", content=b"\xff" * 4), parameter(dims=b"\x08\x00", kind=b"str", content=b"abc"),
    parameter() + parameter(dims=b"\x08\x02", content=bytes(8)), parameter() + parameter(), parameter(name=b"n" * 100_000, content=b""),
], ids=lambda content: content[:24].hex())
def test_bytes_that_are_no_checkpoint_are_named(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(ValueError, match="a complete checkpoint file of MindSpore"):
        loaded(tmp_path, content)


def test_noise_is_loaded_or_named(tmp_path: Path) -> None:
    content_before, chance = saved(tmp_path)[:-17], random.Random(1)
    for _ in range(400):
        content = bytearray(content_before)
        for _ in range(chance.randrange(1, 6)):
            offset = chance.randrange(len(content))
            content[offset:offset + chance.randrange(3)] = chance.randbytes(chance.randrange(4))
        try:
            loaded(tmp_path, bytes(content))
        except ValueError:
            pass


def tensors(head: object, values: bytes = bytes(8)) -> bytes:
    text = json.dumps(head).encode() if not isinstance(head, bytes) else head
    return len(text).to_bytes(8, "little") + text + values


def about(shape: object, start: object = 0, end: object = 8, dtype: object = "F32") -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


@pytest.mark.parametrize("content", [
    tensors({"a": about([2]), "b": about([2])}), tensors({"a": about([2]), "b": about([1], 4, 8)}), tensors({"a": about([-2])}),
    tensors({"a": about([2**32, 2**32], 0, 0)}), tensors({"a": about([1] * 100_000)}), tensors({"a": about([2.0])}),
    tensors({"a": about([2], -8, 0)}), tensors({"a": about([2], 8, 0)}), tensors({"a": about([2], 0, 10**30)}), tensors({"a": about([2], 0, 8, "X")}),  # noqa: E501
    tensors({"a": about([2], 0, 8, ["F32"])}), tensors({"a": []}), tensors({"a": 3}), tensors([1]), tensors(b"[" * 100_000), tensors(b"\xff\xff"),  # noqa: E501
    tensors(b"{"), (1 << 63).to_bytes(8, "little") + b"{}", b"", b"\x00" * 8,
], ids=range(20))
def test_safetensors_that_are_none_are_named(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(ValueError, match="a complete safetensors file"):
        loaded(tmp_path, content, "safetensors")


def test_a_small_file_takes_little_memory(tmp_path: Path) -> None:
    """Two thousand tensors over the same megabyte would be two gigabytes."""
    with memory_use.rise() as rise, pytest.raises(ValueError, match="invalid offset"):
        loaded(tmp_path, tensors({f"t{n}": about([1 << 20], 0, 1 << 20, "U8") for n in range(2000)}, bytes(1 << 20)), "safetensors")
    assert rise.kib < 200_000


def test_a_pipe_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.ckpt")
    with pytest.raises(ValueError, match="a plain file, which .*pipe.ckpt is not"):  # noqa: RUF043
        ms.load_checkpoint(str(tmp_path / "pipe.ckpt"))


def test_a_file_without_the_nets_names_is_reported(tmp_path: Path) -> None:
    saved(tmp_path)
    path = str(tmp_path / "net.ckpt")
    with pytest.warns(UserWarning, match="none of the net's 2 parameters are in the file; '0.weight', '0.bias' keep their values") as caught:  # noqa: E501
        ms.load_checkpoint(path, nn.SequentialCell(nn.Conv2d(1, 1, 3, has_bias=True)))
    assert caught[0].filename == __file__


def test_a_file_that_ends_between_two_parameters_is_reported(tmp_path: Path) -> None:
    content, path = saved(tmp_path)[2:-17], tmp_path / "cut.ckpt"        # as 2.10 writes it, without what tells that it is complete
    refused_count = 0
    for length in range(1, len(content)):
        path.write_bytes(content[:length])
        try:
            ms.load_checkpoint(str(path))
        except ValueError:
            continue
        if length < len(content):
            with pytest.warns(UserWarning, match=rf"{refused_count + 1} of the net's 6 parameters are in the file.*\n\nhint: the file may be truncated"):  # noqa: E501
                ms.load_checkpoint(str(path), Net())
            refused_count += 1
    assert refused_count == 5


def test_a_checksum_that_is_not_there_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "old.ckpt"
    path.write_bytes(saved(tmp_path)[2:-17])
    with pytest.warns(UserWarning, match="the file has no checksum"):
        ms.load_checkpoint(str(path), crc_check=True)


def test_two_writers_of_one_name_leave_the_later_one_complete(tmp_path: Path) -> None:
    for round in range(10):
        for value in range(4):
            ms.save_checkpoint({"w": ms.Tensor(np.full(100_000, value + round, np.float32))}, str(tmp_path / "w.ckpt"), async_save=True)
        array = ms.load_checkpoint(str(tmp_path / "w.ckpt"))["w"].asnumpy()
        assert (array == round + 3).all() and os.listdir(tmp_path) == ["w.ckpt"]


def test_no_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("keep me")
    (tmp_path / "w.ckpt").symlink_to(tmp_path / "other")
    ms.save_checkpoint({"w": ms.Tensor([1.0])}, str(tmp_path / "w.ckpt"), async_save=True)
    wait_for_writers()
    assert (tmp_path / "other").read_text() == "keep me" and not (tmp_path / "w.ckpt").is_symlink()


def test_what_a_writer_raises_reaches_the_next_call(tmp_path: Path) -> None:
    with full_disk.takes(10_000):
        ms.save_checkpoint({"w": ms.Tensor(np.zeros(100_000, np.float32))}, str(tmp_path / "w.ckpt"), async_save=True)
        with pytest.raises(OSError, match="too large"):
            ms.save_checkpoint({"w": ms.Tensor([1.0])}, str(tmp_path / "next.ckpt"))
        ms.save_checkpoint({"w": ms.Tensor([1.0])}, str(tmp_path / "next.ckpt"))
    assert os.listdir(tmp_path) == ["next.ckpt"]


FULL = """
import atexit, resource, signal
import numpy as np
import mindspore as ms
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, resource.RLIM_INFINITY))
ms.save_checkpoint({"w": ms.Tensor(np.zeros(100_000, np.float32))}, "w.ckpt", async_save=True)
print("the last line")
"""


def test_a_program_that_loses_a_checkpoint_does_not_end_well(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(FULL)
    ran = processes.torchspore("run", "main.py", cwd=tmp_path)
    assert ran.code == 1 and ran.out == "the last line\n"
    assert "save_checkpoint('w.ckpt', async_save=True) failed: OSError: [Errno 27] File too large" in ran.err
    assert os.listdir(tmp_path) == ["main.py"]


KILLED = """
import sys
import numpy as np
import torchspore; torchspore.install()
import mindspore as ms
value = {"w": ms.Tensor(np.zeros(2_000_000, np.float32))}
print("go", flush=True)
for step in range(10_000):
    ms.save_checkpoint(value, f"net-{step}.ckpt", async_save=step % 2 == 0)
"""


def test_what_killed_programs_leave_goes(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(KILLED)
    for attempt in range(12):
        with subprocess.Popen([sys.executable, "main.py"], cwd=tmp_path, stdout=subprocess.PIPE) as program:
            assert program.stdout is not None
            program.stdout.readline()
            time.sleep(0.05 + attempt * 0.007)
            program.kill()
        for path in tmp_path.glob("*.ckpt"):
            path.unlink()
        if any(name.endswith(".tmp") for name in os.listdir(tmp_path)):
            break
    else:
        pytest.skip("no kill hit a write")
    mine = tmp_path / ".note.ckpt.draft.tmp"
    mine.write_text("the user's own")
    ms.save_checkpoint({"w": ms.Tensor([1.0])}, str(tmp_path / "another.ckpt"))
    assert sorted(os.listdir(tmp_path)) == sorted([mine.name, "another.ckpt", "main.py"])


def test_the_old_file_stays_until_the_new_one_is_complete(tmp_path: Path) -> None:
    from mindspore.train import CheckpointConfig, Model, ModelCheckpoint

    seen: list[bool] = []

    class Look(ms.train.Callback):
        def step_end(self, run_context: object) -> None:
            seen.append(bool(list(tmp_path.glob("*.ckpt"))) or not seen)

    net = nn.Dense(300, 300)
    data = ms.dataset.NumpySlicesDataset({"x": np.ones((12, 300), np.float32), "y": np.ones((12, 300), np.float32)}, shuffle=False).batch(2)
    config = CheckpointConfig(save_checkpoint_steps=1, keep_checkpoint_max=1, async_save=True)
    model = Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.01))
    model.train(1, data, [ModelCheckpoint("net", str(tmp_path), config), Look()], dataset_sink_mode=False)
    assert all(seen[1:]) and [path.name for path in tmp_path.glob("*.ckpt")] == ["net-1_6.ckpt"]


@pytest.mark.parametrize("secret", [{}, *(pytest.param({"enc_key": b"0123456789abcdef", "enc_mode": mode}, id=f"secret{number}",
                                                      marks=pytest.mark.needs("cryptography"))
                                         for number, mode in enumerate(("AES-GCM", "AES-CBC"), 1))])
def test_a_file_that_is_cut_anywhere_is_refused(tmp_path: Path, secret: dict[str, Any]) -> None:
    ms.save_checkpoint(nn.SequentialCell(nn.Dense(2, 3), nn.Dense(3, 2)), str(tmp_path / "net.ckpt"), **secret)
    content = (tmp_path / "net.ckpt").read_bytes()
    options = {key.replace("enc", "dec"): value for key, value in secret.items()}
    assert len(ms.load_checkpoint(str(tmp_path / "net.ckpt"), **options)) == 4
    for length in range(1, len(content)):
        path = tmp_path / f"{length}.ckpt"
        path.write_bytes(content[:length])
        with pytest.raises(ValueError, match=re.escape(str(path))):
            ms.load_checkpoint(str(path), **options)


def test_a_file_of_mindspore_has_no_field_in_front(tmp_path: Path) -> None:
    ms.save_checkpoint(nn.Dense(2, 3), str(tmp_path / "net.ckpt"))
    content = (tmp_path / "net.ckpt").read_bytes()
    assert content[:2] == b"\x70\x01"
    (tmp_path / "plain.ckpt").write_bytes(content[2:-17])          # as 2.10 writes it, without the checksum
    assert sorted(ms.load_checkpoint(str(tmp_path / "plain.ckpt"))) == ["bias", "weight"]
