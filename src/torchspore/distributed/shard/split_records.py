"""The report about split graphs: layouts of Parameters, strategies of operators."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from zlib import crc32

from torchspore.distributed.shard import graph_info


def layouts(graphs: Iterable[Any]) -> dict[str, tuple[Any, ...]]:
    """Return MindSpore 2.10's description of each Parameter by name, in the order of its fields.

    Device matrix, tensor map, shape of a part, field size, whether parts are equal, the group that shares it, full shape, shape of a part
    by the axes of the tensor map, two fields that are False here, step and size of the optimizer's split. A dimension that several axes of
    the grid split is written as several dimensions in the tensor map.
    """
    from torchspore.distributed.shard.strategy_file import stored
    from torchspore.distributed.shard.strategy_validation import TensorLayout

    layouts_by_name: dict[str, tuple[Any, ...]] = {}
    for graph in graphs:
        sharing_groups = {} if graph.split is None else _optimizer_groups(graph.split)
        for name, (matrix, tensor_map, shape, _) in (graph.split.sharded_capture.parameters if graph.split is not None else {}).items():
            layout = TensorLayout(matrix, tensor_map)
            flat = stored(layout, shape)
            cuts = TensorLayout(flat.dev_matrix, flat.tensor_map).cuts()
            parts = [size // cut for size, cut in zip(flat.tensor_shape or (), cuts)]
            part = [size // cut for size, cut in zip(shape, layout.cuts())]
            layouts_by_name[name] = (
                list(flat.dev_matrix),
                list(flat.tensor_map),
                part,
                0,
                True,
                sharing_groups.get(name, ""),
                list(shape),
                parts,
                False,
                False,
                0,
                0,
            )
    return layouts_by_name


def _optimizer_groups(split: Any) -> dict[str, str]:
    """Return, by name of a Parameter that the optimizer splits once more, the name of the group of these devices: '4-...' for four."""
    names: dict[str, str] = {}
    mesh = split.local.mesh
    for at, base in split.sharded_capture.bases.items():
        name = str(getattr(split.lifted[at], "name", ""))
        layout = split.sharded_capture.parameters.get(name)
        if layout is not None:
            axes = tuple(axis for axis in graph_info.stored_axes(mesh, layout) if axis not in base.axes)
            ranks = mesh.group(split.rank, axes)
            if len(ranks) > 1:
                names[name] = f"{len(ranks)}-{crc32(str(ranks).encode())}"
    return names


def fusion_numbers(graphs: Iterable[Any]) -> dict[str, int]:
    """Return by name of a Parameter the number of the message group of its summed gradient; empty if sums are not fused.

    It is the Parameter's `comm_fusion`, or, after `all_reduce_fusion_config`, the position of its group. Only Parameters that several
    devices store and train are included.
    """
    from torchspore.context.store import STORE
    from torchspore.distributed.data_parallel import fusion

    numbers: dict[str, int] = {}
    if not STORE.get("auto_parallel.comm_fusion.openstate"):
        return numbers
    for graph in graphs:
        if graph.split is not None:
            for parameter in graph_info.summed_parameters(graph.split):
                numbers[str(parameter.name)] = int(getattr(parameter, "comm_fusion", 1))
    positions = fusion.rule("allreduce").positions
    if positions and len(set(numbers.values())) == 1:
        groups = fusion.of_gradients([1] * len(numbers), [0] * len(numbers), fusion.rule("allreduce"))
        names = list(numbers)
        numbers = {names[at]: number for number, group in enumerate(groups, 1) for at in group}
    return numbers


def unsplit_layouts(tensors: Iterable[Any]) -> dict[str, tuple[Any, ...]]:
    """Return the description of each Parameter among the inputs of a graph on one device, from its unsplit `layouts`."""
    layouts_by_name: dict[str, tuple[Any, ...]] = {}
    for item in tensors:
        if hasattr(item, "name"):
            shape, uncut = list(item._t.shape), [-1] * item._t.ndim
            layouts_by_name[str(item.name)] = ([1], uncut, shape, 0, True, "", shape, shape, False, False, 0, 0)
    return layouts_by_name


def strategies(graphs: Iterable[Any]) -> dict[str, list[list[int]]]:
    """Return the strategies of operators by name; a strategy of Layouts is an empty list."""
    strategies_by_name: dict[str, list[list[int]]] = {}
    for graph in graphs:
        if graph.split is not None:
            strategies_by_name.update(graph.split.sharded_capture.strategies_by_operator())
    return strategies_by_name
