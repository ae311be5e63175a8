"""Rows of the tables: a child process runs them one by one, and tells of each in one line of JSON."""
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

ROOT = Path(__file__).resolve().parent.parent.parent
CLOSE = 1e-4
MOST_DEATHS = 8


def installed(package: str, folder: Path) -> str:
    """The folder in which the package stands, put there by pip where it does not yet."""
    module = importlib.import_module(f"with_{package}")
    own = folder / package
    if not (own / getattr(module, "FOLDER", package)).exists():
        asked = [module.PACKAGE, *module.NEEDS]
        subprocess.run(
            [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--prefer-binary", "--target", str(own), *asked], check=True,
        )
    return str(own)


def answers(python: str, given: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What each row came to. A process that died is started again behind the row that killed it."""
    found: dict[str, dict[str, Any]] = {}
    for _ in range(MOST_DEATHS):
        asked = json.dumps({**given, "done": list(found)})
        command = [python, str(ROOT / "tools" / "packages"), "--inside", asked]
        begun = None
        # One thread: nets at these sizes are too small for more, and threads that wait for a busy core cost twenty times what they save.
        environment = {"OMP_NUM_THREADS": "1", **os.environ}
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd="/", env=environment) as child:
            assert child.stdout is not None and child.stderr is not None
            for line in child.stdout:
                if line.startswith('{"begins"'):
                    begun = json.loads(line)["begins"]
                elif line.startswith('{"name"'):
                    row = json.loads(line)
                    found[row["name"]], begun = row, None
                    print(f"  {row['name']}: {row['error'] or 'ok'} ({row['seconds']:.1f} s)", file=sys.stderr, flush=True)
            told = child.stderr.read()
        if begun is None:
            if not found:
                raise SystemExit(f"{python}: {told.strip().splitlines()[-3:]}")
            return found
        reason = f"the process died: {told.strip().splitlines()[-1:]}"
        found[begun] = {"name": begun, "group": "died", "error": reason, "seconds": 0.0, "told": ""}
    return found


def compare(ours: dict[str, dict[str, Any]], theirs: dict[str, dict[str, Any]]) -> None:
    """Puts what the real MindSpore answered beside ours."""
    for name, row in ours.items():
        other = theirs.get(name)
        if other is None or row["error"]:
            continue
        row["apart"] = other.get("apart")
        if other["error"]:
            row["told"] = f"MindSpore 2.10: {other['error']}"
        elif row["apart"] is not None and not row["apart"] <= CLOSE:
            row["error"] = f"logits apart by {row['apart']:.1e}"


def inside(asked: str) -> int:
    """Runs the rows of one package in this process."""
    given = json.loads(asked)
    given["work"] = Path(given["work"])
    sys.path[:0] = [given["folder"]]
    if given["ours"]:
        sys.path.insert(0, str(ROOT / "src"))
        import torchspore

        torchspore.install()
    os.chdir(given["work"])
    signal.signal(signal.SIGALRM, _late)
    for name, group, body in importlib.import_module(f"with_{given['package']}").rows(given):
        if name in given["done"] or not re.search(given["only"], name):
            continue
        print(json.dumps({"begins": name}), flush=True)
        row, started = {"name": name, "group": group, "error": "", "told": ""}, time.perf_counter()
        signal.alarm(given["limit"])
        try:
            row |= body() or {}
        except Exception as error:  # the table says which
            row["error"] = _told(error)
            print(f"--- {name}", file=sys.stderr)
            traceback.print_exc(limit=-8)
        finally:
            signal.alarm(0)
        print(json.dumps(row | {"seconds": time.perf_counter() - started}), flush=True)
    return 0


def _late(*_: Any) -> None:
    raise TimeoutError("the time limit")


def _told(error: Exception) -> str:
    """The error's kind and first line, and where in the package it came from."""
    places = [step for step in traceback.extract_tb(error.__traceback__) if "/tools/packages/" not in step.filename]
    of_package = [step for step in places if "/torchspore/" not in step.filename and "/lib/python" not in step.filename]
    where = f" at {'/'.join(Path(of_package[-1].filename).parts[-3:])}:{of_package[-1].lineno}" if of_package else ""
    line = str(error).splitlines()[0] if str(error) else ""
    return f"{type(error).__name__}: {re.sub(r'^/[^:]*:[0-9]+: ', '', line)[:200]}{where}"
