"""Resolve MindSpore paths that moved, and build the messages for missing ones."""
from __future__ import annotations

import builtins
import importlib
import importlib.util
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from torchspore.base.suggest import VERY_NEAR, closest
from torchspore.base.text import split_hint, with_hint
from torchspore.errors import ModuleNotOffered, NotOffered
from torchspore.public_names import homes, listing, placeholders, slips
from torchspore.translations import translate

ROOT = "mindspore"
_BUILTINS = frozenset(dir(builtins))
FRONT_END = "torchspore.mindspore"
# The opcode of `from module import name`, looked up here so that `dis` is imported only when a name is missing.
_FROM = "IMPORT_FROM"


def public_path(module: str) -> str:
    """Return the public name of one of our modules: `torchspore.mindspore.nn` becomes `mindspore.nn`."""
    return ROOT + module[len(FRONT_END) :] if module.startswith(FRONT_END) else module


def front_end_path(path: str) -> str:
    """Return the inverse of `public_path`: `mindspore.nn` becomes `torchspore.mindspore.nn`."""
    return FRONT_END + path[len(ROOT) :]


def has_file(path: str) -> bool:
    """Return whether the public module `path` has a file in the front end. Errors while its parents are imported propagate."""
    module_path = front_end_path(path)
    try:
        return importlib.util.find_spec(module_path) is not None
    except ModuleNotFoundError as error:
        if error.name is None or not module_path.startswith(error.name):
            raise
        return False


def is_moved_module(path: str) -> bool:
    """Return whether `path` is a moved module: a row of the table, or a MindSpore module below such a row."""
    if path in homes.MODULES:
        return True
    return bool(homes.homes_of_module(path)) and path in listing.mindspore()


def is_shadowed_by_attribute(path: str) -> bool:
    """Return whether the parent of module `path` has a function or class of the same name, which MindSpore shows under that name."""
    parent, _, child = path.rpartition(".")
    attribute = vars(sys.modules[parent]).get(child)
    if attribute is None:
        try:
            attribute = resolve(path)
        except AttributeError:
            return False
    return not isinstance(attribute, ModuleType)


_LOCATIONS: dict[str, tuple[str, str]] = {}
"""By moved name, the module of the front end and its variable: old programs write `P.Reshape()` and `F.cast` in `construct`."""


def resolve(path: str) -> Any:
    """Return the object of the moved name `path`. Raise AttributeError if neither the table nor the home has it."""
    location = _LOCATIONS.get(path)
    if location is not None and location[0] in sys.modules:
        variables = vars(sys.modules[location[0]])
        if location[1] in variables:
            return variables[location[1]]
    module, _, name = path.rpartition(".")
    targets = [homes.NAMES[path]] if path in homes.NAMES else []
    targets += [f"{home}.{name}" for home in homes.homes_of_module(module)]
    for target in targets:
        home, _, attribute = target.rpartition(".")
        if target == path:
            continue
        try:
            value = find_attribute(home, attribute)
        except (ImportError, AttributeError):
            continue
        _LOCATIONS[path] = _LOCATIONS.get(target, (front_end_path(home), attribute))
        return value
    raise AttributeError(path)


def _resolve_offered(path: str) -> Any:
    """Return a public function or class of the front end, or a method of one."""
    home, _, attribute = path.rpartition(".")
    return find_attribute(home, attribute) if has_file(home) else getattr(_resolve_offered(home), attribute)


def find_attribute(home: str, attribute: str) -> Any:
    """Return an attribute of the public module `home`: one of its variables, or a single name that moved again."""
    if has_file(home):
        module = _home(home)
        if attribute in vars(module):
            return vars(module)[attribute]
    if f"{home}.{attribute}" in homes.NAMES:
        return resolve(f"{home}.{attribute}")
    raise AttributeError(f"{home}.{attribute}")


def _home(path: str) -> ModuleType:
    """Import the front-end module for the public `path`; a newly loaded one gets the error gate, as all others have."""
    module_path = front_end_path(path)
    is_new = module_path not in sys.modules
    module = importlib.import_module(module_path)
    root, gate = sys.modules.get(FRONT_END), sys.modules.get(f"{FRONT_END}.gate")
    if is_new and gate is not None and not getattr(getattr(root, "__spec__", None), "_initializing", False):
        gate.close()
    return module


