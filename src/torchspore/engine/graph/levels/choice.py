"""Forms of one graph, measured; the fastest that gives the same numbers is kept."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torchspore.engine.graph import log
from torchspore.engine.graph.levels import measure
from torchspore.engine.graph.levels.straight import Code

WORTH = 0.98
"""A later form is taken where it needs at most this share of the time of an earlier, simpler one."""
NEAR = 2e-3
"""How far the results of a form may be off, as a share of the greatest value of each."""
NEAR_STATE = 0.5
"""The same for what the graph writes into: where a relu tips over at a sum rounded otherwise, a whole gradient is there or not there."""


@dataclass
class Form:
    """One way to run a graph. `make` may raise: then this form is none."""

    name: str
    make: Callable[[], Code]


@dataclass
class Chosen:
    """The outcome: which form, its code, and the least seconds of a run of each that was measured."""

    name: str
    code: Code
    seconds: dict[str, float]


def fastest(forms: list[Form], inputs: measure.Inputs) -> Chosen:
    """The fastest of the forms, by runs on copies of the inputs; the first is the yardstick for numbers and must run."""
    with measure.undisturbed():
        own = [measure.copy(t) for t in inputs()]
        codes = {forms[0].name: forms[0].make()}
        expected, state = _tried(codes[forms[0].name], own)
        for form in forms[1:]:
            code = _made(form)
            if code is not None and _agrees(form.name, code, own, expected, state):
                codes[form.name] = code
        del expected, state
        if len(codes) == 1:
            return Chosen(forms[0].name, codes[forms[0].name], {})
        times = measure.seconds(codes, own)
    best = forms[0].name
    for name, took in times.items():
        if took < WORTH * times[best]:
            best = name
    log.event("level", "measured " + ", ".join(f"{name} {took * 1e3:.3f} ms" for name, took in times.items()) + f"; kept {best}")
    return Chosen(best, codes[best], times)


def _tried(code: Code, inputs: list[measure.Tensor]) -> tuple[list[measure.Tensor], list[measure.Tensor]]:
    own = [measure.copy(t) for t in inputs]
    with measure.same_seed():
        return code(*own), own


def _made(form: Form) -> Code | None:
    try:
        return form.make()
    except NotImplementedError as error:
        log.event("level", f"{form.name} is left out: {error}")
        return None


def _agrees(
    name: str, code: Code, inputs: list[measure.Tensor], expected: list[measure.Tensor], state: list[measure.Tensor],
) -> bool:
    """Whether the form gives the numbers of the first."""
    try:
        outs, own = _tried(code, inputs)
    except RuntimeError as error:
        log.event("level", f"{name} is left out: {str(error).splitlines()[0]:.120}")
        return False
    off, off_state = measure.differs(expected, outs), measure.differs(state, own)
    if off > NEAR or off_state > NEAR_STATE:
        log.event("level", f"{name} is left out: its numbers are off by {off:.1e} and {off_state:.1e}")
        return False
    return True
