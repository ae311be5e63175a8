"""Which groups of processes exchange concurrently: the option `communi_parallel_mode`.

Each group has a channel. Groups that share a channel exchange one after the other: an exchange begins when those of the other groups have
ended, in the order in which this process calls them. Messages between two processes never wait, because both sides may send first.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

ALL, WITHIN_SERVER, NONE = "all_group_parallel", "same_server_group_parallel", "no_group_parallel"
_SHARED = ""
"""The channel of all groups that exchange one after the other."""


class _Channels:
    """The mode, and the exchanges on the shared channel that may still run: each with its group's key, its work and its wait."""

    def __init__(self) -> None:
        self.mode = ALL
        self.running: list[tuple[str, Any, Callable[[], None]]] = []


_CHANNELS = _Channels()


def set_mode(mode: str) -> None:
    """Set which groups may exchange at the same time."""
    _CHANNELS.mode = mode
    _CHANNELS.running = []


def is_serial() -> bool:
    """Return whether some groups share a channel."""
    return _CHANNELS.mode != ALL


def channel_of(key: str, hosts: list[str]) -> str:
    """Return the channel of a group, whose processes run on these hosts."""
    if _CHANNELS.mode == NONE or len(set(hosts)) > 1:
        return _SHARED
    return key


def wait_for_others(key: str) -> None:
    """Wait until the exchanges of other groups on the shared channel are over. Raises CommunicationError if one cannot end."""
    others = [wait for other, _, wait in _CHANNELS.running if other != key]
    _CHANNELS.running = [item for item in _CHANNELS.running if item[0] == key]
    for wait in others:
        wait()


def add(key: str, work: Any, wait: Callable[[], None]) -> None:
    """Add an exchange that has begun on the shared channel."""
    _CHANNELS.running = [item for item in _CHANNELS.running if not _is_over(item[1])]
    _CHANNELS.running.append((key, work, wait))


def _is_over(work: Any) -> bool:
    return all(each is None or each.is_completed() for each in (work if isinstance(work, list) else [work]))
