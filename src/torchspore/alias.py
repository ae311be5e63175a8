"""`import mindspore` answers with torchspore: a finder that returns the same module objects under both names."""
from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import torchspore
from torchspore import import_effects
from torchspore.base.frames import keep_source
from torchspore.base.garbage_collection import import_without_collections
from torchspore.base.text import with_hint
from torchspore.errors import ModuleNotOffered
from torchspore.public_names import homes, listing, lookup, mindspore_version, missing, placeholders, text_for
from torchspore.public_names.lookup import FRONT_END, ROOT
from torchspore.translations import start, translate

SHIM = Path(__file__).resolve().parent / "shim"
"""The folder from which spawned processes import torchspore as `mindspore`; see shim/mindspore."""

__all__ = ["front_end_module", "install", "is_installed", "missing", "uninstall"]


class Alias(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `mindspore` and its submodules in torchspore's front end, and in the table of moved names."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return how `fullname` is loaded. Raise ModuleNotOffered for a MindSpore module that is missing here."""
        if isinstance(target, lookup.MovedModule):       # `importlib.reload`, which uses the module's own name
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        if fullname != ROOT and not fullname.startswith(ROOT + "."):
            return import_effects.spec_with_tensors(fullname, path)
        if lookup.has_file(fullname):
            return _file_spec(fullname, self)
        if lookup.is_moved_module(fullname):
            return importlib.machinery.ModuleSpec(fullname, self)
        if _is_find_spec_call():
            return None
        if _is_attribute(fullname):                      # `pkgutil.resolve_name`, for mock.patch, tries to import each part of a path
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
        if placeholders.can_return_placeholder():
            placeholders.warn_of(fullname, text_for(fullname))
            return placeholders.module_spec(fullname, self)
        raise ModuleNotOffered(lookup.import_text(fullname), name=fullname)

    def find_distributions(self, context: Any = None) -> Iterable[Any]:
        """Return the distribution `mindspore` for `importlib.metadata`, where `context` asks for it or for all distributions."""
        from torchspore.public_names.distribution import distributions

        return distributions(getattr(context, "name", None))

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        """Create the placeholder of a missing module. Python creates all others: one from here would get the alias's `__spec__`."""
        return placeholders.MissingModule(spec.name, text_for(spec.name)) if spec.loader_state == "missing" else None

    def exec_module(self, module: ModuleType) -> None:
        """Store the front end's module object where Python looks for the alias's module."""
        if isinstance(module, (lookup.MovedModule, placeholders.MissingModule)):       # there is nothing to run
            return
        name = module.__name__
        sys.modules[name] = front_end_module(name)
        parent, _, child = name.rpartition(".")
        if parent in sys.modules and lookup.is_shadowed_by_attribute(name):
            _keep_attribute(sys.modules[parent], child)


def _file_spec(path: str, loader: Alias) -> importlib.machinery.ModuleSpec:
    """Return the spec of a front-end module under the public `path`, with the file and folders that a real package has."""
    source = importlib.util.find_spec(lookup.front_end_path(path))
    spec = importlib.machinery.ModuleSpec(path, loader)
    if source is not None:
        spec.origin, spec.submodule_search_locations = source.origin, source.submodule_search_locations
    return spec


def _keep_attribute(parent: ModuleType, child: str) -> None:
    """Let `parent` keep its `child`, a function, when Python next replaces it by the module of that name."""
    kind = type(parent)

    def __setattr__(module: ModuleType, name: str, value: object) -> None:
        ModuleType.__setattr__(module, "__class__", kind)
        if name != child:
            setattr(module, name, value)

    parent.__class__ = type(kind.__name__, (kind,), {"__setattr__": __setattr__})


_finder = Alias()


def front_end_module(path: str) -> ModuleType:
    """Return the front end's module for the public `path`; import it if necessary."""
    module_path = lookup.front_end_path(path)
    if lookup.has_file(path):
        with import_without_collections():
            module = importlib.import_module(module_path)
            vars(module).setdefault("__path__", [])     # MindSpore may have modules below a file here: the finder resolves them
            _complete_loaded()
            importlib.import_module(f"{FRONT_END}.ops.declaration.error_boundary").close()
        if path == ROOT:
            import_effects.apply()
        return module
    if module_path not in sys.modules:
        moved = lookup.MovedModule(path)
        moved.__spec__ = importlib.machinery.ModuleSpec(module_path, _finder, is_package=True)
        sys.modules[module_path] = moved
    return sys.modules[module_path]


def _complete_loaded() -> None:
    """Give every front-end module without a `__getattr__` the one that reports missing names."""
    for name, module in list(sys.modules.items()):
        if name.startswith(FRONT_END) and isinstance(module, ModuleType) and "__getattr__" not in vars(module):
            vars(module)["__getattr__"] = missing(name)
            _export(module)
    root = sys.modules.get(FRONT_END)
    if root is not None:
        vars(root).setdefault("__version__", mindspore_version())
        vars(root).setdefault("__torchspore__", torchspore.__version__)


def _export(module: ModuleType) -> None:
    """Add to `from module import *` the names that are defined elsewhere here."""
    late = homes.EXPORTED.get(lookup.public_path(module.__name__), "").split()
    if late and "__all__" in vars(module):
        vars(module)["__all__"] = [*vars(module)["__all__"], *late]


def _is_find_spec_call() -> bool:
    """Return whether the call comes from `importlib.util.find_spec`, which expects None for a missing module."""
    frame = sys._getframe(3)
    return frame.f_code is importlib.util.find_spec.__code__


def _is_attribute(path: str) -> bool:
    """Return whether `path` is a class or function of a loaded module and no module of MindSpore."""
    parent, _, child = path.rpartition(".")
    attribute = vars(sys.modules[parent]).get(child) if parent in sys.modules else None
    return attribute is not None and not isinstance(attribute, (ModuleType, placeholders.MissingName)) and path not in listing.mindspore()


def is_installed() -> bool:
    """Return whether torchspore answers `import mindspore` in this process."""
    return _finder in sys.meta_path


def install() -> None:
    """Make `import mindspore` answer with torchspore, ahead of a real mindspore in the same environment."""
    loaded = sys.modules.get(ROOT)
    if is_installed():
        return
    if loaded is not None and loaded is not sys.modules.get(FRONT_END) and not _is_shim(loaded):
        version = getattr(loaded, "__version__", translate("of an unknown version"))
        text = translate("torchspore.install(): the real mindspore {version} is imported in this process already.")
        hint = translate("call torchspore.install() before the first `import mindspore`")
        raise RuntimeError(with_hint(text.format(version=version), hint))
    start()                            # reports an unknown language
    sys.meta_path.insert(0, _finder)
    if sys.argv:
        keep_source(sys.argv[0])


def _is_shim(module: ModuleType) -> bool:
    """Return whether `module` is torchspore/shim/mindspore, which removes itself."""
    return (getattr(module, "__file__", None) or "").startswith(str(SHIM))


def uninstall() -> None:
    """Remove the alias, and the modules that were imported under MindSpore's name."""
    if is_installed():
        sys.meta_path.remove(_finder)
    for name in [name for name in sys.modules if name == ROOT or name.startswith(ROOT + ".")]:
        if sys.modules[name] is sys.modules.get(lookup.front_end_path(name)):
            del sys.modules[name]
