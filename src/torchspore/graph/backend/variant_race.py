"""Forms of one graph race on copies of its inputs; one that gives other numbers than the first does not count."""
from __future__ import annotations

from collections.abc import Callable

from torchspore.base import event_log, progress
from torchspore.graph.backend import measurement
from torchspore.graph.backend.eager_codegen import Code
from torchspore.translations import translate

WORTH = 0.98
"""A later form is used if it needs at most this share of the time of an earlier, simpler one."""
NEAR = 2e-3
"""How far the results of a form may be off, as a share of the greatest value of each."""
NEAR_STATE, FAR_STATE, FEW = 0.05, 2.5, 0.1
"""The same for values that the graph writes into, of which a tenth (at least three tensors) may differ by up to FAR_STATE: a relu that
switches at a differently rounded sum affects an entire gradient, and Adam makes a full step for a gradient that is only rounding noise (the
bias of attention's keys). Deep nets have more of these: they allow TIMES as many tensors as the first form itself changes when its inputs
are rounded differently."""
TIMES = 1.5

Tensors = list[measurement.Tensor]


class Race:
    """Forms that were entered, with the least seconds of a run of each; nothing live is written, no random state is disturbed."""

    def __init__(self, inputs: measurement.Inputs) -> None:
        self.codes: dict[str, Code] = {}
        self.seconds: dict[str, float] = {}
        with measurement.undisturbed():
            self._inputs = [measurement.copy(t) for t in inputs()]
        self._expected: tuple[Tensors, Tensors] | None = None
        self._touchy: int | None = None

    def enter(self, name: str, make: Callable[[], Code]) -> None:
        """Build a form and run it; it takes part if its numbers equal those of the first, which always takes part.

        Raises measure.Unrunnable if the first fails.
        """
        progress.note(translate("measures the form {name!r} of the graph.").format(name=name))
        with measurement.undisturbed():
            code = make()
            try:
                results = self._run(code)
            except (RuntimeError, AssertionError, IndexError, ValueError) as error:    # Inductor asserts strides
                if self._expected is None:
                    raise measurement.Unrunnable(str(error).partition("\n")[0]) from None
                event_log.event("level", f"{name} is left out: {str(error).splitlines()[0]:.120}")
                return
            if self._expected is None:
                self._expected = results
            off, far, farthest = self._compared(results)
            count = len(results[1])
            is_near = off <= NEAR and farthest <= FAR_STATE
            if not is_near or (far > max(3, FEW * count) and far > TIMES * self._rounding()):
                event_log.event("level", f"{name} is excluded: its results differ by {off:.1e}, {far} of {count} written tensors too")
                return
            self.codes[name] = code

    def _compared(self, results: tuple[Tensors, Tensors]) -> tuple[float, int, float]:
        """Return the error of the results; the number of mutated tensors with a large error, and the largest error of one."""
        assert self._expected is not None
        off = measurement.differs(self._expected[0], results[0])
        written_differences = [measurement.differs([value], [other]) for value, other in zip(self._expected[1], results[1])]
        return off, sum(not each <= NEAR_STATE for each in written_differences), max(written_differences, default=0.0)

    def _rounding(self) -> int:
        """Return how many mutated tensors change much when the first form gets its inputs rounded differently."""
        if self._touchy is None:
            copies = [measurement.rounded_otherwise(t) for t in self._inputs]
            with measurement.with_equal_seed():
                results = next(iter(self.codes.values()))(*copies), copies
            self._touchy = self._compared(results)[1]
            event_log.event("level", f"{self._touchy} of {len(copies)} written tensors are off when the inputs of O0 are rounded otherwise")
        return self._touchy

    def __str__(self) -> str:
        return ", ".join(f"{name} {took * 1e3:.3f} ms" for name, took in self.seconds.items())

    def inputs(self) -> Tensors:
        """Copies of the inputs."""
        return [measurement.copy(t) for t in self._inputs]

    def _run(self, code: Code) -> tuple[Tensors, Tensors]:
        copies = self.inputs()
        with measurement.with_equal_seed():
            return code(*copies), copies

    def best(self) -> str:
        """Return the name of the fastest form; new forms alternate with the previous winner."""
        new = [name for name in self.codes if name not in self.seconds]
        if new:
            running = {name: self.codes[name] for name in (*([self._fastest()] if self.seconds else []), *new)}
            with measurement.undisturbed():
                for name, took in measurement.seconds(running, self.inputs()).items():
                    self.seconds[name] = min(took, self.seconds.get(name, took))
        return self._fastest()

    def _fastest(self) -> str:
        best = next(iter(self.codes))
        for name, took in self.seconds.items():
            if took < WORTH * self.seconds[best]:
                best = name
        return best
