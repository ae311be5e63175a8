"""The file that a port writes: which definitions, their torch form, imports, helpers."""
from __future__ import annotations

import ast
import re
import sys
from dataclasses import dataclass, field

from torchspore.base.suggest import closest
from torchspore.port import helpers
from torchspore.port.call import HELPER
from torchspore.port.class_facts import ClassFacts, without_removed
from torchspore.port.collisions import collisions
from torchspore.port.kinds import Scope, kinds_of_calls
from torchspore.port.rewrite import Rewriter
from torchspore.port.source import PortError, Problem, Source, is_mindspore

_CELLS = frozenset("nn.Cell Cell nn.LossBase nn.SequentialCell nn.CellList nn.CellDict nn.GraphCell".split())
_TRAINING = frozenset(
    "nn.TrainOneStepCell nn.TrainOneStepWithLossScaleCell nn.WithEvalCell nn.WithGradCell nn.ForwardValueAndGrad "
    "nn.LearningRateSchedule nn.Optimizer nn.Metric train.Callback Callback LearningRateSchedule Optimizer Metric TrainOneStepCell "
    "nn.DistributedGradReducer nn.Adam nn.AdamWeightDecay nn.SGD nn.Momentum nn.RMSProp nn.Adagrad nn.Lamb".split()
)
_GRADIENTS = frozenset(
    "ops.GradOperation ops.grad ops.value_and_grad grad value_and_grad ops.HyperMap ops.MultitypeFuncGraph ops.Map "
    "nn.DynamicLossScaleUpdateCell ops.vjp ops.jvp ops.Custom ops.InsertGradientOf".split()
)


_MODULE_METHODS = frozenset(
    "forward train eval to parameters named_parameters buffers named_buffers modules named_modules children named_children state_dict "
    "load_state_dict add_module register_buffer register_parameter apply zero_grad requires_grad_ set_train cells cells_and_names "
    "get_parameters trainable_params parameters_and_names".split()
)
"""Methods whose override would change what torch does, or what the port writes for a call."""


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


