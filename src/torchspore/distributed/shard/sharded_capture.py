"""The record of one capture that is split: the full shapes of its values, and the layouts of its inputs."""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.base.text import message
from torchspore.context.store import STORE
from torchspore.distributed import device_count
from torchspore.distributed.shard import (
    batched_products,
    function_strategies,
    gradient_norms,
    multi_axis_lookups,
    partitioner,
    strategy_io,
    strategy_marker,
    vmap_reshapes,
    weight_gathers,
)
from torchspore.distributed.shard.partitioner import LocalGraph
from torchspore.distributed.shard.plan import Plan
from torchspore.distributed.shard.search import comparison
from torchspore.distributed.shard.strategy_file import StoredLayout
from torchspore.distributed.shard.strategy_validation import TensorLayout
from torchspore.distributed.shard.strategy_validation.layout import read as read_layout
from torchspore.engine.split_layouts.device_layout import Layout, Shape, by_counts, from_matrix, unsplit
from torchspore.engine.split_layouts.device_mesh import Mesh, mesh_of
from torchspore.engine.split_layouts.sharded_layout import ShardedLayout, as_tensor_map, sharded_layout_of
from torchspore.engine.tensors.tensor import TensorBase
from torchspore.errors import StrategyRefused


def planned_layout(item: Any, shape: Shape, devices: int) -> TensorLayout | None:
    """Return the layout that a Cell's `parameter_plan` requests for a Parameter of this full shape.

    None if it has no plan, or is split already. Raises ValueError for a plan that does not fit.
    """
    strategy = (
        item.__dict__.get("_planned")
        if isinstance(item, TensorBase) and hasattr(item, "name") and sharded_layout_of(item) is None
        else None
    )
    if strategy is None:
        return None
    try:
        return function_strategies.layout_of(strategy, shape, devices)
    except ValueError as error:
        raise ValueError(f"parameter_plan of {item.name}: {error}") from None


@dataclass(frozen=True)
class Attempt:
    """One way to split a graph, and the state of the capture that depends on it."""

    local: LocalGraph
    bases: dict[int, Layout]
    parameters: dict[str, tuple[tuple[int, ...], tuple[Any, ...], Shape, bool]]


