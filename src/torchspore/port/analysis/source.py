"""A file of the user: its text, its tree, and the MindSpore names of its expressions."""
from __future__ import annotations

import ast
import contextlib
import importlib
import io
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from torchspore.translations import translate


class PortError(Exception):
    """The input can't be ported; the text is the complete message."""


@dataclass(frozen=True)
class Problem:
    """Something without a rule, with its line."""

    line: int
    text: str
    path: str = ""
    """The file, if it is not the one that the port begins with."""


_HOMES = (
    ("mindspore.ops.", "ops."), ("mindspore.mint.", "mint."), ("mindspore.nn.probability.", "nn.probability."), ("mindspore.nn.", "nn."),
    ("mindspore.common.initializer.", "init."), ("mindspore.numpy.", "mnp."),
    ("mindspore.train.serialization.", ""), ("mindspore.common.", ""), ("mindspore.", ""),
)
_MODULES = frozenset(
    "dtype tensor parameter operations functional primitive composite array_ops math_ops layer loss cell api function activation".split()
)


def canonical(dotted: str) -> str:
    """Return one spelling for the names of an object: `nn.Dense`, `ops.Add`, `float32`, `init.Normal`, `mint.nn.Linear`."""
    for start, short in _HOMES:
        if dotted.startswith(start):
            parts = dotted.removeprefix(start).split(".")
            if short in ("nn.", "ops.", ""):
                while len(parts) > 1 and parts[0] in _MODULES:
                    parts = parts[1:]
                if short and len(parts) > 1 and parts[-1][:1].isupper() and short == "nn.":
                    parts = parts[-1:]
            return short + ".".join(parts)
    return dotted


class Source:
    """The text and the tree of a file."""

    def __init__(self, text: str, name: str = "<source>") -> None:
        """Raises PortError if the text is not Python."""
        self.text, self.name = text, name
        try:
            self.tree = ast.parse(text, name)
        except (SyntaxError, ValueError) as error:
            line = getattr(error, "lineno", None)
            where = f", line {line}" if line else ""
            raise PortError(f"{name}{where}: expected Python 3 source: {getattr(error, 'msg', error)}") from error
        self.nodes = list(ast.walk(self.tree))
        self._lines = [line + "\n" for line in text.split("\n")]
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))
        self.imports: dict[str, str] = {}
        self.import_nodes: dict[str, ast.stmt] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                self._read_import(node)
        for statement in self.tree.body:                     # a definition of the file hides an import of the same name
            if isinstance(statement, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                self.imports.pop(statement.name, None)
        self.hidden: frozenset[str] = frozenset()
        """Names of the function that is read now: they are not the imports of the same name."""

    def offset(self, line: int, column: int) -> int:
        """Return the position in the text of a line and a column in bytes of UTF-8, as nodes have them."""
        text = self._lines[line - 1]
        return self._starts[line - 1] + (column if text.isascii() else len(text.encode()[:column].decode()))

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Return where the text of a node begins and ends; a definition begins at its first decorator."""
        first: ast.expr | ast.stmt = node  # type: ignore[assignment]
        begin = self.offset(first.lineno, first.col_offset)
        for decorator in getattr(node, "decorator_list", ()):
            begin = min(begin, self.text.rindex("@", 0, self.offset(decorator.lineno, decorator.col_offset)))
        return begin, self.offset(first.end_lineno or first.lineno, first.end_col_offset or 0)

    def indent(self, node: ast.stmt) -> str | None:
        """Return the white space before a statement; None if it does not begin its line."""
        begin = self.span(node)[0]
        before = self.text[self.text.rfind("\n", 0, begin) + 1 : begin]
        return before if not before.strip() else None

    @contextlib.contextmanager
    def hiding(self, names: set[str]) -> Iterator[None]:
        """While it lasts, these names are not the imports of the same name."""
        before, self.hidden = self.hidden, self.hidden | names
        try:
            yield
        finally:
            self.hidden = before

    @contextlib.contextmanager
    def reading(self, text: str) -> Iterator[None]:
        """While it lasts, nodes have the positions of another text of one line."""
        before = self.text, self._lines, self._starts
        self.text, self._lines, self._starts = text, [text + "\n"], [0]
        try:
            yield
        finally:
            self.text, self._lines, self._starts = before

    def _read_import(self, node: ast.Import | ast.ImportFrom) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.asname or alias.name.split(".")[0]
                self.imports[name] = alias.name if alias.asname else name
                self.import_nodes[name] = node
            return
        module = "." * node.level + (node.module or "")
        start = module if module.endswith(".") else f"{module}."
        for alias in node.names:
            if alias.name == "*":
                for name in _star_names(module):
                    self.imports[name] = f"{module}.{name}"
                    self.import_nodes[name] = node
            else:
                self.imports[alias.asname or alias.name] = start + alias.name
                self.import_nodes[alias.asname or alias.name] = node

    def dotted(self, node: ast.AST) -> str | None:
        """Return the dotted name of an expression, beginning with an imported module; None for anything else."""
        if isinstance(node, ast.Name):
            return None if node.id in self.hidden else self.imports.get(node.id)
        if isinstance(node, ast.Attribute):
            base = self.dotted(node.value)
            return None if base is None else f"{base}.{node.attr}"
        return None

    def mindspore_name(self, node: ast.AST) -> str | None:
        """Return the canonical MindSpore name of an expression; None if it is not a name of MindSpore."""
        dotted = self.dotted(node)
        if dotted is None or not is_mindspore(dotted):
            return None
        return canonical(dotted)


def is_mindspore(dotted: str) -> bool:
    """Return whether a dotted name is in MindSpore."""
    return dotted.split(".")[0] == "mindspore"


def _star_names(module: str) -> list[str]:
    """Return the names that `from module import *` binds; only modules of MindSpore, Python's library and NumPy are imported for it."""
    root = module.split(".")[0]
    if not is_mindspore(module) and root not in sys.stdlib_module_names and root != "numpy":
        return []
    try:
        loaded = importlib.import_module(module)
    except ImportError:
        return []
    return list(getattr(loaded, "__all__", [name for name in vars(loaded) if not name.startswith("_")]))


def read(path: str) -> Source:
    """Read a file of Python source. Raises PortError with what to do for anything else."""
    file = Path(path)
    if file.suffix == ".ipynb":
        text = translate("{path}: expected a .py file, got a notebook. Hint: `jupyter nbconvert --to script {path}` writes one.")
        raise PortError(text.format(path=path))
    if file.suffix in (".pyc", ".so", ".pyd", ".mindir", ".ckpt", ".onnx"):
        raise PortError(translate("{path}: expected Python source; a {suffix} file has none.").format(path=path, suffix=file.suffix))
    if file.exists() and not file.is_file():
        raise PortError(translate("{path}: expected a plain file.").format(path=path))
    try:
        data = file.read_bytes()
        if b"\0" in data:
            raise PortError(translate("{path}: expected Python source, got a binary file.").format(path=path))
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        text = data.decode(encoding)
    except (OSError, SyntaxError, UnicodeDecodeError, LookupError) as error:
        raise PortError(translate("{path}: can't be read: {error}").format(path=path, error=error)) from error
    return Source(text.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff"), path)
