"""The pytest plugin: `pytest -p torchspore.pytest` runs a test suite written for MindSpore on torchspore.

`-p` is handled before any conftest is imported, so that `import mindspore` in a conftest is answered too.
"""
from __future__ import annotations

import torchspore

torchspore.install()


def pytest_report_header() -> str:
    """Return the line of pytest's header that reports torchspore."""
    from torchspore.public_names import mindspore_version

    return f"mindspore: torchspore {torchspore.__version__} (behaves like MindSpore {mindspore_version()})"
