"""Of a plain object, as a Trainer whose method is differentiated, the attributes count whose names stand in what ran."""
from __future__ import annotations

import re
from collections.abc import Iterator

import mindspore as ms
import pytest
from mindspore import Tensor, nn, ops

X = Tensor([1.0, 2.0])


@pytest.fixture(autouse=True)
def graph_mode() -> Iterator[None]:
    ms.set_context(mode=ms.GRAPH_MODE)
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


class Settings:
    def __init__(self) -> None:
        self.scale, self.seen = 2.0, 0


class Trainer:
    """As programs write them: the net and its settings beside counters, logs and an iterator over the data."""

    def __init__(self) -> None:
        self.settings, self.steps, self.losses, self.rows = Settings(), 0, [], iter(range(100))
        self.gradient = ops.GradOperation()(self.forward)

    def forward(self, x: Tensor) -> Tensor:
        return (x * x).sum() * self.settings.scale

    def step(self) -> list[float]:
        self.steps += 1
        self.settings.seen = next(self.rows)
        found = self.gradient(X)
        self.losses.append(found)
        return found.asnumpy().tolist()


def captures(capfd: pytest.CaptureFixture[str]) -> int:
    """How many graphs were made since the last look."""
    return len(re.findall(r"graph\] (?:capture|again|refused|break):", capfd.readouterr().err))


def test_counters_and_logs_of_a_trainer_make_no_new_graph(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("TORCHSPORE_LOG", "graph")
    trainer = Trainer()
    assert [trainer.step() for _ in range(4)] == [[4.0, 8.0]] * 4
    assert captures(capfd) == 1
    trainer.settings.scale = 3.0
    assert trainer.step() == [6.0, 12.0]
    trainer.settings = Settings()
    assert trainer.step() == [4.0, 8.0]
    assert captures(capfd) == 2


class Seeing(nn.Cell):
    """Asks an object for an attribute in the ways that name it and in those that don't."""

    def __init__(self, held: object, way: str) -> None:
        super().__init__()
        self.held, self.way = held, way

    def construct(self, x: Tensor) -> Tensor:
        if self.way == "getattr":
            return x * getattr(self.held, "".join(["le", "vel"]))
        if self.way == "vars":
            return x * sum(vars(self.held).values())
        if self.way == "absent":
            try:
                return x * self.held.extra
            except AttributeError:
                return x * self.held.level
        match self.held:
            case Level(level=value):
                return x * value
        return x


class Level:
    def __init__(self) -> None:
        self.level = 1.0


@pytest.mark.parametrize("way", ["getattr", "vars", "match"])
def test_an_attribute_is_seen_however_it_is_read(way: str) -> None:
    level = Level()
    cell = Seeing(level, way)
    assert cell(X).asnumpy().tolist() == [1.0, 2.0]
    level.level = 5.0
    assert cell(X).asnumpy().tolist() == [5.0, 10.0]


def test_an_attribute_that_was_absent_is_seen() -> None:
    level = Level()
    cell = Seeing(level, "absent")
    assert cell(X).asnumpy().tolist() == [1.0, 2.0]
    level.extra = 7.0
    assert cell(X).asnumpy().tolist() == [7.0, 14.0]


def test_an_iterator_that_is_read_is_no_part_of_a_graph() -> None:
    trainer = Trainer()
    ahead = ms.jit(lambda x: x + next(trainer.rows))
    assert [ahead(X).asnumpy().tolist() for _ in range(3)] == [[1.0, 2.0], [2.0, 3.0], [3.0, 4.0]]
