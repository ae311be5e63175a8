"""Rows of the tables: a child process runs them one by one and reports each in a line of JSON."""
from __future__ import annotations

import importlib
import json
import os
import re
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from imported_packages import IMPORTED

ROOT = Path(__file__).resolve().parent.parent.parent
CLOSE = 1e-4
MOST_DEATHS = 8


def definition(package: str) -> Any:
    """Return what defines the package and its rows: an entry of the table, or a module."""
    return IMPORTED.get(package) or importlib.import_module(f"with_{package}")


def install(package: str, folder: Path) -> str:
    """Return the folder that contains the package; install the package there with pip if it is absent."""
    module = definition(package)
    target = folder / package
    if not (target / getattr(module, "FOLDER", package)).exists():
        requirements = [module.PACKAGE, *module.NEEDS]
        subprocess.run(
            [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--prefer-binary", "--target", str(target), *requirements],
            check=True,
        )
    return str(target)


def answers(python: str, options: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the result of each row. If the process dies, start a new one after the row that it died in."""
    results: dict[str, dict[str, Any]] = {}
    for _ in range(MOST_DEATHS):
        request = json.dumps({**options, "done": list(results)})
        command = [python, str(ROOT / "tools" / "packages"), "--inside", request]
        running = None
        # One thread: nets of these sizes are too small for more, and threads that wait for a busy core make them much slower.
        environment = {"OMP_NUM_THREADS": "1", **os.environ}
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd="/", env=environment) as child:
            assert child.stdout is not None and child.stderr is not None
            for line in child.stdout:
                if line.startswith('{"begins"'):
                    running = json.loads(line)["begins"]
                elif line.startswith('{"name"'):
                    row = json.loads(line)
                    results[row["name"]], running = row, None
                    print(f"  {row['name']}: {row['error'] or 'ok'} ({row['seconds']:.1f} s)", file=sys.stderr, flush=True)
            messages = child.stderr.read()
        if running is None:
            if not results:
                raise SystemExit(f"{python}: {messages.strip().splitlines()[-3:]}")
            return results
        reason = f"the process died: {messages.strip().splitlines()[-1:]}"
        results[running] = {"name": running, "group": "died", "error": reason, "seconds": 0.0, "told": ""}
    return results


def compare(ours: dict[str, dict[str, Any]], theirs: dict[str, dict[str, Any]]) -> None:
    """Add MindSpore's results to ours, and an error if the logits differ."""
    for name, row in ours.items():
        other = theirs.get(name)
        if other is None or row["error"]:
            continue
        row["apart"] = other.get("apart")
        if other["error"]:
            row["told"] = f"MindSpore 2.10: {other['error']}"
        elif row["apart"] is not None and not row["apart"] <= CLOSE:
            row["error"] = f"logits apart by {row['apart']:.1e}"


def inside(request: str) -> int:
    """Run the rows of one package in this process."""
    options = json.loads(request)
    options["work"] = Path(options["work"])
    sys.path[:0] = [options["folder"]]
    if options["ours"]:
        sys.path.insert(0, str(ROOT / "src"))
        import torchspore

        torchspore.install()
    os.chdir(options["work"])
    signal.signal(signal.SIGALRM, _late)
    for name, group, body in definition(options["package"]).rows(options):
        if name in options["done"] or not re.search(options["only"], name):
            continue
        print(json.dumps({"begins": name}), flush=True)
        row, started = {"name": name, "group": group, "error": "", "told": ""}, time.perf_counter()
        signal.alarm(options["limit"])
        try:
            row |= body() or {}
        except Exception as error:  # the table shows the error
            row["error"] = _error_text(error)
            print(f"--- {name}", file=sys.stderr)
            traceback.print_exc(limit=-8)
        finally:
            signal.alarm(0)
        print(json.dumps(row | {"seconds": time.perf_counter() - started}), flush=True)
    return 0


def _late(*_: Any) -> None:
    raise TimeoutError("the time limit")


def _error_text(error: Exception) -> str:
    """Return the kind and first line of the error, and the line of the package that raised it."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/tools/packages/" not in frame.filename]
    of_package = [frame for frame in frames if "/torchspore/" not in frame.filename and "/lib/python" not in frame.filename]
    where = f" at {'/'.join(Path(of_package[-1].filename).parts[-3:])}:{of_package[-1].lineno}" if of_package else ""
    line = str(error).splitlines()[0] if str(error) else ""
    return f"{type(error).__name__}: {re.sub(r'^/[^:]*:[0-9]+: ', '', line)[:200]}{where}"
