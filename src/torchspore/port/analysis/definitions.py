"""The definitions of a source file, which of them need which, and why some can't be ported."""
from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from typing import Any

from torchspore.port import rules
from torchspore.port.analysis.source import Problem, Source, is_mindspore
from torchspore.port.analysis.spans import is_self_attribute

CELLS = frozenset(
    [*"nn.Cell Cell nn.LossBase nn.SequentialCell nn.CellList nn.CellDict nn.GraphCell".split(), *rules.WITH_SAME_ARGUMENTS]
)
TRAINING = frozenset(
    "nn.TrainOneStepCell nn.TrainOneStepWithLossScaleCell nn.WithEvalCell nn.WithGradCell nn.ForwardValueAndGrad "
    "nn.LearningRateSchedule nn.Optimizer nn.Metric train.Callback Callback LearningRateSchedule Optimizer Metric TrainOneStepCell "
    "nn.DistributedGradReducer nn.Adam nn.AdamWeightDecay nn.SGD nn.Momentum nn.RMSProp nn.Adagrad nn.Lamb".split()
)
OF_SCRIPTS = frozenset(
    "Callback train.Callback LearningRateSchedule nn.LearningRateSchedule TrainOneStepCell nn.TrainOneStepCell Metric nn.Metric "
    "Optimizer nn.Optimizer".split())
"""Bases of classes that the port of a script has."""
MODULES_OF_SCRIPTS = frozenset(
    "LearningRateSchedule nn.LearningRateSchedule TrainOneStepCell nn.TrainOneStepCell Optimizer nn.Optimizer".split())
"""Those whose `construct` is `forward` in the port."""
_IN_SCRIPTS = OF_SCRIPTS | frozenset(
    "ops.GradOperation ops.grad ops.value_and_grad grad value_and_grad ops.HyperMap ops.Map ops.MultitypeFuncGraph".split())
"""Names that the classes of a script may use."""
GRADIENTS = frozenset(
    "ops.GradOperation ops.grad ops.value_and_grad grad value_and_grad ops.HyperMap ops.MultitypeFuncGraph ops.Map "
    "nn.DynamicLossScaleUpdateCell ops.vjp ops.jvp ops.Custom ops.InsertGradientOf".split()
)


_MODULE_METHODS = frozenset(
    "forward train eval to parameters named_parameters buffers named_buffers modules named_modules children named_children state_dict "
    "load_state_dict add_module register_buffer register_parameter apply zero_grad requires_grad_ set_train cells cells_and_names "
    "get_parameters trainable_params parameters_and_names".split()
)
"""Methods whose override would change what torch does, or what the port writes for a call."""


_MODULE_ATTRIBUTES = frozenset(
    "forward train eval to parameters named_parameters buffers named_buffers modules named_modules children named_children state_dict "
    "load_state_dict apply zero_grad register_buffer _modules _parameters _buffers".split()
)
"""Attributes whose assignment would change what torch does."""


_PLAIN_PACKAGES = frozenset(
    "numpy scipy torch PIL cv2 tqdm yaml requests pandas matplotlib sklearn einops easydict addict omegaconf ml_collections munch "
    "skimage h5py nibabel SimpleITK pycocotools shapely numba networkx joblib psutil librosa soundfile imageio tensorboardX".split())
"""Packages that a ported file imports as the original does."""


def is_elsewhere(dotted: str) -> bool:
    """Return whether a dotted name is in MindSpore, Python's library, or a package that needs no port."""
    root = dotted.split(".")[0]
    return is_mindspore(dotted) or (bool(root) and (root in sys.stdlib_module_names or root in _PLAIN_PACKAGES))


