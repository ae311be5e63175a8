"""Checkpoints and strategy files between torchspore and real MindSpore 2.10, both ways: each reads and cuts anew what the other wrote.

    .venv/bin/python tools/check_recut.py --oracle /work/oracle/bin/python

8 processes become 4, 2, 1 and 8 again. What MindSpore makes of .safetensors is told but not judged: where a part is no block of the whole's
memory, 2.10 writes the first bytes of the whole instead.
"""
from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "unit" / "train"))
STEPS = ((8, 4), (4, 2), (2, 1), (2, 8), (8, 1))
REAL = """
import json, sys
import mindspore as ms
for job in json.load(open(sys.argv[1])):
    try:
        ms.transform_checkpoints(job["source"], job["target"], "net", job["from"], job["to"], output_format=job["format"])
        ranks = [ms.rank_list_for_transform(rank, job["from"], job["to"]) for rank in range(job["count"])]
        job["ranks"] = [list(map(int, one)) for one in ranks]
    except Exception as error:
        job["failed"] = f"{type(error).__name__}: {error}"[:200]
    print(json.dumps(job))
"""


def main() -> None:
    """Prints a line for each step and form; ends with 1 where numbers differ."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--oracle", required=True)
    oracle = parser.parse_args().oracle
    import torchspore

    torchspore.install()
    import mindspore as ms
    import test_recut as files

    folder, wrong = Path(tempfile.mkdtemp()), 0
    jobs = []
    for suffix in ("ckpt", "safetensors"):
        for count in (8, 4, 2):
            files.written(folder / f"{count}-{suffix}", count, suffix)
        for before, after in STEPS:
            jobs.append({
                "source": str(folder / f"{before}-{suffix}"), "target": str(folder / f"real-{before}-{after}-{suffix}"), "format": suffix,
                "from": files.strategy(folder, before), "to": files.strategy(folder, after) if after > 1 else None, "count": after,
            })
    (folder / "jobs.json").write_text(json.dumps(jobs))
    run = subprocess.run([oracle, "-c", REAL, str(folder / "jobs.json")], capture_output=True, text=True, check=False)
    for line in run.stdout.splitlines():
        if not line.startswith('{"source"'):
            continue
        job = json.loads(line)
        told = f"{Path(job['source']).name} -> {job['count']}"
        if "failed" in job:
            print(told, "MindSpore fails:", job["failed"])
            wrong += 1
            continue
        same = _same(files.check, Path(job["target"]), job["count"], job["format"])
        ranks = [ms.rank_list_for_transform(rank, job["from"], job["to"]) for rank in range(job["count"])]
        print(
            told, "MindSpore's files of ours", "equal" if same else "differ", "| ranks",
            "equal" if ranks == job["ranks"] else f"{ranks} {job['ranks']}",
        )
        wrong += not same and job["format"] == "ckpt"
        if same and job["count"] > 1:                                  # and back: what MindSpore wrote is cut anew here
            target = Path(job["target"] + "-whole")
            ms.transform_checkpoints(job["target"], str(target), "net", job["to"], None, 1, job["format"])
            back = _same(files.check, target, 1, job["format"])
            print(told, "ours of MindSpore's files", "equal" if back else "differ")
            wrong += not back
    if not run.stdout:
        print(run.stderr[-2000:])
    sys.exit(bool(wrong) or not run.stdout)


def _same(check, *args) -> bool:
    try:
        check(*args)
    except AssertionError:
        return False
    return True


if __name__ == "__main__":
    main()
