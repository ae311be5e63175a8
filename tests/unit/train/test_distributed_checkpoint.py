"""Checkpoints of several processes, put together in one; and checkpoints in the other format."""
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn

FULL = np.arange(32, dtype=np.float32).reshape(8, 4)


def message(*fields: tuple[int, Any]) -> bytes:
    """A protobuf message of numbers below 128 (-1 too) and bytes."""
    out = b""
    for number, value in fields:
        if isinstance(value, int):
            out += bytes([number << 3]) + (b"\xff" * 9 + b"\x01" if value == -1 else bytes([value]))
        else:
            out += bytes([number << 3 | 2, len(value)]) + value
    return out


def strategy(path: Path, name: str, devices: list[int], axes: list[int], step: int = 0, size: int = 0) -> str:
    """A strategy file of one Parameter, as MindSpore writes it."""
    layout = message((1, message(*[(1, n) for n in devices])), (2, message(*[(1, n) for n in axes])), (6, step), (7, size))
    path.write_bytes(message((1, 1), (3, message((1, name.encode()), (2, layout)))))
    return str(path)


def saved(folder: Path, parts: list[np.ndarray]) -> list[str]:
    """A checkpoint file for each part, with a bias that all have."""
    names = [str(folder / f"rank_{rank}.ckpt") for rank in range(len(parts))]
    for name, part in zip(names, parts):
        ms.save_checkpoint([{"name": "weight", "data": Tensor(part)}, {"name": "bias", "data": Tensor(np.ones(8, np.float32))}], name)
    return names


def parts(devices: list[int], axes: list[int]) -> list[np.ndarray]:
    """What each of the processes holds of WHOLE."""
    results = []
    for rank in range(int(np.prod(devices))):
        at, piece = np.unravel_index(rank, devices), FULL
        for axis, mesh_axis in enumerate(axes):
            if mesh_axis != -1:
                piece = np.split(piece, devices[len(devices) - 1 - mesh_axis], axis)[int(at[len(devices) - 1 - mesh_axis])]
        results.append(piece)
    return results


@pytest.mark.parametrize(("devices", "axes"), [([4], [0, -1]), ([2, 2], [1, 0]), ([2, 2], [0, -1]), ([2, 4], [0, 1]), ([2], [-1, -1])])
def test_slices_are_put_together(tmp_path: Path, devices: list[int], axes: list[int]) -> None:
    files = saved(tmp_path, parts(devices, axes))
    net = nn.Dense(4, 8)
    result = ms.load_distributed_checkpoint(net, files, None, strategy(tmp_path / "s.ckpt", "weight", devices, axes))
    assert result is None
    np.testing.assert_array_equal(net.weight.asnumpy(), FULL)
    np.testing.assert_array_equal(net.bias.asnumpy(), np.ones(8))


def test_what_the_optimizer_cut_once_more(tmp_path: Path) -> None:
    files = saved(tmp_path, np.split(FULL, 4))
    where = strategy(tmp_path / "s.ckpt", "weight", [4], [-1, -1], step=1, size=4)
    result = ms.load_distributed_checkpoint(nn.Dense(4, 8), files, None, where, return_param_dict=True)
    np.testing.assert_array_equal(result["weight"].asnumpy(), FULL)


def test_one_file_needs_no_strategy(tmp_path: Path) -> None:
    net = nn.Dense(4, 8)
    ms.train.load_distributed_checkpoint(net, saved(tmp_path, [FULL]))
    np.testing.assert_array_equal(net.weight.asnumpy(), FULL)
    with pytest.raises(ValueError, match="train_strategy_filename, which states how they were split"):
        ms.load_distributed_checkpoint(net, saved(tmp_path, [FULL, FULL]))


def test_slices_by_hand(tmp_path: Path) -> None:
    parameters = [Parameter(Tensor(piece), "weight") for piece in parts([2, 2], [1, 0])]
    layouts = ms.build_searched_strategy(strategy(tmp_path / "s.ckpt", "weight", [2, 2], [1, 0]))
    merged = ms.merge_sliced_parameter(parameters, layouts)
    np.testing.assert_array_equal(merged.asnumpy(), FULL)
    assert merged.name == "weight" and ms.parallel.merge_sliced_parameter(parameters[:2]).shape == (8, 2)
    (tmp_path / "g.pb").write_bytes(message((2, message((1, 0), (1, 4)))))
    assert ms.restore_group_info_list(str(tmp_path / "g.pb")) == [0, 4]


