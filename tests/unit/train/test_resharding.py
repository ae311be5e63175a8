"""Checkpoints from the cuts of one strategy to those of another, and the files that say the cuts."""
from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn
from support.resharded import FULL, parts_of_process, strategy, write_checkpoints

from torchspore.distributed.shard import strategy_file
from torchspore.distributed.shard.strategy_file import StrategyFile, stored
from torchspore.distributed.shard.strategy_validation import TensorLayout as On
from torchspore.errors import FileFormatError
from torchspore.mindspore.train.slices import shardings_of


def check(folder: Path, count: int, suffix: str = "ckpt") -> None:
    for rank in range(count):
        checkpoint = ms.load_checkpoint(str(folder / f"rank_{rank}" / f"net{rank}.{suffix}"), format=suffix)
        expected = parts_of_process(rank, count) if count > 1 else FULL
        for name, part in expected.items():
            np.testing.assert_array_equal(checkpoint[name].asnumpy(), part)
        assert int(checkpoint["epoch_num"].asnumpy()) == 3


@pytest.mark.parametrize("suffix", ["ckpt", "safetensors"])
def test_eight_processes_become_four_two_one_and_eight_again(tmp_path: Path, suffix: str) -> None:
    last, folder = 8, write_checkpoints(tmp_path / "in", 8, suffix)
    for count in (4, 2, 1, 8):
        target = tmp_path / f"{last}-{count}"
        source = strategy(tmp_path, last) if last > 1 else None
        ms.transform_checkpoints(folder, str(target), "net", source, strategy(tmp_path, count) if count > 1 else None, 2, suffix)
        check(target, count, suffix)
        last, folder = count, str(target)


@pytest.mark.parametrize("count", [8, 4, 2])
def test_both_forms_of_a_strategy_file_say_the_same(tmp_path: Path, count: int) -> None:
    read = {suffix: strategy_file.read(Path(strategy(tmp_path, count, suffix))) for suffix in ("ckpt", "json")}
    assert read["ckpt"].strategies == read["json"].strategies == {"MatMul_w": (0, [[2, 4], [4, 1]])}
    for file in read.values():
        for name, cut in shardings_of(file).items():
            for rank in range(count):
                np.testing.assert_array_equal(cut.part(name, FULL[name], rank), parts_of_process(rank, count)[name])
    assert (tmp_path / f"{count}.json").stat().st_mode & 0o777 == 0o600


MINDSPORES = (
    b'\x08\x08\x12\x0e\n\x08MatMul_a\x12\x02\x08\x00\x1a&\n\x01b\x12!\n\x06\x08\x02\x08\x02\x08\x02\x12\r\x08\x00\x08\xff\xff\xff\xff\xff'
    b'\xff\xff\xff\xff\x01\x1a\x00"\x00(\x000\x008\x00\x1a!\n\x01a\x12\x1c\n\x06\x08\x02\x08\x02\x08\x02\x12\x04\x08\x02\x08\x01\x12\x02'
    b'\x08\x00\x1a\x00"\x00(\x000\x008\x00'
)
"""What MindSpore 2.10 wrote for MatMul with layout(('x', 'y'), 'z') and layout('z', 'None') on a grid of (2, 2, 2)."""


def test_a_file_of_mindspore_is_read(tmp_path: Path) -> None:
    (tmp_path / "s.ckpt").write_bytes(MINDSPORES)
    cuts = shardings_of(strategy_file.read(tmp_path / "s.ckpt"))
    assert cuts["a"].tensor((16, 16)) == On((2, 2, 2), ((2, 1), (0,)))
    assert cuts["b"].tensor((16, 16)) == On((2, 2, 2), (0, -1))
    reordered = StrategyFile(
        {"b": stored(cuts["b"].tensor((16, 16)), (32, 16)), "a": stored(On((2, 2, 2), ((2, 1), 0)), (64, 32))}, {"MatMul_a": (0, [[]])}, 8,
    )
    strategy_file.write(tmp_path / "t.ckpt", reordered)
    assert shardings_of(strategy_file.read(tmp_path / "t.ckpt"))["a"].tensor((16, 16)).cuts() == (4, 2)


