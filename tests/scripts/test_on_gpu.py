"""tools/on_gpu.sh itself: a crash or a hang costs one check, stages end in time, the page says what ran. No GPU is needed."""
from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from on_gpu import __main__ as command
from on_gpu import jobs, page, results, stages, wheels
from whole_programs import programs

ROOT = Path(__file__).parents[2]


@pytest.fixture
def run_tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, dict[str, Any]]]:
    """Runs a test file as a job and gives its result lines by the names of the tests."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "tools"))

    def call(text: str, seconds: float = 60, **environment: str) -> dict[str, dict[str, Any]]:
        file = tmp_path / "test_sample.py"
        file.write_text(text, encoding="utf-8")
        job = jobs.Job("b", "sample", tests=("-c", "/dev/null", "--rootdir", str(tmp_path), str(file)), environment=environment)
        jobs.run([job], jobs.Files(tmp_path / "results.jsonl", tmp_path), 1, seconds)
        return {line["check"].rpartition("::")[2]: line for line in results.read(tmp_path / "results.jsonl")}

    return call


SAMPLE = """
import os, time, pytest
def test_first(): pass
def test_wrong(): assert 1 == 2, "wrong number"
def test_absent(): pytest.skip("needs CUDA")
def test_ended(): {fault}
def test_last(): pass
"""


def outcomes(lines: dict[str, dict[str, Any]]) -> dict[str, str]:
    return {name: line["outcome"] for name, line in lines.items()}


def test_a_crash_costs_one_check(run_tests: Callable[..., dict[str, dict[str, Any]]]) -> None:
    lines = run_tests(SAMPLE.format(fault="os.abort()"))
    assert outcomes(lines) == {
        "test_first": "passed", "test_wrong": "failed", "test_absent": "skipped", "test_ended": "crashed", "test_last": "passed"}
    assert "wrong number" in lines["test_wrong"]["detail"] and lines["test_absent"]["detail"] == "Skipped: needs CUDA"
    assert "exit code -6" in lines["test_ended"]["detail"]


def test_a_hang_costs_one_check(run_tests: Callable[..., dict[str, dict[str, Any]]]) -> None:
    lines = run_tests(SAMPLE.format(fault="time.sleep(60)"), ON_GPU_TEST_SECONDS="1")
    assert outcomes(lines)["test_ended"] == "crashed" and outcomes(lines)["test_last"] == "passed"
    assert "Timeout" in lines["test_ended"]["detail"]


def test_the_time_of_a_stage_ends_its_jobs(run_tests: Callable[..., dict[str, dict[str, Any]]]) -> None:
    lines = run_tests(SAMPLE.format(fault="time.sleep(60)"), seconds=4)
    assert outcomes(lines)["test_ended"] == "timed out" and "test_last" not in lines


def test_a_file_that_cannot_be_imported_is_a_crash(run_tests: Callable[..., dict[str, dict[str, Any]]]) -> None:
    assert outcomes(run_tests("import no_such_module\n")) == {"sample": "crashed"}


def test_the_outcome_of_a_command_is_its_exit_code(tmp_path: Path) -> None:
    texts = {"right": "print('fine')", "wrong": "raise SystemExit('no device')", "ended": "import os; os.abort()",
             "slow": "import time; time.sleep(60)"}
    planned = [jobs.Job("a", name, command=(sys.executable, "-c", text)) for name, text in texts.items()]
    jobs.run(planned, jobs.Files(tmp_path / "results.jsonl", tmp_path), 4, 5)
    lines = {line["check"]: line for line in results.read(tmp_path / "results.jsonl")}
    assert outcomes(lines) == {"right": "passed", "wrong": "failed", "ended": "crashed", "slow": "timed out"}
    assert "no device" in lines["wrong"]["detail"]


def test_an_interrupt_ends_all_processes(tmp_path: Path) -> None:
    text = (
        "import sys\nfrom pathlib import Path\nfrom on_gpu import jobs\n"
        f"files = jobs.Files(Path({str(tmp_path)!r}, 'results.jsonl'), Path({str(tmp_path)!r}))\n"
        "sleeper = (sys.executable, '-c', 'import os, time; print(os.getpid(), flush=True); time.sleep(60)')\n"
        "jobs.run([jobs.Job('a', 'first', command=sleeper), jobs.Job('a', 'second', command=sleeper)], files, 1, 60)\n")
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tools")}
    with subprocess.Popen([sys.executable, "-c", text], env=environment, stderr=subprocess.DEVNULL) as process:
        log = tmp_path / "a-first.log"
        while not (log.exists() and log.read_text().strip()):
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        assert process.wait(20) != 0
    assert not Path("/proc", log.read_text().strip()).exists() and not (tmp_path / "a-second.log").exists()


def test_later_stages_have_the_time_that_earlier_ones_did_not_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:
    limits = []
    monkeypatch.setattr(jobs, "run", lambda planned, files, processes, seconds: limits.append(seconds))
    command.run_stages(stages.STAGES, stages.Machine(False, 16), jobs.Files(tmp_path / "results.jsonl", tmp_path), 480)
    assert sum(stage.seconds for stage in stages.STAGES) == 480
    assert limits[0] == pytest.approx(25, abs=1) and limits[-1] == pytest.approx(480, abs=1)


def test_the_stages_name_what_exists() -> None:
    for machine in (stages.Machine(False, 16), stages.Machine(True, 2)):
        planned = [job for stage in stages.STAGES for job in stage.jobs(machine)]
        assert len({(job.stage, job.name) for job in planned}) == len(planned)
        files = {word for job in planned for word in (*job.tests, *job.command) if word.endswith(".py")}
        assert all((ROOT / file).exists() for file in files)
    assert set(stages.WHOLE_PROGRAMS) <= {path.stem for path in programs()} and len(stages.WHOLE_PROGRAMS) == 20
    cases = {path.stem for path in (ROOT / "tests/parity/cases").glob("*.py")}
    parts = [job.environment["PARITY"].split(",") for job in stages.parity(stages.Machine(False, 16))]
    assert sorted(name for part in parts for name in part) == sorted(cases)


def test_every_test_on_the_gpu_belongs_to_a_stage() -> None:
    named = {word for stage in stages.STAGES for job in stage.jobs(stages.Machine(False, 1)) for word in job.tests}
    assert {str(path.relative_to(ROOT)) for path in (ROOT / "tests/gpu").glob("test_*.py")} <= named


def test_a_wrong_letter_and_a_machine_without_a_gpu() -> None:
    ended = subprocess.run(["tools/on_gpu.sh", "--stages", "a,x"], cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 2 and "'x' is no stage: expected letters of abcdefgh with commas between, such as a,c" in ended.stderr


@pytest.mark.parametrize(("words", "text"), [
    (["--minutes", "0"], "argument --minutes: '0': expected a number above 0, such as 8"),
    (["--processes", "none"], "argument --processes: 'none': expected a number above 0, such as 8"),
    (["--out", "/proc/none", "--dry"], "tools/on_gpu.sh --out /proc/none: No such file or directory. Expected a folder that can be"),
    (["--publish", "/none.jsonl"], "/none.jsonl: there is no such file. Expected a results.jsonl that tools/on_gpu.sh wrote."),
])
def test_wrong_words_of_the_command_line(words: list[str], text: str) -> None:
    ended = subprocess.run(["tools/on_gpu.sh", *words], cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode in (1, 2) and text in ended.stderr


MACHINE = {"date": "2026-11-28", "commit": "abc1234", "card": "NVIDIA H100", "memory": 79.6, "driver": "580", "python": "3.12.3",
           "torch": "2.11.0+cu130", "cuda": "13.0", "hip": None, "cudnn": 91900, "cores": 16}


def lines_of_a_run(file: Path) -> None:
    results.append(file, results.MACHINE, "machine", results.PASSED, **MACHINE, dry=False)
    results.append(file, "b", "tests/gpu/test_a.py::test_a", results.PASSED, 1.0)
    results.append(file, "b", "tests/gpu/test_a.py::test_b", results.FAILED, 1.0, "assert 1 == 2 | wrong\nfile.py:3")
    results.append(file, "h", "tests/gpu/test_a.py::test_c", results.SKIPPED, 1.0, "Skipped: needs CUDA")
    contender = {"name": "PyNative", "ms": 2.0, "share": 0.5, "waits": 0, "ratio": [0.9, 1.0, 1.1]}
    results.append(file, "f", "gpt2", results.PASSED, title="GPT-2-small", dtype="bfloat16", gflop=10.0, peak_tflops=800.0,
                   contenders=[contender])


def test_the_page_shows_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines_of_a_run(tmp_path / "results.jsonl")
    monkeypatch.setattr(page, "SUMMARY", tmp_path / "gpu.json")
    monkeypatch.setattr(page, "PAGE", tmp_path / "gpu.md")
    page.publish(tmp_path / "results.jsonl")
    text = (tmp_path / "gpu.md").read_text(encoding="utf-8")
    assert "2026-11-28, commit abc1234: NVIDIA H100, 79.6 GiB, 16 cores." in text and "cuDNN 91900" in text
    assert "| 1 passed, 1 failed |" in text and "| assert 1 == 2 \\| wrong |" in text and "| h | 1 | Skipped: needs CUDA |" in text
    assert "| PyNative | 2.000 | 1.00 (0.90 .. 1.10) | 50.0% | 0 |" in text and "Never run" not in text
    assert page.page() == text


def test_a_dry_run_is_not_published(tmp_path: Path) -> None:
    results.append(tmp_path / "results.jsonl", results.MACHINE, "machine", results.PASSED, **{**MACHINE, "dry": True})
    with pytest.raises(SystemExit, match="this is no run on a GPU"):
        page.publish(tmp_path / "results.jsonl")


def test_without_a_run_the_page_says_so() -> None:
    assert "**Never run.**" in page.render(None) and "| not run |" in page.render(None)


def test_a_line_torn_by_a_kill_is_omitted(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    results.append(file, "a", "doctor", results.PASSED)
    file.write_text(file.read_text(encoding="utf-8") + '{"stage": "a", "che', encoding="utf-8")
    assert [line["check"] for line in results.read(file)] == ["doctor"]


def test_the_packages_that_travel() -> None:
    assert wheels.names() == ["google-crc32c>=1.5", "regex>=2024.5.15", "simplejpeg>=1.7"]


@pytest.mark.slow
def test_a_dry_run(tmp_path: Path) -> None:
    command_line = ["tools/on_gpu.sh", "--dry", "--stages", "a,b,g,h", "--out", str(tmp_path)]
    ended = subprocess.run(command_line, cwd=ROOT, capture_output=True, text=True)
    lines = results.read(tmp_path / "results.jsonl")
    assert ended.returncode == 0, ended.stdout
    assert {line["stage"] for line in lines} == {results.MACHINE, "a", "b", "g", "h"} and json.dumps(lines)
    assert "A dry run: nothing here ran on a GPU." in (tmp_path / "gpu.md").read_text(encoding="utf-8")
