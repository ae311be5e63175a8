"""The directory that `save_graphs_path` names: files appear complete and numbered; a write error is reported once."""
from __future__ import annotations

import errno
import itertools
from pathlib import Path

from torchspore.base import once
from torchspore.base.files import READ_ONLY, write_atomically
from torchspore.base.frames import warn
from torchspore.base.paths import PRIVATE
from torchspore.base.text import with_hint
from torchspore.context.store import STORE
from torchspore.engine import process
from torchspore.translations import translate

_numbers: dict[Path, itertools.count[int]] = {}


class Folder:
    """The folder of this process's files: the directory itself, in a distributed run `rank_N` in it."""

    def __init__(self, writes: bool = True) -> None:
        """Without `writes` the texts of graphs are only kept."""
        self.writes = writes
        self.texts: list[tuple[str, str]] = []
        """The texts of the graphs by their stem."""
        root = Path(STORE.get("save_graphs_path") or ".").absolute()
        self.root = root / process.folder() if process.is_distributed() else root
        self.usable = True
        self.files = 0

    def put(self, stem: str, ending: str, text: str) -> str:
        """Write `<stem>_<number>.<ending>`, mode 0400, and return its name within the directory; empty after a failure.

        `stem` may contain a subdirectory, `verbose_ir_files/hwopt_pool`.
        """
        if ending == "ir":
            self.texts.append((stem, text))
        if not self.writes:
            return f"{stem}.{ending}"
        number = next(_numbers.setdefault(self.root, itertools.count()))
        name = f"{stem}_{number:04d}.{ending}"
        return name if self.replace(name, text, READ_ONLY) else ""

    def replace(self, name: str, text: str, mode: int = 0o600) -> bool:
        """Write a file atomically: earlier contents stay readable until then. Return whether that worked."""
        if not self.usable:
            return False
        path = self.root / name
        try:
            write_into_folder(path, text, mode)
        except OSError as error:
            self._fail(error)
            return False
        self.files += 1
        return True

    def _fail(self, error: OSError) -> None:
        self.usable = False
        if not once.first_time(("save_graphs", self.root)):
            return
        is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        hint = translate("free some space") if is_full else translate("set save_graphs_path to a directory that can be written")
        text = translate("save_graphs: {folder} can't be written ({reason}); the program continues, and what was saved before stays.")
        text = text.format(folder=self.root, reason=error.strerror or type(error).__name__)
        try:
            warn(with_hint(text, hint))
        except UserWarning as error:               # python -W error: the program's wish, not a reason to run without a graph
            error.final = True  # type: ignore[attr-defined]
            raise


def write_into_folder(path: Path, text: str, mode: int = READ_ONLY) -> None:
    """Write a file atomically, and create its directory. Raises OSError."""
    path.parent.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
    write_atomically(path, text, mode)
