"""Records the dtypes of the results of all binary operators in real MindSpore: tests/parity/records/promotion.json.

    tools/record.py promotion --python .oracle/bin/python
"""
from __future__ import annotations

import argparse
import json

from parity import promotion

from recorders import oracle


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add nothing: this subject has no arguments."""


def record_inside(arguments: argparse.Namespace) -> int:
    """Write the record: for each result the cases that have it."""
    mindspore = oracle.mindspore()
    mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
    mindspore.set_context(pynative_synchronize=True)
    by_result: dict[str, list[str]] = {}
    for symbol, first_type in promotion.groups():
        for case, result in answers(symbol, first_type).items():
            by_result.setdefault(result, []).append(case)
    content = {"made by": "tools/record.py promotion", "mindspore": mindspore.__version__, "results": by_result}
    path = oracle.RECORDS / "promotion.json"
    path.write_text(json.dumps(content, indent=0) + "\n", encoding="utf-8")
    print(f"{path.relative_to(oracle.ROOT)}: {sum(map(len, by_result.values()))} cases")
    return 0


def answers(symbol: str, first_type: str) -> dict[str, str]:
    """Return the answers of one group; the cases run one by one if MindSpore crashes in the group."""
    of_group = _ask(symbol, first_type)
    if of_group is not None:
        return of_group
    return {case: (_ask(symbol, first_type, case) or {case: "crash"})[case] for case in promotion.names(symbol, first_type)}


def _ask(symbol: str, first_type: str, only: str | None = None) -> dict[str, str] | None:
    mindspore = oracle.mindspore()
    return oracle.answer_of_fork(lambda: promotion.answers(mindspore, symbol, first_type, only))
