"""Jobs with a parameter server in tests: processes of `workers` take the roles of workers, servers and scheduler."""
from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import Any

EXITED = "exited"
"""What a server or the scheduler returns: its process ends inside the program."""


def free_port() -> int:
    """Return a port that no process uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def take_role(rank: int, workers: int, servers: int, port: int) -> None:
    """Set the variables of a process: workers first, then servers, then the scheduler."""
    role, node = ("MS_WORKER", rank) if rank < workers else ("MS_PSERVER", rank - workers)
    if rank == workers + servers:
        role, node = "MS_SCHED", 0
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_USE_AGENT_STORE"):
        os.environ.pop(name, None)
    os.environ.update(
        MS_ROLE=role, MS_NODE_ID=str(node), MS_WORKER_NUM=str(workers), MS_SERVER_NUM=str(servers), MS_SCHED_HOST="127.0.0.1",
        MS_SCHED_PORT=str(port), MS_TOPO_TIMEOUT="40",
    )


def run_role(workers: int, servers: int, port: int, function: Callable[..., Any], *arguments: Any) -> Any:
    """Run a function as the process that RANK names; return its result, or EXITED."""
    from torchspore.mindspore.common import server_session

    take_role(int(os.environ["RANK"]), workers, servers, port)
    try:
        result = function(*arguments)
    except SystemExit as end:
        assert end.code == 0, end.code
        return EXITED
    except BaseException as error:
        server_session.fail(error)
        raise
    server_session.leave()
    return result
