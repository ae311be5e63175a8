"""`DistributedDataParallel`: a Cell whose gradients are those of all processes, for training loops in PyNative mode."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torchspore.base.arguments import is_int
from torchspore.base.frames import line_prefix
from torchspore.base.text import list_choices, message, short
from torchspore.context.store import STORE
from torchspore.distributed.comm import groups
from torchspore.distributed.data_parallel import parameter_broadcast
from torchspore.distributed.data_parallel.gradient_buffers import Buffers, reaching
from torchspore.distributed.data_parallel.gradient_reduction import is_traced
from torchspore.engine.tensors import tree
from torchspore.engine.tensors.tensor import TensorBase
from torchspore.mindspore.common.process_groups import GlobalComm, get_group_size
from torchspore.mindspore.nn.cell import Cell
from torchspore.public_names import missing

MODES = ("CppReducer", "PythonReducer")


class DistributedDataParallel(Cell):
    """`module`, whose gradients are means over the processes of `process_group` (None: all there are), summed during the backward pass.

    Gradients accumulate in flat buffers, which are the Parameters' `grad` and the results of `value_and_grad`, until `zero_grad()`; those
    of a call inside `no_sync()` stay local until the next call outside. `init_sync` sends the values of the group's first process to all.
    Messages have `bucket_cap_mb` megabytes (25, the first one 1, if it is None). `find_unused_parameters` allows processes to use different
    Parameters; without it a backward pass that omits one raises RuntimeError. `average_in_collective` divides after the sum and not before,
    `static_graph` sends gradients in the order of the first step. Both values of `reducer_mode` are equivalent here.

    Raises TypeError unless `module` is a Cell, ValueError for another mode or group; RuntimeError at a call in a graph: real MindSpore
    supports only PyNative mode.
    """

    def __init__(
        self, module: Cell, init_sync: bool = True, process_group: str | None = None, bucket_cap_mb: int | None = None,
        find_unused_parameters: bool = False, average_in_collective: bool = False, static_graph: bool = False,
        reducer_mode: str = "CppReducer",
    ) -> None:
        super().__init__(auto_prefix=False)
        if not isinstance(module, Cell):
            raise TypeError(message(f"DistributedDataParallel({short(module)})", f"a Cell, got {type(module).__name__}"))
        if reducer_mode not in MODES:
            raise ValueError(message(f"DistributedDataParallel(reducer_mode={short(reducer_mode)})", list_choices(MODES)))
        size = bucket_cap_mb
        if size is not None and (not is_int(size) or size < 1):
            raise ValueError(message(f"DistributedDataParallel(bucket_cap_mb={short(size)})", "an int from 1 on, or None"))
        self.process_group = process_group or GlobalComm.WORLD_COMM_GROUP
        get_group_size(self.process_group)
        self.module, self.init_sync, self.bucket_cap_mb = module, init_sync, bucket_cap_mb
        self.find_unused_parameters, self.average_in_collective = find_unused_parameters, average_in_collective
        self.static_graph, self.reducer_mode = static_graph, reducer_mode
        everything = [parameter for _, parameter in module.parameters_and_names()]
        self.bucketed_params = [parameter for parameter in everything if parameter.requires_grad]
        self.skipped_params = [parameter for parameter in everything if not parameter.requires_grad]
        group = groups.find(self.process_group)
        if init_sync and group.size > 1:
            parameter_broadcast.send(everything, group)
        finds = find_unused_parameters or static_graph
        size = None if size is None else size << 20
        self._buffers = Buffers(self.bucketed_params, group, size, average_in_collective, finds, static_graph)

    @property
    def sync_enabled(self) -> bool:
        """True if gradients of the next backward pass are summed over processes."""
        return self._buffers.sums

    def construct(self, *inputs: Any, **inputs_dict: Any) -> Any:
        """Returns the module's output. Raises RuntimeError in a graph."""
        if STORE.graph_mode or is_traced():
            raise RuntimeError(f"{line_prefix()}" + message(
                "DistributedDataParallel in a graph", "PyNative mode",
                hint="set_context(mode=PYNATIVE_MODE); in graphs nn.DistributedGradReducer sums gradients",
            ))
        outputs = self.module(*inputs, **inputs_dict)
        if not self._buffers.finds_unused:
            return outputs
        values = [leaf for leaf in tree.leaves(outputs) if isinstance(leaf, TensorBase)]
        tied = iter(reaching(values, self.bucketed_params))
        return tree.mapped(outputs, lambda leaf: next(tied) if isinstance(leaf, TensorBase) else leaf)

    def zero_grad(self) -> None:
        """Clears the gradients, including those returned before: they share their memory."""
        self._buffers.clear()

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """A block in which each process accumulates its gradients locally."""
        self._buffers.sums = False
        try:
            yield
        finally:
            self._buffers.sums = True


__getattr__ = missing(__name__)
__all__ = ["DistributedDataParallel"]
