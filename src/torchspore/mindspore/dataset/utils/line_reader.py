"""Random access to the lines of a file."""
from __future__ import annotations

import os
from pathlib import Path

from torchspore.base.files import BINARY, read_at
from torchspore.base.text import message, short
from torchspore.mindspore import log
from torchspore.mindspore.dataset.core.validator_helpers import check_type


class LineReader:
    """The lines of a text file (UTF-8); `reader.readline(1)` or `reader[1]` is the first one. The constructor indexes all lines.

    Threads and processes may share a reader. Raises TypeError unless the path is a str, RuntimeError unless it is a file.
    """

    def __init__(self, filename: str) -> None:
        self.fo_handle: int | None = None
        check_type("LineReader", "filename", filename, str, "a str")
        self.filename = os.path.realpath(filename)
        if not Path(self.filename).is_file():
            expected = "a plain file" if Path(self.filename).exists() else "an existing file"
            raise RuntimeError(message(f"LineReader({short(filename)})", expected))
        ends = [0]
        with open(self.filename, "rb") as file:
            for line in file:
                ends.append(ends[-1] + len(line))
        self.offsets, self._end = ends[:-1], ends[-1]
        if not self.offsets:
            log.warning(f"LineReader: {filename} is empty.")

    def len(self) -> int:
        """Return the number of lines."""
        return len(self.offsets)

    def readline(self, line: int) -> str:
        """Return the line of this number, from 1, without its newline. Raises TypeError for another type, ValueError past the end."""
        check_type("LineReader.readline", "line", line, int, "an int")
        if not 1 <= line <= len(self.offsets):
            raise ValueError(message(f"LineReader.readline({line})", f"a line from 1 to {len(self.offsets)} of {self.filename}"))
        if self.fo_handle is None:
            self.fo_handle = os.open(self.filename, os.O_RDONLY | BINARY)
        begin, end = self.offsets[line - 1], self.offsets[line] if line < len(self.offsets) else self._end
        text = read_at(self.fo_handle, end - begin, begin).decode()
        return text.removesuffix("\n").removesuffix("\r")

    def close(self) -> None:
        """Closes the file; the next line opens it again."""
        if self.fo_handle is not None:
            os.close(self.fo_handle)
            self.fo_handle = None

    def __getitem__(self, line: int) -> str:
        return self.readline(line)

    def __len__(self) -> int:
        return self.len()

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "fo_handle": None}

    def __del__(self) -> None:
        if getattr(self, "fo_handle", None) is not None:
            self.close()
