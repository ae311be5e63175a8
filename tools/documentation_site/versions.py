"""Sites of several versions beside each other: DIR/0.1.0, DIR/0.2.0, ..., and versions.json, from which the theme shows a selector."""
from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

REDIRECT = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>torchspore</title><meta http-equiv="refresh" content="0; url={version}/index.html">
<a href="{version}/index.html">torchspore {version}</a></html>
"""


def add_version(site: Path, folder: Path, version: str) -> None:
    """Copy a built site into `folder`, replace the site of the same version, and lead the start page to the newest release."""
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)*|[a-z]+", version):
        raise ValueError(f"version {version!r}: expected a release such as '0.1.0', or a name such as 'dev'")
    shutil.rmtree(folder / version, ignore_errors=True)
    shutil.copytree(site, folder / version)
    versions = sorted((path.parent.name for path in folder.glob("*/index.html")), key=_order, reverse=True)
    entries = [{"version": name, "title": name, "aliases": ["latest"] if name == versions[0] else []} for name in versions]
    (folder / "versions.json").write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")
    (folder / "index.html").write_text(REDIRECT.format(version=versions[0]), encoding="utf-8")


def _order(version: str) -> tuple[int, ...]:
    """Return the key by which versions are sorted; a name comes before every release."""
    return tuple(map(int, version.split("."))) if version[0].isdigit() else (-1,)
