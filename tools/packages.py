#!/usr/bin/env python3
"""Runs models of packages from PyPI, unmodified, and prints a table; with a real MindSpore, compares what they answer.

    tools/packages.py                                       one model of each family of MindCV 0.3.0: built, run, timed
    tools/packages.py --oracle PYTHON                       also carries the weights over by .ckpt and compares the logits
    tools/packages.py --every --only 'resnet|swin'          every model whose name the pattern finds

Packages are installed with --no-deps into a folder of their own, beside what they need besides MindSpore. The exit code is 1 where a model
fails or differs by more than 1e-4 of the largest logit.
"""
from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

PACKAGES = ("mindcv==0.3.0", "tqdm", "pyyaml")
SIZES = ((re.compile("inception|xception"), 299), (re.compile("cait_m36_384"), 384), (re.compile("cmt|halonet|swinv2|_256"), 256))
"""Lengths of pictures that are not 224."""
CLOSE = 1e-4
ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    """Prints the table; 1 where a row is not as it should be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--oracle", help="a Python with mindspore==2.10.0")
    parser.add_argument("--only", default="", help="a pattern of models' names")
    parser.add_argument("--every", action="store_true", help="every model, not one of each family")
    parser.add_argument("--folder", type=Path, help="where the packages are, or are put")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        return inside(json.loads(options.inside))
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.folder or Path(temporary) / "packages").resolve()
        if not (folder / "mindcv").exists():
            subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(folder), *PACKAGES], check=True)
        given = {"folder": str(folder), "work": temporary, "only": options.only, "every": options.every, "ours": True}
        ours = answers(sys.executable, given)
        theirs = answers(options.oracle, {**given, "ours": False}) if options.oracle else {}
    return table(ours, theirs)


def answers(python: str, given: dict[str, Any]) -> dict[str, Any]:
    """What each model came to, in a process of its own."""
    ended = subprocess.run([python, __file__, "--inside", json.dumps(given)], capture_output=True, text=True, cwd="/")
    lines = [line for line in ended.stdout.splitlines() if line.startswith("{")]
    if not lines:
        raise SystemExit(f"{python}: {ended.stderr.strip().splitlines()[-1:]}")
    return {row["name"]: row for row in map(json.loads, lines)}


def inside(given: dict[str, Any]) -> int:
    """Builds and runs the models; with torchspore first, which leaves weights and logits behind, then with MindSpore, which compares."""
    sys.path.insert(0, given["folder"])
    if given["ours"]:
        sys.path.insert(0, str(ROOT / "src"))
        import torchspore

        torchspore.install()
    import mindspore as ms
    import numpy as np
    from mindcv.models import create_model, list_models  # type: ignore[import-not-found]

    families: dict[str, str] = {}
    for name in list_models():
        if re.search(given["only"], name):
            families.setdefault(name if given["every"] else re.split(r"[_\d]", name)[0], name)
    for name in families.values():
        row, started = {"name": name, "error": "", "apart": None}, time.perf_counter()
        kept = Path(given["work"]) / name
        try:
            ms.set_seed(1)
            size = next((length for pattern, length in SIZES if pattern.search(name)), 224)
            x = np.random.RandomState(0).rand(2, 3, size, size).astype(np.float32)
            net = create_model(name, num_classes=10)
            if given["ours"]:
                ms.save_checkpoint(net, f"{kept}.ckpt")
            else:
                ms.load_checkpoint(f"{kept}.ckpt", net)
            net.set_train(False)
            logits = net(ms.Tensor(x)).asnumpy()
            if given["ours"]:
                np.save(f"{kept}.npy", logits)
            else:
                row["apart"] = float(np.abs(np.load(f"{kept}.npy") - logits).max() / np.abs(logits).max())
        except Exception as error:  # the table says which
            row["error"] = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:160]
        row["seconds"] = time.perf_counter() - started
        print(json.dumps(row), flush=True)
    return 0


def table(ours: dict[str, Any], theirs: dict[str, Any]) -> int:
    """Prints a row for each model; 1 where one failed, or differs."""
    print("| model | seconds | logits apart, of the largest |\n|---|---:|---|")
    bad = 0
    for name, row in ours.items():
        other = theirs.get(name, {"apart": None, "error": ""})
        told = row["error"] or other["error"] or ("" if other["apart"] is None else f"{other['apart']:.1e}")
        bad += bool(row["error"]) or (other["apart"] or 0) > CLOSE
        print(f"| {name} | {row['seconds']:.1f} | {told} |")
    print(f"\n{len(ours) - bad} of {len(ours)} as they should be")
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
