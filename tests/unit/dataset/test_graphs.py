"""Graphs: out of MindRecord files as 1.x and 2.0 wrote them, out of arrays, and datasets of them."""
from __future__ import annotations

import os
import pickle
import sys
from collections import Counter
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import mindspore.dataset as ds
import numpy as np
import pytest
from mindspore.dataset import Graph, GraphData, InMemoryGraphDataset, OutputFormat, SamplingStrategy
from mindspore.mindrecord import FileWriter

SCHEMA = {
    "first_id": {"type": "int64"}, "second_id": {"type": "int64"}, "third_id": {"type": "int64"}, "attribute": {"type": "string"},
    "type": {"type": "int32"}, "weight": {"type": "float32"}, "node_feature_index": {"type": "int32", "shape": [-1]},
    "edge_feature_index": {"type": "int32", "shape": [-1]}, "node_feature_1": {"type": "float32", "shape": [-1]},
    "node_feature_2": {"type": "int32", "shape": [-1]}, "edge_feature_1": {"type": "float32", "shape": [-1]},
}
USERS, ITEMS = (101, 102, 103), (201, 202)
EDGES = {1: (101, 201), 2: (101, 202), 3: (102, 201), 40: (201, 101), 41: (202, 101), 42: (201, 102)}
"""From users to what they bought, and back; user 103 bought nothing."""


def write(path: Path, fields: Any = SCHEMA, **more: Any) -> str:
    none = np.array([-1], np.int32)
    empty = {"node_feature_1": np.zeros(3, np.float32), "node_feature_2": np.zeros(1, np.int32), "edge_feature_1": np.zeros(1, np.float32)}
    rows: list[dict[str, Any]] = [
        {
            **empty, "first_id": node, "second_id": 0, "third_id": 0, "attribute": "n", "type": node // 100, "weight": 1.0,
            "node_feature_index": np.array([1, 2] if node != 202 else [1], np.int32), "edge_feature_index": none,
            "node_feature_1": np.array([node, node + 0.5, 0], np.float32), "node_feature_2": np.array([node % 10], np.int32),
        }
        for node in (*USERS, *ITEMS)
    ]
    rows += [
        {
            **empty, "first_id": edge, "second_id": source, "third_id": target, "attribute": "e", "type": 0, "weight": edge % 10 / 2,
            "node_feature_index": none, "edge_feature_index": np.array([1], np.int32), "edge_feature_1": np.array([edge / 4], np.float32),
        }
        for edge, (source, target) in EDGES.items()
    ]
    writer = FileWriter(str(path), 2, overwrite=True)
    writer.set_header_size(1 << 14)
    writer.set_page_size(1 << 15)
    writer.add_schema(fields)
    writer.write_raw_data([{name: {**row, **more}[name] for name in fields} for row in rows])
    writer.commit()
    return f"{path}0"


@pytest.fixture
def graph(tmp_path: Path) -> GraphData:
    ds.config.set_seed(7)
    return GraphData(write(tmp_path / "graph"))


def test_nodes_edges_and_their_descriptions(graph: GraphData) -> None:
    assert graph.get_all_nodes(1).tolist() == list(USERS) and graph.get_all_nodes(2).dtype == np.int32
    assert graph.get_all_edges(0).tolist() == list(EDGES)
    assert graph.get_nodes_from_edges([2, 41]).tolist() == [[101, 202], [202, 101]]
    assert graph.get_edges_from_nodes([(101, 202), (201, 102)]).tolist() == [2, 42]
    assert graph.graph_info() == {
        "node_type": [1, 2], "edge_type": [0], "node_num": {1: 3, 2: 2}, "edge_num": {0: 6}, "node_feature_type": [1, 2],
        "edge_feature_type": [1],
    }


def test_features(graph: GraphData) -> None:
    many, single = graph.get_node_feature([[101, -1], [202, 103]], [1, 2])
    assert many.shape == (2, 2, 3) and many[1, 0].tolist() == [202, 202.5, 0] and not many[0, 1].any()
    assert single.dtype == np.int32 and single.tolist() == [[1, 0], [0, 3]], "202 has no second feature"
    assert graph.get_edge_feature(np.array([3, -1, 42]), [1])[0].tolist() == [0.75, 0, 10.5]


def test_all_neighbors(graph: GraphData) -> None:
    assert graph.get_all_neighbors([101, 102, 103], 2).tolist() == [[101, 201, 202], [102, 201, -1], [103, -1, -1]]
    assert graph.get_all_neighbors([101, 102], 2, OutputFormat.COO).tolist() == [[101, 201], [101, 202], [102, 201]]
    offsets, those = graph.get_all_neighbors([101, 103, 102], 2, OutputFormat.CSR)
    assert offsets.tolist() == [0, 2, 2] and those.tolist() == [201, 202, 201]
    assert graph.get_all_neighbors([101], 1).tolist() == [[101]], "no user is a neighbour of a user"


