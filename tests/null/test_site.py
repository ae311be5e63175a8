"""The site of the documentation: its navigation, its links and the pages of its API."""
from __future__ import annotations

import importlib
import json
import subprocess
from pathlib import Path
from types import ModuleType

import build_site
import pytest
from documentation_site import api_pages, navigation, versions

CONFIG = """[project]
nav = [{ "Home" = "README.md" }, { "Reference" = ["docs/a.md", { "API" = [{ "nn" = "docs/reference/api/mindspore.nn.md" }] }] }]
[project.extra]
translated = []
"""
HOME = "# Home\n\n[a](docs/a.md#the-first) `[b](b.md)` [api](docs/reference/api/mindspore.nn.md)\n"
PAGE = "# A\n\n## The *first*\n\n```sh\n# [c](c.md)\n```\n\n[up](../README.md#home) [x](https://x.example)\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a project with two pages, without a problem."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "zensical.toml").write_text(CONFIG, encoding="utf-8")
    (tmp_path / "README.md").write_text(HOME, encoding="utf-8")
    (tmp_path / "docs/a.md").write_text(PAGE, encoding="utf-8")
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    return tmp_path


def problems(root: Path) -> list[str]:
    navigation.anchors.cache_clear()
    return navigation.navigation_problems(root) + navigation.link_problems(root)


def test_the_site_of_this_project_has_no_problem() -> None:
    assert problems(navigation.ROOT) == []


def test_the_tabs_are_those_of_a_reader() -> None:
    tabs = [next(iter(entry)) for entry in navigation.read_config()["nav"]]
    assert tabs == ["Home", "Run a program", "See what the switches do", "Make it fast", "Use several devices", "Find a fault",
                    "Combine with PyTorch", "Reference", "Contributing", "中文"]


def test_pages_without_a_problem(root: Path) -> None:
    assert problems(root) == []


@pytest.mark.parametrize(("text", "problem"), [
    ("[a](docs/b.md)", "README.md: docs/b.md: the site has no file docs/b.md"),
    ("[a](docs/a.md#second)", "README.md: docs/a.md#second: the page has no heading #second"),
    ("![a](a.png)", "README.md: a.png: the site has no file a.png"),
    ("[tool](zensical.toml)", "README.md: zensical.toml: the site has no file zensical.toml"),
    ("[a](#first)", "README.md: #first: the page has no heading #first"),
])
def test_a_link_that_leads_nowhere(root: Path, text: str, problem: str) -> None:
    (root / "README.md").write_text(f"# Home\n\n{text}\n", encoding="utf-8")
    assert problems(root) == [problem]


def test_a_page_that_is_missing_from_the_navigation(root: Path) -> None:
    (root / "docs/b.md").write_text("# B\n", encoding="utf-8")
    assert problems(root) == ["zensical.toml: docs/b.md is missing from `nav`"]


def test_a_page_of_the_navigation_that_does_not_exist(root: Path) -> None:
    (root / "docs/a.md").unlink()
    (root / "README.md").write_text("# Home\n", encoding="utf-8")
    assert "zensical.toml: docs/a.md does not exist" in problems(root)


def test_a_translation_that_the_switch_of_the_language_does_not_know(root: Path) -> None:
    (root / "docs/zh").mkdir()
    (root / "docs/zh/a.md").write_text("# 甲\n", encoding="utf-8")
    assert "zensical.toml: `translated` should be ['docs/a.html']" in problems(root)


def test_the_source_folder_contains_links_and_no_copies(root: Path) -> None:
    build_site.link_sources(root / "build", root)
    assert (root / "build/docs/a.md").readlink() == root / "docs/a.md"
    assert sorted(path.name for path in (root / "build").iterdir()) == ["README.md", "docs"]


def test_lines_of_a_chinese_page_are_joined(tmp_path: Path) -> None:
    page = "<html lang=\"zh\">\n<p>一个，\n<a>参考</a>\n手册 a\nb c\n中</p>\n<p>文</p>\n<pre>中\n文</pre>\n"
    (tmp_path / "README.zh-CN.html").write_text(page, encoding="utf-8")
    build_site.finish_chinese_pages(tmp_path)
    text = (tmp_path / "README.zh-CN.html").read_text(encoding="utf-8")
    assert text == "<html lang=\"zh-Hans\">\n<p>一个，<a>参考</a>手册 a\nb c中</p>\n<p>文</p>\n<pre>中\n文</pre>\n"


def test_sites_of_several_versions(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    for version in ("0.10.0", "dev", "0.9.0", "0.9.0"):
        (tmp_path / "site/index.html").write_text(version, encoding="utf-8")
        versions.add_version(tmp_path / "site", tmp_path / "sites", version)
    entries = json.loads((tmp_path / "sites/versions.json").read_text(encoding="utf-8"))
    assert [(entry["version"], entry["aliases"]) for entry in entries] == [("0.10.0", ["latest"]), ("0.9.0", []), ("dev", [])]
    assert (tmp_path / "sites/0.9.0/index.html").read_text(encoding="utf-8") == "0.9.0"
    assert "url=0.10.0/index.html" in (tmp_path / "sites/index.html").read_text(encoding="utf-8")
    with pytest.raises(ValueError, match=r"^version '../x': expected a release such as '0.1.0', or a name such as 'dev'$"):
        versions.add_version(tmp_path / "site", tmp_path / "sites", "../x")


def test_a_script_from_another_server_is_reported(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<a href="https://a.example"></a><script src="https://b.example/x"></script>'
                                     '<link rel="stylesheet" href="https://c.example/y">', encoding="utf-8")
    assert build_site.outside_addresses(tmp_path) == ["https://b.example/x", "https://c.example/y"]


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return a module with three public names."""
    module = ModuleType("tiny", "Tiny names: a *star* and `a_name`.")

    def scale(x: int, /, by: float = 2.0, *, out: object = None, **options: int) -> None:
        """Multiply `x` by *by*."""

    class Layer:
        """A layer <of units>."""

        def __init__(self, first_of_many_parameters: int, second_of_many_parameters: int = 2, *rest: int,
                     last_of_many_parameters: str = "a text") -> None: ...

    vars(module).update(scale_by=scale, Layer=Layer, MODE=1, inner=ModuleType("inner"), _hidden=2)
    monkeypatch.setattr(importlib, "import_module", lambda name: module)
    return module


@pytest.mark.usefixtures("package")
def test_a_page_of_the_api() -> None:
    assert api_pages.page("tiny") == r"""# tiny

Tiny names: a \*star\* and `a_name`.

3 names.

## Layer

```python
class Layer(
    first_of_many_parameters,
    second_of_many_parameters=2,
    *rest,
    last_of_many_parameters='a text',
)
```

A layer \<of units\>.

## MODE

`MODE = 1`

## scale\_by

```python
scale_by(x, /, by=2.0, *, out=None, **options)
```

Multiply `x` by \*by\*.
"""
