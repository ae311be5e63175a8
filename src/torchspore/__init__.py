"""torchspore runs unmodified MindSpore programs on PyTorch.

Importing this module imports no torch and installs nothing; `install()` makes `import mindspore` answer with torchspore.
"""
from __future__ import annotations

__version__ = "0.1.0"
__all__ = ["__version__", "graphs", "install", "uninstall"]


def install() -> None:
    """Make `import mindspore` answer with torchspore in this process, even if a real mindspore is installed.

    Further calls do nothing. Raise RuntimeError if the real mindspore has already been imported.
    """
    from torchspore import alias

    alias.install()


def load_ipython_extension(ipython: object) -> None:
    """Entry point of `%load_ext torchspore` in a notebook: `install()`, and the magics `%explain` and `%%explain`."""
    import importlib
    from typing import Any

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


def uninstall() -> None:
    """Undo `install()`: later imports of `mindspore` are resolved as without torchspore."""
    from torchspore import alias

    alias.uninstall()
