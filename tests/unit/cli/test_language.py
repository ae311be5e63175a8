"""Each command in both languages: the same exit codes, Chinese where Chinese is selected, English everywhere else and in JSON."""
from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.processes import torchspore

from torchspore import translations
from torchspore.base.columns import width
from torchspore.cli.main import COMMANDS, main
from torchspore.errors import OutOfMemory
from torchspore.graph.specialization.compiled_graph import Graph

CHINESE = re.compile("[\u4e00-\u9fff]")
USAGE_ERRORS = [
    ["frob"], ["run"], ["run", "missing.py"], ["run", "-m"], ["run", "--simulate", "x", "a.py"], ["context", "no_such_option"],
    ["rdr", "shwo", "x"], ["check", "missing.py"], ["calibrate", "--processes", "1"], ["check", "--format", "txt", "."], ["plan"],
    ["tune", "a", "b"], ["tune", "missing"], ["workers"], ["msrun"], ["replay"], ["trace", "veiw"],
    ["trace", "view", "missing"], ["completion", "fish"],
]


def run_in(value: str, words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """Run a command with this value of TORCHSPORE_LANG; return the exit code, and what it prints on both streams."""
    with monkeypatch.context() as patch:
        patch.setenv(translations.VARIABLE, value)
        code = main(words)
    out, err = capsys.readouterr()
    return code, out, err


@pytest.fixture(autouse=True)
def english_again() -> Iterator[None]:
    yield
    translations.select()


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "train.py").write_text(
        "import mindspore as ms\nfrom mindspore import ops\nms.set_context(mode=ms.GRAPH_MODE, deterministic='ON')\n"
        "print(ms.jit(lambda x: x + 1)(ops.ones((2,))))\nops.no_such_operator\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    words = [name, "--help"] if name else ["--help"]
    _, english, _ = run_in("en", words, monkeypatch, capsys)
    code, out, err = run_in("zh", words, monkeypatch, capsys)
    assert (code, err) == (0, "") and not CHINESE.search(english)
    assert "用法：" in out and "usage" not in out and "options:" not in out and "show this help" not in out
    lines = [line for line in out.splitlines() if not line.startswith("  torchspore ")]          # not an example
    assert not any(re.search(r"[a-z]{3,} [a-z]{2,} [a-z]{2,} [a-z]{2,}", line) for line in lines), "an English sentence"
    assert all(width(line) <= 100 for line in lines)
    assert run_in("", words, monkeypatch, capsys)[1] == english


@pytest.mark.parametrize("words", USAGE_ERRORS, ids=" ".join)
def test_usage_errors(words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, english = run_in("en", words, monkeypatch, capsys)
    assert (code, out) == (2, "") and "\n\nhint: " in english and not CHINESE.search(english)
    code, out, chinese = run_in("zh", words, monkeypatch, capsys)
    assert (code, out) == (2, "") and "\n\n提示：" in chinese and chinese.endswith(("。\n", "？\n"))
    assert "expected" not in chinese and "hint" not in chinese


def test_the_list_of_options_is_chinese_and_aligned(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    english = run_in("en", ["context"], monkeypatch, capsys)[1].splitlines()
    chinese = run_in("zh", ["context"], monkeypatch, capsys)[1].splitlines()
    assert len(english) == len(chinese)
    for line, original in zip(chinese, english):
        if original.startswith("  "):
            assert line[:45] == original[:45] and original[45:49].strip() in ("acts", "idle")
            state, description = line[45:47], line[47:].removeprefix("  ")
            assert state in ("生效", "忽略") and CHINESE.search(description) and description.endswith("。") and description[0] != " "


def test_pages_of_options(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from torchspore.context.options import ALIASES, OPTIONS

    for key in [*OPTIONS, *ALIASES]:
        code, out, _ = run_in("zh", ["context", key], monkeypatch, capsys)
        lines = out.splitlines()
        assert code == 0 and CHINESE.search(lines[2])
        starts = [match for line in lines if (match := re.match(r"  (\S+) +", line))]
        assert all(width(match[0]) == 15 for match in starts), out
        assert not re.search(r"\b(the|is|are|and|of) ", out), out


def test_doctor_and_env(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run_in("zh", ["doctor"], monkeypatch, capsys)
    assert code == run_in("en", ["doctor"], monkeypatch, capsys)[0]
    assert "矩阵乘：结果正确" in out and "共享内存：" in out and " is " not in out
    _, out, _ = run_in("zh", ["env"], monkeypatch, capsys)
    assert out.startswith("版本\n") and "\n机器\n" in out and "\n环境变量\n" in out
    section = out.partition("机器\n")[2].partition("设备\n")[0].splitlines()
    assert len({width(match[0]) for line in section if (match := re.match(r"  \S+ +", line))}) == 1


@pytest.mark.usefixtures("program")
def test_check(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    Path("older.py").write_text("from mindspore import ops\nops.Dropout(keep_prob=0.5, seed=1)\nops.split(x, 0, output_num=2)\n")
    code, out, _ = run_in("zh", ["check", "."], monkeypatch, capsys)
    assert code == 1 and "train.py:5: torchspore尚未提供mindspore.ops.no_such_operator，MindSpore 2.10也没有这个名称。" in out
    assert "torchspore接受这种写法。" in out and "2个文件中有1个使用了缺少的名称，共1处" in out
    english = run_in("en", ["check", "."], monkeypatch, capsys)[1]
    assert len(out.splitlines()) == len(english.splitlines()) and not CHINESE.search(english)
    assert CHINESE.search(run_in("zh", ["check", "--format", "github", "."], monkeypatch, capsys)[1])


@pytest.mark.usefixtures("program")
@pytest.mark.parametrize("words", [["context", "--json"], ["context", "--json", "mode"], ["check", "--json", "."], ["doctor", "--json"],
                                   ["check", "--format", "sarif", "."], ["env", "--json"]], ids=" ".join)
def test_json_is_english(words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    english, chinese = (json.loads(run_in(value, words, monkeypatch, capsys)[1]) for value in ("en", "zh"))
    for content in (english, chinese):
        if words[0] == "env":
            content["environment"].pop(translations.VARIABLE)
    assert english == chinese


def test_json_of_a_new_process_is_english(program: Path) -> None:
    """`install` runs inside of the block that is in English."""
    result = torchspore("doctor", "--json", cwd=program, extra={translations.VARIABLE: "zh"})
    assert result.code == 0 and json.loads(result.out) and not CHINESE.search(result.out)


def test_explain(program: Path) -> None:
    result = torchspore("explain", "train.py", cwd=program, extra={translations.VARIABLE: "zh_CN.UTF-8"})
    assert result.code == 1 and "torchspore尚未提供mindspore.ops.no_such_operator" in result.err
    head, mode, deterministic = result.out.splitlines()[1:4]
    assert re.split(r"  +", head) == ["参数", "值", "来源", "实际作用"]
    assert "train.py:3  已生效：调用按捕获的计算图执行" in mode and "已生效：算子使用每次运行结果都逐位相同的kernel" in deterministic
    starts = {width(line[: line.index(word)]) for line, word in ((head, "来源"), (mode, "train.py"), (deterministic, "train.py"))}
    assert len(starts) == 1
    assert "\n计算图\n" in result.out and "个算子" in result.out


@pytest.mark.parametrize("value", ["zh", "en"])
@pytest.mark.parametrize("words", [["--help"], ["run", "--help"], ["context"], ["explain", "train.py"]], ids=" ".join)
def test_a_terminal_without_unicode(words: list[str], value: str, program: Path) -> None:
    result = torchspore(*words, cwd=program, extra={translations.VARIABLE: value, "PYTHONIOENCODING": "ascii"})
    assert "UnicodeEncodeError" not in result.err and result.code == (1 if words[0] == "explain" else 0)
    assert result.out.isascii() and ("the output's encoding ascii" in result.err) == (value == "zh")


def test_decisions_do_not_depend_on_the_language() -> None:
    """A graph that has written into Parameters does not run again after a lack of memory, whatever the words of the error."""
    graph: Any = SimpleNamespace(_exchanges=False, _writes=True)
    assert Graph.can_rerun(graph, IndexError("索引超出范围")) and not Graph.can_rerun(graph, OutOfMemory("内存不足"))


def test_an_error_names_its_call_once(monkeypatch: pytest.MonkeyPatch) -> None:
    import mindspore as ms

    monkeypatch.setenv(translations.VARIABLE, "zh")
    translations.select()
    with pytest.raises(TypeError) as error:
        ms.load_checkpoint(3)
    monkeypatch.undo()
    assert str(error.value).count("load_checkpoint") == 1 and "：应为" in str(error.value)


def test_errors_of_the_context(monkeypatch: pytest.MonkeyPatch) -> None:
    import mindspore as ms

    monkeypatch.setenv(translations.VARIABLE, "zh")
    translations.select()
    with pytest.raises(ValueError) as wrong_value:
        ms.set_context(max_device_memory="3")
    with pytest.raises(ValueError) as wrong_name:
        ms.set_context(mod=1)
    with pytest.raises(ValueError) as wrong_shapes:
        ms.ops.matmul(ms.ops.ones((2, 3)), ms.ops.ones((2, 3)))
    with pytest.raises(AttributeError) as missing_name:
        ms.ops.no_such_operator  # noqa: B018
    monkeypatch.undo()
    assert str(wrong_value.value).endswith("(max_device_memory='3')：应为内存大小，例如'3.5GB'。\n\n提示：请写成max_device_memory='3GB'。")
    assert str(wrong_name.value) == "set_context(mod=...)：没有这个参数。\n\n提示：是不是要写mode？"
    assert str(wrong_shapes.value).endswith("形状(2, 3)和(2, 3)中分别为2和3。\n\n提示：请转置other：other.swapaxes(-1, -2)。")
    assert str(missing_name.value) == "torchspore尚未提供mindspore.ops.no_such_operator，MindSpore 2.10也没有这个名称。"
