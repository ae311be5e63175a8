"""The black box of this process: shared memory that it writes while it runs, and the process that watches it (blackbox/watcher.py).

It exists while `op_timeout` is set or the recorder is on, and costs nothing otherwise.
"""
from __future__ import annotations

import atexit
import contextlib
import ctypes
import faulthandler
import json
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torchspore.base.forks import at_fork
from torchspore.blackbox import marks, stacks
from torchspore.blackbox.board import ENDED, Board, contents, shared_file
from torchspore.engine.tensors import tensor as engine
from torchspore.observe.debug import native

_SOURCES = str(Path(__file__).resolve().parents[3])
_REFRESH = 20.0
"""Seconds after which the facts for the case of a kill are written again."""


class Box:
    """The black box; `facts` describes the program in case it is killed."""

    def __init__(self, facts: Callable[[], dict[str, Any]], on_request: Callable[[dict[str, Any]], None]) -> None:
        """`on_request` is called in a separate thread with the cause for which the watcher requests the record."""
        self.board = _local_board()
        self.process = os.getpid()
        self.records = False
        self.is_native = False
        self._facts, self._on_request = facts, on_request
        self._files = {name: shared_file(name) for name in ("stacks", "deaths", "terminated", "facts", "graphs")}
        self._open = {name: os.fdopen(handle, "wb", buffering=0) for name, handle in self._files.items()}
        self._read, self._write = os.pipe()
        self._library: Any = None
        self._lock = threading.Lock()
        has_end_signals = native.install_end_signals(stacks.SIGNAL, stacks.EXIT_SIGNAL, stacks.EXIT_CODE)
        faulthandler.register(stacks.SIGNAL, file=self._open["stacks"], all_threads=True, chain=has_end_signals)
        self._start()
        marks.read_by(self.board)
        native.load(self._arm)
        atexit.register(self._end)

    def close(self) -> None:
        """Nothing is watched any longer; the watcher and the thread that listens to it end."""
        marks.read_by(None)
        native.unload()
        if self._library is not None:
            self._library.torchspore_disarm()
        self._end()
        atexit.unregister(self._end)
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(self.watcher, signal.SIGKILL)
            os.waitpid(self.watcher, 0)
        faulthandler.unregister(stacks.SIGNAL)     # after the end of the process that would send it
        os.write(self._write, b"close\n")
        self._listener.join()
        for file in self._open.values():
            file.close()
        os.close(self._read)
        os.close(self._write)

    def _start(self) -> None:
        handles = [self.board.handle, *self._files.values(), self._write]
        program = f"import sys; sys.path.insert(0, {_SOURCES!r}); from torchspore.blackbox.watcher import main; main(sys.argv[1:])"
        watcher = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", program, *map(str, handles)], pass_fds=handles, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, start_new_session=True,
        )
        self.watcher = watcher.pid
        watcher.returncode = 0             # it ends after this process, without a wait
        self._listener = threading.Thread(target=self._listen, name="torchspore-recorder", daemon=True)
        self._listener.start()

    def _arm(self, library: Any) -> None:
        self._library = library
        self.is_native = True
        library.torchspore_arm(ctypes.addressof(ctypes.c_char.from_buffer(self.board.memory)), int(self.records))
        self._follow_operators()

    def limit(self, seconds: int) -> None:
        """Operators may run so many seconds from now on; 0 for no limit."""
        self.board.limit = seconds * 10**9
        self._follow_operators()

    _follows = False

    def _follow_operators(self) -> None:
        """Make operators of the front end report to the ring if a time limit exists, or if nothing else fills the ring; otherwise stop."""
        with self._lock:                       # the thread that builds the native watch comes here too
            marks.writes_ring = self.records and not self.is_native
            is_board_needed = self.board.limit > 0 or marks.writes_ring
            if is_board_needed != self._follows:
                self._follows = is_board_needed
                engine.follow_operators(is_board_needed)

    def record(self, mode: int) -> None:
        """Record the ring and the traces of a fault; 0 stops."""
        self.board.mode = mode
        writes_ring = mode > 0
        if writes_ring == self.records:
            return
        self.records = writes_ring
        self._follow_operators()
        if self._library is not None:
            self._arm(self._library)
        if writes_ring:
            self.had_faulthandler = faulthandler.is_enabled()
            faulthandler.enable(file=self._open["deaths"], all_threads=True)
            if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
                faulthandler.register(signal.SIGTERM, file=self._open["terminated"], all_threads=True, chain=True)
            self.write_facts()
        else:
            faulthandler.disable()
            if self.had_faulthandler:
                faulthandler.enable()
            faulthandler.unregister(signal.SIGTERM)

    def write_facts(self) -> None:
        """Write the facts that the watcher needs to write a record without this process."""
        self._replace("facts", json.dumps(self._facts()).encode())

    def write_graphs(self, lines: list[bytes]) -> None:
        """Writes down the last graphs, a line of JSON each."""
        self._replace("graphs", b"\n".join(lines))

    def _replace(self, name: str, text: bytes) -> None:
        handle = self._files[name]
        with contextlib.suppress(OSError):
            os.ftruncate(handle, 0)
            os.pwrite(handle, text, 0)

    def stacks(self) -> str:
        """All threads of this process now."""
        before = os.fstat(self._files["stacks"]).st_size
        faulthandler.dump_traceback(self._open["stacks"], all_threads=True)
        return stacks.remove_listener(contents(self._files["stacks"])[before:].decode("utf-8", "replace"))

    def _listen(self) -> None:
        """Serve the watcher's requests: the record of a hang, the end."""
        pending, wait = b"", 1.0
        while self.process == os.getpid():
            ready = select.select([self._read], [], [], wait)[0]
            wait = _REFRESH
            if not ready:
                if self.records:
                    self.write_facts()
                continue
            pending += os.read(self._read, 65536)
            *lines, pending = pending.split(b"\n")
            for line in lines:
                word, _, rest = line.decode().partition(" ")
                if word == "close":
                    return
                if word == "stacks":           # without a signal, which would end a sleep in C code and let the program go on
                    faulthandler.dump_traceback(self._open["stacks"], all_threads=True)
                if word == "exit":
                    _flush()
                    os._exit(int(rest))
                if word == "record":
                    self._on_request(json.loads(rest))

    def _end(self) -> None:
        if self.process == os.getpid() and self.board.state == 0:
            self.board.state = ENDED


