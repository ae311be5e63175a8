"""Options of the parameter server: `set_ps_context`."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from torchspore.context.kinds import UINT32, Bool, Choice, Int, Str
from torchspore.context.option import Option
from torchspore.errors import OptionTypeError

API = "ps"
_ROLES = ("MS_NOT_PS", "MS_SCHED", "MS_WORKER", "MS_PSERVER", "MS_SERVER")
_VARIABLES = {
    "worker_num": "MS_WORKER_NUM", "server_num": "MS_SERVER_NUM", "scheduler_ip": "MS_SCHED_HOST", "scheduler_port": "MS_SCHED_PORT",
    "ms_role": "MS_ROLE",
}


def _read_cluster_environment(enabled: bool, is_set: Callable[[str], bool]) -> dict[str, Any]:
    """Return the values of the cluster's variables; they count once `enable_ps` is True, and code settings override them."""
    settings: dict[str, Any] = {}
    for name, variable in _VARIABLES.items():
        text = os.environ.get(variable)
        if not enabled or text is None or is_set(f"{API}.{name}"):
            continue
        if name == "ms_role":
            settings[f"{API}.{name}"] = text if text in _ROLES else "MS_NOT_PS"
        elif name == "scheduler_ip":
            settings[f"{API}.{name}"] = text
        else:
            settings[f"{API}.{name}"] = int(text) if text.isdigit() else 0
    return settings


_ROLES_MODULE = "distributed.parameter_server.roles"
_CONFIGURATION = "distributed.parameter_server.configuration"

enable_ps = Option(
    read_by=_ROLES_MODULE, fixed_outcomes={False: "parameters stay in this process"},
    kind=Bool(), default=False, implies=_read_cluster_environment, example="set_ps_context(enable_ps=True)",
    since="1.0",
    doc="Trains with parameters on server processes. If True, torchspore also reads the variables of the cluster (MS_ROLE and others).",
)
config_file_path = Option(
    read_by=_CONFIGURATION,
    kind=Str("the path of a file"), default="", example="set_ps_context(config_file_path='recovery.json')",
    since="1.3",
    doc="A JSON file with the certificates of `enable_ssl`, the recovery of servers after a fault, and time limits.",
)
enable_ssl = Option(
    read_by=_CONFIGURATION,
    kind=Bool(), default=False, example="set_ps_context(enable_ssl=True)",
    since="1.5",
    doc="Encrypts the traffic between the processes; both sides verify the certificate of the other.",
)
client_password = Option(
    read_by=_CONFIGURATION,
    kind=Str(), default="", readable=False, example="set_ps_context(client_password='...')",
    since="1.5",
    doc="The password of the client's key; it cannot be read back.",
)
server_password = Option(
    read_by=_CONFIGURATION,
    kind=Str(), default="", readable=False, example="set_ps_context(server_password='...')",
    since="1.5",
    doc="The password of the server's key; it cannot be read back.",
)
worker_num = Option(
    read_by=_ROLES_MODULE,
    kind=Int(0, UINT32, outside=OptionTypeError), default=0, example="set_ps_context(worker_num=2)",
    since="1.3",
    doc="The number of workers.",
)
server_num = Option(
    read_by=_ROLES_MODULE,
    kind=Int(0, UINT32, outside=OptionTypeError), default=0, example="set_ps_context(server_num=1)",
    since="1.3",
    doc="The number of servers.",
)
scheduler_ip = Option(
    read_by=_ROLES_MODULE,
    kind=Str("an address such as '127.0.0.1'"), default="127.0.0.1", example="set_ps_context(scheduler_ip='127.0.0.1')",
    since="1.3",
    doc="The address of the scheduler.",
)
scheduler_port = Option(
    read_by=_ROLES_MODULE,
    kind=Int(0, 65535, outside=OptionTypeError), default=6667, example="set_ps_context(scheduler_port=6667)",
    since="1.3",
    doc="The port of the scheduler.",
)
scheduler_manage_port = Option(
    read_by="distributed.parameter_server.status_page",
    kind=Int(0, 65535, outside=OptionTypeError), default=11202, example="set_ps_context(scheduler_manage_port=11202)",
    since="1.3", until="2.6",
    doc="The port on which the scheduler answers HTTP requests about the job: /state and /nodes.",
)
ms_role = Option(
    read_by=_ROLES_MODULE,
    kind=Choice(*_ROLES), default="MS_NOT_PS", shown_if="ps.enable_ps", example="set_ps_context(ms_role='MS_WORKER')",
    since="1.3",
    doc="The role of this process: scheduler, worker or server. The getter returns MS_NOT_PS until `enable_ps` is True.",
)
server_mode = Option(
    read_by=_ROLES_MODULE,
    kind=Choice("PARAMETER_SERVER"), default="", example="set_ps_context(server_mode='PARAMETER_SERVER')",
    since="1.3",
    doc="The kind of service that the servers run.",
)
