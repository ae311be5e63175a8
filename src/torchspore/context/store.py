"""Where the values are: one store for the process, scopes for a thread or task.

For each option the first of these wins: forced environment, code (a scope before the process's base), environment, file, default.
"""

from __future__ import annotations

import contextvars
import itertools
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from torchspore.base.frames import user_line
from torchspore.base.text import short
from torchspore.base.threads import other_threads
from torchspore.context import effects, sources
from torchspore.context.kinds import Members
from torchspore.context.option import Option, When
from torchspore.context.options import OPTIONS
from torchspore.context.plan import Setting, plan
from torchspore.errors import LateChange, ScopeRefused

DEFAULT = "default"


@dataclass(frozen=True)
class _Scope:
    """What a `context.scope` wrote: never changed, only replaced, so that a task that inherits it cannot write into it."""

    code: Mapping[str, Setting] = field(default_factory=dict)
    acting: Mapping[str, Any] = field(default_factory=dict)
    version: int = 0
    graph_mode: bool | None = None


_scope: contextvars.ContextVar[_Scope | None] = contextvars.ContextVar("torchspore_context_scope", default=None)
_SCOPE_SHIFT = 2**32


class Store:
    """The values of all options.

    Reading costs a dictionary look-up and one context variable; all work is done when something changes.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._numbers = itertools.count(1)
        self._code: dict[str, Setting] = {}
        self._defaults: dict[str, Any] = {}
        self._snapshots: dict[int, tuple[tuple[str, Any], ...]] = {}
        self._forced, self._environment, self._file = sources.read()
        self._said = sources.written()
        self._acting: dict[str, Any] = {}
        self._base_graph_mode = False
        self._base_version = 0
        self._fill(OPTIONS)

    # -- reading -------------------------------------------------------------------------------------------------------

    def get(self, name: str) -> Any:
        """Gives the normalised value that acts for this thread; `name` is an option's key. Dictionaries are not copied."""
        scope = _scope.get()
        if scope is not None and name in scope.acting:
            return scope.acting[name]
        return self._acting[name]

    @property
    def graph_mode(self) -> bool:
        """Whether this thread runs in GRAPH_MODE."""
        scope = _scope.get()
        if scope is None or scope.graph_mode is None:
            return self._base_graph_mode
        return scope.graph_mode

    @property
    def version(self) -> int:
        """A number that is another one whenever the values that act for this thread may be others."""
        scope = _scope.get()
        return self._base_version if scope is None else self._base_version + _SCOPE_SHIFT * scope.version

    def snapshot(self) -> tuple[tuple[str, Any], ...]:
        """Gives (name, value) of every option that belongs in the key of a captured graph, frozen and hashable."""
        version = self.version
        found = self._snapshots.get(version)
        if found is None:
            found = tuple((key, _frozen(self.get(key))) for key in _IN_GRAPH_KEY)
            if len(self._snapshots) > 64:
                self._snapshots.clear()
            self._snapshots[version] = found
        return found

    def source(self, key: str) -> tuple[str, Setting | None]:
        """Gives which source won ("forced environment", "code", "environment", "file", "default") and its setting."""
        scope = _scope.get()
        option = OPTIONS[key]
        owner = option.parent if option.parent in OPTIONS else key
        for name, layer in (
            ("forced environment", self._forced),
            ("code", scope.code if scope is not None else {}),
            ("code", self._code),
            ("environment", self._environment),
            ("file", self._file),
        ):
            setting = layer.get(str(owner))
            if setting is not None and (owner == key or key in setting.members):
                return name, setting
        return DEFAULT, None

    def asked(self, key: str) -> Setting | None:
        """Gives what the code asked for, also where a forced environment variable won."""
        scope = _scope.get()
        return (scope.code.get(key) if scope is not None else None) or self._code.get(key)

    def set_options(self) -> Iterator[tuple[Option, Any]]:
        """Gives every option that is not at its default, with the value that acts; the device first."""
        for key, option in OPTIONS.items():
            if self.source(key)[0] != DEFAULT:
                yield option, self.get(key)

    def look_again(self) -> None:
        """Takes over what the program has written into `os.environ` since, of the options that graphs look at when they are made."""
        said = sources.written()
        if said != self._said:
            with self._lock:
                sources.read_again(self._forced, self._environment, said)
                self._said = said
                self._fill(OPTIONS)

    # -- writing -------------------------------------------------------------------------------------------------------

    def change(self, api: str, written: Mapping[str, object], call: str) -> None:
        """Validates every value, then applies all of them; on any error nothing has changed."""
        if not written:
            return
        with self._lock:
            named = plan(api, written, call, user_line(2), self.get, self._is_set)
            settings = {key: self._with_earlier(key, setting) for key, setting in named.items()}
            for key, setting in settings.items():
                self._check(OPTIONS[key], setting, call)
            undo: list[Callable[[], None]] = []
            scope = _scope.get()
            if scope is not None:
                _check_alone(settings, call)
            before = (dict(self._code), dict(self._acting))
            try:
                for key, setting in settings.items():
                    undo += _prepare(OPTIONS[key], setting, call)
                old = {key: self.get(key) for key in _with_members(settings)}
                self._write(settings)
                anew = {*named, *(key for setting in named.values() for key in setting.members)}
                effects.push([(OPTIONS[key], self.get(key), old[key]) for key in old
                              if key not in self._forced and (key in anew or self.get(key) != old[key])])
                if "device_target" in settings and self.get("device_target") != old["device_target"]:
                    self._push_again(settings)
            except BaseException:
                self._code, self._acting = before
                self._touch()
                _scope.set(scope)
                for step in reversed(undo):
                    step()
                raise
            for key in settings:
                if self.get(key) != old[key]:
                    effects.forget(OPTIONS[key])
                if key in self._forced:
                    sources.tell_once(OPTIONS[key], settings[key], self._forced[key])

    def reset(self, api: str) -> None:
        """Takes back what the code set through one setter, in this scope or the base."""
        with self._lock:
            scope = _scope.get()
            held = self._code if scope is None else scope.code
            kept = {key: setting for key, setting in held.items() if OPTIONS[key].api != api}
            gone = [key for key in held if key not in kept]
            wide = {key: self.get(key) for key in _with_members(gone) if key not in gone or OPTIONS[key].process_wide}
            if scope is None:
                self._code = kept
                self._fill(OPTIONS)
            else:
                self._enter(kept)
            effects.push([(OPTIONS[key], self.get(key), old) for key, old in wide.items() if key in gone or self.get(key) != old])

    def learn_default(self, key: str, value: Any) -> None:
        """Replaces a default by one that only the engine can know, such as the device that is there."""
        with self._lock:
            self._defaults[key] = value
            self._fill(OPTIONS)

    def open_scope(self) -> contextvars.Token[_Scope | None]:
        """Starts a scope that holds what the outer one holds."""
        outer = _scope.get()
        token = _scope.set(outer)
        self._enter(dict(outer.code) if outer is not None else {})
        return token

    def close_scope(self, token: contextvars.Token[_Scope | None]) -> None:
        """Ends a scope and makes the values that it found act again."""
        inner = _scope.get()
        keys = _with_members(inner.code) if inner is not None else []
        old = {key: self.get(key) for key in keys}
        _scope.reset(token)
        self._tell_all(keys, _scope.get())
        effects.push([(OPTIONS[key], self.get(key), old[key]) for key in keys if self.get(key) != old[key]])

    # -- inside --------------------------------------------------------------------------------------------------------

    def _check(self, option: Option, setting: Setting, call: str) -> None:
        what = f"{call}({option.name}={short(setting.written)})"
        used = effects.first_use() or (effects.first_operator() if option.when is When.BEFORE_OPERATORS else None)
        if used is not None and option.when is not When.ANY_TIME and setting.value != self.get(option.key):
            raise (option.late or LateChange)(
                f"{what}: too late, the device was first used at {used}.\n\nhint: move this call above that line."
            )
        if not option.acts and setting.value != self._default(option.key) and effects.is_strict():
            raise effects.refusal(option.name, effects.inert(option))

    def _write(self, settings: Mapping[str, Setting]) -> None:
        scope = _scope.get()
        if scope is not None:
            self._enter({**scope.code, **settings})
            self._tell_all(settings, _scope.get())
            return
        self._code.update(settings)
        self._fill(OPTIONS if "device_target" in settings else settings)

    def _tell_all(self, keys: Iterable[str], scope: _Scope | None) -> None:
        """Lets every thread read what acts of the options that act on the whole process: the scope's value, else the base's."""
        wide = {key: None for key in keys if OPTIONS[key].process_wide}
        if wide:
            self._fill(wide)
            self._acting.update({key: scope.acting[key] for key in wide if scope is not None and key in scope.acting})

    def _enter(self, code: Mapping[str, Setting]) -> None:
        """Replaces this thread's scope by one with these settings."""
        acting: dict[str, Any] = {}
        device = self._acting["device_target"]
        if "device_target" in code and "device_target" not in self._forced:
            device = code["device_target"].value
        for key, setting in code.items():
            if key in self._forced:
                continue
            acting[key] = setting.value
            acting.update({member.key: _member_value(setting, member, device) for member in OPTIONS[key].members.values()})
        if "device_target" in code:
            for key in _BY_DEVICE:
                if key not in acting and self.source(key)[0] == DEFAULT:
                    acting[key] = OPTIONS[key].default_on(device)
        mode = acting.get("mode")
        _scope.set(_Scope(dict(code), acting, next(self._numbers), None if mode is None else mode == 0))

    def _push_again(self, settings: Mapping[str, Setting]) -> None:
        """Runs the effects of what was set earlier: on another device they may come to something else."""
        effects.push([(option, value, value) for option, value in self.set_options() if option.key not in settings])

    def _with_earlier(self, key: str, setting: Setting) -> Setting:
        """A setting of a dictionary whose members stay as an earlier call set them, where this one does not name them."""
        earlier = self.asked(key)
        kind = OPTIONS[key].kind
        if earlier is None or not isinstance(kind, Members) or not kind.adds:
            return setting
        return replace(setting, members={**earlier.members, **setting.members})

    def _is_set(self, key: str) -> bool:
        return self.asked(key) is not None

    def _default(self, key: str) -> Any:
        if key in self._defaults:
            return self._defaults[key]
        device = self._acting.get("device_target", "CPU")
        return OPTIONS[key].default_on(device)

    def _fill(self, keys: Mapping[str, Any]) -> None:
        """Works out the base values that act, for these keys and their members."""
        device = str(self._base("device_target"))
        self._acting["device_target"] = device
        for key in keys:
            option = OPTIONS[key]
            if option.parent in OPTIONS:
                continue
            self._acting[key] = self._base(key)
            setting = self._setting(key)
            for member in option.members.values():
                self._acting[member.key] = _member_value(setting, member, device)
        self._touch()

    def _touch(self) -> None:
        self._base_graph_mode = self._acting["mode"] == 0
        self._base_version = next(self._numbers)

    def _setting(self, key: str) -> Setting | None:
        found = [layer[key] for layer in (self._forced, self._code, self._environment, self._file) if key in layer]
        if len(found) > 1 and key in self._forced and isinstance(found[0].value, dict):
            # A forced member joins the members that the code sets.
            first, second = found[:2]
            return replace(first, value={**second.value, **first.value}, members={**second.members, **first.members})
        return found[0] if found else None

    def _base(self, key: str) -> Any:
        setting = self._setting(key)
        return self._default(key) if setting is None else setting.value