def test_json_is_written_as_mindspore_writes_it(tmp_path: Path) -> None:
    file = StrategyFile({"a": stored(On((2, 2, 2), ((2, 1), 0)), (64, 32))}, {"MatMul_a": (0, [[2, 2], [2, 1]])}, 2)
    strategy_file.write(tmp_path / "s.json", file)
    assert (tmp_path / "s.json").read_text() == (
        '{"current_stage":2,"parallel_layout_item":{"a":{"dev_matrix":[2,2,2],"field":0,"opt_weight_shard_size":0,"opt_weight_shard_step":0,'
        '"tensor_map":[2,1,0],"tensor_shape":[2,32,32]}},"parallel_strategy_item":{"MatMul_a":{"parallel_strategy":[[2,2],[2,1]],"stage":0}}}'
    )


def test_groups_are_written_and_read(tmp_path: Path) -> None:
    strategy_file.write_groups(tmp_path / "g.pb", {"2-5004544844489628105": (0, 1), "4-5226697808808137312": (0, 2, 4, 6)}, [0])
    assert (tmp_path / "g.pb").read_bytes() == (
        b"xF"                                                       # how many bytes follow, in a field that MindSpore skips
        b'\n\x1d\n\x152-5004544844489628105\x12\x04\x08\x00\x08\x01\n!\n\x154-5226697808808137312\x12\x08\x08\x00\x08\x02\x08\x04\x08\x06'
        b'\x12\x02\x08\x00'
    )                                                               # what MindSpore 2.10 wrote for the program above
    assert strategy_file.groups(tmp_path / "g.pb")["4-5226697808808137312"] == [0, 2, 4, 6]
    assert ms.restore_group_info_list(str(tmp_path / "g.pb")) == [0]


@pytest.mark.parametrize("write", [
    lambda path: strategy_file.write(path, StrategyFile({name: stored(On((8,), (0, -1)), (16, 16)) for name in "abc"})),
    lambda path: strategy_file.write_groups(path, {"2-1": (0, 1), "4-2": (0, 2, 4, 6)}, [0]),
])
def test_files_that_are_cut_anywhere_are_refused(tmp_path: Path, write: Callable[[Path], None]) -> None:
    write(tmp_path / "whole.pb")
    content, read = (tmp_path / "whole.pb").read_bytes(), strategy_file.read if b"2-1" not in (tmp_path / "whole.pb").read_bytes() else (
        strategy_file.groups)
    assert read(tmp_path / "whole.pb")
    for length in range(len(content)):
        (tmp_path / "cut.pb").write_bytes(content[:length])
        with pytest.raises(FileFormatError, match=re.escape(str(tmp_path / "cut.pb"))):
            read(tmp_path / "cut.pb")


@pytest.mark.parametrize(("cut", "rank", "needed"), [
    (
        On((8,), (0, -1)), 1, [7, 6, 5, 4, 3, 2, 1, 0],
    ), (On((8,), (-1, -1)), 2, [2]), (On((2, 4), (1, -1)), 3, [7, 3]), (On((2, 4), (1, 0)), 0, [*range(7, -1, -1)]),
])
def test_the_list_of_ranks_is_mindspores(tmp_path: Path, cut: On, rank: int, needed: list[int]) -> None:
    for name, layout in (("s", cut), ("t", On((4,), (0, -1)))):
        strategy_file.write(tmp_path / f"{name}.ckpt", StrategyFile({"w": stored(layout, (16, 16))}, {"MatMul_w": (0, [[1]])}))
    assert ms.rank_list_for_transform(rank, str(tmp_path / "s.ckpt"), str(tmp_path / "t.ckpt")) == needed


