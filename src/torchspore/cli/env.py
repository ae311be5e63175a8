"""`torchspore env`: what is installed and where it runs, to be pasted into a report of a fault."""
from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import Any


def run(words: Sequence[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="torchspore env", description="Tells of this machine and what is installed on it. No user's name and no secret is among it."
    )
    parser.add_argument("--json", action="store_true", help="one JSON object")
    options = parser.parse_args(list(words))
    import torchspore.engine  # noqa: F401  (the options that environment variables set act before they are told)
    from torchspore.engine.core import machine

    found: dict[str, dict[str, Any]] = machine.facts()
    if options.json:
        print(json.dumps(found, indent=2))
        return 0
    for section, facts in found.items():
        print(section)
        width = max((len(name) for name in facts), default=0)
        for name, value in facts.items():
            shown = str(value)
            print(f"  {name:{width}}  {shown if shown.isprintable() else repr(shown)}")
        if not facts:
            print("  none of those that torchspore, MindSpore or torch read")
    return 0
