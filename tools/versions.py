#!/usr/bin/env python3
"""Runs the tests with other versions of Python, torch and NumPy, and with and without the optional extras.

    tools/versions.py --list                      the combinations, and which results each of them has
    tools/versions.py --run oldest                all tests of one combination, in four parts, except those with a result of this commit
    tools/versions.py --run oldest --parts 2/4    one part
    tools/versions.py --run oldest --repeat-failed    the tests that failed in the stored results, with this commit
    tools/versions.py --run oldest --sample       a sample: a shard of the tests, and the files that depend most on Python and torch
    tools/versions.py --all [--sample]            every combination, one after the other

Each combination gets a separate virtual environment in .versions/, which the tool deletes at the end (except with `--keep`): a CUDA build
of torch takes 5 to 7 GB. The tests run in a work tree of the last commit: files may be edited meanwhile, and changes without a commit are
not tested.
The results go to docs/reference/versions.json after each part, so that an interrupted run loses one part at most, and from there to
docs/reference/versions.md. The configuration file of pip is ignored (PIP_CONFIG_FILE), because it may limit torch to the versions that
one machine offers; the environment variables of pip act. The tool looks for an interpreter in pyenv's folder, in PATH, and in the folder
.versions/pythonX.Y that tools/debian_python.sh fills.
"""
from __future__ import annotations

import argparse
import datetime
import os
import platform
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from generators import versions_page  # noqa: E402  (the path is set just above)

WORK = ROOT / ".versions"
PARTS = ("1/4", "2/4", "3/4", "4/4")
SAMPLE = "sample"
SAMPLE_SHARD = "1/24"
SAMPLE_FILES = ("tests/null", "tests/unit/context/test_effects.py", "tests/unit/context/test_explain.py", "tests/scripts/test_alias.py",
                "tests/unit/graph/graph_breaks", "tests/unit/graph/test_capture.py", "tests/unit/graph/test_python_values.py",
                "tests/unit/graph/test_passes.py", "tests/unit/graph/test_levels.py", "tests/unit/graph/test_dynamic_shapes.py",
                "tests/unit/engine/test_dtypes.py", "tests/unit/engine/test_tracing.py", "tests/unit/test_extras.py")
EXTRAS = ("completion", "export", "encryption", "server", "summary", "text", "video")
SPACE = 9
"""Gigabytes that the largest environment needs while pip unpacks it."""
HOURS = 3
"""A longer call of pytest is killed and counts as an error."""


@dataclass(frozen=True)
class Combination:
    """One row of the table: versions (`numpy` is a requirement's text), the optional extras, and the tests that are run.

    Without `extras` only pytest and torchspore are installed; with them, the tools of the developers too. Empty `files` means all tests.
    """

    name: str
    python: str
    torch: str
    numpy: str
    extras: tuple[str, ...] = EXTRAS
    files: tuple[str, ...] = ()

    def parts(self) -> tuple[str, ...]:
        """Return the parts that make a complete result."""
        return ("files",) if self.files else PARTS


SMOKE = ("tests/null", "tests/unit/test_extras.py", "tests/unit/cli", "tests/scripts/test_alias.py")


def without_extra(extra: str, *files: str) -> Combination:
    """Return the combination that lacks one extra; `files` are the tests that touch it."""
    return Combination(f"no-{extra}", "3.11", "2.13.0", "numpy>=2", tuple(other for other in EXTRAS if other != extra), (*files, *SMOKE))


