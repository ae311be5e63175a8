"""Writes functions with control flow on Tensors from a seed, as text that is their source.

What is written is counted (`features`), so that a test can say which hard cases the seeds hold.
"""
from __future__ import annotations

import ast
import linecache
import random
from collections.abc import Callable, Iterator
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

NAMES = ("a", "b", "c")
DEPTH = 5
"""So deep branches and loops nest."""
SIZE = 11
"""So many statements a function has, about."""
_LOOPS = (ast.For, ast.While)


class State(nn.Cell):
    """What a generated function reads and writes besides its arguments: `last` is a Tensor, `kept` a Parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.last = Tensor(np.array([0.25, 0.5, -0.25], np.float32))
        self.kept = ms.Parameter(Tensor(np.array([0.5, 0.25, 1.0], np.float32)), name="kept")


class Writer:
    """The making of one function: `x`, a, b, c, S.last and S.kept are float Tensors of shape (3,), n is a Python number, FLAG a bool."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._lines: list[str] = []
        self._loops = 0
        self._left = self._random.randint(SIZE // 2, SIZE)
        self._has_state = seed % 3 == 0

    def text(self, name: str) -> str:
        """The source."""
        self._lines = [f"def {name}(x):", *self._first_lines()]
        self._random.choice((self._if, self._while, self._for))(1, ())
        while self._left > 0:
            self._statement(1, ())
        end = self._last_terms() + (" + S.last * S.kept" if self._has_state else "")
        self._lines.append(f"    return a + 2 * b - c * {self._random.choice(('W', '0.5', 'x'))} + n{end}")
        return "\n".join(self._lines) + "\n"

    def _first_lines(self) -> list[str]:
        return ["    a, b, c, n = x, x * W, x - W, 0"]

    def _last_terms(self) -> str:
        return ""

    def _put(self, depth: int, line: str) -> None:
        self._lines.append("    " * depth + line)
        self._left -= 1

    def _block(self, depth: int, around: tuple[str, ...]) -> None:
        """A block inside the statements `around`, which are named "if" and "loop"."""
        deep, looped = len(around) < DEPTH and self._left > 0, "loop" in around
        if deep and self._random.random() < (0.85 if looped else 0.7):
            if self._random.random() < 0.3:
                self._simple(depth)
            self._compound(depth, around)
            if looped and self._left > 0 and self._random.random() < 0.4:
                self._compound(depth, around)
            if looped and self._random.random() < 0.8:
                self._simple(depth)                      # what follows an `if` that control may leave
        else:
            for _ in range(self._random.randint(1, 2)):
                self._simple(depth)

    def _statement(self, depth: int, around: tuple[str, ...]) -> None:
        if self._random.random() < 0.5:
            self._simple(depth)
        else:
            self._compound(depth, around)

    def _simple(self, depth: int) -> None:
        self._random.choice(self._simple_kinds())(depth)

    def _simple_kinds(self) -> list[Callable[[int], None]]:
        return [self._assign] * 4 + [self._count, self._swap] + [self._attribute, self._parameter] * self._has_state

    def _compound(self, depth: int, around: tuple[str, ...]) -> None:
        kinds = [self._if] * 4 + [self._early] * ("loop" not in around)
        kinds += [self._while, self._for] * (self._loops < 2 and around.count("loop") < 2)
        kinds += [self._jump] * 5 * ("loop" in around)
        self._random.choice(kinds)(depth, around)

    # ---- expressions

    def _value(self) -> str:
        name, other = self._random.choice(NAMES), self._random.choice((*NAMES, "x", "W", *("S.last", "S.kept") * self._has_state))
        # What may be the Parameter itself makes no whole graph where an attribute gets it: test_shared.py.
        value = "S.kept * 1" if other == "S.kept" else other
        return self._random.choice((
            f"{name} * 0.5 + {other}", f"ops.tanh({name} * {other})", f"{name} - {other} * 0.25", f"ops.sin({name}) + {other} * 0.5",
            f"{name} / (1 + ops.abs({other}))", f"({name} if {self._test()} else {value})", f"ops.tanh({name}) + n",
        ))

    def _test(self) -> str:
        name = self._random.choice(NAMES)
        number = self._random.choice(("-1", "0", "0.5", "1", "2"))
        simple = self._random.choice((f"{name}.sum() > {number}", f"{name}.max() < {number}", f"{name}[0] > {name}[2]", f"n < {number}"))
        return self._random.choice((
            simple, simple, f"not {simple}", f"{simple} and x.min() < 1", f"x.sum() > 3 or {simple}", f"-2 < {name}.mean() < {number}",
            f"FLAG and {simple}", f"FLAG or {simple}", "FLAG",
        ))

    # ---- simple statements

    def _assign(self, depth: int) -> None:
        self._put(depth, f"{self._random.choice(NAMES)} = {self._value()}")

    def _count(self, depth: int) -> None:
        self._put(depth, "n = n + 1")

    def _swap(self, depth: int) -> None:
        name, other = self._random.sample(NAMES, 2)
        self._put(depth, f"{name}, {other} = {other} * 0.5, {name}")

    def _attribute(self, depth: int) -> None:
        self._put(depth, f"S.last = {self._value()}")

    def _parameter(self, depth: int) -> None:
        self._put(depth, f"ops.assign(S.kept, ops.sin({self._random.choice(NAMES)}))")

    # ---- statements with blocks

    def _if(self, depth: int, around: tuple[str, ...]) -> None:
        self._put(depth, f"if {self._test()}:")
        self._block(depth + 1, (*around, "if"))
        if self._random.random() < 0.2:
            self._put(depth, f"elif {self._test()}:")
            self._block(depth + 1, (*around, "if"))
        if self._random.random() < 0.5:
            self._put(depth, "else:")
            self._block(depth + 1, (*around, "if"))

    def _jump(self, depth: int, around: tuple[str, ...]) -> None:
        """An `if` that ends in break, continue or return."""
        self._put(depth, f"if {self._test()}:")
        if self._random.random() < 0.5:
            self._simple(depth + 1)
        self._put(depth + 1, self._random.choice(("break", "continue", f"return {self._end()}")))
        if self._random.random() < 0.2:
            self._put(depth, "else:")
            self._simple(depth + 1)

    def _early(self, depth: int, around: tuple[str, ...]) -> None:
        self._put(depth, f"if {self._test()}:")
        self._put(depth + 1, f"return {self._end()}")

    def _end(self) -> str:
        return f"{self._random.choice(NAMES)} * 2 + {self._random.choice(NAMES)}"

    def _while(self, depth: int, around: tuple[str, ...]) -> None:
        self._loops += 1
        i = f"i{self._loops}"
        start = self._random.choice(("0", "Tensor(0)"))
        self._put(depth, f"{i} = {start}")
        self._put(depth, f"while {i} < {self._random.randint(1, 2)} and {self._random.choice(NAMES)}.sum() < 50:")
        self._put(depth + 1, f"{i} = {i} + 1")
        self._body(depth, around)

    def _for(self, depth: int, around: tuple[str, ...]) -> None:
        self._loops += 1
        over = self._random.choice(("range(2)", "range((x > 0).sum())", "(a, b)", "[W, x]"))
        self._put(depth, f"for v{self._loops} in {over}:")
        self._put(depth + 1, f"a = a * 0.5 + v{self._loops}")
        self._body(depth, around)

    def _body(self, depth: int, around: tuple[str, ...]) -> None:
        self._block(depth + 1, (*around, "loop"))
        if self._random.random() < 0.25:
            self._put(depth, "else:")
            self._simple(depth + 1)


class InPlaceWriter(Writer):
    """The same with writes in place, through views, aliases and called functions; d is an alias, v a view of shape (2,)."""

    def _first_lines(self) -> list[str]:
        first = self._random.choice(("x", "x * 1", "x * 1", "x * 1"))
        return [
            "    def halve(t):", "        t[0] = t[1] * 0.5", "        return t.sum()", f"    a, b, c, n = {first}, x * W, x - W, 0",
            f"    d, v = {self._random.choice(NAMES)}, {self._random.choice(NAMES)}[1:]",
        ]

    def _last_terms(self) -> str:
        return " + d * 0.5 + v.sum()"

    def _simple_kinds(self) -> list[Callable[[int], None]]:
        more = [self._write] * 4 + [self._alias, self._view, self._write_view, self._exchange, self._called]
        return [*super()._simple_kinds(), *more, *[self._write_state] * self._has_state]

    def _number(self) -> str:
        other = self._random.choice((*NAMES, "x", "W"))
        return self._random.choice(("0.5", "-1.5", "2", f"{other}[1] * 0.5", f"ops.sin({other}[2])"))

    def _write(self, depth: int) -> None:
        name, other = self._random.choice((*NAMES, "d")), self._random.choice((*NAMES, "x", "W"))
        self._put(depth, self._random.choice((
            f"{name}[{self._random.choice((0, 1, 2, -1))}] = {self._number()}", f"{name}[{name} > 1] = 0.5",
            f"{name}[0] += {self._number()}", f"{name}.mul_(0.5)", f"{name}.add_({other})",
            f"{name}[1:] = {other}[1:] * 0.5", f"{name}[:] = {other} * 0.25", f"{name}[2] = {name}[0] * {name}[1]",
        )))

    def _alias(self, depth: int) -> None:
        self._put(depth, f"{self._random.choice((*NAMES, 'd', 'd'))} = {self._random.choice(NAMES)}")

    def _view(self, depth: int) -> None:
        self._put(depth, f"v = {self._random.choice((*NAMES, 'd'))}[{self._random.choice(('1:', ':2', '::2'))}]")

    def _write_view(self, depth: int) -> None:
        self._put(depth, self._random.choice((
            f"v[0] = {self._number()}", "v.mul_(0.5)", f"v += {self._random.choice(NAMES)}[:2]", "v[v > 1] = 0",
        )))

    def _exchange(self, depth: int) -> None:
        name, other = self._random.sample(NAMES, 2)
        self._put(depth, f"{name}, {other} = {other}, {name}")

    def _called(self, depth: int) -> None:
        self._put(depth, f"{self._random.choice(NAMES)} = {self._random.choice(NAMES)} + halve({self._random.choice(NAMES)}) * 0.25")

    def _write_state(self, depth: int) -> None:
        self._put(depth, self._random.choice((
            f"S.kept[{self._random.choice((0, 1))}] = 0.25", f"S.last[1] = {self._number()}", "S.last.mul_(0.5)", "S.kept.mul_(0.5)",
        )))


class LoopAliasWriter(InPlaceWriter):
    """The same with loops that write, read, and end with two names on one Tensor: the next round writes into memory that both show."""

    def _body(self, depth: int, around: tuple[str, ...]) -> None:
        first, second = self._random.sample((*NAMES, "d"), 2)
        writes = (f"{first}[0] = {first}[1] + 1", f"{first}.mul_(0.5)", f"{second}.add_(x)", "v[0] = 0.25")
        self._put(depth + 1, self._random.choice(writes))
        self._put(depth + 1, f"{self._random.choice(NAMES)} = {self._random.choice((first, second))} * 0.5 + x")
        self._block(depth + 1, (*around, "loop"))
        is_conditional = self._random.random() < 0.3
        if is_conditional:
            self._put(depth + 1, f"if {self._test()}:")
        inner = depth + 1 + is_conditional
        self._put(inner, f"{first} = {self._random.choice((f'{first} * 1.5', f'ops.sin({second})', f'{first} + x'))}")
        self._put(inner, self._random.choice((f"{second} = {first}", f"{second} = {first}", f"v = {first}[1:]", f"{second} = {first}[:]")))


def text(seed: int, kind: type[Writer] = Writer) -> str:
    """The source of the function of `seed`."""
    return kind(seed).text(f"generated_{seed}")


def function(seed: int, kind: type[Writer] = Writer) -> Callable[[Any], Any]:
    """The function of `seed`, whose source Python's `inspect` finds, with a state of its own as its attribute `state`."""
    name, file, source = f"generated_{seed}", f"/generated/{kind.__name__}/{seed}.py", text(seed, kind)
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    scope: dict[str, Any] = {
        "ops": ops, "Tensor": Tensor, "W": Tensor(np.array([0.5, -1.0, 2.0], np.float32)), "S": State(), "FLAG": seed % 2 == 0,
        "__name__": "generated",
    }
    exec(compile(source, file, "exec"), scope)
    program = scope[name]
    program.state = scope["S"]
    return program  # type: ignore[no-any-return]


# ---- what is in a function

def features(source: str) -> set[str]:
    """The hard cases that the source holds, in a few words each."""
    (definition,) = ast.parse(source).body
    assert isinstance(definition, ast.FunctionDef)
    results = {word for word in ("S.last =", "ops.assign", " and ", " or ", "not ", "FLAG", " if ") if word in source}
    for block, around in _blocks(definition.body, ()):
        results.add(f"depth {len(around)}")
        for index, node in enumerate(block):
            results |= _of(node, around, bool(block[index + 1:]))
    return results


def _blocks(block: list[ast.stmt], around: tuple[ast.stmt, ...]) -> Iterator[tuple[list[ast.stmt], tuple[ast.stmt, ...]]]:
    yield block, around
    for node in block:
        for inner in (getattr(node, "body", []), getattr(node, "orelse", [])):
            if inner:
                yield from _blocks(inner, (*around, node))


def _of(node: ast.stmt, around: tuple[ast.stmt, ...], goes_on: bool) -> set[str]:
    loops = [outer for outer in around if isinstance(outer, _LOOPS)]
    inside = f" in {min(len(loops), 2)} loops"
    names: set[str] = set()
    if isinstance(node, (ast.Break, ast.Continue, ast.Return)) and around:
        ifs = 0
        for outer in reversed(around):
            if not isinstance(outer, ast.If):
                break
            ifs += 1
        names.add(f"{type(node).__name__.lower()} under {min(ifs, 3)} ifs{inside}")
    if isinstance(node, ast.If) and loops:
        names.add(f"if{inside}")
        if goes_on and any(_ends_in_jump(inner) for inner in node.body if isinstance(inner, ast.If)):
            names.add("if with an if that leaves, and more statements" + inside)
        if node.orelse and goes_on and any(isinstance(part, (ast.Break, ast.Continue, ast.Return)) for part in ast.walk(node)):
            names.add("if that leaves, with else, and more statements")
    if isinstance(node, _LOOPS):
        names.add(f"{type(node).__name__.lower()}{inside}")
        if node.orelse:
            names.add(f"else of a {type(node).__name__.lower()}")
            if any(isinstance(part, ast.Break) for part in ast.walk(node)):
                names.add("else of a loop with break")
    return names


def _ends_in_jump(node: ast.If) -> bool:
    return isinstance(node.body[-1], (ast.Break, ast.Continue, ast.Return))
