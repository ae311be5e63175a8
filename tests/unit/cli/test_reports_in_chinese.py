"""The reports of commands with TORCHSPORE_LANG=zh: as many lines as in English, with the same figures, and no English sentence."""
from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from torchspore import translations
from torchspore.base.columns import width
from torchspore.blackbox import flight_diagnosis
from torchspore.blackbox.flight_dumps import Dump, Exchange
from torchspore.cli.main import main

CHINESE = re.compile("[\u4e00-\u9fff]")
ENGLISH = re.compile(r"\b[a-z]{2,} [a-z]{2,} [a-z]{2,}\b")
Reports = Callable[[list[str]], tuple[str, str]]
"""Runs a command in both languages; returns what it prints in each."""


@pytest.fixture(autouse=True)
def english_again() -> Iterator[None]:
    yield
    translations.select()


@pytest.fixture
def reports(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Reports:
    def run(words: list[str]) -> tuple[str, str]:
        printed = []
        for value in ("en", "zh"):
            monkeypatch.setenv(translations.VARIABLE, value)
            printed.append((main(words), *capsys.readouterr()))
        (code, *english), (other_code, *chinese) = printed
        assert code == other_code and not CHINESE.search("".join(english))
        return "".join(english), "".join(chinese)

    return run


def check_chinese(english: str, chinese: str) -> None:
    """Assert that both reports have the same lines and figures."""
    assert CHINESE.search(chinese) and len(english.splitlines()) == len(chinese.splitlines())
    assert not ENGLISH.search(chinese), chinese
    assert sorted(re.findall(r"\d+\.\d+", english)) == sorted(re.findall(r"\d+\.\d+", chinese))


def write_dump(folder: Path, output: np.ndarray) -> Path:
    folder.mkdir()
    np.save(folder / "ReLU.Default_ReLU-op0.0.0.1.input.0.DefaultFormat.Float32.npy", np.ones(4, np.float32))
    np.save(folder / "ReLU.Default_ReLU-op0.0.0.1.output.0.DefaultFormat.Float32.npy", output)
    return folder


def test_diff(reports: Reports, tmp_path: Path) -> None:
    first = write_dump(tmp_path / "a", np.ones(4, np.float32))
    second = write_dump(tmp_path / "b", np.array([1, 1, 3, np.nan], np.float32))
    english, chinese = reports(["diff", "--all", str(first), str(second)])
    check_chinese(english, chinese)
    assert "1个有差异。" in chinese and "最大差异inf，位于(3,)：1.0与nan；4个元素中有2个有差异" in chinese
    assert "它的输入一致：差异由该算子自身产生。" in chinese
    texts = reports(["diff", "--json", str(first), str(second)])
    assert json.loads(texts[0]) == json.loads(texts[1])


def test_a_difference_of_size_is_recognized_in_both_languages(reports: Reports, tmp_path: Path) -> None:
    """Whether a tensor has a partner must not depend on the words that describe it."""
    first, second = write_dump(tmp_path / "a", np.ones(4, np.float32)), write_dump(tmp_path / "b", np.ones(6, np.float32))
    for folder, value in ((first, np.nan), (second, 6.0)):
        np.save(folder / "ReLU.Default_ReLU-op0.0.0.1.output.1.DefaultFormat.Float32.npy", np.full(4, value, np.float32))
    english, chinese = reports(["diff", str(first), str(second)])
    check_chinese(english, chinese)
    assert "output 1: differs: largest difference inf" in english and "输出 1：有差异：最大差异inf" in chinese


def test_ckpt_diff(reports: Reports, tmp_path: Path) -> None:
    import mindspore as ms

    for name, value in (("a", 1.0), ("b", 2.0)):
        ms.save_checkpoint([{"name": "w", "data": ms.Tensor([value, 1.0])}], str(tmp_path / f"{name}.ckpt"))
    words = ["ckpt", "diff", str(tmp_path / "a.ckpt"), str(tmp_path / "b.ckpt")]
    check_chinese(*reports(words))
    texts = reports([*words, "--json"])
    assert json.loads(texts[0]) == json.loads(texts[1]) and "1 of 2 values" in texts[1]


def test_trace(reports: Reports, tmp_path: Path) -> None:
    events = [
        {"ph": "X", "name": "step 1", "cat": "step", "ts": 0, "dur": 90, "pid": 1, "tid": 1, "args": {"step": 1, "forward_us": 40}},
        {"ph": "X", "name": "MatMul", "cat": "op", "ts": 5, "dur": 20, "pid": 1, "tid": 1},
    ]
    path = tmp_path / "trace_view.json"
    path.write_text(json.dumps(events), encoding="utf-8")
    english, chinese = reports(["trace", "view", "--no-open", str(path)])
    check_chinese(english, chinese)
    assert "1个step，每个0.090 ms（中位数）：数据 0%、前向 44%" in chinese


def test_rdr(reports: Reports, tmp_path: Path) -> None:
    folder = tmp_path / "rank_0" / "rdr"
    folder.mkdir(parents=True)
    stamp = "20261122173546"
    (folder / f"TORCHSPORE.cause.{stamp}.json").write_text(
        json.dumps({"kind": "time-out", "text": "Conv2D", "line": "train.py:3", "operator": "MatMul", "at": "x"}), encoding="utf-8")
    (folder / f"TORCHSPORE.versions.{stamp}.json").write_text("[", encoding="utf-8")
    english, chinese = reports(["rdr", "show", str(tmp_path)])
    assert english.startswith("likely cause: time-out: Conv2D at train.py:3 [operator MatMul]\n")
    assert chinese.startswith("可能的原因：超时：Conv2D，位于train.py:3（算子MatMul）\n")
    assert len(english.splitlines()) == len(chinese.splitlines())
    labels = [line for line in chinese.splitlines() if line.startswith("记录")]
    assert width(labels[0][: labels[0].index("2026")]) == 10


def test_exchanges(monkeypatch: pytest.MonkeyPatch) -> None:
    def exchange(number: int) -> Exchange:
        return Exchange("hccl_world_group", number, "AllReduce", ((2,),), ("float32",), "train.py:7", "started", False)

    dumps = [Dump(0, [exchange(1), exchange(2)], {"hccl_world_group": (0, 1)}), Dump(1, [exchange(1)], {"hccl_world_group": (0, 1)})]
    monkeypatch.setenv(translations.VARIABLE, "zh")
    translations.select()
    head, *rows = flight_diagnosis._diagnosed(dumps)
    assert head == "  hccl_world_group，第2次通信：rank 1尚未开始"
    assert rows[0].startswith("    rank 0：AllReduce") and rows[0].endswith("，位于train.py:7")
    assert rows[1].startswith("    rank 1：最后一次是AllReduce")


def test_plan(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from support.processes import torchspore

    example = Path(__file__).parents[3] / "examples/semi_auto_parallel/train.py"
    texts = [
        torchspore("plan", "--devices", "8", str(example), cwd=tmp_path, extra={translations.VARIABLE: value}).out for value in ("en", "zh")
    ]
    english, chinese = (text.partition("\n")[2] for text in texts)          # the program prints its first line itself
    check_chinese(english, chinese)
    lines = chinese.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("算子"))
    assert width(lines[at][: lines[at].index("代码行")]) == width(lines[at + 1][: lines[at + 1].index("train.py")])


def test_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    from torchspore.html_pages import html

    english = html("Run", {"about": "x"}, "charts", "report")
    assert '<html lang="en">' in english and 'id="texts"' not in english
    monkeypatch.setenv(translations.VARIABLE, "zh")
    translations.select()
    chinese = html("Run", {"about": "x"}, "charts", "report")
    texts = json.loads(re.search(r'id="texts">(.*?)</script>', chinese)[1])          # type: ignore[index]
    assert '<html lang="zh-Hans">' in chinese and texts["This run"] == "本次运行"
    assert all(text.count("%") == translation.count("%") for text, translation in texts.items())


def test_the_page_of_saved_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    from torchspore.graph.save_graphs import page
    from torchspore.graph.save_graphs.compilation_record import Compilation, Stage
    from torchspore.graph.save_graphs.page import data
    from torchspore.graph.save_graphs.recording import ABOUT
    from torchspore.graph.save_graphs.snapshot import Snapshot

    stage = Stage("08_execute", ABOUT["execute"], "a.ir", Snapshot("Net", [], [], ()), None, "forward")
    compilation = Compilation("Net", "net.py:3", {}, [stage])
    english = page.html({"compilations": [data.of(compilation)]})
    assert '<html lang="en">' in english and 'id="texts"' not in english and "<h1>Saved graphs</h1>" in english
    assert '"about":"what runs, in this order"' in english
    monkeypatch.setenv(translations.VARIABLE, "zh")
    translations.select()
    chinese = page.html({"compilations": [data.of(compilation)]})
    assert '<html lang="zh-Hans">' in chinese and "<h1>保存的计算图</h1>" in chinese
    assert '"about":"实际执行的算子，按执行顺序排列"' in chinese and '"part":"前向"' in chinese
    for text in (english, chinese):
        assert not re.search(r"@[^@<>\n]*@", text.partition("<script")[0])
    texts = json.loads(re.search(r'id="texts">(.*?)</script>', chinese)[1])          # type: ignore[index]
    assert texts["Compile options"] == "编译选项"
    scripts = (english.rpartition('id="data"')[2], chinese.rpartition('id="texts"')[2])
    assert len({script.partition("</script>")[2].strip() for script in scripts}) == 1
