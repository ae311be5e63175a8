"""Find calls in the spelling of older MindSpore releases, and names that NumPy 2 removed, by parsing a program."""
from __future__ import annotations

import ast
from collections.abc import Iterator

from torchspore.cli.program_analysis.inferred_objects import MindSporeObject, ObjectTracker
from torchspore.cli.program_analysis.uses import Use
from torchspore.public_names import lookup, numpy_removals, older_calls
from torchspore.translations import translatable, translate

ACCEPTED = translatable("is accepted here.")
"""The end of a message about an older spelling that acts as today's."""
_OLD_METHODS = ("1.5.2", "1.6.2", "1.7", "1.8.1", "1.9", "1.10", "2.0")
"""The last releases of methods that are looked up by their keywords alone: later ones also fit objects of other libraries."""
READ_AS_TODAY = translatable("it is read as today's.")
"""The end of a message about a positional argument, which may be meant in today's order."""
_LONGEST_TEXT = 10_000
_FOLDED = ("functional", "operations", "composite", "function", "c_transforms", "py_transforms", "serialization", "callback", "model",
           "common", "initializer", "context", "amp")


def older_call_problems(tree: ast.Module) -> Iterator[tuple[Use, str]]:
    """Yield each call with arguments of an older release, and each name that NumPy 2 removed, with a message."""
    finder = _CallFinder(any(_is_eval(node) for node in ast.walk(tree)))
    finder.visit(tree)
    yield from sorted(finder.problems, key=lambda problem: problem[0].line)


def is_accepted(text: str) -> bool:
    """Return whether a message describes a call that runs."""
    return text.endswith((translate(ACCEPTED), translate(READ_AS_TODAY)))


class _CallFinder(ObjectTracker):
    """Checks each call of a MindSpore function, and of a method of an object that the program creates."""

    def __init__(self, has_eval: bool = False) -> None:
        super().__init__()
        self.problems: list[tuple[Use, str]] = []
        self._numpy: set[str] = set()
        self._has_eval = has_eval

    def visit_Import(self, node: ast.Import) -> None:
        super().visit_Import(node)
        self._numpy.update(name.asname or "numpy" for name in node.names if name.name == "numpy")

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        super().visit_ImportFrom(node)
        if not node.level and node.module == "numpy":
            for name in node.names:
                if text := numpy_removals.problem(name.name):
                    self.problems.append((Use(f"numpy.{name.name}", node.lineno), text))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.generic_visit(node)
        if isinstance(node.value, ast.Name) and node.value.id in self._numpy and (text := numpy_removals.problem(node.attr)):
            self.problems.append((Use(f"numpy.{node.attr}", node.lineno), text))

    def visit_Constant(self, node: ast.Constant) -> None:
        """Check the calls in a text of a program that evaluates texts."""
        if self._has_eval and isinstance(node.value, str) and (expression := _parsed_call(node.value)) is not None:
            for part in ast.walk(expression):
                if isinstance(part, (ast.expr, ast.keyword)):
                    part.lineno = node.lineno
            self.visit(expression)

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        function = self.value(node.func)
        if function and not function.is_instance:
            self._check(node, _canonical(function.path))
        elif isinstance(node.func, ast.Attribute):
            owner = self.value(node.func.value)
            if owner and owner.is_instance:
                self._check_method(node, node.func.attr, owner)
            elif owner is None and any(keyword.arg for keyword in node.keywords):
                self._check_tensor_method(node, node.func.attr)

    def _check_method(self, node: ast.Call, method: str, owner: MindSporeObject) -> None:
        module, _, cls = owner.path.rpartition(".")
        name = f"{_canonical(module)}.{cls}.{method}"
        if name in older_calls.table():
            self._check(node, name)
        elif not owner.is_assumed and (text := _missing_method(owner.path, method)) is not None:
            self.problems.append((Use(f"{owner.path}.{method}", node.lineno), text))

    def _check_tensor_method(self, node: ast.Call, method: str) -> None:
        """Report keywords that only a method of Tensor had; the receiver of such a call is not known."""
        rows = older_calls.table().get(f"mindspore.Tensor.{method}", ())
        keywords = {keyword.arg for keyword in node.keywords if keyword.arg}
        for row in rows:
            older = {*row.renamed, *row.dropped}
            if row.last in _OLD_METHODS and keywords & older and keywords <= older | {*row.renamed.values(), "axis"}:
                return self._check(node, row.name)
        return None

    def _check(self, node: ast.Call, name: str) -> None:
        text = problem_of_call(name, len(node.args), [keyword.arg for keyword in node.keywords if keyword.arg],
                               any(isinstance(argument, ast.Starred) for argument in node.args))
        if text:
            self.problems.append((Use(name, node.lineno), text))


