"""`torchspore env`: print what is installed and where it runs, for a bug report."""
from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import Any


def run(words: Sequence[str]) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(
        prog="torchspore env", description="Describes this machine and its installed packages, without user names and secrets."
    )
    parser.add_argument("--json", action="store_true", help="one JSON object")
    options = parser.parse_args(list(words))
    import torchspore.engine  # noqa: F401  (applies the options that environment variables set)
    from torchspore.engine.devices import machine

    sections: dict[str, dict[str, Any]] = machine.facts()
    if options.json:
        print(json.dumps(sections, indent=2))
        return 0
    for section, facts in sections.items():
        print(section)
        width = max((len(name) for name in facts), default=0)
        for name, value in facts.items():
            shown = str(value)
            print(f"  {name:{width}}  {shown if shown.isprintable() else repr(shown)}")
        if not facts:
            print("  none of those that torchspore, MindSpore or torch read")
    return 0