def _flush() -> None:
    """Flush the program's output. If another thread hangs in a print, the watcher does not wait for it."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()


class _Recorder:
    """The open black box and its board."""

    def __init__(self) -> None:
        self.box: Box | None = None
        """The black box of this process, if it has one."""
        self.board: Board | None = None
        """Its memory, which stays when it is closed: a thread may be about to write into it."""


RECORDER = _Recorder()


def _local_board() -> Board:
    if RECORDER.board is None or RECORDER.board.process != os.getpid():
        RECORDER.board = Board.create()
    else:
        RECORDER.board.begin()
    return RECORDER.board


def need(facts: Callable[[], dict[str, Any]], on_request: Callable[[dict[str, Any]], None]) -> Box:
    """Return the black box; create it if it does not exist."""
    if not hasattr(faulthandler, "register"):
        raise OSError("this system has no signals for it")
    if RECORDER.box is None:
        RECORDER.box = Box(facts, on_request)
    return RECORDER.box


def spare() -> None:
    """Close the black box if nothing is watched or recorded."""
    if RECORDER.box is not None and RECORDER.box.process == os.getpid() and not RECORDER.box.records and not RECORDER.box.board.limit:
        RECORDER.box.close()
        RECORDER.box = None


def _in_child() -> None:
    """A forked child shares the memory, and must not write into it."""
    if RECORDER.box is not None:
        if RECORDER.box._follows:
            engine.lose_observer()
        if RECORDER.box.records:
            faulthandler.disable()
            faulthandler.unregister(signal.SIGTERM)
        RECORDER.box = None
        marks.read_by(None)


at_fork(after_in_child=_in_child)
