"""Strategy and group files that a compilation writes, and one that it reads."""
from __future__ import annotations

from pathlib import Path

import mindspore as ms
import numpy as np
import pytest
from mindspore import Layout, Parameter, Tensor, nn
from mindspore.common.api import _cell_graph_executor
from mindspore.ops import operations as P

from torchspore.distributed.shard import strategy_file
from torchspore.errors import StrategyRefused


class Net(nn.Cell):
    def __init__(self, strategy: tuple[object, ...]) -> None:
        super().__init__()
        self.product = P.MatMul().shard(strategy)
        self.w = Parameter(Tensor(np.ones((32, 16), np.float32)), "w")
        self.frozen = Parameter(Tensor(np.ones((16, 16), np.float32)), "frozen", requires_grad=False)

    def construct(self, x: Tensor) -> Tensor:
        return self.product(x, self.w) + self.frozen


X = Tensor(np.ones((16, 32), np.float32))


def compiled(strategy: tuple[object, ...] = ((2, 4), (4, 1)), **options: object) -> Net:
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", device_num=8, dataset_strategy="full_batch", **options)
    net = Net(strategy)
    _cell_graph_executor.compile(net, X)
    return net


@pytest.mark.parametrize("suffix", ["ckpt", "json"])
def test_a_compilation_writes_strategies_and_layouts(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"s.{suffix}"
    compiled(strategy_ckpt_save_file=str(path))
    file = strategy_file.read(path)
    assert file.strategies == {"MatMul_w": (0, [[2, 4], [4, 1]])}
    assert set(file.layouts) == {"w"} and file.layouts["w"][:2] == ((2, 4), (0, -1))
    assert set(ms.build_searched_strategy(str(path))) == {"w"}


def test_parameters_that_are_not_trained_are_written_on_request(tmp_path: Path) -> None:
    compiled(strategy_ckpt_config={"save_file": str(tmp_path / "s.json"), "only_trainable_params": False})
    assert set(strategy_file.read(tmp_path / "s.json").layouts) == {"w", "frozen"}


def test_a_strategy_of_layouts_is_written_as_mindspore_writes_it(tmp_path: Path) -> None:
    grid = Layout((2, 4), ("a", "b"))
    compiled((grid("a", "b"), grid("b", "None")), strategy_ckpt_save_file=str(tmp_path / "s.json"))
    assert strategy_file.read(tmp_path / "s.json").strategies == {"MatMul_w": (0, [])}


def test_a_compilation_takes_the_strategies_of_a_file(tmp_path: Path) -> None:
    path = str(tmp_path / "s.json")
    compiled(((1, 8), (8, 1)), strategy_ckpt_save_file=path)
    ms.reset_auto_parallel_context()
    assert compiled(strategy_ckpt_load_file=path).parameter_layout_dict["w"][:2] == ([8], [0, -1])
    ms.reset_auto_parallel_context()
    assert compiled().parameter_layout_dict["w"][:2] == ([2, 4], [0, -1])


def test_a_graph_is_compiled_anew_for_another_file(tmp_path: Path) -> None:
    path = str(tmp_path / "s.json")
    compiled(((1, 8), (8, 1)), strategy_ckpt_save_file=path)
    ms.set_auto_parallel_context(strategy_ckpt_save_file="")
    net = compiled()
    ms.set_auto_parallel_context(strategy_ckpt_load_file=path)
    _cell_graph_executor.compile(net, X)
    assert net.parameter_layout_dict["w"][:2] == ([8], [0, -1])


@pytest.mark.parametrize("contents", [None, "nonsense"])
def test_a_file_that_is_none_is_refused(tmp_path: Path, contents: str | None) -> None:
    path = tmp_path / "s.json"
    if contents is not None:
        path.write_text(contents)
    with pytest.raises(StrategyRefused, match="a strategy file that is there"):
        compiled(strategy_ckpt_load_file=str(path))


def test_a_compilation_writes_groups_and_who_holds_the_same(tmp_path: Path) -> None:
    compiled(((2, 2), (2, 1)), group_ckpt_save_file=str(tmp_path / "g.pb"))
    result = strategy_file.groups(tmp_path / "g.pb")
    assert [0, 1, 4, 5] in result.values()
    assert ms.restore_group_info_list(str(tmp_path / "g.pb")) == [0, 1, 4, 5]


def test_the_environment_names_the_file_of_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROUP_INFO_FILE", str(tmp_path / "new" / "g.pb"))
    compiled(((2, 2), (2, 1)))
    assert ms.restore_group_info_list(str(tmp_path / "new" / "g.pb")) == [0, 1, 4, 5]


def test_the_layout_of_a_parameter_is_described_as_by_mindspore() -> None:
    grid = Layout((2, 2, 2), ("x", "y", "z"))
    net = compiled((grid("x", "None"), grid("None", ("z", "y"))))
    assert net.parameter_layout_dict["w"] == (
        [2, 2, 2], [-1, 0, 1], [32, 4], 0, True, "", [32, 16], [32, 1, 4], False, False, 0, 0,
    )
    assert _cell_graph_executor._get_shard_strategy(net) == {"MatMul_w": []}
