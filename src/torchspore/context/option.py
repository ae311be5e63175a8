"""The declaration of an option, from which everything else is derived."""

from __future__ import annotations

import copy
import enum
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torchspore.base import text
from torchspore.context.kinds import Kind, Wrong
from torchspore.errors import TorchsporeError
from torchspore.translations import translatable, translate


class On(enum.Flag):
    """The devices on which an option has a meaning."""

    CPU = enum.auto()
    GPU = enum.auto()
    ASCEND = enum.auto()
    ALL = CPU | GPU | ASCEND

    def names(self) -> list[str]:
        """Return the names as `device_target` spells them."""
        return [name for flag, name in ((On.CPU, "CPU"), (On.GPU, "GPU"), (On.ASCEND, "Ascend")) if flag in self]


class When(enum.Enum):
    """The time until which an option may change."""

    ANY_TIME = translatable("at any time")
    BEFORE_DEVICE_USE = translatable("before an operator has run on an accelerator")
    BEFORE_OPERATORS = translatable("before an operator has run")


@dataclass(eq=False)
class Option:
    """One switch of the context.

    `effect` names the function that applies the value ("engine.execution.device_selection:select"); `read_by` names the module that
    reads the value when it needs it. `idle` states why the option is accepted but has no effect here. With none of the three, the option
    is stored and its effect is not built yet, and every listing says so.

    kind: parses and checks a value. default: a value, or a function of the device target. doc: one sentence for every listing.
    on: the devices on which the option has an effect. experimental: the reason why the effect is not proven yet.
    fixed_outcomes: by value, the outcome of the values that need no effect and no reader.
    when: the time until which the option may change; late_error: the class of the error after that time, LateChange by default.
    since, until: the first and the last release of MindSpore with the option; instead: the option to use after `until`.
    example: a call for the pages. environment: the variables that set the option; environment_wins: they override the code.
    runs_again: False if a call with an unchanged value need not run the effect again: the program cannot undo it by other means.
    in_graph_key: a change compiles graphs again. graph_only: only the capture of a graph reads the option, so PYNATIVE_MODE ignores it.
    process_wide: the effect applies to all threads. is_counter: training changes the value, so it is never part of a graph's key.
    member_of: the name of the option whose dictionary contains this one; top_level: the member is also an option by itself.
    settable, readable: a setter accepts it, a getter returns it. group: the JSON file of `ascend_config` that also sets it.
    prepare: creates the directories that a value names; returns the function that removes them if the call fails.
    implies: returns the options that a value sets too. shown_if: the option that must be true for the getter.
    as_json: a member is written as JSON, in a file or a text.
    """

    kind: Kind
    default: Any
    doc: str
    on: On = On.ALL
    effect: str | None = None
    read_by: str | None = None
    idle: str = ""
    experimental: str = ""
    fixed_outcomes: Mapping[Any, str] = field(default_factory=dict)
    when: When = When.ANY_TIME
    since: str = ""
    until: str | None = None
    instead: str | None = None
    example: str | None = None
    environment: tuple[str, ...] = ()
    environment_wins: bool = False
    runs_again: bool = True
    in_graph_key: bool = False
    graph_only: bool = False
    process_wide: bool = False
    is_counter: bool = False
    member_of: str | None = None
    top_level: bool = True
    settable: bool = True
    readable: bool = True
    group: str | None = None
    prepare: Callable[[str, str], Callable[[], None]] | None = None
    implies: Callable[[Any, Callable[[str], bool]], dict[str, Any]] | None = None
    shown_if: str | None = None
    late_error: type[TorchsporeError] | None = None
    as_json: bool = False
    name: str = ""
    api: str = "context"
    members: dict[str, Option] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The name in the store: plain for `set_context`, `auto_parallel.x`, `ps.x` and `offload.x` for the others."""
        inner = self.name if self.member_of is None or self.top_level else f"{self.member_of}.{self.name}"
        return inner if self.api == "context" else f"{self.api}.{inner}"

    @property
    def parent(self) -> str | None:
        """The key of the dictionary option that contains this member, or None."""
        if self.member_of is None:
            return None
        return self.member_of if self.api == "context" else f"{self.api}.{self.member_of}"

    @property
    def acts(self) -> bool:
        """True if the option has an effect in this version of torchspore."""
        return self.effect is not None or self.read_by is not None or any(member.acts for member in self.members.values())

    @property
    def setter(self) -> str:
        """The name of the function that sets the option."""
        return SETTERS[self.api]

    def parse(self, value: object, call: str | None = None, name: str | None = None) -> Any:
        """Return the normalised value; raise the user's error, for the `call` and `name` that the user wrote."""
        try:
            return self.kind.parse(value)
        except Wrong as wrong:
            raise self.error(wrong, value, call, name) from None

    def parse_text(self, raw: str, variable: str) -> Any:
        """Return the normalised value of an environment variable; the error names the variable."""
        try:
            return self.kind.parse_text(raw)
        except Wrong as wrong:
            hint = translate("it sets {name}").format(name=self.name)
            raise wrong.error(text.message(f"{variable}={raw}", wrong.expected, hint=hint)) from None

    def error(self, wrong: Wrong, value: object, call: str | None = None, name: str | None = None) -> TorchsporeError:
        """Convert a refusal to the error that the user sees."""
        hint = wrong.hint
        if hint is None and wrong.right is not None:
            hint = translate("write {word}").format(word=self._format_setting(wrong.right, name))
        if hint is None and self.example is not None:
            hint = translate("for example {example}").format(example=self.example)
        subject = text.format_call(call or self.setter, self._format_setting(value, name))
        return wrong.error(text.message(subject, wrong.expected, hint=hint))

    def _format_setting(self, value: object, name: str | None) -> str:
        if self.member_of is None or name is not None:
            return f"{name or self.name}={text.short(value)}"
        if not self.as_json:
            return f"{self.member_of}={{{self.name!r}: {text.short(value)}}}"
        section, _, member = self.name.rpartition(".")
        setting = json.dumps({section: {member: value}} if section else {member: value})
        return setting if section else f"{self.member_of}={text.short(setting)}"

    def default_on(self, device: str) -> Any:
        """Return the default for a device target."""
        if callable(self.default):
            return self.default(device)
        return copy.deepcopy(self.default)


@dataclass(eq=False)
class Alias:
    """A second name of an option; both spellings always agree."""

    of: str
    since: str
    until: str | None
    doc: str
    name: str = ""
    api: str = "context"


SETTERS = {
    "context": "set_context", "auto_parallel": "set_auto_parallel_context", "ps": "set_ps_context", "offload": "set_offload_context",
}
GETTERS = {api: name.replace("set_", "get_", 1) for api, name in SETTERS.items()}