class MovedModule(ModuleType):
    """A module without a file here: it provides the names of its homes."""

    def __init__(self, path: str) -> None:
        super().__init__(front_end_path(path), f"The names of {path}, which are defined in {', '.join(homes.homes_of_module(path))}.")
        self.__path__: list[str] = []

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.__all__})

    @property
    def __all__(self) -> list[str]:
        public_names: set[str] = set()
        for home in homes.homes_of_module(public_path(self.__name__)):
            if has_file(home):
                module = _home(home)
                members = vars(module).items()
                public_names.update(name for name, value in members if not name.startswith("_") and not isinstance(value, ModuleType))
        module_path = public_path(self.__name__)
        return sorted(_without_builtins(module_path, public_names | _listed(module_path)))

    def __getattr__(self, name: str) -> Any:
        return _find_missing(public_path(self.__name__), name)


def missing(module_name: str) -> Callable[[str], Any]:
    """Create the `__getattr__` of a front-end module: it resolves moved names and submodules, otherwise reports the missing name."""
    module = public_path(module_name)

    def __getattr__(name: str) -> Any:
        return _find_missing(module, name)

    return __getattr__


def _find_missing(module: str, name: str) -> Any:
    """Return `module.name` if the module itself has no such attribute; raise if nothing is known about it."""
    path = f"{module}.{name}"
    if name == "__all__" and module in listing.mindspore():
        return _exported(module)
    if name.startswith("__"):  # Python itself looks these up, and often
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    try:
        return resolve(path)
    except AttributeError:
        pass
    if has_file(path) or is_moved_module(path):
        return importlib.import_module(_importable(path))
    if path in slips.SLIPS:
        slips.warn_about(path)
        return _resolve_offered(slips.SLIPS[path])
    if (imported := _imported(path)) is not None:
        return imported
    if is_from_import():
        if placeholders.can_return_placeholder():
            placeholders.warn_of(path, text_for(path))
            return placeholders.MissingName(path, text_for(path))
        raise ModuleNotOffered(import_text(path), name=path)
    raise NotOffered(text_for(path), name=name)


def _imported(path: str) -> ModuleType | None:
    """Return the module that MindSpore's module imports under this name, as `np` or `nn`; None if there is none, or it is missing."""
    target = listing.imports().get(path, "")
    if not target or not _is_module(path.rpartition(".")[0]) or (_is_ours(target) and not has_file(target) and not is_moved_module(target)):
        return None
    return importlib.import_module(_importable(target) if _is_ours(target) else target)


def _is_imported(path: str) -> bool:
    """Return whether `path` is a module that another one imports, or something in such a module of Python or NumPy."""
    module, suffix = path, ""
    while module:
        target = listing.imports().get(module)
        if target and _is_module(module.rpartition(".")[0]) and not (suffix and (_is_ours(target) or module in listing.mindspore())):
            return not _is_ours(target) or is_offered(target)
        module, _, name = module.rpartition(".")
        suffix = f".{name}{suffix}"
    return False


def _is_module(path: str) -> bool:
    """Return whether a module of this path can be imported here, by the lists."""
    return path in listing.offered() or path in listing.offered_private() or is_moved_module(path)


def _is_ours(path: str) -> bool:
    return path == ROOT or path.startswith(ROOT + ".")


def _exported(module: str) -> list[str]:
    """Return the names of `from module import *` for a module without `__all__`: MindSpore's names, and names defined here."""
    module_path = front_end_path(module)
    defined = {name for name, value in vars(sys.modules[module_path]).items() if getattr(value, "__module__", None) == module_path}
    late = homes.EXPORTED.get(module, "").split()
    return sorted(_without_builtins(module, {*_listed(module), *late, *(name for name in defined if not name.startswith("_"))}))


def _without_builtins(module: str, names: set[str]) -> set[str]:
    """Return the names without those of Python's builtins that MindSpore's module does not export: `max` stays Python's after a star."""
    return names - (_BUILTINS - homes.BUILTINS.get(module, frozenset()))


def _listed(module: str) -> set[str]:
    """Return the names of MindSpore's module that can be imported here, without the modules below it."""
    mindspore_names = listing.mindspore()
    names = [name for name in mindspore_names.get(module, ()) if not name.startswith("_") and f"{module}.{name}" not in mindspore_names]
    return {name for name in names if is_offered(f"{module}.{name}") and not is_moved_module(f"{module}.{name}")}


def _importable(path: str) -> str:
    """Return the name under which `path` is imported: MindSpore's if the alias is installed, so that both names are one module."""
    root = sys.modules.get(ROOT)
    return path if root is not None and root is sys.modules.get(FRONT_END) else front_end_path(path)


def is_from_import() -> bool:
    """Return whether the attribute lookup comes from `from module import name`.

    Python replaces the text of an AttributeError there, so that our text would be lost: it needs an ImportError.
    """
    frame = sys._getframe(2)
    while frame.f_code.co_name == "__getattr__" and frame.f_back is not None:
        frame = frame.f_back
    if frame.f_code.co_name == "_handle_fromlist":
        return True
    import dis

    return dis.opname[frame.f_code.co_code[frame.f_lasti]] == _FROM