class ShardedCapture:
    """The part of a capture that splits the graph."""

    def __init__(self, arguments: Sequence[TensorBase], stages: int | None = None) -> None:
        device_count.check()
        total, self.kind = device_count.devices()
        self.stages = device_count.stages() if stages is None else stages
        self.count = total // self.stages
        self.splits_optimizer = bool(STORE.get("auto_parallel.enable_parallel_optimizer"))
        self.arguments = {id(t): at for at, t in enumerate(arguments) if not hasattr(t, "name")}
        self.strategies: dict[str, Any] = {}
        """Of each call that had one, by MindSpore's name for it."""
        self.parameters: dict[str, tuple[tuple[int, ...], tuple[Any, ...], Shape, bool]] = {}
        """By name of a Parameter: a device matrix, a tensor map, the full shape, and whether it is trained."""
        self.requested_layouts: dict[int, str] = {}
        """By ids of Tensors that a call mutates, and that cannot get a layout, the layouts that its strategy requests."""
        self.users: dict[int, tuple[str, str, tuple[int, ...], Any]] = {}
        """By id of a Parameter the line and name of its first operator with a strategy, its cuts there, and the part of each device."""
        self.bases: dict[int, Layout] = {}
        """By index of the input, the layout in the step of a weight that the optimizer splits once more."""
        self.stored_layouts: dict[str, StoredLayout] = {}
        """By name of a Parameter, its layout in a strategy file."""
        self.searched: Any = None
        """The result of a search (`search.comparison.Searched`); None if there was none."""
        self.chosen: Any = None
        """How the number of stages was chosen (`pipelines.stage_count.Chosen`); None if the program sets it."""
        self.was_cut: Any = None
        """The result of `execution.cut` if it was needed before the graph; it is not computed again."""
        self.strategy, self.input_layouts = self._read_dataset_strategy()
        """The dataset strategy as a word or counts of parts, and the layouts of the inputs if the strategy consists of Layouts."""
        self.strategy_file = strategy_io.file_to_read()
        """The capture whose strategies replace those of the program."""
        self.homes: dict[str, int] = {}
        """The pipeline stage of each Parameter that belongs to one, by its name."""
        self.is_cut_by_hand = self.kind == device_count.RANKS or (self.kind == device_count.PLANNED and not device_count.planned())
        """True if each process receives its part of the batch, as in MindSpore; simulations and plans receive the full batch."""

    def _read_dataset_strategy(self) -> tuple[Any, list[TensorLayout] | None]:
        """Return the dataset strategy, and its layouts. Raise ValueError for Layouts of another number of devices."""
        strategy = STORE.get("auto_parallel.dataset_strategy")
        if isinstance(strategy, str) or not strategy or not hasattr(strategy[0], "to_dict"):
            return strategy, None
        layouts = list(map(read_layout, strategy))
        for layout in layouts:
            if math.prod(layout.device_matrix) != self.count:
                wrote = f"dataset_strategy with a Layout of {layout.device_matrix} devices"
                raise ValueError(message(wrote, f"{self.count} devices, as many as compute one stage"))
        return [list(layout.cuts()) for layout in layouts], layouts

    def note(self, name: str, tensors: Sequence[TensorBase], strategy: Any) -> None:
        """Store the strategy of a call."""
        self.strategies[self.named(name, tensors)] = strategy

    def named(self, name: str, tensors: Sequence[TensorBase]) -> str:
        """Return the name of a call in MindSpore's files: the primitive's name and that of its first Parameter."""
        function_name = next((str(t.name) for t in tensors if hasattr(t, "name")), "")
        return f"{name}_{function_name}" if function_name else name

    def strategies_by_operator(self) -> dict[str, list[list[int]]]:
        """Return the strategies in the form of MindSpore's files: a strategy of Layouts is an empty list."""
        strategies = {}
        for name, strategy in self.strategies.items():
            strategies[name] = [list(part) for part in strategy] if all(isinstance(part, (tuple, list)) for part in strategy) else []
        return strategies

    # ---- while the call is traced

    def is_elsewhere(self, source: Any) -> bool:
        """Return whether only the processes of one stage store an input. All processes trace it alike, including those that do not store
        it."""
        cut = sharded_layout_of(source)
        return cut is not None and cut.stage is not None

    def full_shape(self, source: Any, t: torch.Tensor) -> Shape:
        """Return the full shape of a value of which this process may store a part."""
        layout = sharded_layout_of(source)
        if layout is not None:
            return layout.shape
        counts = self._counts(source, t.ndim) if self.is_cut_by_hand else None
        return tuple(t.shape) if counts is None else tuple(size * count for size, count in zip(t.shape, counts))

    def is_part_of_batch(self, source: Any) -> bool:
        """Return whether an input is an argument for which the program passes the part of one device."""
        if not self.is_cut_by_hand or not isinstance(source, TensorBase) or sharded_layout_of(source) is not None:
            return False
        return self._counts(source, source._t.ndim) is not None

    def _counts(self, source: Any, rank: int, is_free: bool = False) -> tuple[int, ...] | None:
        """Return the number of parts into which the dataset strategy splits an argument; None for other inputs, and for unsplit arguments.

        With `is_free`, a full batch is split too if its rows divide: no operator has a strategy, so all of them share the batch.
        """
        at = self.arguments.get(id(source))
        if at is None or rank == 0:
            return None
        if self.strategy == "full_batch" and not (is_free and source._t.shape[0] % self.count == 0):
            return None
        if isinstance(self.strategy, str):
            return (self.count, *(1,) * (rank - 1))
        if at >= len(self.strategy):
            raise ValueError(message(f"dataset_strategy={self.strategy} for input {at} of the batch", "a tuple of numbers for each input"))
        input_strategy = tuple(self.strategy[at])
        if len(input_strategy) != rank:
            raise ValueError(message(f"dataset_strategy={self.strategy} for input {at} with {rank} dimensions", f"{rank} numbers"))
        return input_strategy

    @property
    def rows(self) -> int:
        """Return the number of parts into which the rows of a batch are split."""
        return self.count if isinstance(self.strategy, str) else next((int(part[0]) for part in self.strategy if part), 1)

    @property
    def row_share(self) -> int:
        """Return the number of devices with separate rows: the batch is their concatenation. 1 if each device receives the full batch."""
        return 1 if self.strategy == "full_batch" else self.rows

    # ---- the captured graph

    def partition(self, module: torch.fx.GraphModule, lifted: Sequence[Any]) -> LocalGraph:
        """Return the graph of each device. Raises ValueError for strategies that do not fit each other, and for a name of two Parameters.
        """
        _check_distinct_names(lifted)
        module = multi_axis_lookups.separated(batched_products.widened(vmap_reshapes.as_views(module)))
        _settle_parts(module, self.strategy == "full_batch")
        self.stored_layouts = strategy_io.found_layouts()
        has_strategies = any(node.target is strategy_marker.laid for node in module.graph.nodes)
        is_free = not (has_strategies or (self.stored_layouts and STORE.get("auto_parallel.parallel_mode") == "semi_auto_parallel"))
        mesh = self.grid(module, lifted, is_free)
        attempt = self.attempt(module, lifted, mesh, is_free=is_free)
        if STORE.get("auto_parallel.parallel_mode") == "auto_parallel" and self.count > 1:
            attempt, self.searched = comparison.better(self, module, lifted, self.grid(module, lifted, False), attempt)
        self.bases, self.parameters = attempt.bases, attempt.parameters
        return attempt.local

    def grid(self, module: torch.fx.GraphModule, lifted: Sequence[Any], is_free: bool) -> Mesh:
        """Return the coarsest grid that contains the strategies of the program and the splits of its inputs."""
        matrices = [strategy_marker.parsed(str(node.args[1]))[0] for node in module.graph.nodes if node.target is strategy_marker.laid]
        matrices += [cut.matrix for cut in map(sharded_layout_of, lifted) if cut is not None]
        matrices += [
            self.stored_layouts[name].dev_matrix for item in lifted if (name := str(getattr(item, "name", ""))) in self.stored_layouts
        ]
        planned = [planned_layout(item, tuple(item._t.shape), self.count) for item in lifted if isinstance(item, TensorBase)]
        matrices += [layout.device_matrix for layout in planned if layout is not None]
        counts = [self._counts(item, item._t.ndim, is_free) for item in lifted if isinstance(item, TensorBase)]
        matrices += [_matrix(counts_of_input, self.count) for counts_of_input in counts if counts_of_input is not None]
        matrices += [layout.device_matrix for layout in self.input_layouts or ()]
        if self.splits_optimizer and int(STORE.get("auto_parallel.optimizer_weight_shard_size")) > 0:
            matrices.append(_primes(self.count))               # a group of that size may be a part of an axis
        return mesh_of(self.count, dict.fromkeys(matrices))

    def inputs(self, module: torch.fx.GraphModule, lifted: Sequence[Any], mesh: Mesh, is_free: bool = False) -> dict[Node, Layout]:
        """Return the layouts of inputs that the program sets; the other inputs are unsplit."""
        holders = [node for node in module.graph.nodes if node.op == "placeholder"]
        counts = [self._counts(item, item._t.ndim, is_free) if isinstance(item, TensorBase) else None for item in lifted]
        return {node: self._layout(mesh, node, item, sharded_layout_of(item), count) for node, item, count in zip(holders, lifted, counts)}

    def attempt(
        self, module: torch.fx.GraphModule, lifted: Sequence[Any], mesh: Mesh, plan: Plan | None = None, is_free: bool = False,
    ) -> Attempt:
        """Return the graph of each device in this grid, by the program's strategies and, if there is one, a plan."""
        holders = [node for node in module.graph.nodes if node.op == "placeholder"]
        input_layouts = self.inputs(module, lifted, mesh, is_free)
        layouts = [plan.inputs.get(node, input_layouts[node]) if plan is not None else input_layouts[node] for node in holders]
        stored = self._shared(mesh, holders, lifted, layouts)
        bases = {at: stored[node] for at, node in enumerate(holders) if node in stored}
        layouts = _states(mesh, holders, lifted, layouts)
        copies = {str(item.name): mesh.count // math.prod((stored.get(node) or layout).counts(mesh))
                  for node, item, layout in zip(holders, lifted, layouts) if hasattr(item, "name")}
        taken = {}
        for at, (node, item) in enumerate(zip(holders, lifted)):
            if (
                id(item) in self.arguments
                and sharded_layout_of(item) is None
                and not (self.is_cut_by_hand and self._counts(item, item._t.ndim))
            ):
                taken[node], layouts[at] = layouts[at], unsplit(len(layouts[at].dim_axes))
        parameters = _describe_parameters(mesh, holders, lifted, layouts)

        def output(output_index: int, node: Node, layout: Layout, shape: Shape) -> Layout:
            return layout if self.keeps or node.meta.get("gradient") else unsplit(len(shape))

        named = [(node, item, layout) for node, item, layout in zip(holders, lifted, layouts) if hasattr(item, "name")]
        shares = {str(item.name): layout for node, item, layout in named if node in stored}
        local = partitioner.partition(module, mesh, layouts, output, replace(_policy(), shares=shares), taken, stored, copies, plan)
        if self.splits_optimizer and STORE.get(_CONFIG + "optimizer_level") == "level3":       # the backward pass gathers weights again
            weight_gathers.gather_for_backward(local)
        return Attempt(local, bases, parameters)

    @property
    def keeps(self) -> bool:
        """Return whether results keep their layouts."""
        return bool(self.strategy != "full_batch" and self.is_cut_by_hand)

    def _shared(
        self, mesh: Mesh, nodes: Sequence[Node], lifted: Sequence[Any], layouts: list[Layout],
    ) -> dict[Node, Layout]:
        """Split trained Parameters along axis 0 among the devices that store the same part, as `enable_parallel_optimizer` requests.

        Return the layouts that forward and backward operators use.
        """
        found: dict[Node, Layout] = {}
        if not self.splits_optimizer:
            return found
        least = int(STORE.get(_CONFIG + "parallel_optimizer_threshold")) * 1024
        most = int(STORE.get("auto_parallel.optimizer_weight_shard_size"))
        if most > self.count:
            wrote = f"parallel_optimizer_config={{'optimizer_weight_shard_size': {most}}} for {self.count} devices"
            raise StrategyRefused(message(wrote, f"at most {self.count}"))
        names = {str(item.name) for item in lifted if hasattr(item, "name")}
        for at, (node, item, layout) in enumerate(zip(nodes, lifted, layouts)):
            val = node.meta["val"]
            if names & set(_owners(str(getattr(item, "name", "")))):
                continue                                       # optimizer state has the layout of its Parameter
            if not getattr(item, "requires_grad", False) or not hasattr(item, "name") or getattr(item, "parallel_optimizer", True) is False:
                continue
            if sharded_layout_of(item) is not None:
                base = item.__dict__.get("_base")
                if base is not None:
                    found[node] = base.layout(mesh)
                continue
            part = layout.local(mesh, val.shape)
            axes = _free(mesh, layout, part[0] if part else 0, most)
            if axes and math.prod(val.shape) * val.dtype.itemsize >= least:          # the full Parameter counts, as in MindSpore
                found[node] = layout
                layouts[at] = Layout(((*layout.dim_axes[0], *axes), *layout.dim_axes[1:]))
        return found

    def _by_strategy(self, mesh: Mesh, item: Any, counts: tuple[int, ...]) -> Layout:
        """Return the layout of an input by the dataset strategy."""
        if self.input_layouts is None:
            return by_counts(mesh, counts)
        layout = self.input_layouts[self.arguments[id(item)]]
        return from_matrix(mesh, layout.device_matrix, layout.tensor_map)

    def _layout(self, mesh: Mesh, node: Node, item: Any, cut: ShardedLayout | None, counts: tuple[int, ...] | None) -> Layout:
        shape = tuple(node.meta["val"].shape)
        if cut is not None:
            return cut.layout(mesh)
        planned = planned_layout(item, shape, self.count)
        if planned is not None:
            return from_matrix(mesh, planned.device_matrix, planned.tensor_map)
        layout = None if counts is None else self._by_strategy(mesh, item, counts)
        if layout is not None and (self.is_cut_by_hand or layout.fits(mesh, shape)):
            return layout
        if (hasattr(item, "name") or id(item) in self.arguments) and isinstance(item, TensorBase):
            wish = self.requested_layouts.get(id(item))
            layout = _marked_layout(mesh, node) if wish is None else strategy_marker.layout_in(mesh, wish)
            if layout is not None and layout.fits(mesh, shape):
                return layout
            before = self.stored_layouts.get(str(getattr(item, "name", "")))
            stored_map = strategy_io.tensor_map_of(before, shape) if before is not None else None
            if before is not None and stored_map is not None and from_matrix(mesh, before.dev_matrix, stored_map).fits(mesh, shape):
                return from_matrix(mesh, before.dev_matrix, stored_map)
        return unsplit(len(shape))


