#!/usr/bin/env python3
"""Writes what is derived from declarations: pages of the reference, of the last run on a GPU, differences, stubs.

    tools/generate.py            writes the files
    tools/generate.py --check    writes nothing and fails when a file is stale
"""
from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests"), str(ROOT / "tools")]

import generate_missing  # noqa: E402  (the paths are set just above)
import generate_names_page  # noqa: E402
import generate_operators  # noqa: E402
import generate_reference  # noqa: E402
import generate_stubs  # noqa: E402
import generate_versions  # noqa: E402
from on_gpu import page as gpu_page  # noqa: E402


def files() -> dict[Path, str]:
    """Gives every generated file and its text."""
    return {
        ROOT / "docs/reference/context.md": generate_reference.reference(),
        ROOT / "docs/reference/missing.md": generate_missing.missing(),
        ROOT / "docs/reference/names.md": generate_names_page.names(),
        ROOT / "docs/reference/operators.md": generate_operators.operators(),
        ROOT / "docs/gpu.md": gpu_page.page(),
        ROOT / "docs/reference/versions.md": generate_versions.versions(),
        ROOT / "docs/differences.md": generate_reference.differences(ROOT / "docs/differences.md"),
        ROOT / "README.md": generate_names_page.readme(ROOT / "README.md"),
        ROOT / "mindspore-stubs/mindspore-stubs/context.pyi": generate_stubs.context(),
        ROOT / "mindspore-stubs/mindspore-stubs/__init__.pyi": generate_stubs.package(),
        ROOT / "mindspore-stubs/modules.txt": generate_stubs.modules(),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a file is stale")
    check = parser.parse_args().check
    stale = [(path, text) for path, text in files().items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    for path, text in stale:
        if check:
            print(f"{path.relative_to(ROOT)} is stale: run tools/generate.py")
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path.relative_to(ROOT)}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    raise SystemExit(main())