class File:
    """The definitions of a source file, and which of them need which."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.defining: dict[str, list[ast.stmt]] = {}
        for statement in source.tree.body:
            for name in _defined_names(statement):
                self.defining.setdefault(name, []).append(statement)
        self.classes = {node.name: node for node in source.tree.body if isinstance(node, ast.ClassDef)}

    def bases(self, node: ast.ClassDef) -> list[str]:
        """Return the canonical names of a class's bases: MindSpore's, or those of classes of the file."""
        names = []
        for base in node.bases:
            name = self.source.mindspore_name(base)
            if name is None and isinstance(base, ast.Name):
                name = base.id
            names.append(name or ast.unparse(base))
        return names

    def ancestors(self, node: ast.ClassDef) -> list[ast.ClassDef]:
        """Return a class and its bases in the file."""
        result = [node]
        for name in self.bases(node):
            if name in self.classes and self.classes[name] is not node:
                result += self.ancestors(self.classes[name])
        return result

    def is_kind(self, node: ast.ClassDef, kinds: frozenset[str]) -> bool:
        """Return whether a class has one of these bases, directly or through classes of the file."""
        for name in self.bases(node):
            if name in kinds or (name.rpartition(".")[2] in kinds and name.startswith(("nn.", "train."))):
                return True
            if name in self.classes and self.classes[name] is not node and self.is_kind(self.classes[name], kinds):
                return True
        return False

    def cells(self) -> list[ast.ClassDef]:
        """Return the Cells that are not of training."""
        return [node for node in self.classes.values() if self.is_kind(node, _CELLS) or self.is_kind(node, _TRAINING)]

    def needs(self, statement: ast.stmt) -> set[str]:
        """Return the names that a statement reads."""
        return free_names(statement) - (set(_defined_names(statement)) if isinstance(statement, ast.ClassDef) else set())

    def obstacle(self, name: str, seen: frozenset[str] = frozenset()) -> Problem | None:
        """Return why a definition of the file can't be ported; None if it can."""
        if name in seen:
            return None
        for statement in self.defining.get(name, ()):
            if isinstance(statement, ast.ClassDef):
                problem = self._training(statement) or self._misfit(statement)
                if problem is not None:
                    return problem
            for used in sorted(self.needs(statement)):
                problem = self._foreign(used, statement) or self.obstacle(used, seen | {name})
                if problem is not None:
                    return Problem(statement.lineno, f"{name} needs {used}: {problem.text}") if used != name else problem
        return None

    def _training(self, node: ast.ClassDef) -> Problem | None:
        if self.is_kind(node, _TRAINING):
            return Problem(node.lineno, f"{node.name} is part of the training, not of the model")
        for part in ast.walk(node):
            name = self.source.mindspore_name(part) if isinstance(part, (ast.Name, ast.Attribute)) else None
            if name in _GRADIENTS or name in _TRAINING:
                return Problem(part.lineno, f"{node.name} trains by itself ({name})")  # type: ignore[attr-defined]
        if any(isinstance(item, ast.FunctionDef) and item.name == "bprop" for item in node.body):
            return Problem(node.lineno, f"{node.name} has a bprop of its own: write a torch.autograd.Function")
        return None

    def _misfit(self, node: ast.ClassDef) -> Problem | None:
        """Return why a class can't be a Module with the same behaviour."""
        for base, name in zip(node.bases, self.bases(node)):
            is_layer = self.source.mindspore_name(base) is not None and name.startswith("nn.") and name not in _CELLS
            if is_layer:
                return Problem(node.lineno, f"{node.name} derives from {name}: derive it from nn.Cell, with the layer as an attribute")
        hidden = _MODULE_METHODS if self.is_kind(node, _CELLS) else {"forward"}
        for item in node.body:
            if isinstance(item, ast.FunctionDef) and item.name in hidden:
                return Problem(item.lineno, f"{node.name} defines {item.name}, which torch.nn.Module uses: rename it")
        return None

    def _foreign(self, name: str, statement: ast.stmt) -> Problem | None:
        """Return why an imported name can't be used in torch."""
        dotted = self.source.imports.get(name)
        if dotted is None or name in self.defining or is_mindspore(dotted):
            return None
        root = dotted.split(".")[0]
        if not dotted.startswith(".") and (root in sys.stdlib_module_names or root in ("numpy", "scipy", "torch", "PIL", "cv2", "tqdm")):
            return None
        home = dotted.rpartition(".")[0] or dotted
        return Problem(self.source.import_nodes[name].lineno, f"{name} is imported from {home}: port that file too")

    def closure(self, names: list[str]) -> set[str]:
        """Return the definitions that these need, and themselves."""
        needed, waiting = set[str](), list(names)
        while waiting:
            name = waiting.pop()
            if name in needed or name not in self.defining:
                continue
            needed.add(name)
            for statement in self.defining[name]:
                waiting.extend(self.needs(statement))
            if self._is_random(name):
                waiting.extend(self._drawn_from(name, needed))
        return needed

    def _is_random(self, name: str) -> bool:
        """Return whether a name is a generator of random numbers: what was drawn before changes what follows."""
        values = [getattr(statement, "value", None) for statement in self.defining[name]]
        return any(isinstance(value, ast.Call) and "random" in (self.source.dotted(value.func) or "") for value in values)

    def _drawn_from(self, name: str, needed: set[str]) -> list[str]:
        """Return the names that are drawn from a generator before the last one that is needed."""
        drawing = [
            statement for statement in self.source.tree.body
            if name in self.needs(statement) and isinstance(statement, (ast.Assign, ast.AnnAssign)) and _defined_names(statement)
        ]
        last = max((index for index, statement in enumerate(drawing) if set(_defined_names(statement)) & needed), default=-1)
        return [_defined_names(statement)[0] for statement in drawing[: last + 1]]


