"""From the text of a definition to its torch form: spans are replaced, all other text stays as it is."""
from __future__ import annotations

import ast
import re
from typing import Any

from torchspore.port import rules
from torchspore.port.analysis import layer_expressions
from torchspore.port.analysis.call import HELPER
from torchspore.port.analysis.kinds import NUMPY, PYTHON, TENSOR, UNKNOWN, Scope, numbers_of_constructor
from torchspore.port.analysis.source import Problem, Source
from torchspore.port.analysis.spans import ATOMS, bound_in, children, is_self_attribute, level_in, needs_parentheses
from torchspore.port.rewriting import function_values, parameter_names
from torchspore.port.rewriting.calls import CallWriter
from torchspore.port.rewriting.statements import StatementWriter
from torchspore.port.rules.rule import literal

_SHARED_WITH_PYTHON = frozenset(
    "copy split index count format max min sum mean all any argmax argmin reshape transpose astype repeat squeeze flatten clip std var "
    "cumsum take tolist item sort dot prod round swapaxes view nonzero fill ravel trace tobytes search diagonal choose ptp byteswap".split()
)
"""Methods that arrays, strings and lists have too: outside of the computation only those of known Tensors are rewritten."""


_WITHOUT_EFFECT = frozenset(
    "jit ms_function constexpr ops.constexpr ops._primexpr jit_class ms_class lazy_inline cell_attr_register".split())
"""Decorators that the port omits."""