def test_the_matrix_of_the_documents() -> None:
    graph = Graph(np.array([[0, 1, 2, 2, 3], [1, 2, 0, 3, 1]]))
    assert graph.get_all_neighbors([0, 1, 2, 3], "0").tolist() == [[0, 1, -1], [1, 2, -1], [2, 0, 3], [3, 1, -1]]
    offsets, those = graph.get_all_neighbors([0, 1, 2, 3], "0", OutputFormat.CSR)
    assert offsets.tolist() == [0, 1, 2, 4] and those.tolist() == [1, 2, 0, 3, 1]


def test_sampled_neighbors(graph: GraphData) -> None:
    rows = graph.get_sampled_neighbors([101, 103], [2, 3], [2, 1])
    assert rows.shape == (2, 9) and rows[0, 0] == 101 and set(rows[0, 1:3]) <= {201, 202} and set(rows[0, 3:]) <= {101, 102}
    assert rows[1].tolist() == [103] + [-1] * 8
    drawn = Counter(graph.get_sampled_neighbors([101], [3000], [2])[0, 1:].tolist())
    assert abs(drawn[201] / 3000 - 0.5) < 0.05
    drawn = Counter(graph.get_sampled_neighbors([101], [3000], [2], SamplingStrategy.EDGE_WEIGHT)[0, 1:].tolist())
    assert abs(drawn[202] / 3000 - 2 / 3) < 0.05, "weights 0.5 and 1"


def test_neg_sampled_neighbors(graph: GraphData) -> None:
    rows = graph.get_neg_sampled_neighbors([101, 102, 103], 3, 2)
    assert rows[:2].tolist() == [[101, -1, -1, -1], [102, 202, 202, 202]] and set(rows[2, 1:]) == {201, 202}
    assert set(graph.get_neg_sampled_neighbors([101], 4, 1)[0, 1:].tolist()) == {102, 103}, "never the node itself"


def test_walks(graph: GraphData) -> None:
    walks = graph.random_walk([101, 103], [2, 1, 2])
    assert walks.shape == (2, 4) and walks[0, 0] == 101 and set(walks[0, [1, 3]]) <= {201, 202} and walks[1].tolist() == [103, -1, -1, -1]
    for before, after in zip(walks[0], walks[0, 1:], strict=False):
        assert (before, after) in EDGES.values()
    assert graph.random_walk([103], [2, 1], default_node=0).tolist() == [[103, 0, 0]]
    square = Graph(np.array([[0, 1, 1, 1, 0, 2], [1, 0, 2, 3, 2, 0]]))
    second = Counter(walk[2] for walk in square.random_walk([0] * 8000, ["0", "0"], 4.0, 0.25).tolist() if walk[1] == 1)
    total = sum(second.values())
    # from 1, having come from 0: home (0) weighs 1/4, 2 is near 0 and weighs 1, 3 is away and weighs 4
    for node, weight in ((0, 0.25), (2, 1), (3, 4)):
        assert abs(second[node] / total - weight / 5.25) < 0.03


def test_the_seed_decides(tmp_path: Path) -> None:
    path = write(tmp_path / "graph")

    def drawn(seed: int) -> list[int]:
        ds.config.set_seed(seed)
        return GraphData(path).get_sampled_neighbors([101], [50], [2])[0].tolist()

    assert drawn(3) == drawn(3) != drawn(4)


def test_a_graph_of_arrays() -> None:
    graph = Graph(
        [[0, 1], [1, 2]], node_feat={"x": np.arange(6.0).reshape(3, 2)}, edge_feat={"weight": np.array([[1.0], [2.0]])},
        graph_feat={"label": np.array([[5]])}, node_type=["a", "a", "b"], edge_type=np.array(["s", "t"]),
    )
    assert graph.get_all_nodes("a").tolist() == [0, 1] and graph.get_all_edges("t").tolist() == [1]
    assert graph.get_node_feature([2, -1], ["x"])[0].tolist() == [[4, 5], [0, 0]]
    assert graph.get_edge_feature([1], ["weight"])[0].tolist() == [[2.0]] and graph.get_graph_feature(["label"])[0].tolist() == [[5]]
    assert graph.graph_info()["graph_feature_type"] == ["label"] and graph.graph_info()["node_num"] == {"a": 2, "b": 1}
    assert graph.get_neg_sampled_neighbors([0], 1, "b").tolist() == [[0, 2]] and graph.random_walk([0], ["a", "b"]).tolist() == [[0, 1, 2]]


