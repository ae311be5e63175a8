"""`torchspore context`: list every option, or show the page of one."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from torchspore.base.suggest import closest
from torchspore.base.text import first_sentence, with_hint
from torchspore.context import page
from torchspore.context.option import SETTERS, Alias, Option
from torchspore.context.options import ALIASES, OPTIONS

USAGE = """usage: torchspore context [NAME]

Lists the options of the context and whether they act, or shows the page of one.
"""


def run(arguments: Sequence[str]) -> int:
    """Run the command; return 2 if the option does not exist."""
    if list(arguments) in (["-h"], ["--help"]):
        print(USAGE, end="")
        return 0
    if not arguments:
        print("\n".join(listing()))
        return 0
    pages = [line for name in arguments[:1] for line in _pages(name)]
    if pages:
        print("\n".join(pages))
        return 0
    names = [option.name for option in OPTIONS.values()] + [alias.name for alias in ALIASES.values()]
    near = closest(arguments[0], names)
    hint = f"did you mean {near}?" if near else "`torchspore context` lists every option"
    print(with_hint(f"torchspore context {arguments[0]}: there is no such option.", hint), file=sys.stderr)
    return 2


def listing() -> Iterator[str]:
    """Yield the lines of the list: one for each option and alias, by setter; members follow their dictionary."""
    for api, setter in SETTERS.items():
        yield f"{setter}:"
        declared: list[Option | Alias] = [option for option in OPTIONS.values() if option.api == api and option.parent not in OPTIONS]
        declared += [alias for alias in ALIASES.values() if alias.api == api]
        for item in sorted(declared, key=lambda item: item.name):
            yield _line(item, "  ")
            members = item.members.values() if isinstance(item, Option) else ()
            yield from (_line(member, "    > ") for member in members)
        yield ""
    yield f"{page.summary()} `torchspore explain` prints the outcome of each."


def _line(item: Option | Alias, indent: str) -> str:
    return f"{indent + item.name:44} {page.state(item):4}  {first_sentence(item.doc)}"


def _pages(name: str) -> Iterator[str]:
    """Yield the page of every option with this name or key."""
    for table in (OPTIONS, ALIASES):
        for key, item in table.items():
            if name in (key, item.name):
                yield from page.plain(item)
                yield ""