COMBINATIONS = {row.name: row for row in (
    Combination("oldest", "3.10", "2.11.0", "numpy==1.26.4", ()),
    Combination("newest", "3.14", "2.15.0", "numpy>=2"),
    Combination("default", "3.11", "2.13.0", "numpy>=2"),
    Combination("torch-2.12", "3.11", "2.12.1", "numpy==1.26.4"),
    Combination("torch-2.14", "3.12", "2.14.1", "numpy>=2"),
    Combination("python-3.13", "3.13", "2.15.0", "numpy>=2", ()),
    Combination("old-python-new-torch", "3.10", "2.14.1", "numpy==1.26.4", ()),
    Combination("new-python-old-torch", "3.14", "2.11.0", "numpy>=2", ()),
    without_extra("completion"),
    without_extra("export", "tests/unit/train/test_export.py"),
    without_extra("encryption", "tests/unit/train/test_encryption.py"),
    without_extra("server", "tests/unit/server/test_roles.py"),
    without_extra("summary", "tests/unit/train/test_summary.py"),
    without_extra("text", "tests/unit/dataset/test_text.py"),
    without_extra("video", "tests/unit/dataset/test_more_vision.py"),
)}


def main() -> int:
    """Run the command. Return 1 if a combination has a failure, or its environment cannot be created."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    chosen = parser.add_mutually_exclusive_group(required=True)
    chosen.add_argument("--list", action="store_true", help="print the combinations and which results they have")
    chosen.add_argument("--run", metavar="NAME", choices=COMBINATIONS, action="append", help="run one combination; may be repeated")
    chosen.add_argument("--all", action="store_true", help="run every combination")
    parser.add_argument("--sample", action="store_true", help="run a sample of the tests")
    parser.add_argument("--parts", nargs="+", choices=PARTS, help="run these parts of all tests")
    parser.add_argument("--workers", type=int, default=2, help="how many tests run at once (2)")
    parser.add_argument("--repeat-failed", action="store_true", help="run the tests that failed in the stored results, with this commit")
    parser.add_argument("--again", action="store_true", help="repeat parts that have a result of this commit")
    parser.add_argument("--keep", action="store_true", help="do not delete the environment in .versions, for the next call")
    parser.add_argument("--python", metavar="PATH", help="the interpreter to use")
    arguments = parser.parse_args()
    if arguments.list:
        return _print_list()
    names = list(COMBINATIONS) if arguments.all else arguments.run
    return max([_run(COMBINATIONS[name], arguments) for name in names])


def _print_list() -> int:
    results = versions_page.load()
    for row in COMBINATIONS.values():
        parts = results.get(row.name, {}).get("parts", {})
        done = ", ".join(f"{part} ({len(result['failed'])} failed, {result['commit']})" for part, result in parts.items())
        print(f"{row.name:22} Python {row.python:5} torch {row.torch:7} {row.numpy:14} {', '.join(row.extras) or 'no extras'}")
        print(f"{'':22} {done or 'never run'}")
    return 0


def _run(row: Combination, arguments: argparse.Namespace) -> int:
    """Run the parts of a combination that have no result yet. Return 1 if one has a failure."""
    requested = (SAMPLE,) if arguments.sample and not row.files else tuple(arguments.parts or ()) if not row.files else ()
    commit = _git("rev-parse", "--short=8", "HEAD")
    before = versions_page.load().get(row.name, {}).get("parts", {})
    parts = _parts_to_run(row, arguments, requested or row.parts(), before, commit)
    if not parts:
        print(f"{row.name}: {'no stored result has a failure' if arguments.repeat_failed else f'every part has a result of {commit}'}")
        return 0
    try:
        python, seconds = _environment(row, arguments.python, commit)
    except RuntimeError as error:
        print(f"{row.name}: {error}", file=sys.stderr)
        return 1
    failures = 0
    try:
        for part in parts:
            if arguments.repeat_failed:
                result = {**_repeat_failed(row, before[part], python, arguments.workers), "repeated": commit}
            else:
                result = {**_test(row, part, python, arguments.workers), "commit": commit}
            result["date"] = datetime.date.today().isoformat()
            failures += len(result["failed"])
            _store(row, part, result, _versions(python), seconds)
            print(f"{row.name} {part}: {result['passed']} passed, {len(result['failed'])} failed, "
                  f"{sum(result['skipped'].values())} skipped in {result['seconds']} s", flush=True)
            print("".join(f"    {name}\n" for name in result["failed"]), end="", flush=True)
    finally:
        if not arguments.keep:
            _remove(row)
    return 1 if failures else 0


def _parts_to_run(
    row: Combination, arguments: argparse.Namespace, requested: Sequence[str], before: dict[str, Any], commit: str,
) -> list[str]:
    """Return the parts without a result of this commit, or those whose result has a failure; `before` has the stored results."""
    if arguments.repeat_failed:
        return [part for part in requested if before.get(part, {}).get("failed")]
    return [part for part in requested if arguments.again or not _has_result(row, part, commit)]


def _has_result(row: Combination, part: str, commit: str) -> bool:
    return versions_page.load().get(row.name, {}).get("parts", {}).get(part, {}).get("commit") == commit


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def _check_out(row: Combination, commit: str) -> Path:
    """Bring the combination's work tree to a commit. Return its folder."""
    tree = WORK / row.name / "tree"
    if (tree / ".git").exists():
        subprocess.run(["git", "checkout", "--quiet", "--force", "--detach", commit], cwd=tree, check=True)
    else:
        _git("worktree", "prune")
        _git("worktree", "add", "--force", "--detach", str(tree), commit)
    return tree


