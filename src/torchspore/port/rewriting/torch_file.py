"""The torch form of the definitions of a file that its Cells need."""
from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field, replace

from torchspore.base.suggest import closest
from torchspore.port.analysis.class_facts import ClassFacts, without_removed
from torchspore.port.analysis.collisions import collisions
from torchspore.port.analysis.definitions import CELLS, MODULES_OF_SCRIPTS, OF_SCRIPTS, File, changed_name, defined_names
from torchspore.port.analysis.kinds import Scope, kinds_of_calls, numbers_of_constructor
from torchspore.port.analysis.project import Project
from torchspore.port.analysis.source import PortError, Problem, Source
from torchspore.port.rewriting.composition import Shared, compose
from torchspore.port.rewriting.rewriter import Rewriter
from torchspore.port.training import user_classes
from torchspore.port.training.facts import is_training_script
from torchspore.port.training.script import Script


@dataclass
class Ported:
    """The result of a port. The text is empty if it has problems."""

    text: str = ""
    problems: list[Problem] = field(default_factory=list)
    omitted_classes: dict[str, Problem] = field(default_factory=dict)
    """Classes that the port omits, with the reason."""
    classes: list[str] = field(default_factory=list)
    reasons: list[tuple[int, str]] = field(default_factory=list)
    """Lines of the source that were changed for a difference in meaning, with the comment."""
    functions: list[str] = field(default_factory=list)
    """Functions that create the Cells."""
    is_script: bool = False
    """True if the training of the file is ported too."""
    by_hand: list[Problem] = field(default_factory=list)
    """The statements that a script leaves to do by hand."""
    files: dict[str, str] = field(default_factory=dict)
    """The texts of all files by their paths, if the port has several."""


def port(
    source: Source, class_names: list[str] | None = None, omitted: dict[str, Problem] | None = None, project: Project | None = None,
    with_script: bool = False,
) -> Ported:
    """Return the torch form of the Cells of a file, or of those named, without the omitted ones; `project` has the files it imports from.

    Without names, functions that create the Cells are ported too; `with_script`: and the training, if the file has any. Raises PortError
    if there are none, or for what is neither.
    """
    file, result = project.entry if project is not None else File(source), Ported()
    for name in class_names or ():
        _check_target(file, name)
    candidates = class_names or [node.name for node in file.cells()]
    result.is_script = with_script and not class_names and is_training_script(file)
    file.check_training = user_classes.obstacle if result.is_script else None
    if not candidates and not result.is_script:
        raise PortError(f"{source.name}: expected a class that derives from mindspore.nn.Cell.")
    for name in candidates:
        problem = (omitted or {}).get(name) or (_metaclass(file.classes[name]) if name in file.classes else None) or file.obstacle(name)
        if problem is None:
            (result.classes if name in file.classes else result.functions).append(name)
        elif class_names:
            result.problems.append(problem)
        else:
            result.omitted_classes[name] = problem
    if not result.classes and not result.functions and not result.problems and not result.is_script:
        result.problems = list(result.omitted_classes.values())
    if result.problems:
        return result
    if not class_names and not result.is_script:
        _omit_owners_of_created_cells(file, result)
        creators = _creators(file, set(result.classes))
        result.functions = [name for name in creators if name not in (omitted or {}) and file.obstacle(name) is None]
    return _written(file, project, result)


def _written(file: File, project: Project | None, result: Ported) -> Ported:
    """Write the result; without the functions that create Cells if one of these has no rule."""
    while True:
        attempt = Ported(
            omitted_classes=dict(result.omitted_classes), classes=result.classes, functions=list(result.functions),
            is_script=result.is_script)
        Writer(file, project, attempt).write()
        is_changed = result.is_script and _without_training_classes(file, attempt.problems, result)
        if not attempt.problems or not (is_changed or (result.functions and result.classes)):
            return attempt
        if not is_changed:
            result.functions = _without_problems(file, attempt.problems, result)


