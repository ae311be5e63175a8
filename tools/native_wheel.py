#!/usr/bin/env python3
"""Builds a wheel that contains the native libraries, for one version of Python and one platform, from the files of the last commit.

    tools/native_wheel.py                       the wheel in dist/, for the Python and the torch that run this
    tools/native_wheel.py --python P Q          with a library for the torch of each of these interpreters, which are of one version
    tools/native_wheel.py --show WHEEL          what a wheel's libraries are for, and the symbol versions that they need

It needs a C++ compiler, the headers of Python and `readelf`. The tag of the platform follows from the versions of the symbols that the
libraries need: the lowest manylinux tag that has all of them, and not below that of torch's own wheels. `make dist` builds the pure wheel.
"""
from __future__ import annotations

import argparse
import hashlib
import os
import platform
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import release_packages

ROOT = Path(__file__).resolve().parent.parent
SOURCES = {
    "engine/native/operators.cpp": True, "engine/native/allocator.cpp": False, "observe/debug/watch.cpp": False,
    "observe/debug/end_signals.cpp": False,
}
"""The native files, and whether each is a module of Python."""

Version = tuple[int, ...]
POLICIES: dict[int, Mapping[str, Version]] = {
    28: {"GLIBC": (2, 28), "GLIBCXX": (3, 4, 24), "CXXABI": (1, 3, 11), "GCC": (7,)},
    31: {"GLIBC": (2, 31), "GLIBCXX": (3, 4, 28), "CXXABI": (1, 3, 12), "GCC": (7,)},
    34: {"GLIBC": (2, 34), "GLIBCXX": (3, 4, 29), "CXXABI": (1, 3, 13), "GCC": (7,)},
    35: {"GLIBC": (2, 35), "GLIBCXX": (3, 4, 30), "CXXABI": (1, 3, 13), "GCC": (12,)},
    39: {"GLIBC": (2, 39), "GLIBCXX": (3, 4, 33), "CXXABI": (1, 3, 15), "GCC": (14,)},
}
"""By the number of a manylinux_2_x tag, the newest symbols that its systems have. The first is that of torch's wheels."""
SYSTEM = re.compile(r"(libc|libm|libdl|libpthread|librt|libstdc\+\+|libgcc_s|ld-linux-[\w-]+)\.so\.\d+")
TORCH = {"libtorch_cpu.so", "libc10.so", "libtorch_python.so"}
"""Libraries that the process has loaded with torch."""


def compile_libraries(source: Path, folder: Path) -> None:
    """Compile all native files of `source`, the folder of the package torchspore, for this Python and torch; add them to the list."""
    sys.path.insert(0, str(source.parent))
    from torchspore.engine.native import bundled_libraries
    from torchspore.engine.native.native_build import Source

    target = bundled_libraries.this_target()
    rows = bundled_libraries.read_list(folder) if (folder / bundled_libraries.LIST).exists() else []
    if any(row.target == target for row in rows):
        raise SystemExit(f"{sys.executable}: torch {target.torch} is already in the wheel")
    if any(row.target.python != target.python for row in rows):
        raise SystemExit(f"{sys.executable}: a wheel is for one version of Python, {rows[0].target.python}")
    for name, is_module in SOURCES.items():
        native = Source(source / name, is_module)
        library = folder / f"{native.path.stem}_torch_{target.torch}_{hashlib.sha256(repr(target).encode()).hexdigest()[:8]}.so"
        ended = subprocess.run(native.command(library, is_portable=True), capture_output=True, text=True)
        if ended.returncode:
            raise SystemExit(f"{name}: the compiler failed\n{ended.stderr}")
        digest = hashlib.sha256(library.read_bytes()).hexdigest()
        rows.append(bundled_libraries.Library(library.name, native.path.name, native.digest(), digest, target))
        print(f"{library.name}: {library.stat().st_size / 1e3:.0f} kB", flush=True)
    bundled_libraries.write_list(folder, rows)


def needs(libraries: Iterable[Path]) -> dict[str, Version]:
    """Return the newest version of each group of symbols that the libraries need. Raises SystemExit if they need another library."""
    newest: dict[str, Version] = {}
    for library in libraries:
        command = ["readelf", "--dynamic", "--version-info", "--wide", str(library)]
        text = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "LC_ALL": "C"}).stdout
        others = {name for name in re.findall(r"\(NEEDED\).*\[(.+)\]", text) if name not in TORCH and not SYSTEM.fullmatch(name)}
        if others:
            raise SystemExit(f"{library.name} needs {', '.join(sorted(others))}, which a wheel may not expect on each system")
        for group, numbers in re.findall(r"Name: ([A-Z]+)_([0-9.]+)", text):
            version = tuple(map(int, numbers.split(".")))
            newest[group] = max(version, newest.get(group, ()))
    return newest


