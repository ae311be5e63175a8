"""Values from outside the program: environment variables and the file that TORCHSPORE_CONTEXT names."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from torchspore.base import once
from torchspore.base.suggest import closest
from torchspore.base.text import with_hint
from torchspore.context import effects
from torchspore.context.kinds import Members
from torchspore.context.option import Option
from torchspore.context.options import ALIASES, OPTIONS
from torchspore.context.plan import Setting, nearest_hint, plan
from torchspore.errors import FileFormatError, OptionPathError, UnknownOption
from torchspore.translations import translate

FORCE = "TORCHSPORE_FORCE_"
DEVICE = "TORCHSPORE_DEVICE"
FILE = "TORCHSPORE_CONTEXT"
_TABLES = {"auto_parallel": "auto_parallel", "ps": "ps", "offload": "offload"}

Settings = dict[str, Setting]


def read() -> tuple[Settings, Settings, Settings]:
    """Return the settings of the forced environment, the environment and the file, by key."""
    environ = os.environ
    forced = _forced(environ)
    plain: Settings = {}
    for option in OPTIONS.values():
        for variable in option.environment:
            text = environ.get(variable, "")
            if text:
                _add(forced if option.environment_wins else plain, option, text, variable)
    return forced, plain, _file(environ.get(FILE, ""))


WHILE_RUNNING = ("precompile_only", "jit_syntax_level")
"""Options whose environment variable also counts if the program sets it later: graphs that are created afterwards read it."""


def environment_texts() -> tuple[str, ...]:
    """Return the current texts of these options in the environment."""
    return tuple(os.environ.get(OPTIONS[key].environment[0], "") for key in WHILE_RUNNING)


def apply_environment_texts(forced: Settings, plain: Settings, texts: tuple[str, ...]) -> None:
    """Apply the texts of these options from the environment."""
    for key, text in zip(WHILE_RUNNING, texts):
        option = OPTIONS[key]
        layer = forced if option.environment_wins else plain
        layer.pop(key, None)
        if text:
            _add(layer, option, text, option.environment[0])


def _forced(environ: Mapping[str, str]) -> Settings:
    settings: Settings = {}
    by_variable = {option.key.upper().replace(".", "_"): option for option in OPTIONS.values()}
    for key, alias in ALIASES.items():
        by_variable.setdefault(key.upper().replace(".", "_"), OPTIONS[alias.of])
    for variable, text in environ.items():
        if variable.startswith(FORCE):
            option = by_variable.get(variable.removeprefix(FORCE))
            if option is None:
                near = closest(variable.removeprefix(FORCE), by_variable)
                problem = translate("{setting}: this option does not exist.").format(setting=f"{variable}={text}")
                raise UnknownOption(with_hint(problem, nearest_hint(f"{FORCE}{near}" if near else None)))
            _add(settings, option, text, variable)
    if environ.get(DEVICE):
        word = environ[DEVICE]
        near = closest(word, ("CPU", "GPU", "Ascend"))
        _add(settings, OPTIONS["device_target"], near if near and near.lower() == word.lower() else word, DEVICE)
    return settings


def _add(settings: Settings, option: Option, text: str, variable: str) -> None:
    """Parse one variable; a member of a dictionary option is merged with the other members."""
    value = option.parse_text(text, variable)
    parent = OPTIONS.get(option.parent or "")
    if parent is None:
        members: dict[str, Any] = {}
        if option.members:
            members = dict(plan(option.api, {option.name: value}, variable, variable, _default_value, _never)[option.key].members)
        settings[option.key] = Setting(text, value, variable, members)
        return
    previous = settings.get(parent.key)
    value_of_parent = previous.value if previous is not None else parent.default_on("CPU")
    if isinstance(parent.kind, Members):
        value_of_parent = {**value_of_parent, option.name: value}
    members_so_far = dict(previous.members) if previous is not None else {}
    settings[parent.key] = Setting(text, value_of_parent, variable, {**members_so_far, option.key: value})


def _default_value(key: str) -> Any:
    return OPTIONS[key].default_on("CPU")


def _never(key: str) -> bool:
    return False


def _file(path: str) -> Settings:
    if not path:
        return {}
    # The file is rare, so its reader is imported only here; Python 3.10 uses a package for it.
    tomllib = importlib.import_module("tomllib" if find_spec("tomllib") else "tomli")
    try:
        content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        text = translate("{setting}: the file cannot be read ({reason}).")
        raise OptionPathError(text.format(setting=f"{FILE}={path}", reason=error.strerror)) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        text = translate("{setting}: expected a TOML file, {error}.").format(setting=f"{FILE}={path}", error=error)
        raise FileFormatError(text) from None
    settings: Settings = {}
    for api, name in {"context": None, **_TABLES}.items():
        table = {key: value for key, value in content.items() if key not in _TABLES} if name is None else content.get(name, {})
        settings.update(plan(api, table, path, path, _default_value, _never))
    return settings


def report_forced_device(option: Option, requested: Setting, forced: Setting) -> None:
    """Report once on stderr that a forced device replaced the one that the program names."""
    if option.key == "device_target" and requested.value != forced.value and once.first_time(("forced", option.key)):
        text = translate("the program requests {value}{source}; {variable}={forced} runs it on {forced}").format(
            value=requested.value, source=f" ({requested.where})" if requested.where else "", variable=forced.where, forced=forced.value)
        effects.note("devices", text)
        print(f"torchspore: {text}{translate('.')}", file=sys.stderr)
