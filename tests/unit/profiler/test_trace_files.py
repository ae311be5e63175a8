"""`torchspore trace view` of good, damaged and hostile files."""
from __future__ import annotations

import gzip
import json
import tracemalloc
from pathlib import Path

import pytest

from torchspore.cli import trace as command
from torchspore.html_pages import trace
from torchspore.html_pages.trace_file import Reader

EVENT = {"ph": "X", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 10.0, "dur": 5.0, "cat": "cpu_op", "args": {}}


def put(path: Path, content: object) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_own_time_and_nesting(tmp_path: Path) -> None:
    inner = {**EVENT, "name": "inner", "ts": "11.5", "dur": "2"}
    content = {"displayTimeUnit": "ms", "traceEvents": [EVENT, inner, {**EVENT, "ts": "nan"}, 3, None]}
    result = trace.read(put(tmp_path / "t.json", content))
    rows = {row.name: (row.count, row.total, row.self_time) for row in result.operators.values()}
    assert rows == {"aten::mm": (1, 5, 3), "inner": (1, 2, 2)}
    assert [event.depth for event in result.events] == [0, 1]


def test_a_letter_across_the_border_of_two_pieces(tmp_path: Path) -> None:
    name = "矩阵乘法é" * 5
    reader = Reader(put(tmp_path / "t.json", json.dumps([{**EVENT, "name": name}], ensure_ascii=False)), piece=7)
    assert [event["name"] for event in reader.events()] == [name] and not reader.damage


@pytest.mark.parametrize(("content", "num_events", "message"), [
    (json.dumps([EVENT, EVENT])[:-30], 1, "it ends in the middle of an event"),
    (json.dumps([EVENT])[:-1] + ', {"a": tru}]' + " " * 20, 1, "an event is not readable JSON"),
    (json.dumps([EVENT])[:-1] + "," + "[" * 200_000, 1, "an event is not readable JSON"),
    (json.dumps([EVENT])[:-1] + ', {"name": "' + "x" * (3 << 20) + '"}]', 1, "an event is longer than 1,048,576 characters"),
    (json.dumps([EVENT])[:-1] + ', {"ts": ' + "9" * 6000 + "}]", 1, "an event is not readable JSON"),
])
def test_what_stands_before_the_damage_is_preserved(tmp_path: Path, content: str, num_events: int, message: str) -> None:
    reader = Reader(put(tmp_path / "t.json", content))
    assert len(list(reader.events())) == num_events
    assert reader.damage == message


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"traceEvents": 3}', "\x00\x01", '"traceEvents"', "[3, 4]"])
def test_no_trace_is_named(tmp_path: Path, content: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = put(tmp_path / "t.json", content)
    assert command.run(["view", str(path), "--no-open"]) == 2
    output = capsys.readouterr().err
    assert output.startswith(f"torchspore trace view {path}: it contains no") and "hint: name the folder" in output


def test_memory_is_bounded(tmp_path: Path) -> None:
    """An archive unpacks from some kilobytes, and takes no more memory than what the page shows."""
    path = tmp_path / "t.json.gz"
    line = (json.dumps(EVENT) + ",").encode() * 1000
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b"[")
        for _ in range(80):
            file.write(line)
        file.write(json.dumps(EVENT).encode())                                 # and no end
    tracemalloc.start()
    result = trace.read(path, most_events=2_000)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert result.total == 80_001 and len(result.events) == 2_000 and most < 12 << 20
    assert "it ends in the middle" in result.notes[0] and "first 2,000 of 80,001" in result.notes[1]


def test_many_names_and_threads_are_bounded(tmp_path: Path) -> None:
    events = [{**EVENT, "name": f"n{number}" * 100, "tid": number, "args": {"phase": ["x"], "flops": "1e999"}} for number in range(9000)]
    result = trace.read(put(tmp_path / "t.json", events))
    assert len(result.operators) <= trace.MOST_NAMES + 1 and len(result.threads) <= 200
    assert max(len(name) for name in result.names) <= trace.LONGEST_NAME


def test_texts_of_a_trace_stay_texts(tmp_path: Path) -> None:
    evil = "</script><script>document.title='run'</script><img src=x onerror=document.title='run'>\x1b[2J"
    path = put(tmp_path / "t.json", [{**EVENT, "name": evil, "pid": evil, "args": {"op_type": evil}}, {"ph": "M", "name": "torchspore",
                                         "args": {"facts": [evil, 3, None], "peak_flops": "x", "memory": evil}}])
    result = trace.read(path)
    page = trace.page(result, path)
    assert evil not in page and page.count("</script>") == 2 and "Content-Security-Policy" in page
    assert all(line.isprintable() for line in trace.lines(result))


def test_a_folder_and_a_missing_path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    put(tmp_path / "a" / "b" / "trace_view.json", [EVENT])
    assert command.run(["view", str(tmp_path), "--no-open"]) == 0
    assert "written: " in capsys.readouterr().out and (tmp_path / "a" / "b" / "trace_view.html").exists()
    assert command.run(["view", str(tmp_path), "--no-open", "--output", str(tmp_path / "no" / "x.html")]) == 2
    assert "can't be written" in capsys.readouterr().err
    assert command.run(["view", str(tmp_path / "nothing")]) == 2
    assert "this file or folder does not exist" in capsys.readouterr().err
    assert command.run(["veiw", "x"]) == 2
    assert "expected view" in capsys.readouterr().err
