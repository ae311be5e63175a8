"""The client of a worker: sends gradients to the servers, and receives new values and rows."""
from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

from torchspore.base.frames import user_line
from torchspore.base.text import message
from torchspore.distributed.parameter_server.assignment import DENSE, TABLE, Item, Plan
from torchspore.distributed.parameter_server.configuration import Configuration, Credentials
from torchspore.distributed.parameter_server.membership import RECONNECT, Membership
from torchspore.distributed.parameter_server.messages import CHUNK, MalformedMessage, Message, decode, encode
from torchspore.distributed.parameter_server.parameter_store import MOST_ROWS, StoredItem, stored_items
from torchspore.distributed.parameter_server.prefetch import Prefetcher, Rows, Values
from torchspore.distributed.parameter_server.row_cache import RowCache
from torchspore.distributed.parameter_server.transport import Call, CallRefused, Channel, ConnectionLost
from torchspore.distributed.parameter_server.values import rows_between, to_host
from torchspore.errors import CommunicationError

T = TypeVar("T")
_NEWS = 3.0
"""The seconds to wait for the scheduler's news after a connection to a server is lost."""


@dataclass
class _Sent:
    """A message that changes values on a server: the gradients of a step, or values that worker 0 sends before that step."""

    key: str
    step: int
    method: str
    message: Message

    def again(self) -> Message:
        """Return the message for a server that was started again: it does not answer with values."""
        return Message({**self.message.facts, "quiet": True}, self.message.tensors)


