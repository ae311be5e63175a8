"""Chinese pages match their English pages: sections, code and links; tools/translations.py names what is stale."""
from __future__ import annotations

import re
from pathlib import Path

import pytest
import translations
from translations import Section

PAGES = [pytest.param(*pair, id=pair[0].relative_to(translations.ROOT).as_posix()) for pair in translations.pages()]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.S | re.M)


def code_of(path: Path) -> list[str]:
    """Return the code blocks of a page, without comments; those of Python fragments, which are text, stand behind two spaces."""
    blocks = BLOCK.findall(path.read_text(encoding="utf-8"))
    comment = {"sh": r"[ \t]*#.*$", "python": r"[ \t]*#.*$", "text": "  +# .*$"}
    return [re.sub(comment[language], "", text, flags=re.M) if language in comment else text for language, text in blocks]


@pytest.mark.parametrize(("translation", "original"), PAGES)
def test_a_changed_english_page_marks_its_translation_as_stale(translation: Path, original: Path) -> None:
    recorded = translations.recorded_sections(translation.read_text(encoding="utf-8"))
    stale = translations.stale_sections(recorded, translations.sections(original.read_text(encoding="utf-8")))
    assert not stale, f"{original.name} has changed: translate these sections, then run tools/translations.py --mark {translation}: {stale}"


@pytest.mark.parametrize(("translation", "original"), PAGES)
def test_code_is_that_of_the_english_page(translation: Path, original: Path) -> None:
    assert code_of(translation) == code_of(original)


@pytest.mark.parametrize(("translation", "original"), PAGES)
def test_pages_have_equally_many_sections_and_links_that_lead_somewhere(translation: Path, original: Path) -> None:
    text = translation.read_text(encoding="utf-8")
    assert len(translations.sections(text.partition("<!-- translation of")[0])) == len(
        translations.sections(original.read_text(encoding="utf-8")))
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert "://" in target or (translation.parent / target).exists(), target


def project(folder: Path, english: str) -> Path:
    """Return a folder with an English guide and its translation, which is marked."""
    for name, text in {"README.md": "# a\n", "README.zh-CN.md": "# 甲\n", "docs/x.md": english, "docs/zh/x.md": "# 题\n\n文\n"}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    assert translations.main(["--mark", str(folder / "README.zh-CN.md"), str(folder / "docs/zh/x.md")], folder) == 0
    return folder


ENGLISH = "# Title\n\nIntro\n\n## One\n\n```sh\n# no heading\n```\n\n## Two\n\nText <!-- names -->1 of 2<!-- names -->\n"


def test_sections_are_compared_one_by_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = project(tmp_path, ENGLISH)
    assert translations.main(["--check"], root) == 0
    page = root / "docs/x.md"
    page.write_text(ENGLISH.replace("1 of 2", "3 of 4") + "\n\n", encoding="utf-8")            # generated figures and blank lines
    assert translations.main(["--check"], root) == 0
    page.write_text(ENGLISH.replace("Intro", "Other") + "\n## Three\n", encoding="utf-8")
    capsys.readouterr()
    assert translations.main(["--check"], root) == 1
    assert capsys.readouterr().out.splitlines() == [
        "README.zh-CN.md: up to date", "docs/zh/x.md: stale, compare docs/x.md", "  changed: # Title", "  new: ## Three"]
    assert translations.main(["--mark", str(root / "docs/zh/x.md")], root) == 0
    assert translations.main(["--check"], root) == 0
    assert (root / "docs/zh/x.md").read_text(encoding="utf-8").count("<!-- translation of") == 1


def test_a_removed_or_moved_section_and_a_page_without_a_mark_are_stale() -> None:
    one, two = Section("# one", "1"), Section("# two", "2")
    assert translations.stale_sections([one, two], [one]) == ["removed: # two"]
    assert translations.stale_sections([one, two], [two, one]) == ["the order of sections, or a heading that occurs twice"]
    assert translations.stale_sections(translations.recorded_sections("# 题\n"), [one]) == ["never marked"]


def test_a_page_that_is_not_a_translation_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = project(tmp_path, ENGLISH)
    assert translations.main(["--mark", str(root / "docs/x.md")], root) == 2
    assert "expected a translation: README.zh-CN.md, docs/zh/x.md" in capsys.readouterr().err
