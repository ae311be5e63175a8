"""Infer which MindSpore objects the names of a program refer to, by parsing it."""
from __future__ import annotations

import ast
from dataclasses import dataclass

from torchspore.cli.program_analysis.uses import is_mindspore

_NO_TENSOR = frozenset({"asnumpy", "numpy", "item", "tolist", "size", "dim", "ndimension", "numel", "is_contiguous"})
"""Methods of Tensor that return no Tensor."""
_TENSOR_PACKAGES = ("mindspore.ops", "mindspore.mint", "mindspore.numpy")
_CELL_PACKAGES = ("mindspore.nn", *_TENSOR_PACKAGES)


@dataclass(frozen=True)
class MindSporeObject:
    """The target of a name: a path of MindSpore, or an object of the class at that path."""

    path: str
    is_instance: bool = False
    is_assumed: bool = False
    """True if the program's text suggests the class but does not state it: a result of an operator, an argument of `construct`."""


_ASSUMED_TENSOR = MindSporeObject("mindspore.Tensor", is_instance=True, is_assumed=True)


class ObjectTracker(ast.NodeVisitor):
    """Follows imported names, and names and attributes that the program assigns an object of a MindSpore class."""

    def __init__(self) -> None:
        self._objects: dict[str, MindSporeObject] = {}

    def visit_Import(self, node: ast.Import) -> None:
        for name in node.names:
            if is_mindspore(name.name):
                self._objects[name.asname or "mindspore"] = MindSporeObject(name.name if name.asname else "mindspore")

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if not node.level and node.module and is_mindspore(node.module):
            for name in node.names:
                self._objects[name.asname or name.name] = MindSporeObject(f"{node.module}.{name.name}")

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        outside = dict(self._objects)
        arguments = node.args
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg):
            if argument is not None and argument.arg != "self":
                self._assign(argument.arg, self._annotated(argument, node.name == "construct"))
        self.generic_visit(node)
        # Attributes of self are assigned in one method and used in the others.
        attributes = {key: value for key, value in self._objects.items() if "." in key}
        self._objects = {**{key: value for key, value in outside.items() if "." not in key}, **attributes}

    def _annotated(self, argument: ast.arg, is_construct: bool) -> MindSporeObject | None:
        annotation = argument.annotation and self.value(argument.annotation)
        if annotation:
            return MindSporeObject(annotation.path, is_instance=True)
        return _ASSUMED_TENSOR if is_construct and argument.annotation is None else None

    def visit_Assign(self, node: ast.Assign) -> None:
        self.generic_visit(node)
        value = self.value(node.value)
        for target in node.targets:
            for part in target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]:
                self._assign(_key(part), value if part is target else None)

    def visit_With(self, node: ast.With) -> None:
        for item in node.items:
            if item.optional_vars is not None:
                self._assign(_key(item.optional_vars), self.value(item.context_expr))
        self.generic_visit(node)

    def _assign(self, key: str | None, value: MindSporeObject | None) -> None:
        if key and value:
            self._objects[key] = value
        elif key:
            self._objects.pop(key, None)

    def value(self, node: ast.expr) -> MindSporeObject | None:
        """Return what an expression refers to, as far as the text tells."""
        if isinstance(node, (ast.Name, ast.Attribute)) and (known := self._objects.get(_key(node) or "")):
            return known
        if isinstance(node, ast.Attribute):
            owner = self.value(node.value)
            if owner and owner.is_instance:
                return _ASSUMED_TENSOR if _is_tensor(owner) and node.attr in ("T", "grad", "real", "imag", "mT", "mH", "H") else None
            return owner and MindSporeObject(f"{owner.path}.{node.attr}")
        if isinstance(node, ast.Call):
            return self._result(node)
        if isinstance(node, ast.BinOp):
            operands = (self.value(node.left), self.value(node.right))
            return _ASSUMED_TENSOR if any(operand and _is_tensor(operand) for operand in operands) else None
        return None

    def _result(self, node: ast.Call) -> MindSporeObject | None:
        """Return the result of a call: an object of the called class, or a Tensor if an operator or a layer is called."""
        called = self.value(node.func)
        if called and called.is_instance:
            return _ASSUMED_TENSOR if called.path.startswith(_CELL_PACKAGES) else None
        if called and called.path.rpartition(".")[2][:1].isupper():
            return MindSporeObject(called.path, is_instance=True)
        if called:
            return _ASSUMED_TENSOR if called.path.startswith(_TENSOR_PACKAGES) else None
        if isinstance(node.func, ast.Attribute) and node.func.attr not in _NO_TENSOR:
            owner = self.value(node.func.value)
            return _ASSUMED_TENSOR if owner and owner.is_instance and _is_tensor(owner) else None
        return None


def _is_tensor(value: MindSporeObject) -> bool:
    return value.is_instance and value.path.rpartition(".")[2] in ("Tensor", "Parameter")


def _key(node: ast.expr | None) -> str | None:
    """Return the text of a name or of an attribute of self: `writer`, `self.split`."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
        return f"self.{node.attr}"
    return None