class _Server:
    """The connection to a server, and the messages that its last snapshot does not contain."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.channel: Channel | None = None
        self.address = ""
        self.history: list[_Sent] = []
        self.pending: _Sent | None = None
        """The gradients that this server has not answered yet."""


class Client:
    """The servers of a job as a worker sees them. `cache_sizes` are the sizes of the row caches, by plan and index; 0 for one lookup."""

    def __init__(
        self, membership: Membership, plans: list[Plan], configuration: Configuration, credentials: Credentials | None,
        cache_sizes: dict[tuple[str, int], int],
    ) -> None:
        self._membership, self._configuration, self._credentials = membership, configuration, credentials
        self.plans = {plan.key: plan for plan in plans}
        self._servers = [_Server(rank) for rank in range(membership.cluster.servers)]
        self._items: list[dict[str, list[StoredItem]]] = [
            stored_items(plans, server.rank, len(self._servers)) for server in self._servers
        ]
        self.steps = dict.fromkeys(self.plans, 0)
        self._known: dict[tuple[str, int], torch.Tensor] = {}
        """By plan and index the values of a dense parameter on the servers after the last step."""
        self._loads: dict[tuple[str, int, str | None], int] = {}
        """By plan, index and state the number of loads."""
        self._flag: Message | None = None
        """The last flag of a decision of all workers."""
        self._flags = 0
        self._has_sent_values = False
        """True if worker 0 has sent all initial values, or the servers have those of a snapshot."""
        self.caches = {
            (plan.key, item.index): RowCache(
                item.name, item.shape[0], item.shape[1:], _dtype(item), cache_sizes.get((plan.key, item.index), 0), item.changes_all_rows,
            )
            for plan in plans for item in plan.items if item.kind == TABLE
        }
        self._calls: set[Call] = set()
        self._lock = threading.Lock()
        self._line: str | None = None
        """The line of the program that is in a call of this client."""
        self._threads = ThreadPoolExecutor(2 * len(self._servers), "torchspore client")
        self.prefetcher = Prefetcher(self.caches, self._request_rows)
        self._line = user_line()
        membership.lost_listeners.append(self._cancel)
        for server in self._servers:
            self._register(server)

    @property
    def rank(self) -> int:
        """The rank of this worker."""
        return self._membership.rank

    # ---- connections

    def _connect(self, server: _Server) -> Channel:
        address = self._membership.servers[server.rank]
        if server.channel is not None and server.address == address:
            return server.channel
        if server.address:                                 # its pushes must be repeated before any other call
            raise ConnectionLost("the server was started again")
        return self._open(server, address)

    def _open(self, server: _Server, address: str) -> Channel:
        """Connect to a server at its address."""
        host, _, port = address.rpartition(":")
        server.channel = Channel(host.strip("[]"), int(port), self._credentials, self._configuration.heartbeat, 10.0)
        server.address = address
        server.channel.wait_until_ready(10.0)
        return server.channel

    def _call(self, server: _Server, method: str, message: Message, answer_limit: int) -> Call:
        call = self._connect(server).call(method, encode(message), answer_limit)
        with self._lock:
            self._calls.add(call)
        if self._membership.lost:
            call.cancel()
        return call

    def _answer(self, call: Call, limit: int) -> Message:
        try:
            return decode(call, limit)
        finally:
            with self._lock:
                self._calls.discard(call)

    def _cancel(self) -> None:
        with self._lock:
            calls = list(self._calls)
        for call in calls:
            call.cancel()

    def _retried(self, server: _Server, action: Callable[[], T]) -> T:
        """Run an action on a server. If the server is lost and may come back, wait for it, repeat its pushes and run the action again."""
        while True:
            try:
                return action()
            except CallRefused as error:
                self._wait_for_news(0.5)
                raise CommunicationError(f"{self._line}: worker {self.rank}: {error}") from None
            except (ConnectionLost, MalformedMessage) as error:
                self._recover(server, str(error))

    def _wait_for_news(self, seconds: float) -> None:
        """Give the scheduler time to report which process is lost, and raise that."""
        until = time.monotonic() + seconds
        while not self._membership.lost and time.monotonic() < until:
            time.sleep(0.02)
        self._membership.check(self._line)

    def _recover(self, server: _Server, reason: str) -> None:
        lost_address = server.address
        if server.channel is not None:
            server.channel.close()
            server.channel = None
        if self._configuration.recovery is None:
            self._wait_for_news(_NEWS)
            raise CommunicationError(f"{self._line}: worker {self.rank}: the connection to server {server.rank} is lost: {reason}.")
        if self.rank == 0 and not self._has_sent_values and server.address:
            raise CommunicationError(f"{self._line}: worker 0: server {server.rank} was lost before it had all initial values: {reason}.")
        until = time.monotonic() + RECONNECT + 5.0
        while self._membership.servers[server.rank] == lost_address:
            self._membership.check(self._line)
            if time.monotonic() > until:
                raise CommunicationError(f"{self._line}: worker {self.rank}: server {server.rank} did not come back.")
            time.sleep(0.05)
        with self._lock:
            for cache in self.caches.values():             # the lost answer may have contained changed rows
                cache.clear()
        try:
            self._open(server, self._membership.servers[server.rank])
            self._send_plans(server)
            for sent in [sent for sent in server.history if sent is not server.pending]:
                self._answer(self._call(server, sent.method, sent.again(), 0), 0)
            if server.rank == 0 and self._flag is not None:
                self._answer(self._call(server, "Agree", Message({**self._flag.facts, "is_repeated": True}), 0), 0)
        except CallRefused as error:
            raise CommunicationError(f"{self._line}: worker {self.rank}: {error}") from None
        except ConnectionLost:
            return                                         # it is lost again: the action fails and comes back here

    # ---- calls

    def _register(self, server: _Server) -> dict[str, Any]:
        """Send the plans to a server, which may be lost and come back; return its answer."""
        return self._retried(server, lambda: self._send_plans(server))

    def _send_plans(self, server: _Server) -> dict[str, Any]:
        message = Message({"plans": [plan.describe() for plan in self.plans.values()]})
        return self._answer(self._call(server, "Register", message, 0), 0).facts

    def _remember(self, server: _Server, sent: _Sent) -> None:
        """Store a message for a server that may be started again. Its tensors are copied, because the program may overwrite them."""
        if self._configuration.recovery is not None:
            sent.message.tensors = [t.clone() for t in sent.message.tensors]
            server.history.append(sent)

    def step(
        self, key: str, dense: dict[int, torch.Tensor], sparse: dict[int, tuple[torch.Tensor, torch.Tensor]],
        scalars: list[float], decays: list[float],
    ) -> dict[int, torch.Tensor]:
        """Push the gradients of a step and return the new dense values, by the index of the parameter.

        `dense` are gradients by index, `sparse` row numbers (n,) and rows (n, ...) of tables; `scalars` and `decays` are the numbers of
        the optimizer. Returns when all workers have pushed the step. Raises CommunicationError if a process of the job is lost.
        """
        self._line = user_line()
        self.prefetcher.drop(key)
        self.steps[key] += 1
        facts = {"plan": key, "worker": self.rank, "step": self.steps[key], "scalars": scalars, "decays": decays}
        pushes = [
            _Sent(key, self.steps[key], "Step", Message(facts, list(_parts(items[key], dense, sparse)))) for items in self._items
        ]
        started: list[Call | None] = []
        for server, push in zip(self._servers, pushes):
            self._remember(server, push)
            server.pending = push
            started.append(self._started(server, "Step", push.message, self._limit(self._items[server.rank][key])))
        self.prefetcher.start(key, self.steps[key])
        results: dict[int, torch.Tensor] = {}
        # In threads, because a worker that waits for one server must notice that another one is lost: the others wait for its pushes there.
        received = [
            self._threads.submit(self._receive, server, push, items[key], call, results)
            for server, push, items, call in zip(self._servers, pushes, self._items, started)
        ]
        for future in received:
            future.result()
        self.prefetcher.finish_step(key)
        self._known |= {(key, index): value.clone() for index, value in results.items()}
        return results

    def _receive(
        self, server: _Server, push: _Sent, items: list[StoredItem], call: Call | None, results: dict[int, torch.Tensor],
    ) -> None:
        message = self._exchange(server, "Step", push.message, call, self._limit(items))
        server.pending, saved = None, message.facts.get("saved")
        if type(saved) is int:
            server.history = [old for old in server.history if old.key != push.key or old.step > saved]
        tensors = iter(message.tensors)
        for stored in items:
            if stored.item.kind == DENSE:
                results[stored.item.index] = next(tensors)
            else:
                cache = self.caches[push.key, stored.item.index]
                with self._lock:
                    cache.update(next(tensors), next(tensors))
                    cache.clear_after_step()

    @staticmethod
    def _limit(items: Sequence[StoredItem]) -> int:
        return sum(MOST_ROWS if s.item.kind == TABLE else s.item.elements * _dtype(s.item).itemsize for s in items)

    def rows(self, key: str, index: int, ids: torch.Tensor) -> torch.Tensor:
        """Return the rows of a table at `ids` (n,) int64, from the cache or the servers. Raises IndexError for a row outside the table."""
        self._line = user_line()
        item = next(item for item in self.plans[key].items if item.index == index)
        is_outside = (ids < 0) | (ids >= item.shape[0])
        if bool(is_outside.any()):
            raise IndexError(message_of_outside(self._line, item, int(ids[is_outside][0])))
        self.prefetcher.record_lookup((key, index), ids)
        return self.caches[key, index].lookup(ids, lambda rows: self._fetch((key, index), rows))

    def _fetch(self, key: tuple[str, int], rows: torch.Tensor) -> torch.Tensor:
        """Return rows (n,), sorted and different, that the cache does not have: those that were prefetched, and others from the servers."""
        prefetched = self.prefetcher.take(key, rows)
        if prefetched is None:
            return self._fetch_from_servers(key, rows)
        is_prefetched, values = prefetched
        if bool(is_prefetched.all()):
            return values
        result = values.new_empty((len(rows), *values.shape[1:]))
        result[is_prefetched] = values
        result[~is_prefetched] = self._fetch_from_servers(key, rows[~is_prefetched])
        return result

    def _fetch_from_servers(self, key: tuple[str, int], rows: torch.Tensor) -> torch.Tensor:
        started = []
        for server in self._servers:
            part, limit = self._rows_on(server, *key, rows)
            if len(part):
                message = Message({"plan": key[0], "index": key[1]}, [part])
                started.append((server, message, self._started(server, "Pull", message, limit), limit))
        return torch.cat([self._exchange(server, "Pull", message, call, limit).tensors[0] for server, message, call, limit in started])

    def _request_rows(self, plan: str, rows: Rows, step: int) -> list[Future[Values]]:
        """Request rows of a plan's tables with their values after a step of this worker; return the servers' answers, in their order."""
        answers = []
        for server in self._servers:
            parts = {index: self._rows_on(server, plan, index, numbers) for index, numbers in rows.items()}
            parts = {index: part for index, part in parts.items() if len(part[0])}
            message = Message({"plan": plan, "step": step, "indexes": list(parts)}, [part for part, _ in parts.values()])
            limit = sum(limit for _, limit in parts.values())
            call = self._started(server, "Prefetch", message, limit) if parts else None
            if call is not None:
                answers.append(self._threads.submit(self._receive_rows, call, list(parts), limit))
        return answers

    def _receive_rows(self, call: Call, indexes: list[int], limit: int) -> Values:
        return {index: [values] for index, values in zip(indexes, self._answer(call, limit).tensors)}

    def _rows_on(self, server: _Server, plan: str, index: int, rows: torch.Tensor) -> tuple[torch.Tensor, int]:
        """Return those of the rows, which are sorted, that a server stores, and the number of bytes of their values."""
        stored = next(stored for stored in self._items[server.rank][plan] if stored.item.index == index)
        part = rows[int(torch.searchsorted(rows, stored.start)):int(torch.searchsorted(rows, stored.stop))]
        return part, len(part) * (stored.item.elements // stored.item.shape[0]) * _dtype(stored.item).itemsize

    def _started(self, server: _Server, method: str, message: Message, answer_limit: int) -> Call | None:
        try:
            return self._call(server, method, message, answer_limit)
        except ConnectionLost:
            return None

    def _exchange(self, server: _Server, method: str, message: Message, call: Call | None, limit: int) -> Message:
        """Return the answer to a message; `call` is its first attempt, if that was started already."""
        calls = [call]

        def receive() -> Message:
            first = calls.pop() if calls else None
            return self._answer(first or self._call(server, method, message, limit), limit)

        return self._retried(server, receive)

    def _storing(self, key: str, index: int) -> Iterator[tuple[_Server, StoredItem]]:
        """Yield the servers that store a parameter, or rows of a table."""
        for server, items in zip(self._servers, self._items):
            yield from ((server, stored) for stored in items[key] if stored.item.index == index)

    def blocks(self, key: str, index: int, like: torch.Tensor, state: str | None = None) -> Iterator[torch.Tensor]:
        """Yield all values of a parameter, table or state in blocks of rows; `like` has its shape and dtype."""
        self._line = user_line()
        for server, stored in self._storing(key, index):
            facts = {"plan": key, "index": index, "state": state}
            if not _is_split(stored, like):
                yield self._exchange(server, "Pull", Message(facts), None, like.numel() * like.element_size()).tensors[0]
                return
            for start, stop in _row_blocks(stored, like):
                message = Message({**facts, "start": start - stored.start, "stop": stop - stored.start})
                limit = (stop - start) * like[:1].numel() * like.element_size()
                yield self._exchange(server, "Pull", message, None, limit).tensors[0]

    def pull(self, key: str, index: int, like: torch.Tensor, state: str | None = None) -> torch.Tensor:
        """Return all values of a parameter, table or state; `like` has its shape and dtype."""
        result, start = torch.empty(like.shape, dtype=like.dtype), 0
        for block in self.blocks(key, index, like, state):
            if block.shape == result.shape:
                result = block
            else:
                result[start:start + len(block)] = block
                start += len(block)
        if state is None and (key, index) not in self.caches:
            self._known[key, index] = result.clone()
        return result

    def load(self, key: str, index: int, values: torch.Tensor, state: str | None = None, is_initial: bool = False) -> None:
        """Replace the values of a parameter, table or state on the servers by those of worker 0; other workers wait until they are there.

        Rows of initial values that are not drawn yet are drawn block by block. With `is_initial`, only worker 0 calls this function, before
        the first step.
        """
        self._line = user_line()
        number = 0 if is_initial else self._loads.get((key, index, state), 0) + 1
        self._loads[key, index, state] = number
        for server, stored in self._storing(key, index):
            facts = {"plan": key, "index": index, "state": state, "number": number}
            if _is_split(stored, values) and stored.start == stored.stop:
                continue                                   # a table with fewer rows than servers
            if self.rank != 0:
                self._exchange(server, "Load", Message({**facts, "kind": "wait"}), None, 0)
            elif _is_split(stored, values):
                blocks = list(_row_blocks(stored, values))
                for start, stop in blocks:
                    rows = rows_between(values, start, stop).contiguous()
                    self._send_values(server, {**facts, "start": start - stored.start, "is_last": stop == blocks[-1][1]}, rows)
            else:
                self._send_values(server, {**facts, "is_last": True}, to_host(values))
        if state is None and (key, index) in self.caches:
            self.caches[key, index].clear()
        elif state is None:
            self._known[key, index] = to_host(values).clone()

    def _send_values(self, server: _Server, facts: dict[str, Any], values: torch.Tensor) -> None:
        key = facts["plan"]
        sent = _Sent(key, self.steps[key] + 1, "Load", Message(facts, [values]))
        if facts["number"]:                                # a snapshot follows the initial values
            self._remember(server, sent)
        self._exchange(server, "Load", sent.message, None, 0)

    def check_read(self, key: str, index: int, gradient: torch.Tensor) -> None:
        """Raise RuntimeError for a dense gradient with NaN: this process has no values of the table, and operators that read it get NaN."""
        if bool(gradient.isnan().any()):
            name = next(item.name for item in self.plans[key].items if item.index == index)
            raise RuntimeError(message(
                f"{user_line()}: a gradient of {name} with NaN in all rows; servers store the table, and only lookups can read it",
                "nn.Embedding and nn.EmbeddingLookup as its only readers",
                hint=f"if another operator reads the table (tied weights), write set_param_ps for the other Parameters and not for {name}",
            ))

    def send_if_changed(self, key: str, index: int, value: torch.Tensor) -> None:
        """Send the values of a dense parameter from worker 0 if the program has changed them since the last step."""
        if self.rank == 0 and not torch.equal(self._known[key, index], value):
            self._line = user_line()
            for server, _ in self._storing(key, index):
                self._send_values(server, {"plan": key, "index": index, "state": None, "number": -1}, value)

    def is_true_anywhere(self, flag: bool) -> bool:
        """Return whether a flag is True on any worker. All workers must call it equally often. Raises CommunicationError otherwise."""
        self._line = user_line()
        self._flags += 1
        self._flag = Message({"worker": self.rank, "number": self._flags, "flag": flag})
        return bool(self._exchange(self._servers[0], "Agree", self._flag, None, 0).facts["flag"])

    def complete(self) -> None:
        """Report to the servers that the initial values are there."""
        for server in self._servers:
            self._exchange(server, "Load", Message({"kind": "complete"}), None, 0)
        self._has_sent_values = True

    def has_values(self) -> bool:
        """Return whether all servers have the initial values already: after a restart from snapshots."""
        self._has_sent_values = all(bool(self._register(server).get("loaded")) for server in self._servers)
        return self._has_sent_values

    def close(self) -> None:
        """Close the connections to the servers."""
        self._threads.shutdown(wait=False)
        for server in self._servers:
            if server.channel is not None:
                server.channel.close()


def _dtype(item: Item) -> torch.dtype:
    dtype = getattr(torch, item.dtype)
    assert isinstance(dtype, torch.dtype)
    return dtype


def _parts(
    items: Sequence[StoredItem], dense: dict[int, torch.Tensor], sparse: dict[int, tuple[torch.Tensor, torch.Tensor]],
) -> Iterator[torch.Tensor]:
    """Yield the tensors of a step for one server: dense gradients, and of tables the rows that it stores, in their order."""
    for stored in items:
        if stored.item.kind == DENSE:
            yield dense[stored.item.index].contiguous()
            continue
        ids, rows = sparse[stored.item.index]
        if (stored.start, stored.stop) != (0, stored.item.shape[0]):
            is_here = (ids >= stored.start) & (ids < stored.stop)
            ids, rows = ids[is_here], rows[is_here]
        yield ids.contiguous()
        yield rows.contiguous()


def _is_split(stored: StoredItem, values: torch.Tensor) -> bool:
    """Return whether servers share the rows of these values: of a table, or of a state with a row for each row of a table."""
    return stored.item.kind == TABLE and values.shape[:1] == stored.item.shape[:1]


def _row_blocks(stored: StoredItem, values: torch.Tensor) -> Iterator[tuple[int, int]]:
    """Yield the first row and the end of blocks of some megabytes of the rows on one server."""
    count = max(1, 16 * CHUNK // max(1, values[:1].numel() * values.element_size()))
    for start in range(stored.start, stored.stop, count):
        yield start, min(start + count, stored.stop)


def message_of_outside(line: str | None, item: Item, row: int) -> str:
    """Return the message for a row that a table does not have."""
    return f"{line}: a lookup of row {row} of {item.name}, which has {item.shape[0]} rows on servers."
