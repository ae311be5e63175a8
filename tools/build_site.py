#!/usr/bin/env python3
"""Builds the site of the documentation with Zensical, or checks its navigation and links without it.

    tools/build_site.py              builds build/site; open build/site/index.html in a browser, from a file or from a server
    tools/build_site.py --into DIR   also copies it to DIR/VERSION, for a server; the pages there have a selector of the versions in DIR
    tools/build_site.py --check      reads the pages only: each is in the navigation, and each relative link leads to a file and a heading

zensical.toml has the navigation and the settings. The pages are those of docs, examples and this folder as they are: the source folder
of the site contains links to them, and the pages of the API, which are written from docstrings. A warning of Zensical ends the build.
"""
from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from documentation_site import navigation, versions

ROOT = Path(__file__).resolve().parent.parent


def link_sources(folder: Path, root: Path = ROOT) -> None:
    """Fill a folder with links to the pages of the site and to the files that they show."""
    shutil.rmtree(folder, ignore_errors=True)
    for name in navigation.site_files(root):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(root / name)


def write_api_pages(folder: Path, names: Sequence[str]) -> None:
    """Write the pages of the API that the navigation lists. The import of the packages takes seconds, so --check does not come here."""
    from documentation_site import api_pages

    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(api_pages.page(path.stem), encoding="utf-8")


def finish_chinese_pages(site: Path) -> None:
    """State the language of the Chinese pages, for screen readers and the choice of fonts, and join their lines."""
    for path in [site / "README.zh-CN.html", *(site / "docs/zh").rglob("*.html")]:
        text = path.read_text(encoding="utf-8")
        text = re.sub(r'<html lang="zh"', '<html lang="zh-Hans"', text, count=1)
        path.write_text(join_chinese_lines(text), encoding="utf-8")


def is_chinese(page: Path) -> bool:
    """Return whether a page of the site, by its path in the site, is Chinese."""
    return page.as_posix().startswith("docs/zh/") or page.name == "README.zh-CN.html"


def remove_links_between_languages(site: Path) -> None:
    """Remove the links to the previous and the next page that lead to the other language: from its last page, or to its first."""
    link = re.compile(r'<a\b[^>]*?\bhref="?([^"\s>]+)"?[^>]*\bmd-footer__link--(?:prev|next)\b[^>]*>.*?</a>', re.S)
    for path in site.rglob("*.html"):
        page = path.relative_to(site)

        def checked(match: re.Match[str], page: Path = page) -> str:
            target = Path(os.path.normpath(page.parent / match[1]))
            return match[0] if is_chinese(target) is is_chinese(page) else ""

        text = path.read_text(encoding="utf-8")
        if (changed := link.sub(checked, text)) != text:
            path.write_text(changed, encoding="utf-8")


def join_chinese_lines(page: str) -> str:
    """Join the lines of a page where one ends or continues with a Chinese character; a browser would show a space there."""
    parts = re.split(r"(<pre\b.*?</pre>|<script\b.*?</script>)", page, flags=re.S)
    chinese = "[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]"
    joint = re.compile(rf"(?<={chinese})\n(?=\S)|((?:[^\s>]|</(?:a|code|em|strong)>))\n(?={chinese})")
    return "".join(part if index % 2 else joint.sub(r"\1", part) for index, part in enumerate(parts))


def outside_addresses(site: Path) -> list[str]:
    """Return the addresses of other servers from which the pages load scripts, styles, fonts or pictures."""
    loads = re.compile(r"""<(?:script|img|iframe)\b[^>]*\bsrc=["']?(https?://[^"'\s>]+)|<link\b[^>]*rel=["']?stylesheet[^>]*href=["']?(https?://[^"'\s>]+)""")
    return sorted({a or b for path in site.rglob("*.html") for a, b in loads.findall(path.read_text(encoding="utf-8"))})


def build(root: Path = ROOT) -> int:
    """Build the site; return the exit code."""
    config = navigation.read_config(root)
    source, site = root / config["docs_dir"], root / config["site_dir"]
    link_sources(source, root)
    write_api_pages(source, [name for name in navigation.listed_pages(config["nav"]) if name.startswith(navigation.API)])
    shutil.rmtree(site, ignore_errors=True)
    ended = subprocess.run([sys.executable, "-m", "zensical", "build", "--clean", "--strict"], cwd=root)
    if ended.returncode:
        return ended.returncode
    finish_chinese_pages(site)
    remove_links_between_languages(site)
    addresses = outside_addresses(site)
    for address in addresses:
        print(f"the pages load {address}: expected a site that works without a network", file=sys.stderr)
    print(f"{site / 'index.html'}: {len(list(site.rglob('*.html')))} pages")
    return int(bool(addresses))


def project_version(root: Path = ROOT) -> str:
    """Return the version of torchspore without importing it."""
    match = re.search(r'^__version__ = "(.*)"', (root / "src/torchspore/__init__.py").read_text(encoding="utf-8"), re.M)
    assert match is not None
    return match[1]


def main(words: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="check the navigation and the links only")
    parser.add_argument("--into", type=Path, metavar="DIR", help="copy the site to DIR/VERSION")
    parser.add_argument("--version", default=project_version(), help="the name of the copy (default: torchspore's version, %(default)s)")
    arguments = parser.parse_args(words)
    problems = navigation.navigation_problems() + navigation.link_problems()
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems or arguments.check:
        return int(bool(problems))
    code = build()
    if not code and arguments.into:
        versions.add_version(ROOT / navigation.read_config()["site_dir"], arguments.into, arguments.version)
    return code


if __name__ == "__main__":
    sys.exit(main())
