"""Which public names a package's modules offer; for tools/recorders/names.py (MindSpore's) and tools/generators/offered_names.py (ours)."""
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

# What `from __future__ import annotations` leaves in a module.
HIDDEN = ("annotations",)


def is_public(name: str) -> bool:
    """Whether no part of the dotted `name` begins with an underscore."""
    return not any(part.startswith("_") for part in name.split("."))


def modules(package: types.ModuleType, is_wanted: Callable[[str], bool], tolerant: bool) -> list[types.ModuleType]:
    """`package` and every wanted public module below it, by name. What can't be imported is left out where `tolerant`."""
    found = [package]
    for information in pkgutil.walk_packages(package.__path__, package.__name__ + ".", onerror=lambda name: None):
        if not is_public(information.name) or not is_wanted(information.name):
            continue
        # A module of MindSpore's may want a device, a library or a process of its own: then its names are unknown here.
        with contextlib.suppress(BaseException) if tolerant else contextlib.nullcontext(), contextlib.redirect_stdout(io.StringIO()):
            found.append(importlib.import_module(information.name))
    return sorted(found, key=lambda module: module.__name__)


def is_made_by(value: object, root: str) -> bool:
    """Whether the package `root` made `value`, or it is a plain value such as GRAPH_MODE."""
    if isinstance(value, types.ModuleType):
        return value.__name__ == root or value.__name__.startswith(root + ".")
    home = getattr(value, "__module__", None) or type(value).__module__
    return home.split(".")[0] in (root.split(".")[0], "builtins")


def public_names(module: types.ModuleType, root: str) -> list[str]:
    """The public names of `module` that the package `root` made, sorted; those of its `__all__` that it loads late among them."""
    # A module of MindSpore 2.10 lists classes themselves in __all__.
    exported = [name for name in vars(module).get("__all__", ()) if isinstance(name, str) and name not in vars(module)]
    late = {name: getattr(module, name) for name in exported if hasattr(module, name)}
    found = {**vars(module), **late}
    return sorted(name for name, value in found.items() if is_public(name) and name not in HIDDEN and is_made_by(value, root))


def listed(named: Iterable[tuple[str, Iterable[str]]]) -> list[str]:
    """The list as text: one line for each module that has names, `module: name name …`."""
    return [f"{module}: {' '.join(names)}" for module, names in named if names]


def own_attributes(cls: type) -> list[str]:
    """The attributes that a class and its bases of the same package give: those it has, and those its methods give to `self`.

    What every object has is left out, and so are names with two underscores in front.
    """
    root = cls.__module__.split(".")[0]
    found: set[str] = set()
    for base in cls.__mro__:
        if str(getattr(base, "__module__", "")).split(".")[0] == root:
            found.update(name for name, value in vars(base).items() if type(value).__name__ != "Lacking")
            found.update(_assigned_to_self(base))
    return sorted(name for name in found if not name.startswith("__") and not name.startswith(f"_{cls.__name__}__"))


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
