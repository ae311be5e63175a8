"""Apply the effects of options, and record the outcome of each.

Declarations name the functions of the layers above (`effect="engine.execution.device_selection:select"`), so that the context needs no
torch; only this file resolves such names.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from torchspore.base.text import with_hint
from torchspore.context.option import Option
from torchspore.errors import EffectRefused, StrictRefusal
from torchspore.translations import translatable, translate

if TYPE_CHECKING:
    from torchspore.context.store import Store

APPLIED, NO_EFFECT, REFUSED = translatable("applied"), translatable("no effect here"), translatable("refused")
NOT_BUILT, IDLE = translatable("not built yet"), translatable("means nothing here")


@dataclass(frozen=True)
class Outcome:
    """The outcome of an option: applied, no effect here (because ...), refused, not built yet, or accepted without a meaning here.

    A text without values is in English here, and translated when it is shown; one with values is translated before they are inserted.
    """

    state: str
    text: str = ""

    @classmethod
    def applied(cls, text: str = "") -> Outcome:
        """The option acts; `text` says how in a few words."""
        return cls(APPLIED, text)

    @classmethod
    def no_effect(cls, text: str) -> Outcome:
        """The option changes nothing here; `text` gives the reason. An error with TORCHSPORE_STRICT=1."""
        return cls(NO_EFFECT, text)

    @classmethod
    def refused(cls, text: str) -> Outcome:
        """The option cannot be applied; the call that set it fails and changes nothing."""
        return cls(REFUSED, text)

    @classmethod
    def idle(cls, text: str) -> Outcome:
        """The option is accepted because MindSpore has it, but there is nothing for it to control; `text` gives the reason."""
        return cls(IDLE, text)

    @classmethod
    def not_built(cls) -> Outcome:
        """The option is stored, but torchspore does not implement its effect yet."""
        return cls(NOT_BUILT)

    def __str__(self) -> str:
        state = translate(self.state)
        return translate("{state}: {text}").format(state=state, text=translate(self.text)) if self.text else state


NO_GRAPH = Outcome.no_effect("PYNATIVE_MODE compiles no graph")
Effect = Callable[[Any], Outcome | None]
"""Applies a value; returns None if a reader will report the outcome."""
Note = str | Callable[[], str]

expect_graph: Callable[[str], None] | None = None
"""The engine's function that watches for operators outside graphs."""


def is_strict() -> bool:
    """Return whether TORCHSPORE_STRICT=1 turns "no effect here" into an error."""
    return os.environ.get("TORCHSPORE_STRICT", "") not in ("", "0")


def resolve(effect: str) -> Effect:
    """Import the function that a declaration names, as in "engine.execution.device_selection:select"."""
    module, _, function = effect.partition(":")
    function_object: Effect = getattr(importlib.import_module("torchspore." + module), function)
    return function_object


@dataclass
class _Program:
    """The state of a program: the outcomes of its options, its first operators, and the function that resolves names in declarations."""

    outcomes: dict[str, Outcome] = field(default_factory=dict)
    notes: dict[str, list[Note]] = field(default_factory=dict)
    first_use: str | None = None
    first_operator: str | None = None
    is_loaded: bool = False
    dump_texts: tuple[str, ...] = ("", "")
    """The values of the variables for dumps at the last call of `refresh_dump_settings`."""
    find: Callable[[str], Effect] = resolve


class _Reports:
    """The outcomes that the running program has received, and the state of `explain`."""

    def __init__(self) -> None:
        self.is_explaining = False
        self.program = _Program()


_REPORTS = _Reports()


@contextmanager
def fresh(is_loaded: bool | None = None, find: Callable[[str], Effect] = resolve) -> Iterator[None]:
    """Run the block with the state of a new program: no outcomes, no notes, no operators.

    `is_loaded` decides whether effects run in the block; None keeps the current behaviour. `find` resolves the name in a declaration.
    """
    previous = _REPORTS.program
    _REPORTS.program = _Program(is_loaded=previous.is_loaded if is_loaded is None else is_loaded, find=find)
    try:
        yield
    finally:
        _REPORTS.program = previous


