"""The tables of collectives that MindSpore writes for each rank, and cycles in their orders."""
from __future__ import annotations

import csv
import itertools
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from torchspore.mindspore import log as logger
from torchspore.translations import translate

_SENDS = ("Send", "DistCommIsend", "InnerCommIsend")
_RECEIVES = ("Receive", "DistCommIrecv", "InnerCommIrecv")
_RANKS = re.compile(r"\((.*?)\)")
_TABLE = "comm_execute_order.csv"
_LONGEST_FIELD = 10 * 1024 * 1024
"""A group may have 150,000 ranks."""


@dataclass
class ExecuteOrder:
    """One row of a table: a collective of a rank."""

    index: str
    group: str
    comm_rank: Any
    primitive: str
    src_rank: str = ""
    dest_rank: str = ""
    root_rank: str = ""
    input_shape: str = ""
    output_shape: str = ""

    def __post_init__(self) -> None:
        self.comm_rank = self.comm_rank.split()

    def generate_base_key(self, rank: str) -> str:
        """Returns a key that is equal on all ranks of the collective, and for both ends of a message."""
        ranks = ",".join(self.comm_rank)
        if not (self.src_rank or self.dest_rank or self.root_rank):
            return f"{self.primitive}_{self.group}_({ranks})"
        if self.primitive in _SENDS:
            return f"Send_Receive_{self.group}_({rank})->({self.dest_rank})_{self.input_shape}"
        if self.primitive in _RECEIVES:
            return f"Send_Receive_{self.group}_({self.src_rank})->({rank})_{self.output_shape}"
        named = {"commRank": ranks, "srcRank": self.src_rank, "destRank": self.dest_rank, "rootRank": self.root_rank}
        shown = [f"{name}:({value})" for name, value in named.items() if value or name == "commRank"]
        return "_".join([self.primitive, self.group, *shown])

    def generate_key(self, rank: str, count: int) -> str:
        """Returns the base key with the number of the occurrence."""
        return f"{self.generate_base_key(rank)}_{count}th"


class RankFolderParser:
    """Reads the tables of folders: `rank_N` folders, and folders that contain them."""

    REQUIRED_COLUMNS = [
        "index", "group", "comm_rank", "primitive", "src_rank", "dest_rank", "root_rank", "input_shape", "input_type", "output_shape",
        "output_type", "input_size", "output_size",
    ]

    def __init__(self, folders: str | list[str]) -> None:
        self.folders = [folders] if isinstance(folders, str) else folders
        self.result_map: dict[str, list[ExecuteOrder]] = {}
        self._rank_folders = [rank_folder for folder in self.folders for rank_folder in _rank_folders(folder)]
        names = [os.path.basename(folder) for folder in self._rank_folders]
        repeated = next((name for name in names if names.count(name) > 1), None)
        if repeated is not None:
            raise ValueError(translate("Duplicate rank folder detected: {name}. Each rank_x folder must be unique.").format(name=repeated))

    def parse(self) -> dict[str, list[ExecuteOrder]]:
        """Returns the rows of each rank whose table can be read; logs an error for each of the others."""
        for folder in self._rank_folders:
            rank = os.path.basename(folder).split("_")[1]
            _, orders = self.parse_rank_folder(os.path.join(folder, "execute_order"), rank)
            if orders:
                self.result_map[rank] = orders
        return self.result_map

    def parse_rank_folder(self, rank_folder_path: str, rank_id: str) -> tuple[str, list[ExecuteOrder] | None]:
        """Returns the rank and the rows of its table; None in place of the rows if the table is missing or has other columns."""
        path = os.path.join(rank_folder_path, _TABLE)
        longest = csv.field_size_limit(_LONGEST_FIELD)
        try:
            with open(path, encoding="utf-8", newline="") as file:
                reader = csv.DictReader(file)
                if reader.fieldnames == self.REQUIRED_COLUMNS:
                    fields = ExecuteOrder.__dataclass_fields__
                    return rank_id, [ExecuteOrder(**{name: row[name] or "" for name in fields}) for row in reader]
                text = translate("Invalid header in {path}. Skipping this file. Expected columns: {columns}.")
                logger.error(text.format(path=path, columns=", ".join(self.REQUIRED_COLUMNS)))
        except FileNotFoundError:
            logger.error(translate("No file {path}. Skipping rank {rank}.").format(path=path, rank=rank_id))
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            logger.error(translate("cannot read {path}: {error}").format(path=path, error=error))
        finally:
            csv.field_size_limit(longest)
        return rank_id, None