class Rings(InMemoryGraphDataset):
    """Three rings of different lengths."""

    made = 0

    def __init__(self, folder: str, **more: Any) -> None:
        super().__init__(folder, column_names=["edges", "size"], **more)

    def process(self) -> None:
        type(self).made += 1
        for size in (3, 4, 5):
            nodes = np.arange(size)
            self.graphs.append(Graph(np.stack([nodes, (nodes + 1) % size]), node_feat={"x": nodes[:, None] * 1.0}, graph_feat={"s": nodes}))

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        graph = self.graphs[index]
        return graph.get_nodes_from_edges(graph.get_all_edges("0")), len(graph.get_all_nodes("0"))

    def __len__(self) -> int:
        return len(self.graphs)


def test_a_dataset_of_graphs_is_created_once(tmp_path: Path) -> None:
    Rings.made = 0
    for _ in range(2):
        data = Rings(str(tmp_path), shuffle=False)
        assert [int(row["size"]) for row in data.create_dict_iterator(output_numpy=True)] == [3, 4, 5] and data.get_dataset_size() == 3
        assert data.graphs[2].get_node_feature([4], ["x"])[0].tolist() == [[4.0]] and len(data.graphs[1].get_graph_feature(["s"])[0]) == 4
    assert Rings.made == 1 and sorted(path.name for path in (tmp_path / "processed").iterdir()) == [f"data_{n}.npz" for n in range(3)]
    (tmp_path / "processed/data_1.npz").write_bytes(b"PK no file")
    with pytest.raises(ValueError, match=r"data_1\.npz: .*: expected a graph that save wrote"):
        Rings(str(tmp_path))
    with pytest.raises(NotImplementedError, match=r"InMemoryGraphDataset\.process: expected a method that puts Graphs into self\.graphs"):
        InMemoryGraphDataset(str(tmp_path), "other")


