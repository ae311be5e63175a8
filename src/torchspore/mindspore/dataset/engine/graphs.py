"""Common code of `GraphData` and `Graph`: nodes, edges, their neighbours, and samples and walks over them."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any, ClassVar

import numpy as np

from torchspore.base.suggest import closest
from torchspore.base.text import list_choices, message, short
from torchspore.context import effects
from torchspore.mindspore.dataset.core import config
from torchspore.mindspore.dataset.core.validator_helpers import check_bool, check_int, check_number, check_type, check_workers

NOBODY = -1
"""The id for a missing node."""
_MOST_HOPS = 6


class SamplingStrategy(IntEnum):
    """Sampling of neighbours: uniformly or by the weights of the edges; always with replacement."""

    RANDOM = 0
    EDGE_WEIGHT = 1


class OutputFormat(IntEnum):
    """Format of all neighbours: a row for each node, padded with -1; pairs; or offsets and one long row."""

    NORMAL = 0
    COO = 1
    CSR = 2


def check_working_mode(
    call: str, num_parallel_workers: Any, working_mode: Any, hostname: Any, port: Any, num_client: Any, auto_shutdown: Any
) -> None:
    """Check the arguments about servers. Raises ValueError unless `working_mode` is 'local': each process here stores its graph itself."""
    check_workers(call, num_parallel_workers)
    check_type(call, "hostname", hostname, str, "a str")
    check_int(call, "port", port, 1024, 65535)
    check_int(call, "num_client", num_client, 1, 255)
    check_bool(call, "auto_shutdown", auto_shutdown)
    if working_mode in ("client", "server"):
        hint = "write working_mode='local': each process reads the file itself"
        raise ValueError(message(f"{call}(working_mode={working_mode!r})", "'local'; there is no server of graphs here", hint=hint))
    if working_mode != "local":
        raise ValueError(message(f"{call}(working_mode={short(working_mode)})", "'local'"))
    if num_parallel_workers is not None:
        effects.note("data", f"{call}(num_parallel_workers={num_parallel_workers}): one thread reads the graph")
    if (hostname, port, num_client, auto_shutdown) != ("127.0.0.1", 50051, 1, True):
        effects.note("data", f"{call}(working_mode='local'): hostname, port, num_client and auto_shutdown mean nothing without a server")


class Sampler:
    """A graph in memory: ids are int32, as in MindSpore; edges lead from their source to their target."""

    def __init__(
        self, nodes: np.ndarray, node_types: Sequence[Any], edges: np.ndarray, edge_types: Sequence[Any], ends: np.ndarray,
        weights: np.ndarray,
    ) -> None:
        self._nodes, self._edges, self._ends = nodes.astype(np.int32), edges.astype(np.int32), ends.astype(np.int32).reshape(-1, 2)
        self._node_types, self._edge_types = np.asarray(node_types), np.asarray(edge_types)
        self._node_position = {int(node): position for position, node in enumerate(self._nodes)}
        self._edge_position = {int(edge): position for position, edge in enumerate(self._edges)}
        self._kind_of = dict(zip(self._nodes.tolist(), self._node_types.tolist(), strict=True))
        self._neighbors: dict[tuple[int, Any], list[int]] = {}
        self._weights: dict[tuple[int, Any], list[float]] = {}
        for (source, target), weight in zip(self._ends.tolist(), weights.tolist(), strict=True):
            key = (source, self._kind_of.get(target))
            self._neighbors.setdefault(key, []).append(target)
            self._weights.setdefault(key, []).append(weight)
        self._edge_of = {(source, target): int(edge) for (source, target), edge in zip(self._ends.tolist(), self._edges, strict=True)}
        self._draw = np.random.RandomState(config.fresh_seed() % 2**32)
        self._name = type(self).__name__

    _type_kind: ClassVar[type]
    """The Python type of the types of nodes and edges: int or str."""

    def _check_type_of(self, call: str, name: str, value: Any) -> None:
        check_type(call, name, value, self._type_kind, "an int" if self._type_kind is int else "a str")

    # Nodes and edges ---------------------------------------------------------------------------------------------------------------------

    def get_all_nodes(self, node_type: Any) -> np.ndarray:
        """Returns the ids of all nodes of a type. Raises TypeError for another kind of type, ValueError for an unknown one."""
        self._check_type_of("get_all_nodes", "node_type", node_type)
        return self._of_type(self._nodes, self._node_types, node_type, "node").copy()

    def get_all_edges(self, edge_type: Any) -> np.ndarray:
        """Returns the ids of all edges of a type. Raises TypeError for another kind of type, ValueError for an unknown one."""
        self._check_type_of("get_all_edges", "edge_type", edge_type)
        return self._of_type(self._edges, self._edge_types, edge_type, "edge").copy()

    def get_nodes_from_edges(self, edge_list: Any) -> np.ndarray:
        """Returns the source and the target of each edge, (N, 2). Raises ValueError for an unknown edge."""
        edges = self._ids("get_nodes_from_edges", "edge_list", edge_list)
        return self._ends[[self._lookup(self._edge_position, "edge", int(edge)) for edge in edges.reshape(-1)]].reshape(-1, 2)

    def get_edges_from_nodes(self, node_list: Any) -> np.ndarray:
        """Returns the edge between each pair (source, target), (N,). Raises ValueError if there is none."""
        check_type("get_edges_from_nodes", "node_list", node_list, (list, np.ndarray), "a list of pairs or an array (N, 2)")
        pairs = np.asarray(node_list)
        if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
            raise TypeError(message(f"get_edges_from_nodes({short(node_list)})", "pairs of ids"))
        return np.array([self._lookup(self._edge_of, "edge between", (int(source), int(target))) for source, target in pairs], np.int32)

    def _of_type(self, items: np.ndarray, types: np.ndarray, requested_type: Any, kind: str) -> np.ndarray:
        existing_types = sorted(set(types.tolist()))
        if requested_type not in existing_types:
            expected = list_choices(existing_types) if existing_types else "a type; there is none"
            raise ValueError(message(f"{self._name}: {kind} type {requested_type!r}", expected))
        return items[types == requested_type]

    def _lookup(self, positions: dict[Any, int], kind: str, key: Any) -> int:
        if key not in positions:
            raise ValueError(message(f"{self._name}: {kind} {key}", "one of the graph"))
        return positions[key]

    @staticmethod
    def _ids(call: str, name: str, value: Any) -> np.ndarray:
        """Return ids as an array. Raises TypeError for anything but a list or array of ints of one shape."""
        check_type(call, name, value, (list, np.ndarray), "a list or an array of ids")
        try:
            ids = np.asarray(value)
        except ValueError:
            ids = np.empty(0, object)
        if ids.dtype.kind not in "iu":
            raise TypeError(message(f"{call}({name}={short(value)})", "a list or an array of ints"))
        return ids

    # Neighbours --------------------------------------------------------------------------------------------------------------------------

    def get_all_neighbors(self, node_list: Any, neighbor_type: Any, output_format: OutputFormat = OutputFormat.NORMAL) -> Any:
        """Returns all neighbours of a type: rows (node, neighbours, -1 ...); COO: pairs (N, 2); CSR: offsets and neighbours."""
        self._check_type_of("get_all_neighbors", "neighbor_type", neighbor_type)
        check_type("get_all_neighbors", "output_format", output_format, OutputFormat, "a member of OutputFormat")
        self._of_type(self._nodes, self._node_types, neighbor_type, "node")
        nodes = self._checked_nodes("get_all_neighbors", node_list)
        neighbours = [self._neighbors.get((node, neighbor_type), []) for node in nodes]
        if output_format is OutputFormat.COO:
            pairs = [(node, other) for node, others in zip(nodes, neighbours, strict=True) for other in others]
            return np.array(pairs, np.int32).reshape(-1, 2)
        if output_format is OutputFormat.CSR:
            ends = np.cumsum([0, *map(len, neighbours)])[:-1]
            return ends.astype(np.int32), np.array([other for others in neighbours for other in others], np.int32)
        width = max(map(len, neighbours), default=0)
        rows = [[node, *others, *[NOBODY] * (width - len(others))] for node, others in zip(nodes, neighbours, strict=True)]
        return np.array(rows, np.int32).reshape(-1, width + 1)

    def _checked_nodes(self, call: str, node_list: Any) -> list[int]:
        nodes = self._ids(call, "node_list", node_list).reshape(-1).tolist()
        if not nodes:
            raise ValueError(message(f"{call}(node_list={short(node_list)})", "at least one node"))
        for node in nodes:
            self._lookup(self._node_position, "node", node)
        return nodes

    def get_sampled_neighbors(
        self, node_list: Any, neighbor_nums: Any, neighbor_types: Any, strategy: SamplingStrategy = SamplingStrategy.RANDOM
    ) -> np.ndarray:
        """Draws neighbours for each node, hop by hop with replacement: rows of (node, first hop, second hop, ...)."""
        call = "get_sampled_neighbors"
        check_type(call, "strategy", strategy, SamplingStrategy, "a member of SamplingStrategy")
        counts = self._ids(call, "neighbor_nums", neighbor_nums).reshape(-1).tolist()
        check_type(call, "neighbor_types", neighbor_types, (list, np.ndarray), "a list of types")
        types = np.asarray(neighbor_types).tolist()
        if not 1 <= len(counts) <= _MOST_HOPS or len(counts) != len(types):
            raise ValueError(message(f"{call}({short(counts)}, {short(types)})", f"as many numbers as types, from 1 to {_MOST_HOPS}"))
        for count in counts:
            check_int(call, "neighbor_nums", count, 1)
        for kind in types:
            self._of_type(self._nodes, self._node_types, kind, "node")
        rows = []
        for node in self._checked_nodes(call, node_list):
            row, last = [node], [node]
            for count, kind in zip(counts, types, strict=True):
                last = [other for last_node in last for other in self._drawn(last_node, kind, count, strategy)]
                row += last
            rows.append(row)
        return np.array(rows, np.int32)

    def _drawn(self, node: int, kind: Any, count: int, strategy: SamplingStrategy) -> list[int]:
        """Draw `count` neighbours with replacement, -1 if there is none."""
        neighbours = self._neighbors.get((node, kind))
        if not neighbours:
            return [NOBODY] * count
        chances = None
        if strategy is SamplingStrategy.EDGE_WEIGHT:
            chances = _shares(self._weights[node, kind])
        return self._draw.choice(neighbours, count, p=chances).tolist()

    def get_neg_sampled_neighbors(self, node_list: Any, neg_neighbor_num: int, neg_neighbor_type: Any) -> np.ndarray:
        """Draws nodes of a type that are not neighbours, none twice before all were drawn: rows of (node, drawn nodes)."""
        call, count, kind = "get_neg_sampled_neighbors", neg_neighbor_num, neg_neighbor_type
        self._check_type_of(call, "neg_neighbor_type", kind)
        check_int(call, "neg_neighbor_num", count, 1)
        every = self._of_type(self._nodes, self._node_types, kind, "node")
        rows = []
        for node in self._checked_nodes(call, node_list):
            near = {node, *self._neighbors.get((node, kind), ())}
            far = np.array([other for other in every.tolist() if other not in near], np.int32)
            passes = [self._draw.permutation(far) for _ in range(-(-count // len(far)))] if len(far) else [np.full(count, NOBODY)]
            rows.append([node, *np.concatenate(passes)[:count].tolist()])
        return np.array(rows, np.int32)

    # Walks -------------------------------------------------------------------------------------------------------------------------------

    def random_walk(
        self, target_nodes: Any, meta_path: Any, step_home_param: float = 1.0, step_away_param: float = 1.0, default_node: int = NOBODY
    ) -> np.ndarray:
        """Draws node2vec's walks (Grover and Leskovec 2016), (N, 1 + steps), from each node through nodes of the types in `meta_path`.

        A step back weighs 1 / `step_home_param`, a step away from the last node's neighbours 1 / `step_away_param`; `default_node` fills
        dead ends.
        """
        call = "random_walk"
        check_type(call, "meta_path", meta_path, (list, np.ndarray), "a list of node types")
        types = np.asarray(meta_path).tolist()
        for kind in types:
            self._of_type(self._nodes, self._node_types, kind, "node")
        for name, value in (("step_home_param", step_home_param), ("step_away_param", step_away_param)):
            check_number(call, name, value, 0, float("inf"), above=True)
        check_type(call, "default_node", default_node, int, "an int")
        if default_node < NOBODY:
            raise ValueError(message(f"{call}(default_node={default_node})", "an int from -1"))
        walks = []
        for node in self._checked_nodes(call, target_nodes):
            walk = [node]
            for kind in types:
                walk.append(self._step(walk, kind, step_home_param, step_away_param, default_node))
            walks.append(walk)
        return np.array(walks, np.int32)

    def _step(self, walk: list[int], kind: Any, home: float, away: float, default_node: int) -> int:
        neighbours = self._neighbors.get((walk[-1], kind))
        if not neighbours:
            return default_node
        weights = self._weights[walk[-1], kind]
        if len(walk) > 1:
            before = walk[-2]
            near = set(self._neighbors.get((before, kind), ()))
            weights = [
                weight / (home if other == before else 1 if other in near else away)
                for other, weight in zip(neighbours, weights, strict=True)
            ]
        return int(self._draw.choice(neighbours, p=_shares(weights)))


def _shares(weights: Sequence[float]) -> np.ndarray | None:
    """Return weights as probabilities; None, for a uniform draw, if all are 0."""
    values = np.asarray(weights, np.float64)
    total = values.sum()
    return values / total if total > 0 else None


def features(
    call: str, ids: np.ndarray, feature_types: Any, positions: dict[int, int], find: Callable[[Any], tuple[np.ndarray, dict[int, int]]],
    types: Sequence[Any],
) -> list[np.ndarray]:
    """Return an array for each feature type, with the ids' shape and the feature's; zeros for ids that are unknown or lack it."""
    check_type(call, "feature_types", feature_types, (list, np.ndarray), "a list of feature types")
    results = []
    for kind in np.asarray(feature_types, object).tolist():
        if type(kind) is not type(next(iter(types), kind)):
            raise TypeError(message(f"{call}: feature type {kind!r}", f"one of the type of {list_choices(types)}"))
        if kind not in types:
            near = closest(kind, types) if isinstance(kind, str) else None
            hint = f"did you mean {near!r}?" if near else None
            raise ValueError(message(f"{call}: feature type {kind!r}", list_choices(types), hint=hint))
        values, rows = find(kind)
        flat = np.zeros((ids.size, *values.shape[1:]), values.dtype)
        for number, item_id in enumerate(ids.reshape(-1).tolist()):
            row = rows.get(positions.get(item_id, NOBODY))
            if row is not None:
                flat[number] = values[row]
        results.append(flat.reshape(*ids.shape, *values.shape[1:]))
    return results