def _without_problems(file: File, problems: list[Problem], result: Ported) -> list[str]:
    """Return the functions without those that have problems; none if the problems are in classes."""
    of_classes = file.closure(result.classes)

    def has_problem(name: str) -> bool:
        statements = [statement for each in file.closure([name]) - of_classes for statement in file.defining[each]]
        spans = [(statement.lineno, statement.end_lineno or 0) for statement in statements]
        return any(not problem.path and first <= problem.line <= last for problem in problems for first, last in spans)

    rest = [name for name in result.functions if not has_problem(name)]
    return rest if len(rest) < len(result.functions) else []


def _without_training_classes(file: File, problems: list[Problem], result: Ported) -> bool:
    """Omit the callbacks, schedules and training steps of a script that have problems; return whether there are any."""
    names = []
    for name in result.classes:
        node = file.classes[name]
        inside = [problem for problem in problems if not problem.path and node.lineno <= problem.line <= (node.end_lineno or 0)]
        if inside and (file.is_kind(node, OF_SCRIPTS) or file.trains(node)):
            names.append(name)
            result.omitted_classes[name] = Problem(inside[0].line, f"{name}: {inside[0].text}")
    result.classes = [name for name in result.classes if name not in names]
    return bool(names)


def _omit_owners_of_created_cells(file: File, result: Ported) -> None:
    """Omit the classes that read a Cell which the program creates: its training would be part of the port."""
    for name in list(result.classes):
        values = [each for each in sorted(file.closure([name])) if not isinstance(file.defining[each][-1], (ast.FunctionDef, ast.ClassDef))]
        created = [value for value in values if file.closure([value]) & set(result.classes)]
        if created and len(result.classes) > 1:
            result.classes.remove(name)
            result.omitted_classes[name] = Problem(file.classes[name].lineno, f"{name} reads {created[0]}, which the program creates")


def _creators(file: File, classes: set[str]) -> list[str]:
    """Return the functions of a file that create its Cells and need no Cell that the program has created."""
    def needed(name: str) -> set[str]:
        return file.closure([name])

    names = []
    for name, statements in file.defining.items():
        if not all(isinstance(statement, ast.FunctionDef) for statement in statements) or not needed(name) & classes:
            continue
        values = [each for each in needed(name) if not isinstance(file.defining[each][-1], (ast.FunctionDef, ast.ClassDef))]
        if not any(needed(value) & classes for value in values):
            names.append(name)
    return names


def _check_target(file: File, name: str) -> None:
    """Raises PortError unless the name is a Cell of the file."""
    where = f"{file.source.name}:{name}"
    if name not in file.defining:
        imported = file.source.imports.get(name)
        near = closest(name, file.classes)
        hint = f" It is imported from {imported.rpartition('.')[0]}." if imported else f" Did you mean {near}?" if near else ""
        raise PortError(f"{where}: the file defines no class of that name.{hint}")
    statement = file.defining[name][-1]
    if isinstance(statement, ast.FunctionDef) and _creates_cells(file, name):
        return
    if not isinstance(statement, ast.ClassDef):
        kind = _kind_of(statement)
        raise PortError(f"{where}: expected a class that derives from mindspore.nn.Cell, got {kind} (line {statement.lineno}).")
    if statement not in file.cells():
        bases = ", ".join(file.bases(statement)) or "none"
        raise PortError(f"{where}: expected a class that derives from mindspore.nn.Cell; its bases are {bases}.")


def _kind_of(statement: ast.stmt) -> str:
    """Return what a statement defines, in words."""
    if isinstance(statement, (ast.If, ast.Try, ast.With, ast.For)):
        return "a definition in a block"
    if isinstance(getattr(statement, "value", None), ast.Lambda):
        return "a lambda"
    return "a function" if isinstance(statement, ast.FunctionDef) else "a value"


def _creates_cells(file: File, name: str) -> bool:
    """Return whether a function needs a Cell of the project."""
    if file.project is None:
        return bool(file.closure([name]) & {node.name for node in file.cells()})
    needed, _ = file.project.closure([name])
    return any(names & {node.name for node in file.project.files[module].cells()} for module, names in needed.items())


def _metaclass(node: ast.ClassDef) -> Problem | None:
    if any(keyword.arg == "metaclass" for keyword in node.keywords):
        return Problem(node.lineno, f"{node.name} has a metaclass: the source does not show what it adds to the class")
    return None


