"""Which server stores which parameter."""
from __future__ import annotations

from collections import Counter

from torchspore.distributed.parameter_server.assignment import DENSE, TABLE, Item, Plan, assign, rows_of
from torchspore.distributed.parameter_server.parameter_store import stored_items


def plan(key: str, *sizes: int, is_divisible: bool = True) -> Plan:
    items = tuple(Item(index, f"{key}.{index}", (size,), "float32", DENSE) for index, size in enumerate(sizes))
    return Plan(key, "Adam", items, is_divisible)


def test_loads_are_balanced_by_size() -> None:
    plans = [plan("a", 100, 10, 10, 60, 30), plan("b", 50)]
    load: Counter[int] = Counter()
    for (key, index), server in assign(plans, 2).items():
        load[server] += next(p for p in plans if p.key == key).items[index].elements
    assert sorted(load.values()) == [130, 130]


def test_an_optimizer_that_needs_all_parameters_has_one_server() -> None:
    assignment = assign([plan("a", 100, 10, 10), plan("b", 60, 60, is_divisible=False)], 2)
    assert assignment["b", 0] == assignment["b", 1] != assignment["a", 0]


def test_rows_of_a_table_are_on_all_servers() -> None:
    table = Plan("a", "Adam", (Item(0, "t", (10, 4), "float32", TABLE), Item(1, "w", (3,), "float32", DENSE)))
    stored = [stored_items([table], server, 3)["a"] for server in range(3)]
    assert [(items[0].start, items[0].stop) for items in stored] == [(0, 3), (3, 6), (6, 10)]
    assert stored[2][0].shape == (4, 4) and sum(len(items) == 2 for items in stored) == 1
    assert [rows_of(2, server, 3) for server in range(3)] == [(0, 0), (0, 1), (1, 2)]
