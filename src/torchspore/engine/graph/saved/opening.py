"""A recording is opened around each compilation where `save_graphs` asks for one."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from torchspore.base.frames import user_line
from torchspore.context import effects
from torchspore.context.effects import Outcome
from torchspore.context.store import STORE
from torchspore.engine.graph.report import stages
from torchspore.engine.graph.saved.model import Compilation

keeper: Callable[[Compilation, list[tuple[str, str]]], None] | None = None
"""Who wants what is compiled: each compilation, with the text of its stages."""
_OFF = Outcome.no_effect("save_graphs is 0")


@contextmanager
def recorded(name: str, settings: Mapping[str, str]) -> Iterator[None]:
    """Saves what its block compiles, if that is asked for: a call of `name` with these compile options."""
    level = STORE.get("save_graphs")
    if not level and keeper is None:
        if STORE.source("save_graphs_path")[0] != "default":
            effects.report("save_graphs_path", _OFF)
        yield
        return
    from torchspore.engine.graph.saved.recording import Recording  # it is needed only here

    setting = STORE.source("save_graphs")[1]
    draws = setting is not None and setting.written is True
    recording = Recording(name, user_line() or "<unknown>", settings, level or 1, draws, writes=level > 0)
    try:
        with stages.recorded_by(recording):
            yield
        recording.finish()
    finally:
        if keeper is not None:
            keeper(recording.compilation, recording.folder.texts)
