"""The user's Cells that train: which of their attributes are optimizers."""
from __future__ import annotations

import ast
from collections.abc import Iterator

from torchspore.port.analysis.class_facts import pairs
from torchspore.port.analysis.spans import is_self_attribute
from torchspore.port.training.facts import Facts


class Owners:
    """The parameters of constructors and the attributes of classes that are optimizers, as the calls of the script show."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.parameters: dict[str, set[str]] = {}
        self.attributes: dict[str, set[str]] = {}
        self.handed_on: set[str] = set()
        """The names of optimizers and losses that a class receives."""
        for owner in facts.file.classes.values():
            created = {name for name, value in self._assigned(owner) if facts.is_optimizer(value) and isinstance(value, ast.Call)}
            if created:
                self.attributes[owner.name] = created
        for node in [*facts.source.nodes, *facts.source.nodes]:        # a class may receive an object whose class is known later
            target = facts.class_of(node)
            if target is not None and target[0] is facts.file and isinstance(node, ast.Call):
                self._read_call(target[1], node)

    def _read_call(self, owner: ast.ClassDef, call: ast.Call) -> None:
        for name, value in self._arguments(owner, call):
            if isinstance(value, ast.Name):
                self.handed_on.add(value.id)
            if self.facts.is_optimizer(value):
                self._note(owner, name)
            received = self.facts.class_of(self.facts.value(value))
            if received is not None and received[1].name in self.attributes:
                self._note_taken(owner, name, self.attributes[received[1].name])

    def _note_taken(self, owner: ast.ClassDef, parameter: str, optimizers: set[str]) -> None:
        """Note the attributes of a class that are optimizers of an object that its constructor receives."""
        for name, value in self._assigned(owner):
            is_taken = isinstance(value, ast.Attribute) and isinstance(value.value, ast.Name) and value.value.id == parameter
            if is_taken and value.attr in optimizers:  # type: ignore[attr-defined]
                self.attributes.setdefault(owner.name, set()).add(name)

    def _assigned(self, owner: ast.ClassDef) -> Iterator[tuple[str, ast.expr]]:
        """Yield the attributes that the constructor of a class assigns, with their values."""
        init = self._init(owner)
        for part in ast.walk(init) if init is not None else ():
            if isinstance(part, ast.Assign):
                yield from (item for target in part.targets for item in pairs(target, part.value))

    def _arguments(self, owner: ast.ClassDef, call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
        init = self._init(owner)
        names = [argument.arg for argument in init.args.args[1:]] if init is not None else ["network", "optimizer"]
        yield from zip(names, call.args)
        yield from ((keyword.arg, keyword.value) for keyword in call.keywords if keyword.arg is not None)

    @staticmethod
    def _init(owner: ast.ClassDef) -> ast.FunctionDef | None:
        return next((item for item in owner.body if isinstance(item, ast.FunctionDef) and item.name == "__init__"), None)

    def _note(self, owner: ast.ClassDef, parameter: str) -> None:
        """Note a parameter of a constructor that is an optimizer, and the attributes that it is assigned to."""
        self.parameters.setdefault(owner.name, set()).add(parameter)
        attributes = self.attributes.setdefault(owner.name, set())
        attributes |= {name for name, value in self._assigned(owner) if isinstance(value, ast.Name) and value.id == parameter}
        if self.facts.file.is_kind(owner, frozenset(("TrainOneStepCell",))):
            attributes.add("optimizer")

    def is_optimizer(self, node: ast.expr) -> bool:
        """Return whether an expression of a class is an optimizer."""
        owner = self.facts.class_around(node)
        if owner is None:
            return False
        if is_self_attribute(node):
            return node.attr in self.attributes.get(owner.name, ())  # type: ignore[attr-defined]
        around = self.facts.functions_around(node)
        is_in_init = bool(around) and isinstance(around[0], ast.FunctionDef) and around[0].name == "__init__"
        return isinstance(node, ast.Name) and is_in_init and node.id in self.parameters.get(owner.name, ())
