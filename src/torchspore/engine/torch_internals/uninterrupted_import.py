"""Imports that an exception from outside (Ctrl-C, an alarm) can't leave half done: torch's compiler can't be imported a second time."""
from __future__ import annotations

import importlib
import threading

from torchspore.base.garbage_collection import import_without_collections


class UninterruptedImport:
    """Modules that a thread of their own imports; the caller waits for it, and may stop waiting at any time."""

    def __init__(self, *names: str) -> None:
        self._names = names
        self._thread: threading.Thread | None = None
        self._done = threading.Event()             # an interrupted Thread.join takes the thread for ended (bpo-45274)

    def finish(self) -> None:
        """Return when the modules are imported. An exception in them is raised by their own import, which the caller does next."""
        if self._done.is_set():
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._load, name="torchspore-import", daemon=True)
            self._thread.start()
        while self._thread.is_alive():             # a forked child has no such thread
            if self._done.wait(1):
                return

    def _load(self) -> None:
        try:
            with import_without_collections():
                for name in self._names:
                    importlib.import_module(name)
        except Exception:                          # the caller's import raises it again, at the user's line
            pass
        finally:
            self._done.set()
