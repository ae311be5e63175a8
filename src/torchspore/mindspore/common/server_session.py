"""The part of this process in a parameter server job: it joins the job before the first step of a training.

A worker sends its initial values, if it is worker 0, and receives those of the servers; `push` sends the gradients of a step. A server
stores its parameters and runs the program's own optimizers on the mean gradients; its process ends with the job. The scheduler serves the
job, and its process ends too.
"""
from __future__ import annotations

import atexit
import gc
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from torchspore.base import faults
from torchspore.base.lazy_modules import import_lazily
from torchspore.base.text import message
from torchspore.context import effects
from torchspore.context.effects import Outcome
from torchspore.distributed.parameter_server import roles
from torchspore.engine import process
from torchspore.engine.execution.training_start import TRAINING_START
from torchspore.engine.tensors import change_counters
from torchspore.engine.tensors.tensor import outside
from torchspore.mindspore.common import optimizer_states, remote_parameters
from torchspore.mindspore.common.parameter import Parameter
from torchspore.mindspore.common.row_listener import ROW_LISTENER

if TYPE_CHECKING:
    from torchspore.distributed.parameter_server import assignment, configuration, operators
    from torchspore.distributed.parameter_server.assignment import Item, Plan
else:
    import_lazily(globals(), *(f"torchspore.distributed.parameter_server.{name}" for name in ("assignment", "configuration", "operators")))


class Session:
    """The state of this process in the job."""

    def __init__(self) -> None:
        self.optimizers: list[weakref.ref[Any]] = []
        """The optimizers that the program has created, in order."""
        self.membership: Any = None
        self.client: Any = None
        self.keys: dict[int, str] = {}
        """By the id of an optimizer the key of its plan."""
        self.indexes: dict[str, frozenset[int]] = {}
        """By plan the indexes of the Parameters that this process does not update (worker), or updates (server)."""
        self.served: list[Any] = []
        """The optimizers with a plan."""


SESSION = Session()


# ---- marks of the program


def mark(parameter: Parameter, init_in_server: bool) -> None:
    """Let servers store a Parameter. Raises RuntimeError if this process is not part of a parameter server job."""
    if not roles.has_cluster():
        roles.check_variables()
        raise RuntimeError(message(
            f"set_param_ps of {parameter.name!r} in a process without a parameter server", "set_ps_context(enable_ps=True) and MS_ROLE",
            hint="start the job with: torchspore workers -n 2 --servers 1 SCRIPT",
        ))
    if not isinstance(init_in_server, bool):
        raise TypeError(message(f"set_param_ps(init_in_server={init_in_server!r:.40})", f"a bool, got {type(init_in_server).__name__}"))
    if SESSION.client is not None and not is_marked(parameter):
        raise RuntimeError(message(
            f"set_param_ps of {parameter.name!r} after the first step", "set_param_ps before the first gradient or graph",
        ))
    parameter.__dict__.update(is_param_ps=True, init_in_server=init_in_server)
    if SESSION.client is None:
        TRAINING_START.hook = start


def is_marked(parameter: Any) -> bool:
    """Return whether servers store a Parameter."""
    return bool(parameter.__dict__.get("is_param_ps"))


def register(optimizer: Any) -> None:
    """Record a new optimizer. Raises RuntimeError if servers store its Parameters and the training has begun."""
    if SESSION.client is None:
        if len(SESSION.optimizers) % 64 == 63:
            SESSION.optimizers = [reference for reference in SESSION.optimizers if reference() is not None]
        SESSION.optimizers.append(weakref.ref(optimizer))
        if roles.is_enabled():
            roles.check_variables()
            TRAINING_START.hook = start
        return
    parameter = next(filter(is_marked, optimizer.__dict__["parameters"]), None)
    if parameter is not None and not optimizer_states.nested_optimizers(optimizer)[1:]:
        raise RuntimeError(message(
            f"{type(optimizer).__name__} of {parameter.name!r}, which servers store, after the first step",
            "all optimizers before the first gradient or graph",
        ))


def has_marks() -> bool:
    """Return whether an optimizer has Parameters that servers store."""
    optimizers = (reference() for reference in SESSION.optimizers)
    return any(is_marked(parameter) for o in optimizers if o is not None for parameter in o.__dict__["parameters"])


def start_before_update(has_frame: bool) -> None:
    """Join the job at the first update of a program that takes no gradient before it. Raises RuntimeError inside of a captured graph."""
    if has_frame and roles.has_cluster() and has_marks():
        raise RuntimeError(message(
            "the first update of an optimizer inside of a graph that was captured before set_param_ps",
            "set_param_ps before the first step",
        ))
    start()


