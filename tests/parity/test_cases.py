"""Every parity case, run here and compared with what real MindSpore 2.10 answered."""
from __future__ import annotations

import os
import zlib
from pathlib import Path

import pytest
from parity import case as parity

# `PARITY=nn_conv,elementwise pytest tests/parity/test_cases.py` looks at these files only.
CHOSEN = {name for name in os.environ.get("PARITY", "").split(",") if name}
# `TESTS_TOLERANCE=accelerator` compares by the tolerances of an accelerator; tools/on_gpu.sh sets it.
ON_ACCELERATOR = os.environ.get("TESTS_TOLERANCE") == "accelerator"
FILES = sorted(path for path in parity.CASES.glob("*.py") if not CHOSEN or path.stem in CHOSEN)


def marks(name: str, graph: bool) -> list[pytest.MarkDecorator]:
    """Of the cases in Graph mode, every third is run at once; the others are slow."""
    return [pytest.mark.slow] if graph and zlib.crc32(name.encode()) % 3 and not CHOSEN else []


def parameters() -> list[object]:
    """One parameter for each case and mode; a file that can't be imported is one that fails."""
    results: list[object] = []
    for path in FILES:
        try:
            cases = parity.load(path)
        except Exception as error:
            results.append(pytest.param(path, error, False, id=path.stem))
            continue
        for case in cases:
            for graph in {False, case.graph}:
                name = f"{path.stem}:{case.name}" + ":graph" * graph
                results.append(pytest.param(path, case, graph, id=name, marks=marks(name, graph)))
    return results


@pytest.mark.parametrize(("path", "case", "graph"), parameters())
def test_case(path: Path, case: parity.Case | Exception, graph: bool, records: dict[str, dict[str, object]]) -> None:
    if isinstance(case, Exception):
        raise case
    assert case.name in records, f"not recorded yet: tools/record.py parity --python ORACLE {path.stem}"
    result = parity.run(case, graph)
    assert not parity.differences(records[case.name], result, case.rtol, case.atol, ON_ACCELERATOR)


@pytest.fixture
def records(path: Path) -> dict[str, dict[str, object]]:
    if path not in _read:
        record = parity.RECORDS / f"{path.stem}.npz"
        _read[path] = parity.read(record) if record.exists() else {}
    return _read[path]


_read: dict[Path, dict[str, dict[str, object]]] = {}


def test_every_record_has_its_case() -> None:
    for path in FILES:
        record = parity.RECORDS / f"{path.stem}.npz"
        if record.exists():
            assert set(parity.read(record)) == {case.name for case in parity.load(path)}, f"stale: {record.name}"
