"""Cells that run a network on parts of a batch in sequence and add the results."""
from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from torchspore.base.arguments import check_int_type
from torchspore.base.text import message, short
from torchspore.context.store import STORE
from torchspore.engine.autograd import grad
from torchspore.graph.report import provenance
from torchspore.mindspore import ops
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.nn.layer.container import CellList


def _checked(name: str, argument: str, network: Any, count: Any) -> None:
    if not isinstance(network, Cell):
        raise TypeError(message(f"{name}(network={short(network)})", f"a Cell, got {type(network).__name__}"))
    check_int_type(name, argument, count)
    if count < 1:
        raise ValueError(message(f"{name}({argument}={count})", "an int from 1 on"))


class _MicroBatch(Cell):
    """Cuts part number `i` of `micro_size` out of each input, along its first axis."""

    def __init__(self, micro_size: int) -> None:
        super().__init__(auto_prefix=False)
        self.micro_size = micro_size
        self.strided_slice = ops.StridedSlice()

    def construct(self, i: int, *inputs: Any) -> Any:
        """Return the part of each input; `strided_slice` cuts it out if it has a strategy."""
        return tuple(self._part(i, value) for value in inputs)

    def _part(self, i: int, value: Any) -> Any:
        length, rest = divmod(value.shape[0], self.micro_size)
        if rest:
            raise ValueError(
                message(f"{self.micro_size} micro batches of an input of shape {value.shape}", "a first length that they divide",
                        hint=f"choose a number of micro batches that divides {value.shape[0]}")
            )
        if self.strided_slice.attrs.get("in_strategy") is not None:
            rest_of_shape = tuple(value.shape[1:])
            start, end = (i * length, *(0,) * len(rest_of_shape)), ((i + 1) * length, *rest_of_shape)
            return self.strided_slice(value, start, end, (1,) * len(end))
        if not STORE.get("auto_parallel.parallel_mode").endswith("auto_parallel"):
            return value[i * length:(i + 1) * length]
        from torchspore.distributed.shard import function_strategies

        return function_strategies.micro_batch(value, i, self.micro_size)


class BatchParts(Cell):
    """Base class of the next Cells: the sum of the network's results for all parts."""

    _is_interleaved_ = False
    """True if a device may compute several parts at the same time; otherwise one part is computed after the other to save memory."""

    def _part_count_(self) -> int:
        """Return the number of parts."""
        raise NotImplementedError

    def _split_into_(self, count: int) -> None:
        """Split the batch into `count` parts from now on."""
        raise NotImplementedError

    def _add_up_(self, parts: Any, inputs: tuple[Any, ...]) -> Any:
        total = None
        has_order = not self._is_interleaved_ or int(STORE.get("auto_parallel.pipeline_stages")) > 1
        for i, part in enumerate(parts):
            grad.begin_part()
            with provenance.of_part(i) if has_order else nullcontext():
                result = self.network(*part(i, *inputs))
            if isinstance(result, (tuple, list, dict)):
                wrote = f"{type(self).__name__} with a network that returns a {type(result).__name__}"
                raise TypeError(message(wrote, "a network that returns one Tensor, the loss of a part"))
            total = result if total is None else total + result
        return total


class _MicroBatches(BatchParts):
    """Base class of the Cells that compute one part after the other."""

    def _part_count_(self) -> int:
        return self.micro_size

    def _split_into_(self, count: int) -> None:
        self.micro_size = count
        self.micro_inputs = CellList([_MicroBatch(count) for _ in range(count)])

    def construct(self, *inputs: Any) -> Any:
        """The sum of the results for all parts."""
        return self._add_up_(self.micro_inputs, inputs)


class PipelineCell(_MicroBatches):
    """Runs the network on `micro_size` parts of the batch and adds the results.

    `stage_config` and `segment_config` map Cells to stages of a pipeline: {name: number}. The numbers are stored on these
    Cells, and the one process here runs all stages. Raises TypeError, ValueError for wrong sizes, KeyError for an unknown Cell.
    """

    def __init__(self, network: Cell, micro_size: int, stage_config: Any = None, segment_config: Any = None) -> None:
        super().__init__(auto_prefix=False)
        _checked("PipelineCell", "micro_size", network, micro_size)
        self.network = network
        self._split_into_(micro_size)
        for key, config in (("pipeline_stage", stage_config), ("pipeline_segment", segment_config)):
            self._configure_(key, config)

    def _configure_(self, key: str, config: Any) -> None:
        cells = dict(self.network.cells_and_names())
        for name, number in (config or {}).items():
            if name not in cells and name != "self":
                raise KeyError(message(f"PipelineCell: {name!r} of the configuration", "the name of a Cell inside the network"))
            setattr(cells.get(name, self.network), key, number)


class GradAccumulationCell(_MicroBatches):
    """Runs the network on `micro_size` parts of the batch and adds the results, so that their gradients add up too."""

    def __init__(self, network: Cell, micro_size: int) -> None:
        super().__init__(auto_prefix=False)
        _checked("GradAccumulationCell", "micro_size", network, micro_size)
        self.network = network
        self._split_into_(micro_size)


class MicroBatchInterleaved(BatchParts):
    """Runs the network on `interleave_num` parts of the batch and adds the results."""

    _is_interleaved_ = True

    def __init__(self, network: Cell, interleave_num: int = 2) -> None:
        super().__init__(auto_prefix=False)
        _checked("MicroBatchInterleaved", "interleave_num", network, interleave_num)
        self.network = network
        self._split_into_(interleave_num)

    def _part_count_(self) -> int:
        return self.interleave_num

    def _split_into_(self, count: int) -> None:
        self.interleave_num = count
        self.interleave_inputs = CellList([_MicroBatch(count) for _ in range(count)])

    def construct(self, *inputs: Any) -> Any:
        """The sum of the results for all parts."""
        return self._add_up_(self.interleave_inputs, inputs)
