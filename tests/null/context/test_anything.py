"""Whatever is thrown at a setter: the error is ours and short, and after it the context is what it was."""
from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from torchspore.context import public
from torchspore.context.options import OPTIONS, names_of
from torchspore.context.store import STORE
from torchspore.errors import TorchsporeError

THROWN: list[Any] = [
    None, True, False, 0, 1, -1, 2**40, 1.5, float("nan"), "", "x", "ON", "3GB", "0.GB", "--a", "{", "[]", "{}", "[1]", '"x"', "null", "/",
    "a\0b", b"x", [], [1], (1,), {}, {"a": 1}, {1: 2}, {"mode": []}, {"mode": "index", "config": None}, {"global": {1: 2}}, {"a": []},
    object(), int,
]
SETTERS = {"context": public.set_context, "auto_parallel": public.set_auto_parallel_context, "ps": public.set_ps_context}


def thrown_at(api: str, name: str) -> list[Any]:
    members = [member for option in OPTIONS.values() if (option.api, option.name) == (api, name) for member in option.members]
    return THROWN + [{member: value} for member in members for value in THROWN]


@pytest.mark.filterwarnings("ignore:graph_kernel_flags")
@pytest.mark.parametrize("api", SETTERS)
def test_anything(api: str) -> None:
    for name in names_of(api):
        for value in thrown_at(api, name):
            before = {key: repr(STORE.get(key)) for key in OPTIONS}
            try:
                SETTERS[api](**{name: value})
            except TorchsporeError as error:
                assert len(str(error).splitlines()) <= 12
                assert {key: repr(STORE.get(key)) for key in OPTIONS} == before, (name, value)
        STORE.reset(api)


def test_the_names_of_effects_stand_with_the_declarations_only() -> None:
    package = Path(public.__file__).parent
    for path in package.rglob("*.py"):
        if path.parent.name != "options":
            code = re.sub(r'""".*?"""', "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
            assert '"engine.' not in code, path
