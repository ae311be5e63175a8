"""Names of Parameters: torch gives a parameter no name."""
from __future__ import annotations

import ast
import re
from typing import Any

from torchspore.port.analysis.kinds import PYTHON


def with_names_of_parameters(rewriter: Any, node: ast.ListComp | ast.GeneratorExp | ast.For) -> str | None:
    """`[p for p in net.trainable_params() if "bias" not in p.name]`: Parameters of torch have no names, so the loop has them."""
    first = node if isinstance(node, ast.For) else node.generators[0]
    call, target = first.iter, first.target
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and isinstance(target, ast.Name)):
        return None
    if call.func.attr not in ("trainable_params", "get_parameters") or call.args:
        return None
    uses = [
        part for part in ast.walk(node)
        if isinstance(part, ast.Attribute) and part.attr == "name" and isinstance(part.value, ast.Name) and part.value.id == target.id
    ]
    if not uses:
        return None
    variable = "name" if isinstance(node, ast.ListComp | ast.GeneratorExp) or not _names(node, "name") else f"{target.id}_name"
    words = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant) and isinstance(part.value, str)]
    renamed = ("beta", "gamma", "embedding_table")
    has_others = re.search("(Batch|Layer|Group|Instance)Norm|Embedding", rewriter.source.text)     # MindSpore names their weights otherwise
    is_renamed = any(name in word for word in words for name in (*renamed, *(("weight", "bias") if has_others else ())))
    if not is_renamed:
        rewriter.note("torch names the parameters of norms weight and bias")
    note_other_names(rewriter)
    is_trained = call.func.attr == "trainable_params"
    outer, rewriter._replaced = rewriter._replaced, {**rewriter._replaced, **dict.fromkeys(uses, variable)}
    try:
        named = f"{rewriter.text(call.func.value, '.')}.named_parameters()"
        if is_renamed:
            named = f"{rewriter.helper('named_as_before')}({rewriter.text(call.func.value)})"
        if isinstance(node, ast.For) and is_trained:
            named = f"[(name, parameter) for name, parameter in {named} if parameter.requires_grad]"
        iterated = f"{named} if {target.id}.requires_grad" if is_trained and not isinstance(node, ast.For) else named
        return str(rewriter.splice(node, {target: f"{variable}, {target.id}", call: iterated}))
    finally:
        rewriter._replaced = outer


def note_other_names(rewriter: Any) -> None:
    """Add a comment with the names that the file gives its Parameters, where torch has those of their attributes."""
    pairs = []
    for node in rewriter.source.nodes:
        target, value = (node.targets[0], node.value) if isinstance(node, ast.Assign) else (None, None)
        if not (isinstance(target, ast.Attribute) and isinstance(value, ast.Call)):
            continue
        if rewriter.source.mindspore_name(value.func) != "Parameter":
            continue
        names = [*value.args[1:2], *(keyword.value for keyword in value.keywords if keyword.arg == "name")]
        name = str(names[0].value) if names and isinstance(names[0], ast.Constant) else target.attr
        pairs += [f"{name} is {target.attr}"] if name != target.attr else []
    if pairs:
        rewriter.note(f"names of MindSpore's parameters in torch: {', '.join(dict.fromkeys(pairs))}")


def name_of_element(rewriter: Any, node: ast.Attribute) -> str | None:
    """`p.name` in a loop over a list that may have Parameters, which have no name in torch: a helper that raises an error for them."""
    if not (isinstance(node.value, ast.Name) and isinstance(node.ctx, ast.Load)) or rewriter.scope.kind(node.value) == PYTHON:
        return None
    return f"{rewriter.helper('name_of')}({rewriter.text(node.value)})" if _may_be_parameter(rewriter.source, node.value.id) else None


def _may_be_parameter(source: Any, name: str) -> bool:
    """Return whether a variable runs over a list of Parameters, or is an argument that its name or `filter` shows as a Parameter."""
    for part in source.nodes:
        if isinstance(part, (ast.For, ast.comprehension)) and name in _stored_names(part.target):
            words = {each.attr if isinstance(each, ast.Attribute) else each.id for each in ast.walk(part.iter)
                     if isinstance(each, (ast.Name, ast.Attribute))}
            if any("param" in word.lower() or "weight" in word.lower() for word in words):
                return True
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id in ("filter", "map", "sorted"):
            functions = [each for each in [*part.args, *(keyword.value for keyword in part.keywords)] if isinstance(each, ast.Lambda)]
            if any(argument.arg == name for function in functions for argument in function.args.args):
                return True
        if isinstance(part, (ast.FunctionDef, ast.Lambda)) and "param" in name.lower():
            if any(argument.arg == name for argument in part.args.args):
                return True
    return False


def reads_names(source: Any) -> bool:
    """Return whether a file reads the names of Parameters elsewhere than in a loop over those of a Cell."""
    in_loops = {id(part) for node in source.nodes if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.For))
                for part in ast.walk(node) if _runs_over_cell(node)}
    names = [part for part in source.nodes if isinstance(part, ast.Attribute) and part.attr == "name" and isinstance(part.ctx, ast.Load)]
    return any(
        id(part) not in in_loops and isinstance(part.value, ast.Name) and _may_be_parameter(source, part.value.id) for part in names)


def _runs_over_cell(node: ast.ListComp | ast.GeneratorExp | ast.For) -> bool:
    first = node if isinstance(node, ast.For) else node.generators[0]
    call = first.iter
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in ("trainable_params", "get_parameters")


def _stored_names(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def _names(node: ast.AST, name: str) -> bool:
    """Return whether code has a variable of this name."""
    return any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(node))
