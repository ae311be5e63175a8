"""Finds what a path of MindSpore's means here, and says what is known about one that means nothing."""
from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from torchspore.base.suggest import VERY_NEAR, closest
from torchspore.base.text import with_hint
from torchspore.errors import ModuleNotOffered, NotOffered
from torchspore.names import homes, listing, placeholders, slips

ROOT = "mindspore"
FRONT_END = "torchspore.mindspore"
# The opcode of `from module import name`, looked up here so that `dis` is imported only when a name is missing.
_FROM = "IMPORT_FROM"


def public_path(module: str) -> str:
    """The name that a program writes for one of our modules: `torchspore.mindspore.nn` is `mindspore.nn`."""
    return ROOT + module[len(FRONT_END) :] if module.startswith(FRONT_END) else module


def front_end_path(path: str) -> str:
    """The other way round: `mindspore.nn` is `torchspore.mindspore.nn`."""
    return FRONT_END + path[len(ROOT) :]


def has_file(path: str) -> bool:
    """Whether the public module `path` has a file in the front end. An error while its parents are imported is passed on."""
    own = front_end_path(path)
    try:
        return importlib.util.find_spec(own) is not None
    except ModuleNotFoundError as error:
        if error.name is None or not own.startswith(error.name):
            raise
        return False


def is_moved_module(path: str) -> bool:
    """Whether `path` is a module that moved: a row of the table, or a module of MindSpore's below such a row."""
    if path in homes.MODULES:
        return True
    return bool(homes.homes_of_module(path)) and path in listing.mindspore()


def is_name_of_more(path: str) -> bool:
    """Whether the module `path` has the name of a function or class beside it, which MindSpore's package shows under that name."""
    parent, _, child = path.rpartition(".")
    attribute = vars(sys.modules[parent]).get(child)
    if attribute is None:
        try:
            attribute = resolve(path)
        except AttributeError:
            return False
    return not isinstance(attribute, ModuleType)


def resolve(path: str) -> Any:
    """What the moved name `path` means here. Raises AttributeError where the table or the home has nothing for it."""
    module, _, name = path.rpartition(".")
    targets = [homes.NAMES[path]] if path in homes.NAMES else []
    targets += [f"{home}.{name}" for home in homes.homes_of_module(module)]
    for target in targets:
        home, _, attribute = target.rpartition(".")
        if target == path:
            continue
        try:
            return vars_or_moved(home, attribute)
        except (ImportError, AttributeError):
            continue
    raise AttributeError(path)


def _meant(path: str) -> Any:
    """A public function or class of the front end's, or a method of one."""
    home, _, attribute = path.rpartition(".")
    return vars_or_moved(home, attribute) if has_file(home) else getattr(_meant(home), attribute)


def vars_or_moved(home: str, attribute: str) -> Any:
    """The attribute of the public module `home`: what stands in it, or a single name that moved once more."""
    if has_file(home):
        module = _home(home)
        if attribute in vars(module):
            return vars(module)[attribute]
    if f"{home}.{attribute}" in homes.NAMES:
        return resolve(f"{home}.{attribute}")
    raise AttributeError(f"{home}.{attribute}")


def _home(path: str) -> ModuleType:
    """The front end's own module for the public `path`; one that is loaded here first gets the gate of errors, as all others have."""
    own = front_end_path(path)
    is_new = own not in sys.modules
    module = importlib.import_module(own)
    root, gate = sys.modules.get(FRONT_END), sys.modules.get(f"{FRONT_END}.gate")
    if is_new and gate is not None and not getattr(getattr(root, "__spec__", None), "_initializing", False):
        gate.close()
    return module


class MovedModule(ModuleType):
    """A module that has no file here: it answers with the names of its homes."""

    def __init__(self, path: str) -> None:
        super().__init__(front_end_path(path), f"The names of {path}, which live in {', '.join(homes.homes_of_module(path))}.")
        self.__path__: list[str] = []

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.__all__})

    @property
    def __all__(self) -> list[str]:
        found: set[str] = set()
        for home in homes.homes_of_module(public_path(self.__name__)):
            if has_file(home):
                module = _home(home)
                found.update(name for name, value in vars(module).items() if not name.startswith("_") and not isinstance(value, ModuleType))
        return sorted(found | _listed(public_path(self.__name__)))

    def __getattr__(self, name: str) -> Any:
        return _answer(public_path(self.__name__), name)


