"""The pytest plugin: `pytest -p torchspore.pytest` runs a test suite written for MindSpore on torchspore.

`-p` is handled before any conftest is imported, so that `import mindspore` in one is answered too.
"""
from __future__ import annotations

import torchspore

torchspore.install()


def pytest_report_header() -> str:
    """Says in pytest's first lines that MindSpore is torchspore here."""
    from torchspore.names import mindspore_version

    return f"mindspore: torchspore {torchspore.__version__} (behaves like MindSpore {mindspore_version()})"
