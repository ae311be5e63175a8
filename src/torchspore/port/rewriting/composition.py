"""The text of a ported file: docstring, imports, definitions with the comments above them, helpers."""
from __future__ import annotations

import ast
import os
import re
import sys
from pathlib import Path

from torchspore.port import compat
from torchspore.port.analysis.call import HELPER
from torchspore.port.analysis.definitions import File, defined_names
from torchspore.port.analysis.project import Project
from torchspore.port.analysis.source import Source, is_mindspore
from torchspore.port.rewriting.rewriter import Rewriter
from torchspore.port.rewriting.wrapping import wrap_long_lines


class Shared:
    """The helpers of a port of several files: they are in one file, which the others import from."""

    def __init__(self, project: Project, needed: dict[str, set[str]]) -> None:
        modules = [project.files[module] for module in needed]
        common = os.path.commonpath([str(Path(project.path_of(file)).parent) for file in modules])
        self.package = common.replace(os.sep, ".") if common and (project.root / common / "__init__.py").exists() else ""
        taken = {path.stem for path in project.root.joinpath(*self.package.split(".")).glob("*.py")}
        self.module = "compat" if "compat" not in taken else "torch_compat"
        self._project, self._needed = project, needed
        self._helpers = set[str]()

    def import_line(self, file: File, names: dict[str, str]) -> str:
        """Return the import of helpers, by the names that a file uses for them."""
        self._helpers |= set(names)
        words = ", ".join(name if name == new else f"{name} as {new}" for name, new in sorted(names.items()))
        if not self.package:
            return f"from {self.module} import {words}"
        depth = len(file.module.split(".")) - len(self.package.split(".")) - (0 if file.is_package else 1)
        return f"from .{'.' * depth}{self.module} import {words}"

    def files(self) -> dict[str, str]:
        """Return the file of the helpers, and an empty `__init__.py` for each package that needs none of its own."""
        result: dict[str, str] = {}
        for module in self._needed:
            folder = Path(self._project.path_of(self._project.files[module])).parent
            for each in [folder, *folder.parents]:
                init = (each / "__init__.py").as_posix()
                if str(each) != "." and (self._project.root / init).exists() and ".".join(each.parts) not in self._needed:
                    result[init] = ""
        if self._helpers:
            names = compat.needed_by(self._helpers)
            text = "\n\n\n".join(compat.definitions()[name] for name in names)
            imports = "\n\n".join(_grouped(*_helper_imports(_used_names(text), set(), is_helper=True)))
            path = Path(*self.package.split("."), f"{self.module}.py").as_posix()
            result[path] = f'"""Functions and layers that torch lacks."""\nfrom __future__ import annotations\n\n{imports}\n\n\n{text}\n'
        return result


def compose(
    file: File, texts: list[tuple[ast.stmt, str]], rewriter: Rewriter, shared: Shared | None = None,
    handed_on: set[str] | frozenset[str] = frozenset(),
) -> str:
    """Join docstring, imports, definitions and helpers; in a port of several files the helpers are imported."""
    source = file.source
    names = compat.needed_by(rewriter.helpers)
    early = compat.needed_by(_needed_early(texts, set(names)))
    taken = _all_names(source)
    renamed = {name: f"torch_{name}" if name in taken else name for name in names}

    def section(group: list[str]) -> str:
        text = "\n\n\n".join(compat.definitions()[name] for name in group)
        for name, new in renamed.items():
            text = re.sub(rf"(?<![.\w]){name}\b(?!=)", new, text) if name != new else text
        return text

    top, bottom = ("", "") if shared is not None else (section(early), section([name for name in names if name not in early]))
    body = re.sub(rf"\b{HELPER}(\w+)", lambda match: renamed[match[1]], _body(source, texts, rewriter.script is not None))
    body = wrap_long_lines(body, set(source.text.split("\n")))
    code = "\n\n\n".join(part for part in (top, body, bottom) if part)
    if "optim" in taken:                                     # a variable of the program
        code = re.sub(r"(?<![.\w])optim\.(?=[A-Z]|lr_scheduler\b)", "torch.optim.", code)
    local = []
    if shared is not None and rewriter.helpers:
        local = [shared.import_line(file, {name: renamed[name] for name in rewriter.helpers})]
    imports = _imports(file, code, top + bottom, local, handed_on, rewriter.needs_time)
    docstring = ast.get_docstring(source.tree, clean=False)
    head = ""
    if docstring is not None:
        begin, end = source.span(source.tree.body[0])
        head = source.text[begin:end] + "\n"
    if handed_on and file.is_package:
        code = "__all__ = [" + ", ".join(f'"{name}"' for name in sorted(handed_on)) + "]" + ("\n\n\n" + code if code else "")
    code = code.strip()
    gap = "\n\n\n" if re.match(r"(#.*\n)*(@|def |class |async )", code) else "\n\n"
    return f"{head}{imports}{gap}{code}\n" if code else f"{head}{imports}\n"


