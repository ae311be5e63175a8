#!/usr/bin/env python3
"""Says which share of programs could find every name at best: of the names that are missing here, which did any MindSpore ever have?

    tools/ceiling.py ../shared/spec/programs.json --wheels DIR --write      reads released wheels (and installed packages) in DIR
    tools/ceiling.py ../shared/spec/programs.json                           prints the table out of what was found before

A wheel comes from `pip download mindspore-ascend==1.10.0 --no-deps --only-binary :all: --python-version 3.7 --platform manylinux1_x86_64`.
Its Python files are read, none is run. What was found is kept in tools/ceiling.json, by missing name.
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
warnings.simplefilter("ignore")                  # slips are told
KEPT, PAGE = ROOT / "tools/ceiling.json", ROOT / "docs/reference/coverage.md"

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
    """Prints the page, or writes it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", type=Path, nargs="+", help="lists of programs with the names that each uses, as JSON")
    parser.add_argument("--wheels", type=Path, help="a folder of released wheels and of installed packages' folders")
    parser.add_argument("--write", action="store_true", help="write docs/reference/coverage.md and what was found")
    arguments = parser.parse_args()
    corpora = {}
    for path in arguments.programs:
        data = json.loads(path.read_text())
        corpora.update({name: [[data["names"][at] for at in one] for one in programs] for name, programs in data["programs"].items()})
    here = _answered({name for programs in corpora.values() for one in programs for name in one})
    absent = collections.Counter(name for programs in corpora.values() for one in programs for name in set(one) if not here[name])
    known = json.loads(KEPT.read_text()) if KEPT.exists() else {"versions": [], "names": {}}
    if arguments.wheels:
        known = _ask(arguments.wheels, sorted(absent))
    unknown = [name for name in absent if name not in known["names"]]
    if unknown:
        print(f"not looked up yet, run with --wheels: {', '.join(unknown)}", file=sys.stderr)
        return 1
    text = _page(corpora, here, absent, known)
    if not arguments.write:
        print(text)
        return 0
    kept = {"versions": known["versions"], "names": {name: known["names"][name] for name in sorted(absent)}}
    KEPT.write_text(json.dumps(kept, indent=1) + "\n")
    PAGE.write_text(text)
    return 0


def _answered(names: set[str]) -> dict[str, bool]:
    """Whether each of `names` is answered here."""
    import torchspore

    torchspore.install()
    return {name: _resolves(name) for name in names}


def _resolves(name: str) -> bool:
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ImportError:
            continue
        for part in parts[cut:]:
            try:
                found = getattr(found, part)
            except AttributeError:
                return False
        return True
    return False


def _ask(folder: Path, names: list[str]) -> dict[str, object]:
    """In which of the releases in `folder` each name is."""
    from released_names import Release

    releases = [Release(path) for path in folder.iterdir() if path.suffix == ".whl" or (path / "__init__.py").exists()]
    releases.sort(key=lambda release: [int(part) for part in re.findall(r"\d+", release.version)])
    return {
        "versions": [release.version for release in releases],
        "names": {name: [release.version for release in releases if release.has(name)] for name in names},
    }


def _page(corpora: dict[str, list[list[str]]], here: dict[str, bool], absent: collections.Counter[str], known: dict[str, object]) -> str:
    from torchspore.public_names.slips import SLIPS

    rows = []
    for corpus, programs in corpora.items():
        found = [one for one in programs if all(here[name] for name in one)]
        never = [one for one in programs if any(name in SLIPS or (not here[name] and not known["names"][name]) for name in one)]
        slipped = [one for one in found if any(name in SLIPS for name in one)]
        share, ceiling = len(found) / len(programs), 1 - len(never) / len(programs)
        rows.append(f"| {corpus} | {len(programs)} | {len(found)} | {share:.1%} | {len(never)} | {ceiling:.1%} | {len(slipped)} |")
    ranked = sorted(absent.items(), key=lambda item: (-item[1], item[0]))
    names = [f"| `{name}` | {count} | {_span(known['names'][name])} |" for name, count in ranked]
    return HEAD.format(versions=", ".join(known["versions"]), rows="\n".join(rows), names="\n".join(names))


def _span(versions: list[str]) -> str:
    return "none" if not versions else versions[0] if len(versions) == 1 else f"{versions[0]} to {versions[-1]}"


if __name__ == "__main__":
    sys.exit(main())