def _with_members(keys: Iterable[str]) -> list[str]:
    """These options, and after a dictionary those of its members that have an effect of their own."""
    found: list[str] = []
    for key in keys:
        found += [key, *(member.key for member in OPTIONS[key].members.values() if member.effect is not None)]
    return list(dict.fromkeys(found))


def _member_value(setting: Setting | None, member: Option, device: str) -> Any:
    if setting is not None and member.key in setting.members:
        return setting.members[member.key]
    return member.default_on(device)


def _check_alone(settings: Mapping[str, Setting], call: str) -> None:
    """Refuses, in a scope, options that act on the whole process while there are other threads of the program's that they would change."""
    wide = next((OPTIONS[key] for key in settings if OPTIONS[key].process_wide), None)
    others = other_threads() if wide is not None else []
    if wide is None or (not others and threading.current_thread() is threading.main_thread()):
        return
    here = f"while other threads run ({', '.join(others[:3])})" if others else f"in the thread {threading.current_thread().name}"
    raise ScopeRefused(
        f"{call}({wide.name}={short(settings[wide.key].written)}): {wide.name} acts on the whole process, and a scope would change it "
        f"{here}.\n\nhint: write set_context({wide.name}={short(settings[wide.key].written)}) outside of scopes, before the threads start."
    )


def _prepare(option: Option, setting: Setting, call: str) -> list[Callable[[], None]]:
    """Makes the directories that a setting names; gives the functions that take them back."""
    what = f"{call}({option.name}={short(setting.written)})"
    undo = [] if option.prepare is None else [option.prepare(setting.value, what)]
    return undo + [member.prepare(setting.members[member.key], what) for member in option.members.values()
                   if member.prepare is not None and setting.members.get(member.key)]


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple((key, _frozen(item)) for key, item in value.items())
    return tuple(_frozen(item) for item in value) if isinstance(value, (list, tuple)) else value


_IN_GRAPH_KEY = [key for key, option in OPTIONS.items() if option.in_graph_key or option.api == "auto_parallel"]
"""All that is said of several devices says how a graph is split, or its gradients summed."""
_BY_DEVICE = [key for key, option in OPTIONS.items() if callable(option.default)]

STORE = Store()