class File:
    """The definitions of a source file, and which of them need which.

    `project` knows the other files that it imports from; without one, what it imports from them can't be ported.
    """

    def __init__(self, source: Source, project: Any = None, module: str = "", is_package: bool = False) -> None:
        self.source, self.project, self.module, self.is_package = source, project, module, is_package
        self.defining: dict[str, list[ast.stmt]] = {}
        for statement in source.tree.body:
            for name in defined_names(statement):
                self.defining.setdefault(name, []).append(statement)
        self.changing: dict[str, list[ast.stmt]] = {}
        """The statements that change a value of the file: `options.size = 3`, `parser.add_argument(...)`."""
        for statement in source.tree.body:
            name = changed_name(statement)
            is_definition = name in self.defining and isinstance(self.defining[name][-1], (ast.ClassDef, ast.FunctionDef))
            if name in self.defining and (not is_definition or isinstance(statement, ast.Assign)):
                self.changing.setdefault(name, []).append(statement)
        self.classes = {node.name: node for node in source.tree.body if isinstance(node, ast.ClassDef)}
        self.check_training: Callable[[File, ast.ClassDef], Problem | None] | None = None
        """In the port of a script: returns why a callback or a schedule can't be ported. None: they are not ported."""

    def resolve(self, name: str) -> tuple[File, str] | None:
        """Return the file and the name of what an imported name means, if another file of the project defines it."""
        if self.project is None or name in self.defining or name not in self.source.imports:
            return None
        target: tuple[File, str] | None = self.project.resolve(self, name)
        return target

    def bases(self, node: ast.ClassDef) -> list[str]:
        """Return the canonical names of a class's bases: MindSpore's, or those of classes of the file."""
        names = []
        for base in node.bases:
            name = self.source.mindspore_name(base)
            if name is None and isinstance(base, ast.Name):
                name = base.id
            names.append(name or ast.unparse(base))
        return names

    def parents(self, node: ast.ClassDef) -> list[tuple[File, ast.ClassDef]]:
        """Return the bases of a class that are in this or another file of the project."""
        result: list[tuple[File, ast.ClassDef]] = []
        for name in self.bases(node):
            if name in self.classes and self.classes[name] is not node:
                result.append((self, self.classes[name]))
            elif (target := self.resolve(name)) is not None and target[1] in target[0].classes:
                result.append((target[0], target[0].classes[target[1]]))
        return result

    def ancestors(self, node: ast.ClassDef) -> list[ast.ClassDef]:
        """Return a class and its bases in the project."""
        return [node, *(ancestor for file, parent in self.parents(node) for ancestor in file.ancestors(parent))]

    def is_kind(self, node: ast.ClassDef, kinds: frozenset[str]) -> bool:
        """Return whether a class has one of these bases, directly or through classes of the project."""
        for name in self.bases(node):
            if name in kinds or (name.rpartition(".")[2] in kinds and name.startswith(("nn.", "train."))):
                return True
        return any(file.is_kind(parent, kinds) for file, parent in self.parents(node))

    def cells(self) -> list[ast.ClassDef]:
        """Return the Cells that are not of training."""
        return [node for node in self.classes.values() if self.is_kind(node, CELLS) or self.is_kind(node, TRAINING)]

    def needs(self, statement: ast.stmt) -> set[str]:
        """Return the names that a statement reads; of its annotations those that the project defines."""
        annotated = {name for name in annotation_names(statement) if name in self.defining or self.resolve(name) is not None}
        names = free_names(statement) | annotated
        return names - (set(defined_names(statement)) if isinstance(statement, ast.ClassDef) else set())

    def obstacle(self, name: str, seen: set[tuple[int, str]] | None = None) -> Problem | None:
        """Return why a definition of the file can't be ported; None if it can."""
        seen = set() if seen is None else seen
        if (id(self), name) in seen:
            return None
        seen.add((id(self), name))
        for statement in self.defining.get(name, ()):
            if isinstance(statement, ast.ClassDef):
                problem = self._training(statement) or self._misfit(statement)
                if problem is not None:
                    return problem
            for used in sorted(self.needs(statement)):
                problem = self._foreign(used, statement, seen) or self.obstacle(used, seen)
                if problem is not None:
                    return Problem(statement.lineno, f"{name} needs {used}: {problem.text}") if used != name else problem
        return None

    def _training(self, node: ast.ClassDef) -> Problem | None:
        check = (self if self.project is None else self.project.entry).check_training
        if check is not None and self.is_kind(node, OF_SCRIPTS):
            problem = check(self, node)
            if problem is not None:
                return problem
        elif self.is_kind(node, TRAINING):
            return Problem(node.lineno, f"{node.name} is part of the training, not of the model")
        for part, name in self._names_in(node):
            if (name in GRADIENTS or name in TRAINING) and not (check is not None and (name in _IN_SCRIPTS or is_plain(node))):
                return Problem(part.lineno, f"{node.name} trains by itself ({name})")  # type: ignore[attr-defined]
        return self._unfit_bprop(node)

    def _unfit_bprop(self, node: ast.ClassDef) -> Problem | None:
        """Return why the gradient that a class defines can't be ported."""
        methods = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
        if "bprop" not in methods:
            return None
        if not self.is_kind(node, CELLS):
            return Problem(node.lineno, f"{node.name} defines bprop and is no Cell: write a torch.autograd.Function")
        if "construct" not in methods:
            return Problem(node.lineno, f"{node.name} defines bprop without construct: define both in one class")
        if any(is_self_attribute(part) and part.attr == "internal_params" for part in ast.walk(node)):  # type: ignore[attr-defined]
            return Problem(node.lineno, f"{node.name} defines gradients of internal_params: write a torch.autograd.Function")
        return None

    def _names_in(self, node: ast.ClassDef) -> Iterator[tuple[ast.AST, str]]:
        """Yield the names of MindSpore that a class uses."""
        for part in ast.walk(node):
            name = self.source.mindspore_name(part) if isinstance(part, (ast.Name, ast.Attribute)) else None
            if name is not None:
                yield part, name

    def trains(self, node: ast.ClassDef) -> bool:
        """Return whether a class computes gradients itself."""
        return any(name in GRADIENTS for _, name in self._names_in(node))

    def _misfit(self, node: ast.ClassDef) -> Problem | None:
        """Return why a class can't be a Module with the same behaviour."""
        for base, name in zip(node.bases, self.bases(node)):
            is_mindspore_name = self.source.mindspore_name(base) is not None and name.startswith("nn.")
            is_layer = is_mindspore_name and name not in (*CELLS, *MODULES_OF_SCRIPTS, *rules.METRIC, *rules.OPTIMIZER)
            if is_layer:
                return Problem(node.lineno, f"{node.name} derives from {name}: derive it from nn.Cell, with the layer as an attribute")
        methods = {item.name for ancestor in self.ancestors(node) for item in ancestor.body if isinstance(item, ast.FunctionDef)}
        hidden = _MODULE_METHODS if self.is_kind(node, CELLS) else {"forward"}
        hidden = hidden if "construct" in methods else hidden - {"forward"}
        for item in (item for ancestor in self.ancestors(node) for item in ancestor.body):
            if isinstance(item, ast.FunctionDef) and item.name in hidden:
                return Problem(item.lineno, f"{node.name} defines {item.name}, which torch.nn.Module uses: rename it")
        return self._hiding_attribute(node) if self.is_kind(node, CELLS) else None

    def _hiding_attribute(self, node: ast.ClassDef) -> Problem | None:
        """Return a problem if a Cell assigns an attribute that torch.nn.Module uses."""
        for part in ast.walk(node):
            if is_self_attribute(part) and isinstance(part.ctx, ast.Store) and part.attr in _MODULE_ATTRIBUTES:  # type: ignore[attr-defined]
                text = f"{node.name} assigns self.{part.attr}, which torch.nn.Module uses: rename it"  # type: ignore[attr-defined]
                return Problem(part.lineno, text)  # type: ignore[attr-defined]
        return None

    def _foreign(self, name: str, statement: ast.stmt, seen: set[tuple[int, str]]) -> Problem | None:
        """Return why an imported name can't be used in torch."""
        dotted = self.source.imports.get(name)
        if dotted is None or name in self.defining or is_mindspore(dotted):
            return None
        if (target := self.resolve(name)) is not None:
            file, there = target
            names = [there] if there else sorted(attributes_of(name, statement))
            return next((problem for each in names if (problem := file.obstacle(each, seen)) is not None), None)
        if is_elsewhere(dotted):
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
            for statement in [*self.defining[name], *self.changing.get(name, ())]:
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
            if name in self.needs(statement) and isinstance(statement, (ast.Assign, ast.AnnAssign)) and defined_names(statement)
        ]
        last = max((index for index, statement in enumerate(drawing) if set(defined_names(statement)) & needed), default=-1)
        return [defined_names(statement)[0] for statement in drawing[: last + 1]]