def missing(module_name: str) -> Callable[[str], Any]:
    """Makes the `__getattr__` of a front-end module: it finds moved names and submodules, and else says what is missing."""
    module = public_path(module_name)

    def __getattr__(name: str) -> Any:
        return _answer(module, name)

    return __getattr__


def _answer(module: str, name: str) -> Any:
    """What `module.name` is where the module itself has no such attribute; raises where nothing is known."""
    path = f"{module}.{name}"
    if name == "__all__" and module in listing.mindspore():
        return _exported(module)
    if name.startswith("__"):  # asked for by Python itself, and often
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    try:
        return resolve(path)
    except AttributeError:
        pass
    if has_file(path) or is_moved_module(path):
        return importlib.import_module(_importable(path))
    if path in slips.SLIPS:
        slips.tell(path)
        return _meant(slips.SLIPS[path])
    if (found := _imported(path)) is not None:
        return found
    if is_asked_by_from():
        if placeholders.may_stand_in():
            placeholders.warn_of(path, text_for(path))
            return placeholders.MissingName(path, text_for(path))
        raise ModuleNotOffered(import_text(path), name=path)
    raise NotOffered(text_for(path), name=name)


def _imported(path: str) -> ModuleType | None:
    """The module that MindSpore's module has imported under this name, as `np` or `nn`; None where it has not, or that one is missing."""
    target = listing.imports().get(path, "")
    if not target or not _is_module(path.rpartition(".")[0]) or (_is_ours(target) and not has_file(target) and not is_moved_module(target)):
        return None
    return importlib.import_module(_importable(target) if _is_ours(target) else target)


def _is_imported(path: str) -> bool:
    """Whether `path` is a module that another one has imported, or something in one of Python's and NumPy's."""
    module, rest = path, ""
    while module:
        target = listing.imports().get(module)
        if target and _is_module(module.rpartition(".")[0]) and not (rest and (_is_ours(target) or module in listing.mindspore())):
            return not _is_ours(target) or is_offered(target)
        module, _, name = module.rpartition(".")
        rest = f".{name}{rest}"
    return False


def _is_module(path: str) -> bool:
    """Whether a module of this path can be imported here, by the lists."""
    return path in listing.offered() or path in listing.offered_private() or is_moved_module(path)


def _is_ours(path: str) -> bool:
    return path == ROOT or path.startswith(ROOT + ".")


def _exported(module: str) -> list[str]:
    """What `from module import *` takes of a module that does not say it itself: what MindSpore's has, and what is defined here."""
    here = front_end_path(module)
    defined = {name for name, value in vars(sys.modules[here]).items() if getattr(value, "__module__", None) == here}
    late = homes.EXPORTED.get(module, "").split()
    return sorted({*_listed(module), *late, *(name for name in defined if not name.startswith("_"))})


def _listed(module: str) -> set[str]:
    """What MindSpore's module of this name has and can be imported here, less the modules below it."""
    known = listing.mindspore()
    names = [name for name in known.get(module, ()) if not name.startswith("_") and f"{module}.{name}" not in known]
    return {name for name in names if is_offered(f"{module}.{name}") and not is_moved_module(f"{module}.{name}")}


def _importable(path: str) -> str:
    """The name under which `path` is imported: MindSpore's where the alias is installed, so that both names are one module."""
    root = sys.modules.get(ROOT)
    return path if root is not None and root is sys.modules.get(FRONT_END) else front_end_path(path)


def is_asked_by_from() -> bool:
    """Whether the module is being asked by `from module import name`.

    Python replaces an AttributeError there by a text of its own, so that ours would be lost: it needs an ImportError.
    """
    frame = sys._getframe(2)
    while frame.f_code.co_name == "__getattr__" and frame.f_back is not None:
        frame = frame.f_back
    if frame.f_code.co_name == "_handle_fromlist":
        return True
    import dis

    return dis.opname[frame.f_code.co_code[frame.f_lasti]] == _FROM


