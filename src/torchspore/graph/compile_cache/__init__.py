"""The compile cache: results that a second process need not measure and compile again.

The program is always traced: a trace is cheap, and a changed script, attribute or option thus never runs an outdated graph.
`<compile_cache_path>/rank_N/graph_cache` stores the captured graphs with their scripts, the measurements for them
(autotune_cache.py) and Inductor's directory; the folder's name changes with versions, the compiler and its flags.
"""
from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from types import CodeType
from typing import Any

import torch

from torchspore.context import effects
from torchspore.context.effects import Outcome
from torchspore.context.store import STORE
from torchspore.engine import process
from torchspore.engine.execution import current_operator
from torchspore.engine.tensors import tree
from torchspore.graph.compile_cache import autotune_cache
from torchspore.graph.compile_cache.folder import Folder, log_message
from torchspore.graph.fx import serialize
from torchspore.graph.fx.exchanges import has_exchanges
from torchspore.graph.fx.fingerprint import fingerprint, streams_of
from torchspore.graph.settings import Settings
from torchspore.translations import translate

_folders: dict[Path, Folder] = {}
INDUCTOR_DIRECTORY = "TORCHINDUCTOR_CACHE_DIR"
_FORCED = "MS_DEV_FORCE_USE_COMPILE_CACHE"


class _Choices:
    """The store of choices in the folder: the interface that `autotune_cache` reads and writes."""

    def __init__(self, folder: Folder, reads: bool, writes: bool) -> None:
        self._folder, self._reads, self._writes = folder, reads, writes

    def find(self, key: str) -> str | None:
        contents = self._folder.read("choices", key) if self._reads else None
        return None if contents is None else contents.decode()

    def keep(self, key: str, choice: str) -> None:
        if self._writes:
            self._folder.write("choices", key, choice.encode())


def current() -> Folder | None:
    """The folder that the context names, made and tried; None where the cache is off or can't be used."""
    if not (STORE.get("enable_compile_cache") or STORE.get("save_compile_cache") or _loads()):
        if STORE.get("compile_cache_path"):
            effects.report("compile_cache_path", Outcome.no_effect("enable_compile_cache is off"))
        return None
    root = Path(STORE.get("compile_cache_path") or ".").absolute() / process.folder() / "graph_cache"
    folder = _folders.get(root)
    if folder is None:
        folder = _folders[root] = Folder(root)
        folder.prepare()
    _report(folder)
    return folder if folder.usable else None


def open(
    module: torch.fx.GraphModule, codes: Iterable[CodeType], settings: Settings, inputs: list[str],
) -> AbstractContextManager[torch.fx.GraphModule]:
    """Return a block that compiles with the cache, if it is on, and yields the graph to compile, which `load_compile_cache` may replace.

    `codes` are the user's functions that the trace ran, the outermost first; `inputs` are the names of the graph's inputs.
    """
    folder = current()
    if folder is None or current_operator.followers or not _is_fixed(module):       # a stored graph does not know the lines of its nodes
        return contextlib.nullcontext(module)
    return _open_folder(folder, module, codes, settings, inputs)


@contextlib.contextmanager
def _open_folder(
    folder: Folder, module: torch.fx.GraphModule, codes: Iterable[CodeType], settings: Settings, inputs: list[str],
) -> Iterator[torch.fx.GraphModule]:
    ran = [code for code in codes if code.co_filename != "<string>"]     # which dataclasses' methods have for a file
    name = f"{getattr(ran[0], 'co_qualname', ran[0].co_name)} of {ran[0].co_filename}" if ran else "a net of library layers"
    scripts = sorted({code.co_filename for code in ran})
    reads, writes = not STORE.get("save_compile_cache"), bool(STORE.get("enable_compile_cache") or STORE.get("save_compile_cache"))
    entry = _Entry(folder, module, name, scripts, settings, inputs)
    with autotune_cache.stored_in(_Choices(folder, reads, writes)), inductor_in(str(folder.kernels())):
        stored = entry.stored() if _loads() else None
        if _loads() and stored is None:
            text = translate("compile cache: no graph of {name} for these inputs in {folder}; it is compiled.")
            log_message(text.format(name=name, folder=folder.root))
        elif stored is None:
            entry.compare(reads)
        yield stored if stored is not None else module
    if writes:
        entry.keep()
        folder.sweep()


