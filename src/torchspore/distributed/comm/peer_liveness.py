"""Decides whether another process can still be reached: the kernel answers for it, even while its Python is busy or stopped."""
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
"""Seconds that a store, or a machine, has to answer."""


class Door:
    """A port that is held and not listened at: the kernel refuses who knocks, which says that the machine and the way there are well."""

    def __init__(self, towards: str) -> None:
        self._socket: socket.socket | None = None
        self.address = ("", 0)
        with contextlib.suppress(OSError):
            host = _local_address(towards)
            self._socket = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
            self._socket.bind((host, 0))
            self.address = (host, int(self._socket.getsockname()[1]))

    def close(self) -> None:
        """Gives the port back."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _local_address(towards: str) -> str:
    """The address that this machine has on its way to another one. Raises OSError."""
    family, kind, _, _, where = socket.getaddrinfo(towards, 9, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind) as probe:
        probe.connect(where)                              # sends nothing
        return str(probe.getsockname()[0])


def answers(address: tuple[str, int]) -> bool:
    """Return whether a machine answers at an address; that nobody listens there is an answer."""
    try:
        socket.create_connection(address, PATIENCE).close()
    except (TimeoutError, socket.gaierror):
        return False
    except OSError as error:
        return isinstance(error, ConnectionError)         # refused: the machine is there
    return True


def listens(host: str, port: int) -> bool:
    """Return whether somebody listens there."""
    try:
        socket.create_connection((host, port), PATIENCE).close()
    except OSError:
        return False
    return True


def leads_here(host: str, port: int, seconds: float) -> None:
    """Waits until who connects to that address comes to this process. Raises OSError where it can't listen, or nobody comes."""
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


def waited_for(host: str, port: int, seconds: float) -> None:
    """Waits until somebody listens there: torch would write pages about its own attempts. Raises OSError."""
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
    """The sockets of this process, by the numbers that the kernel has for them."""
    return frozenset(_sockets())


def hang_up(sockets: frozenset[int]) -> None:
    """Ends what is said over these sockets, for whoever waits at one; they stay open, for who holds them to close.

    One that is listened at is left alone: gloo ends the process where its own fails.
    """
    for number, file in _sockets().items():
        if number in sockets:
            with contextlib.suppress(OSError), socket.socket(fileno=os.dup(file)) as connection:
                if not connection.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                    connection.shutdown(socket.SHUT_RDWR)


def _sockets() -> dict[int, int]:
    """The files of this process that are sockets, by their numbers; none where the system does not tell."""
    sockets = {}
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc/self/fd"):
            with contextlib.suppress(OSError):
                status = os.fstat(int(name))
                if stat.S_ISSOCK(status.st_mode):
                    sockets[status.st_ino] = int(name)
    return sockets


class Errand(Generic[T]):
    """A call in a thread of its own, which may never come back."""

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
        """True if it has come back."""
        return self._over.is_set()

    def result(self, seconds: float = PATIENCE) -> T | None:
        """Return the result of the call, None if it has not returned within `seconds`. Raise the call's error."""
        if not self._over.wait(seconds):
            return None
        if self._error is not None:
            raise self._error
        return self._value