def _is_eval(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "eval"


def _parsed_call(text: str) -> ast.expr | None:
    """Return the expression of a text that contains a call; None for other texts."""
    if "(" not in text or len(text) > _LONGEST_TEXT:
        return None
    try:
        expression = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return expression if any(isinstance(part, ast.Call) for part in ast.walk(expression)) else None


def problem_of_call(name: str, positional: int, keywords: list[str], has_star: bool = False) -> str | None:
    """Return a sentence about the arguments of a call that belong to an older release; None if there are none."""
    rows = [row for row in older_calls.table().get(name, ()) if row.last != "2.10"]
    short = ".".join(name.split(".")[-2:]) if "Tensor." in name else name.rpartition(".")[2]
    if short in ("split", "Tensor.split") and "output_num" in keywords:
        text = translate("{name}(output_num=...): the form of MindSpore 1.8.1 to 1.10, {verdict}")
        return text.format(name=short, verdict=translate(ACCEPTED))
    for row in reversed(rows):
        for key in keywords:
            if key in row.dropped and not any(key in other.renamed for other in rows):
                text = translate("{name}({key}=...): an argument of {releases}; {replacement}.")
                return text.format(name=short, key=key, releases=row.releases, replacement=older_calls.replacement(row, key))
    renamed = {key: row for row in rows for key in keywords if key in row.renamed}
    if renamed:
        pair = translate("{old}= is {new}= today")
        pairs = translate(", ").join(pair.format(old=key, new=row.renamed[key]) for key, row in renamed.items())
        text = (translate("{name}(...): {pairs}; the older name is that of {releases}.") if name in older_calls.UNWRAPPED
                else translate("{name}(...): {pairs}; the older name, of {releases}, {verdict}"))
        return text.format(name=short, pairs=pairs, releases=next(iter(renamed.values())).releases, verdict=translate(ACCEPTED))
    for row in reversed(rows):
        # `split(2)` is the same call in both orders; a dropped argument counts from its own position on.
        is_dropped = row.before in row.dropped
        is_recent = not row.last.startswith("0.")           # a program that MindSpore 1 ran has none of the orders before 1.0
        if row.position is not None and is_recent and positional > row.position + (not is_dropped) and not has_star:
            today = translate("is {name} today").format(name=row.now) if row.now else translate("has no meaning today")
            text = translate("{name}(...): positional argument {number} was {before} in {releases} and {today}; {verdict}")
            return text.format(name=short, number=row.position + 1, before=row.before, releases=row.releases, today=today,
                               verdict=translate(READ_AS_TODAY))
    return None


def _canonical(path: str) -> str:
    """Return a path as the table spells it: `mindspore.ops.operations.Split` -> `ops.Split`."""
    parts = [part for part in path.split(".")[1:] if part not in _FOLDED]
    return ".".join(parts if len(parts) > 1 else ["mindspore", *parts])


def _missing_method(path: str, method: str) -> str | None:
    """Return a sentence if a class that is offered here lacks a public method that the program calls; None otherwise."""
    if not lookup.lacks_attribute(f"{path}.{method}"):
        return None
    return translate("{name} is not in torchspore.").format(name=f"{path.rpartition('.')[2]}.{method}")

