"""Rules: the torch form of a MindSpore name, as a line of text.

    ops.softmax(x, axis=-1) = F.softmax({x}, dim={axis})            a function
    ops.ReduceSum(keep_dims=False)(x, axis=None) = ...              a primitive: its arguments, then those of its calls
    .expand_dims(axis) = {self.}.unsqueeze({axis})                  a method of Tensors
    nn.LeakyReLU(alpha=0.2) = nn.LeakyReLU({alpha})  # why          a layer, with the comment that the output gets

`{x}` is an argument's text, `{x.}` the same before a dot, `{x+}` as an operand, `{*x}` several arguments. `<...>` is omitted where the
call has no argument that it names, or the default. `@name` is a function of `helpers`. `~ name` after the left side: an argument without
effect.
"""
from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

SYNONYMS = {
    "input": ("x", "self"), "input_x": ("x",), "tensor": ("x",), "logits": ("x",), "dim": ("axis",), "keepdim": ("keep_dims",),
    "keepdims": ("keep_dims",), "axis": ("dim",), "keep_dims": ("keepdim",), "other": ("y",), "dims": ("axis",), "size": ("shape",),
    "axes": ("axis",), "input_params": ("x",), "input_indices": ("index",), "indices": ("index",), "tensors": ("xs",),
    "input_perm": ("axis",),
}
ANY = object()
"""The value of an expression that is not a literal."""
_NOTHING = "\1nothing"
"""The text of a `*name` without arguments."""
_PART = re.compile(r"\{(\*?)(\w+)([.+]?)\}|@(\w+)")


class NoRule(Exception):
    """A call that its rule does not cover; the text says which argument."""


@dataclass(frozen=True)
class Rule:
    """The declaration of one name. `forms` are the templates, or functions of a Call, in the order in which they are tried."""

    name: str
    parameters: ast.arguments
    inputs: ast.arguments | None
    """For a primitive: the parameters of its calls."""
    template: str | Callable[[Any], str]
    note: str = ""
    without_effect: frozenset[str] = frozenset()


@dataclass
class Bound:
    """Arguments by the names of a rule's parameters."""

    nodes: dict[str, ast.expr] = field(default_factory=dict)
    defaults: dict[str, ast.expr] = field(default_factory=dict)
    several: dict[str, list[ast.expr]] = field(default_factory=dict)

    def is_default(self, name: str) -> bool:
        """Return whether the call leaves an argument at its default."""
        if name in self.several:
            return not self.several[name]
        if name not in self.nodes:
            return True
        default = self.defaults.get(name)
        return default is not None and literal(self.nodes[name]) is not ANY and literal(self.nodes[name]) == literal(default) and \
            type(literal(self.nodes[name])) is type(literal(default))


def literal(node: ast.AST | None) -> Any:
    """Return the value of a literal, ANY for another expression."""
    if node is None:
        return ANY
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return ANY


def _signature(text: str) -> ast.arguments:
    definition = ast.parse(f"def f({text}): pass").body[0]
    assert isinstance(definition, ast.FunctionDef)
    return definition.args


_LINE = re.compile(
    r"(?P<name>[\w.]+)\((?P<first>[^()]*(?:\([^()]*\)[^()]*)*)\)"
    r"(?:\((?P<second>[^()]*(?:\([^()]*\)[^()]*)*)\))?\s*(?:~(?P<ignored>[\w ]+))?$"
)


def declare(left: str, template: str | Callable[[Any], str], note: str = "") -> Rule:
    """Return the rule whose left side is `left`."""
    match = _LINE.match(left.strip())
    assert match is not None, left
    second = match["second"]
    return Rule(
        match["name"], _signature(match["first"]), None if second is None else _signature(second), template, note,
        frozenset((match["ignored"] or "").split()),
    )


def table(text: str) -> list[Rule]:
    """Return the rules of a text of lines."""
    rules = []
    for line in text.splitlines():
        if not line.strip():
            continue
        body, _, note = line.partition("  # ")
        left, _, right = body.partition(" = ")
        rules.append(declare(left, right.strip(), note.strip()))
    return rules


def bind(parameters: ast.arguments, call: ast.Call, receiver: ast.expr | None = None) -> Bound:
    """Bind a call's arguments. Raises NoRule where they do not fit."""
    names = [argument.arg for argument in [*parameters.posonlyargs, *parameters.args]]
    only_named = [argument.arg for argument in parameters.kwonlyargs]
    bound = Bound()
    for name, default in zip(reversed(names), reversed(parameters.defaults)):
        bound.defaults[name] = default
    bound.defaults.update({name: value for name, value in zip(only_named, parameters.kw_defaults) if value is not None})
    if receiver is not None:
        bound.nodes["self"] = receiver
    if parameters.vararg is not None:
        bound.several[parameters.vararg.arg] = list(call.args[len(names):])
    elif len(call.args) > len(names):
        raise NoRule(f"{len(call.args)} arguments")
    for name, argument in zip(names, call.args):
        if isinstance(argument, ast.Starred):
            raise NoRule(f"*{ast.unparse(argument.value)} among the arguments")
        bound.nodes[name] = argument
    for keyword in call.keywords:
        if keyword.arg is None:
            raise NoRule(f"**{ast.unparse(keyword.value)} among the arguments")
        parameter = _parameter_named(keyword.arg, [*names, *only_named])
        if parameter is None and parameters.vararg is not None and not bound.several[parameters.vararg.arg]:
            bound.several[parameters.vararg.arg] = [keyword.value]
            continue
        if parameter is None or parameter in bound.nodes:
            raise NoRule(f"the argument {keyword.arg}")
        bound.nodes[parameter] = keyword.value
    missing = [name for name in [*names, *only_named] if name not in bound.nodes and name not in bound.defaults]
    if missing:
        raise NoRule(f"a call without {missing[0]}")
    return bound


def _parameter_named(keyword: str, names: list[str]) -> str | None:
    if keyword in names:
        return keyword
    return next((name for name in SYNONYMS.get(keyword, ()) if name in names), None)


def mentioned(template: str) -> set[str]:
    """Return the parameters that a template names."""
    return {match[2] for match in _PART.finditer(template) if match[2]}


def fill(template: str, write: Callable[[str, str, bool], str], is_default: Callable[[str], bool], use_helper: Callable[[str], str]) -> str:
    """Fill a template. `write(parameter, level, are_several)` returns an argument's text."""
    def replace(match: re.Match[str]) -> str:
        if match[4]:
            return use_helper(match[4])
        return write(match[2], match[3], bool(match[1])) or _NOTHING

    pieces = []
    for piece in re.split(r"(<[^<>]*>)", template):
        if piece.startswith("<"):
            piece = piece[1:-1]
            if all(is_default(name) for name in mentioned(piece)):
                continue
        pieces.append(_PART.sub(replace, piece))
    text = "".join(pieces).replace(f", {_NOTHING}", "").replace(_NOTHING, "")
    return re.sub(r"\(, ", "(", text)
