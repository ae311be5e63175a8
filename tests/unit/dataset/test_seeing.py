"""What is seen of a pipeline from outside: the line of `explain`, the watchdog's warning, the picture in notebooks."""
from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import mindspore.dataset as ds
import numpy as np
import pytest
from mindspore.dataset import vision
from support import log_messages, processes
from support.log_messages import Messages

PROGRAM = """
import time
import numpy as np
import mindspore.dataset as ds
from mindspore.dataset import transforms

def slow(x):
    time.sleep(0.01)
    return x

def quick(x):
    return x

data = {"x": np.arange(40.0), "y": np.arange(40)}
for row in ds.NumpySlicesDataset(data).map(quick, "y").map(slow, "x").batch(4):
    pass
for epoch in range(2):
    for row in ds.NumpySlicesDataset(data).map([quick, transforms.Fill(3)], "y").batch(4):
        time.sleep(0.02)
for row in ds.NumpySlicesDataset(data).map(slow, "x", num_parallel_workers=4).shuffle(10):
    pass
rows = ds.NumpySlicesDataset(data).create_tuple_iterator()      # never read
"""


def test_explain_says_who_waits_for_whom(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    ran = processes.torchspore("explain", "train.py", cwd=tmp_path)
    assert (ran.code, ran.err) == (0, "")
    head, lines = "\ndata pipelines\n", re.compile(
        r"  train\.py:(\d+): (.*): ([\d,]+) rows/s; the (data|program) waited for (?:the program|data) (\d+)% of the time,"
        r" the (?:data|program) for (?:the program|data) (\d+)%(.*)"
    )
    results = [lines.fullmatch(line) for line in ran.out[ran.out.index(head) + len(head) :].split("\n\n")[0].splitlines()]
    is_shared = not any(match and "x1 of 4" in match[2] for match in results)      # a busy machine has no room for more threads
    assert [match and (match[1], match[2].replace("x1 of 4", "x4")) for match in results] == [
        ("15", "NumpySlicesDataset > map(quick) > map(slow) > batch(4)"),
        ("18", "NumpySlicesDataset > map(quick, Fill) > batch(4)"),
        ("20", "NumpySlicesDataset > map(slow) x4 > shuffle(10)"),
    ]
    slow_map, slow_program, shared = [match.groups()[2:] for match in results if match]
    # A machine that is busy makes both wait; rows can't come faster than the sleeps allow, however slow it is.
    assert slow_map[1] == "program" and int(slow_map[2]) > max(50, 2 * int(slow_map[3]))
    assert re.fullmatch(r"; map\(slow\) takes ([6-9]\d|100)% of the pipeline's own", slow_map[4])
    assert 0 < int(slow_map[0]) <= 100
    assert slow_program[1] == "data" and int(slow_program[2]) > max(50, 2 * int(slow_program[3]))
    assert 0 < int(slow_program[0]) <= 200                 # of both epochs
    assert shared[1] == "program" and (int(shared[0]) > int(slow_map[0]) or not is_shared)


@pytest.fixture
def warnings() -> Iterator[Messages]:
    """The warnings of a watchdog that barks after a second."""
    ds.config.set_multiprocessing_timeout_interval(1)
    with log_messages.messages() as result:
        yield result
    ds.config.set_multiprocessing_timeout_interval(300)
    ds.config.set_enable_watchdog(True)


def hang_once(came: threading.Event, seconds: float = 10) -> Any:
    """A function that sleeps at its first row until the warning came."""
    def stuck(value: Any) -> Any:
        if int(value) == 0:
            came.wait(seconds)                              # the line that the warning names
        return value

    return stuck


STUCK_LINE = next(number for number, line in enumerate(Path(__file__).read_text().splitlines(), 1) if "# the line that the" in line)


@pytest.mark.parametrize("workers", [None, 3])
def test_the_watchdog_names_the_function_that_hangs(warnings: Messages, workers: int | None) -> None:
    stuck = hang_once(warnings.came)
    dataset = ds.NumpySlicesDataset({"n": np.arange(4)}, shuffle=False).map(stuck, "n", num_parallel_workers=workers).batch(2)
    assert [row[0].tolist() for row in dataset.create_tuple_iterator(num_epochs=1, output_numpy=True)] == [[0, 1], [2, 3]]
    stuck_line = f"{__file__}:{STUCK_LINE} (stuck)"
    assert warnings.lines == [f"the program has waited 1 s for a row of map(stuck), which is at {stuck_line}"]


def test_the_watchdog_follows_into_a_thread(warnings: Messages) -> None:
    stuck = hang_once(warnings.came)

    def late(value: Any) -> Any:                            # heavy rows, so that the workers get them, and the last one hangs
        time.sleep(2e-3)
        return stuck(0) if int(value) == 39 else value

    dataset = ds.NumpySlicesDataset({"n": np.arange(40)}, shuffle=False).map(late, "n", num_parallel_workers=3)
    assert len(list(dataset.create_tuple_iterator(num_epochs=1))) == 40
    assert warnings.lines == [f"the program has waited 1 s for a row of map(late), which is at {__file__}:{STUCK_LINE} (stuck)"]


def test_the_watchdog_names_a_source_and_is_quiet_on_request(warnings: Messages) -> None:
    def source() -> Iterator[Any]:
        warnings.came.wait(1.5)
        yield (np.array(1),)

    dataset = ds.GeneratorDataset(source, ["n"])
    assert len(list(dataset.create_tuple_iterator(num_epochs=1))) == 1
    text = rf"the program has waited 1 s for a row of GeneratorDataset, which is at {re.escape(__file__)}:\d+ \(source\)"
    assert len(warnings.lines) == 1 and re.fullmatch(text, warnings.lines[0])
    warnings.lines.clear()
    warnings.came.clear()
    ds.config.set_enable_watchdog(False)
    assert len(list(dataset.create_tuple_iterator(num_epochs=1))) == 1
    assert warnings.lines == []


def test_a_slow_program_wakes_no_watchdog(warnings: Messages) -> None:
    rows = ds.NumpySlicesDataset({"n": np.arange(40)}).create_tuple_iterator(num_epochs=1)
    next(rows)
    assert not warnings.came.wait(1.3) and len(list(rows)) == 39


class Tags(HTMLParser):
    """The tags, attributes and text of a piece of HTML."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag != "path":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag != "path":
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data + "|"


ATTRIBUTES = {"class", "style", "width", "height", "viewbox", "aria-hidden", "d", "fill", "stroke", "stroke-width"}


def picture(dataset: Any) -> Tags:
    result = Tags(dataset._repr_html_())
    assert result.open == []
    assert result.tags <= {"div", "b", "svg", "path"} and result.attributes <= ATTRIBUTES
    return result


def test_the_picture_shows_steps_with_their_arguments() -> None:
    left = ds.NumpySlicesDataset({"image": np.zeros((8, 4, 4, 3), np.uint8)}, shuffle=False)
    left = left.map([vision.Resize((2, 2)), vision.HWC2CHW()], "image", num_parallel_workers=2)
    dataset = ds.zip((left, ds.NumpySlicesDataset({"label": list(range(8))}))).batch(4, drop_remainder=True)
    text = picture(dataset).text
    for part in ("NumpySlicesDataset", "shuffle = False", "num_parallel_workers = 2", "zip", "batch_size = 4", "drop_remainder = True"):
        assert f"|{part}|" in text, part
    assert "|Resize(size=[2, 2])|HWC2CHW()|" in text
    assert text.index("NumpySlicesDataset") < text.index("map") < text.index("zip") < text.index("batch|")
    assert dataset._repr_html_().count("<svg") == 3        # source -> map, both -> zip, zip -> batch
    assert "input_dataset" not in text and "columns_order" not in text


def test_nothing_in_the_picture_is_markup() -> None:
    evil = '"><script>alert(1)</script><img src=x onerror="y">\ud800'

    class Source:
        def __getitem__(self, index: int) -> Any:
            raise AssertionError("a picture reads nothing")

        def __len__(self) -> int:
            return 3

        def __repr__(self) -> str:
            raise AssertionError("and asks nothing of the user's")

    def function(value: Any) -> Any:
        return value

    function.__name__ = Source.__name__ = Source.__qualname__ = evil.replace("\ud800", "")
    dataset = ds.GeneratorDataset(Source(), [evil]).map(function, [evil], [evil + "2"]).rename(evil + "2", "<b>")
    assert "<script>alert(1)" in picture(dataset).text     # as text
    deep = dataset
    for _ in range(300):
        deep = deep.repeat(1)
    assert len(deep._repr_html_()) < 30_000 and picture(deep).text
    wide = dataset
    for _ in range(12):                                     # 2**12 leaves
        wide = wide + wide
    assert len(wide._repr_html_()) < 100_000 and picture(wide).text