@pytest.mark.parametrize(("call", "kind"), [
    (lambda: ms.merge_sliced_parameter(3), TypeError), (lambda: ms.merge_sliced_parameter([]), ValueError),
    (lambda: ms.merge_sliced_parameter([Parameter(Tensor([1.0]), "a")], {"b": 1}), KeyError),
    (lambda: ms.merge_sliced_parameter([Parameter(Tensor([1.0]), "a")], {"a": 1}), ValueError),
    (lambda: ms.build_searched_strategy("nope"), ValueError), (lambda: ms.restore_group_info_list("nope"), ValueError),
    (lambda: ms.build_searched_strategy(__file__), ValueError), (lambda: ms.load_distributed_checkpoint(3, ["a"]), ValueError),
    (lambda: ms.load_distributed_checkpoint(nn.Dense(1, 1), ["nope.ckpt"]), ValueError),
    (lambda: ms.load_distributed_checkpoint(nn.Dense(1, 1)), TypeError),
    (lambda: ms.load_distributed_checkpoint(nn.Dense(1, 1), ["a"], rank_id=-1), ValueError),
    (lambda: ms.ckpt_to_safetensors("nope.ckpt"), ValueError), (lambda: ms.safetensors_to_ckpt(3), ValueError),
    (lambda: ms.ckpt_to_safetensors(__file__), ValueError), (lambda: ms.ckpt_to_safetensors(__file__, processes_num=0), ValueError),
])
def test_what_does_not_fit(call: Callable[[], Any], kind: type[Exception]) -> None:
    with pytest.raises(kind):
        call()


def test_the_other_format(tmp_path: Path) -> None:
    (tmp_path / "rank_0").mkdir()
    saved(tmp_path / "rank_0", [FULL])
    file = tmp_path / "rank_0" / "rank_0.ckpt"
    ms.ckpt_to_safetensors(str(file), str(tmp_path / "out"), {"weight": "w"})
    assert set(ms.load_checkpoint(str(tmp_path / "out" / "rank_0.safetensors"), format="safetensors")) == {"w", "bias"}
    ms.ckpt_to_safetensors(str(tmp_path), file_name_regex="rank", processes_num=2)
    file.unlink()
    ms.safetensors_to_ckpt(str(tmp_path), str(tmp_path / "back"))
    np.testing.assert_array_equal(ms.load_checkpoint(str(tmp_path / "back" / "rank_0" / "rank_0.ckpt"))["weight"].asnumpy(), FULL)
    with pytest.raises(ValueError, match="that 'z' finds"):
        ms.safetensors_to_ckpt(str(tmp_path), file_name_regex="z")


def test_files_for_one_process(tmp_path: Path) -> None:
    for rank, name in enumerate(saved(tmp_path, parts([2, 2], [1, 0]))):
        (tmp_path / f"rank_{rank}").mkdir()
        Path(name).rename(tmp_path / f"rank_{rank}" / "a.ckpt")
    where = strategy(tmp_path / "s.ckpt", "weight", [2, 2], [1, 0])
    assert ms.rank_list_for_transform(0, where) == [3, 2, 1, 0] and ms.rank_list_for_transform(0) == [0]
    ms.transform_checkpoints(str(tmp_path), str(tmp_path / "out"), "net", where)
    net = nn.Dense(4, 8)
    ms.load_checkpoint(str(tmp_path / "out" / "rank_0" / "net0.ckpt"), net)
    np.testing.assert_array_equal(net.weight.asnumpy(), FULL)
    ms.transform_checkpoint_by_rank(0, {0: str(tmp_path / "rank_0" / "a.ckpt")}, str(tmp_path / "one.ckpt"))
    assert ms.load_checkpoint(str(tmp_path / "one.ckpt"))["weight"].shape == (4, 2)
    ms.train.transform_checkpoints(str(tmp_path), str(tmp_path / "four"), "net", where, where)
    for rank, part in enumerate(parts([2, 2], [1, 0])):
        np.testing.assert_array_equal(
            ms.load_checkpoint(str(tmp_path / "four" / f"rank_{rank}" / f"net{rank}.ckpt"))["weight"].asnumpy(), part,
        )
    with pytest.raises(ValueError, match="0 without a dst_strategy_file"):
        ms.rank_list_for_transform(1, where)


def test_checkpoints_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "c").mkdir()
    ms.save_checkpoint([{"name": "weight", "data": Tensor(FULL)}], str(tmp_path / "c" / "0.ckpt"))
    ms.save_checkpoint([{"name": "bias", "data": Tensor(np.ones(8, np.float32))}], str(tmp_path / "c" / "1.ckpt"))
    net = nn.Dense(4, 8)
    assert set(ms.load_segmented_checkpoints(str(tmp_path / "c"), net)) == {"weight", "bias"}
    np.testing.assert_array_equal(net.weight.asnumpy(), FULL)
    with pytest.raises(NotADirectoryError):
        ms.merge_pipeline_strategys("nope", "x")
    with pytest.raises(ValueError, match="an existing folder"):
        ms.load_segmented_checkpoints("nope")


def test_types_in_checkpoints(tmp_path: Path) -> None:
    from mindspore.train.serialization import _check_checkpoint_param, tensor_to_ms_type, tensor_to_np_type

    assert tensor_to_ms_type["Float16"] == ms.float16 and tensor_to_ms_type["Bool"] == ms.bool_
    assert tensor_to_np_type("Float32") is tensor_to_np_type["Float32"] is np.float32
    (name,) = saved(tmp_path, [FULL])
    assert _check_checkpoint_param(name, "a") == (name, ("a",))
