"""Lists the public names of a package's modules, for tools/recorders/names.py (MindSpore) and tools/generators/offered_names.py."""
from __future__ import annotations

import ast
import contextlib
import functools
import importlib
import inspect
import io
import pkgutil
import textwrap
import types
from collections.abc import Callable, Iterable

# The name that `from __future__ import annotations` binds in a module.
HIDDEN = ("annotations",)


def is_public(name: str) -> bool:
    """Return whether no part of the dotted `name` begins with an underscore."""
    return not any(part.startswith("_") for part in name.split("."))


def modules(package: types.ModuleType, is_selected: Callable[[str], bool], tolerant: bool) -> list[types.ModuleType]:
    """Return `package` and its public modules for which `is_selected(name)` holds, sorted by name.

    A module that cannot be imported is omitted if `tolerant`, otherwise its error propagates.
    """
    imported = [package]
    for information in pkgutil.walk_packages(package.__path__, package.__name__ + ".", onerror=lambda name: None):
        if not is_public(information.name) or not is_selected(information.name):
            continue
        # A module of MindSpore may need a device, a library or a separate process: its names then remain unknown.
        with contextlib.suppress(BaseException) if tolerant else contextlib.nullcontext(), contextlib.redirect_stdout(io.StringIO()):
            imported.append(importlib.import_module(information.name))
    return sorted(imported, key=lambda module: module.__name__)


def is_defined_in(value: object, root: str) -> bool:
    """Return whether the package `root` defines `value`, or `value` is a plain value such as GRAPH_MODE."""
    if isinstance(value, types.ModuleType):
        return value.__name__ == root or value.__name__.startswith(root + ".")
    home = getattr(value, "__module__", None) or type(value).__module__
    return home.split(".")[0] in (root.split(".")[0], "builtins")


def public_names(module: types.ModuleType, root: str) -> list[str]:
    """Return the sorted public names of `module` that the package `root` defines, including those of `__all__` that it loads late."""
    # A module of MindSpore 2.10 lists classes themselves in __all__.
    exported = [name for name in vars(module).get("__all__", ()) if isinstance(name, str) and name not in vars(module)]
    late = {name: getattr(module, name) for name in exported if hasattr(module, name)}
    members = {**vars(module), **late}
    return sorted(name for name, value in members.items() if is_public(name) and name not in HIDDEN and is_defined_in(value, root))


def lines_of(named: Iterable[tuple[str, Iterable[str]]]) -> list[str]:
    """Return a line `module: name name …` for each module that has names."""
    return [f"{module}: {' '.join(names)}" for module, names in named if names]


def attributes_of(cls: type) -> list[str]:
    """Return the attributes of a class and its bases of the same package: members, and attributes that methods assign to `self`.

    Names that begin with two underscores are omitted.
    """
    root = cls.__module__.split(".")[0]
    names: set[str] = set()
    for base in cls.__mro__:
        if str(getattr(base, "__module__", "")).split(".")[0] == root:
            names.update(name for name, value in vars(base).items() if type(value).__name__ != "Lacking")
            names.update(_assigned_to_self(base))
    return sorted(name for name in names if not name.startswith("__") and not name.startswith(f"_{cls.__name__}__"))


@functools.cache
def _assigned_to_self(cls: type) -> set[str]:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
    except (OSError, TypeError, SyntaxError):
        return set()
    return {
        node.attr for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and getattr(node.value, "id", "") == "self"
    }
