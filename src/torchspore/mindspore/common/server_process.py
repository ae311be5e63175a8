"""A server of a parameter server job: it stores its share of the Parameters and runs the program's optimizers on mean gradients."""
from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

from torchspore.distributed.comm.peer_liveness import local_address
from torchspore.distributed.parameter_server import configuration, roles
from torchspore.distributed.parameter_server.assignment import DENSE, Plan
from torchspore.distributed.parameter_server.parameter_store import ParameterStore, Scalars, StoredItem
from torchspore.distributed.parameter_server.snapshots import Snapshots
from torchspore.distributed.parameter_server.transport import Listener
from torchspore.distributed.parameter_server.values import released, rows_between
from torchspore.engine.formulas import row_gradients
from torchspore.engine.tensors.delayed_values import draw_in, is_delayed
from torchspore.engine.tensors.tensor import raw, wrap
from torchspore.mindspore.common import optimizer_states, server_session
from torchspore.mindspore.common.server_session import SESSION


def serve(cluster: roles.Cluster, plans: list[Plan], optimizers: dict[str, Any]) -> None:
    """Serve until the job ends. Raises CommunicationError if a process of the job is lost."""
    settings = configuration.read()
    configuration.set_ciphers(settings)
    credentials = configuration.credentials(settings, cluster.role)
    server = _LateStore()
    host = local_address(cluster.host)
    listener = Listener(server.handlers, host, 0, 4 * cluster.workers + 8, credentials, settings.heartbeat)
    membership = server_session.join(cluster, f"{host}:{listener.port}")
    share = _Share(plans, optimizers, membership.rank, cluster)
    snapshots, saved = None, None
    if settings.recovery is not None:
        snapshots = Snapshots(settings.recovery.folder, membership.rank, membership.job)
        saved = snapshots.load()
    if saved is not None:
        share.restore(saved[0])
    counts = None if saved is None else saved[1]
    store = ParameterStore(plans, membership.rank, cluster.servers, cluster.workers, share, settings.worker_timeout, counts)
    if snapshots is not None and settings.recovery is not None:
        store.set_snapshots(lambda: snapshots.save(share.tensors(), store.counts()), settings.recovery.save_steps)
    membership.lost_listeners.append(lambda: store.fail(membership.lost))
    membership.ended_listeners.append(lambda: store.end_workers(membership.ended_workers))
    store.end_workers(set(membership.ended_workers))
    server.set(store)

    def is_running() -> bool:
        membership.check()
        return not membership.has_ended

    try:
        store.run(is_running)
    finally:
        listener.stop()
    if snapshots is not None:
        snapshots.remove()


class _LateStore:
    """The handlers of a listener whose store exists only after the process has joined the job."""

    def __init__(self) -> None:
        self._store: ParameterStore | None = None
        self._is_set = threading.Event()
        self.handlers = {name: self._handler(name) for name in ("Register", "Step", "Pull", "Prefetch", "Load", "Agree")}

    def set(self, store: ParameterStore) -> None:
        """Let waiting calls continue."""
        self._store = store
        self._is_set.set()

    def _handler(self, name: str) -> Any:
        def handle(requests: Iterator[bytes]) -> Iterator[bytes]:
            self._is_set.wait()
            assert self._store is not None
            return self._store.handlers[name](requests)

        return handle


class _Share:
    """The Parameters of this server, with the states of their optimizers."""

    def __init__(self, plans: list[Plan], optimizers: dict[str, Any], server: int, cluster: roles.Cluster) -> None:
        from torchspore.distributed.parameter_server.parameter_store import stored_items

        self._released: set[int] = set()
        self._plans = {plan.key: plan for plan in plans}
        self._optimizers, self._items = optimizers, stored_items(plans, server, cluster.servers)
        for key, items in self._items.items():
            optimizer = optimizers[key]
            SESSION.indexes[key] = frozenset(stored.item.index for stored in items if stored.item.kind == DENSE or stored.shape[0])
            optimizer.__dict__["_updated_here_"] = SESSION.indexes[key]
            self._released |= _keep_share(optimizer, {stored.item.index: stored for stored in items})

    def values(self, key: str) -> list[Any]:
        """Return the stored values of a plan."""
        parameters = self._optimizers[key].__dict__["parameters"]
        return [parameters[stored.item.index]._t for stored in self._items[key]]

    def state(self, key: str, name: str) -> Any:
        """Return a state of an optimizer by its name; None if this server does not have it."""
        entry = optimizer_states.remote_states(self._optimizers[key], self._plans[key]).get(name)
        return None if entry is None or id(entry[0]) in self._released else entry[0]._t

    def update(self, key: str, gradients: list[Any], scalars: Scalars) -> None:
        """Run the optimizer on the mean gradients of the stored items."""
        optimizer = self._optimizers[key]
        for parameter, value in zip(optimizer_states.scalars(optimizer), scalars.get("scalars", [])):
            parameter._t.fill_(value)
        decays = scalars.get("decays", [])
        if decays != optimizer_states.decays(optimizer):
            optimizer_states.set_decays(optimizer, decays)
        arguments: list[Any] = list(optimizer.__dict__["parameters"])      # placeholders for the Parameters of other servers
        for stored, gradient in zip(self._items[key], gradients):
            if stored.item.kind == DENSE:
                arguments[stored.item.index] = wrap(gradient)
            elif stored.shape[0]:                          # a table with fewer rows than servers: nothing is updated here
                rows = row_gradients.create(gradient[0], gradient[1], stored.shape)
                arguments[stored.item.index] = rows if stored.item.has_sparse_gradient else wrap(raw(rows))
        optimizer._run_(tuple(arguments))

    def tensors(self) -> dict[str, Any]:
        """Return all tensors that a restarted server needs, by name."""
        return {
            f"{key}/{name}": parameter._t for key in self._items
            for name, parameter in self._optimizers[key].parameters_and_names() if id(parameter) not in self._released
        }

    def restore(self, tensors: dict[str, Any]) -> None:
        """Copy the tensors of a snapshot. Raises ValueError if they do not fit."""
        current = self.tensors()
        if {name: t.shape for name, t in tensors.items()} != {name: t.shape for name, t in current.items()}:
            raise ValueError("the snapshot of this server has other parameters than the program.\n\nhint: delete it to start again.")
        for name, t in current.items():
            t.copy_(tensors[name])


def _keep_share(optimizer: Any, stored: dict[int, StoredItem]) -> set[int]:
    """Release the values and states that other servers store, and cut tables to the rows of this server; return the ids of the released."""
    parameters, ids = optimizer.__dict__["parameters"], set()
    for values in (parameters, *(states for _, states in optimizer_states.tuples(optimizer))):
        for index, value in enumerate(values):
            here = stored.get(index)
            if here is None:
                if values is not parameters or server_session.is_marked(value):
                    ids.add(id(value))
                    value._t = released(value._t)
            elif here.item.kind != DENSE and value._t.shape[:1] == here.item.shape[:1]:
                is_drawn, rows = not is_delayed(value._t), rows_between(value._t, here.start, here.stop).to(value._t.device)
                value._t = rows.clone() if is_drawn else rows
            else:
                draw_in(value)
    return ids
