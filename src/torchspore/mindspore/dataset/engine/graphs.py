"""What `GraphData` and `Graph` share: nodes, edges, their neighbours, and samples and walks over them."""
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
"""The id that stands where there is no node."""
_MOST_HOPS = 6


class SamplingStrategy(IntEnum):
    """How neighbours are drawn: each as likely, or by the weights of the edges; always with putting back."""

    RANDOM = 0
    EDGE_WEIGHT = 1


class OutputFormat(IntEnum):
    """How all neighbours are given: a row for each node, filled up with -1; pairs; or offsets and one long row."""

    NORMAL = 0
    COO = 1
    CSR = 2


def check_working_mode(
    call: str, num_parallel_workers: Any, working_mode: Any, hostname: Any, port: Any, num_client: Any, auto_shutdown: Any
) -> None:
    """Checks what is said of servers. Raises ValueError for all but 'local': each process here holds its graph itself."""
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
    """A graph in memory: ids are int32, as MindSpore gives them; edges lead from their source to their target."""

    def __init__(
        self, nodes: np.ndarray, node_types: Sequence[Any], edges: np.ndarray, edge_types: Sequence[Any], ends: np.ndarray,
        weights: np.ndarray,
    ) -> None:
        self._nodes, self._edges, self._ends = nodes.astype(np.int32), edges.astype(np.int32), ends.astype(np.int32).reshape(-1, 2)
        self._node_types, self._edge_types = np.asarray(node_types), np.asarray(edge_types)
        self._node_place = {int(node): place for place, node in enumerate(self._nodes)}
        self._edge_place = {int(edge): place for place, edge in enumerate(self._edges)}
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
    """What types of nodes and edges are: int or str."""

    def _check_type_of(self, call: str, name: str, value: Any) -> None:
        check_type(call, name, value, self._type_kind, "an int" if self._type_kind is int else "a str")

    # What there is -----------------------------------------------------------------------------------------------------------------------

    def get_all_nodes(self, node_type: Any) -> np.ndarray:
        """The ids of all nodes of a type. Raises TypeError for another kind of type, ValueError for one that is not there."""
        self._check_type_of("get_all_nodes", "node_type", node_type)
        return self._of_type(self._nodes, self._node_types, node_type, "node").copy()

    def get_all_edges(self, edge_type: Any) -> np.ndarray:
        """The ids of all edges of a type. Raises TypeError for another kind of type, ValueError for one that is not there."""
        self._check_type_of("get_all_edges", "edge_type", edge_type)
        return self._of_type(self._edges, self._edge_types, edge_type, "edge").copy()

    def get_nodes_from_edges(self, edge_list: Any) -> np.ndarray:
        """The source and the target of each edge, (N, 2). Raises ValueError for an edge that is not there."""
        edges = self._ids("get_nodes_from_edges", "edge_list", edge_list)
        return self._ends[[self._known(self._edge_place, "edge", int(edge)) for edge in edges.reshape(-1)]].reshape(-1, 2)

    def get_edges_from_nodes(self, node_list: Any) -> np.ndarray:
        """The edge between each pair (source, target), (N,). Raises ValueError where there is none."""
        check_type("get_edges_from_nodes", "node_list", node_list, (list, np.ndarray), "a list of pairs or an array (N, 2)")
        pairs = np.asarray(node_list)
        if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
            raise TypeError(message(f"get_edges_from_nodes({short(node_list)})", "pairs of ids"))
        return np.array([self._known(self._edge_of, "edge between", (int(source), int(target))) for source, target in pairs], np.int32)

    def _of_type(self, items: np.ndarray, types: np.ndarray, wanted: Any, what: str) -> np.ndarray:
        known = sorted(set(types.tolist()))
        if wanted not in known:
            raise ValueError(message(f"{self._name}: {what} type {wanted!r}", list_choices(known) if known else "a type; there is none"))
        return items[types == wanted]

    def _known(self, places: dict[Any, int], what: str, key: Any) -> int:
        if key not in places:
            raise ValueError(message(f"{self._name}: {what} {key}", "one of the graph"))
        return places[key]

    @staticmethod
    def _ids(call: str, name: str, value: Any) -> np.ndarray:
        """Ids as an array. Raises TypeError for what is no list or array of ints of one shape."""
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
        """All neighbours of a type: a row (node, neighbours, -1 ...) for each node; COO: pairs (N, 2); CSR: offsets and neighbours."""
        self._check_type_of("get_all_neighbors", "neighbor_type", neighbor_type)
        check_type("get_all_neighbors", "output_format", output_format, OutputFormat, "a member of OutputFormat")
        self._of_type(self._nodes, self._node_types, neighbor_type, "node")
        nodes = self._checked_nodes("get_all_neighbors", node_list)
        found = [self._neighbors.get((node, neighbor_type), []) for node in nodes]
        if output_format is OutputFormat.COO:
            return np.array([(node, other) for node, those in zip(nodes, found, strict=True) for other in those], np.int32).reshape(-1, 2)
        if output_format is OutputFormat.CSR:
            ends = np.cumsum([0, *map(len, found)])[:-1]
            return ends.astype(np.int32), np.array([other for those in found for other in those], np.int32)
        width = max(map(len, found), default=0)
        rows = [[node, *those, *[NOBODY] * (width - len(those))] for node, those in zip(nodes, found, strict=True)]
        return np.array(rows, np.int32).reshape(-1, width + 1)

    def _checked_nodes(self, call: str, node_list: Any) -> list[int]:
        nodes = self._ids(call, "node_list", node_list).reshape(-1).tolist()
        if not nodes:
            raise ValueError(message(f"{call}(node_list={short(node_list)})", "at least one node"))
        for node in nodes:
            self._known(self._node_place, "node", node)
        return nodes

    def get_sampled_neighbors(
        self, node_list: Any, neighbor_nums: Any, neighbor_types: Any, strategy: SamplingStrategy = SamplingStrategy.RANDOM
    ) -> np.ndarray:
        """Neighbours drawn for each node, hop by hop with putting back: rows of (node, first hop, second hop, ...)."""
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
                last = [other for one in last for other in self._drawn(one, kind, count, strategy)]
                row += last
            rows.append(row)
        return np.array(rows, np.int32)

    def _drawn(self, node: int, kind: Any, count: int, strategy: SamplingStrategy) -> list[int]:
        """`count` neighbours with putting back, -1 where there is none."""
        those = self._neighbors.get((node, kind))
        if not those:
            return [NOBODY] * count
        chances = None
        if strategy is SamplingStrategy.EDGE_WEIGHT:
            chances = _shares(self._weights[node, kind])
        return self._draw.choice(those, count, p=chances).tolist()

    def get_neg_sampled_neighbors(self, node_list: Any, neg_neighbor_num: int, neg_neighbor_type: Any) -> np.ndarray:
        """Nodes of a type drawn among those that are no neighbours, none twice before all were drawn: rows of (node, those)."""
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
        """node2vec's walks (Grover and Leskovec 2016), (N, 1 + steps), from each node through nodes of the types in `meta_path`.

        A step home weighs 1 / `step_home_param`, one away from what was near 1 / `step_away_param`; `default_node` stands at dead ends.
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
        those = self._neighbors.get((walk[-1], kind))
        if not those:
            return default_node
        weights = self._weights[walk[-1], kind]
        if len(walk) > 1:
            before = walk[-2]
            near = set(self._neighbors.get((before, kind), ()))
            weights = [
                weight / (home if other == before else 1 if other in near else away) for other, weight in zip(those, weights, strict=True)
            ]
        return int(self._draw.choice(those, p=_shares(weights)))


def _shares(weights: Sequence[float]) -> np.ndarray | None:
    """Weights as chances; None, each as likely, where all are 0."""
    values = np.asarray(weights, np.float64)
    total = values.sum()
    return values / total if total > 0 else None


def features(
    call: str, ids: np.ndarray, wanted: Any, places: dict[int, int], find: Callable[[Any], tuple[np.ndarray, dict[int, int]]],
    types: Sequence[Any],
) -> list[np.ndarray]:
    """For each feature type an array of the ids' shape and the feature's; zeros for ids that are unknown or lack it."""
    check_type(call, "feature_types", wanted, (list, np.ndarray), "a list of feature types")
    found = []
    for kind in np.asarray(wanted, object).tolist():
        if type(kind) is not type(next(iter(types), kind)):
            raise TypeError(message(f"{call}: feature type {kind!r}", f"one of the type of {list_choices(types)}"))
        if kind not in types:
            near = closest(kind, types) if isinstance(kind, str) else None
            hint = f"did you mean {near!r}?" if near else None
            raise ValueError(message(f"{call}: feature type {kind!r}", list_choices(types), hint=hint))
        values, rows = find(kind)
        flat = np.zeros((ids.size, *values.shape[1:]), values.dtype)
        for number, one in enumerate(ids.reshape(-1).tolist()):
            row = rows.get(places.get(one, NOBODY))
            if row is not None:
                flat[number] = values[row]
        found.append(flat.reshape(*ids.shape, *values.shape[1:]))
    return found
