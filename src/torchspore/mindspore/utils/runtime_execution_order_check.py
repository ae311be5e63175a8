"""`mindspore.utils.runtime_execution_order_check`: comparison of the order in which processes communicate.

`runtime_execution_order_check` reads `rank_N/execute_order/comm_execute_order.csv`, the tables of collectives that MindSpore writes on
Ascend. Each row becomes a key that is equal on all ranks of the collective; ranks whose orders form a cycle wait for each other forever.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from torchspore.mindspore import log as logger
from torchspore.mindspore._c_expression import CommExecOrderChecker
from torchspore.mindspore.utils._execution_order_tables import (
    ExecuteOrder,
    RankFolderParser,
    detect_cycle_in_graph,
    find_missing_keys,
    find_one_sided_keys,
)
from torchspore.public_names import missing
from torchspore.translations import translate


class CommExecOrderCheck:
    """The only object that starts and ends the check of `comm_exec_order_check`."""

    _instance: CommExecOrderCheck | None = None
    is_collecting = False

    def __new__(cls) -> CommExecOrderCheck:
        cls._instance = cls._instance or super().__new__(cls)
        return cls._instance

    def __call__(self, action: str) -> None:
        """Starts (`start`) or ends (`end`) the check. Raises ValueError for another action."""
        if action == "start":
            self.start_function()
        elif action == "end":
            self.end_function()
        else:
            raise ValueError(translate("Invalid action. Please use 'start' or 'end'."))

    def start_function(self) -> None:
        """Starts the check; logs an error if it has started."""
        if self.is_collecting:
            logger.error(translate("The 'start' action cannot be called twice."))
            return
        self.is_collecting = True
        CommExecOrderChecker.get_instance().start_collect_exec_order()

    def end_function(self) -> None:
        """Ends the check; logs an error if it has not started."""
        if not self.is_collecting:
            logger.error(translate("The 'end' action cannot be called before the 'start' action."))
            return
        self.is_collecting = False
        CommExecOrderChecker.get_instance().stop_collect_exec_order()


def comm_exec_order_check(action: str) -> None:
    """Starts or ends a check of the order of collectives: `start` or `end`.

    torchspore compares each collective with those of the other ranks before it runs, with and without this check; ranks with different
    collectives raise CommunicationError. Raises TypeError and ValueError for another action.
    """
    if not isinstance(action, str):
        raise TypeError(translate("The 'action' parameter must be a string."))
    CommExecOrderCheck()(action)


def modify_execute_orders(execute_orders_map: Mapping[str, Any]) -> dict[str, list[str]]:
    """Returns the keys of each rank's collectives: their base keys, numbered by occurrence (`_1th`, `_2th`, ...)."""
    keys: dict[str, list[str]] = {}
    for rank, orders in execute_orders_map.items():
        occurrences: Counter[str] = Counter()
        keys[rank] = []
        for order in orders or ():
            base = order.generate_base_key(rank)
            occurrences[base] += 1
            keys[rank].append(order.generate_key(rank, occurrences[base]))
    return keys


def parse_and_validate(data: Any, all_rank: bool = True) -> None:
    """Logs an error for each key that a rank of its collective lacks, and with `all_rank` for each rank without a list of keys."""
    if not isinstance(data, dict):
        logger.error(translate("Input must be a dictionary with string keys and lists of strings as values."))
        return
    keys_of = {rank: keys for rank, keys in data.items() if isinstance(keys, list) and all(isinstance(key, str) for key in keys)}
    for rank in data.keys() - keys_of.keys():
        logger.error(translate("Values for key '{rank}' must be a list of strings.").format(rank=rank))
    for key, ranks in find_missing_keys(keys_of) if all_rank else ():
        logger.error(translate("The following keys are missing for value '{key}': {ranks}").format(key=key, ranks=ranks))
    for rank, key in find_one_sided_keys(keys_of, all_rank):
        logger.error(translate("Key '{rank}' is missing the value '{key}'.").format(rank=rank, key=key))


def determine_all_rank(folders_: Any) -> bool | None:
    """Returns whether the folders contain the tables of all ranks: True for one folder, False for several, None for another value."""
    if isinstance(folders_, str) and folders_:
        return True
    return len(folders_) == 1 if isinstance(folders_, list) and folders_ else None


def output_cycle_results(cycle_path: list[str] | None, cycle_ranks: list[str] | None) -> None:
    """Logs a cycle and the ranks of its steps as errors, or that there is none."""
    if not cycle_path:
        logger.warning(translate("Cycle Check success. There is no cycle in the graph."))
        return
    logger.error(translate("Cycle detected:"))
    logger.error(" -> ".join([*cycle_path, cycle_path[0]]))
    logger.error(translate("Involving ranks:"))
    for step in cycle_ranks or ():
        logger.error(step)


def runtime_execution_order_check(folders_: Any, all_rank: bool | None = None) -> None:
    """Logs whether ranks would wait for each other in the orders of their collectives.

    `folders_` is a folder of `rank_N` folders, or a list of such folders and of `rank_N` folders. With `all_rank` they contain all ranks of
    the program; by default this is true for one folder. Raises ValueError for a relative path, or a folder without ranks.
    """
    if folders_ is None:
        logger.error(translate("Invalid input. `folders_` must be a non-empty string or a list with at least one string element."))
        return
    orders = RankFolderParser(folders_).parse()
    if not orders:
        logger.error(translate("No valid rank data found. Execution order check aborted."))
        return
    for rank, rows in orders.items():
        if not rows:
            logger.error(translate("Rank {rank} has no valid execution orders. Please check the csv file.").format(rank=rank))
            return
    keys = modify_execute_orders(orders)
    parse_and_validate(keys, bool(determine_all_rank(folders_) if all_rank is None else all_rank))
    output_cycle_results(*detect_cycle_in_graph(keys))


__all__ = [
    "CommExecOrderCheck", "CommExecOrderChecker", "ExecuteOrder", "RankFolderParser", "comm_exec_order_check", "detect_cycle_in_graph",
    "determine_all_rank", "logger", "modify_execute_orders", "output_cycle_results", "parse_and_validate", "runtime_execution_order_check",
]
__getattr__ = missing(__name__)