class _Entry:
    """A graph in the folder: under the name of its callable and the shapes of its inputs."""

    def __init__(
        self, folder: Folder, module: torch.fx.GraphModule, name: str, scripts: list[str], settings: Settings, called: list[str],
    ) -> None:
        self._folder, self._module, self._name, self._inputs = folder, module, name, called
        self._scripts = {path: _hash(path) for path in scripts}
        inputs = [serialize.meta_of(node.meta.get("val")) for node in module.graph.nodes if node.op == "placeholder"]
        self._fingerprint = fingerprint(module, settings, f"graph {streams_of(module)}")     # the stored graph names its streams
        # Without a script of the user's nothing but the graph tells one net from another.
        subject = name if scripts else self._fingerprint
        self._key = hashlib.sha256(repr((subject, inputs, settings, STORE.snapshot())).encode()).hexdigest()
        self._contents = self._serialize()

    def compare(self, reads: bool) -> None:
        """Report in the log what the folder contains of this graph: nothing, the same, or a form from an older script."""
        entries = self._read_entries()
        if entries is None:
            self._log(translate("compile cache: nothing is stored for {name} in {folder}; everything is compiled."))
        elif entries["scripts"] != self._scripts:
            changed = [path for path, digest in self._scripts.items() if entries["scripts"].get(path) != digest] or sorted(
                entries["scripts"]
            )
            text = translate("compile cache: {files} has changed since {name} was stored; it is compiled again.")
            self._log(text, files=", ".join(changed))
        elif entries["fingerprint"] != self._fingerprint:
            self._log(translate("compile cache: {name} became another graph; it is compiled again."))
        elif not reads:
            self._log(translate("compile cache: {name} is compiled again and stored in {folder}: save_compile_cache is on."))
        else:
            self._log(translate("compile cache: {name} is in {folder}; its kernels are loaded."))

    def _log(self, text: str, **values: str) -> None:
        log_message(text.format(name=self._name, folder=self._folder.root, **values))

    def stored(self) -> torch.fx.GraphModule | None:
        """Return the stored graph, regardless of the present script; None if no graph fits these inputs and results."""
        entries = self._read_entries()
        if entries is None or entries["graph"] is None:
            return None
        try:
            module = serialize.read(entries["graph"])
        except (KeyError, TypeError, ValueError, AttributeError, RuntimeError):
            self._folder.drop("graphs", self._key, "is no graph")
            return None
        if _ends(module) != _ends(self._module) or entries["inputs"] != self._inputs:
            return None
        self._log(translate("compile cache: {name} runs as it is stored in {folder}, without reading its script."))
        return module

    def _read_entries(self) -> dict[str, Any] | None:
        contents = self._folder.read("graphs", self._key)
        if contents is None:
            return None
        try:
            entries = json.loads(contents)
            return {name: entries[name] for name in ("scripts", "fingerprint", "graph", "inputs")}
        except (ValueError, KeyError, TypeError):
            self._folder.drop("graphs", self._key, "is not an entry of this cache")
            return None

    def keep(self) -> None:
        """Store the graph in the folder and write the hash of all its scripts."""
        self._folder.write("graphs", self._key, self._contents)
        if self._folder.usable:
            script_digest = hashlib.sha256("\n".join(f"{path} {digest}" for path, digest in self._scripts.items()).encode()).hexdigest()
            self._folder.put("compile_dependency.hash", script_digest)

    def _serialize(self) -> bytes:
        """The graph as it is before it is compiled: that may change it."""
        from torchspore.graph.fx.text import text

        try:
            if has_exchanges(self._module):
                raise serialize.Unwritable("it exchanges values with other processes, all of which would have to use the same entry")
            graph = serialize.write(self._module)
        except serialize.Unwritable as reason:
            graph = None
            effects.note("compile cache", f"{self._name}: the graph can't be stored for load_compile_cache ({reason})")
        entry = {
            "name": self._name, "scripts": self._scripts, "fingerprint": self._fingerprint, "text": text(self._module).splitlines(),
            "graph": graph, "inputs": self._inputs,
        }
        return json.dumps(entry, separators=(",", ":")).encode()


def _loads() -> bool:
    return bool(STORE.get("load_compile_cache")) or os.environ.get(_FORCED, "") == "1"


def _is_fixed(module: torch.fx.GraphModule) -> bool:
    """Return whether all lengths are numbers: open ones are not compiled, so that nothing is worth keeping."""
    values = [node.meta.get("val") for node in module.graph.nodes]
    flat = [v for value in values for v in tree.listed(value) if isinstance(v, torch.Tensor)]
    return all(type(length) is int for value in flat for length in (*value.shape, *value.stride()))


def _ends(module: torch.fx.GraphModule) -> Any:
    """Return the shapes and dtypes of a graph's inputs and results."""
    nodes = list(module.graph.nodes)
    inputs = [serialize.meta_of(node.meta.get("val")) for node in nodes if node.op == "placeholder"]
    return inputs, [serialize.meta_of(node.meta.get("val")) for node in nodes[-1].args[0]]


def _hash(path: str) -> str:
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return ""


@contextlib.contextmanager
def inductor_in(path: str) -> Iterator[None]:
    """Make `path` Inductor's directory in the block."""
    before = os.environ.get(INDUCTOR_DIRECTORY)
    os.environ[INDUCTOR_DIRECTORY] = path
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(INDUCTOR_DIRECTORY, None)
        else:
            os.environ[INDUCTOR_DIRECTORY] = before


def _report(folder: Folder) -> None:
    if not folder.usable:
        outcome = Outcome.no_effect(translate("{folder} can't be used").format(folder=folder.root))
    else:
        outcome = Outcome.applied(translate("graphs and kernels are stored in {folder}").format(folder=folder.root))
    for key in ("enable_compile_cache", "compile_cache_path", "save_compile_cache", "load_compile_cache"):
        if STORE.get(key) and (key != "load_compile_cache" or not folder.usable):
            effects.report(key, outcome)
    if STORE.get("load_compile_cache") and folder.usable:
        text = translate("graphs are taken from {folder} as they were stored").format(folder=folder.root)
        effects.report("load_compile_cache", Outcome.applied(text))
