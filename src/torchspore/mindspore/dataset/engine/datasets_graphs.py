"""Published data sets of graphs."""
from __future__ import annotations

import importlib.util
import pickle
from pathlib import Path
from typing import Any

import numpy as np

from torchspore.base.text import message
from torchspore.errors import DataDamaged, DataMissing
from torchspore.mindspore.dataset.core.validator_helpers import check_bool
from torchspore.mindspore.dataset.engine.graphdata import Graph, InMemoryGraphDataset

_PARTS = ("edge_index", "x", "y", "cluster", "valid_len", "time_step_len")
_COLUMNS = ("POLYLINE_FEATURES", "GT", "TRAJ_ID_TO_MASK", "LANE_ID_TO_MASK", "TARJ_LEN")
_LARGEST = 1 << 28
"""Maximum bytes of a file of one scene; published ones have some ten thousand."""
_FRAMES = frozenset({
    "ArrowStringArray", "BlockManager", "DataFrame", "Index", "Int64Index", "ObjectBlock", "RangeIndex", "StringArray", "StringDtype",
    "__pyx_unpickle_NDArrayBacked", "_new_Index", "_unpickle_block", "new_block",
})
"""Globals that a pickled DataFrame imports from pandas, 1.0 to 3."""
_ARRAYS = frozenset({"_reconstruct", "_frombuffer", "dtype", "ndarray", "scalar"})


class ArgoverseDataset(InMemoryGraphDataset):
    """Scenes of Argoverse's motion forecasting as graphs, from a folder of `features_*.pkl` files, one pickled DataFrame per scene.

    Pass `column_names=["edge_index", "x", "y", "cluster", "valid_len", "time_step_len"]`: the edges within each polyline (2, E), each
    vector's features (N, F), the trajectory to predict, the polyline of each vector, the number of polylines minus one, and the number of
    the largest scene: all scenes are padded to it. `perf_mode` makes all rows immediately; otherwise each row is made when it is read.
    Needs pandas (ImportError). Raises DataMissing if there is no such file, DataDamaged, which names the file. Only a table of arrays is
    read from a pickle.
    """

    def __init__(
        self, data_dir: str, column_names: Any = "graph", shuffle: bool | None = None, num_parallel_workers: int = 1,
        python_multiprocessing: bool = True, perf_mode: bool = True,
    ) -> None:
        check_bool("ArgoverseDataset", "perf_mode", perf_mode)
        self.perf_mode = perf_mode
        super().__init__(
            data_dir, column_names=column_names, num_parallel_workers=num_parallel_workers, shuffle=shuffle,
            python_multiprocessing=python_multiprocessing,
        )
        self._ready = [self._parts_of(graph) for graph in self.graphs] if perf_mode else []

    def process(self) -> None:
        """Makes a graph of each file; each has as many polylines as the largest."""
        files = sorted(Path(self.data_dir).glob("*.pkl"))
        if not files:
            raise DataMissing(message(f"ArgoverseDataset({self.data_dir!r})", "a folder of features_*.pkl files"))
        scenes = [_scene(path) for path in files]
        largest = max(int(scene["cluster"].max()) for scene in scenes)
        for scene in scenes:
            last = int(scene["cluster"].max())
            x, cluster = scene["x"], scene["cluster"]
            parts = {
                **scene, "x": np.vstack([x, np.zeros((largest - last, x.shape[1]), x.dtype)]),
                "cluster": np.hstack([cluster, np.arange(last + 1, largest + 1, dtype=cluster.dtype)]),
                "valid_len": np.array([last]), "time_step_len": np.array([largest + 1]),
            }
            self.graphs.append(Graph(scene["edge_index"], graph_feat=parts))

    def __getitem__(self, index: int) -> tuple[np.ndarray, ...]:
        return self._ready[index] if self._ready else self._parts_of(self.graphs[index])

    def __len__(self) -> int:
        return len(self.graphs)

    @staticmethod
    def _parts_of(graph: Graph) -> tuple[np.ndarray, ...]:
        return tuple(graph.get_graph_feature(list(_PARTS)))


def _scene(path: Path) -> dict[str, np.ndarray]:
    """Return the edges, vectors, polylines and the trajectory to predict of one file."""
    features, truth, tracks, lanes, offset = _read(path)
    try:
        features, bounds = np.asarray(features, np.float32), [
            *tracks.values(), *((begin + offset, end + offset) for begin, end in lanes.values()),
        ]
        parts = [features[begin:end] for begin, end in bounds]
        if features.ndim != 2 or not len(features) or not sum(map(len, parts)):
            raise ValueError(f"features of shape {features.shape} in {len(bounds)} polylines")
        starts = np.cumsum([0, *map(len, parts)])
        edges = np.hstack([_inner_edges(len(part)) + start for part, start in zip(parts, starts, strict=False)])
        return {
            "edge_index": edges, "x": np.vstack(parts), "y": np.asarray(truth, np.float32).reshape(-1),
            "cluster": features[:, -1].astype(np.int32),
        }
    except (TypeError, ValueError, AttributeError, IndexError) as error:
        raise DataDamaged(message(f"{path}: {error!s:.100}", "vectors, and where each track and lane begins and ends")) from None


def _inner_edges(count: int) -> np.ndarray:
    """Return the edges from each of `count` vectors to each other one, (2, count * (count - 1))."""
    source, target = np.divmod(np.arange(count * count), max(1, count))
    return np.stack([source, target])[:, source != target]


class _Frame(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        root = module.partition(".")[0]
        plain = (module, name) == ("builtins", "slice")
        if not plain and not (root == "pandas" and name in _FRAMES) and not (root == "numpy" and name in _ARRAYS):
            raise pickle.UnpicklingError(f"it asks for {module}.{name}")
        return super().find_class(module, name)


def _read(path: Path) -> list[Any]:
    """Return the columns of a pickled DataFrame's first row."""
    if importlib.util.find_spec("pandas") is None:
        raise ImportError("ArgoverseDataset: expected pandas, whose tables these files are.\n\nhint: pip install pandas.")
    if path.stat().st_size > _LARGEST:
        raise DataDamaged(message(f"{path}: {path.stat().st_size} bytes", f"at most {_LARGEST}"))
    try:
        with path.open("rb") as file:
            frame = _Frame(file).load()
        return [frame[name].values[0] for name in _COLUMNS]
    except MemoryError:
        raise
    except Exception as error:  # a damaged pickle raises any error
        expected = f"a pickled DataFrame of the columns {', '.join(_COLUMNS)}"
        raise DataDamaged(message(f"{path}: {type(error).__name__}: {error!s:.100}", expected)) from None
