"""Code of a graph that runs as at O0 until another process has compiled a faster form, which then takes over between two calls.

The other process starts when the graph has run about as long as its compilation takes, so that a short program does without it. It uses
only idle processors for PATIENCE times as long. If that does not suffice, it also takes time from the program, which has run long enough.

The form is run once on copies of the inputs of a call, and must give O0's numbers as in the race of `variant_race`. Then calls alternate
between both, so that the comparison costs no extra run, and the faster one stays.
"""
from __future__ import annotations

import contextlib
import functools
import os
import statistics
import threading
from collections.abc import Callable
from typing import Any

import torch

from torchspore.base import event_log
from torchspore.base.frames import user_line
from torchspore.base.garbage_collection import garbage_collection_paused
from torchspore.context import effects
from torchspore.engine.execution import current_operator
from torchspore.engine.native import allocator
from torchspore.engine.torch_internals import custom_operators
from torchspore.engine.torch_internals.torch_private import is_operator
from torchspore.graph.backend import inductor, measurement, stored_graph, variants
from torchspore.graph.backend.eager_codegen import Code
from torchspore.graph.backend.variant_race import WORTH, Race
from torchspore.graph.compile_cache import INDUCTOR_DIRECTORY, autotune_cache, inductor_in
from torchspore.graph.fx import allowed_functions, serialize
from torchspore.graph.fx.fingerprint import fingerprint
from torchspore.graph.fx.modules import copy_module
from torchspore.graph.report import outcomes, stages
from torchspore.graph.settings import Settings
from torchspore.graph.tiers import reasons_to_wait
from torchspore.graph.tiers.compiler_process import COMPILER, SECTION, Job
from torchspore.translations import translatable, translate

Module = torch.fx.GraphModule
Complete = Callable[[Module, measurement.Inputs], Code]
"""Compiles a graph at its level, with the results that are stored."""
PATIENCE = 5
"""How many times the usual duration of a compilation the other process uses only idle processors."""
LEAST, MOST, SECONDS = 3, 25, 0.3
"""The number of calls of each form in the comparison: at least and at most so many, or until they took so many seconds."""


def compile(
    module: Module, inputs: measurement.Inputs, settings: Settings, persistent: frozenset[int], plain: Callable[[Module], Code],
    complete: Complete,
) -> Code:
    """Return code that starts as O0's, or completely compiled code if that is stored or the graph must wait.

    `plain` compiles a graph, which it may change, as at O0.
    """
    if reasons_to_wait.waits_for_choice(settings):
        return complete(module, inputs)
    reason = reasons_to_wait.reason_to_wait(module, settings)
    if reason is not None:
        return _wait(module, inputs, complete, translate(reason))
    key = fingerprint(module, settings)
    if autotune_cache.find(key) is not None:
        with contextlib.suppress(inductor.NotStored), inductor.only_stored() as missing:
            code = complete(module, inputs)
            if not missing:
                return code
    try:
        with allowed_functions.between_processes():
            graph = serialize.write(module)
    except serialize.Unwritable as unwritable:
        return _wait(module, inputs, complete, str(unwritable))
    request = {
        "key": key, "graph": graph, "entry": stored_graph.describe(inputs, settings, persistent), "homes": _homes(module),
        "threads": torch.get_num_threads(), "folder": _folder(),
    }
    text = translate("{level}: graphs start as at O0; another process compiles faster forms, which take over between two calls")
    outcomes.level(text.format(level=settings.level))
    seconds = 0.0 if reasons_to_wait.starts_at_once() else reasons_to_wait.seconds_to_compile(module)
    tier = _Tier(plain(copy_module(module)), module, complete, seconds)
    tier.prepare(key, request)

    def run(*tensors: torch.Tensor) -> list[Any]:
        return tier.step(*tensors)

    tier.code = stages.shown(run, stages.graph_of(tier.plain))
    return tier.code


