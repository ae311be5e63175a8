"""Kinds of expressions: a Tensor, a NumPy array, or another Python value, as far as the source shows it."""
from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from torchspore.port.analysis.source import Source

TENSOR, NUMPY, PYTHON, UNKNOWN = "tensor", "numpy", "python", "unknown"
_PYTHON_ATTRIBUTES = frozenset("shape dtype ndim size itemsize nbytes name requires_grad".split())
_PYTHON_CALLS = frozenset(
    "len int float bool str range zip enumerate sorted tuple list dict set isinstance getattr hasattr type repr round divmod".split()
)
_NO_TENSORS = frozenset("ops.shape ops.Shape ops.dtype ops.DType ops.rank ops.Rank ops.size ops.Size get_context".split())
_READS = frozenset("asnumpy numpy _convert_data".split())
_SCALARS = frozenset("item tolist format join keys values items split_name startswith endswith".split())
_WITH_SIZES = frozenset("Dense Conv1d Conv2d Conv3d Conv1dTranspose Conv2dTranspose Conv3dTranspose Embedding LSTM GRU RNN".split())
"""Layers whose first two arguments are numbers."""


class Scope:
    """The kinds of the names of a function, a class's attributes, or a module."""

    def __init__(self, source: Source, outer: Scope | None = None, attributes: dict[str, str] | None = None) -> None:
        self.source, self.outer = source, outer
        self.names: dict[str, str] = {}
        self.assigned: set[str] = set()
        self.attributes: dict[str, str] = attributes if attributes is not None else (outer.attributes if outer else {})
        self.primitives: set[str] = outer.primitives if outer else set()

    def lookup(self, name: str) -> str:
        """Return the kind of a name."""
        if name in self.names:
            return self.names[name]
        return self.outer.lookup(name) if self.outer else UNKNOWN

    def learn(
        self, body: list[ast.stmt], parameters: ast.arguments | None = None, kind: str = UNKNOWN,
        kinds_of_parameters: dict[str, str] | None = None,
    ) -> None:
        """Record the kinds of the values that the statements assign, and of the parameters, some of which are known."""
        if parameters is not None:
            for argument in [*parameters.posonlyargs, *parameters.args, *parameters.kwonlyargs]:
                self.names[argument.arg] = (kinds_of_parameters or {}).get(argument.arg, kind)
            for several in (parameters.vararg, parameters.kwarg):
                if several is not None:
                    self.names[several.arg] = TENSOR if kind == TENSOR and several is parameters.vararg else PYTHON
        for _ in range(2):                       # twice: a loop may use what later lines assign
            for statement in body:
                self._learn_statement(statement)

    def _learn_statement(self, statement: ast.AST) -> None:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            return
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                self._bind(target, statement.value)
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            self._bind(statement.target, statement.value)
        elif isinstance(statement, ast.AugAssign):
            self._merge(statement.target, self.kind(ast.BinOp(statement.target, statement.op, statement.value)))
        elif isinstance(statement, (ast.For, ast.comprehension)):
            is_count = isinstance(statement.iter, ast.Call) and ast.unparse(statement.iter.func) == "range"
            element = self.kind(statement.iter)
            self._merge(statement.target, PYTHON if is_count else element if element in (TENSOR, NUMPY) else UNKNOWN)
        for child in ast.iter_child_nodes(statement):
            self._learn_statement(child)

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
                for each, part in zip(target.elts, value.elts):
                    self._bind(each, part)
                return
            kind = self.kind(value)
            is_shape = (isinstance(value, ast.Attribute) and value.attr == "shape") or self.is_shape_call(value)
            self._merge(target, kind if kind in (TENSOR, NUMPY) or is_shape else UNKNOWN)
            return
        self._merge(target, self.kind(value))

    def is_shape_call(self, node: ast.AST) -> bool:
        """Return whether the expression is a call that returns a shape."""
        if not isinstance(node, ast.Call):
            return False
        called = node.func.func if isinstance(node.func, ast.Call) else node.func
        if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id == "self":
            return called.attr in self.primitives
        return self.source.mindspore_name(called) in _NO_TENSORS

    def _merge(self, target: ast.expr, kind: str) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            for element in target.elts:
                self._merge(element, kind)
        elif isinstance(target, ast.Starred):
            self._merge(target.value, PYTHON)
        elif isinstance(target, ast.Name):
            self.assigned.add(target.id)
            before = self.names.get(target.id)
            self.names[target.id] = kind if before in (None, kind) else _both(before, kind)
        elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self":
            before = self.attributes.get(target.attr)
            self.attributes[target.attr] = kind if before in (None, kind) else _both(before, kind)

    def kind(self, node: ast.AST) -> str:
        """Return the kind of an expression."""
        handler = getattr(self, f"_{type(node).__name__.lower()}", None)
        return handler(node) if handler is not None else UNKNOWN

    def _constant(self, _: Any) -> str:
        return PYTHON

    _tuple = _list = _dict = _set = _listcomp = _setcomp = _dictcomp = _generatorexp = _joinedstr = _lambda = _boolop = _constant

    def _name(self, node: ast.Name) -> str:
        if node.id in ("self", "cls") and node.id not in self.assigned:
            return PYTHON
        return self.lookup(node.id)

    def _attribute(self, node: ast.Attribute) -> str:
        if isinstance(node.value, ast.Name) and node.value.id == "self":
            return self.attributes.get(node.attr, UNKNOWN)
        if self.source.mindspore_name(node) is not None or node.attr in _PYTHON_ATTRIBUTES or node.attr.startswith("__"):
            return PYTHON
        kind = self.kind(node.value)
        return kind if node.attr in ("T", "real", "imag", "grad", "H", "mT") else UNKNOWN

    def _subscript(self, node: ast.Subscript) -> str:
        kind = self.kind(node.value)
        is_shape = (isinstance(node.value, ast.Attribute) and node.value.attr in ("shape", "size")) or self.is_shape_call(node.value)
        return kind if kind in (TENSOR, NUMPY) or is_shape else UNKNOWN

    def _compare(self, node: ast.Compare) -> str:
        return self._of_all([node.left, *node.comparators])

    def _binop(self, node: ast.BinOp) -> str:
        return self._of_all([node.left, node.right])

    def _unaryop(self, node: ast.UnaryOp) -> str:
        return PYTHON if isinstance(node.op, ast.Not) else self.kind(node.operand)

    def _ifexp(self, node: ast.IfExp) -> str:
        first, second = self.kind(node.body), self.kind(node.orelse)
        return first if first == second else _both(first, second)

    def _of_all(self, nodes: list[ast.expr]) -> str:
        kinds = {self.kind(node) for node in nodes}
        for kind in (TENSOR, UNKNOWN, NUMPY):
            if kind in kinds:
                return kind
        return PYTHON

    def _call(self, node: ast.Call) -> str:
        function = node.func
        if isinstance(function, ast.Name) and function.id in _PYTHON_CALLS:
            return PYTHON
        dotted = self.source.dotted(function)
        if dotted is not None:
            root = dotted.split(".")[0]
            if root in ("numpy", "scipy"):
                return NUMPY
            if root == "math":
                return PYTHON
        name = self.source.mindspore_name(function)
        if name is not None:
            if name in _NO_TENSORS or name.startswith("nn.probability."):
                return PYTHON
            is_function = name.startswith(("ops.", "mnp.", "mint.")) and not name.rpartition(".")[2][:1].isupper()
            return TENSOR if is_function or name in ("Tensor", "Parameter", "ParameterTuple", "init.initializer") else UNKNOWN
        if self.is_shape_call(node):
            return PYTHON
        return self._method(function) if isinstance(function, ast.Attribute) else UNKNOWN

    def _method(self, function: ast.Attribute) -> str:
        if function.attr in _READS:
            return NUMPY
        if function.attr in _SCALARS:
            return PYTHON
        kind = self.kind(function.value)
        return kind if kind in (TENSOR, NUMPY) else UNKNOWN