REFUSED = {
    "mode": (lambda g: Graph([[0], [1]], working_mode="client"), ValueError, "there is no server of graphs here"),
    "port": (lambda g: Graph([[0], [1]], port=1), ValueError, "port"),
    "shape": (lambda g: Graph([[0, 1, 2]]), ValueError, r"shape \[2, number of edges\]"),
    "edges": (lambda g: Graph("x"), TypeError, "a list or an array of ids"),
    "node_feat": (lambda g: Graph([[0], [1]], {"x": np.zeros(1)}), ValueError, "2 rows, one for each of the nodes"),
    "edge_feat": (lambda g: Graph([[0], [1]], edge_feat={"x": np.zeros(3)}), ValueError, "1 rows, one for each of the edges"),
    "node_type": (lambda g: Graph([[0], [1]], node_type=["a"]), ValueError, "2 str"),
    "type": (lambda g: g.get_all_nodes("1"), TypeError, "an int"),
    "no_type": (lambda g: g.get_all_nodes(9), ValueError, "node type 9: expected 1 or 2"),
    "no_node": (lambda g: g.get_all_neighbors([5], 1), ValueError, "node 5: expected one of the graph"),
    "no_edge": (lambda g: g.get_edges_from_nodes([(101, 102)]), ValueError, r"edge between \(101, 102\)"),
    "ragged": (lambda g: g.get_node_feature([1, [1, 1]], [1]), TypeError, "ints"),
    "floats": (lambda g: g.get_node_feature([[1, 0.1]], [1]), TypeError, "ints"),
    "feature": (lambda g: g.get_node_feature([101], ["a"]), TypeError, "feature type 'a'"),
    "no_feature": (lambda g: g.get_node_feature([101], [9]), ValueError, "feature type 9: expected 1 or 2"),
    "features": (lambda g: g.get_node_feature([101], 1), TypeError, "a list of feature types"),
    "hops": (lambda g: g.get_sampled_neighbors([101], [1] * 7, [2] * 7), ValueError, "from 1 to 6"),
    "uneven": (lambda g: g.get_sampled_neighbors([101], [1], [2, 1]), ValueError, "as many numbers as types"),
    "strategy": (lambda g: g.get_sampled_neighbors([101], [1], [2], 0), TypeError, "SamplingStrategy"),
    "format": (lambda g: g.get_all_neighbors([101], 2, 1), TypeError, "OutputFormat"),
    "home": (lambda g: g.random_walk([101], [2], 0.0), ValueError, "step_home_param"),
    "default": (lambda g: g.random_walk([101], [2], default_node=-2), ValueError, "default_node"),
    "empty": (lambda g: g.random_walk([], [2]), (TypeError, ValueError), "expected"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(graph: GraphData, name: str) -> None:
    call, kind, text = REFUSED[name]
    with pytest.raises(kind, match=text):
        call(graph)


def test_files_that_are_no_graph(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="none"):
        GraphData(str(tmp_path / "none"))
    few = {name: kind for name, kind in SCHEMA.items() if name != "third_id"}
    with pytest.raises(ValueError, match="few0: no field 'third_id': expected a graph"):
        GraphData(write(tmp_path / "few", few))
    with pytest.raises(ValueError, match="wrong0, row 0: attribute 'x': expected 'n' or 'e'"):
        GraphData(write(tmp_path / "wrong", attribute="x"))
    old = {name: kind for name, kind in SCHEMA.items() if name != "weight"}
    assert GraphData(write(tmp_path / "old", old)).get_all_nodes(2).tolist() == list(ITEMS), "1.0 had no weights"


class Table:
    """Stands for pandas' table of one row, which the files of Argoverse are."""

    def __init__(self, columns: dict[str, Any]) -> None:
        self.columns = columns

    def __getitem__(self, name: str) -> Any:
        return SimpleNamespace(values=[self.columns[name]])


@pytest.fixture
def scenes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two scenes: a track of two vectors and a lane of three; a track of two alone."""
    module = ModuleType("pandas")
    module.__spec__ = ModuleSpec("pandas", None)
    Table.__module__, Table.__qualname__, Table.__name__ = "pandas", "DataFrame", "DataFrame"
    module.DataFrame = Table  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pandas", module)
    for name, lanes in (("a", 3), ("b", 0)):
        vectors = np.arange(8 * (2 + lanes), dtype=np.float32).reshape(-1, 8)
        vectors[:, -1] = [0, 0] + [1] * lanes
        table = Table({
            "POLYLINE_FEATURES": vectors, "GT": np.arange(6.0).reshape(3, 2), "TRAJ_ID_TO_MASK": {0: (0, 2)},
            "LANE_ID_TO_MASK": {1: (0, lanes)} if lanes else {}, "TARJ_LEN": 2,
        })
        (tmp_path / f"features_{name}.pkl").write_bytes(pickle.dumps(table))
    return tmp_path


PARTS = ["edge_index", "x", "y", "cluster", "valid_len", "time_step_len"]


@pytest.mark.parametrize("at_once", [True, False])
def test_scenes_of_argoverse(scenes: Path, at_once: bool) -> None:
    for _ in range(2):                                        # the second time out of what the first one wrote
        data = ds.ArgoverseDataset(str(scenes), PARTS, shuffle=False, perf_mode=at_once)
        first, second = data.create_dict_iterator(num_epochs=1, output_numpy=True)
        assert first["edge_index"].tolist() == [[0, 1, 2, 2, 3, 3, 4, 4], [1, 0, 3, 4, 2, 4, 2, 3]]
        assert first["x"].shape == (5, 8) and first["y"].tolist() == [0, 1, 2, 3, 4, 5] and first["cluster"].tolist() == [0, 0, 1, 1, 1]
        assert second["edge_index"].tolist() == [[0, 1], [1, 0]] and second["cluster"].tolist() == [0, 0, 1], "filled up"
        assert second["x"].shape == (3, 8) and not second["x"][2].any()
        assert (first["valid_len"].tolist(), second["valid_len"].tolist(), second["time_step_len"].tolist()) == ([1], [0], [2])


def test_scenes_that_are_none(scenes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content_before = (scenes / "features_a.pkl").read_bytes()
    for content, text in (
        (content_before[:50], "expected a pickled DataFrame of the columns"), (pickle.dumps(os.getcwd), r"it asks for posix\.getcwd"),
        (pickle.dumps(Table({"GT": 1})), "KeyError"),
        (pickle.dumps(Table({**pickle.loads(content_before).columns, "TARJ_LEN": None})), "begins and ends"),
    ):
        (scenes / "features_b.pkl").write_bytes(content)
        with pytest.raises(ValueError, match=rf"features_b\.pkl: .*{text}"):
            ds.ArgoverseDataset(str(scenes), PARTS)
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(FileNotFoundError, match=r"expected a folder of features_\*\.pkl files"):
        ds.ArgoverseDataset(str(empty))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"ArgoverseDataset: expected pandas.*\n\nhint: pip install pandas\."):
        ds.ArgoverseDataset(str(scenes), PARTS)
