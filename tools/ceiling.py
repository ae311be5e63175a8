#!/usr/bin/env python3
"""Computes the largest possible share of programs that find every name: was a name that is missing here in any release of MindSpore?

    tools/ceiling.py ../shared/spec/programs.json --wheels DIR --write      reads released wheels (and installed packages) in DIR
    tools/ceiling.py ../shared/spec/programs.json                           prints the table from the stored results

A wheel comes from `pip download mindspore-ascend==1.10.0 --no-deps --only-binary :all: --python-version 3.7 --platform manylinux1_x86_64`.
The tool reads its Python files and runs none of them. It stores the results in tools/ceiling.json, by missing name.
"""
from __future__ import annotations

import argparse
import collections
import importlib
import json
import re
import sys
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tools")]
warnings.simplefilter("ignore")                  # torchspore warns of each misspelled name
RELEASES_FILE, PAGE = ROOT / "tools/ceiling.json", ROOT / "docs/reference/coverage.md"

HEAD = """<!-- Written by tools/ceiling.py PROGRAMS_JSON --wheels DIR --write. -->

# Public programs that find every name

A program counts if `import mindspore` offers every name that it uses. Some programs use a name that no release of MindSpore ever had (a
misspelling, or a name of another framework); the *ceiling* is the share without those programs. Misspelled names with one possible meaning
(`nn.Sequential`, `nn.Relu`: the table in `src/torchspore/public_names/slips.py`) are interpreted as intended and reported at their line;
the last column counts the programs that find every name only because of this table. Releases whose files were read: {versions}.

| programs | all | find every name | share | never could | ceiling | of those found, by a slip |
|---|---:|---:|---:|---:|---:|---:|
{rows}

## Names that are missing here

| name | programs | MindSpore had it in |
|---|---:|---|
{names}
"""


def main() -> int:
    """Print the page, or write it. Return 1 if a missing name has no stored result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", type=Path, nargs="+", help="lists of programs with the names that each uses, as JSON")
    parser.add_argument("--wheels", type=Path, help="a folder of released wheels and of installed packages' folders")
    parser.add_argument("--write", action="store_true", help="write docs/reference/coverage.md and the results")
    arguments = parser.parse_args()
    corpora = {}
    for path in arguments.programs:
        data = json.loads(path.read_text())
        for name, programs in data["programs"].items():
            corpora[name] = [[data["names"][index] for index in indices] for indices in programs]
    resolved = _resolve_all({name for programs in corpora.values() for names in programs for name in names})
    absent = collections.Counter(name for programs in corpora.values() for names in programs for name in set(names) if not resolved[name])
    releases = json.loads(RELEASES_FILE.read_text()) if RELEASES_FILE.exists() else {"versions": [], "names": {}}
    if arguments.wheels:
        releases = _search_releases(arguments.wheels, sorted(absent))
    unknown = [name for name in absent if name not in releases["names"]]
    if unknown:
        print(f"not looked up yet, run with --wheels: {', '.join(unknown)}", file=sys.stderr)
        return 1
    text = _page(corpora, resolved, absent, releases)
    if not arguments.write:
        print(text)
        return 0
    stored = {"versions": releases["versions"], "names": {name: releases["names"][name] for name in sorted(absent)}}
    RELEASES_FILE.write_text(json.dumps(stored, indent=1) + "\n")
    PAGE.write_text(text)
    return 0


def _resolve_all(names: set[str]) -> dict[str, bool]:
    """Return for each of `names` whether torchspore has it."""
    import torchspore

    torchspore.install()
    return {name: _resolves(name) for name in names}


def _resolves(name: str) -> bool:
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            value = importlib.import_module(".".join(parts[:cut]))
        except ImportError:
            continue
        for part in parts[cut:]:
            try:
                value = getattr(value, part)
            except AttributeError:
                return False
        return True
    return False


def _search_releases(folder: Path, names: list[str]) -> dict[str, object]:
    """Return the versions of the releases in `folder`, and for each name the versions that have it."""
    from released_names import Release

    releases = [Release(path) for path in folder.iterdir() if path.suffix == ".whl" or (path / "__init__.py").exists()]
    releases.sort(key=lambda release: [int(part) for part in re.findall(r"\d+", release.version)])
    return {
        "versions": [release.version for release in releases],
        "names": {name: [release.version for release in releases if release.has_name(name)] for name in names},
    }


def _page(
    corpora: dict[str, list[list[str]]], resolved: dict[str, bool], absent: collections.Counter[str], releases: dict[str, object],
) -> str:
    from torchspore.public_names.slips import SLIPS

    rows = []
    for corpus, programs in corpora.items():
        complete = [used for used in programs if all(resolved[name] for name in used)]
        impossible = [
            used for used in programs if any(name in SLIPS or (not resolved[name] and not releases["names"][name]) for name in used)
        ]
        slipped = [used for used in complete if any(name in SLIPS for name in used)]
        share, ceiling = len(complete) / len(programs), 1 - len(impossible) / len(programs)
        rows.append(f"| {corpus} | {len(programs)} | {len(complete)} | {share:.1%} | {len(impossible)} | {ceiling:.1%} | {len(slipped)} |")
    ranked = sorted(absent.items(), key=lambda item: (-item[1], item[0]))
    names = [f"| `{name}` | {count} | {_span(releases['names'][name])} |" for name, count in ranked]
    return HEAD.format(versions=", ".join(releases["versions"]), rows="\n".join(rows), names="\n".join(names))


def _span(versions: list[str]) -> str:
    return "none" if not versions else versions[0] if len(versions) == 1 else f"{versions[0]} to {versions[-1]}"


if __name__ == "__main__":
    sys.exit(main())
