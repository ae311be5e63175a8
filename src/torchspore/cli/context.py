"""`torchspore context`: list every option, or show the page of one."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence

from torchspore.base.columns import pad
from torchspore.base.suggest import closest
from torchspore.base.text import first_sentence, with_hint
from torchspore.cli.grammar import USAGE_ERROR, Parser, returns_exit_code
from torchspore.context import page
from torchspore.context.option import SETTERS, Alias, Option
from torchspore.context.options import ALIASES, OPTIONS
from torchspore.translations import translate


def parser() -> Parser:
    """Return the parser of the command."""
    command = Parser(
        prog="torchspore context", description="Lists the options of the context and whether they act, or shows the page of one.",
        examples=["torchspore context", "torchspore context device_target"],
    )
    command.add_argument("name", nargs="?", metavar="NAME", help="an option of set_context, set_auto_parallel_context or another setter")
    command.add_argument("--json", action="store_true", help="one JSON list, an object for each option")
    return command


@returns_exit_code
def run(words: Sequence[str]) -> int:
    """Run the command; return 2 if the option does not exist."""
    options = parser().parse_args(list(words))
    if options.name is None:
        print(json.dumps(records(), indent=2) if options.json else "\n".join(listing()))
        return 0
    matches = [record for record in records() if options.name in (record["key"], record["name"])]
    pages = [json.dumps(matches, indent=2)] if options.json and matches else list(_pages(options.name))
    if pages:
        print("\n".join(pages))
        return 0
    names = [option.name for option in OPTIONS.values()] + [alias.name for alias in ALIASES.values()]
    near = closest(options.name, names)
    hint = translate("did you mean {near}?").format(near=near) if near else translate("`torchspore context` lists every option")
    text = translate("{setting}: this option does not exist.").format(setting=f"torchspore context {options.name}")
    print(with_hint(text, hint), file=sys.stderr)
    return USAGE_ERROR


def records() -> list[dict[str, object]]:
    """Return the options and aliases as JSON objects: key, name, setter, state (as in the list) and a sentence."""
    return [
        {"key": key, "name": item.name, "setter": SETTERS[item.api], "state": page.state(item), "description": first_sentence(item.doc)}
        for table in (OPTIONS, ALIASES) for key, item in table.items()
    ]


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
    yield page.summary() + translate(" `torchspore explain` prints the outcome of each.")


def _line(item: Option | Alias, indent: str) -> str:
    return f"{indent + item.name:44} {pad(translate(page.state(item)), 4)}  {first_sentence(translate(item.doc))}"


def _pages(name: str) -> Iterator[str]:
    """Yield the page of every option with this name or key."""
    for table in (OPTIONS, ALIASES):
        for key, item in table.items():
            if name in (key, item.name):
                yield from page.plain(item)
                yield ""
