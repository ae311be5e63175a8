"""torchspore runs unmodified MindSpore programs on PyTorch.

Importing this module imports no torch and installs nothing; `install()` makes `import mindspore` answer with torchspore.
"""
from __future__ import annotations

TYPE_CHECKING = False              # the import of `typing` takes longer than this module
if TYPE_CHECKING:
    from typing import Any

__version__ = "0.1.0"
__all__ = ["__version__", "as_cell", "as_iterable", "as_module", "from_torch", "graphs", "install", "to_torch", "uninstall"]


def install() -> None:
    """Make `import mindspore` answer with torchspore in this process, even if a real mindspore is installed.

    Further calls do nothing. Raise RuntimeError if the real mindspore has already been imported.
    """
    from torchspore import alias

    alias.install()


def load_ipython_extension(ipython: object) -> None:
    """Entry point of `%load_ext torchspore` in a notebook: `install()`, and the magics `%explain` and `%%explain`."""
    import importlib

    install()
    shell: Any = ipython
    if shell is None:                          # called by hand
        return

    def explain(line: str, cell: str | None = None) -> None:
        """Print the outcome of each context option so far; `%%explain` runs its cell first."""
        if cell is not None:
            shell.run_cell(cell)
        importlib.import_module("torchspore.cli.explain").show()

    importlib.import_module("torchspore.context.effects").expect_explain()
    shell.register_magic_function(explain, magic_kind="line_cell", magic_name="explain")


def unload_ipython_extension(ipython: object) -> None:
    """Entry point of `%unload_ext torchspore`."""
    uninstall()


def graphs(owner: object) -> list[object]:
    """Return the graphs captured so far of a Cell, a `@jit` function or a gradient function; `print` shows one."""
    from torchspore.graph import dispatch

    return list(dispatch.graphs(owner))


def to_torch(tensor: Any) -> Any:
    """Return the torch tensor that holds the values of a MindSpore Tensor, in the same memory; a torch tensor itself.

    Where a gradient is recorded, by MindSpore or by torch, it flows through both. Raises TypeError for other values.
    """
    from torchspore.mindspore.common import torch_tensors

    return torch_tensors.to_torch(tensor)


def from_torch(tensor: Any) -> Any:
    """Return a MindSpore Tensor on a torch tensor, in the same memory; a Tensor itself.

    Where a gradient is recorded, by MindSpore or by torch, the gradient flows through it.

    Raises:
        TypeError: the value is not a torch tensor with dense memory.
        RuntimeError: inside a gradient of MindSpore, it depends on a torch Parameter, which the gradient would not reach.
    """
    from torchspore.mindspore.common import torch_tensors

    return torch_tensors.from_torch(tensor)


def as_module(cell: Any, naming: str = "mindspore") -> Any:
    """Return a torch Module that computes with `cell` and has its Parameters, in the same memory, with its structure as submodules.

    `naming` decides the names in `state_dict()`: those of `Cell.state_dict`, or torch's ("torch").

    Raises:
        TypeError: the value is not a Cell, or a Parameter is stored in parts.
        ValueError: `naming` is another word, or torch has no names for a layer.
    """
    from torchspore.torch_modules import cell_module

    return cell_module.as_module(cell, naming)


def as_cell(module: Any) -> Any:
    """Return a Cell that computes with a torch Module and has its parameters, in the same memory, under the Module's names.

    A torch Module that is assigned to an attribute of a Cell becomes such a Cell. Raises TypeError for a value that is not a torch Module,
    and for parameters without memory.
    """
    from torchspore.torch_modules import module_cell

    return module_cell.as_cell(module)


def as_iterable(dataset: Any, output_dict: bool = False) -> Any:
    """Return the rows of a MindSpore data set as torch's IterableDataset: tuples of torch tensors, or dicts with `output_dict`.

    In the workers of a DataLoader each row is read once. Raises TypeError for a value that is not a data set.
    """
    from torchspore.torch_modules import torch_data

    return torch_data.as_iterable(dataset, output_dict)


def uninstall() -> None:
    """Undo `install()`: later imports of `mindspore` are resolved as without torchspore."""
    from torchspore import alias

    alias.uninstall()
