"""torch's private modules and functions are used in four files, so that these alone have to follow a new version of torch."""
from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src" / "torchspore"
NAMES = ("torch_private", "torch_process_groups", "static_trace", "static_symbols")
ALLOWED = [SOURCE / "engine" / "torch_internals" / f"{name}.py" for name in NAMES]

_MAY_BE_PRIVATE = re.compile(r"\btorch(\.\w+)*\._(?<!\.ops\._)|from torch\b.*\b_")


def private_uses(source: str) -> Iterator[tuple[int, str]]:
    """Yield (line, dotted name) of private modules and functions of torch. Operators (`torch.ops.aten._x`) are public by their schema."""
    if _MAY_BE_PRIVATE.search(source) is None:              # parsing every file takes ten seconds
        return
    for node in ast.walk(ast.parse(source)):
        names = []
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.Attribute):
            names = [_dotted_name(node)]
        for name in names:
            parts = name.split(".")
            if parts[0] == "torch" and parts[1:2] != ["ops"] and any(part[:1] == "_" and part[:2] != "__" for part in parts):
                yield node.lineno, name


def _dotted_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        owner = _dotted_name(node.value)
        return owner and f"{owner}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def test_the_search_sees_each_form() -> None:
    source = "from torch.utils._pytree import a\nimport torch._C\nx = torch.mps._y()\nfrom torch import _vf\n"
    source += "z = torch.ops.aten._w\ntorch.__name__, torch.zeros(self._n).set_"
    assert [name for _, name in sorted(private_uses(source))] == ["torch.utils._pytree.a", "torch._C", "torch.mps._y", "torch._vf"]


def test_four_files_use_private_torch() -> None:
    uses = [
        f"{path.relative_to(SOURCE)}:{line}: {name}"
        for path in sorted(SOURCE.rglob("*.py")) if path not in ALLOWED for line, name in private_uses(path.read_text(encoding="utf-8"))
    ]
    assert not uses, "\n".join(uses)
