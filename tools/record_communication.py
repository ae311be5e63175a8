"""Records what real MindSpore's processes give each other on the CPU: `tools/record_communication.py --oracle /path/to/venv`.

It starts two workers by MindSpore's own msrun; each runs the cases of tests/parity/communication_cases.py, one after the other, and keeps
the values, or the kind of error. A case that never ends is named in --without, and stands in the record as "hangs".
"""
from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RECORD = ROOT / "tests" / "parity" / "communication.json"


def plain(value: Any) -> Any:
    """A result as JSON has it: a Tensor by its dtype and values."""
    if hasattr(value, "asnumpy"):
        return {"dtype": str(value.dtype), "values": value.asnumpy().tolist()}
    if isinstance(value, (list, tuple)):
        return {"kind": type(value).__name__, "items": [plain(item) for item in value]}
    if isinstance(value, dict):
        return {"keys": {str(key): plain(item) for key, item in value.items()}}
    return value if isinstance(value, (bool, int, float, str, type(None))) else repr(type(value))


def outcome(function: Any) -> Any:
    """What a case gives, or the kind and the first line of what it raises."""
    try:
        return plain(function())
    except Exception as error:
        return {"error": type(error).__name__, "text": next((line for line in str(error).split("\n") if line.strip(" -")), "")[:200]}


def outcomes(without: set[str], keep: Any = lambda found: None) -> dict[str, Any]:
    """All cases in this process, in both modes where they say so; what was found so far is handed to `keep` after each."""
    import mindspore as ms

    sys.path.insert(0, str(ROOT / "tests"))
    from parity import communication_cases

    found: dict[str, Any] = {}
    for name, function in communication_cases.CASES.items():
        modes = {"": ms.PYNATIVE_MODE, **({".graph": ms.GRAPH_MODE} if name in communication_cases.BOTH else {})}
        for suffix, mode in modes.items():
            if name + suffix in without:
                found[name + suffix] = {"error": "hangs", "text": ""}
                continue
            print("CASE", name + suffix, flush=True)
            ms.set_context(mode=mode)
            found[name + suffix] = outcome(function)
            keep(found)
    ms.set_context(mode=ms.PYNATIVE_MODE)
    return found


def work() -> None:
    """One of the two workers."""
    import mindspore as ms
    from mindspore import communication

    ms.set_device("CPU")
    communication.init()
    into = Path(os.environ["RECORD_INTO"]) / f"{os.environ.get('MS_NODE_ID', '0')}.json"
    outcomes(set(os.environ.get("RECORD_WITHOUT", "").split(",")), lambda found: into.write_text(json.dumps(found)))


def main() -> None:
    """Starts the two workers, joins what they wrote."""
    if "RECORD_INTO" in os.environ:
        work()
        return
    parser = argparse.ArgumentParser()
    parser.add_argument("--oracle", default=".oracle")
    parser.add_argument("--without", default="")
    parser.add_argument("--seconds", type=float, default=300)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        command = [
            f"{asked.oracle}/bin/msrun", "--worker_num", "2", "--local_worker_num", "2", "--master_port", "8719", "--join", "True",
            "--log_dir", folder, str(Path(__file__).resolve()),
        ]
        environment = {**os.environ, "RECORD_INTO": folder, "RECORD_WITHOUT": asked.without,
                       "PATH": f"{asked.oracle}/bin:{os.environ['PATH']}"}
        try:
            subprocess.run(command, env=environment, timeout=asked.seconds, cwd=folder)
        except subprocess.TimeoutExpired:
            print("late: the last cases were", [
                [line for line in log.read_text().splitlines() if line.startswith("CASE")][-1:] for log in Path(folder).glob("worker_*.log")
            ])
        for log in sorted(Path(folder).glob("worker_*.log")):
            print(log.name, *log.read_text(errors="replace").splitlines()[-15:], sep="\n")
        ranks = [json.loads((Path(folder) / f"{rank}.json").read_text()) for rank in range(2)]
    RECORD.write_text(json.dumps({name: [rank.get(name) for rank in ranks] for name in ranks[0]}, indent=1) + "\n")


if __name__ == "__main__":
    main()
