"""Names of a file that hide the modules of the output: torch, nn and F."""
from __future__ import annotations

import ast

import torch

from torchspore.port.analysis.source import Problem, Source, is_mindspore
from torchspore.port.analysis.spans import bound_in

_MODULES = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional}


def collisions(source: Source, output: ast.Module) -> list[Problem]:
    """Return the variables that hide a module which the output uses in the same function, or in the file."""
    names = bound_in(source.tree) | {name for name, dotted in source.imports.items() if not is_mindspore(dotted)}
    hidden = {name for name in names if not _is_torch(name, source)} & set(_MODULES)
    problems = [problem for name in sorted(hidden) for problem in _uses(output, name)][:1] + _in_functions(output)
    uses_loader = any(isinstance(part, ast.Name) and part.id == "DataLoader" for part in ast.walk(output))
    hiding = sorted(names & {"DataLoader", "Dataset", "IterableDataset"}) if uses_loader else []
    hiding = [name for name in hiding if not source.imports.get(name, "").startswith("torch.")]
    return problems + [Problem(0, f"{name} is a class of torch.utils.data in the output: rename it") for name in hiding]


def _is_torch(name: str, source: Source) -> bool:
    return source.imports.get(name) in {"torch": ("torch",), "nn": ("torch.nn",), "F": ("torch.nn.functional",)}.get(name, ())


def _in_functions(output: ast.Module) -> list[Problem]:
    problems = []
    for node in ast.walk(output):
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            for name in sorted(bound_in(node) & set(_MODULES)):
                problems += _uses(node, name)[:1]
    return problems


def _uses(node: ast.AST, name: str) -> list[Problem]:
    """Return a problem for each use of a module's name that code has, where a variable hides it."""
    attributes = [part for part in ast.walk(node) if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name)]
    return [
        Problem(0, f"a variable is named {name}, which is a module in the output ({name}.{part.attr}): rename it")
        for part in attributes if part.value.id == name and hasattr(_MODULES[name], part.attr)          # type: ignore[attr-defined]
    ]
