"""The statements of a definition in torch."""
from __future__ import annotations

import ast
from typing import Any

from torchspore.port.analysis import layer_expressions
from torchspore.port.analysis.kinds import NUMPY, PYTHON, TENSOR, Scope
from torchspore.port.analysis.source import Source
from torchspore.port.analysis.spans import is_self_attribute
from torchspore.port.rules.rule import literal

_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**", ast.MatMult: "@",
    ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
}


_WITHOUT_EFFECT = frozenset(
    "init_parameters_data set_grad add_flags add_flags_recursive set_comm_fusion set_boost set_jit_config recompute".split())
"""Methods of Cells that torch does not need."""


class StatementWriter:
    """The part of the Rewriter that writes statements."""

    source: Source
    scope: Scope
    script: Any
    """The writer of a script's training; None in a port of Cells."""
    class_facts: Any
    is_computing: bool
    _lists: set[str]
    _notes: list[str]
    _line: int
    render: Any
    splice: Any
    text: Any
    note: Any
    helper: Any
    problem: Any

    def _statement(self, node: ast.stmt) -> str:
        outer_notes, outer_line = self._notes, self._line
        self._notes, self._line = [], node.lineno
        torch_text = self.script.statement(node) if self.script is not None else None
        if torch_text is None:
            torch_text = self.splice_statement(node)
        indent = self.source.indent(node)
        if indent is None:
            outer_notes.extend(self._notes)
        else:
            torch_text = "".join(f"# {note}\n{indent}" for note in self._notes) + torch_text
        self._notes, self._line = outer_notes, outer_line
        return torch_text

    def splice_statement(self, node: ast.stmt) -> str:
        """Return the torch form of a statement without training."""
        handler = getattr(self, f"_write_{type(node).__name__.lower()}", None)
        torch_text = handler(node) if handler is not None else None
        return str(self.splice(node) if torch_text is None else torch_text)

    def _write_classdef(self, node: ast.ClassDef) -> None:
        """A class inside of a class or a function stays as it is, unless it is a Cell."""
        if any(self.source.mindspore_name(base) for base in node.bases):
            self.problem(node, f"the class {node.name} inside of another definition: move it to the top of the file")

    def _write_import(self, _: ast.stmt) -> str:
        self.problem(_, "an import inside a definition: move it to the top of the file")
        return ""

    def _write_importfrom(self, node: ast.ImportFrom) -> str | None:
        return self._write_import(node) if (node.module or "").split(".")[0] == "mindspore" else None

    def _write_augassign(self, node: ast.AugAssign) -> str | None:
        kind = self.scope.kind(node.target)
        if not self.is_computing or kind in (PYTHON, NUMPY) or isinstance(node.target, ast.Subscript):
            return None
        if isinstance(node.value, (ast.Tuple, ast.List, ast.ListComp)):
            return None
        if isinstance(node.target, ast.Name) and node.target.id in self._lists:
            return None
        operator = _OPERATORS[type(node.op)]
        target = self.render(node.target)
        value = self.text(node.value, "+")
        self.note("not in place: MindSpore binds the name to a new Tensor") if kind == TENSOR else None
        if (new := self._parameter_write(node.target, f"{target} {operator} {value}")) is not None:
            return new
        return f"{target} = {target} {operator} {value}"

    def _parameter_write(self, target: ast.expr, value: str) -> str | None:
        """Return the statement that writes into a Parameter of the class; None for another target."""
        if self.class_facts is None or not self.is_computing or not is_self_attribute(target):
            return None
        if target.attr not in self.class_facts.parameters:  # type: ignore[attr-defined]
            return None
        return f"{self.helper('assign')}({self.render(target)}, {value})"

    def _write_expr(self, node: ast.Expr) -> str | None:
        called = node.value.func if isinstance(node.value, ast.Call) else None
        if not (isinstance(called, ast.Attribute) and called.attr in _WITHOUT_EFFECT):
            return None
        if called.attr == "recompute":
            self.note("recompute: see torch.utils.checkpoint")
        return "pass" if self.class_facts is None else str(self.class_facts.nothing(node))

    def _write_assign(self, node: ast.Assign) -> str | None:
        if self.class_facts is not None and (torch_text := self.class_facts.write_assignment(self, node)) is not None:
            return str(torch_text)
        if len(node.targets) != 1:
            return None
        if (item := self._item_of_parameter(node.targets[0])) is not None:
            return f"{item} = {self.render(node.value)}"
        target = node.targets[0]
        layer = layer_expressions.class_of(self.source, target) if isinstance(target, ast.Attribute) else ""
        if isinstance(target, ast.Attribute) and target.attr == "momentum" and "BatchNorm" in layer:
            self.note("torch's momentum is 1 minus MindSpore's")
            value = literal(node.value)
            momentum = repr(round(1 - value, 12)) if isinstance(value, (int, float)) else f"1 - {self.text(node.value, '+')}"
            return f"{self.render(target)} = {momentum}"
        if not is_self_attribute(node.targets[0]):
            return f"{self.render(node.targets[0])}.data = {self.render(node.value)}" if self._sets_data_of_layer(node) else None
        if self._sets_data(node):
            return f"{self.render(node.targets[0])}.data = {self.render(node.value)}"
        return self._parameter_write(node.targets[0], self.render(node.value))

    def _item_of_parameter(self, target: ast.expr) -> str | None:
        """Return `self.weight.data[index]` for an item of a Parameter of the class: torch refuses to write into a leaf."""
        if not isinstance(target, ast.Subscript) or self.class_facts is None or not is_self_attribute(target.value):
            return None
        if target.value.attr not in self.class_facts.parameters:  # type: ignore[attr-defined]
            return None
        return str(self.splice(target, {target.value: f"{self.render(target.value)}.data"}))

    def _sets_data_of_layer(self, node: ast.Assign) -> bool:
        """Return whether a statement assigns initial values to the Parameter of a layer: `cell.weight = initializer(...)`."""
        target, value = node.targets[0], node.value
        if not (isinstance(target, ast.Attribute) and isinstance(value, ast.Call)):
            return False
        is_parameter = target.attr in ("weight", "bias", "gamma", "beta")
        return is_parameter and self.source.mindspore_name(value.func) in ("init.initializer", "initializer", "Tensor")

    def _sets_data(self, node: ast.Assign) -> bool:
        """Return whether a constructor assigns a Tensor to an attribute that is a Parameter: MindSpore writes its values."""
        name = node.targets[0].attr  # type: ignore[attr-defined]
        if self.is_computing or self.class_facts is None or name not in self.class_facts.parameters:
            return False
        called = self.source.mindspore_name(node.value.func) if isinstance(node.value, ast.Call) else None
        return self.scope.kind(node.value) == TENSOR and called is not None and called != "Parameter"
