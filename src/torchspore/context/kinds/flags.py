"""A text of flags: what stands in it, and a warning for each flag that means nothing. No text of flags is an error."""
from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from torchspore.base import frames, text
from torchspore.base.suggest import closest
from torchspore.context.kinds.files import read_json
from torchspore.context.kinds.plain import Kind, Wrong


class Words(Kind):
    """Names with commas between, such as 'Add,ReLU'; those that are not known are named in a warning and passed over."""

    stub = "str"

    def __init__(self, what: str, known: Collection[str]) -> None:
        self.what, self.known = what, known

    @property
    def expected(self) -> str:
        return f"names of {self.what} with commas between"

    def parse(self, value: object) -> Any:
        if not isinstance(value, (str, tuple)):
            raise self.wrong_type()
        return value if isinstance(value, tuple) else self.parse_text(value)

    def parse_text(self, written: str) -> tuple[str, ...]:
        found = []
        for word in (part.strip() for part in written.split(",")):
            if word in self.known:
                found.append(word)
            elif word:
                near = closest(word, self.known)
                warn(f"{word!r} is not among the {self.what} that graph kernels know; it is passed over.",
                     f"did you mean {near}?" if near else None)
        return tuple(dict.fromkeys(found))


class GraphKernelFlags(Kind):
    """A text of flags such as '--opt_level=2 --dump_as_text'; a flag without a value means true.

    `known` gives the kinds of the flags by name. `--path=FILE` names a JSON file with more flags; those in the text win over it.
    """

    stub = "str"

    def __init__(self, known: Callable[[], Mapping[str, Kind]]) -> None:
        self.known = known

    @property
    def expected(self) -> str:
        return "flags such as '--opt_level=2 --dump_as_text'"

    def parse(self, value: object) -> str:
        if not isinstance(value, str):
            raise self.wrong_type()
        return value

    def members(self, value: str) -> dict[str, Any]:
        """Gives the values of the flags by name; warns for each part of the text that means nothing."""
        found: dict[str, Any] = {}
        for name, written in _flags(value):
            if name in found:
                warn(f"the flag --{name} is given twice; the first one counts.", f"write --{name} once")
            else:
                self._put(found, name, written)
        if "path" in found:
            inside: dict[str, Any] = {}
            for name, written in _of_file(found["path"]):
                self._put(inside, name, written)
            found = {**inside, **found}
        return found

    def _put(self, found: dict[str, Any], name: str, written: str) -> None:
        known = self.known()
        kind = known.get(name)
        if kind is None:
            near = closest(name, known)
            warn(f"there is no flag --{name}; it is passed over.", f"did you mean --{near}?" if near else None)
            return
        if name == "opt_level" and written.isdigit() and int(written) > 3:
            warn(f"--opt_level={written} counts as 3, which is the highest.", "write --opt_level=0, 1, 2 or 3")
            written = "3"
        try:
            found[name] = kind.parse_text(written)
        except Wrong as wrong:
            warn(f"--{name}={written}: expected {wrong.expected}; the flag is passed over.", None)


def _flags(value: str) -> Iterator[tuple[str, str]]:
    for part in value.split():
        name, sign, written = part[2:].partition("=")
        if not part.startswith("--") or not name:
            warn(f"{text.short(part)} is no flag; it is passed over.", "a flag looks like --opt_level=2 or --dump_as_text")
        else:
            yield name, written if sign else "true"


def _of_file(path: str) -> Iterator[tuple[str, str]]:
    try:
        content = read_json(path)
    except OSError as error:
        warn(f"--path={path}: the file cannot be read ({error.strerror}); it is passed over.", None)
        return
    except ValueError as error:
        warn(f"--path={path}: expected a file of JSON, {error}; it is passed over.", None)
        return
    if not isinstance(content, dict):
        warn(f"--path={path}: expected one JSON object; it is passed over.", 'for example {"opt_level": "2"}')
        return
    for name, item in content.items():
        if isinstance(item, (str, int)):
            yield name.removeprefix("--"), str(item)
        else:
            warn(f"--path={path}: {name!r} is no text; it is passed over.", f'for example {{"{name}": "2"}}')


def warn(what: str, hint: str | None) -> None:
    """Warns at the user's line."""
    told = f"graph_kernel_flags: {what}"
    frames.warn(told if hint is None else text.with_hint(told, hint), "graph_kernel_flags")
