"""The distribution `mindspore` that `importlib.metadata` returns while torchspore answers `import mindspore`."""
from __future__ import annotations

import importlib.metadata
import os
import re
from collections.abc import Iterable
from pathlib import Path

from torchspore.public_names.version import mindspore_version


class MindSporeDistribution(importlib.metadata.Distribution):
    """Metadata of the MindSpore release that torchspore implements. It lists no files: torchspore's own distribution does."""

    def read_text(self, filename: str) -> str | None:
        """Return the text of a metadata file, or None if there is no such file."""
        if filename == "METADATA":
            return (f"Metadata-Version: 2.1\nName: mindspore\nVersion: {mindspore_version()}\n"
                    "Summary: torchspore, which runs MindSpore programs on PyTorch\n")
        return "mindspore\n" if filename == "top_level.txt" else None

    def locate_file(self, path: str | os.PathLike[str]) -> Path:
        """Return the path of a file of the distribution: below the folder of the front end."""
        return Path(__file__).resolve().parents[1] / path


def distributions(name: str | None) -> Iterable[MindSporeDistribution]:
    """Return the distribution if `name` is None or a spelling of mindspore, otherwise nothing."""
    if name is None or re.sub(r"[-_.]+", "-", name).lower() == "mindspore":
        return [MindSporeDistribution()]
    return []
