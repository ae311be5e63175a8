"""Dataclasses whose methods are generated with their first object behave like those of Python."""
from __future__ import annotations

import copy
import dataclasses
import pickle
import threading

import pytest

from torchspore.base.lazy_dataclasses import dataclass


@dataclass(frozen=True)
class Point:
    x: int
    y: int = 2

    @property
    def total(self) -> int:
        return self.x + self.y


@dataclass
class Stored:
    x: int


@dataclass(frozen=True)
class Shared:
    x: int


class Further(Shared):
    """A class that is no dataclass may derive from one."""


def test_objects_are_those_of_a_dataclass() -> None:
    assert "__init__" not in Point.__dict__
    point = Point(1)
    assert (point.x, point.y, point.total) == (1, 2, 3)
    assert point == Point(x=1, y=2) != Point(1, 3)
    assert hash(point) == hash(Point(1))
    assert repr(point) == "Point(x=1, y=2)"
    assert dataclasses.replace(point, y=5) == Point(1, 5)
    assert [field.name for field in dataclasses.fields(point)] == ["x", "y"]
    assert copy.deepcopy(point) == copy.copy(point) == pickle.loads(pickle.dumps(point)) == point
    with pytest.raises(dataclasses.FrozenInstanceError):
        point.x = 2  # type: ignore[misc]
    with pytest.raises(TypeError, match=r"__init__\(\) missing 1 required positional argument: 'x'"):
        Point()  # type: ignore[call-arg]


def test_pickle_creates_the_first_object() -> None:
    text = b"c" + f"{__name__}\nStored\n".encode() + b")\x81}(X\x01\x00\x00\x00xK\x03ub."          # Stored.__new__(), state {"x": 3}
    stored = pickle.loads(b"\x80\x02" + text)
    assert stored == Stored(3)
    assert repr(stored) == "Stored(x=3)"


def test_several_threads_create_the_first_object() -> None:
    start, objects = threading.Barrier(8), []

    def create() -> None:
        start.wait()
        objects.append(Further(3))

    threads = [threading.Thread(target=create) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert objects == [Further(3)] * 8
