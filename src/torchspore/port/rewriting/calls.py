"""The calls of a definition in torch: of layers, operators, primitives and methods."""
from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import Any

from torchspore.port import rules
from torchspore.port.analysis import layer_expressions
from torchspore.port.analysis.call import Call
from torchspore.port.analysis.kinds import NUMPY, Scope
from torchspore.port.analysis.source import Source
from torchspore.port.analysis.spans import is_self_attribute, needs_parentheses
from torchspore.port.rewriting import function_values
from torchspore.port.rules.rule import Bound, NoRule, Rule, bind


class CallWriter:
    """The part of the Rewriter that writes calls."""

    source: Source
    scope: Scope
    script: Any
    class_facts: Any
    _lists: set[str]
    _may_be_tensor: Any
    text: Any
    note: Any
    problem: Any

    def _write_call(self, node: ast.Call) -> str | None:
        function = node.func
        if self.script is not None and (torch_text := self.script.expression(node)) is not None:
            return str(torch_text)
        name = self.source.mindspore_name(function)
        if isinstance(function, ast.Name) and function.id in self.scope.names:
            name = None
        if name is not None:
            return self._call_of(name, node)
        if isinstance(function, ast.Call):
            inner = self.source.mindspore_name(function.func)
            if inner is not None and any(rule.inputs is not None for rule in rules.find(inner)):
                return self._primitive(inner, function, node)
        if self.source.dotted(function) is not None and self.source.dotted(function).split(".")[0] == "numpy":  # type: ignore[union-attr]
            return function_values.numpy_call(self, node)
        if not isinstance(function, ast.Attribute):
            return self._super_call(node)
        if function.attr == "__init__" and isinstance(function.value, ast.Call) and self.class_facts is not None:
            kept = [keyword for keyword in node.keywords if keyword.arg not in ("auto_prefix", "flags")]
            if node.args and any(self.source.mindspore_name(base) == "nn.SequentialCell" for base in self.class_facts.node.bases):
                return self._sequence_of_super(node)
            if len(kept) < len(node.keywords) and not kept and not node.args:
                return f"{self.text(function.value)}.__init__()"
        if self.class_facts is not None and is_self_attribute(function):
            primitive = self.class_facts.inlined.get(function.attr)
            if primitive is not None:
                return self._primitive(primitive[0], primitive[1], node)
        if function.attr in rules.CELL_METHODS and self.scope.kind(function.value) != NUMPY and self.source.dotted(function) is None:
            return self._first_that_fits(
                f"Cell.{function.attr}", rules.CELL_METHODS[function.attr], node, lambda rule: bind(rule.parameters, node, function.value)
            )
        if function.attr in rules.METHODS and self._may_be_tensor(function.value, function.attr) and not _is_of_text(node):
            return self._method(function, node)
        return None

    def _sequence_of_super(self, node: ast.Call) -> str | None:
        """`super().__init__([a, b])` of an nn.SequentialCell: torch takes the layers one by one."""
        first = node.args[0]
        is_layer = isinstance(first, ast.Call) and layer_expressions.owner(self.source, first) != layer_expressions.OTHER
        if len(node.args) > 1 or isinstance(first, ast.Starred) or is_layer:
            return None
        if isinstance(first, ast.Call) and self.source.dotted(first.func) == "collections.OrderedDict":
            return None
        is_list = isinstance(first, (ast.List, ast.Tuple, ast.ListComp)) or (isinstance(first, ast.Name) and first.id in self._lists)
        if not is_list:
            self.problem(node, "nn.SequentialCell of a value that may be a list or a layer: write *value")
            return None
        return f"{self.text(node.func)}(*{self.text(first)})"

    def _super_call(self, node: ast.Call) -> str | None:
        if isinstance(node.func, ast.Name) and node.func.id == "super" and node.args:
            return "super()"
        is_type = isinstance(node.func, ast.Name) and node.func.id == "type" and len(node.args) == 3
        if is_type and any(self.source.mindspore_name(part) for part in ast.walk(node.args[1])):
            self.problem(node, "a class that type() creates: write a class statement")
        if isinstance(node.func, ast.Name) and node.func.id == "isinstance" and len(node.args) == 2:
            return f"isinstance({self.text(node.args[0])}, {self._classes(node.args[1])})"
        return None

    def _classes(self, node: ast.expr) -> str:
        """Return the classes of an isinstance in torch."""
        if isinstance(node, ast.Tuple):
            return f"({', '.join(self._classes(element) for element in node.elts)})"
        name = self.source.mindspore_name(node)
        return rules.CLASSES.get(name or "") or self.text(node)

    def _call_of(self, name: str, node: ast.Call) -> str | None:
        functions_of_name = [rule for rule in rules.find(name) if rule.inputs is None]
        primitives = [rule for rule in rules.find(name) if rule.inputs is not None]
        if not functions_of_name and primitives:
            return function_values.primitive_object(self, name, primitives, node)
        if not functions_of_name and (rules.name_in_torch(name) is not None or function_values.is_missing(name)):
            return None
        if function_values.takes_same_arguments(self, name, node):
            return None
        return self._first_that_fits(name, functions_of_name, node, lambda rule: bind(rule.parameters, node))

    def _method(self, function: ast.Attribute, node: ast.Call) -> str | None:
        return self._first_that_fits(
            f"Tensor.{function.attr}", rules.METHODS[function.attr], node, lambda rule: bind(rule.parameters, node, function.value)
        )

    def _first_that_fits(self, name: str, candidates: list[Rule], node: ast.AST, bound_for: Callable[[Rule], Bound]) -> str | None:
        reason = "has no rule"
        for rule in candidates:
            try:
                text = self._apply(rule, node, bound_for(rule))
                return f"({text})" if "\n" in text and needs_parentheses(text, "+") else text
            except NoRule as error:
                reason = f"has no rule for {error}"
        self.problem(node, f"{name} {reason}")
        return self.source.text[slice(*self.source.span(node))]

    def _apply(self, rule: Rule, node: ast.AST, bound: Bound) -> str:
        call = Call(self, node, bound)
        operands = [bound.nodes.get(name) for name in ("x", "y", "condition")]
        if rule.name.startswith("mnp.") and any(isinstance(operand, (ast.List, ast.Tuple)) for operand in operands):
            raise NoRule("a list: write mnp.array([...])")
        if isinstance(rule.template, str):
            _check_computed_once(rule.template, bound)
            torch_text = call.fill(rule.template)
        else:
            torch_text = rule.template(call)
        names = call.read | rule.without_effect
        extra = [name for name in [*bound.nodes, *bound.several] if name not in names and not bound.is_default(name)]
        if extra:
            raise NoRule(f"the argument {extra[0]}")
        if rule.note:
            self.note(rule.note)
        return torch_text

    def _primitive(self, name: str, creation: ast.Call, node: ast.Call) -> str | None:
        """Return the torch form of a call of a primitive: `ops.ReduceSum()(x)`."""
        def bound_for(rule: Rule) -> Bound:
            bound, inputs = bind(rule.parameters, creation), bind(rule.inputs, node)  # type: ignore[arg-type]
            return Bound({**bound.nodes, **inputs.nodes}, {**bound.defaults, **inputs.defaults}, {**bound.several, **inputs.several})

        return self._first_that_fits(name, [rule for rule in rules.find(name) if rule.inputs is not None], node, bound_for)


def _is_of_text(node: ast.Call) -> bool:
    """Return whether a call is a method of a string or a list, which takes a text."""
    first = node.args[0] if node.args else None
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    return name in ("split", "index", "count", "format", "search") and isinstance(first, ast.Constant) and isinstance(first.value, str)


def _check_computed_once(template: str, bound: Bound) -> None:
    """Raises NoRule if a template repeats an argument that is a call: it would run twice."""
    names = re.findall(r"\{\*?(\w+)", template)
    for name, node in bound.nodes.items():
        if names.count(name) > 1 and any(isinstance(part, (ast.Call, ast.NamedExpr)) for part in ast.walk(node)):
            raise NoRule(f"a call as {name}: the output would have it twice")