def _settle_parts(module: torch.fx.GraphModule, is_full_batch: bool) -> None:
    """Give the parts of a batch their marked layouts; if each device has the full batch, those of the strategies, if any."""
    marks = [node for node in module.graph.nodes if node.target is strategy_marker.laid]
    batch_marks = [node for node in marks if str(node.args[1]).startswith(strategy_marker.OF_PARTS)]
    for node in batch_marks:
        if is_full_batch and len(batch_marks) < len(marks):
            node.replace_all_uses_with(node.args[0])
            module.graph.erase_node(node)
        else:
            node.update_arg(1, str(node.args[1]).removeprefix(strategy_marker.OF_PARTS))


_CONFIG = "auto_parallel.parallel_optimizer_config."


def _describe_parameters(mesh: Mesh, nodes: Sequence[Node], lifted: Sequence[Any], layouts: Sequence[Layout]) -> dict[str, Any]:
    """Return the layouts of the Parameters, in the device matrix of the strategy that sets them."""
    parameters = {}
    for node, item, layout in zip(nodes, lifted, layouts):
        if not isinstance(item, TensorBase) or not hasattr(item, "name"):
            continue
        mark = strategy_marker.first_mark(node)
        matrix, tensor_map = (
            strategy_marker.parsed(mark) if mark and strategy_marker.layout_in(mesh, mark) == layout else as_tensor_map(mesh, layout)
        )
        trained = bool(getattr(item, "requires_grad", False))
        small = TensorLayout(matrix, tensor_map).squeezed()
        parameters[str(item.name)] = (small.device_matrix, small.tensor_map, tuple(node.meta["val"].shape), trained)
    return parameters


