"""A text of flags: parses it, and warns about each meaningless flag. No text of flags is an error."""
from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from torchspore.base import frames, text
from torchspore.base.suggest import closest
from torchspore.context.kinds.files import read_json
from torchspore.context.kinds.plain import Kind, Wrong
from torchspore.translations import translate


class Words(Kind):
    """Comma-separated names, such as 'Add,ReLU'; unknown ones are ignored with a warning."""

    stub = "str"

    def __init__(self, what: str, names: Collection[str]) -> None:
        self.description, self.names = what, names

    @property
    def expected(self) -> str:
        return translate("comma-separated names of {things}").format(things=translate(self.description))

    def parse(self, value: object) -> Any:
        if not isinstance(value, (str, tuple)):
            raise self.wrong_type()
        return value if isinstance(value, tuple) else self.parse_text(value)

    def parse_text(self, raw: str) -> tuple[str, ...]:
        accepted = []
        for word in (part.strip() for part in raw.split(",")):
            if word in self.names:
                accepted.append(word)
            elif word:
                near = closest(word, self.names)
                problem = translate("{word!r} is not among the {things} that graph kernels know; it is ignored.")
                warn(problem.format(word=word, things=translate(self.description)),
                     translate("did you mean {near}?").format(near=near) if near else None)
        return tuple(dict.fromkeys(accepted))


class GraphKernelFlags(Kind):
    """A text of flags such as '--opt_level=2 --dump_as_text'; a flag without a value means true.

    `names` returns the kinds of the flags by name. `--path=FILE` names a JSON file with more flags; flags in the text override it.
    """

    stub = "str"

    def __init__(self, kinds: Callable[[], Mapping[str, Kind]]) -> None:
        self.names = kinds

    @property
    def expected(self) -> str:
        return translate("flags such as '--opt_level=2 --dump_as_text'")

    def parse(self, value: object) -> str:
        if not isinstance(value, str):
            raise self.wrong_type()
        return value

    def members(self, value: str) -> dict[str, Any]:
        """Return the values of the flags by name; warn about each meaningless part of the text."""
        flags: dict[str, Any] = {}
        for name, flag_value in _flags(value):
            if name in flags:
                warn(translate("the flag --{name} appears twice; the first one counts.").format(name=name),
                     translate("write --{name} once").format(name=name))
            else:
                self._add_flag(flags, name, flag_value)
        if "path" in flags:
            file_flags: dict[str, Any] = {}
            for name, flag_value in _read_flags(flags["path"]):
                self._add_flag(file_flags, name, flag_value)
            flags = {**file_flags, **flags}
        return flags

    def _add_flag(self, flags: dict[str, Any], name: str, text: str) -> None:
        kinds = self.names()
        kind = kinds.get(name)
        if kind is None:
            near = closest(name, kinds)
            warn(translate("there is no flag --{name}; it is ignored.").format(name=name),
                 translate("did you mean {near}?").format(near=f"--{near}") if near else None)
            return
        if name == "opt_level" and text.isdigit() and int(text) > 3:
            warn(translate("--opt_level={text} counts as 3, which is the highest.").format(text=text),
                 translate("write {word}").format(word="--opt_level=0, 1, 2 or 3"))
            text = "3"
        try:
            flags[name] = kind.parse_text(text)
        except Wrong as wrong:
            problem = translate("--{name}={text}: expected {expected}; the flag is ignored.")
            warn(problem.format(name=name, text=text, expected=wrong.expected), None)


def _flags(value: str) -> Iterator[tuple[str, str]]:
    for part in value.split():
        name, sign, flag_value = part[2:].partition("=")
        if not part.startswith("--") or not name:
            warn(translate("{word} is not a flag; it is ignored.").format(word=text.short(part)),
                 translate("a flag looks like --opt_level=2 or --dump_as_text"))
        else:
            yield name, flag_value if sign else "true"


def _read_flags(path: str) -> Iterator[tuple[str, str]]:
    try:
        content = read_json(path)
    except OSError as error:
        problem = translate("--path={path}: the file cannot be read ({reason}); it is ignored.")
        warn(problem.format(path=path, reason=error.strerror), None)
        return
    except ValueError as error:
        warn(translate("--path={path}: expected a file of JSON, {error}; it is ignored.").format(path=path, error=error), None)
        return
    if not isinstance(content, dict):
        warn(translate("--path={path}: expected one JSON object; it is ignored.").format(path=path), _file_example("opt_level"))
        return
    for name, item in content.items():
        if isinstance(item, (str, int)):
            yield name.removeprefix("--"), str(item)
        else:
            problem = translate("--path={path}: {name!r} is not a text; it is ignored.")
            warn(problem.format(path=path, name=name), _file_example(name))


def _file_example(name: str) -> str:
    return translate("for example {example}").format(example=f'{{"{name}": "2"}}')


def warn(problem: str, hint: str | None) -> None:
    """Warn at the user's line."""
    warning = f"graph_kernel_flags: {problem}"
    frames.warn(warning if hint is None else text.with_hint(warning, hint), "graph_kernel_flags")
