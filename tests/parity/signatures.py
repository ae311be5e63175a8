"""Reads the signatures of public callables, in real MindSpore and here, as text that can be compared and kept."""
from __future__ import annotations

import enum
import inspect
import json
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

RECORD = Path(__file__).parent / "records" / "signatures.json"
MODULES = (
    "mindspore",
    "mindspore.amp",
    "mindspore.common.initializer",
    "mindspore.dataset",
    "mindspore.dataset.transforms",
    "mindspore.dataset.vision",
    "mindspore.nn",
    "mindspore.ops",
    "mindspore.train",
)


def of_module(module: ModuleType, names: Iterable[str]) -> dict[str, str]:
    """The signatures of those `names` of `module` that have one. Asking for a name may import it, or fail: then it is left out."""
    results = {}
    for name in sorted(names):
        signature = of(getattr(module, name, None))
        if signature is not None:
            results[name] = signature
    return results


def of(value: object) -> str | None:
    """The parameters of a function, or of a class's constructor, as one would write them; None where they are unknown."""
    if not callable(value) or isinstance(value, ModuleType) or (isinstance(value, type) and issubclass(value, enum.Enum)):
        return None
    try:
        parameters = list(inspect.signature(undecorated(value.__init__ if isinstance(value, type) else value)).parameters.values())
    except (TypeError, ValueError):
        return None
    return signature_text(parameters[1:] if isinstance(value, type) else parameters)


def undecorated(function: Any) -> Any:
    """The constructor behind a decorator that hides its parameters and keeps it in its closure."""
    for cell in getattr(function, "__closure__", None) or ():
        inner = cell.cell_contents
        if inspect.isfunction(inner) and inner.__name__ == "__init__" and not hasattr(function, "__wrapped__"):
            return inner
    return function


def signature_text(parameters: Iterable[inspect.Parameter]) -> str:
    """The parameters as text: `x, y=1, *, z=None`."""
    words, starred = [], False
    for parameter in parameters:
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            words.append("*")
        starred = starred or parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        words.append(stars + parameter.name + ("" if parameter.default is parameter.empty else f"={plain(parameter.default)}"))
    return ", ".join(words)


def plain(default: Any) -> str:
    """A default as text: values as Python writes them, everything else by the name of its type."""
    if isinstance(default, enum.Enum):
        return str(default.value) if isinstance(default, int) else str(default)      # as Python 3.11 writes the member of an IntEnum
    if default is None or isinstance(default, (bool, int, float, str)):
        return repr(default)
    if isinstance(default, (tuple, list)):
        inner = ", ".join(plain(item) for item in default)
        return f"({inner})" if isinstance(default, tuple) else f"[{inner}]"
    if inspect.isfunction(default) or inspect.isclass(default):
        return default.__name__
    text = str(default)
    if text.startswith("torch."):  # a dtype in the signature of one of our operators
        text = text.removeprefix("torch.").capitalize()
    return text if text.isidentifier() else type(default).__name__


def read(path: Path = RECORD) -> dict[str, dict[str, str]]:
    """The recorded signatures, by module and name."""
    return json.loads(path.read_text(encoding="utf-8"))["signatures"]


def write(path: Path, version: str, signatures: dict[str, dict[str, str]]) -> None:
    """Writes the record: one line for each name, so that a change can be read."""
    lines = ["{", f'"about": {{"mindspore": "{version}", "command": "tools/record.py signatures"}},', '"signatures": {']
    modules = []
    for module, names in signatures.items():
        rows = ",\n".join(f"  {json.dumps(name)}: {json.dumps(signature)}" for name, signature in names.items())
        modules.append(f"{json.dumps(module)}: {{\n{rows}\n}}")
    path.write_text("\n".join([*lines, ",\n".join(modules), "}", "}"]) + "\n", encoding="utf-8")