def is_offered(path: str) -> bool:
    """Whether the generated list says that `path` can be imported here, under its own or an old name. Imports nothing."""
    return _is_offered(path, path.rpartition(".")[0] in listing.mindspore(), set()) or _is_imported(path)


def _is_offered(path: str, in_module: bool, seen: set[str]) -> bool:
    """The same of a path that none of the homes `seen` so far has led to: two homes may name each other.

    What stands in a module of MindSpore's (`in_module`) is no attribute of a function or class that has the name of that module.
    """
    if path in seen or path in slips.SLIPS or lacks_attribute(path):
        return False
    seen.add(path)
    if path in homes.MODULES or any(_is_listed(names, path, in_module) for names in (listing.offered(), listing.offered_private())):
        return True
    module, rest = path, ""
    while module:
        if module in homes.NAMES:
            return _is_offered(homes.NAMES[module] + rest, in_module, seen)
        module, _, name = module.rpartition(".")
        rest = f".{name}{rest}"
        if any(home + rest != path and _is_offered(home + rest, in_module, seen) for home in homes.homes_of_module(module)):
            return True
    return is_moved_module(path)


def _is_listed(names: listing.Listing, path: str, in_module: bool) -> bool:
    module, _, name = path.rpartition(".")
    return path in names or name in names.get(module, ()) if in_module else listing.has(names, path)


def text_for(path: str) -> str:
    """What is said about a `path` that is missing here: whether MindSpore has it, and the nearest name that exists."""
    if path in slips.SLIPS:
        return slips.text_for(path)
    near = nearest(path)
    text = f"{path} is not in torchspore{_standing(path)}"
    return with_hint(text, f"the nearest name here is {near}") if near else text


def import_text(path: str) -> str:
    """Return what the ImportError for a missing `path` says: `text_for`, and the option that defers the error to the first use."""
    text, _, hint = text_for(path).partition("\n\nhint: ")
    later = "`torchspore run --lenient` raises this error only where the name is first used"
    return with_hint(text, f"{hint.removesuffix('.')}; {later}" if hint else later)


def _standing(path: str) -> str:
    """Whether MindSpore 2.10 has `path`. Of private names not all are recorded."""
    if listing.has(listing.mindspore(), path) or listing.has(listing.private(), path):
        return " yet; MindSpore 2.10 has it."
    if any(part.startswith("_") for part in path.split(".")):
        return "; it is a private name, and MindSpore 2.10 is not known to have it."
    return " yet, and MindSpore 2.10 has no such name."


def lacks_attribute(path: str) -> bool:
    """Whether `path` is an attribute that a class of MindSpore 2.10's has and the class here has not."""
    owner, _, name = path.rpartition(".")
    cls = owner.rpartition(".")[2]
    here = listing.offered_classes().get(cls)
    return here is not None and name not in here and name in listing.mindspore_classes().get(cls, ())


def attribute_text(classes: Sequence[type], name: str) -> str | None:
    """What is said where an object of a class with these bases has no attribute `name`; None where MindSpore's has none either."""
    for cls in classes:
        if cls.__module__.startswith(FRONT_END) and name in listing.mindspore_classes().get(cls.__name__, ()):
            offered = listing.offered_classes().get(cls.__name__, ())
            if name in offered:                    # of another class of this name: mindspore.nn.SGD beside that of experimental.optim
                continue
            text = f"{cls.__name__}.{name} is not in torchspore yet; MindSpore 2.10 has it."
            near = closest(name, [other for other in offered if other[0] != "_"], VERY_NEAR)
            return with_hint(text, f"the nearest name here is {cls.__name__}.{near}") if near else text
    return None


def nearest(path: str) -> str | None:
    """The path offered here that is most like `path`: the same name elsewhere, else a similar one in the same module."""
    module, _, name = path.rpartition(".")
    elsewhere = [found for found in listing.homes_of(listing.offered(), name) if found != path]
    if elsewhere:
        return elsewhere[0]
    for home in (module, *homes.homes_of_module(module)):
        if similar := closest(name, sorted(listing.offered().get(home, ())), VERY_NEAR):
            return f"{home}.{similar}"
    return None
