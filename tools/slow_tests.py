"""Writes tests/slow.txt, the tests that `make test` leaves to `make test-all`: `python tools/slow_tests.py JUNIT_FILE`.

JUNIT_FILE is what `pytest --junitxml=FILE` wrote. A test that took longer than LIMIT is slow. The quickest of each file stays, so that no
file is left out as a whole, and where MANY of a file are slow, the quickest of these stays too, as they test what the quick ones don't.
What JUNIT_FILE does not hold (slow tests did not run) keeps its line while its file is there.
"""
from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parent.parent
LIST = ROOT / "tests" / "slow.txt"
LIMIT = 1.2
"""Seconds on two cores, with two tests at once."""
MANY = 4
STAY = ("tests/scripts/test_documents.py", "tests/scripts/test_samples.py", "tests/unit/test_every_name_is_tested.py")
"""What runs in `make test` whatever it takes: the guides, the samples of the documents, and what speaks of the whole."""


def main() -> None:
    """Reads the times and writes the list."""
    times = _times(Path(sys.argv[1]))
    slow = {name for of_a_file in times.values() for name in _slow(of_a_file)}
    ran = {name for of_a_file in times.values() for name in of_a_file}
    kept = {name for name in LIST.read_text(encoding="utf-8").splitlines() if name not in ran} if LIST.exists() else set()
    kept = {name for name in kept if (ROOT / name.partition("::")[0]).exists()}
    LIST.write_text("".join(f"{name}\n" for name in sorted(slow | kept)), encoding="utf-8")
    print(f"{len(slow | kept)} slow tests in {LIST.relative_to(ROOT)}; the others took {_rest(times, slow):.0f} s, one after another")


def _times(junit: Path) -> dict[str, dict[str, float]]:
    """Seconds of each test, by its node's name, by its file."""
    found: dict[str, dict[str, float]] = defaultdict(dict)
    for case in ElementTree.parse(junit).iter("testcase"):
        file = case.attrib["classname"].replace(".", "/") + ".py"
        found[file][f"{file}::{case.attrib['name']}"] = float(case.attrib["time"])
    return {file: of_it for file, of_it in found.items() if file not in STAY}


def _slow(times: dict[str, float]) -> list[str]:
    slow = sorted((name for name, seconds in times.items() if seconds > LIMIT), key=times.__getitem__)
    return slow[1:] if len(slow) == len(times) or len(slow) >= MANY else slow


def _rest(times: dict[str, dict[str, float]], slow: set[str]) -> float:
    return sum(seconds for of_a_file in times.values() for name, seconds in of_a_file.items() if name not in slow)


if __name__ == "__main__":
    main()
