"""The server: stores parameters, collects the gradients of all workers for a step, and lets the optimizer apply their mean.

Dense gradients are added in the order of the ranks and divided by the number of workers; the rows of sparse gradients are concatenated in
the same order. The results therefore do not depend on which worker comes first. The main thread runs the optimizer; a thread of the
transport runs each call.
"""
from __future__ import annotations

import itertools
import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

from torchspore.distributed.parameter_server.assignment import DENSE, TABLE, Item, Plan, assign, rows_of
from torchspore.distributed.parameter_server.messages import MalformedMessage, Message, decode, encode, size_of, unpack
from torchspore.errors import CommunicationError

MOST_ROWS = 1 << 31
"""The largest number of bytes of one table's rows in a message."""


@dataclass(frozen=True)
class StoredItem:
    """A parameter, or the rows from `start` to `stop` of a table, on this server."""

    item: Item
    start: int = 0
    stop: int = 0

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the stored values."""
        return self.item.shape if self.item.kind == DENSE else (self.stop - self.start, *self.item.shape[1:])


def stored_items(plans: list[Plan], server: int, servers: int) -> dict[str, list[StoredItem]]:
    """Return what a server stores, by plan, in the order of the optimizer's Parameters."""
    places = assign(plans, servers)
    result: dict[str, list[StoredItem]] = {}
    for plan in plans:
        items = result.setdefault(plan.key, [])
        for item in plan.items:
            if item.kind == TABLE:
                items.append(StoredItem(item, *rows_of(item.shape[0], server, servers)))
            elif places[plan.key, item.index] == server:
                items.append(StoredItem(item))
    return result


Gradient = torch.Tensor | tuple[torch.Tensor, torch.Tensor]
"""A dense gradient, or the row numbers (n,) int64 on this server and the rows (n, ...) of a sparse one."""
Scalars = dict[str, list[float]]
"""The numbers of the optimizer that the workers send with each step, by "scalars" (its Parameters with one element) and "decays"."""


class Share(Protocol):
    """The Parameters of this server and the states of their optimizers."""

    def values(self, key: str) -> list[torch.Tensor]:
        """Return the values of a plan's stored items."""

    def state(self, key: str, name: str) -> torch.Tensor | None:
        """Return a state of a plan's optimizer by its name; None if this server does not have it."""

    def update(self, key: str, gradients: list[Gradient], scalars: Scalars) -> None:
        """Apply the mean gradients of a plan's stored items."""


@dataclass
class _Step:
    """The gradients that the workers have pushed for a step."""

    pushed: dict[int, list[torch.Tensor]] = field(default_factory=dict)
    scalars: Scalars = field(default_factory=dict)
    done: threading.Event = field(default_factory=threading.Event)
    error: str = ""
    changed: dict[int, torch.Tensor] = field(default_factory=dict)
    """By the index of a table the rows that changed, as row numbers of the full table."""


@dataclass
class _Question:
    """A flag of each worker."""

    flags: dict[int, bool] = field(default_factory=dict)
    done: threading.Event = field(default_factory=threading.Event)