def _policy() -> partitioner.Policy:
    """Return the context's settings for exchanges."""
    get = STORE.get
    return partitioner.Policy(
        bool(get("auto_parallel.enable_alltoall")), bool(get("auto_parallel.force_fp32_communication")),
        bool(get("auto_parallel.gradient_fp32_sync")), bool(get("auto_parallel.gradients_mean")), gradient_norms.is_requested(),
    )


def _check_distinct_names(lifted: Sequence[Any]) -> None:
    """Raise ValueError if two Parameters have one name: which optimizer state, or which layout, belongs to which would be a guess."""
    names: dict[str, Any] = {}
    for item in lifted:
        if not isinstance(item, TensorBase) or not hasattr(item, "name") or item._t.numel() < 2:
            continue
        if names.setdefault(str(item.name), item) is not item:
            raise ValueError(message(
                f"two Parameters with the name {str(item.name)!r} in a graph that is split", "names that differ",
                hint="leave out auto_prefix=False, or set Parameter.name before the optimizer is made",
            ))


def _free(mesh: Mesh, layout: Layout, rows: int, most: int) -> tuple[int, ...]:
    """Return axes along which a Parameter is replicated, as many as divide its rows and have at most `most` devices together."""
    counts: list[int] = []
    for axis in range(len(mesh.sizes)):
        count = mesh.product((*counts, axis))
        if axis not in layout.axes and rows and rows % count == 0 and (most < 0 or count <= most):
            counts.append(axis)
    return tuple(counts)


