"""The files of a release: metadata, packages, citation, templates, the pre-commit hook and the Dockerfile."""
from __future__ import annotations

import importlib.util
import re
import shlex
import subprocess
import sys
import tarfile
import zipfile
from email.parser import BytesParser
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import native_wheel
import pytest
import release_packages
from support import processes
from support.manifest import read_manifest, read_project

import torchspore

ROOT = Path(__file__).resolve().parents[2]
ADDRESS = "https://host.example/owner/torchspore"


@pytest.fixture
def hook() -> ModuleType:
    """Return hatch_build.py as a module."""
    pytest.importorskip("hatchling")
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_links_of_the_public_page_are_absolute(hook: ModuleType) -> None:
    text = "[a](docs/a.md#b) ![p](docs/p.png) [c](#c) [d](https://d.example)"
    assert hook.absolute_links(text, ADDRESS) == (
        f"[a]({ADDRESS}/blob/main/docs/a.md#b) ![p]({ADDRESS}/raw/main/docs/p.png) [c](#c) [d](https://d.example)")
    assert hook.absolute_links(text, "") == "a  [c](#c) [d](https://d.example)"


def test_no_link_of_the_readme_stays_relative(hook: ModuleType) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)]+)\)", hook.absolute_links(text, ADDRESS))
    assert targets and all("://" in target for target in targets)
    assert not re.findall(r"\]\((?!\w+:)", hook.absolute_links(text, ""))


def test_addresses_of_the_project(hook: ModuleType) -> None:
    assert hook.project_urls("") == {}
    assert hook.project_urls(ADDRESS)["Issues"] == f"{ADDRESS}/issues"


