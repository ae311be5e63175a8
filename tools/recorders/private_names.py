"""Records other names of real MindSpore: private names that programs import, attributes of its classes, modules that it imports.

    tools/record.py private_names --python .oracle/bin/python

writes src/torchspore/public_names/mindspore_2_10_{private,classes,imports}.txt. A line of the first is a module and its names that MindSpore
defines: private ones, or those of a private module. A line of the second is a class, its base in BASES, and the attributes that it adds,
those that its methods assign to `self` included; operators are omitted. A line of the third is a module and the modules that it has
imported, with their names in it (`np=numpy`): programs import them from there.
"""
# ruff: noqa: E501
from __future__ import annotations

import argparse
import contextlib
import importlib
import inspect
import io
import pkgutil
import sys
import warnings
from collections.abc import Iterator
from types import ModuleType

from walk_names import attributes_of, is_public

from recorders.names import TARGET, is_for_programs

ROOT = "mindspore"
PRIVATE = TARGET.with_name("mindspore_2_10_private.txt")
CLASSES = TARGET.with_name("mindspore_2_10_classes.txt")
IMPORTS = TARGET.with_name("mindspore_2_10_imports.txt")
HOMES = ("mindspore.nn", "mindspore.train", "mindspore.common", "mindspore.dataset", "mindspore.amp", "mindspore.boost", "mindspore.ops.composite",
         "mindspore.ops.primitive", "mindspore.communication", "mindspore.parallel")
BASES = ("mindspore.nn.cell.Cell", "mindspore.nn.optim.optimizer.Optimizer", "mindspore.nn.loss.loss.LossBase",
         "mindspore.dataset.engine.datasets.Dataset", "mindspore.common.tensor.Tensor", "mindspore.ops.primitive.Primitive")
OMITTED = ("mindspore.nn.probability", "mindspore.boost", "mindspore.dataset.core", "mindspore.nn.optim.thor", "mindspore.parallel._tensor")
SKIPPED = (
    "mindspore._extends", "mindspore.graph_pass", "mindspore._check_jit_forbidden_api", "mindspore.parallel.cluster", "mindspore._akg",
    "mindspore.ops._op_impl", "mindspore.ops._vmap", "mindspore.train._utils_", "mindspore.numpy.fft",
    "mindspore.experimental", "mindspore.run_check", "mindspore.mindrecord", "mindspore.scipy", "mindspore.graph._parse", "mindspore.graph._pijit", "mindspore.ops.composite.multitype_ops",
)
NO_IMPORTS = ("mindspore.ops._grad_experimental", "mindspore._c_")
"""Modules from which programs import only names, not the modules that these have imported."""
EXTENSIONS = ("mindspore._c_expression", "mindspore._c_dataengine", "mindspore._c_mindrecord")
"""Compiled modules, which pkgutil does not walk. Programs import their public names."""


def modules() -> Iterator[ModuleType]:
    """Yield every module of MindSpore that programs could import."""
    package = importlib.import_module(ROOT)
    yield package
    for information in pkgutil.walk_packages(package.__path__, ROOT + ".", onerror=lambda name: None):
        if is_for_programs(information.name) and not information.name.startswith(SKIPPED):
            with contextlib.suppress(BaseException), contextlib.redirect_stdout(io.StringIO()):
                yield importlib.import_module(information.name)
    for name in EXTENSIONS:
        extension = importlib.import_module(name)
        yield extension
        yield from (value for value in vars(extension).values() if inspect.ismodule(value) and value.__name__.startswith(f"{name}."))


def is_of_mindspore(value: object) -> bool:
    """Return whether MindSpore defines the class or function, or the value has no module, as a constant."""
    home = getattr(value, "__module__", None)
    is_value = (home is None and not callable(value)) or type(value).__module__.startswith(ROOT)
    return not inspect.ismodule(value) and (str(home).startswith(ROOT) or is_value)


def lines_of_classes(attributes: dict[str, set[str]]) -> Iterator[str]:
    """Yield a line for each class: `class: Base name name …`. Base is the largest of BASES that it contains, whose attributes are omitted."""
    bases = sorted((path for path in attributes if path in BASES), key=lambda path: -len(attributes[path]))
    for path, names in sorted(attributes.items()):
        base = next((base for base in bases if base != path and attributes[base] <= names and attributes[base] != names), None)
        rest = sorted(names - attributes[base]) if base else sorted(names)
        if rest and not path.startswith(OMITTED):
            yield f"{path}: {' '.join(([base] if base else []) + rest)}"


def imported_modules(module: ModuleType) -> Iterator[str]:
    """Yield `name=module` for each module of MindSpore, Python and NumPy in a module's attributes, except its submodules."""
    for name, value in sorted(vars(module).items()):
        if not inspect.ismodule(value) or name.startswith("__") or value.__name__ == f"{module.__name__}.{name}":
            continue
        root = value.__name__.partition(".")[0]
        if root in (ROOT, "numpy") or root in sys.stdlib_module_names:
            yield f"{name}={value.__name__}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add nothing: this subject has no arguments."""


def record_inside(arguments: argparse.Namespace) -> int:
    """Write the three lists."""
    warnings.simplefilter("ignore")
    private: dict[str, list[str]] = {}
    imports: dict[str, list[str]] = {}
    classes: dict[type, str] = {}
    for module in modules():
        inside = not is_public(module.__name__)
        names = [
            name for name, value in vars(module).items()
            if not name.startswith("__") and (inside or name.startswith("_")) and is_of_mindspore(value)
        ]
        if names:
            private[module.__name__] = sorted(names)
        if not module.__name__.startswith(NO_IMPORTS) and (others := list(imported_modules(module))):
            imports[module.__name__] = others
        for value in vars(module).values():
            if isinstance(value, type) and getattr(value, "__module__", None) == module.__name__ and module.__name__.startswith(HOMES):
                classes[value] = f"{module.__name__}.{value.__name__}"
    header = f"MindSpore {importlib.import_module(ROOT).__version__}, recorded by `tools/record.py private_names`."
    lines = [f"{module}: {' '.join(names)}" for module, names in sorted(private.items())]
    PRIVATE.write_text("\n".join([f"# Private names of {header}", *lines]) + "\n", encoding="utf-8")
    lines = list(lines_of_classes({path: set(attributes_of(cls)) for cls, path in classes.items()}))
    CLASSES.write_text("\n".join([f"# Attributes of the classes of {header}", *lines]) + "\n", encoding="utf-8")
    lines = [f"{module}: {' '.join(names)}" for module, names in sorted(imports.items())]
    IMPORTS.write_text("\n".join([f"# Modules that are imported by the modules of {header[:-1]}.", *lines]) + "\n", encoding="utf-8")
    print(f"{PRIVATE.name}: {sum(map(len, private.values()))} names; {CLASSES.name}: {len(classes)} classes")
    return 0