def platform_tag(needed: Mapping[str, Version], machine: str) -> str:
    """Return the lowest manylinux tag whose systems have all of these symbols. Raises SystemExit if no tag's have."""
    for number, policy in POLICIES.items():
        if all(group in policy and version <= policy[group] for group, version in needed.items()):
            return f"manylinux_2_{number}_{machine}"
    raise SystemExit(f"no manylinux tag has {describe(needed)}: build on an older system")


def describe(needed: Mapping[str, Version]) -> str:
    """Return the versions of symbols as text."""
    return ", ".join(f"{group}_{'.'.join(map(str, version))}" for group, version in sorted(needed.items()))


def build(pythons: Sequence[str], output: Path) -> Path:
    """Compile the libraries and build the wheel into a folder; return its path."""
    with tempfile.TemporaryDirectory() as name:
        source, folder = Path(name) / "source", Path(name) / "libraries"
        source.mkdir()
        folder.mkdir()
        release_packages.export_commit(source)
        for python in pythons:
            command = [python, "-B", source / "tools/native_wheel.py", "--compile", source / "src/torchspore", folder]
            if subprocess.run(command).returncode:
                raise SystemExit(1)
        needed = needs(folder.glob("*.so"))
        words = subprocess.run([pythons[0], "-c", "import sys, sysconfig; print(*sys.version_info[:2], sysconfig.get_config_var('SOABI'))"],
                               capture_output=True, text=True, check=True).stdout.split()
        if "linux-gnu" not in words[2]:
            raise SystemExit(f"expected a Python for Linux with glibc, got {words[2]}")
        interpreter, abi = f"cp{words[0]}{words[1]}", f"cp{words[2].split('-')[1]}"
        tag = f"{interpreter}-{abi}-{platform_tag(needed, platform.machine())}"
        (folder / "wheel_tag").write_text(f"{tag}\n", encoding="utf-8")
        output.mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, "TORCHSPORE_WHEEL_NATIVE": str(folder)}
        words = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(output), str(source)]
        ended = subprocess.run(words, env=environment, capture_output=True, text=True)
        if ended.returncode:
            raise SystemExit(ended.stdout + ended.stderr)
    [wheel] = output.glob(f"torchspore-*-{tag}.whl")
    print(f"{wheel}: {wheel.stat().st_size / 1e6:.1f} MB; the libraries need {describe(needed)}")
    return wheel


def show(wheel: Path) -> None:
    """Print what the libraries of a wheel are for, and the symbols that they need."""
    sys.path.insert(0, str(ROOT / "src"))
    from torchspore.engine.native import bundled_libraries

    with tempfile.TemporaryDirectory() as name, zipfile.ZipFile(wheel) as archive:
        archive.extractall(name)
        folder = Path(name) / "torchspore/engine/native/bundled"
        if not folder.exists():
            raise SystemExit(f"{wheel.name} is a pure wheel: it contains no libraries")
        for row in bundled_libraries.read_list(folder):
            is_intact = hashlib.sha256((folder / row.file).read_bytes()).hexdigest() == row.sha256
            print(f"{row.file}: {row.source} for torch {row.target.torch} ({row.target.torch_build}), {row.target.python}, "
                  f"{(folder / row.file).stat().st_size / 1e3:.0f} kB{'' if is_intact else ', DAMAGED'}")
        needed = needs(folder.glob("*.so"))
        print(f"the libraries need {describe(needed)}: {platform_tag(needed, platform.machine())}")


def main(words: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", nargs="+", default=[sys.executable], metavar="P", help="interpreters with different versions of torch")
    parser.add_argument("--into", type=Path, default=ROOT / "dist", metavar="DIR", help="the folder of the wheel")
    parser.add_argument("--show", type=Path, metavar="WHEEL", help="describe the libraries of a wheel")
    parser.add_argument("--compile", type=Path, nargs=2, metavar=("SOURCE", "DIR"), help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    if options.compile:
        compile_libraries(*options.compile)
    elif options.show:
        show(options.show)
    else:
        build(options.python, options.into)
    return 0


if __name__ == "__main__":
    sys.exit(main())