class Writer:
    """Writes the torch form of the files of a port."""

    def __init__(self, file: File, project: Project | None, result: Ported) -> None:
        self.file, self.project, self.result = file, project, result
        self._rewriters: dict[int, Rewriter] = {}
        self._learned: dict[int, dict[str, dict[str, str]]] = {}
        self._facts: dict[int, dict[str, ClassFacts]] = {}
        self._files = [file]
        self._called_from_elsewhere = set[str]()
        """Functions whose calls are not all in their file."""

    def write(self) -> None:
        """Write the texts of the result, or its problems."""
        names = [*self.result.classes, *self.result.functions]
        if self.result.is_script:
            names = [name for name in self.file.defining if name not in self.result.omitted_classes]
        if self.project is None:
            self.result.text = self._written(self.file, self.file.closure(names), None)
            return
        is_script = self.result.is_script
        statements = [statement for statement in self._script_statements(self.file) if not defined_names(statement)] if is_script else []
        needed, handed_on = self.project.closure(names, statements)
        self._files = [self.project.files[module] for module in needed]
        others = [name for file in self._files for name in file.source.imports if file.resolve(name) is not None]
        self._called_from_elsewhere = set(others)
        shared = Shared(self.project, needed) if len(needed) > 1 else None
        for module, definitions in needed.items():
            file = self.project.files[module]
            text = self._written(file, definitions, shared, handed_on.get(module, set()))
            self.result.files[self.project.path_of(file)] = text
        self.result.text = self.result.files[self.project.path_of(self.file)]
        if shared is not None and not self.result.problems:
            self.result.files.update(shared.files())
        if self.result.problems:
            self.result.text, self.result.files = "", {}

    def _written(self, file: File, needed: set[str], shared: Shared | None, handed_on: set[str] | frozenset[str] = frozenset()) -> str:
        """Return the text of a file with these definitions."""
        source, rewriter = file.source, self._rewriter(file)
        statements = [statement for statement in source.tree.body if {*defined_names(statement), changed_name(statement)} & needed]
        if self.result.is_script and file is self.file:
            rewriter.script = Script(rewriter, file, self._omitted(file))
            statements = self._script_statements(file)
        facts, learned = self._facts_of(file), self._learned_of(file)
        local = {node.name: node for node in source.tree.body if isinstance(node, ast.FunctionDef)}
        calls = kinds_of_calls(local, _scopes(file, rewriter, learned))
        rewriter.called_with = {name: kinds for name, kinds in calls.items() if name not in self._called_from_elsewhere}
        texts: list[tuple[ast.stmt, str]] = []
        notes = set[str]()
        for statement in statements:
            if isinstance(statement, (ast.ClassDef, ast.FunctionDef)):
                rewriter.forget_notes()
            else:
                rewriter.share_notes(notes)
            if isinstance(statement, ast.ClassDef):
                text = _class_text(rewriter, file, statement, facts[statement.name], learned[statement.name])
            elif isinstance(statement, ast.FunctionDef):
                text = without_removed(rewriter.function(statement, statement.name, self._computes(file, statement)))
            else:
                text = without_removed(rewriter.render(statement))
            if text.strip():
                texts.append((statement, text))
        self.result.by_hand += rewriter.script.by_hand if rewriter.script is not None else []
        is_entry = file is self.file
        problems = [problem if is_entry else replace(problem, path=source.name) for problem in rewriter.problems]
        self.result.problems += sorted(problems, key=lambda problem: problem.line)
        self.result.reasons += sorted(set(rewriter.reasons)) if is_entry else []
        if rewriter.problems:
            return ""
        text = compose(file, texts, rewriter, shared, handed_on)
        self.result.problems += collisions(source, ast.parse(text))
        return "" if self.result.problems else text

    def _script_statements(self, file: File) -> list[ast.stmt]:
        """Return the statements of a script: all but imports, docstrings, and classes that are not ported."""
        body = file.source.tree.body
        rest = body[1:] if ast.get_docstring(file.source.tree) is not None else body
        return [
            statement for statement in rest if not isinstance(statement, (ast.Import, ast.ImportFrom))
            and not (isinstance(statement, ast.ClassDef) and statement.name in self._omitted(file))
        ]

    def _omitted(self, file: File) -> dict[str, Problem]:
        """Return the classes of a script that are not ported: Cells of the training, callbacks, metrics."""
        for name, node in file.classes.items():
            problem = None if name in self.result.classes else file.obstacle(name)
            if problem is not None and name not in self.result.omitted_classes:
                self.result.omitted_classes[name] = Problem(node.lineno, problem.text)
        return self.result.omitted_classes

    def _computes(self, file: File, node: ast.FunctionDef) -> bool:
        """Return whether a function computes with Tensors; in a script: if a Cell calls it, or it calls MindSpore."""
        if not self.result.is_script or file is not self.file:
            return True
        if any(isinstance(part, (ast.Yield, ast.YieldFrom)) for part in ast.walk(node)):
            return False
        names = [part for part in ast.walk(node) if isinstance(part, (ast.Name, ast.Attribute))]
        return node.name in file.closure(self.result.classes) or any(file.source.mindspore_name(part) for part in names)

    def _rewriter(self, file: File) -> Rewriter:
        if id(file) not in self._rewriters:
            self._rewriters[id(file)] = Rewriter(file.source)
        return self._rewriters[id(file)]

    def _facts_of(self, file: File) -> dict[str, ClassFacts]:
        """Return the facts of the classes of a file."""
        if id(file) in self._facts:
            return self._facts[id(file)]
        facts = self._facts[id(file)] = {}
        for name, node in file.classes.items():
            bases = [self._facts_of(home).get(parent.name) for home, parent in file.parents(node)]
            facts[name] = ClassFacts(file.source, node, [base for base in bases if base is not None], self._family(file, node))
        return facts

    def _family(self, file: File, node: ast.ClassDef) -> list[ast.ClassDef]:
        """Return a class, its bases and the classes that derive from it."""
        return [
            other for home in dict.fromkeys([file, *self._files]) for other in home.classes.values()
            if node in home.ancestors(other) or other in file.ancestors(node)
        ]

    def _learned_of(self, file: File) -> dict[str, dict[str, str]]:
        """Return the kinds of the attributes of each class."""
        if id(file) in self._learned:
            return self._learned[id(file)]
        learned = self._learned[id(file)] = {}
        for name, node in file.classes.items():
            attributes: dict[str, str] = {}
            for home, parent in file.parents(node):
                attributes.update(self._learned_of(home).get(parent.name, {}))
            for item in node.body:
                if isinstance(item, ast.FunctionDef):
                    scope = Scope(file.source, self._rewriter(file).module, attributes)
                    scope.learn(item.body, item.args, kinds_of_parameters=numbers_of_constructor(item, file.source))
            learned[name] = attributes
        return learned