class ParameterStore:
    """The state of a server and the handlers of its calls: Register, Step, Pull, Prefetch, Load, Agree.

    The handlers read and write the tensors of `share`; its `update` runs in the thread that calls `run`. `counts` are those of the
    snapshot, after a restart.
    """

    def __init__(
        self, plans: list[Plan], server: int, servers: int, workers: int, share: Share, timeout: float,
        counts: dict[str, dict[str, int]] | None = None,
    ) -> None:
        self.plans, self.items = {plan.key: plan for plan in plans}, stored_items(plans, server, servers)
        self._server, self._workers, self._share, self._values, self._timeout = server, workers, share, share.values, timeout
        self._save: Callable[[], None] | None = None
        self._save_steps = 1
        self.steps = dict.fromkeys(self.plans, 0) | (counts or {}).get("steps", {})
        """By plan the number of the last step that was applied."""
        self.saved_steps = dict(self.steps)
        """By plan the number of the step in the last snapshot; workers repeat later steps after a restart."""
        self._pending: dict[tuple[str, int], _Step] = {}
        self._questions: dict[int, _Question] = {}
        self._ended: dict[int, str] = {}
        """By the rank of a worker whose program has ended the text of the error for the others."""
        self._loads: dict[str, int] = (counts or {}).get("loads", {})
        """By plan, index and state the number of the last load from worker 0 that all workers take part in."""
        self._loaded = threading.Condition()
        self._jobs: queue.Queue[tuple[str, int] | None] = queue.Queue()
        self._lock = threading.Lock()
        self._is_loaded = threading.Event()
        if counts is not None:
            self._is_loaded.set()
        self.handlers = {
            "Register": self._register, "Step": self._step, "Pull": self._pull, "Prefetch": self._prefetch, "Load": self._load,
            "Agree": self._agree,
        }

    def set_snapshots(self, save: Callable[[], None], steps: int) -> None:
        """Call `save` after each `steps` steps, before the workers get the answer of that step."""
        self._save, self._save_steps = save, steps

    def counts(self) -> dict[str, dict[str, int]]:
        """Return the numbers of the last steps by plan, and of the last loads by subject, for a snapshot."""
        return {"steps": dict(self.steps), "loads": dict(self._loads)}

    # ---- the main thread

    def run(self, check: Callable[[], bool]) -> None:
        """Apply updates until `check` returns False; it is called several times a second and may raise."""
        while check():
            try:
                job = self._jobs.get(timeout=0.1)
            except queue.Empty:
                continue
            if job is not None:
                self._apply(*job)

    def _apply(self, key: str, number: int) -> None:
        step = self._pending[key, number]
        try:
            gradients = self._mean(key, step)
            with self._lock:
                if gradients:                              # an optimizer that needs all its parameters runs on one server only
                    self._share.update(key, gradients, step.scalars)
                self.steps[key] = number
            if self._save is not None and number % self._save_steps == 0:
                self._save()
                self.saved_steps = dict(self.steps)
        except Exception as error:                         # the workers raise it; this process ends by `check`
            step.error = f"server {self._server}: {type(error).__name__}: {error}"
        step.pushed.clear()
        step.done.set()

    def _mean(self, key: str, step: _Step) -> list[Gradient]:
        """Return the means of the workers' gradients, and record the rows that change."""
        gradients: list[Gradient] = []
        position = 0
        for stored in self.items[key]:
            if stored.item.kind == DENSE:
                total = step.pushed[0][position].clone()
                for worker in range(1, self._workers):
                    total += step.pushed[worker][position]
                gradients.append(total / self._workers if self._workers > 1 else total)
                position += 1
                continue
            ids = torch.cat([step.pushed[worker][position] for worker in range(self._workers)])
            rows = torch.cat([step.pushed[worker][position + 1] for worker in range(self._workers)])
            gradients.append((ids - stored.start, rows / self._workers if self._workers > 1 else rows))
            if not stored.item.changes_all_rows:
                step.changed[stored.item.index] = torch.unique(ids)
            position += 2
        return gradients

    # ---- calls

    def _limit(self, key: str) -> int:
        """Return the largest number of bytes of a plan's tensors in one message."""
        values = self._values(key)
        tables = sum(MOST_ROWS for stored in self.items[key] if stored.item.kind == TABLE)
        return size_of([t for stored, t in zip(self.items[key], values) if stored.item.kind == DENSE]) + tables

    def _plan(self, facts: dict[str, Any]) -> str:
        key = facts.get("plan")
        if key not in self.plans:
            raise ValueError(f"server {self._server} has no optimizer {str(key)[:60]!r}; it has {', '.join(self.plans) or 'none'}.")
        return str(key)

    def _register(self, requests: Iterator[bytes]) -> Iterator[bytes]:
        """Compare a worker's plans with those of this server; answer with the steps that are done."""
        facts = decode(requests, 0).facts
        local = [plan.describe() for plan in self.plans.values()]
        if facts.get("plans") != local:
            raise ValueError(_difference(self._server, facts.get("plans"), local))
        yield from encode(Message({"steps": self.steps, "saved": self.saved_steps, "loaded": self._is_loaded.is_set()}))

    def _step(self, requests: Iterator[bytes]) -> Iterator[bytes]:
        """Take a worker's gradients of a step; answer with the new values when all workers' gradients are applied."""
        requests, facts = _peeked(requests)
        key = self._plan(facts)
        message = decode(requests, self._limit(key))
        worker, number = facts.get("worker"), facts.get("step")
        if type(worker) is not int or not 0 <= worker < self._workers or type(number) is not int or number < 1:
            raise MalformedMessage("a step without worker and number")
        self._check_tensors(key, message.tensors)
        if number <= self.steps[key]:                      # repeated after a restart: this server has applied it
            yield from self._answer(key, number, {}, bool(facts.get("quiet")))
            return
        if number != self.steps[key] + 1:                  # a worker sends a step after the answer to the one before it
            raise ValueError(f"server {self._server} expects step {self.steps[key] + 1} of {key}, worker {worker} sent step {number}.")
        step = self._collect(key, number, worker, message)
        if not step.done.wait(self._timeout):
            absent = [rank for rank in range(self._workers) if rank not in step.pushed]
            names = ", ".join(f"worker {rank}" for rank in absent)
            raise CommunicationError(f"server {self._server}: {names} did not push step {number} within {self._timeout:g} s.")
        if step.error:
            raise CommunicationError(step.error)
        yield from self._answer(key, number, step.changed, bool(facts.get("quiet")))

    def _collect(self, key: str, number: int, worker: int, message: Message) -> _Step:
        scalars = {name: _numbers(message.facts.get(name)) for name in ("scalars", "decays")}
        with self._lock:
            step = self._pending.setdefault((key, number), _Step())
            if step.scalars and repr(step.scalars) != repr(scalars):        # by repr, because NaN differs from itself
                raise ValueError(f"worker {worker} has {scalars} at step {number} of {key}, another worker {step.scalars}.")
            step.scalars = scalars
            step.pushed[worker] = message.tensors
            self._pending.pop((key, number - 2), None)
            self._check_ended(step, f"step {number} of {key}")
            if len(step.pushed) == self._workers and not step.done.is_set():
                self._jobs.put((key, number))
        return step

    def end_workers(self, ranks: set[int]) -> None:
        """Let steps that would wait for these workers, whose programs have ended, fail."""
        with self._lock:
            for rank in ranks - set(self._ended):
                counts = ", ".join(f"{count} steps of {key}" for key, count in self.steps.items())
                self._ended[rank] = f"the program of worker {rank} has ended after {counts}"
            for (key, number), step in self._pending.items():
                self._check_ended(step, f"step {number} of {key}")
            for question in self._questions.values():
                if any(rank not in question.flags for rank in self._ended):
                    question.done.set()
        with self._loaded:
            self._loaded.notify_all()

    def _check_ended(self, step: _Step, subject: str) -> None:
        """Let a step fail if a worker that has not pushed it has ended."""
        text = next((text for rank, text in self._ended.items() if rank not in step.pushed), "")
        if text and not step.done.is_set():
            step.error = f"server {self._server}: {text}; {subject} needs all workers."
            step.done.set()

    def _answer(self, key: str, number: int, changed: dict[int, torch.Tensor], is_quiet: bool) -> Iterator[bytes]:
        """Yield the dense values after a step, then for each table the numbers of the rows that changed and their values."""
        facts = {"step": number, "saved": self.saved_steps[key]}
        if is_quiet:
            yield from encode(Message(facts))
            return
        tensors = []
        for stored, t in zip(self.items[key], self._values(key)):
            if stored.item.kind == DENSE:
                tensors.append(t)
            else:
                rows = changed.get(stored.item.index, torch.empty(0, dtype=torch.int64))
                tensors += [rows, t.index_select(0, rows - stored.start)]
        yield from encode(Message(facts, tensors))

    def _check_tensors(self, key: str, tensors: list[torch.Tensor]) -> None:
        """Raise MalformedMessage unless the tensors are gradients of the stored items."""
        expected = sum(1 if stored.item.kind == DENSE else 2 for stored in self.items[key])
        if len(tensors) != expected:
            raise MalformedMessage(f"{len(tensors)} tensors, where {expected} are expected")
        iterator = iter(tensors)
        for stored, value in zip(self.items[key], self._values(key)):
            t = next(iterator)
            if stored.item.kind == DENSE:
                if t.shape != value.shape or t.dtype != value.dtype:
                    raise MalformedMessage(f"a gradient of {stored.item.name} with shape {list(t.shape)} and dtype {t.dtype}")
                continue
            self._check_rows(stored, t)
            rows = next(iterator)
            if rows.shape != (len(t), *stored.shape[1:]) or rows.dtype != value.dtype:
                raise MalformedMessage(f"rows of {stored.item.name} with shape {list(rows.shape)} and dtype {rows.dtype}")

    @staticmethod
    def _check_rows(stored: StoredItem, ids: torch.Tensor) -> None:
        is_valid = ids.ndim == 1 and ids.dtype == torch.int64
        if not is_valid or (len(ids) and not (stored.start <= int(ids.min()) and int(ids.max()) < stored.stop)):
            raise MalformedMessage(f"row numbers of {stored.item.name} outside {stored.start} to {stored.stop - 1}")

    def _pull(self, requests: Iterator[bytes]) -> Iterator[bytes]:
        """Answer with the values of an item: all of them, or the rows that the message lists."""
        requests, facts = _peeked(requests)
        key = self._plan(facts)
        message = decode(requests, MOST_ROWS)
        stored, value = self._item(key, facts.get("index"), facts.get("state"))
        if not self._is_loaded.wait(self._timeout):
            raise CommunicationError(f"server {self._server}: worker 0 did not send initial values within {self._timeout:g} s.")
        with self._lock:
            if message.tensors:
                self._check_rows(stored, message.tensors[0])
                result = value.index_select(0, message.tensors[0] - stored.start)
            elif "stop" in facts:
                start, stop = facts.get("start"), facts["stop"]
                if type(start) is not int or type(stop) is not int or not (value.ndim and 0 <= start <= stop <= len(value)):
                    raise MalformedMessage(f"rows {start!r:.20} to {stop!r:.20} of {stored.item.name}")
                result = value[start:stop].clone()
            else:
                result = value.clone()
        yield from encode(Message({}, [result]))

    def _prefetch(self, requests: Iterator[bytes]) -> Iterator[bytes]:
        """Answer with rows of a plan's tables, after a step is applied."""
        requests, facts = _peeked(requests)
        key, indexes = self._plan(facts), facts.get("indexes")
        message = decode(requests, MOST_ROWS)
        if not isinstance(indexes, list) or len(indexes) != len(message.tensors):
            raise MalformedMessage("rows without the indexes of their tables")
        items = [self._item(key, index) for index in indexes]
        for (stored, _), rows in zip(items, message.tensors):
            self._check_rows(stored, rows)
        self._wait_for_step(key, facts.get("step"))
        with self._lock:
            values = [value.index_select(0, rows - stored.start) for (stored, value), rows in zip(items, message.tensors)]
        yield from encode(Message({}, values))

    def _wait_for_step(self, key: str, number: Any) -> None:
        """Wait until a step is applied: the last one or the next one. Raises CommunicationError if it fails."""
        if type(number) is not int or not 0 <= number <= self.steps[key] + 1:
            raise MalformedMessage(f"rows after step {number!r:.20} of {key}, which is at step {self.steps[key]}")
        with self._lock:
            if number <= self.steps[key]:
                return
            step = self._pending.setdefault((key, number), _Step())
            self._check_ended(step, f"step {number} of {key}")
        if not step.done.wait(self._timeout) or step.error:
            raise CommunicationError(step.error or f"server {self._server}: step {number} of {key} was not applied in time.")

    def _load(self, requests: Iterator[bytes]) -> Iterator[bytes]:
        """Replace the values of an item by those in the message, from the row `start` on; a message without tensor ends the transfer."""
        requests, facts = _peeked(requests)
        if facts.get("kind") == "complete":
            decode(requests, 0)
            with self._lock:
                if self._save is not None and not self._is_loaded.is_set():       # a server that is lost before the first snapshot
                    self._save()
            self._is_loaded.set()
            yield from encode(Message({}))
            return
        key = self._plan(facts)
        stored, value = self._item(key, facts.get("index"), facts.get("state"))
        subject, number = f"{key}/{stored.item.index}/{facts.get('state')}", facts.get("number", 0)
        if type(number) is not int:
            raise MalformedMessage("a load without number")
        if facts.get("kind") == "wait":
            decode(requests, 0)
            self._wait_for_load(subject, number)
            yield from encode(Message({}))
            return
        message = decode(requests, value.numel() * value.element_size())
        with self._lock, torch.no_grad():
            _copy(stored, value, message.tensors, facts.get("start"))
        if facts.get("is_last"):
            with self._loaded:
                self._loads[subject] = max(number, self._loads.get(subject, 0))
                self._loaded.notify_all()
        yield from encode(Message({}))

    def _wait_for_load(self, subject: str, number: int) -> None:
        """Wait until worker 0 has replaced values as often as the asking worker."""
        with self._loaded:
            self._loaded.wait_for(lambda: self._loads.get(subject, 0) >= number or 0 in self._ended, self._timeout)
            if self._loads.get(subject, 0) < number:
                raise CommunicationError(f"server {self._server}: worker 0 did not send the values of {subject} that another worker loads.")

    def _item(self, key: str, index: Any, state: Any = None) -> tuple[StoredItem, torch.Tensor]:
        """Return a stored item with its values, or with a state of the optimizer for it."""
        for stored, value in zip(self.items[key], self._values(key)):
            if stored.item.index == index:
                if state is None:
                    return stored, value
                tensor = self._share.state(key, state) if isinstance(state, str) else None
                if tensor is not None:
                    return stored, tensor
        raise ValueError(f"server {self._server} does not store parameter {index!r:.20} of {key} ({str(state)[:60]}).")

    def _agree(self, requests: Iterator[bytes]) -> Iterator[bytes]:
        """Collect a flag of each worker; answer whether one of them is True."""
        facts = decode(requests, 0).facts
        worker, number, flag = facts.get("worker"), facts.get("number"), facts.get("flag")
        if type(worker) is not int or not 0 <= worker < self._workers or type(number) is not int or not isinstance(flag, bool):
            raise MalformedMessage("a flag without worker and number")
        with self._lock:
            question = self._questions.setdefault(number, _Question())
            question.flags[worker] = flag
            self._questions.pop(number - 2, None)
            if len(question.flags) == self._workers or any(rank not in question.flags for rank in self._ended):
                question.done.set()
        if not facts.get("is_repeated"):
            is_answered = question.done.wait(self._timeout)
            absent = [rank for rank in range(self._workers) if rank not in question.flags]
            if absent:
                reason = self._ended.get(absent[0], f"worker {absent[0]} did not send its flag" if not is_answered else "the job is lost")
                raise CommunicationError(f"server {self._server}: {reason}; a decision of all workers waits for it.")
        yield from encode(Message({"flag": any(question.flags.values())}))

    def fail(self, text: str) -> None:
        """Let all waiting calls fail with this text."""
        for step in list(self._pending.values()):
            step.error = step.error or text
            step.done.set()
        for question in list(self._questions.values()):
            question.done.set()
        self._is_loaded.set()