def _remove(row: Combination) -> None:
    """Delete the environment and the work tree."""
    shutil.rmtree(WORK / row.name, ignore_errors=True)
    _git("worktree", "prune")


def _interpreter(version: str, named: str | None) -> str:
    """Return the path of an interpreter. Raises RuntimeError if none has this version."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [named] if named else [
        *sorted(map(str, pyenv.glob(f"{version}.*/bin/python"))), str(WORK / f"python{version}" / "usr" / "bin" / f"python{version}"),
        shutil.which(f"python{version}") or "",
    ]
    for path in candidates:
        try:
            process = subprocess.run([path, "-c", "import sys; print(*sys.version_info[:2], sep='.')"],
                                  capture_output=True, text=True, check=False)
        except OSError:
            continue
        if process.stdout.strip() == version:
            return path
    raise RuntimeError(f"there is no Python {version} here: tools/debian_python.sh {version} .versions/python{version} may bring it")


def _environment(row: Combination, named: str | None, commit: str) -> tuple[Path, int]:
    """Create the virtual environment, unless it exists. Return its interpreter and the seconds of its creation."""
    folder = WORK / row.name
    python, ready = folder / "bin" / "python", folder / ".ready"
    if ready.exists():
        _check_out(row, commit)
        return python, int(ready.read_text(encoding="utf-8"))
    free = shutil.disk_usage(ROOT).free / 1e9
    if free < SPACE:
        raise RuntimeError(f"{free:.0f} GB are free, and an environment needs up to {SPACE}")
    start = time.monotonic()
    interpreter = _interpreter(row.python, named)
    _remove(row)
    WORK.mkdir(exist_ok=True)
    _command([interpreter, "-m", "venv", str(folder)], {})
    tree = _check_out(row, commit)
    _command([str(python), "-m", "pip", "install", "--quiet", "--no-cache-dir", "--no-compile", *_requirements(row, tree)],
             {"PIP_CONFIG_FILE": os.devnull})
    seconds = round(time.monotonic() - start)
    ready.write_text(str(seconds), encoding="utf-8")
    return python, seconds


def _requirements(row: Combination, tree: Path) -> list[str]:
    """Return pip's arguments: the versions, torchspore, and the developers' tools if the combination has extras."""
    tests = ["pytest>=8", "pytest-xdist>=3.6"]
    if row.extras:
        declared = _project()["optional-dependencies"]
        tests = [text for extra in ("dev", "tools") for text in declared[extra] if not text.startswith("torchspore[")]
    project = f"{tree}[{','.join(row.extras)}]" if row.extras else str(tree)
    return [f"torch=={row.torch}", row.numpy, *tests, "--editable", project]


def _project() -> dict[str, Any]:
    """Return the table of the project in pyproject.toml."""
    try:
        import tomllib
    except ImportError:                      # Python 3.10
        import tomli as tomllib
    return dict(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"])


def _command(words: list[str], environment: dict[str, str]) -> None:
    """Run a command. Raises RuntimeError with the end of its output if it fails."""
    process = subprocess.run(words, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
    if process.returncode:
        lines = (process.stderr or process.stdout).strip().splitlines()
        raise RuntimeError(f"{shlex.join(words)} ended with {process.returncode}:\n" + "\n".join(lines[-15:]))


def _versions(python: Path) -> dict[str, str]:
    """Return the versions that pip chose, of Python and of the main packages."""
    code = ("import platform, importlib.metadata as m\n"
            "print(f'python {platform.python_version()}')\n"
            "for name in 'torch numpy scipy opencv-python-headless pillow protobuf msgpack safetensors pytest'.split(): "
            "print(name, m.version(name))")
    lines = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.split("\n")
    return dict(line.split() for line in lines if line)


def calls(makefile: str) -> list[list[str]]:
    """Return the arguments of the pytest calls of `make test`, without those about processes and durations."""
    recipe = re.search(r"^test:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
    assert recipe is not None, "the Makefile has no target `test`"
    commands = [shlex.split(line.partition("-m pytest")[2]) for line in recipe[1].splitlines() if "-m pytest" in line]
    assert commands, "the target `test` does not call pytest"
    return [[word for at, word in enumerate(words) if not word.startswith("--durations") and word != "-n" and words[at - 1] != "-n"]
            for words in commands]


def _test(row: Combination, part: str, python: Path, workers: int) -> dict[str, Any]:
    """Run one part of the tests. Return the figures, the names of tests that failed, and the reasons of skips."""
    tree = WORK / row.name / "tree"
    quick, *others = calls((tree / "Makefile").read_text(encoding="utf-8"))
    if part == "files":
        runs = [[*quick, *(file for file in row.files if (tree / file).exists())]]
    elif part == SAMPLE:
        runs = [[*quick, "--shard", SAMPLE_SHARD], [*quick, *(file for file in SAMPLE_FILES if (tree / file).exists())]]
    else:
        runs = [[*words, "--shard", part] for words in (quick, *others)]
    start, cpu = time.monotonic(), _cpu_seconds()
    outcomes: dict[str, tuple[str, str]] = {}
    for number, words in enumerate(runs):
        outcomes.update(_pytest(python, tree, words, workers, WORK / f"{row.name}-{part.replace('/', '-of-')}-{number}"))
    return {
        "passed": sum(outcome == "passed" for outcome, _ in outcomes.values()),
        "failed": sorted(name for name, (outcome, _) in outcomes.items() if outcome == "failed"),
        "skipped": dict(sorted(Counter(reason for outcome, reason in outcomes.values() if outcome == "skipped").items())),
        "seconds": round(time.monotonic() - start), "cpu_seconds": round(_cpu_seconds() - cpu),
        "processes": workers, "processor": platform.machine(), "cores": os.cpu_count(),
    }


def _repeat_failed(row: Combination, result: dict[str, Any], python: Path, workers: int) -> dict[str, Any]:
    """Run the tests that failed in a stored result. Return that result with the new outcomes of these tests."""
    tree = WORK / row.name / "tree"
    ids = {name: _test_id(name, tree) for name in result["failed"]}
    ids = {name: test for name, test in ids.items() if test}
    if not ids:
        raise SystemExit(f"{row.name}: the stored failures name no tests of this commit; --again repeats whole parts")
    outcomes: dict[str, tuple[str, str]] = {}
    for number, words in enumerate(calls((tree / "Makefile").read_text(encoding="utf-8"))):
        outcomes.update(_pytest(python, tree, [*words, *sorted(ids.values())], workers, WORK / f"{row.name}-repeated-{number}"))
    by_outcome: dict[str, list[str]] = {}
    for name in ids:
        by_outcome.setdefault(outcomes.get(name, ("failed", ""))[0], []).append(name)
    skips = Counter(result["skipped"])
    skips.update(outcomes[name][1] for name in by_outcome.get("skipped", []))
    failed = {*by_outcome.get("failed", []), *(name for name, (outcome, _) in outcomes.items() if outcome == "failed")}
    passed = result["passed"] + len(by_outcome.get("passed", []))
    return {**result, "passed": passed, "failed": sorted(failed), "skipped": dict(sorted(skips.items()))}


def _test_id(name: str, tree: Path) -> str:
    """Return pytest's id of a test by its name in a report, which has the class after the module: `tests/test_x/TestY.py::test_z`."""
    path, _, test = name.partition(".py::")
    module, _, class_name = path.rpartition("/")
    if (tree / f"{path}.py").exists():
        return f"{path}.py::{test}"
    return f"{module}.py::{class_name}::{test}" if (tree / f"{module}.py").exists() else ""


