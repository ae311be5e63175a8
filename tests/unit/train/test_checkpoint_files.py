"""Checkpoint files: damage is named and nothing is loaded half, files are whole or not there, every type comes back."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import mindspore as ms
import numpy as np
import pytest
from mindspore import nn
from mindspore.common.initializer import Constant

from torchspore.base import checkpoint_file


class Net(nn.Cell):
    def __init__(self, size: int = 3) -> None:
        super().__init__()
        self.fc = nn.Dense(2, size)
        self.bn = nn.BatchNorm1d(size)


def saved(folder: Path, **keywords: object) -> Path:
    ms.save_checkpoint(Net(), str(folder / "net.ckpt"), **keywords)
    return folder / "net.ckpt"


def test_round_trip_of_every_type(tmp_path: Path) -> None:
    types = [ms.bool_, ms.int8, ms.int16, ms.int32, ms.int64, ms.uint8, ms.uint16, ms.uint32, ms.uint64, ms.float16, ms.float32, ms.float64]
    values = {str(dtype): ms.Tensor(np.array([[0, 1, 2]]), dtype) for dtype in [*types, ms.bfloat16, ms.complex64]}
    values["single"] = ms.Tensor(2.5)
    values["empty"] = ms.Tensor(np.zeros((0, 3), np.float32))
    for format in ("ckpt", "safetensors"):
        path = tmp_path / f"all.{format}"
        ms.save_checkpoint(values, str(path), format=format)
        loaded = ms.load_checkpoint(str(path), format=format)
        assert set(loaded) == set(values)
        for name, value in values.items():
            assert loaded[name].dtype == value.dtype and loaded[name].shape == value.shape and loaded[name].name == name
            wide = ms.complex64 if "Complex" in name else ms.float32
            assert np.array_equal(loaded[name].astype(wide).asnumpy(), value.astype(wide).asnumpy()), name


def test_large_parameters_come_in_pieces(tmp_path: Path) -> None:
    value = np.arange(100, dtype=np.float32).reshape(10, 10)
    checkpoint_file.write(tmp_path / "w.ckpt", iter([checkpoint_file.Entry("w", "Float32", (10, 10), value)]), piece=64)
    content = (tmp_path / "w.ckpt").read_bytes()
    assert content.count(b"\x0a\x01w") == 7  # 400 bytes in pieces of 64, each under the same name
    assert np.array_equal(ms.load_checkpoint(str(tmp_path / "w.ckpt"))["w"].asnumpy(), value)


def test_appended_values(tmp_path: Path) -> None:
    path = saved(tmp_path, append_dict={"epoch": 3, "rate": 0.1, "done": True, "note": "läuft", "state": ms.Tensor([1, 2])})
    loaded = ms.load_checkpoint(str(path))
    assert [str(loaded[name].dtype) for name in ("epoch", "rate", "done")] == ["Int64", "Float32", "Bool"]
    assert loaded["note"] == "läuft" and loaded["epoch"].shape == ()


def test_a_file_cut_short_anywhere_is_refused(tmp_path: Path) -> None:
    content = saved(tmp_path).read_bytes()
    cut = tmp_path / "cut.ckpt"
    net = Net()
    before = {name: parameter.asnumpy().copy() for name, parameter in net.parameters_and_names()}
    refused = 0
    for length in range(1, len(content)):
        cut.write_bytes(content[:length])
        try:
            ms.load_checkpoint(str(cut), net)
        except ValueError as error:
            refused += 1
            assert str(cut) in str(error)
        else:
            continue
        assert all(np.array_equal(parameter.asnumpy(), before[name]) for name, parameter in net.parameters_and_names())
        break
    assert refused == 1
    assert not any(_loads(cut, content[:length]) for length in range(1, len(content)))


def _loads(path: Path, content: bytes) -> bool:
    path.write_bytes(content)
    try:
        ms.load_checkpoint(str(path))
    except ValueError:
        return False
    return True


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"hello world" * 10, "field 13 where a file has only parameters"),
        (b"\x0a\xff\xff\xff\xff\x0f", "it is truncated: 4294967295 bytes are expected at byte 0, 0 are there"),
        (b"\x0a\x03\x0a\x01w", "a parameter without a name or a value at byte 2"),
        (b"\x0a\x0c\x0a\x01w\x12\x07\x12\x05Quack", "the parameter 'w' has the type 'Quack', which MindSpore does not have"),
        (
            b"\x0a\x12\x0a\x01w\x12\x0d\x08\x02\x12\x07Float32\x1a\x00",
            "the parameter 'w' of shape [2] and type Float32 has 0 bytes, not 8",
        ),
        (b"\x0b\x0c", "no field of a checkpoint at byte 0"),
        (b"\xff" * 20, "it ends within a number at byte 10"),
    ],
)
def test_foreign_files_are_named(tmp_path: Path, content: bytes, text: str) -> None:
    path = tmp_path / "x.ckpt"
    path.write_bytes(content)
    with pytest.raises(ValueError) as caught:
        ms.load_checkpoint(str(path))
    hint = "hint: save it again, or copy it again from its source."
    assert str(caught.value) == f"{path}: {text}: expected a complete checkpoint file of MindSpore.\n\n{hint}"


def test_checksum(tmp_path: Path) -> None:
    path = saved(tmp_path, crc_check=True)
    assert len(ms.load_checkpoint(str(path), crc_check=True)) == 6
    content = bytearray(path.read_bytes())
    content[50] ^= 1
    os.chmod(path, 0o600)
    path.write_bytes(content)
    with pytest.raises(ValueError, match="its checksum does not fit its content"):
        ms.load_checkpoint(str(path))


def test_safetensors_cut_short(tmp_path: Path) -> None:
    ms.save_checkpoint({"w": ms.Tensor([1.0, 2.0])}, str(tmp_path / "w"), format="safetensors")
    path = tmp_path / "w.safetensors"
    content_before = path.read_bytes()
    for content in (content_before[:-1], content_before[:20], b"", b"hello world, this is no file"):
        os.chmod(path, 0o600)
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"w\.safetensors"):
            ms.load_checkpoint(str(path), format="safetensors")


def test_a_flipped_bit_of_safetensors_is_detected(tmp_path: Path) -> None:
    values = {"b": np.arange(6, dtype=np.float32).reshape(2, 3), "a": np.arange(5)}
    tensors = {name: ms.Tensor(value) for name, value in values.items()} | {"c": ms.Tensor([1.5, 2.5], ms.bfloat16), "d": ms.Tensor(True)}
    ms.save_checkpoint(tensors, str(tmp_path / "w"), format="safetensors")
    path = tmp_path / "w.safetensors"
    content = path.read_bytes()
    checkpoint = ms.load_checkpoint(str(path), format="safetensors", crc_check=True)
    assert all(np.array_equal(checkpoint[name].asnumpy(), value) for name, value in values.items())
    os.chmod(path, 0o600)
    for offset in (1, 20, 40):
        damaged = bytearray(content)
        damaged[-offset] ^= 4
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"w\.safetensors: the checksum"):
            ms.load_checkpoint(str(path), format="safetensors")


def test_files_are_read_only_and_replaced_atomically(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o400
    before = path.read_bytes()

    def breaks(descriptor: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", breaks)
    with pytest.raises(KeyboardInterrupt):
        saved(tmp_path)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["net.ckpt"]
    monkeypatch.undo()
    saved(tmp_path)
    assert path.read_bytes() != before


def test_saving_while_training_goes_on(tmp_path: Path) -> None:
    net = Net()
    expected = net.fc.weight.asnumpy().copy()
    ms.save_checkpoint(net, str(tmp_path / "a.ckpt"), async_save=True)
    net.fc.weight.set_data(ms.Tensor(np.zeros((3, 2), np.float32)))
    from mindspore.train import async_ckpt_thread_status
    from mindspore.train.serialization import wait_for_writers

    wait_for_writers()
    assert not async_ckpt_thread_status()
    assert np.array_equal(ms.load_checkpoint(str(tmp_path / "a.ckpt"))["fc.weight"].asnumpy(), expected)
    assert set(ms.load_checkpoint_async(str(tmp_path / "a.ckpt")).result()) == set(net.parameters_dict())


def test_many_threads_may_save(tmp_path: Path) -> None:
    """Each in the background or not, into one file: no call fails, and the file is one of them."""
    nets = [nn.Dense(200, 200, weight_init=Constant(k), bias_init=Constant(k)) for k in range(4)]
    failed: list[BaseException] = []

    def save(k: int) -> None:
        try:
            ms.save_checkpoint(nets[k], str(tmp_path / "a.ckpt"), async_save=k > 0)
        except BaseException as error:
            failed.append(error)

    for _ in range(25):
        threads = [threading.Thread(target=save, args=(k,)) for k in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failed
    values = [value.asnumpy() for value in ms.load_checkpoint(str(tmp_path / "a.ckpt")).values()]
    assert len({float(v) for value in values for v in np.unique(value)}) == 1
    assert [file.name for file in tmp_path.iterdir()] == ["a.ckpt"]


@pytest.mark.parametrize("name", ["x" * 250, "é" * 125, "\U0001f600" * 62])
def test_a_long_name_has_room(tmp_path: Path, name: str) -> None:
    ms.save_checkpoint(nn.Dense(1, 1), str(tmp_path / f"{name}.ckpt"))
    assert [file.name for file in tmp_path.iterdir()] == [f"{name}.ckpt"]


def test_choosing_what_is_loaded(tmp_path: Path) -> None:
    path = str(saved(tmp_path))
    assert next(iter(ms.load_checkpoint(path, filter_prefix="fc"))) == "bn.moving_mean"
    assert list(ms.load_checkpoint(path, specify_prefix=["fc.w", "bn.b"])) == ["fc.weight", "bn.beta"]
    assert list(ms.load_checkpoint(path, choice_func=lambda name: "bias" in name)) == ["fc.bias"]
    with pytest.warns(UserWarning, match="filter_prefix is used, and choice_func is ignored"):        # as in MindSpore
        assert "fc.bias" in ms.load_checkpoint(path, filter_prefix="fc.w", choice_func=lambda name: False)


def test_loading_into_a_net(tmp_path: Path) -> None:
    loaded = ms.load_checkpoint(str(saved(tmp_path)))
    net = Net()
    assert ms.load_param_into_net(net, loaded) == ([], [])
    assert np.array_equal(net.fc.weight.asnumpy(), loaded["fc.weight"].asnumpy())
    small = nn.SequentialCell(nn.Dense(2, 3))
    assert ms.load_param_into_net(small, loaded) == (["0.weight", "0.bias"], list(loaded))
    prefixed = {f"backbone.{name}": value for name, value in loaded.items()}
    other = Net()
    assert ms.load_param_into_net(other, prefixed) == ([], list(prefixed))
    assert np.array_equal(other.fc.weight.asnumpy(), loaded["fc.weight"].asnumpy())


def test_nothing_is_loaded_where_one_shape_differs(tmp_path: Path) -> None:
    loaded = ms.load_checkpoint(str(saved(tmp_path)))
    loaded["bn.beta"] = ms.Parameter(ms.Tensor(np.zeros(4, np.float32)), name="bn.beta")
    net = Net()
    before = net.fc.weight.asnumpy().copy()
    with pytest.raises(RuntimeError) as caught:
        ms.load_param_into_net(net, loaded)
    text = "load_param_into_net: 'bn.beta' has the shape [4] in the checkpoint: expected [3], as in the net."
    assert str(caught.value) == text + "\n\nhint: the net is built with other sizes than the one that was saved."
    assert np.array_equal(net.fc.weight.asnumpy(), before)


@pytest.mark.parametrize(
    ("dtype", "strict", "fits"),
    [
        (ms.float16, False, True),
        (ms.float16, True, False),
        (ms.bfloat16, False, True),
        (ms.float64, False, True),
        (ms.int32, False, False),
    ],
)
def test_types_are_converted_within_their_kind(dtype: object, strict: bool, fits: bool) -> None:
    net = nn.Dense(2, 3, has_bias=False)
    state = {"weight": ms.Parameter(ms.Tensor(np.ones((3, 2)), dtype), name="weight")}
    if fits:
        ms.load_param_into_net(net, state, strict)
        assert net.weight.dtype == ms.float32 and net.weight.asnumpy().tolist() == [[1, 1]] * 3
    else:
        with pytest.raises(RuntimeError, match="expected Float32, as in the net"):
            ms.load_param_into_net(net, state, strict)


@pytest.mark.parametrize("piece", [7, 40, 1000])
@pytest.mark.parametrize(("type_name", "dtype"), [("Float32", np.float32), ("BFloat16", np.uint16)])
def test_values_in_blocks_give_the_bytes_of_the_full_values(tmp_path: Path, piece: int, type_name: str, dtype: type) -> None:
    full = np.arange(60).reshape(12, 5).astype(dtype)
    values = checkpoint_file.BlockedValues(lambda: (full[start:start + 5] for start in range(0, 12, 5)), full.shape, dtype)
    assert values.nbytes == full.nbytes and np.array_equal(np.asarray(values), full)
    for name, content in (("full", full), ("blocks", values)):
        checkpoint_file.write(tmp_path / name, iter([checkpoint_file.Entry("table", type_name, full.shape, content)]), piece=piece)
    assert (tmp_path / "full").read_bytes() == (tmp_path / "blocks").read_bytes()
    (entry,), has_checksum = checkpoint_file.read(tmp_path / "blocks")
    assert has_checksum and np.array_equal(np.asarray(entry.values).reshape(12, 5), full)
