"""The values of all options: one store for the process, and scopes for a thread or task.

For each option the first source with a value wins: forced environment, code (a scope before the process), environment, file, default.
"""

from __future__ import annotations

import contextvars
import itertools
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from torchspore.base.frames import user_line
from torchspore.base.text import short, with_hint
from torchspore.base.threads import other_threads
from torchspore.context import effects, sources
from torchspore.context.kinds import Members
from torchspore.context.option import Option, When
from torchspore.context.options import OPTIONS
from torchspore.context.plan import Setting, find, plan
from torchspore.errors import LateChange, ScopeRefused
from torchspore.translations import translate

DEFAULT = "default"
_ABSENT = object()


@dataclass(frozen=True)
class _Scope:
    """The settings of a `context.public.scope`. It is replaced, never changed, so that a task that inherits it cannot modify it."""

    code: Mapping[str, Setting] = field(default_factory=dict)
    acting: Mapping[str, Any] = field(default_factory=dict)
    version: int = 0
    graph_mode: bool | None = None


_scope: contextvars.ContextVar[_Scope | None] = contextvars.ContextVar("torchspore_context_scope", default=None)
_SCOPE_SHIFT = 2**32


class Snapshot(tuple[tuple[str, Any], ...]):
    """(Name, value) of every option that belongs in the key of a captured graph. Equal snapshots are one object, compared by identity."""

    __slots__ = ()
    __hash__ = object.__hash__
    __eq__ = object.__eq__
    __ne__ = object.__ne__