def _rank_folders(folder: str) -> list[str]:
    """Return the `rank_N` folders of a folder, or itself if it is one. Raises ValueError if there is none."""
    if not os.path.isabs(folder):
        raise ValueError(translate("Invalid path: {path}. Please provide an absolute path.").format(path=folder))
    if not os.path.exists(folder):
        raise ValueError(translate("Path does not exist: {path}. Ensure the path exists and is accessible.").format(path=folder))
    if os.path.isdir(folder) and os.path.basename(folder).startswith("rank_"):
        return [folder]
    if not os.path.isdir(folder):
        raise ValueError(translate("Invalid path: {path}. Please provide a folder.").format(path=folder))
    folders = sorted(entry.path for entry in os.scandir(folder) if entry.name.startswith("rank_") and entry.is_dir())
    if not folders:
        text = translate("No rank_x folders found in {path}. Ensure that it contains a folder named 'rank_x', where x is an integer.")
        raise ValueError(text.format(path=folder))
    return folders


def _ranks_of(key: str) -> set[str]:
    """Return the ranks of a key: those in its first two pairs of parentheses."""
    return {rank.strip() for ranks in _RANKS.findall(key)[:2] for rank in ranks.split(",")}


def find_missing_keys(keys_of: Mapping[str, list[str]]) -> Iterator[tuple[str, list[str]]]:
    """Yield each key of which some ranks have no list, with these ranks."""
    for key in dict.fromkeys(key for keys in keys_of.values() for key in keys):
        absent = sorted(_ranks_of(key) - keys_of.keys())
        if absent:
            yield key, absent


def find_one_sided_keys(keys_of: Mapping[str, list[str]], all_rank: bool) -> Iterator[tuple[str, str]]:
    """Yield each rank and key of its collectives that its list lacks. With `all_rank` only keys whose ranks all have lists count."""
    sets = {rank: set(keys) for rank, keys in keys_of.items()}
    for key in dict.fromkeys(key for keys in keys_of.values() for key in keys):
        ranks = _ranks_of(key)
        if all_rank and ranks - keys_of.keys():
            continue
        yield from ((rank, key) for rank in sorted(ranks & keys_of.keys()) if key not in sets[rank])


def detect_cycle_in_graph(ranks_map: Mapping[str, list[str]]) -> tuple[list[str] | None, list[str] | None]:
    """Returns a cycle in the orders of all ranks, and the rank of each of its steps (`rank a -> b`); (None, None) without a cycle."""
    successors: dict[str, list[str]] = {}
    rank_of: dict[tuple[str, str], str] = {}
    for rank, keys in ranks_map.items():
        for first, second in itertools.pairwise(keys):
            successors.setdefault(first, []).append(second)
            rank_of[first, second] = rank
    cycle = _find_cycle(successors)
    if cycle is None:
        return None, None
    return cycle, [f"{rank_of[step]} {step[0]} -> {step[1]}" for step in itertools.pairwise(cycle)]


def _find_cycle(successors: Mapping[str, Iterable[str]]) -> list[str] | None:
    """Search depth first; return the nodes of the first cycle, which begins and ends with the same node."""
    visited: set[str] = set()
    for start in successors:
        if start in visited:
            continue
        visited.add(start)
        path = {start: iter(successors[start])}
        while path:
            node = next(reversed(path))
            following = next(path[node], None)
            if following is None:
                del path[node]
            elif following in path:
                nodes = list(path)
                return [*nodes[nodes.index(following):], following]
            elif following not in visited:
                visited.add(following)
                path[following] = iter(successors.get(following, ()))
    return None


__all__ = ["ExecuteOrder", "RankFolderParser", "detect_cycle_in_graph", "find_missing_keys", "find_one_sided_keys"]