def _needed_early(texts: list[tuple[ast.stmt, str]], names: set[str]) -> set[str]:
    """Return the helpers that are used when the file is imported: as a base, a decorator, a default, or in a value."""
    early = set[str]()
    for _, text in texts:
        for node in ast.parse(text).body:
            parts: list[ast.AST] = [node]
            if isinstance(node, ast.ClassDef):
                functions = [item for item in node.body if isinstance(item, ast.FunctionDef)]
                parts = [*node.bases, *node.decorator_list, *(item for item in node.body if not isinstance(item, ast.FunctionDef))]
                parts += [part for function in functions for part in (*function.args.defaults, *function.decorator_list)]
            elif isinstance(node, ast.FunctionDef):
                parts = [*node.args.defaults, *node.decorator_list]
            used = {part.id for root in parts for part in ast.walk(root) if isinstance(part, ast.Name)}
            early |= {name for name in names if HELPER + name in used}
            if not isinstance(node, (ast.ClassDef, ast.FunctionDef)) and any(isinstance(part, ast.Call) for part in ast.walk(node)):
                called = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
                if called & {statement.name for statement, _ in texts if isinstance(statement, (ast.FunctionDef, ast.ClassDef))}:
                    return names
    return early


def _body(source: Source, texts: list[tuple[ast.stmt, str]], is_script: bool = False) -> str:
    """Join definitions with the comments above them; two empty lines around functions and classes."""
    pieces: list[str] = []
    before: ast.stmt | None = None
    is_after_function = False
    for statement, text in texts:
        is_function = isinstance(statement, (ast.ClassDef, ast.FunctionDef)) or text.startswith("def ")
        text = _comments_above(source, statement) + text + _comment_behind(source, statement)
        if before is None:
            gap = ""
        elif is_function or is_after_function:
            gap = "\n" * (3 - (len(pieces[-1]) - len(pieces[-1].rstrip("\n"))))
        else:
            gap = "\n\n" if is_script and _has_gap(source, statement) else "\n"
        pieces.append(gap + text)
        before, is_after_function = statement, is_function
    return "".join(pieces)


def _has_gap(source: Source, statement: ast.stmt) -> bool:
    """Return whether an empty line is above a statement and its comments."""
    lines = source.text[: source.span(statement)[0]].split("\n")[:-1]
    while lines and lines[-1].startswith("#"):
        lines.pop()
    return bool(lines) and not lines[-1].strip()


def _comments_above(source: Source, statement: ast.stmt) -> str:
    lines = source.text[: source.span(statement)[0]].split("\n")[:-1]
    comments: list[str] = []
    while lines and lines[-1].startswith("#") and not lines[-1].startswith(("#!", "# -*-")) and len(lines) > 1:
        comments.insert(0, lines.pop() + "\n")
    return "".join(comments)


def _comment_behind(source: Source, statement: ast.stmt) -> str:
    rest = source.text[source.span(statement)[1] :].split("\n", 1)[0]
    return rest.rstrip() if rest.strip().startswith("#") else ""


def _all_names(source: Source) -> set[str]:
    """Return every name that the file uses, but those of MindSpore's that it imports."""
    names = {node.id for node in source.nodes if isinstance(node, ast.Name)}
    names |= {node.arg for node in source.nodes if isinstance(node, ast.arg)}
    names |= {node.name for node in source.nodes if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    return {name for name in names if not is_mindspore(source.imports.get(name, ""))}


def _used_names(code: str) -> set[str]:
    return {node.id for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)}