class Store:
    """The values of all options.

    Reading costs a dictionary look-up and one context variable; all work is done when an option changes.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._numbers = itertools.count(1)
        self._code: dict[str, Setting] = {}
        self._defaults: dict[str, Any] = {}
        self._counted: dict[str, Any] = {}
        self._snapshots: dict[int, Snapshot] = {}
        self._equal_snapshots: dict[tuple[tuple[str, Any], ...], Snapshot] = {}
        self._forced, self._environment, self._file = sources.read()
        self._environment_texts = sources.environment_texts()
        self._acting: dict[str, Any] = {}
        self._repeatable: dict[tuple[str, str], Any] = {}
        """By setter and name the value that the code set last, of options for which a second call with this value changes nothing."""
        self._base_graph_mode = False
        self._base_version = 0
        self._fill(OPTIONS)

    # -- reading -------------------------------------------------------------------------------------------------------

    def get(self, name: str) -> Any:
        """Return the normalised value that is active in this thread; `name` is an option's key. Dictionaries are not copied."""
        scope = _scope.get()
        if scope is not None and name in scope.acting:
            return scope.acting[name]
        return self._acting[name]

    @property
    def graph_mode(self) -> bool:
        """True if this thread runs in GRAPH_MODE."""
        scope = _scope.get()
        if scope is None or scope.graph_mode is None:
            return self._base_graph_mode
        return scope.graph_mode

    @property
    def version(self) -> int:
        """A number that changes whenever the values that are active in this thread may have changed."""
        scope = _scope.get()
        return self._base_version if scope is None else self._base_version + _SCOPE_SHIFT * scope.version

    def snapshot(self) -> Snapshot:
        """Return the values that are active in this thread, frozen and hashable."""
        version = self.version
        snapshot = self._snapshots.get(version)
        if snapshot is None:
            values = tuple((key, _frozen(self._graph_value(key))) for key in _IN_GRAPH_KEY)
            snapshot = self._equal_snapshots.setdefault(values, Snapshot(values))
            if len(self._snapshots) > 64:
                self._snapshots.clear()
            self._snapshots[version] = snapshot
        return snapshot

    def _graph_value(self, key: str) -> Any:
        """Return the value of an option without its members that count steps."""
        value, counters = self.get(key), _COUNTERS.get(key)
        return {name: item for name, item in value.items() if name not in counters} if counters and value else value

    def source(self, key: str) -> tuple[str, Setting | None]:
        """Return which source won ("forced environment", "code", "environment", "file", "default") and its setting."""
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

    def code_setting(self, key: str) -> Setting | None:
        """Return the setting of the code, also if a forced environment variable won, or None."""
        scope = _scope.get()
        return (scope.code.get(key) if scope is not None else None) or self._code.get(key)

    def set_options(self) -> Iterator[tuple[Option, Any]]:
        """Yield every option that is not at its default, with its active value; the device first."""
        for key, option in OPTIONS.items():
            if self.source(key)[0] != DEFAULT:
                yield option, self.get(key)

    def refresh_environment(self) -> None:
        """Apply changes that the program has since made in `os.environ`, for the options that new graphs read."""
        texts = sources.environment_texts()
        if texts != self._environment_texts:
            with self._lock:
                sources.apply_environment_texts(self._forced, self._environment, texts)
                self._environment_texts = texts
                self._fill(OPTIONS)

    # -- writing -------------------------------------------------------------------------------------------------------

    def change(self, api: str, values: Mapping[str, object], call: str) -> None:
        """Validate every value, then apply all of them; after an error nothing has changed."""
        if not values or self._repeats_calls(api, values):
            return
        with self._lock:
            named = plan(api, values, call, user_line(2), self.get, self._is_set)
            settings = {key: self._merge_earlier_members(key, setting) for key, setting in named.items()}
            for key, setting in settings.items():
                self._check(OPTIONS[key], setting, call)
            undo: list[Callable[[], None]] = []
            scope = _scope.get()
            if scope is not None:
                _refuse_other_threads(settings, call)
            previous = (dict(self._code), dict(self._acting), dict(self._counted))
            try:
                for key in (key for setting in named.values() for key in setting.members):
                    self._counted.pop(key, None)
                for key, setting in settings.items():
                    undo += _prepare(OPTIONS[key], setting, call)
                old = {key: self.get(key) for key in _add_members(settings)}
                self._write(settings)
                changed_keys = {*named, *(key for setting in named.values() for key in setting.members)}
                effects.push([(OPTIONS[key], self.get(key), old[key]) for key in old
                              if key not in self._forced and (key in changed_keys or self.get(key) != old[key])])
                if "device_target" in settings and self.get("device_target") != old["device_target"]:
                    self._rerun_effects(settings)
            except BaseException:
                self._code, self._acting, self._counted = previous
                self._touch()
                _scope.set(scope)
                for step in reversed(undo):
                    step()
                raise
            for key in settings:
                if self.get(key) != old[key]:
                    effects.forget(OPTIONS[key])
                if key in self._forced:
                    sources.report_forced_device(OPTIONS[key], settings[key], self._forced[key])
            if scope is None:
                self._repeatable |= {(api, name): value for name, value in values.items() if self._can_repeat(find(api, name, call), value)}

    def _repeats_calls(self, api: str, values: Mapping[str, object]) -> bool:
        """Return whether earlier calls of this setter set the same values, and nothing has changed since."""
        if _scope.get() is not None:
            return False
        repeatable = self._repeatable
        for name, value in values.items():
            last = repeatable.get((api, name), _ABSENT)
            if last.__class__ is not value.__class__ or last != value:
                return False
        return True

    def _can_repeat(self, option: Option, value: object) -> bool:
        """Return whether a second call with this value changes nothing: it has no effect that must run again and sets no other option."""
        is_simple = option.parent is None and not option.members and option.prepare is None and option.implies is None
        has_repeated_effect = option.effect is not None and option.runs_again
        return is_simple and option.acts and not has_repeated_effect and option.key not in self._forced and type(value) in (str, int, bool)

    def reset(self, api: str) -> None:
        """Remove the settings that the code made through one setter, in this scope or the process."""
        with self._lock:
            scope = _scope.get()
            code = self._code if scope is None else scope.code
            self._repeatable = {}
            remaining = {key: setting for key, setting in code.items() if OPTIONS[key].api != api}
            removed = [key for key in code if key not in remaining]
            process_wide = {key: self.get(key) for key in _add_members(removed) if key not in removed or OPTIONS[key].process_wide}
            if scope is None:
                self._code = remaining
                self._fill(OPTIONS)
            else:
                self._enter(remaining)
            effects.push([
                (OPTIONS[key], self.get(key), old) for key, old in process_wide.items() if key in removed or self.get(key) != old
            ])

    def learn_default(self, key: str, value: Any) -> None:
        """Replace a default by one that only the engine can determine, such as the available device."""
        with self._lock:
            self._defaults[key] = value
            self._fill(OPTIONS)

    def open_scope(self) -> contextvars.Token[_Scope | None]:
        """Start a scope with the settings of the outer one."""
        outer = _scope.get()
        token = _scope.set(outer)
        self._enter(dict(outer.code) if outer is not None else {})
        return token

    def close_scope(self, token: contextvars.Token[_Scope | None]) -> None:
        """End a scope and make the previous values active again."""
        inner = _scope.get()
        keys = _add_members(inner.code) if inner is not None else []
        old = {key: self.get(key) for key in keys}
        _scope.reset(token)
        self._publish_process_wide(keys, _scope.get())
        effects.push([(OPTIONS[key], self.get(key), old[key]) for key in keys if self.get(key) != old[key]])

    def count(self, values: Mapping[str, Any]) -> None:
        """Set options that a training counts, until the program sets them again; no graph and no outcome depends on them."""
        with self._lock:
            self._counted.update(values)
            self._acting.update(values)

    # -- inside --------------------------------------------------------------------------------------------------------

    def _check(self, option: Option, setting: Setting, call: str) -> None:
        call_text = f"{call}({option.name}={short(setting.raw)})"
        used = effects.first_use() or (effects.first_operator() if option.when is When.BEFORE_OPERATORS else None)
        if used is not None and option.when is not When.ANY_TIME and setting.value != self.get(option.key):
            text = translate("{setting}: too late, the device was first used at {line}.").format(setting=call_text, line=used)
            raise (option.late_error or LateChange)(with_hint(text, translate("move this call above that line")))
        if not option.acts and setting.value != self._default(option.key) and effects.is_strict():
            raise effects.refusal(option.name, effects.inert(option))

    def _write(self, settings: Mapping[str, Setting]) -> None:
        scope = _scope.get()
        if scope is not None:
            self._enter({**scope.code, **settings})
            self._publish_process_wide(settings, _scope.get())
            return
        self._code.update(settings)
        self._fill(OPTIONS if "device_target" in settings else settings)

    def _publish_process_wide(self, keys: Iterable[str], scope: _Scope | None) -> None:
        """Publish the values of process-wide options to every thread: the scope's value, otherwise the process's."""
        process_wide = {key: None for key in keys if OPTIONS[key].process_wide}
        if process_wide:
            self._fill(process_wide)
            self._acting.update({key: scope.acting[key] for key in process_wide if scope is not None and key in scope.acting})

    def _enter(self, code: Mapping[str, Setting]) -> None:
        """Replace this thread's scope by one with these settings."""
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

    def _rerun_effects(self, settings: Mapping[str, Setting]) -> None:
        """Run the effects of earlier settings again: on another device they may have another outcome."""
        effects.push([(option, value, value) for option, value in self.set_options() if option.key not in settings])

    def _merge_earlier_members(self, key: str, setting: Setting) -> Setting:
        """Return a setting of a dictionary that keeps the members of an earlier call which this one does not name."""
        earlier = self.code_setting(key)
        kind = OPTIONS[key].kind
        if earlier is None or not isinstance(kind, Members) or not kind.adds:
            return setting
        return replace(setting, members={**earlier.members, **setting.members})

    def _is_set(self, key: str) -> bool:
        return self.code_setting(key) is not None

    def _default(self, key: str) -> Any:
        if key in self._defaults:
            return self._defaults[key]
        device = self._acting.get("device_target", "CPU")
        return OPTIONS[key].default_on(device)

    def _fill(self, keys: Mapping[str, Any]) -> None:
        """Compute the active values of the process, for these keys and their members; the version changes if one of them does."""
        device = str(self._base("device_target"))
        is_changed = self._acting.get("device_target") != device
        self._acting["device_target"] = device             # other defaults depend on it
        acting: dict[str, Any] = {}
        for key in keys:
            option = OPTIONS[key]
            if option.parent in OPTIONS:
                continue
            acting[key] = self._base(key)
            setting = self._setting(key)
            for member in option.members.values():
                acting[member.key] = _member_value(setting, member, device)
        acting.update(self._counted)
        if is_changed or any(key not in self._acting or self._acting[key] != value for key, value in acting.items()):
            self._acting.update(acting)
            self._touch()

    def _touch(self) -> None:
        self._repeatable = {}
        self._base_graph_mode = self._acting["mode"] == 0
        self._base_version = next(self._numbers)

    def _setting(self, key: str) -> Setting | None:
        settings = [layer[key] for layer in (self._forced, self._code, self._environment, self._file) if key in layer]
        if len(settings) > 1 and key in self._forced and isinstance(settings[0].value, dict):
            # A forced member is merged with the members that the code sets.
            first, second = settings[:2]
            return replace(first, value={**second.value, **first.value}, members={**second.members, **first.members})
        return settings[0] if settings else None

    def _base(self, key: str) -> Any:
        setting = self._setting(key)
        return self._default(key) if setting is None else setting.value


