"""What a package index shows of this project: the README with absolute links, and the project's addresses.

`repository` in pyproject.toml ([tool.hatch.metadata.hooks.custom]) is the address of the public repository. Links of the README that are
relative to the repository become absolute with it. Without an address they become plain text, and pictures are left out, so that a page of
an index has no broken links.
"""
from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

NATIVE = "TORCHSPORE_WHEEL_NATIVE"
BUNDLED = "torchspore/engine/native/bundled"
TAG = "wheel_tag"
LINK = re.compile(r"(!?)\[([^\]\n]*)\]\((?!\w+:|#)([^)\s]+)\)")


def absolute_links(text: str, repository: str) -> str:
    """Return a page of the repository's root with absolute links, or with plain text in their place without a repository."""

    def replace(match: re.Match[str]) -> str:
        picture, label, target = match.groups()
        if repository:
            return f"{picture}[{label}]({repository}/{'raw' if picture else 'blob'}/main/{target})"
        return "" if picture else label

    return LINK.sub(replace, text)


def project_urls(repository: str) -> dict[str, str]:
    """Return the project's addresses by their names."""
    if not repository:
        return {}
    return {
        "Repository": repository, "Documentation": f"{repository}/tree/main/docs", "Issues": f"{repository}/issues",
        "Changelog": f"{repository}/blob/main/CHANGELOG.md",
    }


class PublicPage(MetadataHookInterface):
    """Sets the fields `readme` and `urls` of the metadata."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set both fields; the README is that of the source tree."""
        repository = str(self.config.get("repository", "")).rstrip("/")
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": absolute_links(text, repository)}
        metadata["urls"] = project_urls(repository)


def native_files(folder: Path) -> dict[str, str]:
    """Return the paths in the wheel of a folder's libraries and of their list. Raises ValueError without libraries."""
    names = [path.name for path in sorted(folder.glob("*.so"))]
    if not names:
        raise ValueError(f"{NATIVE}={folder}: expected the path of a folder with libraries; tools/native_wheel.py creates one.")
    return {str(folder / name): f"{BUNDLED}/{name}" for name in (*names, "libraries.json")}


class NativeLibraries(BuildHookInterface):  # type: ignore[type-arg]
    """Adds native libraries and the platform's tag to the wheel if the environment variable names their folder."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the files; an editable installation stays without."""
        name = os.environ.get(NATIVE, "")
        if not name or version == "editable":
            return
        folder = Path(name)
        build_data["force_include"].update(native_files(folder))
        build_data["pure_python"] = False
        build_data["tag"] = (folder / TAG).read_text(encoding="utf-8").strip()