def _both(first: str, second: str) -> str:
    """Return the kind of what may be either."""
    return TENSOR if TENSOR in (first, second) and NUMPY not in (first, second) else UNKNOWN


def numbers_of_constructor(function: ast.FunctionDef, source: Source) -> dict[str, str]:
    """Return the parameters of `__init__` that are numbers: annotated as such, counts of a loop, or sizes of layers."""
    if function.name != "__init__":
        return {}
    parameters = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    numbers = {each.arg for each in parameters if isinstance(each.annotation, ast.Name) and each.annotation.id in ("int", "float", "bool")}
    for node in ast.walk(function):
        if not isinstance(node, ast.Call):
            continue
        name = source.mindspore_name(node.func) or ""
        is_range = isinstance(node.func, ast.Name) and node.func.id == "range"
        if is_range or (name.startswith("nn.") and name.removeprefix("nn.") in _WITH_SIZES):
            numbers.update(part for value in node.args[:2] for part in _operands(value))
    return {each.arg: PYTHON for each in parameters if each.arg in numbers}


def _operands(node: ast.expr) -> Iterator[str]:
    """Yield the names that an arithmetic expression combines."""
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.BinOp):
        yield from _operands(node.left)
        yield from _operands(node.right)


def kinds_of_calls(functions: dict[str, ast.FunctionDef], bodies: list[tuple[Scope, ast.AST]]) -> dict[str, dict[str, str]]:
    """Return the kinds of the parameters of functions, as far as all their calls agree."""
    seen: dict[str, dict[str, set[str]]] = {}
    for scope, body in bodies:
        for node in ast.walk(body):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in functions):
                continue
            names = [argument.arg for argument in functions[node.func.id].args.args]
            passed = [*zip(names, node.args), *((keyword.arg or "", keyword.value) for keyword in node.keywords)]
            for name, value in passed:
                seen.setdefault(node.func.id, {}).setdefault(name, set()).add(scope.kind(value))
    return {
        function: {name: kinds.copy().pop() for name, kinds in parameters.items() if len(kinds) == 1}
        for function, parameters in seen.items()
    }
