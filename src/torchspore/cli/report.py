"""`torchspore run --report DIR`: a page about a run: program, device, the outcome of each option, the loss, time and memory."""
from __future__ import annotations

import datetime
import shlex
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from torchspore.base.files import write_atomically
from torchspore.base.text import with_hint
from torchspore.html_pages import html
from torchspore.translations import translate

PAGE = "report.html"
_MOST_POINTS, _MOST_NOTES = 2_000, 300


class Report:
    """Collects data while a program runs, and writes their page."""

    def __init__(self, folder: str, words: list[str]) -> None:
        self._folder, self._words = Path(folder).expanduser(), words
        self._started = time.time()
        self._losses: Any = None

    def begin(self) -> None:
        """Create the folder, and record the losses from now on. Raise OSError if the folder can't be created."""
        self._folder.mkdir(parents=True, exist_ok=True)
        import torchspore

        torchspore.install()
        import torchspore.mindspore
        from torchspore.observe.losses import Losses

        self._losses = Losses()
        self._losses.begin()

    def end(self, code: int, error: BaseException | None) -> None:
        """Write the page, and report its path on stderr."""
        took = time.time() - self._started
        losses = self._losses.end()
        page = self._folder / PAGE
        try:
            write_atomically(page, html(translate("Run"), self._data(code, error, took, losses), "charts", "report"))
        except OSError as problem:
            text = translate("{command}: {path} can't be written ({reason}).").format(
                command="torchspore run --report", path=page, reason=problem.strerror or type(problem).__name__)
            print(with_hint(text, translate("name another folder")), file=sys.stderr)
        else:
            print(translate("torchspore: the report is {page}").format(page=page), file=sys.stderr)

    def _data(self, code: int, error: BaseException | None, took: float, losses: list[float]) -> dict[str, Any]:
        from torchspore.context import effects, table
        from torchspore.engine.devices import device, machine

        every = -(-len(losses) // _MOST_POINTS) or 1
        points = [(step, value) for step, value in enumerate(losses, 1) if (step - 1) % every == 0 or step == len(losses)]
        try:
            name = device.name()
        except Exception as problem:       # the requested device does not exist
            name = str(problem).partition("\n")[0]
        return {
            "about": shlex.join(["torchspore", "run", *self._words]), "code": code, "seconds": took, "device": name,
            "started": datetime.datetime.fromtimestamp(self._started).astimezone().isoformat(timespec="seconds"),
            "steps": len(losses), "losses": points, "every": every, "peak": machine.peak_memory(), "devicePeaks": machine.device_peaks(),
            "options": [dict(zip(("option", "value", "source", "outcome"), row)) for row in table.rows()],
            "sections": [{"name": section, "lines": lines[:_MOST_NOTES]} for section, lines in effects.notes().items()],
            "error": "".join(traceback.format_exception(error))[-20_000:] if error is not None else "",
            "facts": [{"section": section, "name": key, "value": str(value)} for section, facts in machine.facts().items()
                      for key, value in facts.items()],
        }
