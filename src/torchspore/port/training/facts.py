"""The meaning of a script's names: models, optimizers, data sets, callbacks."""
from __future__ import annotations

import ast
import keyword
from collections.abc import Iterator
from typing import Any

from torchspore.port.analysis.class_facts import pairs
from torchspore.port.analysis.definitions import File, is_plain
from torchspore.port.analysis.spans import is_self_attribute
from torchspore.port.rules.rule import Bound, NoRule, bind, declare

OPTIMIZERS = frozenset(
    "Momentum SGD Adam AdamWeightDecay RMSProp Adagrad Adadelta AdaMax LazyAdam AdamOffload Lamb LARS FTRL Rprop ASGD ProximalAdagrad "
    "AdaFactor thor".split()
)
CALLBACKS = frozenset("LossMonitor TimeMonitor ModelCheckpoint LearningRateScheduler CheckpointConfig".split())
LOSS_SCALES = frozenset("FixedLossScaleManager DynamicLossScaleManager".split())
STEPS = frozenset("TrainOneStepCell WithLossCell WithEvalCell".split())
GRADIENTS = frozenset("value_and_grad GradOperation grad get_grad".split())
_OPTIMIZER = frozenset("Optimizer nn.Optimizer".split())
_ROOTS = ("nn.", "train.", "ops.", "amp.", "dataset.")
_MODEL = declare(
    "Model(network, loss_fn=None, optimizer=None, metrics=None, eval_network=None, eval_indexes=None, amp_level='O0', boost_level='O0', "
    "loss_scale_manager=None, keep_batchnorm_fp32=None)", "").parameters


