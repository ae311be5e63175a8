"""Every message that a wrong call of the context gives, whole."""
from __future__ import annotations

from pathlib import Path

import pytest

from torchspore.context import public

BLOCKS = (Path(__file__).parent / "messages.txt").read_text(encoding="utf-8").split(">>> ")[1:]


@pytest.mark.parametrize("block", BLOCKS, ids=[block.partition("\n")[0] for block in BLOCKS])
def test_message(block: str) -> None:
    call, kind, text = block.removesuffix("\n").removesuffix("\n----").split("\n", 2)
    with pytest.raises(Exception) as caught:
        eval(call, vars(public))
    assert (type(caught.value).__name__, str(caught.value)) == (kind, text)
    assert len(text.splitlines()) <= 12


def test_positional_arguments_are_refused() -> None:
    with pytest.raises(TypeError):
        public.set_context(0)  # type: ignore[call-arg]
    assert public.set_context() is None
