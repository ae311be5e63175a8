"""The order of collectives: tables of ranks, and the check of a program."""
from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import mindspore as ms
import pytest
from mindspore.utils import runtime_execution_order_check as check_orders
from mindspore.utils.runtime_execution_order_check import (
    ExecuteOrder,
    RankFolderParser,
    comm_exec_order_check,
    detect_cycle_in_graph,
    determine_all_rank,
    modify_execute_orders,
    parse_and_validate,
)

COLUMNS = RankFolderParser.REQUIRED_COLUMNS


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    lines: list[str] = []
    monkeypatch.setattr(ms.log, "error", lines.append)
    monkeypatch.setattr(ms.log, "warning", lines.append)
    return lines


def write(folder: Path, rank: int, rows: list[dict[str, str]], columns: list[str] = COLUMNS) -> None:
    path = folder / f"rank_{rank}" / "execute_order" / "comm_execute_order.csv"
    path.parent.mkdir(parents=True)
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="")
        writer.writeheader()
        writer.writerows(rows)


def gather(group: str) -> dict[str, str]:
    return {"group": group, "comm_rank": "0 1", "primitive": "AllGather"}


def test_keys_of_collectives() -> None:
    def key(rank: str = "0", **columns: str) -> str:
        return ExecuteOrder(**{"index": "1", "group": "g", "comm_rank": "0 1 2", "primitive": "AllGather", **columns}).generate_key(rank, 2)

    assert key() == "AllGather_g_(0,1,2)_2th"
    assert key(primitive="Send", src_rank="0", dest_rank="1", input_shape="(2,)") == "Send_Receive_g_(0)->(1)_(2,)_2th"
    assert key("1", primitive="InnerCommIrecv", src_rank="0", output_shape="(2,)") == "Send_Receive_g_(0)->(1)_(2,)_2th"
    assert key(primitive="Broadcast", root_rank="2") == "Broadcast_g_commRank:(0,1,2)_rootRank:(2)_2th"
    assert key(primitive="Copy", src_rank="0", dest_rank="2") == "Copy_g_commRank:(0,1,2)_srcRank:(0)_destRank:(2)_2th"


def test_keys_count_occurrences_for_each_rank() -> None:
    order = ExecuteOrder("1", "g", "0 1", "AllReduce")
    assert modify_execute_orders({"0": [order, order], "1": [order], "2": None}) == {
        "0": ["AllReduce_g_(0,1)_1th", "AllReduce_g_(0,1)_2th"], "1": ["AllReduce_g_(0,1)_1th"], "2": [],
    }


@pytest.mark.parametrize("orders, path, steps", [
    ({"0": ["a", "b"], "1": ["b", "a"]}, ["a", "b", "a"], ["0 a -> b", "1 b -> a"]),
    ({"0": ["a", "a"]}, ["a", "a"], ["0 a -> a"]),
    ({"0": ["a", "b"], "1": ["b", "c"], "2": ["c", "b"]}, ["b", "c", "b"], ["1 b -> c", "2 c -> b"]),
    ({"0": ["a", "b", "c"], "1": ["a", "b", "c"]}, None, None),
    ({"0": ["a"]}, None, None),
    ({"0": [str(number) for number in range(20_000)]}, None, None),
])
def test_cycles(orders: dict[str, list[str]], path: Any, steps: Any) -> None:
    assert detect_cycle_in_graph(orders) == (path, steps)


def test_keys_that_a_rank_lacks(logged: list[str]) -> None:
    parse_and_validate({"1": ["Send_Receive_(1)->(2)_1th"], "2": ["Send_Receive_(1)->(2)_1th"]})
    assert not logged
    parse_and_validate({"1": ["Send_Receive_(1)->(2)_1th"], "2": []})
    parse_and_validate({"1": ["AllGather_(1,3)_1th"]})
    parse_and_validate({"1": ["AllGather_(1,3)_1th"]}, all_rank=False)
    parse_and_validate({"1": "text"})
    parse_and_validate([])
    assert logged == [
        "Key '2' is missing the value 'Send_Receive_(1)->(2)_1th'.",
        "The following keys are missing for value 'AllGather_(1,3)_1th': ['3']",
        "Values for key '1' must be a list of strings.",
        "Input must be a dictionary with string keys and lists of strings as values.",
    ]


def test_which_folders_contain_all_ranks() -> None:
    assert [determine_all_rank(folders) for folders in ("a", ["a"], ["a", "b"], [], "", None)] == [True, True, False, None, None, None]


def test_tables_whose_ranks_wait_for_each_other(tmp_path: Path, logged: list[str]) -> None:
    write(tmp_path, 0, [gather("a"), gather("b")])
    write(tmp_path, 1, [gather("b"), gather("a")])
    check_orders(str(tmp_path))
    first, second = "AllGather_a_(0,1)_1th", "AllGather_b_(0,1)_1th"
    assert logged == [
        "Cycle detected:", f"{first} -> {second} -> {first} -> {first}",
        "Involving ranks:", f"0 {first} -> {second}", f"1 {second} -> {first}",
    ]


def test_tables_without_a_cycle(tmp_path: Path, logged: list[str]) -> None:
    for rank in (0, 1):
        write(tmp_path, rank, [gather("a"), gather("b")])
    ms.runtime_execution_order_check([str(tmp_path / "rank_0"), str(tmp_path / "rank_1")])
    assert logged == ["Cycle Check success. There is no cycle in the graph."]


def test_tables_that_cannot_be_read(tmp_path: Path, logged: list[str]) -> None:
    write(tmp_path, 0, [gather("a")], ["group", "comm_rank", "primitive"])
    (tmp_path / "rank_1" / "execute_order").mkdir(parents=True)
    write(tmp_path, 2, [])
    table = tmp_path / "rank_1" / "execute_order" / "comm_execute_order.csv"
    check_orders(str(tmp_path))
    assert logged[0].startswith("Invalid header in ") and logged[1] == f"No file {table}. Skipping rank 1."
    table.write_bytes(b"\xff\xfe\0")
    assert RankFolderParser(str(tmp_path)).parse_rank_folder(str(table.parent), "1") == ("1", None)
    assert logged[2:3] == ["No valid rank data found. Execution order check aborted."] and logged[-1].startswith(f"cannot read {table}: ")


def test_folders_without_ranks(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder, text in (
        (str(tmp_path), "No rank_x folders"), ("relative", "absolute path"), (str(tmp_path / "none"), "Path does not exist"),
        (str(tmp_path / "file"), "Please provide a folder"),
    ):
        with pytest.raises(ValueError, match=text):
            RankFolderParser(folder)
    write(tmp_path, 0, [gather("a")])
    with pytest.raises(ValueError, match="Duplicate rank folder detected: rank_0"):
        RankFolderParser([str(tmp_path), str(tmp_path / "rank_0")])


def test_the_check_of_a_program_starts_and_ends_once(logged: list[str]) -> None:
    comm_exec_order_check("end")
    comm_exec_order_check("start")
    ms.comm_exec_order_check("start")
    comm_exec_order_check("end")
    assert logged == ["The 'end' action cannot be called before the 'start' action.", "The 'start' action cannot be called twice."]
    with pytest.raises(TypeError, match="must be a string"):
        comm_exec_order_check(1)
    with pytest.raises(ValueError, match="Invalid action"):
        comm_exec_order_check("stop")