def _cpu_seconds() -> float:
    """Return the processor time of the child processes that have ended: other programs on the machine do not lengthen it."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _pytest(python: Path, tree: Path, words: list[str], workers: int, output: Path) -> dict[str, tuple[str, str]]:
    """Run pytest once. Return the outcome and the reason of each test. The output is in a .log file next to the report."""
    report, log = Path(f"{output}.xml"), Path(f"{output}.log")
    report.unlink(missing_ok=True)
    command = [str(python), "-m", "pytest", *words, "-n", str(workers), "-p", "no:cacheprovider", f"--junitxml={report}"]
    # Tests call commands such as `torchspore`, ruff and mypy, which are in the folder of the interpreter.
    environment = {**os.environ, "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}"}
    with log.open("w", encoding="utf-8") as file:
        process = subprocess.Popen(command, cwd=tree, env=environment, stdout=file, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            code = process.wait(HOURS * 3600)
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            code = -1
    outcomes = _outcomes(report) if report.exists() else {}
    if code not in (0, 1, 5):                # 5: the shard has none of the selected tests
        outcomes[f"pytest {shlex.join(words)} ended with {code}"] = ("failed", "see the log")
    return outcomes


def _outcomes(report: Path) -> dict[str, tuple[str, str]]:
    """Return the outcome and the reason of each test in a report of pytest."""
    outcomes = {}
    for case in ElementTree.parse(report).iter("testcase"):
        # A file that can't be collected, or an interrupted run, has a row without the name of a class.
        name = f"{case.attrib.get('classname', '').replace('.', '/')}.py::{case.attrib['name']}"
        skipped, failed = case.find("skipped"), case.find("failure")
        failed = case.find("error") if failed is None else failed
        if failed is not None:
            outcomes[name] = ("failed", failed.attrib.get("message", ""))
        elif skipped is not None:
            outcomes[name] = ("skipped", skipped.attrib.get("message", ""))
        else:
            outcomes.setdefault(name, ("passed", ""))
    return outcomes


def _store(row: Combination, part: str, result: dict[str, Any], versions: dict[str, str], seconds: int) -> None:
    """Add a result to the file of results and write the page. Results of other versions of the same combination are dropped."""
    results = versions_page.load()
    entry = results.get(row.name, {})
    if entry.get("versions", {}) != versions or entry.get("extras") != list(row.extras):
        entry = {"versions": versions, "extras": list(row.extras), "parts": {}}
    entry.update(install_seconds=seconds, complete=list(row.parts()))
    entry["parts"][part] = result
    results[row.name] = entry
    versions_page.save({name: results[name] for name in COMBINATIONS if name in results})


if __name__ == "__main__":
    raise SystemExit(main())
