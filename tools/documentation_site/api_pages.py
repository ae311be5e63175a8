"""Pages of the API: each public name of a package with its signature and its docstring.

The names are read from the imported packages. Most primitives of `ops` and many functions of `mint` are created by the import, so a
reader of the source text (mkdocstrings, griffe) does not see them.
"""
from __future__ import annotations

import enum
import importlib
import inspect
import re
from types import ModuleType
from typing import Any

MANY = 300
"""A page with more names than this has no table of contents at its side: it would be longer than most windows."""
WIDTH = 90
"""A signature that is longer has a line for each parameter."""


def page(package: str) -> str:
    """Return the page of a package, such as `mindspore.nn`, as Markdown."""
    import torchspore

    torchspore.install()
    module = importlib.import_module(package)
    names = sorted(public_names(module), key=str.lower)
    head = "---\nhide: [toc]\n---\n\n" if len(names) > MANY else ""
    summary = escape(inspect.getdoc(module) or "")
    return f"{head}# {package}\n\n{summary}\n\n{len(names)} names.\n\n" + "\n".join(entry(name, getattr(module, name)) for name in names)


def public_names(module: ModuleType) -> list[str]:
    """Return the names that a package offers, without its modules."""
    names = getattr(module, "__all__", None) or [name for name in vars(module) if not name.startswith("_")]
    return [name for name in names if not inspect.ismodule(getattr(module, name, module))]


def entry(name: str, value: Any) -> str:
    """Return the section of a name."""
    if not callable(value):
        return f"## {escape(name)}\n\n`{name} = {short(value)}`\n"
    kind = "class " if inspect.isclass(value) else ""
    docstring = escape(inspect.getdoc(value) or "")
    return f"## {escape(name)}\n\n```python\n{kind}{name}{signature(value)}\n```\n\n{docstring}\n"


def signature(value: Any) -> str:
    """Return the parameters and defaults of a function or class; `(...)` if Python does not know them."""
    if inspect.isclass(value) and issubclass(value, enum.Enum):
        return f"  # {', '.join(member.name for member in value)}"
    try:
        parameters = list(inspect.signature(value).parameters.values())
    except (ValueError, TypeError):
        return "(...)"
    texts = [parameter_text(parameter) for parameter in parameters]
    for kind, mark in ((inspect.Parameter.POSITIONAL_ONLY, "/"), (inspect.Parameter.KEYWORD_ONLY, "*")):
        indexes = [index for index, parameter in enumerate(parameters) if parameter.kind == kind]
        if indexes and mark == "/":
            texts.insert(indexes[-1] + 1, mark)
        elif indexes and not any(parameter.kind == inspect.Parameter.VAR_POSITIONAL for parameter in parameters):
            texts.insert(indexes[0] + (len(texts) - len(parameters)), mark)
    line = f"({', '.join(texts)})"
    return line if len(line) <= WIDTH else "(\n    " + ",\n    ".join(texts) + ",\n)"


def parameter_text(parameter: inspect.Parameter) -> str:
    """Return a parameter with its default, without its annotation."""
    star = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    default = "" if parameter.default is inspect.Parameter.empty else f"={short(parameter.default)}"
    return f"{star}{parameter.name}{default}"


def short(value: Any) -> str:
    """Return the text of a value in one line, without addresses in memory."""
    text = value.__name__ if inspect.isclass(value) or inspect.isfunction(value) else re.sub(r" at 0x[0-9a-f]+", "", repr(value))
    text = " ".join(text.split())
    return text if len(text) <= WIDTH else f"{text[:WIDTH]} ..."


def escape(text: str) -> str:
    """Return a docstring as Markdown: characters with a meaning there are escaped outside of code."""
    parts = re.split(r"(``.*?``|`[^`]*`)", text, flags=re.S)
    return "".join(part if index % 2 else re.sub(r"([*_<>\[\]#|])", r"\\\1", part) for index, part in enumerate(parts))