def _wait(module: Module, inputs: measurement.Inputs, complete: Complete, reason: str) -> Code:
    text = translate("{line}: the first call waits for the compiler: {reason}").format(line=user_line() or "", reason=reason)
    effects.note(SECTION, text)
    event_log.event("tier", text)
    return complete(module, inputs)


def _folder() -> str:
    """Inductor's directory as an absolute path; empty if Inductor chooses it."""
    folder = os.environ.get(INDUCTOR_DIRECTORY, "")
    return os.path.abspath(folder) if folder else ""


def _homes(module: Module) -> list[str]:
    """The modules that define torchspore's operators in the graph."""
    names = {node.target._opname for node in module.graph.nodes if is_operator(node.target) and node.target.namespace == "torchspore"}
    return sorted({custom_operators.HOMES[name] for name in names})


class _Report:
    """The line of `explain` about one graph; it outlives the graph."""

    def __init__(self) -> None:
        self._line = user_line() or ""
        self.calls = 0
        self._text = translatable(
            "its compilation had not started when the program ended: the {calls} calls took less time than a compilation; they ran as at "
            "O0 (TORCHSPORE_WAIT=1 compiles before the first call)")

    def __call__(self) -> str:
        return f"{self._line}: {translate(self._text).format(calls=self.calls)}"

    def begin(self) -> None:
        """The other process compiles from now on."""
        self._text = translatable(
            "its faster form was not ready when the program ended; all {calls} calls ran as at O0 (TORCHSPORE_WAIT=1 waits for it)")

    def tell(self, text: str) -> None:
        """Report a text, in which braces have no meaning."""
        self._text = text.replace("{", "{{").replace("}", "}}")
        event_log.event("tier", self())

    @property
    def line(self) -> str:
        """The user's line that ran the graph first."""
        return self._line


