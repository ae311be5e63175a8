"""Graphs for training: from MindRecord files or arrays, and datasets of several graphs."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from torchspore.base.files import atomic_file
from torchspore.base.text import message, short
from torchspore.errors import DataDamaged
from torchspore.mindspore.dataset.core.validator_helpers import check_type
from torchspore.mindspore.dataset.engine.datasets_user_defined import GeneratorDataset
from torchspore.mindspore.dataset.engine.declarations import check_folder
from torchspore.mindspore.dataset.engine.graphs import OutputFormat, Sampler, SamplingStrategy, check_working_mode, features
from torchspore.mindspore.mindrecord.shards import Shards, all_shards
from torchspore.public_names import missing

_FIELDS = ("first_id", "second_id", "third_id", "attribute", "type", "node_feature_index", "edge_feature_index")
_Rows = dict[int, int]


class GraphData(Sampler):
    """A graph from MindRecord files in a graph schema; edges lead from their source to their target.

    Each row is a node (attribute 'n': first_id is its id) or an edge ('e': first_id is its id, second_id its source, third_id its target)
    with a type, an int, perhaps a weight, and `node_feature_index` or `edge_feature_index`, the numbers k of its features `node_feature_k`
    or `edge_feature_k`. Only 'local' is a `working_mode` here. Raises FileNotFoundError and FileFormatError (a ValueError): both name the
    file.
    """

    _type_kind = int

    def __init__(
        self, dataset_file: str, num_parallel_workers: int | None = None, working_mode: str = "local", hostname: str = "127.0.0.1",
        port: int = 50051, num_client: int = 1, auto_shutdown: bool = True,
    ) -> None:
        check_type("GraphData", "dataset_file", dataset_file, (str, Path), "a path")
        check_working_mode("GraphData", num_parallel_workers, working_mode, hostname, port, num_client, auto_shutdown)
        path = Path(dataset_file).expanduser()
        self._shards = Shards(all_shards(path))
        schema = self._shards.header.schema
        lacking = [name for name in _FIELDS if name not in schema]
        if lacking:
            raise DataDamaged(message(f"{path}: no field {lacking[0]!r}", f"a graph: the fields {', '.join(_FIELDS)}"))
        self._feature_rows: dict[str, dict[int, _Rows]] = {"node": {}, "edge": {}}
        nodes, edges = self._read(path, [name for name in (*_FIELDS, "weight") if name in schema])
        super().__init__(
            np.array([node[0] for node in nodes]), [node[1] for node in nodes],
            np.array([edge[0] for edge in edges]), [edge[1] for edge in edges],
            np.array([edge[2] for edge in edges]).reshape(-1, 2), np.array([edge[3] for edge in edges], np.float64),
        )

    def _read(self, path: Path, columns: list[str]) -> tuple[list[Any], list[Any]]:
        """Read the nodes and the edges; for features, only the number of their row in the files."""
        nodes: list[Any] = []
        edges: list[Any] = []
        for number in range(len(self._shards)):
            row = self._shards.row(number, columns)
            if row["attribute"] not in ("n", "e"):
                raise DataDamaged(message(f"{path}, row {number}: attribute {short(row['attribute'])}", "'n' or 'e'"))
            kind, entries = ("node", nodes) if row["attribute"] == "n" else ("edge", edges)
            for feature in row[f"{kind}_feature_index"].reshape(-1).tolist():
                if feature != -1:
                    self._feature_rows[kind].setdefault(feature, {})[len(entries)] = number
            more = () if kind == "node" else ((row["second_id"], row["third_id"]), row.get("weight", 1.0))
            entries.append((row["first_id"], row["type"], *more))
        return nodes, edges

    def _feature(self, kind: str, feature: int) -> tuple[np.ndarray, _Rows]:
        """Return the values of a feature, and the node or edge of each; read once, on first use."""
        rows = self._feature_rows[kind][feature]
        name = f"{kind}_feature_{feature}"
        if name not in self._feature_cache:
            values = [self._shards.row(number, [name])[name] for number in rows.values()]
            arrays = [np.asarray(value).reshape(-1) for value in values]
            if len({array.shape for array in arrays}) != 1:
                raise DataDamaged(message(f"{self._shards.shards[0].path}: {name} of several lengths", "one length"))
            stacked = np.stack(arrays)
            self._feature_cache[name] = stacked[:, 0] if stacked.shape[1] == 1 else stacked
        return self._feature_cache[name], {owner: index for index, owner in enumerate(rows)}

    @property
    def _feature_cache(self) -> dict[str, np.ndarray]:
        return self.__dict__.setdefault("_feature_values", {})

    def get_node_feature(self, node_list: Any, feature_types: Any) -> list[np.ndarray]:
        """Returns an array for each feature type, with the list's shape and the feature's; zeros for unknown ids."""
        ids = self._ids("get_node_feature", "node_list", node_list)
        types = sorted(self._feature_rows["node"])
        return features("get_node_feature", ids, feature_types, self._node_position, lambda kind: self._feature("node", kind), types)

    def get_edge_feature(self, edge_list: Any, feature_types: Any) -> list[np.ndarray]:
        """Returns an array for each feature type, with the list's shape and the feature's; zeros for unknown ids."""
        ids = self._ids("get_edge_feature", "edge_list", edge_list)
        types = sorted(self._feature_rows["edge"])
        return features("get_edge_feature", ids, feature_types, self._edge_position, lambda kind: self._feature("edge", kind), types)

    def graph_info(self) -> dict[str, Any]:
        """Returns the types of nodes, edges and features, and the number of nodes and edges of each type."""
        return {
            **_counted(self._node_types, self._edge_types), "node_feature_type": sorted(self._feature_rows["node"]),
            "edge_feature_type": sorted(self._feature_rows["edge"]),
        }



def _counted(node_types: np.ndarray, edge_types: np.ndarray) -> dict[str, Any]:
    nodes, edges = node_types.tolist(), edge_types.tolist()
    return {
        "node_type": sorted(set(nodes)), "edge_type": sorted(set(edges)),
        "node_num": {kind: nodes.count(kind) for kind in sorted(set(nodes))},
        "edge_num": {kind: edges.count(kind) for kind in sorted(set(edges))},
    }


class Graph(Sampler):
    """A graph of arrays: `edges` (2, N) of nodes numbered from 0; edges are numbered from 0 too.

    `node_feat`, `edge_feat` and `graph_feat` are dicts from the name of a feature to an array with a row for each node or edge, or for the
    graph any. `node_type` and `edge_type` have a str for each, '0' by default. Where `edge_feat` has 'weight', EDGE_WEIGHT draws by it.
    """

    _type_kind = str

    def __init__(
        self, edges: Any, node_feat: dict[str, np.ndarray] | None = None, edge_feat: dict[str, np.ndarray] | None = None,
        graph_feat: dict[str, np.ndarray] | None = None, node_type: Any = None, edge_type: Any = None,
        num_parallel_workers: int | None = None, working_mode: str = "local", hostname: str = "127.0.0.1", port: int = 50051,
        num_client: int = 1, auto_shutdown: bool = True,
    ) -> None:
        check_working_mode("Graph", num_parallel_workers, working_mode, hostname, port, num_client, auto_shutdown)
        ends = self._ids("Graph", "edges", edges)
        if ends.ndim != 2 or ends.shape[0] != 2 or (ends.size and ends.min() < 0):
            raise ValueError(message(f"Graph(edges of shape {list(ends.shape)})", "shape [2, number of edges], of nodes from 0"))
        self._node_feat, self._edge_feat = _feature_dict("node_feat", node_feat), _feature_dict("edge_feat", edge_feat)
        self._graph_feat = _feature_dict("graph_feat", graph_feat)
        counts = [len(value) for value in self._node_feat.values()] + ([len(node_type)] if node_type is not None else [])
        count = max([int(ends.max(initial=-1)) + 1, *counts])
        for name, value in self._node_feat.items():
            _check_length(f"node_feat[{name!r}]", value, count, "nodes")
        for name, value in self._edge_feat.items():
            _check_length(f"edge_feat[{name!r}]", value, ends.shape[1], "edges")
        number = ends.shape[1]
        weights = np.asarray(self._edge_feat.get("weight", np.ones(number)), np.float64).reshape(number, -1)[:, :1].reshape(-1)
        super().__init__(
            np.arange(count), _types("node_type", node_type, count), np.arange(number), _types("edge_type", edge_type, number), ends.T,
            weights,
        )

    def get_node_feature(self, node_list: Any, feature_types: Any) -> list[np.ndarray]:
        """Returns an array for each feature type, with the list's shape and the feature's; zeros for unknown ids."""
        ids = self._ids("get_node_feature", "node_list", node_list)
        return _by_name("get_node_feature", ids, feature_types, self._node_feat, self._node_position)

    def get_edge_feature(self, edge_list: Any, feature_types: Any) -> list[np.ndarray]:
        """Returns an array for each feature type, with the list's shape and the feature's; zeros for unknown ids."""
        ids = self._ids("get_edge_feature", "edge_list", edge_list)
        return _by_name("get_edge_feature", ids, feature_types, self._edge_feat, self._edge_position)

    def get_graph_feature(self, feature_types: Any) -> list[np.ndarray]:
        """Returns the features of the graph itself, as they were passed."""
        values_of_graph = {name: value[None] for name, value in self._graph_feat.items()}
        return _by_name("get_graph_feature", np.array(0), feature_types, values_of_graph, {0: 0})

    def graph_info(self) -> dict[str, Any]:
        """Returns the types of nodes, edges and features, and the number of nodes and edges of each type."""
        return {
            **_counted(self._node_types, self._edge_types), "node_feature_type": list(self._node_feat),
            "edge_feature_type": list(self._edge_feat), "graph_feature_type": list(self._graph_feat),
        }

    def _arrays(self) -> dict[str, np.ndarray]:
        """Return all data for a file."""
        parts = {"node_feat": self._node_feat, "edge_feat": self._edge_feat, "graph_feat": self._graph_feat}
        named = {f"{part}/{name}": value for part, values in parts.items() for name, value in values.items()}
        return {"edges": self._ends.T, "node_type": self._node_types, "edge_type": self._edge_types, **named}


def _feature_dict(name: str, value: Any) -> dict[str, np.ndarray]:
    if value is None:
        return {}
    check_type("Graph", name, value, dict, "a dict from str to array")
    for key, array in value.items():
        check_type("Graph", name, key, str, "a dict from str to array")
        check_type("Graph", f"{name}[{key!r}]", array, np.ndarray, "an array")
        if array.dtype.kind not in "biuf":
            raise TypeError(message(f"Graph({name}[{key!r}]) of {array.dtype}", "numbers"))
    return dict(value)


def _check_length(subject: str, value: np.ndarray, count: int, of: str) -> None:
    if value.ndim < 1 or len(value) != count:
        raise ValueError(message(f"Graph({subject}) of shape {list(value.shape)}", f"{count} rows, one for each of the {of}"))


def _types(name: str, value: Any, count: int) -> list[str]:
    if value is None:
        return ["0"] * count
    check_type("Graph", name, value, (list, np.ndarray), "a list of str")
    types = np.asarray(value).reshape(-1)
    if types.dtype.kind not in "SU" or len(types) != count:
        raise ValueError(message(f"Graph({name}={short(value)})", f"{count} str"))
    return types.astype(str).tolist()


def _by_name(call: str, ids: np.ndarray, feature_types: Any, values: dict[str, np.ndarray], positions: dict[int, int]) -> list[np.ndarray]:
    identity = {position: position for position in positions.values()}
    return features(call, ids, feature_types, positions, lambda kind: (values[kind], identity), list(values))


class InMemoryGraphDataset(GeneratorDataset):
    """Base of a dataset of graphs: a subclass creates them in `process` and puts them into `self.graphs`.

    Its `__getitem__` and `__len__` return the rows. `save` writes the result of `process` into the folder `save_dir` of `data_dir`. If it
    exists already, `load` reads it instead.
    """

    def __init__(
        self, data_dir: str, save_dir: str = "./processed", column_names: Any = "graph", num_samples: int | None = None,
        num_parallel_workers: int = 1, shuffle: bool | None = None, num_shards: int | None = None, shard_id: int | None = None,
        python_multiprocessing: bool = True, max_rowsize: int = 6,
    ) -> None:
        folder = check_folder(type(self).__name__, data_dir, "data_dir")
        check_type(type(self).__name__, "save_dir", save_dir, str, "a str")
        self.data_dir, self.save_dir = str(folder), str(folder / save_dir)
        self.processed_path = str(folder / save_dir / "data_{}.npz")
        self.graphs: list[Graph] = []
        if self._processed():
            self.load()
        else:
            self.process()
            self.save()
        super().__init__(
            _RowsOf(self), column_names, num_samples=num_samples, num_parallel_workers=num_parallel_workers, shuffle=shuffle,
            num_shards=num_shards, shard_id=shard_id, python_multiprocessing=python_multiprocessing,
            max_rowsize=None if max_rowsize == 6 else max_rowsize,
        )

    def _processed(self) -> list[Path]:
        return sorted(Path(self.save_dir).glob("data_*.npz"), key=lambda path: (len(path.name), path.name))

    def process(self) -> None:
        """Creates the graphs; a subclass implements it."""
        raise NotImplementedError(message(f"{type(self).__name__}.process", "a method that puts Graphs into self.graphs"))

    def save(self) -> None:
        """Writes the graphs into `save_dir`, one .npz file each."""
        Path(self.save_dir).mkdir(parents=True, exist_ok=True)
        for number, graph in enumerate(self.graphs):
            check_type("save", f"graphs[{number}]", graph, Graph, "a Graph", hint="write save and load for graphs of another kind")
            with atomic_file(Path(self.processed_path.format(number))) as file:
                np.savez(file, **graph._arrays())  # type: ignore[arg-type]

    def load(self) -> None:
        """Reads the graphs that `save` wrote. Raises FileFormatError (a ValueError), which names an invalid file."""
        self.graphs = [_loaded(path) for path in self._processed()]


class _RowsOf:
    """Yields the rows that the methods of a subclass return."""

    def __init__(self, dataset: InMemoryGraphDataset) -> None:
        self._dataset = dataset

    def __len__(self) -> int:
        kind = type(self._dataset)
        return len(self._dataset.graphs) if kind.__len__ is GeneratorDataset.__len__ else kind.__len__(self._dataset)

    def __getitem__(self, index: int) -> Any:
        rows = getattr(type(self._dataset), "__getitem__", None)
        if rows is None:
            raise NotImplementedError(message(f"{type(self._dataset).__name__}.__getitem__", "a method that makes a row of a graph"))
        return rows(self._dataset, index)


def _loaded(path: Path) -> Graph:
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        parts: dict[str, dict[str, np.ndarray]] = {"node_feat": {}, "edge_feat": {}, "graph_feat": {}}
        for name, value in arrays.items():
            part, mark, feature = name.partition("/")
            if mark:
                parts[part][feature] = value
        return Graph(arrays["edges"], **parts, node_type=arrays["node_type"], edge_type=arrays["edge_type"])
    except MemoryError:
        raise
    except Exception as error:  # zipfile and NumPy raise any error
        raise DataDamaged(message(f"{path}: {type(error).__name__}: {error!s:.100}", "a graph that save wrote")) from None


__getattr__ = missing(__name__)
__all__ = ["Graph", "GraphData", "InMemoryGraphDataset", "OutputFormat", "SamplingStrategy"]