def report(option_name: str, outcome: Outcome) -> None:
    """Record the outcome of an option that is read while something runs; readers call it. In strict mode raise on "no effect"."""
    _REPORTS.program.outcomes[option_name] = outcome
    if outcome.state in (NO_EFFECT, NOT_BUILT, IDLE) and is_strict():
        raise refusal(option_name, outcome)


def outcome_of(option: Option, value: Any) -> Outcome | None:
    """Return the last outcome of an option with this value; None if its effect or reader has not run since it was set."""
    if not option.acts:
        return inert(option)
    if option.effect is None and option.read_by is None:
        return _member_outcomes(option, value)
    outcomes = _REPORTS.program.outcomes
    if option.key not in outcomes and option.read_by is not None and isinstance(value, Hashable) and value in option.fixed_outcomes:
        return Outcome.applied(option.fixed_outcomes[value])
    if option.key not in outcomes and option.graph_only and not _store().graph_mode:
        return NO_GRAPH
    return outcomes.get(option.key)


def inert(option: Option) -> Outcome:
    """Return the outcome of an option that does not act."""
    return Outcome.idle(option.idle) if option.idle else Outcome.not_built()


def _member_outcomes(option: Option, value: Any) -> Outcome | None:
    """Combine the outcomes of the members of a dictionary: one state if all share it, otherwise each with its own."""
    members = value if isinstance(value, dict) else {}
    set_members = [
        (name, member) for name, member in option.members.items() if name in members or _store().source(member.key)[0] != "default"
    ]
    outcomes = [(name, outcome_of(member, _store().get(member.key))) for name, member in set_members]
    reported = [(name, outcome) for name, outcome in outcomes if outcome is not None]
    states = {outcome.state for _, outcome in reported}
    if len(states) > 1:
        return Outcome(APPLIED if APPLIED in states else NO_EFFECT, translate("; ").join(f"{name} {outcome}" for name, outcome in reported))
    texts = [translate("{state}: {text}").format(state=name, text=translate(outcome.text)) for name, outcome in reported]
    return Outcome(states.pop(), translate("; ").join(texts)) if states else None


def forget(option: Option) -> None:
    """Remove the outcome that a reader reported for an earlier value."""
    if option.read_by is not None and option.effect is None:
        _REPORTS.program.outcomes.pop(option.key, None)


def has_outcome(key: str) -> bool:
    """Return whether an option's effect has run, or a reader has read it."""
    return key in _REPORTS.program.outcomes


_completers: list[Callable[[], None]] = []


def before_table(complete: Callable[[], None]) -> None:
    """Register a function that completes outcomes once the program has ended; `complete_outcomes` calls it."""
    if complete not in _completers:
        _completers.append(complete)


def complete_outcomes() -> None:
    """Let every option that reports when the program has ended do so now, before `torchspore explain` prints its table."""
    while _completers:
        _completers.pop()()


def expect_explain() -> None:
    """Announce that `torchspore explain` will print, so that expensive facts are measured."""
    _REPORTS.is_explaining = True


def is_explaining() -> bool:
    """Return whether facts that only `torchspore explain` prints should be measured."""
    return _REPORTS.is_explaining


def note(section: str, line: Note) -> None:
    """Add a line to a section of `torchspore explain`, once; a function returns the line at printing time, or "" for none.

    The section and a line without values are in English here, and translated when they are printed.
    """
    lines = _REPORTS.program.notes.setdefault(section, [])
    if line not in lines:
        lines.append(line)


def notes() -> dict[str, list[str]]:
    """Return the sections of `torchspore explain` and their lines, in order of arrival."""
    sections = {
        translate(section): [translate(line) if isinstance(line, str) else line() for line in lines]
        for section, lines in _REPORTS.program.notes.items()
    }
    return {section: [line for line in lines if line] for section, lines in sections.items() if any(lines)}


def device_used(line: str) -> None:
    """Record the first operator on an accelerator; `line` is the user's file:line. Later calls change nothing."""
    if _REPORTS.program.first_use is None:
        _REPORTS.program.first_use = line


def first_use() -> str | None:
    """Return the user's line of the first operator on an accelerator, or None."""
    return _REPORTS.program.first_use


