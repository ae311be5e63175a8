#!/usr/bin/env python3
"""Builds the wheel and the sdist from the files of the last commit, checks them, and installs each in a fresh environment.

    tools/release_packages.py                   everything; `make dist` runs this
    tools/release_packages.py --build           builds into dist/ and checks the metadata only
    tools/release_packages.py --only whl        installs the wheel only; tar.gz: the sdist only
    tools/release_packages.py --python P...     installs with these interpreters; by default with the one that runs this
    tools/release_packages.py --write           also writes the time of a newcomer's path into docs/guides/install.md and its translation

A newcomer's path begins with `pip install` of the wheel in a new environment and ends with the first epoch of a training. Downloads do not
count: pip downloads the packages before, into build/packages. The versions are those of constraints.txt. On a busy machine a stage takes
longer than its seconds of CPU, which are printed too.
"""
from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
DOWNLOADS = ROOT / "build/packages"
PROGRAM = ROOT / "examples/quickstart/train.py"
PAGES = (ROOT / "docs/guides/install.md", ROOT / "docs/zh/guides/install.md")
FIGURE = re.compile(r"(<!-- seconds -->).*?(<!-- seconds -->)")


class Duration(NamedTuple):
    """Seconds of a clock and of the processors."""

    seconds: float
    processor: float


def run(*command: str | Path, cwd: Path | None = None) -> Duration:
    """Run a command and return how long it took. Raises SystemExit with its output if it fails."""
    start, before = time.perf_counter(), os.times()
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "TORCHSPORE_", "MS_"))}
    process = subprocess.run([str(word) for word in command], cwd=cwd, env=environment, capture_output=True, text=True)
    if process.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{process.stdout}{process.stderr}")
    after = os.times()
    processor = after.children_user + after.children_system - before.children_user - before.children_system
    return Duration(time.perf_counter() - start, processor)


def export_commit(folder: Path, root: Path = ROOT) -> None:
    """Write the files of the last commit into a folder, so that no scratch file of the work tree gets into a package."""
    archive = folder / "commit.tar"
    run("git", "archive", "--output", archive, "HEAD", cwd=root)
    with tarfile.open(archive) as files:
        files.extractall(folder, filter="data")
    archive.unlink()


def build(output: Path) -> list[Path]:
    """Build and check the wheel and the sdist of torchspore and of mindspore-stubs; return those of torchspore."""
    shutil.rmtree(output, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        export_commit(Path(folder))
        for source in (Path(folder), Path(folder) / "mindspore-stubs"):
            run(sys.executable, "-m", "build", "--no-isolation", "--outdir", output, source)
    packages = sorted([*output.glob("*.whl"), *output.glob("*.tar.gz")])
    run(sys.executable, "-m", "twine", "check", "--strict", *packages)
    for path in packages:
        print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1e6:.1f} MB")
    return [path for path in packages if path.name.startswith("torchspore-")]


def download(python: str, package: Path) -> Path:
    """Download the packages that an installation needs, and those that build an sdist; return their folder."""
    tag = subprocess.run([python, "-c", "import sys; print(*sys.version_info[:2], sep='.')"], capture_output=True, text=True, check=True)
    folder = DOWNLOADS / tag.stdout.strip()
    run(python, "-m", "pip", "download", "--quiet", "--dest", folder, "--constraint", ROOT / "constraints.txt", package, "hatchling")
    for path in folder.glob("torchspore-*"):
        path.unlink()
    return folder


def install_and_train(python: str, package: Path, downloads: Path) -> dict[str, Duration]:
    """Install a package in a new environment and train one epoch, outside of this checkout; return the time of each stage."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = folder / "train.py"
        shutil.copy(PROGRAM, program)
        shutil.copytree(PROGRAM.parent / "data", folder / "data")
        command = folder / "env" / ("Scripts" if os.name == "nt" else "bin") / "torchspore"
        create = run(python, "-m", "venv", folder / "env")
        install = run(command.with_name("python"), "-m", "pip", "install", "--quiet", "--no-index", "--find-links", downloads, package)
        train = run(command, "run", program, "--epochs", "1", cwd=folder)
        run(command, "doctor", cwd=folder)
        return {"environment": create, "pip install": install, "first epoch": train}


def write_figure(seconds: float) -> None:
    """Write the seconds of a newcomer's path into the pages."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        page.write_text(FIGURE.sub(rf"\g<1>{seconds:.0f}\g<2>", text), encoding="utf-8")


def main(words: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", action="store_true", help="build and check the packages only")
    parser.add_argument("--only", choices=["whl", "tar.gz"], default="", help="install one of the two packages")
    parser.add_argument("--python", nargs="+", default=[sys.executable], metavar="P")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args(words)
    packages = build(ROOT / "dist")
    if arguments.build:
        return 0
    for python in arguments.python:
        for package in [path for path in reversed(packages) if path.name.endswith(arguments.only)]:
            stages = install_and_train(python, package, download(python, package))
            total = Duration(*map(sum, zip(*stages.values())))
            parts = ", ".join(f"{name} {duration.seconds:.0f}" for name, duration in stages.items())
            print(f"{python}, {package.name}: {total.seconds:.0f} s ({parts}), {total.processor:.0f} s of CPU", flush=True)
            if arguments.write and package.suffix == ".whl" and python == arguments.python[0]:
                write_figure(total.seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