# ---- start


def start() -> None:
    """Join the job, unless this process is part of it or has nothing on servers. A server and the scheduler end their processes here."""
    if not roles.has_cluster():
        TRAINING_START.hook = None
        return
    if SESSION.client is not None or process.FORK.forks_worker:
        return
    cluster = roles.read()
    if cluster.role == roles.SCHEDULER:
        run_scheduler(cluster)
    if not has_marks():
        return                                             # an evaluation before the training
    gc.collect()                                           # an optimizer that was dropped must not be a plan in some processes only
    optimizers = [optimizer for reference in SESSION.optimizers if (optimizer := reference()) is not None]
    inner = {id(part) for optimizer in optimizers for part in optimizer_states.nested_optimizers(optimizer)[1:]}
    optimizers = [optimizer for optimizer in optimizers if id(optimizer) not in inner]     # LARS runs the optimizer that it wraps
    plans = [plan for number, optimizer in enumerate(optimizers) if (plan := _plan(number, optimizer)) is not None]
    if not plans:
        return
    _check_shared(optimizers)
    TRAINING_START.hook = None
    SESSION.served = optimizers
    _report(cluster)
    if cluster.role == roles.SERVER:
        _serve(cluster, plans)
    with outside():
        _begin_worker(cluster, plans)


def run_scheduler(cluster: roles.Cluster) -> NoReturn:
    """Serve the job, then end the process."""
    from torchspore.distributed.comm import rendezvous
    from torchspore.distributed.parameter_server.scheduler import Scheduler

    TRAINING_START.hook = None
    settings = configuration.read()
    configuration.set_ciphers(settings)
    store = rendezvous.open_store(cluster.host, 0, None, True, cluster.timeout, False)
    _report(cluster)
    Scheduler(cluster, settings, configuration.credentials(settings, cluster.role), store.port).run()
    raise SystemExit(0)


def join(cluster: roles.Cluster, address: str = "") -> Any:
    """Join the job once; return the membership."""
    from torchspore.distributed.parameter_server.membership import Membership

    if SESSION.membership is None:
        settings = configuration.read()
        configuration.set_ciphers(settings)
        SESSION.membership = Membership(cluster, settings, configuration.credentials(settings, cluster.role), address)
        _watch_program()
    return SESSION.membership


def _watch_program() -> None:
    """Report to the scheduler how the program ends: without error, or with which exception."""
    faults.hook()
    faults.handlers.append(fail)
    atexit.register(leave)


def fail(error: BaseException) -> None:
    """Report that the program of this process ends with an exception."""
    if SESSION.membership is not None and not isinstance(error, SystemExit):
        SESSION.membership.leave("failed", f"{type(error).__name__}: {error}")


def leave() -> None:
    """Report that this process is done, and close its connections. `release()` and the end of the program call it."""
    if SESSION.membership is not None:
        SESSION.membership.leave("done")
    if SESSION.client is not None:
        SESSION.client.close()


def _check_shared(optimizers: list[Any]) -> None:
    """Raise ValueError if two optimizers update the same Parameter on servers: each server runs the optimizers of its Parameters."""
    names: dict[int, str] = {}
    for optimizer in optimizers:
        for parameter in filter(is_marked, optimizer.__dict__["parameters"]):
            if id(parameter) in names:
                raise ValueError(message(
                    f"{parameter.name!r} on servers, in {names[id(parameter)]} and in {type(optimizer).__name__}",
                    "each Parameter on servers in one optimizer",
                ))
            names[id(parameter)] = type(optimizer).__name__


def _plan(number: int, optimizer: Any) -> Plan | None:
    """Return the plan of an optimizer with Parameters on servers, or None."""
    parameters = optimizer.__dict__["parameters"]
    can_divide = optimizer_states.is_divisible(optimizer)
    if not any(map(is_marked, parameters)):
        return None
    if optimizer._server_refusal_:
        raise ValueError(message(f"{type(optimizer).__name__} with Parameters on servers", optimizer._server_refusal_))
    if not can_divide and not all(map(is_marked, parameters)):
        raise ValueError(message(
            f"{type(optimizer).__name__} with some Parameters on servers", "all or none of its Parameters on servers",
            hint="its formula needs all of them in one process; write net.set_param_ps()",
        ))
    can_split_rows = can_divide and not optimizer._refuses_rows_()
    items = tuple(
        _item(optimizer, index, parameter, can_split_rows) for index, parameter in enumerate(parameters) if is_marked(parameter)
    )
    key = f"{type(optimizer).__name__} {number}"
    SESSION.keys[id(optimizer)] = key
    return assignment.Plan(key, type(optimizer).__name__, items, can_divide)


