#!/usr/bin/env python3
"""Writes tests/slow.txt, the tests that only `make test-all` runs: `python tools/slow_tests.py JUNIT_FILE [--scale 0.5]`.

JUNIT_FILE is the file of `pytest --junitxml=FILE`. `--scale` converts its times to those of an idle machine with two cores and two tests
at once. A test that takes longer than LIMIT is slow; the quickest test of each function always stays in `make test`. If the other tests of
a parametrized function take longer than FAMILY together, an evenly spaced sample of them stays. Tests that are not in JUNIT_FILE, because
they are slow already, retain their lines as long as their files exist.
"""
from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parent.parent
LIST = ROOT / "tests" / "slow.txt"
LIMIT = 3.0
"""Seconds of a test."""
FAMILY = 4.0
"""Seconds of all tests of a function together."""
ALWAYS_QUICK = (
    "tests/parity/test_cases.py", "tests/scripts/test_documents.py", "tests/scripts/test_samples.py",
    "tests/unit/graph/control_flow/test_generated_in_place.py", "tests/unit/test_every_name_is_tested.py",
)
"""Files whose tests stay in `make test`: the parity records, the guides, the samples of the documents, 80 seeds of generated programs."""

Times = dict[str, float]


def main() -> None:
    """Read the times and write the list."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("junit", type=Path)
    parser.add_argument("--scale", type=float, default=1.0)
    options = parser.parse_args()
    families = read_times(options.junit, options.scale)
    measured = {test for family in families.values() for test in family}
    slow = {test for family in families.values() for test in slow_tests(family)}
    unmeasured = {test for test in LIST.read_text(encoding="utf-8").splitlines() if test not in measured}
    listed = slow | {test for test in unmeasured if (ROOT / test.partition("::")[0]).exists()}
    LIST.write_text("".join(f"{test}\n" for test in sorted(listed)), encoding="utf-8")
    quick = sum(seconds for family in families.values() for test, seconds in family.items() if test not in slow)
    print(f"{len(listed)} slow tests in {LIST.relative_to(ROOT)}; the quick tests take {quick:.0f} s of one process")


def read_times(junit: Path, scale: float) -> dict[str, Times]:
    """Return the scaled seconds of each test by its node id, grouped by test function."""
    families: dict[str, Times] = defaultdict(dict)
    for case in ElementTree.parse(junit).iter("testcase"):
        test = f"{case.attrib['classname'].replace('.', '/')}.py::{case.attrib['name']}"
        families[test.partition("[")[0]][test] = scale * float(case.attrib["time"])
    return families


def slow_tests(family: Times) -> set[str]:
    """Return the slow tests of one function."""
    if next(iter(family)).startswith(ALWAYS_QUICK):
        return set()
    quickest = min(family, key=family.__getitem__)
    candidates = [test for test in family if family[test] <= LIMIT and test != quickest]
    seconds = sum(family[test] for test in candidates)
    count = len(candidates) if seconds <= FAMILY else int(len(candidates) * FAMILY / seconds)
    sample = {candidates[index * len(candidates) // count] for index in range(count)}
    return set(family) - sample - {quickest}


if __name__ == "__main__":
    main()
