"""Variables of MindSpore's that a program sets in `os.environ` itself: they count for what is first called after."""
from __future__ import annotations

from collections.abc import Iterator

import mindspore as ms
import pytest
from mindspore import Tensor, nn


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def construct(self, x: Tensor) -> Tensor:
        self.count = 2
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


def test_how_much_python_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    known = Net()
    known(Tensor([1.0]))
    monkeypatch.setenv("MS_DEV_JIT_SYNTAX_LEVEL", "0")
    with pytest.raises(TypeError, match="writes the attribute 'count' of Net, which jit_syntax_level STRICT does not allow"):
        Net()(Tensor([1.0]))
    ms.set_context(jit_syntax_level=ms.LAX)                                # the environment goes before it, as in MindSpore
    with pytest.raises(TypeError, match="which jit_syntax_level STRICT does not allow"):
        Net()(Tensor([1.0]))
    monkeypatch.delenv("MS_DEV_JIT_SYNTAX_LEVEL")
    assert Net()(Tensor([1.0])).asnumpy().tolist() == [2] and known(Tensor([1.0])).asnumpy().tolist() == [2]
