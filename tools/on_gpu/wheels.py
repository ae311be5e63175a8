"""Packages for a machine without a network: downloaded here into `.wheels`, installed there if they are missing.

`.wheels` is ignored by git. The wheels are for Python 3.12 on x86-64 Linux, the newest release of each runtime dependency that the GPU
machine is not expected to have.
"""
from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".wheels"
EXPECTED = {
    "torch", "numpy", "scipy", "opencv-python-headless", "pillow", "protobuf", "msgpack", "rich", "safetensors", "pytest", "triton",
}
"""Packages that the GPU machine has."""
PYTHON, PLATFORMS = "3.12", [*(f"manylinux_2_{minor}_x86_64" for minor in range(39, 4, -1)), "manylinux2014_x86_64", "any"]


def names() -> list[str]:
    """Return the runtime dependencies that the GPU machine lacks, as requirements for pip."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    plain = [text for text in project["dependencies"] if "python_version" not in text]
    return [text for text in plain if _name(text) not in EXPECTED]


def _name(requirement: str) -> str:
    return re.split(r"[<>=!~; \[]", requirement, maxsplit=1)[0].lower()


def fetch() -> None:
    """Download the wheels. Raises CalledProcessError if pip fails."""
    platforms = [word for platform in PLATFORMS for word in ("--platform", platform)]
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.glob("*.whl"):
        old.unlink()
    subprocess.run(
        [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--python-version", PYTHON,
         "--implementation", "cp", *platforms, "--dest", str(FOLDER), *names()],
        check=True,
    )
    size = sum(file.stat().st_size for file in FOLDER.glob("*.whl"))
    print(f"{len(list(FOLDER.glob('*.whl')))} wheels, {size / 2**20:.1f} MiB, in {FOLDER.relative_to(ROOT)}")


def install(target: Path) -> list[str]:
    """Install the wheels whose packages are missing here into a folder. Return their names."""
    missing = [wheel for wheel in sorted(FOLDER.glob("*.whl")) if not _is_installed(wheel.name.split("-")[0])]
    if missing:
        subprocess.run(
            [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-compile", "--no-cache-dir", "--target",
             str(target), *map(str, missing)],
            check=True,
        )
    return [wheel.name.split("-")[0] for wheel in missing]


def _is_installed(name: str) -> bool:
    try:
        importlib.metadata.version(name.replace("_", "-"))
    except importlib.metadata.PackageNotFoundError:
        return False
    return True