def is_plain(node: ast.ClassDef) -> bool:
    """Return whether a class has no bases, such as a trainer of the program."""
    return all(isinstance(base, ast.Name) and base.id == "object" for base in node.bases)


def changed_name(statement: ast.stmt) -> str:
    """Return the value that a statement changes: the owner of an attribute or item that it sets, or of a method that it calls."""
    target: ast.expr | None = None
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) and isinstance(statement.value.func, ast.Attribute):
        target = statement.value.func
    elif isinstance(statement, (ast.Assign, ast.AugAssign)):
        target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
    is_part = isinstance(target, (ast.Attribute, ast.Subscript))
    while isinstance(target, (ast.Attribute, ast.Subscript)):
        target = target.value
    return target.id if is_part and isinstance(target, ast.Name) else ""


def free_names(node: ast.AST) -> set[str]:
    """Return the names that code reads and does not bind itself."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        outside = [*node.args.defaults, *(default for default in node.args.kw_defaults if default is not None)]
        outside += node.decorator_list if not isinstance(node, ast.Lambda) else []
        body = node.body if isinstance(node.body, list) else [node.body]
        bound = {argument.arg for argument in ast.walk(node.args) if isinstance(argument, ast.arg)}
        bound |= {part.id for item in body for part in ast.walk(item) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
        bound -= {name for item in body for part in ast.walk(item) if isinstance(part, ast.Global) for name in part.names}
        inner = {name for item in body for name in free_names(item)} - bound
        return inner | {name for item in outside for name in free_names(item)}
    if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
        bound = {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
        return {name for child in ast.iter_child_nodes(node) for name in free_names(child)} - bound
    if isinstance(node, ast.Name):
        return {node.id} if isinstance(node.ctx, ast.Load) else set()
    return {name for child in ast.iter_child_nodes(node) for name in free_names(child)}


def annotation_names(node: ast.AST) -> set[str]:
    """Return the names in the annotations of code."""
    parts = [part.annotation for part in ast.walk(node) if isinstance(part, (ast.arg, ast.AnnAssign)) and part.annotation is not None]
    functions = [part for part in ast.walk(node) if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef))]
    parts += [function.returns for function in functions if function.returns is not None]
    return {name.id for part in parts for name in ast.walk(part) if isinstance(name, ast.Name)}


def attributes_of(name: str, node: ast.AST) -> set[str]:
    """Return the attributes of a name that code reads."""
    return {
        part.attr for part in ast.walk(node)
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id == name
    }


def defined_names(statement: ast.stmt) -> list[str]:
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [statement.name]
    if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        names = [node for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)]
        return [node.id for node in names if isinstance(node.ctx, ast.Store)]
    if isinstance(statement, (ast.If, ast.Try, ast.With, ast.For)):
        return [name for child in ast.iter_child_nodes(statement) if isinstance(child, ast.stmt) for name in defined_names(child)]
    return []