class Rewriter(StatementWriter, CallWriter):
    """Writes the torch form of the nodes of a file."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.module = Scope(source)
        self.module.learn(source.tree.body)
        self.scope = self.module
        self.is_computing = False
        """True inside functions that compute with Tensors: a value of unknown kind may be a Tensor."""
        self.class_facts: Any = None
        self.is_metric = False
        """True in a class whose `update` takes Tensors."""
        self.script: Any = None
        self.needs_time = False
        """True if a loop measures the time."""
        self.function_name = ""
        self.reads_names = parameter_names.reads_names(source)
        """True if the file reads the names of Parameters: lists of these have them."""
        self._attributes: dict[str, str] = {}
        self.called_with: dict[str, dict[str, str]] = {}
        """The kinds of the parameters of the file's functions, from their calls."""
        self.helpers: set[str] = set()
        self.problems: list[Problem] = []
        self.reasons: list[tuple[int, str]] = []
        self._notes: list[str] = []
        self._noted: set[str] = set()
        self.noted_in_file: set[str] = set()
        self._line = 0
        self._replaced: dict[ast.AST, str] = {}
        self._lists: set[str] = set()
        """Names of lists in the function: `+=` of a list stays as it is."""
        self._changing: set[str] = set()
        """Names that the function assigns: a lambda would read their last value."""
        self._parameters: set[str] = set()

    def note_other_names(self) -> None:
        """Add a comment with the names of Parameters that torch does not have."""
        parameter_names.note_other_names(self)

    # ---- text

    def text(self, node: ast.AST, level: str = "") -> str:
        """Return the torch text of an expression, in parentheses where `level` needs them: "." before a dot, "+" as an operand."""
        torch_text = self.render(node)
        if level and needs_parentheses(torch_text, level):
            return f"({torch_text})"
        if isinstance(node, ast.GeneratorExp) and not torch_text.startswith("("):
            return f"({torch_text})"
        return torch_text

    def render(self, node: ast.AST) -> str:
        """Return the torch text of a node."""
        if node in self._replaced:
            return self._replaced[node]
        if isinstance(node, ast.stmt):
            return self._statement(node)
        handler = getattr(self, f"_write_{type(node).__name__.lower()}", None)
        torch_text = handler(node) if handler is not None else None
        return self.splice(node) if torch_text is None else torch_text

    def splice(self, node: ast.AST, replaced: dict[ast.AST, str] | None = None) -> str:
        """Return the text of a node with its parts in their torch form; `replaced` gives the text of some."""
        begin, end = self.source.span(node)
        return self._spliced(begin, end, children(node), replaced or {}, node)

    def _spliced(self, begin: int, end: int, parts: list[ast.AST], replaced: dict[ast.AST, str], parent: ast.AST | None = None) -> str:
        pieces, position = [], begin
        for part in parts:
            first, last = self.source.span(part)
            pieces.append(self.source.text[position:first])
            torch_text = replaced[part] if part in replaced else self.render(part)
            level = level_in(parent, part)
            is_new = level and isinstance(part, ATOMS) and torch_text != self.source.text[first:last]
            pieces.append(f"({torch_text})" if is_new and needs_parentheses(torch_text, level) else torch_text)
            position = last
        pieces.append(self.source.text[position:end])
        return "".join(pieces)

    def note(self, text: str) -> None:
        """Add a comment to the statement that is being torch_text, once in a class."""
        self.reasons.append((self._line, text))
        if text not in self._noted:
            self._noted.add(text)
            self._notes.append(text)

    def helper(self, name: str) -> str:
        """Note that the output calls a helper, and return the name to write until `emit` names it."""
        self.helpers.add(name)
        return HELPER + name

    def forget_notes(self) -> None:
        """Begin a definition that repeats the comments."""
        self._noted = set()

    def share_notes(self, noted: set[str]) -> None:
        """Begin a statement that omits the comments of others, and adds its own to them."""
        self._noted = noted

    def problem(self, node: ast.AST, text: str) -> None:
        """Note something that has no rule."""
        problem = Problem(getattr(node, "lineno", self._line), text)
        if problem not in self.problems:
            self.problems.append(problem)

    def _write_functiondef(self, node: ast.FunctionDef) -> str:
        return self.function(node, node.name)

    _write_asyncfunctiondef = _write_functiondef

    # ---- definitions

    def enter_class(self, facts: Any, attributes: dict[str, str]) -> None:
        """Begin a class."""
        self.class_facts, self._attributes = facts, attributes
        self.scope = Scope(self.source, self.module, attributes)

    def leave_class(self) -> None:
        """End a class."""
        self.class_facts, self._attributes, self.scope = None, {}, self.module

    def class_statement(self, node: ast.ClassDef, is_cell: bool) -> str:
        """Return the torch form of a class; `construct` of a Cell becomes `forward`."""
        names = {"construct": "forward", **({"extend_repr": "extra_repr"} if is_cell else {})}
        replaced: dict[ast.AST, str] = {}
        for item in node.body:
            if isinstance(item, ast.FunctionDef):
                outer = self.function_name
                self.function_name = item.name
                is_of_init = item.name.startswith("_make") and item.name not in self._called_by_construct(node)
                is_computing = item.name not in ("__init__", "_initialize") and not is_of_init and (is_cell or self.script is None)
                replaced[item] = self.function(item, names.get(item.name, item.name), is_computing)
                if item.name == "construct" and self.class_facts.has_bprop:
                    replaced[item] = f"@{self.helper('with_bprop')}\n{self.source.indent(node) or ''}    {replaced[item]}"
                self.function_name = outer
            elif is_cell and isinstance(item, ast.Assign):
                targets = [target for target in item.targets if isinstance(target, ast.Name) and target.id == "construct"]
                replaced.update({item: self.splice(item, dict.fromkeys(targets, "forward"))} if targets else {})
        begin = self.source.offset(node.lineno, node.col_offset)
        parts = [part for part in children(node) if part not in node.decorator_list]
        return self._decorators(node) + self._spliced(begin, self.source.span(node)[1], parts, replaced)

    def _decorators(self, node: ast.ClassDef | ast.FunctionDef) -> str:
        """Return the lines of the decorators that have an effect in torch."""
        texts = [self._decorator(decorator) for decorator in node.decorator_list]
        return "".join(f"@{text}\n{self.source.indent(node) or ''}" for text in texts if text)

    @staticmethod
    def _called_by_construct(node: ast.ClassDef) -> set[str]:
        """Return the methods of self that others than the constructor use."""
        methods = [item for item in node.body if isinstance(item, ast.FunctionDef) and item.name != "__init__"]
        return {part.attr for method in methods for part in ast.walk(method) if isinstance(part, ast.Attribute) and is_self_attribute(part)}

    def function(self, node: ast.FunctionDef, name: str, is_computing: bool | None = None) -> str:
        """Return the torch form of a function."""
        outer = self.scope
        state = outer, self.is_computing, self._lists, self._changing, self._parameters
        if is_computing is not None:
            self.is_computing = is_computing
        self.scope = Scope(self.source, outer)
        self._lists = _names_of_lists(node)
        self._changing = {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
        self._parameters = {part.arg for part in ast.walk(node.args) if isinstance(part, ast.arg)}
        with self.source.hiding(bound_in(node)):
            known = self.called_with.get(node.name, {}) if outer is self.module else numbers_of_constructor(node, self.source)
            self.scope.learn(node.body, node.args, TENSOR if self.is_metric and node.name == "update" else UNKNOWN, known)
            return self._function_in_scope(node, name, state)

    def _function_in_scope(self, node: ast.FunctionDef, name: str, outer: tuple[Any, ...]) -> str:
        try:
            replaced: dict[ast.AST, str] = {}
            decorators = self._decorators(node)
            return decorators + self._function_text(node, name, replaced)
        finally:
            self.scope, self.is_computing, self._lists, self._changing, self._parameters = outer

    def _function_text(self, node: ast.FunctionDef, name: str, replaced: dict[ast.AST, str]) -> str:
        begin = self.source.offset(node.lineno, node.col_offset)
        end = self.source.span(node)[1]
        parts = [part for part in children(node) if part not in node.decorator_list]
        for annotation in [part for part in parts if self._is_annotation(node, part)]:
            replaced[annotation] = self._annotation(annotation)
        torch_text = self._spliced(begin, end, parts, replaced)
        return re.sub(rf"^((?:async\s+)?def\s+){re.escape(node.name)}\b", rf"\g<1>{name}", torch_text) if name != node.name else torch_text

    @staticmethod
    def _is_annotation(node: ast.FunctionDef, part: ast.AST) -> bool:
        return part is node.returns or any(part is argument.annotation for argument in ast.walk(node.args) if isinstance(argument, ast.arg))

    def _annotation(self, node: ast.AST) -> str:
        return {"Tensor": "torch.Tensor", "Parameter": "nn.Parameter", "nn.Cell": "nn.Module"}.get(
            self.source.mindspore_name(node) or "", ""
        ) or self.render(node)

    def _decorator(self, node: ast.expr) -> str:
        called = node.func if isinstance(node, ast.Call) else node
        if self.source.mindspore_name(called) in _WITHOUT_EFFECT:
            return ""
        return self.render(node)

    # ---- expressions

    def _write_binop(self, node: ast.BinOp) -> str | None:
        """`x // y` of Tensors: torch's has no gradient and raises an error."""
        if not (isinstance(node.op, ast.FloorDiv) and TENSOR in (self.scope.kind(node.left), self.scope.kind(node.right))):
            return None
        return f"{self.helper('floor_divide')}({self.text(node.left)}, {self.text(node.right)})"

    def _write_joinedstr(self, node: ast.JoinedStr) -> str:
        begin, end = self.source.span(node)
        text = self.source.text[begin:end]
        for part in ast.walk(node):
            if not isinstance(part, ast.FormattedValue):
                continue
            before = ast.unparse(part.value)
            after = self._formatted(part.value, before)
            if after == before:
                continue
            if "{" + before not in text or set(after) & {'"', "'", "\\"} - set(before):
                self.problem(node, "an f-string that calls MindSpore: assign the value to a name before it")
            text = text.replace("{" + before, "{" + after)
        return text

    def _formatted(self, node: ast.expr, text: str) -> str:
        """Return the torch form of an expression of an f-string, which has no position."""
        if self.script is not None and (done := self.script.formatted(node)) is not None:
            return str(done)
        with self.source.reading(text):
            return self.render(ast.parse(text, mode="eval").body)

    def _write_lambda(self, node: ast.Lambda) -> str:
        with self.source.hiding(bound_in(node)):
            return self.splice(node)

    def _write_name(self, node: ast.Name) -> str | None:
        if isinstance(node.ctx, ast.Load) and node.id not in self.scope.names:
            return self._named(node)
        return None

    def _write_attribute(self, node: ast.Attribute) -> str | None:
        if self.script is not None and (torch_text := self.script.attribute(node)) is not None:
            return str(torch_text)
        if self.source.mindspore_name(node) is not None:
            return self._named(node)
        if isinstance(node.ctx, ast.Load) and node.attr in rules.ATTRIBUTES and self._may_be_tensor(node.value, node.attr):
            return rules.ATTRIBUTES[node.attr].format(self.text(node.value, "."))
        if node.attr in rules.PARAMETER_NAMES or node.attr in ("has_bias", "group"):
            return self._parameter_of(node)
        if node.attr in ("in_channels", "out_channels") and layer_expressions.class_of(self.source, node) == "nn.Dense":
            return f"{self.text(node.value, '.')}.{node.attr.replace('channels', 'features')}"
        if node.attr == "name":
            return parameter_names.name_of_element(self, node)
        if node.attr == "construct":
            return f"{self.text(node.value, '.')}.forward"
        return None

    def _parameter_of(self, node: ast.Attribute) -> str | None:
        """Return torch's name of a layer's Parameter; other objects of the file may have an attribute of that name."""
        owner = layer_expressions.owner(self.source, node.value)
        facts = self.class_facts
        if is_self_attribute(node) and facts is not None and facts.layers and node.attr not in facts.assigned:
            return f"self.{rules.PARAMETER_NAMES[node.attr]}" if node.attr in rules.PARAMETER_NAMES else None
        if owner == layer_expressions.OTHER:
            return None
        receiver = self.text(node.value, ".")
        if node.attr == "group":
            return f"{receiver}.groups" if owner == layer_expressions.LAYER else None
        if node.attr == "has_bias":
            return f"({receiver}.bias is not None)" if owner == layer_expressions.LAYER else None
        name = rules.PARAMETER_NAMES[node.attr]
        if owner == layer_expressions.LAYER or node.attr.startswith("moving_") or not isinstance(node.ctx, ast.Load):
            return f"{receiver}.{name}"
        return f'{self.helper("parameter_named")}({receiver}, "{node.attr}", "{name}")'

    def _named(self, node: ast.AST) -> str | None:
        """Return the torch form of a name of MindSpore that is not called."""
        name = self.source.mindspore_name(node)
        if name is None:
            return None
        torch_text = rules.name_in_torch(name)
        if torch_text is None:
            torch_text = function_values.reference(self, name)
        if torch_text is None and function_values.is_missing(name):
            self.note(f"MindSpore 2.10 has no {name}")
            torch_text = f'@missing("{name}")'
        if torch_text is None:
            self.problem(node, f"{name} has no rule")
            return None
        return self._with_helpers(torch_text)

    def _with_helpers(self, torch_text: str) -> str:
        return re.sub(r"@(\w+)", lambda match: self.helper(match[1]), torch_text)

    def _write_subscript(self, node: ast.Subscript) -> str | None:
        steps = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        for index, step in enumerate(steps):
            if isinstance(step, ast.Slice) and isinstance(literal(step.step), int) and literal(step.step) < 0:
                if self.scope.kind(node.value) == TENSOR or (self.is_computing and self.scope.kind(node.value) == UNKNOWN):
                    if literal(step.step) == -1 and step.lower is None and step.upper is None and len(steps) == index + 1 and all(
                        isinstance(other, ast.Slice) for other in steps
                    ):
                        return f"{self.helper('reverse')}({self.text(node.value)}, {index})"
                    self.problem(node, "a slice with a negative step: torch has none")
        return None

    def _may_be_tensor(self, node: ast.expr, method: str) -> bool:
        kind = self.scope.kind(node)
        if kind in (NUMPY, PYTHON) or self.source.dotted(node) is not None:
            return False
        return kind == TENSOR or self.is_computing or (method not in _SHARED_WITH_PYTHON and method not in rules.ATTRIBUTES)

    def _write_list(self, node: ast.List) -> str | None:
        return self.script.list_of_groups(node) if self.script is not None else None

    def _write_for(self, node: ast.For) -> str | None:
        return parameter_names.with_names_of_parameters(self, node)

    def _write_listcomp(self, node: ast.ListComp | ast.GeneratorExp) -> str:
        with self.source.hiding(bound_in(node)):
            return parameter_names.with_names_of_parameters(self, node) or self.splice(node)

    _write_generatorexp = _write_listcomp

    def _write_dictcomp(self, node: ast.DictComp | ast.SetComp) -> str:
        with self.source.hiding(bound_in(node)):
            return self.splice(node)

    _write_setcomp = _write_dictcomp


def _names_of_lists(node: ast.FunctionDef) -> set[str]:
    lists = (ast.List, ast.ListComp)
    return {
        target.id for part in ast.walk(node) if isinstance(part, ast.Assign) and isinstance(part.value, lists)
        for target in part.targets if isinstance(target, ast.Name)
    }