def free_names(node: ast.AST) -> set[str]:
    """Return the names that code reads and does not bind itself."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        outside = [*node.args.defaults, *(default for default in node.args.kw_defaults if default is not None)]
        outside += node.decorator_list if not isinstance(node, ast.Lambda) else []
        body = node.body if isinstance(node.body, list) else [node.body]
        bound = {argument.arg for argument in ast.walk(node.args) if isinstance(argument, ast.arg)}
        bound |= {part.id for item in body for part in ast.walk(item) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
        inner = {name for item in body for name in free_names(item)} - bound
        return inner | {name for item in outside for name in free_names(item)}
    if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
        bound = {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
        return {name for child in ast.iter_child_nodes(node) for name in free_names(child)} - bound
    if isinstance(node, ast.Name):
        return {node.id} if isinstance(node.ctx, ast.Load) else set()
    return {name for child in ast.iter_child_nodes(node) for name in free_names(child)}


def _defined_names(statement: ast.stmt) -> list[str]:
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [statement.name]
    if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        names = [node for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)]
        return [node.id for node in names if isinstance(node.ctx, ast.Store)]
    if isinstance(statement, (ast.If, ast.Try, ast.With, ast.For)):
        return [name for child in ast.iter_child_nodes(statement) if isinstance(child, ast.stmt) for name in _defined_names(child)]
    return []


def port(source: Source, class_names: list[str] | None = None, omitted: dict[str, Problem] | None = None) -> Ported:
    """Return the torch form of the Cells of a file, or of those named, without the omitted ones.

    Raises PortError if there are none, or for what is not a Cell.
    """
    file, result = File(source), Ported()
    for name in class_names or ():
        _check_target(file, name)
    candidates = class_names or [node.name for node in file.cells()]
    if not candidates:
        raise PortError(f"{source.name}: expected a class that derives from mindspore.nn.Cell.")
    for name in candidates:
        problem = (omitted or {}).get(name) or _metaclass(file.classes[name]) or file.obstacle(name)
        if problem is None:
            result.classes.append(name)
        elif class_names:
            result.problems.append(problem)
        else:
            result.omitted_classes[name] = problem
    if not result.classes and not result.problems:
        result.problems = list(result.omitted_classes.values())
    if result.problems:
        return result
    _write(file, result)
    return result


def _check_target(file: File, name: str) -> None:
    """Raises PortError unless the name is a Cell of the file."""
    where = f"{file.source.name}:{name}"
    if name not in file.defining:
        imported = file.source.imports.get(name)
        near = closest(name, file.classes)
        hint = f" It is imported from {imported.rpartition('.')[0]}." if imported else f" Did you mean {near}?" if near else ""
        raise PortError(f"{where}: the file defines no class of that name.{hint}")
    statement = file.defining[name][-1]
    if not isinstance(statement, ast.ClassDef):
        is_lambda = isinstance(getattr(statement, "value", None), ast.Lambda)
        kind = "a lambda" if is_lambda else "a function" if isinstance(statement, ast.FunctionDef) else "a value"
        raise PortError(f"{where}: expected a class that derives from mindspore.nn.Cell, got {kind} (line {statement.lineno}).")
    if statement not in file.cells():
        bases = ", ".join(file.bases(statement)) or "none"
        raise PortError(f"{where}: expected a class that derives from mindspore.nn.Cell; its bases are {bases}.")


def _metaclass(node: ast.ClassDef) -> Problem | None:
    if any(keyword.arg == "metaclass" for keyword in node.keywords):
        return Problem(node.lineno, f"{node.name} has a metaclass: what it adds to the class can't be seen in the source")
    return None


def _write(file: File, result: Ported) -> None:
    """Write the text of the result, or its problems."""
    source = file.source
    needed = file.closure(result.classes)
    statements = [statement for statement in source.tree.body if set(_defined_names(statement)) & needed]
    rewriter = Rewriter(source)
    facts = _facts(file)
    learned = _attribute_scopes(file, rewriter)
    rewriter.called_with = kinds_of_calls(
        {node.name: node for node in source.tree.body if isinstance(node, ast.FunctionDef)}, _scopes(file, rewriter, learned))
    texts: list[tuple[ast.stmt, str]] = []
    for statement in statements:
        rewriter.forget_notes()
        if isinstance(statement, ast.ClassDef):
            text = _class_text(rewriter, file, statement, facts[statement.name], learned[statement.name])
        elif isinstance(statement, ast.FunctionDef):
            text = rewriter.function_statement(statement)
        else:
            text = rewriter.render(statement)
        texts.append((statement, text))
    result.problems = sorted(rewriter.problems, key=lambda problem: problem.line)
    result.reasons = sorted(set(rewriter.reasons))
    if not result.problems:
        result.text = _compose(file, texts, rewriter)
        result.problems = collisions(source, ast.parse(result.text))
        result.text = "" if result.problems else result.text


def _facts(file: File) -> dict[str, ClassFacts]:
    facts: dict[str, ClassFacts] = {}
    for name, node in file.classes.items():
        related = [other for other in file.classes.values() if node in file.ancestors(other) or other in file.ancestors(node)]
        facts[name] = ClassFacts(file.source, node, [facts[base] for base in file.bases(node) if base in facts], related)
    return facts


def _attribute_scopes(file: File, rewriter: Rewriter) -> dict[str, dict[str, str]]:
    """Return the kinds of the attributes of each class."""
    learned: dict[str, dict[str, str]] = {}
    for name, node in file.classes.items():
        attributes: dict[str, str] = {}
        for base in file.bases(node):
            attributes.update(learned.get(base, {}))
        for item in node.body:
            if isinstance(item, ast.FunctionDef):
                scope = Scope(file.source, rewriter.module, attributes)
                scope.learn(item.body, item.args)
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
                scope.learn(item.body, item.args)
                scopes.append((scope, item))
    return scopes


def _class_text(rewriter: Rewriter, file: File, node: ast.ClassDef, facts: ClassFacts, attributes: dict[str, str]) -> str:
    is_cell = file.is_kind(node, _CELLS)
    rewriter.enter_class(facts, attributes)
    try:
        text = rewriter.class_statement(node, is_cell)
    finally:
        rewriter.leave_class()
    return without_removed(text)


def _compose(file: File, texts: list[tuple[ast.stmt, str]], rewriter: Rewriter) -> str:
    """Join docstring, imports, definitions and helpers."""
    source = file.source
    names = helpers.needed_by(rewriter.helpers)
    early = helpers.needed_by(_needed_early(texts, set(names)))
    taken = _all_names(source)
    renamed = {name: f"torch_{name}" if name in taken else name for name in names}

    def section(group: list[str]) -> str:
        text = "\n\n\n".join(helpers.definitions()[name] for name in group)
        for name, new in renamed.items():
            text = re.sub(rf"(?<![.\w]){name}\b(?!=)", new, text) if name != new else text
        return text

    top, bottom = section(early), section([name for name in names if name not in early])
    body = re.sub(rf"\b{HELPER}(\w+)", lambda match: renamed[match[1]], _body(source, texts))
    code = "\n\n\n".join(part for part in (top, body, bottom) if part)
    imports = _imports(source, code, top + bottom)
    docstring = ast.get_docstring(source.tree, clean=False)
    head = ""
    if docstring is not None:
        begin, end = source.span(source.tree.body[0])
        head = source.text[begin:end] + "\n"
    return f"{head}{imports}\n\n\n{code.strip()}\n"


def _needed_early(texts: list[tuple[ast.stmt, str]], names: set[str]) -> set[str]:
    """Return the helpers that are used when the file is imported: as a base, a default, or in a value."""
    early = set[str]()
    for _, text in texts:
        for node in ast.parse(text).body:
            parts: list[ast.AST] = [node]
            if isinstance(node, ast.ClassDef):
                functions = [item for item in node.body if isinstance(item, ast.FunctionDef)]
                parts = [*node.bases, *(item for item in node.body if not isinstance(item, ast.FunctionDef))]
                parts += [default for function in functions for default in function.args.defaults]
            elif isinstance(node, ast.FunctionDef):
                parts = [*node.args.defaults, *node.decorator_list]
            used = {part.id for root in parts for part in ast.walk(root) if isinstance(part, ast.Name)}
            early |= {name for name in names if HELPER + name in used}
            if not isinstance(node, (ast.ClassDef, ast.FunctionDef)) and any(isinstance(part, ast.Call) for part in ast.walk(node)):
                called = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
                if called & {statement.name for statement, _ in texts if isinstance(statement, (ast.FunctionDef, ast.ClassDef))}:
                    return names
    return early


def _body(source: Source, texts: list[tuple[ast.stmt, str]]) -> str:
    """Join definitions with the comments above them; two empty lines around functions and classes."""
    pieces: list[str] = []
    before: ast.stmt | None = None
    for statement, text in texts:
        text = _comments_above(source, statement) + text + _comment_behind(source, statement)
        if before is None:
            gap = ""
        elif isinstance(statement, (ast.ClassDef, ast.FunctionDef)) or isinstance(before, (ast.ClassDef, ast.FunctionDef)):
            gap = "\n\n\n"
        else:
            gap = "\n"
        pieces.append(gap + text)
        before = statement
    return "".join(pieces)


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
    names = {node.id for node in ast.walk(source.tree) if isinstance(node, ast.Name)}
    names |= {node.arg for node in ast.walk(source.tree) if isinstance(node, ast.arg)}
    names |= {node.name for node in ast.walk(source.tree) if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    return {name for name in names if not is_mindspore(source.imports.get(name, ""))}


def _imports(source: Source, code: str, helper_text: str) -> str:
    """Return the import lines that the code needs."""
    used = {node.id for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)}
    standard, others = set[str](), set[str]()
    for name in sorted(used):
        dotted = source.imports.get(name)
        if dotted is None or is_mindspore(dotted):
            continue
        node = source.import_nodes[name]
        alias = next(alias for alias in node.names if (alias.asname or alias.name.split(".")[0]) == name)  # type: ignore[attr-defined]
        words = alias.name + (f" as {alias.asname}" if alias.asname else "")
        line = f"from {node.module} import {words}" if isinstance(node, ast.ImportFrom) else f"import {words}"
        (standard if dotted.split(".")[0] in sys.stdlib_module_names else others).add(line)
    if helper_text:
        if "Any" in used:
            standard.add("from typing import Any")
        kinds = sorted({"Callable", "Sequence"} & used)
        if kinds:
            standard.add(f"from collections.abc import {', '.join(kinds)}")
        if "OrderedDict" in used:
            standard.add("from collections import OrderedDict")
        if "math" in used:
            standard.add("import math")
    others |= {"import torch"} if "torch" in used else set()
    others |= {"import torch.nn.functional as F"} if "F" in used and "F" not in _bound(source) else set()
    from_torch = [name for name in ("Tensor", "nn") if name in used and name not in _bound(source)]
    others |= {f"from torch import {', '.join(from_torch)}"} if from_torch else set()
    future = "from __future__ import annotations\n\n" if helper_text or "annotations" in source.imports else ""
    order = lambda line: (line.startswith("from"), re.sub(r"^(from|import) ", "", line).lower())
    groups = ["\n".join(sorted(group, key=order)) for group in (standard, others) if group]
    return future + "\n\n".join(groups)


def _bound(source: Source) -> set[str]:
    """Return names that the file itself defines."""
    names = {name for statement in source.tree.body for name in _defined_names(statement)}
    return names | {name for name, dotted in source.imports.items() if not is_mindspore(dotted)}
