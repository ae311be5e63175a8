"""Tests whether the machine of another process can be reached. Its kernel answers even while the process is busy or stopped."""
from __future__ import annotations

import contextlib
import os
import socket
import stat
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")
PATIENCE = 2.0
"""The time limit in seconds for an answer of a store or a machine."""


class ProbePort:
    """A bound port without a listener. The kernel refuses each connection, which proves that the machine and the network work."""

    def __init__(self, towards: str) -> None:
        self._socket: socket.socket | None = None
        self.address = ("", 0)
        with contextlib.suppress(OSError):
            host = local_address(towards)
            self._socket = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
            self._socket.bind((host, 0))
            self.address = (host, int(self._socket.getsockname()[1]))

    def close(self) -> None:
        """Release the port."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def local_address(towards: str) -> str:
    """Return the address from which this machine reaches another one. Raise OSError."""
    family, kind, _, _, where = socket.getaddrinfo(towards, 9, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind) as probe:
        probe.connect(where)                              # sends nothing
        return str(probe.getsockname()[0])


def is_reachable(address: tuple[str, int]) -> bool:
    """Return whether a machine answers at an address. A refused connection is an answer."""
    try:
        socket.create_connection(address, PATIENCE).close()
    except (TimeoutError, socket.gaierror):
        return False
    except OSError as error:
        return isinstance(error, ConnectionError)         # refused: the machine works
    return True


def is_listening(host: str, port: int) -> bool:
    """Return whether a process listens at this address."""
    try:
        socket.create_connection((host, port), PATIENCE).close()
    except OSError:
        return False
    return True


def wait_until_reachable(host: str, port: int, seconds: float) -> None:
    """Wait until a connection to this address reaches this process. Raise OSError if it cannot listen or no connection arrives."""
    until, word = time.monotonic() + seconds, os.urandom(16)
    both = socket.has_dualstack_ipv6()
    with socket.create_server(("", port), family=socket.AF_INET6 if both else socket.AF_INET, dualstack_ipv6=both) as server:
        server.settimeout(0.5)
        while True:
            with contextlib.suppress(OSError):
                with socket.create_connection((host, port), min(seconds, PATIENCE)) as there:
                    there.sendall(word)
                with server.accept()[0] as here:
                    here.settimeout(0.5)
                    if here.recv(len(word)) == word:
                        return
            if time.monotonic() > until:
                raise TimeoutError(f"{host}:{port} does not lead here")
            time.sleep(0.1)


def wait_until_listening(host: str, port: int, seconds: float) -> None:
    """Wait until a process listens at this address, without torch's long log of failed attempts. Raise OSError."""
    until = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection((host, port), max(0.1, until - time.monotonic())).close()
            return
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(min(0.1, max(0.0, until - time.monotonic())))


def connections() -> frozenset[int]:
    """Return the inode numbers of this process's sockets."""
    return frozenset(_sockets())


def shut_down_connections(sockets: frozenset[int]) -> None:
    """Shut down these connections, so that threads that wait at them continue. Their owners close the sockets.

    Listening sockets stay as they are: gloo ends the process if its listening socket fails.
    """
    for number, file in _sockets().items():
        if number in sockets:
            with contextlib.suppress(OSError), socket.socket(fileno=os.dup(file)) as connection:
                if not connection.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                    connection.shutdown(socket.SHUT_RDWR)


def _sockets() -> dict[int, int]:
    """Return the file descriptors of sockets by inode number; none on a system without /proc."""
    sockets = {}
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc/self/fd"):
            with contextlib.suppress(OSError):
                status = os.fstat(int(name))
                if stat.S_ISSOCK(status.st_mode):
                    sockets[status.st_ino] = int(name)
    return sockets


class BackgroundCall(Generic[T]):
    """A call in a separate thread, which may never return."""

    def __init__(self, call: Callable[[], T]) -> None:
        self._call, self._over = call, threading.Event()
        self._value: T | None = None
        self._error: Exception | None = None
        threading.Thread(target=self._run, name="torchspore errand", daemon=True).start()

    def _run(self) -> None:
        try:
            self._value = self._call()
        except Exception as error:
            self._error = error
        self._over.set()

    @property
    def is_over(self) -> bool:
        """True if the call has returned."""
        return self._over.is_set()

    def result(self, seconds: float = PATIENCE) -> T | None:
        """Return the result of the call, None if it has not returned within `seconds`. Raise the call's error."""
        if not self._over.wait(seconds):
            return None
        if self._error is not None:
            raise self._error
        return self._value
