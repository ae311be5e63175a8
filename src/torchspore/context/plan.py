"""Turns what a call wrote into settings: names resolved, values parsed, members folded into their dictionary."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torchspore.base.suggest import closest
from torchspore.context.kinds import Members, Wrong
from torchspore.context.option import SETTERS, Option
from torchspore.context.options import ALIASES, OPTIONS, names_of
from torchspore.errors import OptionValueError, TorchsporeError, UnknownOption


@dataclass(frozen=True)
class Setting:
    """One value of one option: as written, as it is answered, where it came from, and its members by key."""

    written: Any
    value: Any
    where: str | None
    members: Mapping[str, Any] = field(default_factory=dict)


def find(api: str, name: str, call: str) -> Option:
    """Gives the option of a name or alias; raises UnknownOption with the closest name."""
    key = name if api == "context" else f"{api}.{name}"
    alias = ALIASES.get(key)
    option = OPTIONS.get(alias.of if alias is not None else key)
    if option is None or (option.within is not None and not option.top_level):
        raise unknown(api, name, call)
    return option


def unknown(api: str, name: str, call: str) -> UnknownOption:
    """Builds the error for a name that is no option: another setter's, a near one, or none at all."""
    for other, setter in SETTERS.items():
        if other != api and name in names_of(other):
            right = setter if call.startswith("set") else setter.replace("set_", "get_", 1)
            hint = f"{name} belongs to {right}"
            break
    else:
        near = closest(name, names_of(api))
        hint = f"did you mean {near}?" if near else "torchspore context lists every option"
    shown = f"{name}=..." if call.startswith("set") or call == "scope" else repr(name)
    return UnknownOption(f"{call}({shown}): there is no such option.\n\nhint: {hint}" + ("" if hint.endswith("?") else "."))


def plan(
    api: str, written: Mapping[str, object], call: str, where: str | None, get: Callable[[str], Any]
) -> dict[str, Setting]:
    """Gives the settings that a call asks for, by key, device_target first; raises the first refusal and changes nothing."""
    settings: dict[str, Setting] = {}
    found = [(find(api, name, call), value) for name, value in written.items()]
    found.sort(key=lambda pair: pair[0].key != "device_target")
    for option, value in found:
        if not option.settable:
            raise OptionValueError(f"{call}({option.name}=...): {option.name} can only be read.")
        if option.parent in OPTIONS:
            option, value = _fold(option, value, settings, get, call)
        settings.update(_settings_of(option, value, call, where))
    return settings


def _fold(option: Option, value: object, settings: Mapping[str, Setting], get: Callable[[str], Any], call: str) -> tuple[Option, Any]:
    """Makes `jit_level='O1'` mean `jit_config={**now, 'jit_level': 'O1'}`."""
    option.parse(value, call)
    parent = OPTIONS[str(option.parent)]
    now = settings[parent.key].written if parent.key in settings else get(parent.key)
    return parent, {**now, option.name: value}


def _settings_of(option: Option, value: object, call: str, where: str | None) -> dict[str, Setting]:
    parsed = option.parse(value, call)
    if not option.members:
        return {option.key: Setting(value, parsed, where)}
    try:
        split: dict[str, Any] = option.kind.members(parsed)  # type: ignore[attr-defined]
    except Wrong as wrong:
        raise option.error(wrong, value, call) from None
    members: dict[str, Any] = {}
    for name, item in split.items():
        member = option.members.get(name)
        if member is None:
            raise _unknown_member(option, name, call)
        members[member.key] = member.parse(item, call)
    if isinstance(option.kind, Members):
        parsed = {name: members[option.members[name].key] for name in split}
    return {option.key: Setting(value, parsed, where, members)}


def _unknown_member(option: Option, name: object, call: str) -> TorchsporeError:
    near = closest(str(name), option.members)
    hint = f"did you mean {near!r}?" if near else f"it knows {', '.join(option.members)}."
    error: type[TorchsporeError] = getattr(option.kind, "unknown", OptionValueError)
    return error(f"{call}({option.name}={{{name!r}: ...}}): {option.name} has no such member.\n\nhint: {hint}")
