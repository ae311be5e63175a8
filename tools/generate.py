#!/usr/bin/env python3
"""Writes the files that are derived from declarations, or checks them.

    tools/generate.py                      writes all of them
    tools/generate.py context stubs        writes the files of these subjects
    tools/generate.py --check              writes nothing, and fails if a file is stale

A subject is a module in tools/generators. `offered` comes first: the pages read the lists of offered names.
"""
from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests"), str(ROOT / "tools")]

from generators import (  # noqa: E402
    chinese_pages,
    context_page,
    missing_names,
    names_page,
    offered_names,
    older_calls_page,
    operators,
    stubs,
    versions_page,
)
from on_gpu import page as gpu_page  # noqa: E402

SUBJECTS: dict[str, Callable[[], dict[Path, str]]] = {
    "offered": offered_names.files,
    "context": lambda: {
        ROOT / "docs/reference/context.md": context_page.reference(),
        ROOT / "docs/zh/reference/context.md": context_page.chinese_reference(),
        ROOT / "docs/differences.md": context_page.differences(ROOT / "docs/differences.md"),
    },
    "missing": lambda: {ROOT / "docs/reference/missing.md": missing_names.missing()},
    "names": lambda: {
        ROOT / "docs/reference/names.md": names_page.names(),
        ROOT / "README.md": names_page.readme(ROOT / "README.md"),
    },
    "older_calls": lambda: {ROOT / "docs/reference/older-calls.md": older_calls_page.older_calls_page()},
    "operators": lambda: {ROOT / "docs/reference/operators.md": operators.operators()},
    "gpu": lambda: {
        ROOT / "docs/gpu.md": gpu_page.page(),
        ROOT / "docs/zh/gpu.md": chinese_pages.page(gpu_page.page(), "docs/gpu.md"),
    },
    "packages": lambda: {ROOT / "docs/zh/packages.md": chinese_pages.page_of("docs/packages.md")},
    "performance": lambda: {
        **{ROOT / f"docs/zh/{name}.md": chinese_pages.page_of(f"docs/{name}.md") for name in ("performance", "measurements")},
        **{ROOT / f"docs/guides/images/zh/{name}.svg": chinese_pages.picture_of(f"docs/guides/images/{name}.svg")
           for name in ("performance", "predicted")},
    },
    "versions": lambda: {ROOT / "docs/reference/versions.md": versions_page.versions()},
    "stubs": lambda: {
        ROOT / "mindspore-stubs/mindspore-stubs/context.pyi": stubs.context(),
        ROOT / "mindspore-stubs/mindspore-stubs/__init__.pyi": stubs.package(),
        ROOT / "mindspore-stubs/modules.txt": stubs.modules(),
    },
}
"""Returns the path and the text of each file of a subject."""


def stale_files(subject: str) -> dict[Path, str]:
    """Return the files of a subject that differ from their new text, with that text."""
    return {path: text for path, text in SUBJECTS[subject]().items() if not path.exists() or path.read_text(encoding="utf-8") != text}


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("subjects", nargs="*", metavar="SUBJECT", help=f"all by default: {', '.join(SUBJECTS)}")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file is stale")
    arguments = parser.parse_args(words)
    if unknown := [name for name in arguments.subjects if name not in SUBJECTS]:
        parser.error(f"unknown subject {unknown[0]}: expected {', '.join(SUBJECTS)}")
    warnings.simplefilter("ignore")                      # imports of old names warn
    has_stale = False
    for subject in arguments.subjects or SUBJECTS:
        for path, text in stale_files(subject).items():
            has_stale = True
            if arguments.check:
                print(f"{path.relative_to(ROOT)} is stale: run tools/generate.py {subject}")
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            offered_names.forget_lists()
            print(f"wrote {path.relative_to(ROOT)}")
    return 1 if arguments.check and has_stale else 0


if __name__ == "__main__":
    raise SystemExit(main())
