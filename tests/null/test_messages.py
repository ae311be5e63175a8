"""The language of messages: which one, the catalogue, the tool that checks it, and columns of Chinese text."""
from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import messages
import pytest

from torchspore import translations
from torchspore.base import columns, text
from torchspore.translations import catalogue, english, translate


@pytest.fixture
def chinese(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Selects Chinese for a test."""
    monkeypatch.setenv(translations.VARIABLE, "zh")
    translations.select()
    yield
    monkeypatch.delenv(translations.VARIABLE)
    translations.select()


@pytest.mark.parametrize("value", ["zh", "zh_CN", "zh-CN", "zh_CN.UTF-8", "ZH", "zh_TW@radical", " zh "])
def test_forms_of_chinese(value: str) -> None:
    assert translations.language_of(value) == "zh"


@pytest.mark.parametrize(("value", "expected"), [("en", "en"), ("en_US.UTF-8", "en"), ("C", "en"), ("POSIX", "en"), ("C.UTF-8", "en"),
                                                 ("fr", None), ("zhongwen", None), ("1", None)])
def test_other_languages(value: str, expected: str | None) -> None:
    assert translations.language_of(value) == expected


def test_english_is_the_default() -> None:
    assert translations.VARIABLE not in os.environ
    assert translate("applied") == "applied" and text.with_hint("it failed.", "write x") == "it failed.\n\nhint: write x."


@pytest.mark.usefixtures("chinese")
def test_messages_in_chinese() -> None:
    assert translate("applied") == "已生效" and translate("no entry has this text") == "no entry has this text"
    message = text.message("f(x=1)", "an int", hint=translate("write {word}").format(word="x=2"))
    assert message == "f(x=1)：应为整数。\n\n提示：请写成x=2。"
    assert text.message("f(x=1)", "a Cell, got int", hint="move that line out of construct") == (
        "f(x=1)：应为Cell，实际为int。\n\n提示：请把该行移到construct之外。")
    assert text.message("f(x=1)", "not in the catalogue, got int") == "f(x=1)：应为not in the catalogue，实际为int。"
    assert text.split_hint(message) == ("f(x=1)：应为整数。", "请写成x=2。")
    assert text.split_hint("not translated.\n\nhint: as it is.") == ("not translated.", "as it is.")
    assert text.list_choices(["a", "b", "c"]) == "'a'、'b'或'c'"
    assert text.first_sentence("一。二。") == "一。"


@pytest.mark.usefixtures("chinese")
def test_a_block_in_english() -> None:
    with english():
        assert translate("applied") == "applied"
    with english(False):
        assert translate("applied") == "已生效"
    assert translate("applied") == "已生效"


PROGRAM = """
import os, subprocess, sys
from torchspore.translations import select, translate
select()
print(translate("applied").encode("ascii", "backslashreplace").decode())
if len(sys.argv) == 1:
    sys.exit(subprocess.run([sys.executable, "-c", os.environ["PROGRAM"], "again"]).returncode)
"""


def run_program(**variables: str) -> tuple[str, str]:
    environment = {**os.environ, "PROGRAM": PROGRAM, **variables}
    result = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=60, check=True)
    return result.stdout, result.stderr


def test_an_unknown_language_is_reported_once_also_with_child_processes() -> None:
    out, err = run_program(TORCHSPORE_LANG="fr")
    assert out == "applied\n" * 2
    assert err == "torchspore: TORCHSPORE_LANG=fr: expected en (English) or zh (Chinese). Messages are in English.\n"


def test_an_output_without_chinese_characters_gets_english() -> None:
    out, err = run_program(TORCHSPORE_LANG="zh", PYTHONIOENCODING="ascii")
    assert out == "applied\n" * 2
    assert err == ("torchspore: TORCHSPORE_LANG=zh: the output's encoding ascii has no Chinese characters. Messages are in English.\n\n"
                   "hint: set PYTHONIOENCODING=utf-8.\n")
    assert run_program(TORCHSPORE_LANG="zh", PYTHONIOENCODING="gbk") == ("\\u5df2\\u751f\\u6548\n" * 2, "")


def test_english_reads_no_catalogue() -> None:
    code = "import sys, torchspore.base.text as t; t.with_hint('a.', 'b'); print('torchspore.translations.catalogue' in sys.modules)"
    environment = {name: value for name, value in os.environ.items() if name != translations.VARIABLE}
    assert subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True).stdout == "False\n"


def test_the_catalogue_matches_the_code() -> None:
    translations = catalogue.parse(catalogue.path_of("zh").read_text(encoding="utf-8"))
    differences = messages.problems(messages.collect(), translations, messages.collect_checks())
    assert differences == [], "run tools/messages.py, and translate the new entries"


def test_the_style_of_the_catalogue() -> None:
    """The comment at its head describes it: no space between Chinese and Latin text, and no ASCII punctuation after Chinese."""
    translations = catalogue.parse(catalogue.path_of("zh").read_text(encoding="utf-8"))
    wrong = re.compile("[\u4e00-\u9fff] [A-Za-z0-9`]|[A-Za-z0-9`] [\u4e00-\u9fff]|[\u4e00-\u9fff][,;:?]|归约|检查点|警告|文件夹")
    assert not {text: translation for text, translation in translations.items() if wrong.search(translation)}


def test_differences_of_a_catalogue_are_named() -> None:
    code = {"new": "a.py", "{name} is {value!r}": "a.py", "see `torchspore env`": "b.py", "{} of {}": "b.py", "two\nlines": "b.py"}
    translations = {"old": "旧", "{name} is {value!r}": "{name}是{value}", "see `torchspore env`": "见`torchspore doctor`",
                    "{} of {}": "{1}的{0}", "two\nlines": "一行"}
    assert messages.problems(code, {**translations, "a rare one": "少见的"}, {"a rare one": "c.py", "a rarer one": "c.py"}) == [
        "a.py: no translation of 'new'", "no code uses 'old'",
        "the translation has other placeholders: '{name} is {value!r}': '{name}是{value}'",
        "the translation has other placeholders: 'see `torchspore env`': '见`torchspore doctor`'",
        "the translation has another number of lines: 'two\\nlines'",
    ]


def test_messages_of_code() -> None:
    source = ('translate("a" if x else "b").format(c=1)\nOutcome.applied("d")\nother.applied("e")\nwatch.refuse("f", kind)\n'
              'translate(variable)')
    assert sorted(messages.messages_of_code(ast.parse(source))) == ["a", "b", "d", "f"]
    with pytest.raises(ValueError, match=r"line 2: an f-string has no translation"):
        list(messages.messages_of_code(ast.parse('\ntranslate(f"{a}")')))


def test_what_checks_expect_may_be_translated() -> None:
    source = ('message(f"{a}", "an int", hint="b" if c else "d")\nwith_type("e", value)\nmessage("not this", f"{g}")\n'
              'message("nor this", f"m, got {g}")\ncheck_type(call, name, value, int, "h", hint=j)\nwith_hint("not that", "k")')
    assert sorted(messages.messages_of_checks(ast.parse(source))) == ["an int", "b", "d", "e", "h", "k", "m"]


def test_entries_are_read_as_written() -> None:
    texts = {"": "Language: zh\n", 'a "quoted"\tword': "一", "two\nlines": "两\n行", "C:\\path": "路径", "no translation": ""}
    content = "\n".join(f"#: a.py\n{catalogue.format_entry(text, translation)}" for text, translation in texts.items())
    assert catalogue.parse(content) == texts
    assert catalogue.parse('msgid ""\n"two "\n"parts"\nmsgstr "甲"\n"乙"\n') == {"two parts": "甲乙"}          # as editors wrap long texts


def test_the_tool_fails_for_a_missing_translation(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "zh.po"
    file.write_text("# Terms.\n\n" + catalogue.format_entry("old", "旧"), encoding="utf-8")
    monkeypatch.setattr(messages, "collect", lambda: {"new": "src/a.py"})
    monkeypatch.setattr(messages, "collect_checks", dict)
    monkeypatch.setattr(messages, "ROOT", tmp_path)
    monkeypatch.setattr(catalogue, "path_of", lambda name: file)
    assert messages.main(["--check"]) == 1
    assert capsys.readouterr().out == "zh.po: src/a.py: no translation of 'new'\nzh.po: no code uses 'old'\n"
    assert messages.main([]) == 0
    content = file.read_text(encoding="utf-8")
    assert content.startswith('# Terms.\n\nmsgid ""\n')
    assert catalogue.parse(content) == {"": messages.HEADER.format(language="zh"), "new": ""}


def test_columns_of_chinese_text() -> None:
    assert [columns.width(word) for word in ("", "ab", "参数", "a参…")] == [0, 2, 4, 4]
    assert columns.pad("参数", 6) + "|" == "参数  |"
    assert columns.pad("too long", 3) == "too long"


@pytest.mark.parametrize("width", [8, 20, 40])
def test_lines_break_between_characters(width: int) -> None:
    sentence = "设备上的Tensor可以占用的最大内存（单位为GB）。超出时，torchspore会报错，并指出最大的几个值。"
    lines = columns.wrap(sentence, width)
    assert "".join(lines) == sentence
    assert all(columns.width(line.rstrip("，。）")) <= max(width, len("torchspore") + 2) for line in lines)
    assert not any(line[0] in "，。）" or line[-1] == "（" for line in lines)
    assert columns.wrap("one two three", 7) == ["one two", "three"] and columns.wrap("", 7) == [""]
