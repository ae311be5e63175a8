"""`torchspore env`: print what is installed and where it runs, for a bug report."""
from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from torchspore.base.columns import pad, width
from torchspore.cli.grammar import Parser, returns_exit_code
from torchspore.translations import english, translate


def parser() -> Parser:
    """Return the parser of the command."""
    command = Parser(
        prog="torchspore env", description="Describes this machine and its installed packages, without user names and secrets.",
        examples=["torchspore env --json"],
    )
    command.add_argument("--json", action="store_true", help="one JSON object")
    return command


@returns_exit_code
def run(words: Sequence[str]) -> int:
    """Run the command."""
    options = parser().parse_args(list(words))
    import torchspore.engine  # noqa: F401  (applies the options that environment variables set)
    from torchspore.engine.devices import machine

    with english(options.json):
        sections: dict[str, dict[str, Any]] = machine.facts()
    if options.json:
        print(json.dumps(sections, indent=2))
        return 0
    for section, facts in sections.items():
        print(translate(section))
        names = {name: translate(name) for name in facts}
        columns = max(map(width, names.values()), default=0)
        for name, value in facts.items():
            shown = str(value)
            print(f"  {pad(names[name], columns)}  {shown if shown.isprintable() else repr(shown)}")
        if not facts:
            print(f"  {translate('none of those that torchspore, MindSpore or torch read')}")
    return 0
