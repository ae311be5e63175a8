"""Packages whose only row is the import of their modules."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from module_imports import import_all

Row = tuple[str, str, Callable[[], dict[str, Any] | None]]
MATPLOTLIB = (
    "matplotlib", "contourpy", "cycler", "fonttools", "kiwisolver", "pyparsing", "python-dateutil", "six", "packaging",
)


@dataclass(frozen=True)
class ImportedPackage:
    """A requirement, those of its requirements that are not torchspore's, and the package to import.

    An ImportError with one of the texts of CAUSES counts as a missing third-party package.
    """

    PACKAGE: str
    NEEDS: tuple[str, ...]
    FOLDER: str
    CAUSES: tuple[str, ...] = ()

    def rows(self, options: dict[str, Any]) -> Iterator[Row]:
        """Yield (name, group, function to run) of the row."""
        del options
        yield "every module", "imports", lambda: import_all(self.FOLDER, self.CAUSES)


IMPORTED = {
    "mindarmour": ImportedPackage("mindarmour==2.0.0", (*MATPLOTLIB, "easydict", "opencv-python-headless<5", "lmdb"), "mindarmour"),
    "mindpet": ImportedPackage("mindpet==1.0.4", ("concurrent-log-handler", "portalocker"), "mindpet"),
    "mindinsight": ImportedPackage("mindinsight==2.3.1", (
        "Flask", "Flask-Cors", "itsdangerous", "blinker", "marshmallow<4", "psutil", "pandas", "pytz", "tzdata", "treelib", "XlsxWriter",
        "Werkzeug", "python-dateutil", "six", "gunicorn", "protobuf==3.20.1",
    ), "mindinsight"),
    "tinyms": ImportedPackage("tinyms==0.3.2", (
        *MATPLOTLIB, "easydict", "flask==2.0.3", "Werkzeug==2.0.3", "itsdangerous", "flask-cors", "wget", "tqdm", "requests", "certifi",
        "idna", "urllib3", "charset-normalizer", "pycocotools", "opencv-python-headless<5", "gensim", "smart_open", "wrapt",
    ), "tinyms"),
    "msadapter": ImportedPackage(
        "msadapter==0.1.0", ("tqdm",), "msadapter", ("module 'numpy' has no attribute 'float'", "name 'IterDataPipe' from 'msadapter"),
    ),
    "troubleshooter": ImportedPackage("troubleshooter==1.0.18", (
        *MATPLOTLIB, "pandas", "pytz", "tzdata", "PySnooper", "prettytable==3.7.0", "wcwidth", "protobuf==3.20.1", "tqdm",
    ), "troubleshooter"),
}
