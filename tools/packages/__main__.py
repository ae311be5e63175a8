#!/usr/bin/env python3
"""Runs packages from PyPI, unmodified, on torchspore and prints a table; with a real MindSpore, compares MindCV's logits.

    tools/packages mindcv mindyolo mindnlp mindocr          all rows of these packages (the default: all; over an hour on two cores)
    tools/packages mindcv --only 'resnet|swin'              rows whose names match the pattern
    tools/packages mindcv --families --oracle PYTHON        one model of each family, with weights carried over by .ckpt
    tools/packages mindnlp --folder DIR --write             stores packages in DIR, and puts the table into docs/packages.md

Each package is installed with --no-deps into a separate folder, with its requirements except MindSpore. Each row runs within a time limit.
The tool restarts the process of the rows if it dies. The exit code is 1 if a row failed, or logits differ by more than 1e-4.
"""
from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import page
import rows

PACKAGES = (
    "mindcv", "mindyolo", "mindnlp", "mindocr", "mindone", "mindformers", "mindformers_2", "mindformers_1_3", "mindspore_rl", "mindquantum",
    "mindflow", "mindaudio", "mindarmour", "mindpet", "mindinsight", "tinyms", "mindtorch", "msadapter", "troubleshooter",
)


def main() -> int:
    """Print the tables. Return 1 if a row fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="*", choices=[*PACKAGES, []], default=[], help=f"of {', '.join(PACKAGES)}")
    parser.add_argument("--oracle", help="a Python with mindspore==2.10.0")
    parser.add_argument("--only", default="", help="a pattern of rows' names")
    parser.add_argument("--families", action="store_true", help="one model of each family")
    parser.add_argument("--folder", type=Path, help="the folder in which the packages are installed")
    parser.add_argument("--limit", type=int, default=180, help="seconds for a row")
    parser.add_argument("--write", action="store_true", help="writes docs/packages.md")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        return rows.inside(options.inside)
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.folder or Path(temporary)).resolve()
        results = {}
        for name in options.packages or PACKAGES:
            request = {"package": name, "work": temporary, "only": options.only, "families": options.families, "limit": options.limit}
            request |= {"folder": rows.install(name, folder), "ours": True}
            results[name] = rows.answers(sys.executable, request)
            if options.oracle and name == "mindcv":
                rows.compare(results[name], rows.answers(options.oracle, {**request, "ours": False, "limit": 3 * options.limit}))
            print(page.table(name, results[name]), flush=True)
    if options.write:
        page.write(results)
    return int(any(row["error"] for rows_of_package in results.values() for row in rows_of_package.values()))


if __name__ == "__main__":
    raise SystemExit(main())
