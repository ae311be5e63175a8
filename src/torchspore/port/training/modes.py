"""Which Cells of a script stay in evaluation: a Cell begins in it, a Module in training mode."""
from __future__ import annotations

import ast
from collections.abc import Iterator

from torchspore.port.analysis.definitions import CELLS, File
from torchspore.port.training.facts import Facts

_TRAINERS = frozenset("Model TrainOneStepCell WithLossCell build_train_network".split())
"""What the program trains with a Cell: its mode is set."""


class Modes:
    """The Cells of a script that no call of `set_train` reaches."""

    def __init__(self, file: File, facts: Facts) -> None:
        self.file, self.facts = file, facts
        calls = [node for node in file.source.nodes if isinstance(node, ast.Call)]
        self.reached = {name for call in calls for name in self._receivers(call)}
        assigned = [(name, value) for name, value in self._assignments() if isinstance(value, ast.Call)]
        for _ in range(len(assigned)):
            more = {name for target, value in assigned if target in self.reached for name in _names_passed(value)}
            if more <= self.reached:
                break
            self.reached |= more

    def _receivers(self, call: ast.Call) -> Iterator[str]:
        """Yield the names whose mode a call sets: `net.set_train()`, `Model(net, ...)`."""
        if isinstance(call.func, ast.Attribute) and call.func.attr == "set_train" and isinstance(call.func.value, ast.Name):
            yield call.func.value.id
        elif self.facts.last_name(call) in _TRAINERS:
            yield from _names_passed(call)

    def _assignments(self) -> Iterator[tuple[str, ast.expr]]:
        for node in self.file.source.nodes:
            if isinstance(node, ast.Assign):
                yield from ((target.id, node.value) for target in node.targets if isinstance(target, ast.Name))

    def begins_in_evaluation(self, node: ast.AST) -> bool:
        """Return whether a call creates a Cell of the program that has norms or dropout, and of no other Cells."""
        target = self.facts.class_of(node)
        if target is None or not isinstance(node, ast.Call) or not target[0].is_kind(target[1], CELLS):
            return False
        has_modes = any(word in target[0].source.text for word in ("BatchNorm", "Dropout", "dropout"))
        return has_modes and not any(self._is_cell(name, node) for name in _names_passed(node))

    def _is_cell(self, name: str, node: ast.AST) -> bool:
        values = self.facts.assigned(name, node)
        return any(self.facts.class_of(value) is not None or self.facts.last_name(value)[:1].isupper() for value in values)

    def stays_in_evaluation(self, name: str, node: ast.AST) -> bool:
        """Return whether `name = node` creates a Cell that stays in evaluation."""
        return name not in self.reached and self.begins_in_evaluation(node)

    def is_inside_of_evaluation(self, node: ast.Call) -> bool:
        """Return whether a call is an argument of another Cell that no call of set_train reaches: `Distilled(net, Teacher())`."""
        outer = self.facts.parents.get(node)
        statement = self.facts.parents.get(outer) if isinstance(outer, ast.Call) else None
        if not (isinstance(statement, ast.Assign) and statement.value is outer and isinstance(statement.targets[0], ast.Name)):
            return False
        is_of_cell = self.facts.class_of(outer) is not None
        return is_of_cell and statement.targets[0].id not in self.reached and self.begins_in_evaluation(node)


def _names_passed(call: ast.Call) -> set[str]:
    """Return the names among the arguments of a call, also of those inside."""
    words = [*call.args, *(keyword.value for keyword in call.keywords)]
    inner = {name for word in words if isinstance(word, ast.Call) for name in _names_passed(word)}
    return inner | {word.id for word in words if isinstance(word, ast.Name)}