def _primes(number: int) -> tuple[int, ...]:
    """Return the prime factors of a number, the smallest first; (1,) for 1."""
    factors: list[int] = []
    while number > 1:
        factors.append(next(factor for factor in range(2, number + 1) if number % factor == 0))
        number //= factors[-1]
    return tuple(factors) or (1,)


def _matrix(counts: tuple[int, ...], devices: int) -> tuple[int, ...]:
    product = math.prod(counts)
    if min(counts, default=1) < 1 or devices % product:
        raise ValueError(message(f"a strategy {counts} for {devices} devices", f"ints from 1 on, whose product divides {devices}"))
    return (*counts, devices // product)


def _marked_layout(mesh: Mesh, node: Node) -> Layout | None:
    """Return the layout that the first strategy requests for a Parameter, also after a cast."""
    mark = strategy_marker.first_mark(node)
    return None if mark is None else strategy_marker.layout_in(mesh, mark)


def _states(mesh: Mesh, nodes: Sequence[Node], lifted: Sequence[Any], layouts: list[Layout]) -> list[Layout]:
    """Give optimizer state the layout of the Parameter whose name is the suffix: 'moment1.dense.weight' follows 'dense.weight'."""
    stored_layouts = {item.name: (layout, tuple(node.meta["val"].shape))
             for node, item, layout in zip(nodes, lifted, layouts) if hasattr(item, "name") and not layout.is_unsplit}
    found = []
    for node, item, layout in zip(nodes, lifted, layouts):
        owner = next((name for name in _owners(str(getattr(item, "name", ""))) if name in stored_layouts), None)
        if layout.is_unsplit and owner is not None and stored_layouts[owner][1] == tuple(node.meta["val"].shape):
            layout = stored_layouts[owner][0]
        found.append(layout)
    return found


def _owners(name: str) -> list[str]:
    """Yield the names of Parameters whose state this may be: each suffix after a dot."""
    parts = name.split(".")
    return [".".join(parts[at:]) for at in range(1, len(parts))]


def refused(line: str, reason: str) -> Exception:
    """Return the error for a call that cannot be split because it is not one graph."""
    return StrategyRefused(message(
        f"{line}: {STORE.get('auto_parallel.parallel_mode')} of a call that {reason}", "a call that one graph can hold",
        hint="move that line out of construct",
    ))