def _add_members(keys: Iterable[str]) -> list[str]:
    """Return these keys, each dictionary followed by those of its members that have their own effect."""
    all_keys: list[str] = []
    for key in keys:
        all_keys += [key, *(member.key for member in OPTIONS[key].members.values() if member.effect is not None)]
    return list(dict.fromkeys(all_keys))


def _member_value(setting: Setting | None, member: Option, device: str) -> Any:
    if setting is not None and member.key in setting.members:
        return setting.members[member.key]
    return member.default_on(device)


def _refuse_other_threads(settings: Mapping[str, Setting], call: str) -> None:
    """Refuse process-wide options in a scope while other threads of the program run, which they would change."""
    process_wide = next((OPTIONS[key] for key in settings if OPTIONS[key].process_wide), None)
    others = other_threads() if process_wide is not None else []
    if process_wide is None or (not others and threading.current_thread() is threading.main_thread()):
        return
    text = (translate("{setting}: {name} acts on the entire process, and a scope would change it while other threads run ({threads}).")
            if others else
            translate("{setting}: {name} acts on the entire process, and a scope would change it in the thread {threads}."))
    threads = ", ".join(others[:3]) or threading.current_thread().name
    name, value = process_wide.name, short(settings[process_wide.key].raw)
    hint = translate("write set_context({name}={value}) outside of scopes, before the threads start").format(name=name, value=value)
    raise ScopeRefused(with_hint(text.format(setting=f"{call}({name}={value})", name=name, threads=threads), hint))


def _prepare(option: Option, setting: Setting, call: str) -> list[Callable[[], None]]:
    """Create the directories that a setting names; return the functions that remove them."""
    call_text = f"{call}({option.name}={short(setting.raw)})"
    undo = [] if option.prepare is None else [option.prepare(setting.value, call_text)]
    return undo + [member.prepare(setting.members[member.key], call_text) for member in option.members.values()
                   if member.prepare is not None and setting.members.get(member.key)]


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple((key, _frozen(item)) for key, item in value.items())
    return tuple(_frozen(item) for item in value) if isinstance(value, (list, tuple)) else value


_IN_GRAPH_KEY = [key for key, option in OPTIONS.items() if option.in_graph_key or option.api == "auto_parallel"]
"""Every option of parallel execution changes how a graph is split, or how its gradients are summed."""
_COUNTERS = {
    key: frozenset(name for name, member in option.members.items() if member.is_counter)
    for key, option in OPTIONS.items() if any(member.is_counter for member in option.members.values())
}
_BY_DEVICE = [key for key, option in OPTIONS.items() if callable(option.default)]

STORE = Store()
