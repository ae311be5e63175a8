"""A pytest plugin that appends a JSON line for each test, and lets a run continue after a crash.

The environment contains ON_GPU_RESULTS (the result file), ON_GPU_STAGE (the letter), ON_GPU_JOB (a file that belongs to this job and
names the tests that were started). Tests that this file names are not run again, so a job that crashed is started again as it is.
A CUDA error such as an illegal access spoils the process for all later tests: the process then ends with SPOILED.
"""
from __future__ import annotations

import faulthandler
import os
import sys
from pathlib import Path

import pytest

from on_gpu import results
from on_gpu.jobs import SPOILED

LIMIT = float(os.environ.get("ON_GPU_TEST_SECONDS", "120"))
"""The seconds after which a test counts as hung and its process ends."""
_stderr = os.fdopen(os.dup(2), "w")
"""The process's error output; pytest redirects the descriptor itself."""
_results, _stage, _job = Path(os.environ["ON_GPU_RESULTS"]), os.environ["ON_GPU_STAGE"], Path(os.environ["ON_GPU_JOB"])
_reports: dict[str, list[pytest.TestReport]] = {}


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Remove the tests that earlier starts of this job have run."""
    started = set(_job.read_text(encoding="utf-8").splitlines()) if _job.exists() else set()
    done = [item for item in items if item.nodeid in started]
    config.hook.pytest_deselected(items=done)
    items[:] = [item for item in items if item.nodeid not in started]


def pytest_runtest_logstart(nodeid: str) -> None:
    """Note that a test starts: a test without a result has crashed."""
    with _job.open("a", encoding="utf-8") as file:
        file.write(nodeid + "\n")
    faulthandler.dump_traceback_later(LIMIT, exit=True, file=_stderr)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Collect the parts of a test: set-up, call, tear-down."""
    _reports.setdefault(report.nodeid, []).append(report)


def pytest_runtest_logfinish(nodeid: str) -> None:
    """Append the line of a test, and end the process if its device is spoiled."""
    faulthandler.cancel_dump_traceback_later()
    reports = _reports.pop(nodeid, [])
    failed = next((report for report in reports if report.failed), None)
    skipped = next((report for report in reports if report.skipped), None)
    outcome = results.FAILED if failed else results.SKIPPED if skipped else results.PASSED
    detail = _message(failed) if failed else _reason(skipped) if skipped else ""
    results.append(_results, _stage, nodeid, outcome, sum(report.duration for report in reports), detail)
    if failed and _is_spoiled():
        os._exit(SPOILED)


def _message(report: pytest.TestReport) -> str:
    """Return the error and the line that raised it."""
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is None:
        return report.longreprtext
    return f"{crash.message[:results.DETAIL - 200]}\n{crash.path}:{crash.lineno}"


def _reason(report: pytest.TestReport) -> str:
    """Return the reason of a skip: pytest stores (file, line, reason)."""
    return str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else report.longreprtext


def _is_spoiled() -> bool:
    """Return whether every call of CUDA now reports an error of an earlier kernel."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available() or not torch.cuda.is_initialized():
        return False
    try:
        torch.cuda.synchronize()
        torch.zeros(1, device="cuda").add(1).item()
    except RuntimeError:
        return True
    return False
