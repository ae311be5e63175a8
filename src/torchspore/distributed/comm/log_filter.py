"""Filters the messages of torch's C++ code about its attempts to connect: pages that one line of ours replaces."""
from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator


@contextlib.contextmanager
def unless_it_works() -> Iterator[None]:
    """Hold back output to stderr during the block; it follows the block, or is dropped if the block raises an Exception."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.flush()
    saved_stderr = os.dup(2)
    with tempfile.TemporaryFile() as captured_stderr:
        os.dup2(captured_stderr.fileno(), 2)
        shown = True
        try:
            yield
        except Exception:
            shown = False
            raise
        finally:
            os.dup2(saved_stderr, 2)
            os.close(saved_stderr)
            if shown:
                captured_stderr.seek(0)
                with contextlib.suppress(OSError):
                    os.write(2, captured_stderr.read())