class Facts:
    """The assignments of a script, by function."""

    def __init__(self, file: File) -> None:
        self.file, self.source = file, file.source
        self.parents: dict[ast.AST, ast.AST] = {}
        for node in self.source.nodes:
            for child in ast.iter_child_nodes(node):
                self.parents[child] = node
        outside = [node for node in self.parents if not self._is_in_class(node)]
        self.names = {node.id for node in outside if isinstance(node, ast.Name)}
        self.names |= {node.arg for node in outside if isinstance(node, ast.arg)}
        self.names |= set(file.defining) | set(self.source.imports)

    def _is_in_class(self, node: ast.AST) -> bool:
        while node in self.parents:
            node = self.parents[node]
            if isinstance(node, ast.ClassDef):
                return True
        return False

    def last_name(self, node: ast.AST) -> str:
        """Return the last part of the MindSpore name of what a call calls; "" for another expression."""
        if not isinstance(node, ast.Call):
            return ""
        name = self.source.mindspore_name(node.func) or ""
        return name.rpartition(".")[2] if "." not in name or name.startswith(_ROOTS) else ""

    def fresh(self, *candidates: str) -> str:
        """Return the first name that the script does not use, and reserve it."""
        more = (f"{candidates[-1]}_{number}" for number in range(2, 100))
        name = next(name for name in [*candidates, *more] if name not in self.names and not keyword.iskeyword(name))
        self.names.add(name)
        return name

    def functions_around(self, node: ast.AST) -> list[ast.AST]:
        """Return the functions around a node, the innermost first, and the file."""
        result: list[ast.AST] = []
        while node in self.parents:
            node = self.parents[node]
            if isinstance(node, (ast.FunctionDef, ast.Module)):
                result.append(node)
        return result

    def assigned(self, name: str, node: ast.AST) -> list[ast.expr]:
        """Return the values that are assigned to a name where a node reads it."""
        for around in self.functions_around(node):
            values = [value for target, value in _assignments(around) if target == name]
            arguments = [part for part in ast.walk(around.args) if isinstance(part, ast.arg)] if isinstance(around, ast.FunctionDef) else []
            is_argument = any(name == argument.arg for argument in arguments)
            if values or is_argument:
                return [] if is_argument else values
        return []

    def passed(self, node: ast.Name) -> list[ast.expr]:
        """Return what the calls of the function or method around a node pass for its parameter of this name."""
        function = next((each for each in self.functions_around(node) if isinstance(each, ast.FunctionDef)), None)
        if function is None:
            return []
        owner = self.parents.get(function)
        names = [argument.arg for argument in function.args.args][1 if isinstance(owner, ast.ClassDef) else 0:]
        if node.id not in names:
            return []
        position, values = names.index(node.id), []
        for call in self.source.nodes:
            if isinstance(call, ast.Call) and self._calls(call, function, owner):
                values += call.args[position : position + 1]
                values += [keyword.value for keyword in call.keywords if keyword.arg == node.id]
        return values

    def _calls(self, call: ast.Call, function: ast.FunctionDef, owner: ast.AST | None) -> bool:
        """Return whether a call is one of a function, or of a method of a class of the file."""
        if not isinstance(owner, ast.ClassDef):
            return isinstance(call.func, ast.Name) and call.func.id == function.name
        if function.name == "__init__":
            return isinstance(call.func, ast.Name) and call.func.id == owner.name
        if not isinstance(call.func, ast.Attribute) or call.func.attr != function.name:
            return False
        if isinstance(call.func.value, ast.Name) and call.func.value.id == "self":
            return self.class_around(call) is owner
        created = self.class_of(self.value(call.func.value))
        return created is not None and created[1] is owner

    def class_around(self, node: ast.AST) -> ast.ClassDef | None:
        """Return the class around a node."""
        while node in self.parents:
            node = self.parents[node]
            if isinstance(node, ast.ClassDef):
                return node
        return None

    def of_attribute(self, node: ast.expr) -> list[ast.expr]:
        """Return the values that a class assigns to an attribute of self that its method reads; none for another expression."""
        owner = self.class_around(node) if is_self_attribute(node) else None
        return [
            value for part in ast.walk(owner) if isinstance(part, ast.Assign)
            for target in part.targets for name, value in pairs(target, part.value) if name == node.attr  # type: ignore[attr-defined]
        ] if owner is not None else []

    def origins(self, node: ast.expr) -> list[ast.expr]:
        """Return the values of a name, also those that calls pass for a parameter, or of an attribute of self."""
        if isinstance(node, ast.Name):
            return self.assigned(node.id, node) or self.passed(node)
        return self.of_attribute(node)

    def value(self, node: ast.expr | None) -> ast.expr | None:
        """Return the only value of a name; for another expression itself."""
        for _ in range(5):
            if not isinstance(node, ast.Name):
                break
            values = self.assigned(node.id, node)
            if len(values) != 1:
                return node
            node = values[0]
        return node

    def model_of(self, node: ast.expr) -> Bound | None:
        """Return the arguments of the `Model(...)` that an expression means."""
        value = self.value(node)
        if value is None or self.last_name(value) != "Model":
            return None
        try:
            return bind(_MODEL, value)  # type: ignore[arg-type]
        except NoRule:
            return None

    def is_optimizer(self, node: ast.expr | None) -> bool:
        """Return whether an expression is an optimizer of MindSpore."""
        if isinstance(node, ast.Name):
            values = self.assigned(node.id, node) or self._results(node)
            return bool(values) and all(self._creates_optimizer(value) for value in values)
        return node is not None and self._creates_optimizer(node)

    def _creates_optimizer(self, node: ast.expr) -> bool:
        if self.last_name(node) in OPTIMIZERS or self.user_optimizer(node) is not None:
            return True
        function = self.function(node)
        results = self.returned(function) if function is not None else []
        return bool(results) and all(self.last_name(value) in OPTIMIZERS or self.user_optimizer(value) is not None for value in results)

    def _results(self, node: ast.Name) -> list[ast.expr]:
        """Return the values that functions of the file return for a name: `net, optimizer = create()`."""
        values: list[ast.expr] = []
        for around in self.functions_around(node):
            for part in ast.walk(around):
                if not (isinstance(part, ast.Assign) and isinstance(part.targets[0], ast.Tuple)):
                    continue
                names = [each.id if isinstance(each, ast.Name) else "" for each in part.targets[0].elts]
                function = self.function(part.value)
                if node.id not in names or function is None or next(iter(self.functions_around(part))) is not around:
                    continue
                for result in self.returned(function):
                    is_tuple = isinstance(result, ast.Tuple) and len(result.elts) == len(names)
                    values.append(result.elts[names.index(node.id)] if is_tuple else result)  # type: ignore[attr-defined]
            if values:
                return values
        return values

    def user_optimizer(self, node: ast.AST | None) -> tuple[File, ast.ClassDef] | None:
        """Return the class of the optimizer that a call creates, if the program defines it, and its file."""
        target = self.class_of(node)
        return target if target is not None and target[0].is_kind(target[1], _OPTIMIZER) else None

    def function(self, node: ast.expr) -> ast.FunctionDef | None:
        """Return the function of the file that a call calls."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            statement = self.file.defining.get(node.func.id, [None])[-1]
            return statement if isinstance(statement, ast.FunctionDef) else None
        return None

    def returned(self, function: ast.FunctionDef) -> list[ast.expr]:
        """Return the values that a function returns."""
        return [part.value for part in ast.walk(function) if isinstance(part, ast.Return) and part.value is not None]

    def class_of(self, node: ast.AST | None) -> tuple[File, ast.ClassDef] | None:
        """Return the class of the project whose object a call creates, and its file."""
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
            return None
        file, name = self.file.resolve(node.func.id) or (self.file, node.func.id)
        return (file, file.classes[name]) if name in file.classes else None

    def uses(self, name: str, node: ast.AST) -> Iterator[ast.Name]:
        """Yield where the function around a node reads a name."""
        for part in ast.walk(self.functions_around(node)[0]):
            if isinstance(part, ast.Name) and part.id == name and isinstance(part.ctx, ast.Load):
                yield part


def _assignments(scope: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield names and values of the assignments of a function or a file, without those of functions inside."""
    waiting: list[Any] = list(getattr(scope, "body", []))
    while waiting:
        part = waiting.pop(0)
        if isinstance(part, (ast.FunctionDef, ast.ClassDef)):
            continue
        if isinstance(part, ast.Assign):
            for target in part.targets:
                if isinstance(target, ast.Name):
                    yield target.id, part.value
                elif isinstance(target, ast.Tuple) and isinstance(part.value, ast.Tuple) and len(target.elts) == len(part.value.elts):
                    yield from ((each.id, value) for each, value in zip(target.elts, part.value.elts) if isinstance(each, ast.Name))
        waiting.extend(child for child in ast.iter_child_nodes(part) if isinstance(child, (ast.stmt, ast.ExceptHandler)))


def is_training_script(file: File) -> bool:
    """Return whether a file trains: it calls `Model`, an optimizer, or computes gradients, outside of classes."""
    facts = Facts(file)
    for node in file.source.nodes:
        name = facts.last_name(node)
        inside = [around for around in _around(facts, node) if isinstance(around, ast.ClassDef)]
        is_inside = not all(is_plain(around) for around in inside)
        is_optimizer = name in OPTIMIZERS or facts.user_optimizer(node) is not None
        if not is_inside and (is_optimizer or name in ("Model", "TrainOneStepCell")):
            return True
    return False


def _around(facts: Facts, node: ast.AST) -> Iterator[ast.AST]:
    while node in facts.parents:
        node = facts.parents[node]
        yield node