def _import_line(source: Source, name: str) -> str:
    """Return the line that imports a name, as the file does it."""
    node = source.import_nodes[name]
    alias = next((alias for alias in node.names if (alias.asname or alias.name.split(".")[0]) == name), None)  # type: ignore[attr-defined]
    words = name if alias is None else alias.name + (f" as {alias.asname}" if alias.asname else "")            # None: import *
    return f"from {'.' * node.level}{node.module or ''} import {words}" if isinstance(node, ast.ImportFrom) else f"import {words}"


_MODULES = ("copy", "csv", "functools", "io", "itertools", "json", "math", "os", "sqlite3", "struct", "time")
_FROM = {"contextlib": ("closing",), "glob": ("escape", "glob")}
"""The modules of Python's library that helpers import."""


def _helper_imports(used: set[str], bound: set[str], is_helper: bool) -> tuple[set[str], set[str]]:
    """Return the import lines of Python's library and of torch that code needs; `is_helper`: it contains helpers."""
    standard, others = set[str](), set[str]()
    if is_helper:
        if "Any" in used:
            standard.add("from typing import Any")
        kinds = sorted({"Callable", "Iterable", "Iterator", "Sequence"} & used)
        if kinds:
            standard.add(f"from collections.abc import {', '.join(kinds)}")
        if "OrderedDict" in used:
            standard.add("from collections import OrderedDict")
        for module, names in _FROM.items():
            words = [name for name in names if name in used and name not in bound]
            standard |= {f"from {module} import {', '.join(words)}"} if words else set()
        standard |= {f"import {name}" for name in _MODULES if name in used and name not in bound}
        others |= {"import numpy as np"} if "np" in used and "np" not in bound else set()
        others |= {"import PIL.Image"} if "PIL" in used and "PIL" not in bound else set()
    others |= {"import torch"} if "torch" in used else set()
    others |= {"import torch.nn.functional as F"} if "F" in used and "F" not in bound else set()
    from_torch = [name for name in ("Tensor", "nn", "optim") if name in used and name not in bound]
    others |= {f"from torch import {', '.join(from_torch)}"} if from_torch else set()
    from_data = [name for name in ("DataLoader", "Dataset", "IterableDataset") if name in used and name not in bound]
    others |= {f"from torch.utils.data import {', '.join(from_data)}"} if from_data else set()
    return standard, others


def _grouped(*groups: set[str]) -> list[str]:
    def order(line: str) -> tuple[bool, int, str]:
        dots = re.match(r"from (\.*)", line)
        return line.startswith("from"), -len(dots[1]) if dots else 0, re.sub(r"^(from|import) ", "", line).lower()

    return ["\n".join(sorted(group, key=order)) for group in groups if group]


def _imports(
    file: File, code: str, helper_text: str, local: list[str], handed_on: set[str] | frozenset[str], needs_time: bool,
) -> str:
    """Return the import lines that the code needs."""
    source, used = file.source, _used_names(code)
    standard, others, ours = set[str](), set[str](), set(local)
    for name in sorted(used | handed_on):
        dotted = source.imports.get(name)
        if dotted is None or is_mindspore(dotted):
            continue
        is_ours = file.resolve(name) is not None
        (standard if dotted.split(".")[0] in sys.stdlib_module_names else ours if is_ours else others).add(_import_line(source, name))
    more_standard, more_others = _helper_imports(used, _bound(source), bool(helper_text))
    more_standard |= {"import logging"} if "logging" in used and "logging" not in _bound(source) else set()
    more_standard |= {"import time"} if needs_time and "time" not in _bound(source) else set()
    future = "from __future__ import annotations\n\n" if helper_text or "annotations" in source.imports else ""
    return future + "\n\n".join(_grouped(*map(_joined, (standard | more_standard, others | more_others, ours))))


def _joined(lines: set[str]) -> set[str]:
    """Return import lines with one line for each module."""
    by_module: dict[str, list[str]] = {}
    result = set()
    for line in lines:
        match = re.fullmatch(r"from (\S+) import (.+)", line)
        if match is None:
            result.add(line)
        else:
            by_module.setdefault(match[1], []).extend(match[2].split(", "))
    return result | {f"from {module} import {', '.join(sorted(set(names)))}" for module, names in by_module.items()}


def _bound(source: Source) -> set[str]:
    """Return names that the file itself defines."""
    names = {name for statement in source.tree.body for name in defined_names(statement)}
    return names | {name for name, dotted in source.imports.items() if not is_mindspore(dotted)}
