"""Convert the arguments of a call to settings: resolve names, parse values, and merge members into their dictionary."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torchspore.base import once
from torchspore.base.frames import warn
from torchspore.base.suggest import closest
from torchspore.base.text import format_call, with_hint
from torchspore.context.kinds import JsonFile, Members, Wrong
from torchspore.context.option import SETTERS, Option
from torchspore.context.options import ALIASES, OPTIONS, names_of
from torchspore.errors import OptionValueError, TorchsporeError, UnknownOption
from torchspore.translations import translate


@dataclass(frozen=True)
class Setting:
    """One value of one option: as written, normalised, with its source, and its members by key."""

    raw: Any
    value: Any
    where: str | None
    members: Mapping[str, Any] = field(default_factory=dict)


def find(api: str, name: str, call: str) -> Option:
    """Return the option of a name or alias; raise UnknownOption with the closest name."""
    key = name if api == "context" else f"{api}.{name}"
    alias = ALIASES.get(key)
    if alias is not None:
        return OPTIONS[alias.of]
    option = OPTIONS.get(key)
    if option is None or option.api != api or (option.member_of is not None and not option.top_level):
        raise unknown(api, name, call)
    return option


def unknown(api: str, name: str, call: str) -> UnknownOption:
    """Build the error for an unknown name: it belongs to another setter, resembles a name, or neither."""
    for other, setter in SETTERS.items():
        if other != api and name in names_of(other):
            right = setter if call.startswith("set") else setter.replace("set_", "get_", 1)
            hint = translate("{name} belongs to {setter}").format(name=name, setter=right)
            break
    else:
        hint = nearest_hint(closest(name, names_of(api)))
    setting = format_call(call, repr(name) if call.startswith("get") else f"{name}=...")
    return UnknownOption(with_hint(translate("{setting}: this option does not exist.").format(setting=setting), hint))


def nearest_hint(near: str | None) -> str:
    """Return the hint for the name of an option that does not exist."""
    return translate("did you mean {near}?").format(near=near) if near else translate("`torchspore context` lists every option")


def plan(
    api: str, values: Mapping[str, object], call: str, where: str | None, get: Callable[[str], Any], is_set: Callable[[str], bool]
) -> dict[str, Setting]:
    """Return the settings that a call requests, by key, device_target first; raise the first refusal and change nothing."""
    planner = _Planner(call, where, get, is_set)
    requests = [(name, find(api, name, call), value) for name, value in values.items()]
    requests.sort(key=lambda item: item[1].key != "device_target")
    for name, option, value in requests:
        if not option.settable:
            raise _not_settable(option, call)
        if option.parent in OPTIONS:
            planner.add_member(option, value, name)
        else:
            planner.add(option, value, name)
    return planner.settings


class _Planner:
    """Collects the settings of one call."""

    def __init__(self, call: str, where: str | None, get: Callable[[str], Any], is_set: Callable[[str], bool]) -> None:
        self.call, self.where, self.get, self.is_set = call, where, get, is_set
        self.settings: dict[str, Setting] = {}

    def add_member(self, option: Option, value: object, name: str) -> None:
        """Treat `jit_level='O1'` as `jit_config={**current, 'jit_level': 'O1'}`."""
        option.parse(value, self.call, name)
        parent = OPTIONS[str(option.parent)]
        self.add(parent, {**self._now(parent), option.name: value}, parent.name)

    def add(self, option: Option, value: object, name: str) -> None:
        """Parse one value and the settings that it implies for other options."""
        parsed = option.parse(value, self.call, name)
        members: dict[str, Any] = {}
        if option.members:
            parsed, members = self._members(option, value, parsed)
        self.settings[option.key] = Setting(value, parsed, self.where, members)
        self._imply(option, parsed)

    def _now(self, option: Option) -> dict[str, Any]:
        value: dict[str, Any] = self.settings[option.key].value if option.key in self.settings else self.get(option.key)
        return value

    def _members(self, option: Option, value: object, parsed: Any) -> tuple[Any, dict[str, Any]]:
        kind = option.kind
        try:
            split: dict[str, Any] = kind.members(parsed)  # type: ignore[attr-defined]
        except Wrong as wrong:
            raise option.error(wrong, value, self.call) from None
        if isinstance(kind, Members) and kind.merges:
            parsed = split = {**self._now(option), **split}
        members: dict[str, Any] = {}
        for name, item in split.items():
            member = option.members.get(name)
            if member is not None and isinstance(kind, JsonFile):
                self._add_file_member(member, item, str(parsed), members)
            elif member is not None:
                members[member.key] = member.parse(item, self.call)
            elif isinstance(kind, JsonFile) and any(member_name.startswith(f"{name}.") for member_name in option.members):
                text = translate("{path}: {name}: expected an object, got a {kind}; it is ignored.")
                _warn_once(text.format(path=parsed, name=name, kind=type(item).__name__))
            elif isinstance(kind, JsonFile):
                near = closest(name, option.members)
                text = translate("{path}: there is no member {name}; it is ignored.").format(path=parsed, name=name)
                _warn_once(with_hint(text, nearest_hint(near)) if near else text)
            elif isinstance(kind, Members):
                raise _unknown_member(option, name, self.call)
        if isinstance(kind, Members):
            try:
                kind.check(parsed)
            except Wrong as wrong:
                raise option.error(wrong, value, self.call) from None
        for member in option.members.values():
            if member.key in members:
                self._imply(member, members[member.key])
        return parsed, members

    def _add_file_member(self, member: Option, item: Any, path: str, members: dict[str, Any]) -> None:
        """Parse a member from a file; an invalid one is reported, and the member keeps its default."""
        try:
            members[member.key] = member.parse(item, path)
        except TorchsporeError as error:
            text = translate("{error}\n{name} stays at {value!r}.")
            _warn_once(text.format(error=error, name=member.name, value=member.default))

    def _imply(self, option: Option, parsed: Any) -> None:
        if option.implies is None:
            return
        for key, raw in option.implies(parsed, self.is_set).items():
            implied = OPTIONS.get(key)
            if implied is None:
                near = closest(str(key), OPTIONS)
                text = translate("{path}: there is no switch {name!r}.").format(path=parsed, name=key)
                raise UnknownOption(with_hint(text, nearest_hint(repr(near) if near else None)))
            value = implied.parse(raw, str(parsed) if isinstance(parsed, str) and parsed.endswith(".json") else self.call)
            self.settings[key] = Setting(raw, value, self.where)


def _not_settable(option: Option, call: str) -> OptionValueError:
    if option.member_of is None:
        return OptionValueError(translate("{call}({name}=...): {name} can only be read.").format(call=call, name=option.name))
    text = translate("{call}({name}=...): {name} is set as a member of {owner}.")
    text = text.format(call=call, name=option.name, owner=option.member_of)
    return OptionValueError(with_hint(text, translate("for example {example}").format(example=option.example)))


def _warn_once(text: str) -> None:
    """Warn at the user's line, once."""
    if once.first_time(("member of a file", text)):
        warn(text)


def _unknown_member(option: Option, name: object, call: str) -> TorchsporeError:
    near = closest(str(name), option.members)
    hint = (translate("did you mean {near}?").format(near=repr(near)) if near
            else translate("it knows {names}").format(names=", ".join(option.members)))
    error: type[TorchsporeError] = getattr(option.kind, "unknown", OptionValueError)
    text = translate("{setting}: {name} has no such member.").format(setting=f"{call}({option.name}={{{name!r}: ...}})", name=option.name)
    return error(with_hint(text, hint))
