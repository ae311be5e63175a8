"""Records the dtypes of all binary operators in real MindSpore: `.oracle/bin/python tools/record_promotion.py`."""
from __future__ import annotations

import json
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import mindspore  # noqa: E402
from parity import promotion  # noqa: E402


def apart(symbol: str, left: str, only: str | None = None) -> dict[str, str] | None:
    """The answers of one group from a forked process; None where MindSpore crashes."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        with os.fdopen(write, "w") as stream:
            json.dump(promotion.answers(mindspore, symbol, left, only), stream)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as stream:
        text = stream.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else None


def recorded(symbol: str, left: str) -> dict[str, str]:
    """The answers of one group, case by case where the group crashes."""
    found = apart(symbol, left)
    if found is not None:
        return found
    return {case: (apart(symbol, left, case) or {case: "crash"})[case] for case in promotion.names(symbol, left)}


def main() -> None:
    """Writes tests/parity/records/promotion.json: for each result the cases that give it."""
    mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
    mindspore.set_context(pynative_synchronize=True)
    by_result: dict[str, list[str]] = {}
    for symbol, left in promotion.groups():
        for case, result in recorded(symbol, left).items():
            by_result.setdefault(result, []).append(case)
    made = {"made by": "tools/record_promotion.py", "mindspore": mindspore.__version__, "results": by_result}
    path = ROOT / "tests" / "parity" / "records" / "promotion.json"
    path.write_text(json.dumps(made, indent=0) + "\n", encoding="utf-8")
    print(f"{path.relative_to(ROOT)}: {sum(map(len, by_result.values()))} cases")


if __name__ == "__main__":
    main()
