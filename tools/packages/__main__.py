#!/usr/bin/env python3
"""Runs packages from PyPI, unmodified, on torchspore and prints a table; with a real MindSpore, compares MindCV's logits.

    tools/packages mindcv mindyolo mindnlp mindocr          everything of these (the default: all eight; over an hour on two cores)
    tools/packages mindcv --only 'resnet|swin'              what the pattern finds in the names of rows
    tools/packages mindcv --families --oracle PYTHON        one model of each family, with weights carried over by .ckpt
    tools/packages mindnlp --folder DIR --write             keeps packages in DIR, and puts the table into docs/packages.md

Packages are installed with --no-deps into a folder of their own, beside what they need besides MindSpore. Each row runs within a time
limit, in a process that is started again where it died. The exit code is 1 where a row failed, or logits differ by more than 1e-4.
"""
from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import page
import rows

PACKAGES = ("mindcv", "mindyolo", "mindnlp", "mindocr", "mindone", "mindformers", "mindformers_2", "mindspore_rl")


def main() -> int:
    """Prints the tables; 1 where a row is not as it should be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="*", choices=[*PACKAGES, []], default=[], help=f"of {', '.join(PACKAGES)}")
    parser.add_argument("--oracle", help="a Python with mindspore==2.10.0")
    parser.add_argument("--only", default="", help="a pattern of rows' names")
    parser.add_argument("--families", action="store_true", help="one model of each family")
    parser.add_argument("--folder", type=Path, help="where the packages are, or are put")
    parser.add_argument("--limit", type=int, default=180, help="seconds for a row")
    parser.add_argument("--write", action="store_true", help="writes docs/packages.md")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        return rows.inside(options.inside)
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.folder or Path(temporary)).resolve()
        found = {}
        for name in options.packages or PACKAGES:
            given = {"package": name, "work": temporary, "only": options.only, "families": options.families, "limit": options.limit}
            given |= {"folder": rows.installed(name, folder), "ours": True}
            found[name] = rows.answers(sys.executable, given)
            if options.oracle and name == "mindcv":
                rows.compare(found[name], rows.answers(options.oracle, {**given, "ours": False, "limit": 3 * options.limit}))
            print(page.table(name, found[name]), flush=True)
    if options.write:
        page.write(found)
    return int(any(row["error"] for listed in found.values() for row in listed.values()))


if __name__ == "__main__":
    raise SystemExit(main())