def test_a_platform_wheel_has_libraries_and_a_tag(hook: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.so", "libraries.json"):
        (tmp_path / name).touch()
    (tmp_path / "wheel_tag").write_text("cp311-cp311-manylinux_2_28_x86_64\n", encoding="utf-8")
    build_hook = object.__new__(hook.NativeLibraries)
    data: dict[str, Any] = {"force_include": {}, "pure_python": True}
    monkeypatch.delenv(hook.NATIVE, raising=False)
    build_hook.initialize("standard", data)
    monkeypatch.setenv(hook.NATIVE, str(tmp_path))
    build_hook.initialize("editable", data)
    assert data == {"force_include": {}, "pure_python": True}
    build_hook.initialize("standard", data)
    bundled = "torchspore/engine/native/bundled"
    assert data == {
        "force_include": {str(tmp_path / name): f"{bundled}/{name}" for name in ("a.so", "libraries.json")}, "pure_python": False,
        "tag": "cp311-cp311-manylinux_2_28_x86_64",
    }
    monkeypatch.setenv(hook.NATIVE, "1")
    with pytest.raises(ValueError, match="TORCHSPORE_WHEEL_NATIVE=1: expected the path of a folder with libraries"):
        build_hook.initialize("standard", data)


@pytest.mark.parametrize(("glibc", "glibcxx", "tag"), [
    ((2, 17), (3, 4, 21), "manylinux_2_28_x86_64"), ((2, 28), (3, 4, 24), "manylinux_2_28_x86_64"),
    ((2, 29), (3, 4, 24), "manylinux_2_31_x86_64"), ((2, 17), (3, 4, 29), "manylinux_2_34_x86_64"),
    ((2, 38), (3, 4, 30), "manylinux_2_39_x86_64"),
])
def test_the_tag_has_the_symbols_of_the_libraries(glibc: tuple[int, ...], glibcxx: tuple[int, ...], tag: str) -> None:
    assert native_wheel.platform_tag({"GLIBC": glibc, "GLIBCXX": glibcxx}, "x86_64") == tag


@pytest.mark.parametrize("needed", [{"GLIBC": (2, 99)}, {"OPENSSL": (3,)}, {"GCC": (99,)}])
def test_no_tag_has_other_symbols(needed: dict[str, tuple[int, ...]]) -> None:
    with pytest.raises(SystemExit, match="no manylinux tag has"):
        native_wheel.platform_tag(needed, "x86_64")


def test_the_symbols_of_a_library_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (" 0x1 (NEEDED)             Shared library: [libtorch_cpu.so]\n 0x1 (NEEDED)             Shared library: [libc.so.6]\n"
            " 0x1 (NEEDED)             Shared library: [ld-linux-x86-64.so.2]\n"
            "  0x0010:   Name: GLIBC_2.2.5  Flags: none  Version: 4\n  0x0020:   Name: GLIBC_2.14  Flags: none  Version: 3\n"
            "  0x0030:   Name: GLIBCXX_3.4.21  Flags: none  Version: 2\n")

    def run(*_: object, **__: object) -> SimpleNamespace:
        return SimpleNamespace(stdout=text)

    monkeypatch.setattr(native_wheel.subprocess, "run", run)
    assert native_wheel.needs([Path("a.so")]) == {"GLIBC": (2, 14), "GLIBCXX": (3, 4, 21)}
    text += " 0x1 (NEEDED)             Shared library: [libffi.so.8]\n"
    with pytest.raises(SystemExit, match=r"a\.so needs libffi\.so\.8, which"):
        native_wheel.needs([Path("a.so")])


def test_the_readme_begins_with_the_installation() -> None:
    first = re.search(r"^```sh\n(.*)", (ROOT / "README.md").read_text(encoding="utf-8"), re.M)
    assert first is not None and first[1].startswith("pip install ")


def test_classifiers_are_known_and_agree_with_the_tested_versions() -> None:
    known = pytest.importorskip("trove_classifiers").classifiers
    project = read_project()
    assert set(project["classifiers"]) <= known and project["authors"] and project["keywords"]
    pythons = {match[1] for text in project["classifiers"] if (match := re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", text))}
    tested = re.findall(r"^\| [\w.-]+ \| (3\.\d+)\.", (ROOT / "docs/reference/versions.md").read_text(encoding="utf-8"), re.M)
    assert pythons == set(tested)


def test_the_citation_has_the_present_version() -> None:
    yaml = pytest.importorskip("yaml")
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert str(citation["version"]) == torchspore.__version__ and citation["license"] == read_project()["license"]


def test_a_bug_report_needs_the_output_of_env() -> None:
    yaml = pytest.importorskip("yaml")
    for path in (ROOT / ".github/ISSUE_TEMPLATE").glob("[!c]*.yml"):
        fields = yaml.safe_load(path.read_text(encoding="utf-8"))["body"]
        required = [field["attributes"]["label"] for field in fields if field.get("validations", {}).get("required")]
        assert any("torchspore env" in label for label in required), path.name


def test_the_hook_reports_a_missing_name(tmp_path: Path) -> None:
    yaml = pytest.importorskip("yaml")
    [entry] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    (tmp_path / "good.py").write_text("from mindspore import nn\n", encoding="utf-8")
    (tmp_path / "bad.py").write_text("from mindspore.nn import CellOfAnotherRelease\n", encoding="utf-8")
    command, *arguments = shlex.split(entry["entry"])
    assert command == "torchspore" and processes.torchspore(*arguments, "good.py", cwd=tmp_path).code == 0
    ended = processes.torchspore(*arguments, "good.py", "bad.py", cwd=tmp_path)
    assert ended.code == 1 and "bad.py:1: mindspore.nn.CellOfAnotherRelease" in ended.out


def test_the_dockerfile_copies_files_that_its_context_has() -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").split() if line.startswith("!")}
    copied = {name for line in re.findall(r"^COPY (.*) \S+$", text, re.M) for name in line.split()}
    assert copied == allowed and all((ROOT / name).exists() for name in copied)
    extras = re.search(r"^ARG EXTRAS=(.*)$", text, re.M)
    assert extras is not None and set(extras[1].split(",")) <= set(read_project()["optional-dependencies"])
    instructions = {line.split()[0] for line in re.sub(r"\\\n", "", text).splitlines() if line and not line.startswith("#")}
    assert instructions <= {"ARG", "FROM", "RUN", "COPY", "USER", "WORKDIR", "ENTRYPOINT", "CMD"}


def test_hadolint_has_no_objection_to_the_dockerfile() -> None:
    program = Path(sys.executable).with_name("hadolint")
    if not program.exists():
        pytest.skip("pip install -r tools/release_requirements.txt")
    ended = subprocess.run([program, ROOT / "Dockerfile"], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (0, "")


def test_patterns_of_the_sdist_match_in_the_root_only() -> None:
    patterns = read_manifest()["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert [pattern for pattern in patterns if not pattern.startswith("/") or "*" in pattern] == []
    assert [pattern for pattern in patterns if not (ROOT / pattern[1:]).exists()] == []


def test_a_package_is_built_from_the_commit_and_not_from_scratch_files(tmp_path: Path) -> None:
    repository, target = tmp_path / "repository", tmp_path / "target"
    for folder in (repository, target):
        folder.mkdir()
    (repository / "program.py").write_text("a = 1\n", encoding="utf-8")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.example"]
    for words in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "first"]):
        subprocess.run([*git, *words], cwd=repository, check=True)
    (repository / "program.py").write_text("a = 2\n", encoding="utf-8")
    (repository / "scratch.py").write_text("", encoding="utf-8")
    release_packages.export_commit(target, repository)
    assert [path.name for path in target.iterdir()] == ["program.py"]
    assert (target / "program.py").read_text(encoding="utf-8") == "a = 1\n"


def test_the_seconds_of_the_newcomers_path_are_written_into_the_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text("It takes <!-- seconds -->0<!-- seconds --> seconds.\n", encoding="utf-8")
    monkeypatch.setattr(release_packages, "PAGES", (page,))
    release_packages.write_figure(41.6)
    assert page.read_text(encoding="utf-8") == "It takes <!-- seconds -->42<!-- seconds --> seconds.\n"
    for path in (ROOT / "docs/guides/install.md", ROOT / "docs/zh/guides/install.md"):
        seconds = release_packages.FIGURE.search(path.read_text(encoding="utf-8"))
        assert seconds is not None and 0 < int(re.sub("<!--.*?-->", "", seconds[0])) < 180


@pytest.mark.slow
def test_wheel_and_sdist_are_complete_and_pass_twine(tmp_path: Path) -> None:
    pytest.importorskip("hatchling")
    pytest.importorskip("build")
    pytest.importorskip("twine")
    run = [sys.executable, "-m"]
    source = tmp_path / "source"
    source.mkdir()
    release_packages.export_commit(source)
    exported = {path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()}
    built = subprocess.run([*run, "build", "--no-isolation", "--outdir", str(tmp_path), str(source)], capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    [wheel], [sdist] = tmp_path.glob("*.whl"), tmp_path.glob("*.tar.gz")
    checked = subprocess.run([*run, "twine", "check", "--strict", str(wheel), str(sdist)], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout
    assert wheel.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        [metadata] = [BytesParser().parsebytes(archive.read(name)) for name in names if name.endswith("/METADATA")]
        archive.extractall(tmp_path / "installed")
    assert metadata["Version"] == torchspore.__version__ and metadata["Description-Content-Type"] == "text/markdown"
    assert "torchspore/py.typed" in names and {name.partition("/")[0].partition("-")[0] for name in names} == {"torchspore"}
    with tarfile.open(sdist) as archive:
        files = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
    assert files - {"PKG-INFO"} == exported
    code = "import torchspore; torchspore.install(); import mindspore; print(mindspore.__torchspore__, torchspore.__file__)"
    ended = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env={"PYTHONPATH": str(tmp_path / "installed")},
                           capture_output=True, text=True)
    assert ended.stdout.split() == [torchspore.__version__, str(tmp_path / "installed/torchspore/__init__.py")], ended.stderr