def _numbers(values: Any) -> list[float]:
    """Return a list of numbers in a message. Raises MalformedMessage."""
    if not isinstance(values, list) or not all(isinstance(value, (int, float)) for value in values):
        raise MalformedMessage("a step without scalars and decays")
    return [float(value) for value in values]


def _copy(stored: StoredItem, value: torch.Tensor, tensors: list[torch.Tensor], start: Any) -> None:
    """Copy the tensor of a load into `value`, or into its rows from `start` on. Raises MalformedMessage if it does not fit."""
    part = tensors[0] if len(tensors) == 1 else torch.empty(0)
    target = value
    if start is not None:
        if type(start) is not int or start < 0 or not (part.ndim and value.ndim):
            raise MalformedMessage(f"rows of {stored.item.name} from {start!r:.20}")
        target = value[start:start + len(part)]
    if part.dtype != value.dtype or part.shape != target.shape:
        raise MalformedMessage(f"values of {stored.item.name} with shape {list(part.shape)} and dtype {part.dtype}")
    target.copy_(part)


def _peeked(requests: Iterator[bytes]) -> tuple[Iterator[bytes], dict[str, Any]]:
    """Return the chunks of a message again, with the facts of its header."""
    first = next(requests, b"")
    return itertools.chain((first,), requests), unpack(first)


def _difference(server: int, remote: Any, local: list[Any]) -> str:
    """Name the first difference between a worker's plans and those of this server."""
    remote_plans = remote if isinstance(remote, list) else []
    for theirs, ours in zip(remote_plans, local):
        for their_row, our_row in zip(theirs, ours):
            if their_row != our_row:
                return f"server {server} has {our_row}, the worker {their_row}: all processes must run the same program."
    return f"server {server} has {len(local)} optimizers with parameters on servers, the worker {len(remote_plans)} of other sizes."