def _pipeline(folder: Path, name: str, count: int, suffix: str) -> str:
    """The merged strategy file of two stages of `count` processes: w and v in one each, z in both."""
    (folder / name).mkdir()
    for stage, key in enumerate(("w", "v")):
        layouts = {key: stored(On((count,), (0, -1)), (16, 32)), "z": stored(On((count,), (-1, 0)), (16, 8))}
        strategy_file.write(
            folder / name / f"strategy{stage}.{suffix}", StrategyFile(layouts, {f"MatMul_{key}": (stage, [[count, 1]])}, stage + 1),
        )
    ms.merge_pipeline_strategys(str(folder / name), str(folder / f"{name}.{suffix}"))
    return str(folder / f"{name}.{suffix}")


@pytest.mark.parametrize("suffix", ["ckpt", "json"])
def test_stages_of_a_pipeline(tmp_path: Path, suffix: str) -> None:
    source, target = _pipeline(tmp_path, "four", 4, suffix), _pipeline(tmp_path, "two", 2, suffix)
    for rank in range(8):
        (tmp_path / f"rank_{rank}").mkdir()
        stage_weight = ("w", "v")[rank // 4]
        entries = [
            {"name": stage_weight, "data": Tensor(np.split(FULL[stage_weight], 4)[rank % 4])},
            {"name": "z", "data": Tensor(np.split(FULL["z"], 4, 1)[rank % 4].copy())},
        ]
        ms.save_checkpoint(entries, str(tmp_path / f"rank_{rank}" / "c.ckpt"))
    ms.transform_checkpoints(str(tmp_path), str(tmp_path / "out"), "net", source, target)
    for rank in range(4):
        checkpoint = ms.load_checkpoint(str(tmp_path / "out" / f"rank_{rank}" / f"net{rank}.ckpt"))
        stage_weight = ("w", "v")[rank // 2]
        assert set(checkpoint) == {stage_weight, "z"}
        np.testing.assert_array_equal(checkpoint[stage_weight].asnumpy(), np.split(FULL[stage_weight], 2)[rank % 2])
        np.testing.assert_array_equal(checkpoint["z"].asnumpy(), np.split(FULL["z"], 2, 1)[rank % 2])
    ms.transform_checkpoints(str(tmp_path), str(tmp_path / "one"), "net", source)
    assert set(ms.load_checkpoint(str(tmp_path / "one" / "rank_0" / "net0.ckpt"))) == {"w", "v", "z"}
    assert ms.rank_list_for_transform(0, source, target) == [7, 6, 5, 4, 3, 2, 1, 0]


def test_two_files_of_one_stage_that_differ_are_not_merged(tmp_path: Path) -> None:
    _pipeline(tmp_path, "p", 2, "json")
    first = (tmp_path / "p" / "strategy0.json").read_text()
    (tmp_path / "p" / "strategy9.json").write_text(first)
    once = (tmp_path / "p.json").read_text()
    ms.merge_pipeline_strategys(str(tmp_path / "p"), str(tmp_path / "p.json"))          # those of all ranks of a stage say the same
    assert (tmp_path / "p.json").read_text() == once
    (tmp_path / "p" / "strategy9.json").write_text(first.replace('"w":', '"u":'))
    with pytest.raises(ValueError, match=r"strategy0.json and strategy9.json of stage 0: expected one file for each stage"):
        ms.merge_pipeline_strategys(str(tmp_path / "p"), str(tmp_path / "all.json"))


def test_bfloat16_keeps_its_bits(tmp_path: Path) -> None:
    value = Tensor(FULL["w"]).astype(ms.bfloat16)
    for rank in range(4):
        (tmp_path / f"rank_{rank}").mkdir()
        ms.save_checkpoint([{"name": "w", "data": value[rank * 4:rank * 4 + 4]}], str(tmp_path / f"rank_{rank}" / "c.ckpt"))
    strategy_file.write(tmp_path / "s.ckpt", StrategyFile({"w": stored(On((4,), (0, -1)), (16, 32))}))
    ms.transform_checkpoints(str(tmp_path), str(tmp_path / "out"), "net", str(tmp_path / "s.ckpt"))
    result = ms.load_checkpoint(str(tmp_path / "out" / "rank_0" / "net0.ckpt"))["w"]
    assert result.dtype == ms.bfloat16
    np.testing.assert_array_equal(result.astype(ms.float32).asnumpy(), value.astype(ms.float32).asnumpy())


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.w = Parameter(Tensor(np.zeros((4, 32), np.float32)), "w")


def test_full_parameters_in_one_folder_and_back_into_parts(tmp_path: Path) -> None:
    ms.unified_safetensors(write_checkpoints(tmp_path / "in", 8, "safetensors"), strategy(tmp_path, 8), str(tmp_path / "u"))
    listed = json.loads((tmp_path / "u" / "param_name_map.json").read_text())
    assert listed["weight_map"]["w"] == "part0.safetensors" and listed["metadata"]["total_size"] == sum(
        a.nbytes for a in FULL.values()
    ) + 8
    checkpoint = ms.load_checkpoint(str(tmp_path / "u" / "part0.safetensors"), format="safetensors")
    for name, value in FULL.items():
        np.testing.assert_array_equal(checkpoint[name].asnumpy(), value)
    four = strategy(tmp_path, 4)
    net = Net()
    ms.load_distributed_checkpoint(net, predict_strategy=four, unified_safetensors_dir=str(tmp_path / "u"), rank_id=1, format="safetensors")
    np.testing.assert_array_equal(net.w.asnumpy(), FULL["w"][4:8])
    for rank in range(4):
        assert ms.load_distributed_checkpoint(
            None, predict_strategy=four, unified_safetensors_dir=str(tmp_path / "u"), dst_safetensors_dir=str(tmp_path / "d"), rank_id=rank,
        ) is True
        part = ms.load_checkpoint(str(tmp_path / "d" / f"rank_{rank}" / "net.safetensors"), format="safetensors")
        for name, value in parts_of_process(rank, 4).items():
            np.testing.assert_array_equal(part[name].asnumpy(), value)


def test_which_parameters_are_unified(tmp_path: Path) -> None:
    folder = write_checkpoints(tmp_path / "in", 8, "safetensors")
    ms.unified_safetensors(folder, strategy(tmp_path, 8), str(tmp_path / "u"), choice_func=lambda name: "W" if name == "w" else name != "z")
    assert set(json.loads((tmp_path / "u" / "param_name_map.json").read_text())["weight_map"]) == {"W", "v", "b", "o", "epoch_num"}
    with pytest.raises(ValueError, match="a bool or a new name"):
        ms.unified_safetensors(folder, strategy(tmp_path, 8), str(tmp_path / "x"), choice_func=lambda _: 3)
    assert not (tmp_path / "x").exists()


def test_this_process_loads_its_part_of_others_files(tmp_path: Path) -> None:
    write_checkpoints(tmp_path / "in", 8)
    files = [str(tmp_path / "in" / f"rank_{rank}" / "c.ckpt") for rank in range(8)]
    net = Net()
    ms.load_distributed_checkpoint(net, files, ms.build_searched_strategy(strategy(tmp_path, 4)), strategy(tmp_path, 8), rank_id=2)
    np.testing.assert_array_equal(net.w.asnumpy(), FULL["w"][8:12])


def test_a_missing_part_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    folder = Path(write_checkpoints(tmp_path / "in", 8))
    (folder / "rank_3" / "c.ckpt").unlink()
    with pytest.raises(ValueError, match=r"'w' of processes 0, 1, 2, 4, 5, 6, 7: expected the parts of all 8 processes that hold it"):
        ms.transform_checkpoints(str(folder), str(tmp_path / "out"), "net", strategy(tmp_path, 8), strategy(tmp_path, 4))
    assert not (tmp_path / "out").exists() and not list(tmp_path.glob(".resharding-*"))


def test_a_file_cut_short_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    folder = Path(write_checkpoints(tmp_path / "in", 8))
    damaged = folder / "rank_5" / "c.ckpt"
    damaged.chmod(0o600)
    damaged.write_bytes(damaged.read_bytes()[:200])
    with pytest.raises(FileFormatError, match="rank_5"):
        ms.transform_checkpoints(str(folder), str(tmp_path / "out"), "net", strategy(tmp_path, 8))
    assert not (tmp_path / "out").exists()


def test_cuts_that_do_not_divide_are_reported(tmp_path: Path) -> None:
    folder = write_checkpoints(tmp_path / "in", 8)
    strategy_file.write(tmp_path / "t.ckpt", StrategyFile({"w": stored(On((3,), (0, -1)), (16, 32))}))
    with pytest.raises(ValueError, match=r"'w' of shape \(16, 32\) split by \(3, 1\): expected numbers of slices that divide the shape"):
        ms.transform_checkpoints(folder, str(tmp_path / "out"), "net", strategy(tmp_path, 8), str(tmp_path / "t.ckpt"))
    assert not (tmp_path / "out").exists()


def test_parts_of_two_shapes_are_reported(tmp_path: Path) -> None:
    strategy_file.write(tmp_path / "s.ckpt", StrategyFile({"w": stored(On((2,), (0, -1)), (8, 2))}))
    for rank, rows in enumerate((4, 3)):
        (tmp_path / f"rank_{rank}").mkdir()
        ms.save_checkpoint([{"name": "w", "data": Tensor(np.ones((rows, 2), np.float32))}], str(tmp_path / f"rank_{rank}" / "c.ckpt"))
    with pytest.raises(ValueError, match=r"parts of 'w' of shapes \(3, 2\), \(4, 2\): expected parts of one shape"):
        ms.transform_checkpoints(str(tmp_path), str(tmp_path / "out"), "net", str(tmp_path / "s.ckpt"))


@pytest.mark.parametrize("contents", [
    "", "[]", "{}", '{"parallel_layout_item": 3}', '{"parallel_layout_item": {"a": {"dev_matrix": [2], "tensor_map": [1]}}}',
    '{"parallel_layout_item": {"a": {"dev_matrix": [2], "tensor_map": [0, 0]}}}',
    '{"parallel_layout_item": {"a": {"dev_matrix": [0], "tensor_map": [0]}}}',
    '{"parallel_layout_item": {"a": {"dev_matrix": [99999999], "tensor_map": [0]}}}', "[" * 100_000, "\x00",
])
def test_other_json_files_are_refused(tmp_path: Path, contents: str) -> None:
    (tmp_path / "s.json").write_text(contents)
    with pytest.raises(FileFormatError, match="a strategy file of MindSpore"):
        ms.build_searched_strategy(str(tmp_path / "s.json"))
    with pytest.raises(ValueError, match="a strategy file of MindSpore"):
        ms.rank_list_for_transform(0, str(tmp_path / "s.json"))


def test_every_beginning_of_a_strategy_file_is_refused_or_read(tmp_path: Path) -> None:
    content = Path(strategy(tmp_path, 8)).read_bytes()
    for length in range(1, len(content), 7):
        (tmp_path / "cut.ckpt").write_bytes(content[:length])
        try:
            strategy_file.read(tmp_path / "cut.ckpt")
        except FileFormatError as error:
            assert "cut.ckpt" in str(error)


@pytest.mark.parametrize("tensor_map", [(), (-1,)])
def test_a_number_is_complete_in_every_process(tmp_path: Path, tensor_map: tuple[int, ...]) -> None:
    """Real MindSpore 2.10 wants no axes for it; files with one, as for a row, are read too."""
    path = tmp_path / "s.ckpt"
    strategy_file.write(path, StrategyFile({"power": stored(On((2, 4), ()), ())._replace(tensor_map=tensor_map)}, {}, 1))
    assert [dimension.dim for dimension in strategy_file.layouts(path)["power"].tensor_map] == [list(tensor_map)]
    cut = shardings_of(strategy_file.read(path))["power"]
    assert cut.merged("power", dict.fromkeys(range(8), np.array(0.5))) == 0.5 and cut.part("power", np.array(0.5), 7) == 0.5
