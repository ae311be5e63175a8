"""Writes functions with control flow on Tensors from a seed, as text that is their source."""
from __future__ import annotations

import linecache
import random
from collections.abc import Callable
from typing import Any

import numpy as np
from mindspore import Tensor, ops

NAMES = ("a", "b", "c")


class Writer:
    """The making of one function: `x` and the names a, b, c are float Tensors of shape (3,), n is a Python number."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._lines: list[str] = []
        self._loops = 0

    def text(self, name: str) -> str:
        """The source."""
        self._lines = [f"def {name}(x):", "    a, b, c, n = x, x * W, x - W, 0"]
        self._random.choice((self._if, self._while, self._for))(1, 2, False)
        self._block(1, 2, False)
        self._lines.append(f"    return a + 2 * b - c * {self._random.choice(('W', '0.5', 'x'))} + n")
        return "\n".join(self._lines) + "\n"

    def _put(self, depth: int, line: str) -> None:
        self._lines.append("    " * depth + line)

    def _block(self, depth: int, budget: int, in_loop: bool) -> None:
        for _ in range(self._random.randint(1, 3)):
            self._statement(depth, budget, in_loop)

    def _statement(self, depth: int, budget: int, in_loop: bool) -> None:
        kinds = [self._assign, self._assign, self._count]
        if budget > 0:
            kinds += [self._if, self._if, self._while, self._for, self._early]
        kind = self._random.choice(kinds)
        kind(depth, budget, in_loop)

    def _value(self) -> str:
        name, other = self._random.choice(NAMES), self._random.choice((*NAMES, "x", "W"))
        return self._random.choice((
            f"{name} * 0.5 + {other}", f"ops.tanh({name} * {other})", f"{name} - {other} * 0.25", f"ops.sin({name}) + {other} * 0.5",
            f"{name} / (1 + ops.abs({other}))", f"({name} if {self._test()} else {other})", f"ops.tanh({name}) + n",
        ))

    def _test(self) -> str:
        name = self._random.choice(NAMES)
        number = self._random.choice(("-1", "0", "0.5", "1", "2"))
        simple = self._random.choice((f"{name}.sum() > {number}", f"{name}.max() < {number}", f"{name}[0] > {name}[2]", f"n < {number}"))
        return self._random.choice((
            simple, simple, f"not {simple}", f"{simple} and x.min() < 1", f"x.sum() > 3 or {simple}", f"-2 < {name}.mean() < {number}",
        ))

    def _assign(self, depth: int, budget: int, in_loop: bool) -> None:
        self._put(depth, f"{self._random.choice(NAMES)} = {self._value()}")

    def _count(self, depth: int, budget: int, in_loop: bool) -> None:
        self._put(depth, "n = n + 1")

    def _if(self, depth: int, budget: int, in_loop: bool) -> None:
        self._put(depth, f"if {self._test()}:")
        self._block(depth + 1, budget - 1, in_loop)
        if in_loop and self._random.random() < 0.4:
            self._put(depth + 1, self._random.choice(("break", "continue")))
        if self._random.random() < 0.3:
            self._put(depth, f"elif {self._test()}:")
            self._block(depth + 1, budget - 1, in_loop)
        if self._random.random() < 0.6:
            self._put(depth, "else:")
            self._block(depth + 1, budget - 1, in_loop)

    def _while(self, depth: int, budget: int, in_loop: bool) -> None:
        self._loops += 1
        i = f"i{self._loops}"
        start = self._random.choice(("0", "Tensor(0)"))
        self._put(depth, f"{i} = {start}")
        self._put(depth, f"while {i} < {self._random.randint(0, 3)} and {self._random.choice(NAMES)}.sum() < 50:")
        self._put(depth + 1, f"{i} = {i} + 1")
        self._block(depth + 1, budget - 2, True)

    def _for(self, depth: int, budget: int, in_loop: bool) -> None:
        self._loops += 1
        over = self._random.choice(("range(2)", "range((x > 0).sum())", "(a, b)", "[W, x]"))
        self._put(depth, f"for v{self._loops} in {over}:")
        self._put(depth + 1, f"a = a * 0.5 + v{self._loops}")
        self._block(depth + 1, budget - 2, True)

    def _early(self, depth: int, budget: int, in_loop: bool) -> None:
        self._put(depth, f"if {self._test()}:")
        self._put(depth + 1, f"return {self._random.choice(NAMES)} * 2 + {self._random.choice(NAMES)}")


def function(seed: int) -> Callable[[Any], Any]:
    """The function of `seed`, whose source Python's `inspect` finds."""
    name, file = f"generated_{seed}", f"/generated/{seed}.py"
    text = Writer(seed).text(name)
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    scope: dict[str, Any] = {"ops": ops, "Tensor": Tensor, "W": Tensor(np.array([0.5, -1.0, 2.0], np.float32)), "__name__": "generated"}
    exec(compile(text, file, "exec"), scope)
    return scope[name]  # type: ignore[no-any-return]