class _Tier:
    """The states of one graph: running O0's code before and during the compilation; taking over; comparing; decided."""

    def __init__(self, plain: Code, module: Module, complete: Complete, seconds: float) -> None:
        """The other process starts when the calls have taken `seconds`."""
        self.plain, self.code = plain, plain
        self._module: Module | None = module
        self._complete: Complete | None = complete
        self._seconds_until_start = seconds
        self._report = _Report()
        self._lock = threading.Lock()
        self._times: tuple[list[float], list[float]] = ([], [])
        self._new: Code = plain
        self._job: Job | None = None
        self.step: Code = self._count_down

    def prepare(self, key: str, request: dict[str, Any]) -> None:
        """Take what the other process needs, and start it at once if the calls need not take any time before."""
        effects.note(SECTION, self._report)
        patience = PATIENCE * self._seconds_until_start
        self._job = Job(key, request, self._end, autotune_cache.ACTIVE.store, patience)
        if self._seconds_until_start <= 0:
            self._begin()

    def _begin(self) -> None:
        """Let the other process compile the graph."""
        assert self._job is not None
        self.step = self._count
        self._report.begin()
        COMPILER.submit(self._job)

    def _count_down(self, *inputs: torch.Tensor) -> list[Any]:
        self._report.calls += 1
        started = measurement.now()
        outs = self.plain(*inputs)
        self._seconds_until_start -= measurement.now() - started
        if self._seconds_until_start <= 0 and self._lock.acquire(blocking=False):
            try:
                if self.step == self._count_down:
                    self._begin()
            finally:
                self._lock.release()
        return outs

    def _count(self, *inputs: torch.Tensor) -> list[Any]:
        self._report.calls += 1
        return self.plain(*inputs)

    def _end(self) -> None:
        """The other process has finished; this is another thread than the program's."""
        job = self._job
        assert job is not None
        if job.failure:
            inductor.fail(job.failure, self._report.line)
        if job.error:
            self._stay(translate("stays as at O0: {reason}").format(reason=job.error))
        elif job.results.get(job.key, variants.PLAIN) == variants.PLAIN and not any(choice == "lanes" for choice in job.results.values()):
            self._stay(translate("O0's form is the fastest; finding that out took {seconds:.1f} s").format(seconds=job.seconds))
            job.keep(job.key, variants.PLAIN)
        else:
            self.step = self._take_over

    def _stay(self, text: str) -> None:
        self._report.tell(text)
        self._settle(self.plain)

    def _settle(self, code: Code) -> None:
        self.step, self._new = code, code
        self._module = self._complete = self._job = None
        stages.shown(self.code, stages.graph_of(code))

    def _take_over(self, *inputs: torch.Tensor) -> list[Any]:
        self._report.calls += 1
        if not current_operator.followers and self._lock.acquire(blocking=False):          # a dump reads what each operator runs
            try:
                if self.step == self._take_over:
                    self._check(inputs)
            finally:
                self._lock.release()
        return self.plain(*inputs)

    def _check(self, inputs: tuple[torch.Tensor, ...]) -> None:
        """Build the new form and compare its numbers with O0's for these inputs."""
        try:
            code = self._build(inputs)
            race = Race(lambda: list(inputs))
            race.enter(variants.PLAIN, lambda: self.plain)
            race.enter("new", lambda: code)
        except measurement.Unrunnable:                  # the run that follows reports it to the program
            return
        except Exception as error:                      # the program runs as before, and this is reported
            text = translate("stays as at O0: {reason}")
            self._stay(text.format(reason=f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')[:200]}"))
            return
        if "new" not in race.codes:
            self._keep(variants.PLAIN)
            self._stay(translate("stays as at O0: the form {choice!r} gives other numbers").format(choice=self._choice))
            return
        self._new, self.step = code, self._compare

    @property
    def _choice(self) -> str:
        assert self._job is not None
        return self._job.results[self._job.key]

    def _build(self, inputs: tuple[torch.Tensor, ...]) -> Code:
        job, module, complete = self._job, self._module, self._complete
        assert job is not None and module is not None and complete is not None
        with autotune_cache.stored_in(job), inductor_in(job.folder), inductor.only_stored() as missing, allocator.aside():
            with garbage_collection_paused():
                code = complete(module, functools.partial(list, inputs))
        if missing:
            event_log.event("tier", f"kernels that the other process did not store: {', '.join(missing)}")
        return code

    def _compare(self, *inputs: torch.Tensor) -> list[Any]:
        """Run one of both forms, in turns, and decide after enough runs."""
        if not self._lock.acquire(blocking=False):
            return self.plain(*inputs)
        try:
            before, after = self._times
            is_new = len(before) > len(after)
            started = measurement.now()
            outs = (self._new if is_new else self.plain)(*inputs)
            (after if is_new else before).append(measurement.now() - started)
            if is_new and (len(after) >= MOST or (len(after) >= LEAST and sum(after) > SECONDS)) and self.step == self._compare:
                self._decide()
            return outs
        finally:
            self._lock.release()

    def _decide(self) -> None:
        assert self._job is not None
        before, after = self._times
        usual = statistics.median(before), statistics.median(after)
        ratio = min(usual[0] / usual[1], statistics.median(b / a for b, a in zip(before, after)))      # in noise O0 stays
        shown = f"{usual[0] * 1e3:.3f} -> {usual[1] * 1e3:.3f} ms"
        choice, seconds = self._choice, self._job.seconds
        if ratio * WORTH < 1:
            self._keep(variants.PLAIN)
            text = translate("stays as at O0: the form {choice!r}, compiled in {seconds:.1f} s, is not faster ({times})")
            self._stay(text.format(choice=choice, seconds=seconds, times=shown))
            return
        self._keep(choice)
        text = translate("{choice!r} was compiled in {seconds:.1f} s and took over after call {calls}: {ratio:.2f} times faster ({times})")
        self._report.tell(text.format(choice=choice, seconds=seconds, calls=self._report.calls, ratio=ratio, times=shown))
        self._settle(self._new)

    def _keep(self, choice: str) -> None:
        """Store the form for equal graphs, in this process and in the compile cache."""
        assert self._job is not None
        with autotune_cache.stored_in(self._job):
            autotune_cache.keep(self._job.key, choice)
