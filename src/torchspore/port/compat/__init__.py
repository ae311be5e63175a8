"""Plain torch code for functions that torch lacks: the output of a port contains the text of those it calls, and imports nothing of
torchspore."""
from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

_FILES = (
    "functions.py", "draws.py", "images.py", "boxes.py", "layers.py", "classes.py", "optimizers.py", "training.py", "callbacks.py",
    "precision.py", "gradients.py", "files.py", "records.py", "metrics.py", "distributions.py", "checks.py",
)


@cache
def definitions() -> dict[str, str]:
    """Return the text of each helper by its name, those that others call first."""
    texts: dict[str, str] = {}
    for file in _FILES:
        path = Path(__file__).with_name(file)
        source = path.read_text(encoding="utf-8")
        for node in ast.parse(source).body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                texts[node.name] = ast.get_source_segment(source, node) or ""
    return texts


def needed_by(names: set[str]) -> list[str]:
    """Return the helpers with those that they call, in the order in which they must be defined."""
    texts = definitions()
    needed, waiting = set[str](), sorted(names)
    while waiting:
        name = waiting.pop()
        if name in needed:
            continue
        needed.add(name)
        used = {node.id for node in ast.walk(ast.parse(texts[name])) if isinstance(node, ast.Name)}
        waiting.extend(sorted(used & set(texts)))
    return [name for name in texts if name in needed]
