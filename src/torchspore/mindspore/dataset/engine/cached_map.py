"""Epochs of a `map` with a DatasetCache: it computes the rows that are not cached yet, for example decoded pictures.

The index of a row in the source is its key, so that samplers, shards and shuffled orders may change from epoch to epoch.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator

from torchspore.base.text import message
from torchspore.mindspore.dataset.core import config
from torchspore.mindspore.dataset.engine.cache_client import DatasetCache
from torchspore.mindspore.dataset.engine.dataset import Dataset
from torchspore.mindspore.dataset.engine.failures import PipelineError
from torchspore.mindspore.dataset.engine.mappable import MappableDataset
from torchspore.mindspore.dataset.engine.rows import Row, Run


def read_epoch(node: Dataset, cache: DatasetCache, key: object, run: Run, compute: Callable[[Run], Iterator[Row]]) -> Iterator[Row]:
    """Yield the rows of an epoch of `node`; `compute` yields those of the source's rows that `run` requests.

    Raises PipelineError, a RuntimeError, for a pipeline whose rows have no fixed index below the cache, for caches above each other, for
    random transforms and callbacks below the cache, and if erroneous rows are skipped or replaced.
    """
    if config.get_error_samples_mode() is not config.ErrorSamplesMode.RETURN:
        raise PipelineError(message("map(cache=...) with set_error_samples_mode", "ErrorSamplesMode.RETURN: each row has a value then"))
    steps, source = _steps_and_source(node)
    for step in steps:
        run.forbid_draws(step)
        if getattr(step, "callbacks", None):
            hint = "use the callbacks in a map above the cache"
            raise PipelineError(message("map(callbacks=...) with a cache or below one", "a map without callbacks", hint=hint))
    indices = list(source.sampled_indices(run))
    if any(hasattr(index, "__len__") for index in indices):
        raise PipelineError(message("map(cache=...) above a sampler that yields lists of indices", "a sampler that yields single indices"))
    is_missing = [(key, index) not in cache for index in indices]
    computed: Iterator[Row] | None = None
    for index, missing in zip(indices, is_missing):
        if not missing:
            yield cache.get((key, index))
            continue
        if computed is None:            # the source takes the request when the first row is computed: no other reader can take it
            run.request_rows(source, [index for index, missing in zip(indices, is_missing) if missing])
            computed = compute(run)
        row = next(computed)
        cache.put((key, index), row)
        yield row


def _steps_and_source(node: Dataset) -> tuple[list[Dataset], MappableDataset]:
    """Return the steps from a cached map down to its source, and the source.

    Raises PipelineError if the rows of a step are not those of the source, one by one, and for a second cache.
    """
    steps, below = [node], node.children[0]
    while below._has_row_for_row and getattr(below, "cache", None) is None:
        steps.append(below)
        below = below.children[0]
    name = type(below).__name__
    if getattr(below, "cache", None) is not None:
        raise PipelineError(message(f"map(cache=...) above {name}(cache=...)", "one cache", hint="leave out the cache of the lower step"))
    if not isinstance(below, MappableDataset) or not below.has_numbered_rows():
        expected = "map, rename and project between the cache and a source that is read by index"
        raise PipelineError(message(f"map(cache=...) above {name}", expected, hint="use the cache below this step, or cache the source"))
    return steps, below