def operator_ran(line: str) -> None:
    """Record the first operator on any device; `line` is the user's file:line. Later calls change nothing."""
    if _REPORTS.program.first_operator is None:
        _REPORTS.program.first_operator = line


def first_operator() -> str | None:
    """Return the user's line of the first operator, or None."""
    return _REPORTS.program.first_operator


def refusal(name: str, outcome: Outcome) -> StrictRefusal:
    """Build the error of strict mode."""
    text = translate("{name}: {outcome}, and TORCHSPORE_STRICT=1 makes that an error.").format(name=name, outcome=outcome)
    return StrictRefusal(with_hint(text, translate("leave {name} at its default here, or unset TORCHSPORE_STRICT").format(name=name)))


def run(option: Option, value: Any) -> Outcome | None:
    """Apply one value; return its outcome, or None if a reader will report it.

    Raise EffectRefused or the error of the effect; strict mode raises on "no effect".
    """
    assert option.effect is not None
    outcome = _REPORTS.program.find(option.effect)(value)
    if outcome is None:
        _REPORTS.program.outcomes.pop(option.key, None)
        return None
    if outcome.state == REFUSED:
        setting = f"{option.setter}({option.name}={value!r})"
        raise EffectRefused(translate("{setting}: {reason}.").format(setting=setting, reason=translate(outcome.text)))
    if outcome.state == NO_EFFECT and is_strict() and value != option.default:
        raise refusal(option.name, outcome)
    _REPORTS.program.outcomes[option.key] = outcome
    return outcome


def push(changes: list[tuple[Option, Any, Any]]) -> None:
    """Run the effects of (option, new value, old value) in order; if one fails, undo the previous ones and raise.

    Nothing runs before the engine is loaded: `engine_loaded` reads the values at that time.
    """
    if not _REPORTS.program.is_loaded:
        return
    done: list[tuple[Option, Any]] = []
    try:
        for option, new, old in changes:
            _expect_graph(option, new)
            if option.effect is not None:
                previous = _REPORTS.program.outcomes.get(option.key)
                done.append((option, old))
                try:
                    run(option, new)
                except BaseException:
                    done.pop()
                    if previous is not None:
                        _REPORTS.program.outcomes[option.key] = previous
                    raise
    except BaseException:
        for option, old in reversed(done):
            outcome = _REPORTS.program.find(str(option.effect))(old)
            if outcome is not None:
                _REPORTS.program.outcomes[option.key] = outcome
        raise


def _call(function: str) -> None:
    """Call a function of a layer above the engine by its name."""
    begin: Callable[[], object] = cast(Any, resolve(function))
    begin()


def engine_loaded() -> None:
    """Run the effects of all options that were set before the engine was loaded; `torchspore.engine` calls it once."""
    if _REPORTS.program.is_loaded:
        return
    _REPORTS.program.is_loaded = True
    for option, value in _store().set_options():
        _expect_graph(option, value)
        if option.effect is not None:
            run(option, value)
        elif not option.acts and is_strict() and value != option.default:
            raise refusal(option.name, inert(option))
    if is_explaining():
        _call("graph.report.peak_memory:watch")
    refresh_dump_settings()


_DUMP_VARIABLES = ("MINDSPORE_DUMP_CONFIG", "MINDSPORE_CONFIG_PATH")


def refresh_dump_settings() -> None:
    """Begin or end the dump that the variables for dumps request, if the program has changed them since the last call."""
    texts = tuple(os.environ.get(name, "") for name in _DUMP_VARIABLES)
    if texts != _REPORTS.program.dump_texts:
        _REPORTS.program.dump_texts = texts
        _call("observe.debug.dump:from_environment")


def _store() -> Store:
    from torchspore.context.store import STORE  # the store imports this module

    return STORE


def _expect_graph(option: Option, value: Any) -> None:
    """In strict mode, arrange a check at the first operator outside a graph that fails if an option for graphs is set."""
    if option.graph_only and value != option.default and is_strict() and expect_graph is not None:
        expect_graph(option.key)


def is_engine_loaded() -> bool:
    """Return whether effects run immediately."""
    return _REPORTS.program.is_loaded
