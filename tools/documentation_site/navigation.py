"""The navigation and the links of the site, checked without its generator."""
from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

try:
    import tomllib
except ModuleNotFoundError:                                            # Python 3.10
    import tomli as tomllib  # type: ignore[no-redef]

ROOT = Path(__file__).resolve().parents[2]
API = "docs/reference/api/"
"""Pages in this folder are written by api_pages.py, into the source folder of the site alone."""
FOLDERS = ("docs/", "examples/")
FILES = ("NOTICE",)
CODE = re.compile(r"^( *)(```|~~~).*?^\1\2[^\n]*$", re.S | re.M)
COMMENT = re.compile(r"<!--.*?-->", re.S)
INLINE_CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)", re.S)
LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
HEADING = re.compile(r"^#{1,6} +(.*?) *#*$", re.M)


def read_config(root: Path = ROOT) -> dict[str, Any]:
    """Return the table `project` of zensical.toml."""
    return tomllib.loads((root / "zensical.toml").read_text(encoding="utf-8"))["project"]


def listed_pages(entries: list[Any]) -> Iterator[str]:
    """Yield the pages of a navigation, in order."""
    for entry in entries:
        for value in entry.values() if isinstance(entry, dict) else [entry]:
            if isinstance(value, str):
                yield value
            else:
                yield from listed_pages(value)


def site_files(root: Path = ROOT) -> list[str]:
    """Return the files that the site shows or links to: those that git has, or would take, in its folders, and pages of the root."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout.splitlines()
    return sorted({
        name for name in names
        if (name.startswith(FOLDERS) or name in FILES or ("/" not in name and name.endswith(".md"))) and (root / name).exists()
    })


def slug(heading: str) -> str:
    """Return the anchor of a heading, as GitHub and the site write it."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "")
    return re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", text).strip().lower())


def prose(text: str) -> str:
    """Return a page without its code and comments, which contain no links and no headings."""
    return CODE.sub("", COMMENT.sub("", text))


@cache
def anchors(path: Path) -> frozenset[str]:
    """Return the anchors of a page; a repeated heading gets a number."""
    seen: dict[str, int] = {}
    names = set()
    for heading in HEADING.findall(prose(path.read_text(encoding="utf-8"))):
        name = slug(heading)
        count = seen[name] = seen.get(name, -1) + 1
        names.add(f"{name}_{count}" if count else name)
    return frozenset(names)


def links(text: str) -> list[str]:
    """Return the targets of the links and pictures of a page, without those to other sites."""
    targets = LINK.findall(INLINE_CODE.sub("", prose(text)))
    return [target for target in targets if not re.match(r"\w+:", target)]


def navigation_problems(root: Path = ROOT) -> list[str]:
    """Return a line for each page that is listed and absent, listed twice, or absent from the navigation, and for each translation."""
    config = read_config(root)
    listed = list(listed_pages(config["nav"]))
    pages = [name for name in site_files(root) if name.endswith(".md")]
    repeated = sorted({name for name in listed if listed.count(name) > 1})
    problems = [f"zensical.toml: {name} is listed {listed.count(name)} times" for name in repeated]
    problems += [f"zensical.toml: {name} does not exist" for name in listed if not name.startswith(API) and name not in pages]
    problems += [f"zensical.toml: {name} is missing from `nav`" for name in pages if name not in listed]
    translated = sorted(name.replace("docs/zh/", "docs/").replace(".md", ".html") for name in pages if name.startswith("docs/zh/"))
    if sorted(config["extra"]["translated"]) != translated:
        problems.append(f"zensical.toml: `translated` should be {translated}")
    return problems


def link_problems(root: Path = ROOT) -> list[str]:
    """Return a line for each relative link that leads to no file of the site, or to no heading of a page."""
    pages = [name for name in site_files(root) if name.endswith(".md")]
    files = {*site_files(root), *(name for name in listed_pages(read_config(root)["nav"]) if name.startswith(API))}
    problems = []
    for name in pages:
        for target in links((root / name).read_text(encoding="utf-8")):
            file, _, anchor = target.partition("#")
            path = (root / name).parent.joinpath(file).resolve() if file else root / name
            relative = path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
            if relative not in files:
                problems.append(f"{name}: {target}: the site has no file {relative}")
            elif anchor and relative.endswith(".md") and not relative.startswith(API) and anchor not in anchors(path):
                problems.append(f"{name}: {target}: the page has no heading #{anchor}")
    return problems