def is_offered(path: str) -> bool:
    """Return whether, by the generated list, `path` can be imported here, under its own or an old name. Import nothing."""
    return _is_offered(path, path.rpartition(".")[0] in listing.mindspore(), set()) or _is_imported(path)


def _is_offered(path: str, in_module: bool, seen: set[str]) -> bool:
    """Return the same for a path that none of the homes in `seen` has led to: two homes may refer to each other.

    A name in a module of MindSpore (`in_module`) is not an attribute of a function or class with the name of that module.
    """
    if path in seen or path in slips.SLIPS or lacks_attribute(path):
        return False
    seen.add(path)
    if path in homes.MODULES or any(_is_listed(names, path, in_module) for names in (listing.offered(), listing.offered_private())):
        return True
    module, suffix = path, ""
    while module:
        if module in homes.NAMES:
            return _is_offered(homes.NAMES[module] + suffix, in_module, seen)
        module, _, name = module.rpartition(".")
        suffix = f".{name}{suffix}"
        if any(home + suffix != path and _is_offered(home + suffix, in_module, seen) for home in homes.homes_of_module(module)):
            return True
    return is_moved_module(path)


def _is_listed(names: listing.Listing, path: str, in_module: bool) -> bool:
    module, _, name = path.rpartition(".")
    return path in names or name in names.get(module, ()) if in_module else listing.has(names, path)


def text_for(path: str) -> str:
    """Return the message for a missing `path`: whether MindSpore has it, and the nearest existing name."""
    if path in slips.SLIPS:
        return slips.text_for(path)
    text = _standing(path).format(path=path)
    if (replacement := slips.replacement(path)) is not None:
        return with_hint(translate("{path} is a name of torch; no release of MindSpore has it.").format(path=path),
                         translate("write {word}").format(word=replacement))
    near = nearest(path)
    return with_hint(text, translate("the nearest name here is {near}").format(near=near)) if near else text


def import_text(path: str) -> str:
    """Return the text of the ImportError for a missing `path`: `text_for`, and the option that defers the error to the first use."""
    text, hint = split_hint(text_for(path))
    later = translate("`torchspore run --lenient` raises this error only where the name is first used")
    return with_hint(text, f"{hint.removesuffix(translate('.'))}{translate('; ')}{later}" if hint else later)


def _standing(path: str) -> str:
    """Return a sentence about `{path}` that says whether MindSpore 2.10 has it. Not all private names are recorded."""
    if listing.has(listing.mindspore(), path) or listing.has(listing.private(), path):
        return translate("{path} is not in torchspore yet; MindSpore 2.10 has it.")
    if any(part.startswith("_") for part in path.split(".")):
        return translate("{path} is not in torchspore; it is a private name, and MindSpore 2.10 is not known to have it.")
    return translate("{path} is not in torchspore yet, and MindSpore 2.10 has no such name.")


def lacks_attribute(path: str) -> bool:
    """Return whether `path` is an attribute of a class in MindSpore 2.10 that the class here lacks."""
    owner, _, name = path.rpartition(".")
    cls = owner.rpartition(".")[2]
    offered_attributes = listing.offered_classes().get(cls)
    return offered_attributes is not None and name not in offered_attributes and name in listing.mindspore_classes().get(cls, ())


def attribute_text(classes: Sequence[type], name: str) -> str | None:
    """Return the message for a missing attribute `name` of an object with these classes; None if MindSpore's classes lack it too."""
    for cls in classes:
        if cls.__module__.startswith(FRONT_END) and name in listing.mindspore_classes().get(cls.__name__, ()):
            offered = listing.offered_classes().get(cls.__name__, ())
            if name in offered:                    # of another class with this name: mindspore.nn.SGD and that of experimental.optim
                continue
            text = translate("{path} is not in torchspore yet; MindSpore 2.10 has it.").format(path=f"{cls.__name__}.{name}")
            near = closest(name, [other for other in offered if other[0] != "_"], VERY_NEAR)
            hint = translate("the nearest name here is {near}")
            return with_hint(text, hint.format(near=f"{cls.__name__}.{near}")) if near else text
    return None


def nearest(path: str) -> str | None:
    """Return the offered path most similar to `path`: the same name elsewhere, otherwise a similar one in the same module."""
    module, _, name = path.rpartition(".")
    elsewhere = [candidate for candidate in listing.homes_of(listing.offered(), name) if candidate != path]
    if elsewhere:
        return elsewhere[0]
    for home in (module, *homes.homes_of_module(module)):
        if similar := closest(name, sorted(listing.offered().get(home, ())), VERY_NEAR):
            return f"{home}.{similar}"
    return None