def _item(optimizer: Any, index: int, parameter: Any, can_split_rows: bool) -> Item:
    """Describe a Parameter that servers store. Layers mark their tables by `server_table`: (size of the row cache, sparse gradients)."""
    _, is_sparse = parameter.__dict__.get("server_table", (0, False))
    is_table = can_split_rows and "server_table" in parameter.__dict__
    return assignment.Item(
        index, parameter.name, tuple(parameter.shape), str(parameter._t.dtype).removeprefix("torch."),
        assignment.TABLE if is_table else assignment.DENSE,
        bool(parameter.__dict__.get("init_in_server")), is_sparse,
        is_table and not (is_sparse and optimizer._takes_rows_ and optimizer._leaves_rows_),
    )


def _report(cluster: roles.Cluster) -> None:
    sizes = f"{cluster.workers} worker{'s' if cluster.workers > 1 else ''} and {cluster.servers} server{'s' if cluster.servers > 1 else ''}"
    text = f"this process is a {cluster.role} of a job of {sizes}, which meet at {cluster.host}:{cluster.port}"
    for option in ("enable_ps", "ms_role", "worker_num", "server_num", "scheduler_ip", "scheduler_port", "server_mode"):
        effects.report(f"ps.{option}", Outcome.applied(text))
    effects.report("ps.config_file_path", Outcome.applied("the certificates, the recovery and the time limits in the file apply"))
    effects.report("ps.enable_ssl", Outcome.applied("connections use TLS, and both sides verify certificates"))
    for kind, role in (("client", "workers"), ("server", "servers and the scheduler")):
        effects.report(f"ps.{kind}_password", Outcome.applied(f"it decrypts the key of {role}"))


# ---- a worker


def _begin_worker(cluster: roles.Cluster, plans: list[Plan]) -> None:
    from torchspore.distributed.parameter_server.worker import Client

    membership = join(cluster)
    settings = configuration.read()
    sizes = {
        (plan.key, item.index): int(_parameter(plan, item).__dict__["server_table"][0]) for plan in plans for item in plan.items
        if item.kind == assignment.TABLE
    }
    client = Client(membership, plans, settings, configuration.credentials(settings, cluster.role), sizes)
    if client.rank == 0 and not client.has_values():
        for plan in plans:
            for item in plan.items:
                if not item.starts_on_server:
                    client.load(plan.key, item.index, _parameter(plan, item)._t, is_initial=True)
            if any(int(inner.global_step.asnumpy().reshape(-1)[0]) for inner in optimizer_states.nested_optimizers(_optimizer(plan))):
                for name, (state, index) in optimizer_states.remote_states(_optimizer(plan), plan).items():     # a training that goes on
                    client.load(plan.key, index, state._t, name, is_initial=True)
        client.complete()
    for plan in plans:
        for item in plan.items:
            parameter = _parameter(plan, item)
            if item.kind == assignment.TABLE:
                remote_parameters.make_remote(parameter, plan.key, item.index)
            else:
                parameter._t.copy_(client.pull(plan.key, item.index, parameter._t))
        for name, (state, index) in optimizer_states.remote_states(_optimizer(plan), plan).items():
            remote_parameters.make_remote(state, plan.key, index, name)
        SESSION.indexes[plan.key] = frozenset(item.index for item in plan.items)
    SESSION.client = operators.CONNECTION.client = client
    ROW_LISTENER.receive = client.prefetcher.receive_row
    change_counters.calls_changed()


def _optimizer(plan: Plan) -> Any:
    return next(o for o in SESSION.served if SESSION.keys.get(id(o)) == plan.key)


def _parameter(plan: Plan, item: Item) -> Any:
    return _optimizer(plan).__dict__["parameters"][item.index]


def has_cluster() -> bool:
    """Return whether this process is part of a parameter server job."""
    return roles.has_cluster()


def load(parameters: Sequence[Any]) -> None:
    """Send the values that a checkpoint gave to these Parameters to the servers: worker 0's; all workers receive them."""
    if SESSION.client is None:
        return
    served = {id(_parameter(plan, item)): (plan.key, item) for plan in SESSION.client.plans.values() for item in plan.items}
    for parameter in parameters:
        if id(parameter) in served and not remote_parameters.is_remote(parameter):
            key, item = served[id(parameter)]
            SESSION.client.load(key, item.index, parameter._t)


# ---- a server


def _serve(cluster: roles.Cluster, plans: list[Plan]) -> NoReturn:
    from torchspore.mindspore.common.server_process import serve

    serve(cluster, plans, {plan.key: _optimizer(plan) for plan in plans})
    raise SystemExit(0)