def _scopes(file: File, rewriter: Rewriter, learned: dict[str, dict[str, str]]) -> list[tuple[Scope, ast.AST]]:
    """Return the functions, methods and statements of the file, each with the kinds of its names."""
    scopes: list[tuple[Scope, ast.AST]] = []
    for statement in file.source.tree.body:
        if not isinstance(statement, (ast.ClassDef, ast.FunctionDef)):
            scopes.append((rewriter.module, statement))
            continue
        for item in statement.body if isinstance(statement, ast.ClassDef) else [statement]:
            if isinstance(item, ast.FunctionDef):
                scope = Scope(file.source, rewriter.module, learned.get(statement.name, {}))
                scope.learn(item.body, item.args, kinds_of_parameters=numbers_of_constructor(item, file.source))
                scopes.append((scope, item))
    return scopes


def _class_text(rewriter: Rewriter, file: File, node: ast.ClassDef, facts: ClassFacts, attributes: dict[str, str]) -> str:
    is_cell = file.is_kind(node, CELLS) or file.is_kind(node, MODULES_OF_SCRIPTS)
    rewriter.enter_class(facts, attributes)
    rewriter.is_metric = user_classes.is_metric(file, node) and not user_classes.takes_arrays(file)
    try:
        text = rewriter.class_statement(node, is_cell)
    finally:
        rewriter.leave_class()
        rewriter.is_metric = False
    return without_removed(re.sub(rf"^class {node.name}\(object\):", f"class {node.name}:", text, flags=re.M))
