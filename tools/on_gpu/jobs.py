"""Jobs: processes that run the checks of a stage, each with a time limit, several at a time."""
from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from on_gpu import results

ROOT = Path(__file__).resolve().parents[2]
RESTARTS = 20
"""How often a job of pytest is started again after a crash."""
SPOILED = 75
"""The exit code of a pytest process whose device reports an earlier error for every call."""
NO_TESTS = 5
"""pytest's exit code if no test is selected: an earlier start has run all of them."""
_running: set[subprocess.Popen[bytes]] = set()


@dataclass(frozen=True)
class Job:
    """A process that runs checks.

    A job of pytest has `tests` (pytest's arguments); each test is a check. Any other has a `command`; the process is one check, or it
    appends its own lines to the file that ON_GPU_RESULTS names (`appends`).
    """

    stage: str
    name: str
    tests: Sequence[str] = ()
    command: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    appends: bool = False


@dataclass(frozen=True)
class Files:
    """The files that jobs write: the result file, and a folder for their outputs and notes."""

    results: Path
    work: Path


def run(jobs: Sequence[Job], files: Files, processes: int, seconds: float) -> None:
    """Run jobs, `processes` at a time, and kill those that still run after `seconds`. An interrupt kills all of them."""
    deadline = time.monotonic() + seconds
    with ThreadPoolExecutor(processes) as pool:
        futures = [pool.submit(_run_tests if job.tests else _run_command, job, files, deadline) for job in jobs]
        try:
            for future in futures:
                future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in list(_running):
                _end(process)
            raise


def _run_tests(job: Job, files: Files, deadline: float) -> None:
    """Run pytest, and start it again after each test that ends the process.

    Warnings stay warnings, because packages of a GPU machine emit some.
    """
    started_file = files.work / f"{job.stage}-{job.name}.started"
    extra = {"ON_GPU_JOB": str(started_file)}
    command = [sys.executable, "-m", "pytest", "-q", "-W", "default", "-p", "no:cacheprovider", "-p", "no:xdist",
               "-p", "on_gpu.pytest_recorder", *job.tests]
    for _ in range(RESTARTS + 1):
        begun = time.monotonic()
        code, output = _execute(command, job, files, deadline, extra)
        is_late = code is None
        crashed = _unfinished(job, files, started_file)
        for check in crashed:
            outcome = results.TIMED_OUT if is_late else results.CRASHED
            detail = "the time of the stage is over" if is_late else f"exit code {code}\n{output}"
            results.append(files.results, job.stage, check, outcome, time.monotonic() - begun, detail)
        if is_late and not crashed:
            results.append(files.results, job.stage, job.name, results.TIMED_OUT, time.monotonic() - begun, "the time of the stage is over")
        if is_late or (code in (0, 1, NO_TESTS) and not crashed):
            return
        if not crashed and code != SPOILED:         # a fault outside of tests, such as an import that fails
            results.append(files.results, job.stage, job.name, results.CRASHED, time.monotonic() - begun, f"exit code {code}\n{output}")
            return


def _unfinished(job: Job, files: Files, started_file: Path) -> list[str]:
    """Return the tests that were started and have no result."""
    started = started_file.read_text(encoding="utf-8").splitlines() if started_file.exists() else []
    finished = {line["check"] for line in results.read(files.results) if line["stage"] == job.stage}
    return [name for name in started if name not in finished]


def _run_command(job: Job, files: Files, deadline: float) -> None:
    """Run a command. Its exit code is the outcome of a check; if the process fails, the lines that it appended stay."""
    begun = time.monotonic()
    code, output = _execute(list(job.command), job, files, deadline, {})
    if job.appends and code == 0:
        return
    outcome = results.TIMED_OUT if code is None else results.PASSED if code == 0 else results.FAILED if code > 0 else results.CRASHED
    results.append(files.results, job.stage, job.name, outcome, time.monotonic() - begun, output)


def _execute(command: list[str], job: Job, files: Files, deadline: float, extra: Mapping[str, str]) -> tuple[int | None, str]:
    """Run a command and its children until the deadline. Return the exit code, None after the deadline, and the end of the output."""
    log = files.work / f"{job.stage}-{job.name}.log"
    environment = {**os.environ, **job.environment, **extra, "ON_GPU_RESULTS": str(files.results), "ON_GPU_STAGE": job.stage}
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        return None, ""
    with log.open("ab") as output:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True)
        _running.add(process)
        try:
            code: int | None = process.wait(seconds)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            _end(process)
            _running.discard(process)
    return code, _tail(log)


def _tail(log: Path) -> str:
    """Return the end of an output without the frames of pytest, which fill the stack of a crash."""
    lines = log.read_bytes()[-20_000:].decode(errors="replace").splitlines()
    text = "\n".join(line for line in lines if not any(word in line for word in ("/_pytest/", "/pluggy/", "/pytest/__main__")))
    return text[100 - results.DETAIL:]


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and its children."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()
