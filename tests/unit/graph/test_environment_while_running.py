"""Variables of MindSpore's that a program sets in `os.environ` itself: they count for what is first called after."""
from __future__ import annotations

from collections.abc import Iterator

import mindspore as ms
import pytest
from mindspore import Tensor, nn


class Net(nn.Cell):
    def construct(self, x: Tensor) -> Tensor:
        return x * 2


@pytest.fixture(autouse=True)
def graphs() -> Iterator[None]:
    ms.set_context(mode=ms.GRAPH_MODE)
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


def test_only_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MS_DEV_PRECOMPILE_ONLY", "1")
    assert ms.jit(lambda x: x * 2)(Tensor([1.0])) is None
    monkeypatch.delenv("MS_DEV_PRECOMPILE_ONLY")
    assert Net()(Tensor([1.0])).asnumpy().tolist() == [2]


def test_the_syntax_level(monkeypatch: pytest.MonkeyPatch) -> None:
    class Writes(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.text = "a"

        def construct(self, x: Tensor) -> Tensor:
            self.text = "b"
            return x

    monkeypatch.setenv("MS_DEV_JIT_SYNTAX_LEVEL", "0")
    with pytest.raises(TypeError, match="In JIT strict mode, if need to modify a member attribute of a class"):
        Writes()(Tensor([1.0]))
    monkeypatch.setenv("MS_DEV_JIT_SYNTAX_LEVEL", "2")
    assert Writes()(Tensor([1.0])).asnumpy().tolist() == [1]
