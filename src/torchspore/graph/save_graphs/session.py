"""The context of each compilation: a progress line, sources of nodes, and a recording if `save_graphs` requests one."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

from torchspore.base import progress
from torchspore.base.frames import line_prefix, user_line
from torchspore.context import effects
from torchspore.context.effects import Outcome
from torchspore.context.store import STORE
from torchspore.graph.report import provenance, stages
from torchspore.graph.save_graphs.compilation_record import Compilation
from torchspore.graph.settings import Settings
from torchspore.translations import translate

keeper: Callable[[Compilation, list[tuple[str, str]]], None] | None = None
"""Who wants what is compiled: each compilation, with the text of its stages."""
_OFF = Outcome.no_effect("save_graphs is 0")


def compiling(name: str, settings: Settings, keeps_lines: bool) -> AbstractContextManager[object]:
    """Wrap the compilation of a call of `name`: report long waits, let nodes record their sources, save the stages if requested."""
    text = translate("is being compiled at {level}; this happens once for these shapes.").format(level=settings.level)
    with ExitStack() as around:
        if STORE.get("save_graphs") or keeper is not None:
            around.enter_context(_recorded(name, settings))
        elif STORE.source("save_graphs_path")[0] != "default":
            effects.report("save_graphs_path", _OFF)
        around.enter_context(progress.waiting(f"{line_prefix()}{name}", text))
        around.enter_context(provenance.debug_level_of(keeps_lines))
        return around.pop_all()


@contextmanager
def _recorded(name: str, settings: Settings) -> Iterator[None]:
    """Saves what its block compiles, and passes it to `keeper`."""
    level = STORE.get("save_graphs")
    from torchspore.graph.save_graphs.recording import Recording  # it is needed only here

    setting = STORE.source("save_graphs")[1]
    draws = setting is not None and setting.raw is True
    recording = Recording(name, user_line() or "<unknown>", settings.describe(), level or 1, draws, writes=level > 0)
    try:
        with stages.recorded_by(recording):
            yield
        recording.finish()
    finally:
        if keeper is not None:
            keeper(recording.compilation, recording.folder.texts)
