"""torchspore runs unmodified MindSpore programs on PyTorch.

Importing this module imports no torch and installs nothing; `install()` makes `import mindspore` answer with torchspore.
"""
from __future__ import annotations

__version__ = "0.1.0"
__all__ = ["__version__", "graphs", "install", "uninstall"]


def install() -> None:
    """Makes `import mindspore` answer with torchspore in this process, also where a real mindspore is installed.

    Calling it again does nothing. Raises RuntimeError where the real mindspore has been imported already.
    """
    from torchspore import alias

    alias.install()


def load_ipython_extension(ipython: object) -> None:
    """What `%load_ext torchspore` calls in a notebook: `install()`, and the magic `%explain`, as a cell's `%%explain` too."""
    import importlib
    from typing import Any

    install()
    shell: Any = ipython
    if shell is None:                          # called by hand
        return

    def explain(line: str, cell: str | None = None) -> None:
        """Says what each context option did so far; `%%explain` runs its cell first."""
        if cell is not None:
            shell.run_cell(cell)
        importlib.import_module("torchspore.cli.explain").show()

    importlib.import_module("torchspore.context.effects").expect_explain()
    shell.register_magic_function(explain, magic_kind="line_cell", magic_name="explain")


def unload_ipython_extension(ipython: object) -> None:
    """What `%unload_ext torchspore` calls."""
    uninstall()


def graphs(owner: object) -> list[object]:
    """The graphs captured so far of a Cell, a `@jit` function or a gradient function; `print` shows one."""
    from torchspore.graph import dispatch

    return list(dispatch.graphs(owner))


def uninstall() -> None:
    """Undoes `install()`: what is imported as `mindspore` from now on is looked up as without torchspore."""
    from torchspore import alias

    alias.uninstall()
