"""Compiled kernels that a later process loads without Inductor, whose import and code generation take seconds.

Inductor writes a Python function that allocates results and calls C++ kernels. Each kernel is a shared library, which works without
Inductor once it is built. If the function names nothing else, its text and the paths of the libraries are stored with the choices
(autotune_cache.py), and the digests of the libraries, so that a damaged library is compiled again instead of loaded.
"""
from __future__ import annotations

import ast
import hashlib
import importlib.util
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from torchspore.engine.torch_internals import torch_private
from torchspore.graph.compile_cache import autotune_cache

_KERNEL_GLOBALS: dict[str, Any] = {"torch": torch, **torch_private.KERNEL_CALLS}
"""The names that the source of a kernel may use in addition to its libraries."""


def find(key: str) -> Callable[..., list[Any]] | None:
    """Return the kernel with this key; None if it is missing, or if one of its libraries is missing or changed."""
    told = autotune_cache.find(key)
    if told is None:
        return None
    try:
        entry = json.loads(told)
        names = {name: _loaded(_folder() / path, digest) for name, (path, digest) in entry["libraries"].items()}
        return _function(entry["text"], names)
    except (ValueError, KeyError, TypeError, OSError, ImportError, SyntaxError):
        return None


def keep(key: str, source: str, libraries: dict[str, str]) -> bool:
    """Store a kernel for another process, if a store is open: the text that Inductor wrote, and the path of each library by its name.

    Return whether it is stored.
    """
    if autotune_cache.ACTIVE.store is None:
        return False
    text = _call_in(source, libraries)
    if text is None:
        return False
    try:
        library_entries = {name: (os.path.relpath(path, _folder()), _digest(Path(path))) for name, path in libraries.items()}
    except OSError:
        return False
    autotune_cache.keep(key, json.dumps({"text": text, "libraries": library_entries}))
    return True


def _folder() -> Path:
    return Path(os.environ.get("TORCHINDUCTOR_CACHE_DIR", "."))


def _call_in(source: str, libraries: dict[str, str]) -> str | None:
    """Return the function `call` in the text that Inductor wrote; None if it names values that are unavailable without Inductor."""
    functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef) and node.name == "call"]
    if len(functions) != 1 or not libraries:
        return None
    words = [node for node in ast.walk(functions[0]) if isinstance(node, ast.Name)]
    local_names = {word.id for word in words if isinstance(word.ctx, ast.Store)} | {"self", "args"}
    if {word.id for word in words} - local_names - set(_KERNEL_GLOBALS) - set(libraries):
        return None
    return ast.unparse(functions[0])


def _function(text: str, names: dict[str, Any]) -> Callable[..., list[Any]]:
    bound = {**_KERNEL_GLOBALS, **names}
    exec(compile(text, "<kernel>", "exec"), bound)
    call = bound["call"]

    def run(*tensors: torch.Tensor) -> list[Any]:
        return call(None, list(tensors))

    return run


def _loaded(path: Path, digest: str) -> Any:
    """Return the function of a library. Raises OSError if the library is missing or differs from the stored one."""
    if _digest(path) != digest:
        raise OSError(f"{path} differs from the stored one")
    torch_private.prepare_kernels()
    spec = importlib.util.spec_from_file_location(f"torchspore_{digest}.kernel", path)
    if spec is None or spec.loader is None:
        raise ImportError(str(path))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.kernel


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
