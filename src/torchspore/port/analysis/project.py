"""The files of a project: which module a name is imported from, without importing anything."""
from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

from torchspore.port.analysis.definitions import File, attributes_of, is_elsewhere
from torchspore.port.analysis.source import PortError, Source, is_mindspore, read

_LEVELS = 4
"""How far above a file the folder may be that its imports begin at."""


class Project:
    """The files below a folder, by the names of their modules; a file is read when a name needs it."""

    def __init__(self, path: str) -> None:
        """Read the file at which the port begins. Raises PortError if it can't be read."""
        source, file = read(path), Path(path).resolve()
        self.root = _root(file, source)
        parts = list(file.relative_to(self.root).with_suffix("").parts)
        self.files: dict[str, File] = {}
        self.entry = self._add(".".join(parts[:-1] if parts[-1] == "__init__" else parts), file, source)

    def path_of(self, file: File) -> str:
        """Return the path of a file below the root."""
        return Path(file.source.name).resolve().relative_to(self.root).as_posix()

    def file(self, module: str) -> File | None:
        """Return the file of a module; None if the project has none."""
        if module in self.files:
            return self.files[module]
        folder = self.root.joinpath(*module.split("."))
        for path in (folder / "__init__.py", folder.with_name(folder.name + ".py")):
            if path.is_file():
                try:
                    return self._add(module, path, read(str(path)))
                except PortError:
                    return None
        return None

    def _add(self, module: str, path: Path, source: Source) -> File:
        file = self.files[module] = File(source, self, module, path.name == "__init__.py")
        self._read_stars(file)
        return file

    def _read_stars(self, file: File) -> None:
        """Bind the names that `from module import *` brings from files of the project."""
        for node in file.source.tree.body:
            if not (isinstance(node, ast.ImportFrom) and node.names[0].name == "*"):
                continue
            dotted = "." * node.level + (node.module or "")
            home = None if is_elsewhere(dotted) else self.file(self.absolute(file, dotted))
            for name in public_names(home) if home is not None else ():
                if name not in file.defining:
                    file.source.imports[name] = f"{dotted}.{name}" if not dotted.endswith(".") else dotted + name
                    file.source.import_nodes[name] = node

    @staticmethod
    def absolute(file: File, dotted: str) -> str:
        """Return a dotted name without the dots of a relative import."""
        name = dotted.lstrip(".")
        level = len(dotted) - len(name)
        if not level:
            return dotted
        package = file.module.split(".") if file.module else []
        above = level - 1 if file.is_package else level
        package = package[: len(package) - above] if above else package
        return ".".join([*package, *([name] if name else [])])

    def home(self, file: File, name: str) -> tuple[File, str] | None:
        """Return the file that a name is imported from, and its name there ("" for the module itself)."""
        dotted = file.source.imports[name]
        if is_elsewhere(dotted):
            return None
        parts = self.absolute(file, dotted).split(".")
        for count in range(len(parts), 0, -1):
            if (target := self.file(".".join(parts[:count]))) is not None:
                return (target, parts[count] if count < len(parts) else "") if len(parts) - count <= 1 else None
        return None

    def resolve(self, file: File, name: str) -> tuple[File, str] | None:
        """Return the file that defines an imported name, through files that hand it on, and its name there."""
        for _ in range(20):
            step = self.home(file, name)
            if step is None or not step[1] or step[1] in step[0].defining:
                return step
            file, name = step
            if name not in file.source.imports:
                return None
        return None

    def closure(self, names: list[str], statements: Sequence[ast.stmt] = ()) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
        """Return by module: the definitions that these and the statements of the entry need, and the names that a file hands on."""
        needed: dict[str, set[str]] = {}
        handed_on: dict[str, set[str]] = {}
        waiting = [(self.entry, name) for name in names]
        waiting += [target for statement in statements for target in self._imported(self.entry, statement)]
        while waiting:
            file, name = waiting.pop()
            if name not in file.defining:
                if name in file.source.imports and (step := self.home(file, name)) is not None:
                    needed.setdefault(file.module, set())
                    handed_on.setdefault(file.module, set()).add(name)
                    needed.setdefault(step[0].module, set())
                    waiting += [step] if step[1] else []
                continue
            before = needed.setdefault(file.module, set())
            for each in file.closure([name]) - before:
                before.add(each)
                waiting += [target for statement in [*file.defining[each], *file.changing.get(each, ())]
                            for target in self._imported(file, statement)]
        return needed, handed_on

    def _imported(self, file: File, statement: ast.stmt) -> Iterator[tuple[File, str]]:
        """Yield what a statement needs of other files."""
        for name in sorted(file.needs(statement)):
            if name in file.defining or name not in file.source.imports or (step := self.home(file, name)) is None:
                continue
            if step[1]:
                yield step
            else:
                yield from ((step[0], attribute) for attribute in sorted(attributes_of(name, statement)))


def public_names(file: File) -> list[str]:
    """Return the names that `from module import *` brings: `__all__`, or those without an underscore."""
    for statement in file.defining.get("__all__", ()):
        value = getattr(statement, "value", None)
        if isinstance(value, (ast.List, ast.Tuple)) and all(isinstance(item, ast.Constant) for item in value.elts) and value.elts:
            return [str(item.value) for item in value.elts if isinstance(item, ast.Constant)]
    imported = [name for name, dotted in file.source.imports.items() if not is_mindspore(dotted)]
    return [name for name in dict.fromkeys([*file.defining, *imported]) if not name.startswith("_")]


def _root(file: Path, source: Source) -> Path:
    """Return the folder at which the names of a file's imports begin."""
    root = file.parent
    while (root / "__init__.py").exists() and root.parent != root:
        root = root.parent
    levels = max((len(dotted) - len(dotted.lstrip(".")) for dotted in source.imports.values()), default=0)
    highest = file.parents[min(levels, len(file.parents) - 1)]                  # relative imports begin below it, also without __init__.py
    if highest in root.parents:
        root = highest
    firsts = {dotted.split(".")[0] for dotted in source.imports.values() if not dotted.startswith(".") and not is_elsewhere(dotted)}
    # packages from which the program is started
    inner = [folder for folder in file.parents if root in folder.parents and highest not in folder.parents]
    folders = [*[root, *root.parents][:_LEVELS], *reversed(inner)]

    def count_modules(folder: Path) -> int:
        return sum((folder / first).is_dir() or (folder / f"{first}.py").is_file() for first in firsts)

    best = max(folders, key=count_modules)
    return best if count_modules(best) else root
