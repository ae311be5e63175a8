"""The command line: see tools/on_gpu.sh."""
from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from on_gpu import jobs, page, results, stages, wheels

MINUTES = 8.0


def main() -> int:
    """Run the stages. Return 1 if a check failed, crashed or timed out, and 2 without a GPU."""
    options = _options()
    if options.fetch:
        wheels.fetch()
        return 0
    if options.publish:
        page.publish(options.publish)
        return 0
    folder: Path = options.out.resolve()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        print(f"tools/on_gpu.sh --out {options.out}: {error.strerror}. Expected a folder that can be written.", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as work:
        files = jobs.Files(folder / "results.jsonl", Path(work))
        files.results.unlink(missing_ok=True)
        _install_packages(files.work)
        if not _describe_machine(files.results, options.device, options.dry):
            print(f"tools/on_gpu.sh: torch sees no {options.device} here. Run it on a machine with one, or add --dry.", file=sys.stderr)
            return 2
        chosen = [stage for stage in stages.STAGES if stage.letter in options.stages]
        run_stages(chosen, stages.Machine(options.dry, options.processes, options.device), files, options.minutes * 60)
        with tarfile.open(folder / "logs.tar.gz", "w:gz") as archive:
            for log in sorted(files.work.glob("*.log")):
                archive.add(log, log.name)
    lines = results.read(files.results)
    (folder / "gpu.md").write_text(page.render(page.summary(lines)), encoding="utf-8")
    print("", files.results, folder / "gpu.md", folder / "logs.tar.gz", sep="\n")
    return 1 if any(line["outcome"] not in (results.PASSED, results.SKIPPED) for line in lines) else 0


def run_stages(chosen: Sequence[stages.Stage], machine: stages.Machine, files: jobs.Files, seconds: float) -> None:
    """Run stages in order. Each has its share of the time and the unused time of earlier ones; together they end within `seconds`."""
    end = time.monotonic() + seconds
    shares = {stage.letter: stage.dry_seconds if machine.is_dry else stage.seconds for stage in chosen}
    for number, stage in enumerate(chosen):
        reserved = sum(shares[later.letter] for later in chosen[number + 1:])
        available = end - time.monotonic()
        limit = max(available - reserved, min(shares[stage.letter], available), 0.0)
        begun = time.monotonic()
        jobs.run(stage.jobs(machine), files, max(1, min(stage.processes, machine.processes)), limit)
        lines = [line for line in results.read(files.results) if line["stage"] == stage.letter]
        print(f"{stage.letter}  {stage.title}: {page.counts(lines)}, {time.monotonic() - begun:.0f} s of {limit:.0f}", flush=True)
        for line in lines:
            if line["outcome"] not in (results.PASSED, results.SKIPPED):
                print(f"     {line['outcome']}: {line['check']}", flush=True)


def _options() -> argparse.Namespace:
    titles = "\n".join(f"  {stage.letter}  {stage.title}, {stage.seconds:.0f} s" for stage in stages.STAGES)
    parser = argparse.ArgumentParser(
        prog="tools/on_gpu.sh", description="Runs every check that needs a GPU and writes results.jsonl and gpu.md.",
        epilog=f"stages:\n{titles}", formatter_class=argparse.RawDescriptionHelpFormatter)
    letters = "".join(stage.letter for stage in stages.STAGES)
    parser.add_argument("--stages", type=lambda text: _letters(text, letters), default=list(letters), help="letters with commas between")
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", "output/gpu")), help="the folder of the results")
    parser.add_argument("--minutes", type=_positive(float), help=f"the time of all stages together ({MINUTES:.0f}; 15 in a dry run)")
    parser.add_argument("--processes", type=_positive(int), default=os.cpu_count() or 1, help="how many processes run at a time")
    parser.add_argument("--device", choices=("GPU", "Ascend"), default="GPU", help="the device_target of all stages")
    parser.add_argument("--dry", action="store_true", help="a sample of each stage on the CPU and the stand-in accelerator")
    parser.add_argument("--fetch", action="store_true", help="download packages into .wheels for a machine without a network")
    parser.add_argument("--publish", type=Path, metavar="FILE", help="write docs/gpu.json and docs/gpu.md from a results.jsonl")
    options = parser.parse_args()
    options.minutes = options.minutes or (15.0 if options.dry else MINUTES)
    return options


def _positive(kind: Callable[[str], float]) -> Callable[[str], float]:
    """Return a type of argparse for numbers above 0."""

    def read(text: str) -> float:
        try:
            number = kind(text)
        except ValueError:
            number = 0
        if not number > 0:
            raise argparse.ArgumentTypeError(f"{text!r}: expected a number above 0, such as 8")
        return number

    return read


def _letters(text: str, valid: str) -> list[str]:
    letters = [letter.strip() for letter in text.split(",")]
    for letter in letters:
        if len(letter) != 1 or letter not in valid:
            raise argparse.ArgumentTypeError(f"{letter!r} is no stage: expected letters of {valid} with commas between, such as a,c")
    return letters


def _install_packages(work: Path) -> None:
    """Install the wheels of `.wheels` and add them to the path of later processes."""
    target = work / "site"
    if wheels.FOLDER.is_dir() and wheels.install(target):
        os.environ["PYTHONPATH"] = f"{target}{os.pathsep}{os.environ['PYTHONPATH']}"


def _describe_machine(file: Path, device: str, is_dry: bool) -> bool:
    """Write the first line of the results. Return whether the stages can run; a dry run always can."""
    process = subprocess.run([sys.executable, "-m", "on_gpu.machine", device], capture_output=True, text=True)
    if process.returncode:
        results.append(file, results.MACHINE, "machine", results.FAILED, detail=process.stderr)
        return is_dry
    facts = json.loads(process.stdout)
    results.append(file, results.MACHINE, "machine", results.PASSED, **facts, dry=is_dry)
    return is_dry or facts["card"] is not None


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main())
