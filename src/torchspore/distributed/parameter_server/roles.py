"""The role of this process in a parameter server job, and the addresses and counts of the job."""
from __future__ import annotations

import os

from torchspore.base.lazy_dataclasses import dataclass
from torchspore.base.text import list_choices, message
from torchspore.context.store import STORE

WORKER, SERVER, SCHEDULER = "worker", "server", "scheduler"
_ROLES = {"MS_WORKER": WORKER, "MS_PSERVER": SERVER, "MS_SERVER": SERVER, "MS_SCHED": SCHEDULER}


@dataclass(frozen=True)
class Cluster:
    """A parameter server job as this process sees it."""

    role: str
    workers: int
    servers: int
    host: str
    port: int
    node: int = -1
    """The index of this process among those with its role, if MS_NODE_ID sets it; -1 lets the scheduler number the processes."""
    timeout: float = 600.0
    """The seconds that processes wait for each other at the start."""
    service: str = "PARAMETER_SERVER"
    """The kind of service, `server_mode`."""


def is_enabled() -> bool:
    """Return whether `set_ps_context(enable_ps=True)` was called."""
    return bool(STORE.get("ps.enable_ps"))


def check_variables() -> None:
    """Raise ValueError for text in MS_ROLE, MS_NODE_ID or MS_TOPO_TIMEOUT that would be ignored."""
    role, node, limit = (os.environ.get(name, "") for name in ("MS_ROLE", "MS_NODE_ID", "MS_TOPO_TIMEOUT"))
    if role and role not in (*_ROLES, "MS_NOT_PS"):
        raise ValueError(message(f"MS_ROLE={role!r:.60}", list_choices(_ROLES)))
    if node and not node.isdecimal():
        raise ValueError(message(f"MS_NODE_ID={node!r:.60}", "the number of this process among those of its role"))
    try:
        is_valid = not limit or 0 < float(limit) < float("inf")
    except ValueError:
        is_valid = False
    if not is_valid:
        raise ValueError(message(f"MS_TOPO_TIMEOUT={limit!r:.60}", "a number of seconds"))


def has_cluster() -> bool:
    """Return whether the parameter server is enabled and this process has a role in it."""
    return is_enabled() and STORE.get("ps.ms_role") in _ROLES


def read() -> Cluster:
    """Return the cluster of this process. Raises ValueError if the number of workers or servers is missing."""
    check_variables()
    counts = {"worker_num": int(STORE.get("ps.worker_num")), "server_num": int(STORE.get("ps.server_num"))}
    for name, count in counts.items():
        if count < 1:
            variable = "MS_WORKER_NUM" if name == "worker_num" else "MS_SERVER_NUM"
            raise ValueError(message(
                f"set_ps_context(enable_ps=True) with {name}={count}", "at least 1",
                hint=f"set {variable}, or start the job with: torchspore workers -n 2 --servers 1 SCRIPT",
            ))
    node = os.environ.get("MS_NODE_ID", "")
    return Cluster(
        _ROLES[STORE.get("ps.ms_role")], counts["worker_num"], counts["server_num"], str(STORE.get("ps.scheduler_ip")),
        int(STORE.get("ps.scheduler_port")), int(node) if node else -1, float(os.environ.get("MS_TOPO_TIMEOUT") or 600),
        str(STORE.get("ps.server_mode")) or "PARAMETER_SERVER",
    )
