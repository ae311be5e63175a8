"""The tensors of a Cell, of a checkpoint, of a torch model and of torch's file, in a form in which both frameworks can be compared."""
from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import torch

from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.nn.layer.basic import Dense
from torchspore.mindspore.train import torch_layers, torch_names
from torchspore.torch_modules.weights.slots import Shape, Slot

_STEP_COUNT = "num_batches_tracked"
_IN_OUT_CLASS = "Conv1D"
"""The class of transformers and mindnlp for a layer whose weights are (in, out); MindSpore's and torch's are named Conv1d."""
_AFFINE = {"weight": "gamma", "bias": "beta"}
_NAMES_OF_LAYERS: tuple[tuple[tuple[type, ...], dict[str, str]], ...] = (
    ((torch.nn.BatchNorm1d, torch.nn.BatchNorm2d, torch.nn.BatchNorm3d, torch.nn.SyncBatchNorm, torch.nn.InstanceNorm1d,
      torch.nn.InstanceNorm2d, torch.nn.InstanceNorm3d), {**_AFFINE, "running_mean": "moving_mean", "running_var": "moving_variance"}),
    ((torch.nn.LayerNorm, torch.nn.GroupNorm), _AFFINE),
    ((torch.nn.Embedding,), {"weight": "embedding_table"}),
    ((torch.nn.PReLU,), {"weight": "w"}),
)
"""MindSpore's names of the parameters of torch's layers."""
_STATISTICS = frozenset({"moving_mean", "moving_variance", "mean", "variance", "running_mean", "running_var"})
_FEED_FORWARD = {"linear1": "dense1", "linear2": "dense2"}


def of_cell(cell: Cell) -> list[Slot]:
    """Return the tensors of a Cell. Raises ValueError for layers that torch does not have."""
    plan = torch_layers.plan(cell)
    layouts = {
        id(parameter): _layout_of(layer) for _, layer in cell.cells_and_names()
        for name, parameter in layer._params.items() if parameter is not None and name == "weight"
    }
    parameters = {parameter.name: parameter for parameter in cell.get_parameters()}
    return [
        Slot(name, converted.name, tuple(parameters[name].shape), layouts.get(id(parameters[name])), (),
             not parameters[name].requires_grad and name.rpartition(".")[2] not in _STATISTICS)
        for name, converted in plan.parameters.items()
    ]


def of_checkpoint(shapes: dict[str, Shape], integers: Collection[str] = ()) -> list[Slot]:
    """Return the tensors of a checkpoint, by their names; the states of an optimizer are left out. `integers` are those of such types."""
    plan = torch_names.to_torch(shapes, "2d")
    return [Slot(name, converted.name, shapes[name], is_buffer=name in integers) for name, converted in plan.parameters.items()]


def of_model(model: torch.nn.Module) -> list[Slot]:
    """Return the tensors of a torch model that its state_dict has, without the step counts of batch norms."""
    layouts = {f"{path}.weight" if path else "weight": _layout_of(module) for path, module in model.named_modules()}
    names: dict[int, list[str]] = {}
    tensors = {name: t for name, t in model.state_dict(keep_vars=True).items() if isinstance(t, torch.Tensor) and not _is_step_count(name)}
    for name, t in tensors.items():
        names.setdefault(id(t), []).append(name)
    return [
        Slot(first, first, tuple(tensors[first].shape), layouts.get(first), tuple(aliases),
             not isinstance(tensors[first], torch.nn.Parameter) and first.rpartition(".")[2] not in ("running_mean", "running_var"))
        for first, *aliases in names.values()
    ]


def of_torch_file(shapes: dict[str, Shape]) -> list[Slot]:
    """Return the tensors of torch's file, by their names."""
    return [Slot(name, name, shape) for name, shape in shapes.items() if not _is_step_count(name)]


def names_by_layers(model: torch.nn.Module | None, slots: list[Slot]) -> list[Slot]:
    """Return torch's tensors under the names and in the shapes of MindSpore's layers of the same kind.

    The modules tell the kind; without a model, names and shapes do.
    """
    if model is None:
        plan = torch_names.to_mindspore({slot.name: slot.shape for slot in slots})
        return [Slot(plan.parameters[slot.name].name, slot.path, plan.parameters[slot.name].shape, slot.is_in_out) for slot in slots]
    modules = dict(model.named_modules())
    return [_in_mindspore(slot, modules) for slot in slots]


def _in_mindspore(slot: Slot, modules: dict[str, torch.nn.Module]) -> Slot:
    head, _, leaf = slot.path.rpartition(".")
    module = modules.get(head)
    parent = modules.get(head.rpartition(".")[0])
    shape = slot.shape
    if isinstance(module, (torch.nn.Conv1d, torch.nn.ConvTranspose1d)) and leaf == "weight":
        shape = (*shape[:2], 1, *shape[2:])
    leaf = next((names.get(leaf, leaf) for kinds, names in _NAMES_OF_LAYERS if isinstance(module, kinds)), leaf)
    if isinstance(module, torch.nn.BatchNorm3d):
        head = f"{head}.bn2d".lstrip(".")
    if isinstance(parent, (torch.nn.TransformerEncoderLayer, torch.nn.TransformerDecoderLayer)):
        outer, _, inner = head.rpartition(".")
        head = f"{outer}.{_FEED_FORWARD.get(inner, inner)}".lstrip(".")
    return Slot(f"{head}.{leaf}".lstrip("."), slot.path, shape, slot.is_in_out)


def in_file(slots: Iterable[Slot], shapes: dict[str, Shape]) -> list[Slot]:
    """Return the tensors of a model under those of their names that a file has; those that the file lacks remain."""
    chosen = []
    for slot in slots:
        name = next((name for name in (slot.name, *slot.aliases) if name in shapes), slot.name)
        chosen.append(slot._replace(name=name, aliases=tuple(other for other in (slot.name, *slot.aliases) if other != name)))
    return chosen


def _is_step_count(name: str) -> bool:
    return name.rpartition(".")[2] == _STEP_COUNT


def _layout_of(layer: Any) -> bool | None:
    """Return whether the weights of a layer are (in, out); None if its class does not tell."""
    if isinstance(layer, (Dense, torch.nn.Linear)):
        return False
    if type(layer).__name__ == _IN_OUT_CLASS:
        return True
    is_transposed = getattr(layer, "transpose_b", None)          # the Linear of mindformers
    return not is_transposed if isinstance(is_transposed, bool) else None
