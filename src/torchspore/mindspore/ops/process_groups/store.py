"""`TCPStore`: a key-value store for processes, through which `init_process_group(store=...)` connects them."""
from __future__ import annotations

from datetime import timedelta
from typing import Any

from torchspore.base.text import message, short


class TCPStore:
    """A table of keys and values that one process serves at `host_name:port` and the others access.

    The process with `is_master` serves it, and with `wait_for_workers` waits for `world_size` processes. `multi_tenant`,
    `master_listen_fd` and `use_libuv` are reserved. Raises TypeError and ValueError for arguments that do not fit, RuntimeError if the
    store cannot be served or reached within `timeout`.
    """

    def __init__(
        self, host_name: str, port: int, world_size: int | None = None, is_master: bool = False,
        timeout: timedelta = timedelta(seconds=300), wait_for_workers: bool = True, multi_tenant: bool = False,
        master_listen_fd: int | None = None, use_libuv: bool = True,
    ) -> None:
        _check("host_name", host_name, str)
        _check("port", port, int)
        _check("world_size", world_size, (int, type(None)))
        _check("is_master", is_master, bool)
        _check("timeout", timeout, timedelta)
        _check("wait_for_workers", wait_for_workers, bool)
        for name, value, usual in (
            ("multi_tenant", multi_tenant, False), ("master_listen_fd", master_listen_fd, None), ("use_libuv", use_libuv, True),
        ):
            if value != usual:
                raise ValueError(message(f"TCPStore({name}={short(value)})", f"{usual}: it is reserved"))
        if not 0 <= port <= 65535:
            raise ValueError(message(f"TCPStore(port={port})", "a port from 0 to 65535"))
        size = 1 if world_size is None else world_size
        if size < 1:
            raise ValueError(message(f"TCPStore(world_size={size})", "at least 1"))
        from torchspore.distributed.comm import rendezvous

        self._store = rendezvous.open_store(host_name, port, size, is_master, timeout.total_seconds(), wait_for_workers)
        self.host, self.port = host_name, int(self._store.port)

    def add(self, key: str, amount: int) -> int:
        """Add to the number of `key`, initially 0, and return the sum."""
        _check("key", key, str, "add")
        _check("amount", amount, int, "add")
        return int(self._store.add(key, amount))

    def set(self, key: str, value: str | bytes) -> None:
        """Set the value of `key`."""
        _check("key", key, str, "set")
        _check("value", value, (str, bytes), "set")
        self._store.set(key, value)

    def get(self, key: str) -> bytes:
        """Return the value of `key`, after waiting for it. Raises RuntimeError if none arrives within the store's timeout."""
        _check("key", key, str, "get")
        value: bytes = self._store.get(key)
        return value

    def delete_key(self, key: str) -> bool:
        """Delete a value; return whether there was one."""
        _check("key", key, str, "delete_key")
        return bool(self._store.delete_key(key))


def _check(name: str, value: Any, kind: Any, method: str = "") -> None:
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if not isinstance(value, kind) or (isinstance(value, bool) and bool not in kinds):
        expected = " or ".join("None" if allowed is type(None) else allowed.__name__ for allowed in kinds)
        call = f"TCPStore.{method}" if method else "TCPStore"
        raise TypeError(message(f"{call}({name}={short(value)})", f"{expected}, got {type(value).__name__}"))
