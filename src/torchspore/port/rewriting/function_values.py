"""Functions, primitives and Parameters that a program hands on, in torch."""
from __future__ import annotations

import ast
import inspect
import re
from typing import Any

from torchspore.mindspore import nn as mindspore_nn
from torchspore.mindspore import ops as mindspore_ops
from torchspore.port import rules
from torchspore.port.analysis.call import PlainNames
from torchspore.port.analysis.kinds import TENSOR, UNKNOWN
from torchspore.port.rules.rule import Bound, NoRule, Rule, bind, fill, mentioned


def reference(rewriter: Any, name: str) -> str | None:
    """Return an expression for a function or a class that is handed on and not called."""
    for rule in rules.find(name):
        if rule.inputs is not None or not isinstance(rule.template, str):
            continue
        required = [argument.arg for argument in rule.parameters.args][: len(rule.parameters.args) - len(rule.parameters.defaults)]
        optional = mentioned(rule.template) - set(required)
        defaults = rule.parameters.defaults
        values = {argument.arg: ast.unparse(value) for argument, value in zip(rule.parameters.args[len(required):], defaults)}
        always = mentioned(re.sub(r"<[^<>]*>", "", rule.template)) - set(required)
        if not always <= set(values):
            continue
        simple = fill(rule.template, lambda parameter, _, __: parameter, (optional - always).__contains__, rewriter.helper)
        match = re.fullmatch(r"([\w.]+)\((.*)\)", simple)
        if match and match[2] == ", ".join(required):
            return match[1]
        if required:
            words = [*required, *(f"{name}={values[name]}" for name in values if name in always)]
            return f"(lambda {', '.join(words)}: {simple})"
    return None


def primitive_object(rewriter: Any, name: str, candidates: list[Rule], node: ast.Call) -> str | None:
    """Return a function for a primitive that is not called where it is created."""
    rule = candidates[0]
    assert rule.inputs is not None
    names = [argument.arg for argument in rule.inputs.args] or ["x"]
    defaults = [""] * (len(names) - len(rule.inputs.defaults)) + [f"={ast.unparse(default)}" for default in rule.inputs.defaults]
    module = rules.PRIMITIVE_LAYERS.get(name)
    if module is not None and not node.args and not node.keywords:
        return module
    example = ast.parse(f"_({', '.join(names)})", mode="eval").body
    assert isinstance(example, ast.Call)
    replaced, plain = rewriter._replaced, PlainNames(rewriter)
    try:
        bound, inputs = bind(rule.parameters, node), bind(rule.inputs, example)
        for name_of_argument, value in bound.nodes.items():
            if {part.id for part in ast.walk(value) if isinstance(part, ast.Name)} & rewriter._changing:    # read now, not at the call
                names.append(name_of_argument)
                defaults.append(f"={rewriter.text(value)}")
                rewriter._replaced = {**rewriter._replaced, value: name_of_argument}
        both = Bound({**bound.nodes, **inputs.nodes}, {**bound.defaults, **inputs.defaults}, {**bound.several, **inputs.several})
        plain.plain = set(map(id, example.args))
        torch_text = rewriter._apply(rule, node, both)
    except NoRule as error:
        rewriter.problem(node, f"{name} has no rule for {error}")
        return rewriter.source.text[slice(*rewriter.source.span(node))]
    finally:
        plain.end()
        rewriter._replaced = replaced
    text = f"(lambda {', '.join(map(''.join, zip(names, defaults)))}: {torch_text})"
    return f"staticmethod{text}" if rewriter.class_facts is not None and not rewriter.function_name else text


def numpy_call(rewriter: Any, node: ast.Call) -> str | None:
    """NumPy's functions take a MindSpore Tensor: as an array, or where NumPy calls a method of the same name, np.reshape(x, shape)."""
    first = node.args[0] if node.args else None
    attribute = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    may_be_tensor = first is not None and rewriter.is_computing and rewriter.scope.kind(first) in (TENSOR, UNKNOWN)
    if may_be_tensor and attribute in ("reshape", "transpose"):
        rest = ", ".join(rewriter.text(argument) for argument in node.args)
        return f"{rewriter.helper(f'numpy_{attribute}')}({rest})"
    arrays = {argument: text for argument in node.args if (text := _array_of(rewriter, argument))}
    return str(rewriter.splice(node, arrays)) if arrays else None


def _array_of(rewriter: Any, node: ast.expr) -> str:
    """Return the array of an argument of NumPy's functions that is a Tensor, or may be one; "" for another."""
    kind = rewriter.scope.kind(node)
    if kind == TENSOR:
        return f"{rewriter.text(node, '.')}.detach().cpu().numpy()"
    is_called = isinstance(node, ast.Call) and rewriter.source.dotted(node.func) is None
    is_local = isinstance(node, ast.Name) and node.id in rewriter._changing | rewriter._parameters
    may_be_tensor = kind == UNKNOWN and rewriter.is_computing and (is_called or is_local)
    return f"{rewriter.helper('as_array')}({rewriter.text(node)})" if may_be_tensor else ""


def is_missing(name: str) -> bool:
    """Return whether MindSpore has no such operator or layer: the original fails where it is used."""
    start, _, last = name.partition(".")
    home = {"ops": mindspore_ops, "nn": mindspore_nn}.get(start)
    return home is not None and bool(last) and "." not in last and not hasattr(home, last)


_SAME_NAMES = frozenset(("ops.interpolate", "ops.split", *rules.WITH_SAME_ARGUMENTS))
"""The port calls these by a function or class that takes MindSpore's arguments, if the source does not list the arguments."""


def takes_same_arguments(rewriter: Any, name: str, node: ast.Call) -> bool:
    """Return whether a call stays as it is but for the name: it has `**arguments`, or an argument that MindSpore refuses too."""
    if name not in _SAME_NAMES:
        return False
    if any(keyword.arg is None for keyword in node.keywords):
        if name == "ops.interpolate":
            rewriter.note("mode='bicubic' takes other positions in torch")
        return True
    if not name.startswith("ops."):
        return False
    known = inspect.signature(getattr(mindspore_ops, name.removeprefix("ops."))).parameters
    return any(keyword.arg not in known for keyword in node.keywords)
