"""Writes whole programs from a seed: a Cell whose call mixes Python's state with control flow, called again while that state changes.

Beside what `generator` writes there are nested functions with `nonlocal`, generators, `with`, `try`, `match`, comprehensions, and state of
all kinds: attributes, lists, dicts, deques, class attributes, dataclasses, closures, globals, random numbers. Whoever runs such a program
puts `log`, which takes values, into its names; what is logged in one mode must be logged in the other.
"""
from __future__ import annotations

import random
from collections.abc import Callable

from tests.unit.graph.control_flow import cell_pieces

BEFORE = '''
import contextlib
import functools
import random
from collections import deque
from dataclasses import dataclass

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops


def T(values):
    return Tensor(np.array(values, np.float32))


K = 2
L = [1, 2]
D = {"n": 1}
Q = deque([1, 2], maxlen=3)
N = [0]
LOG = []


class Plain:
    def __init__(self):
        self.k = 1


class Config:
    width = 1


@dataclass
class Data:
    v: int = 1


class Box:
    def __init__(self, v):
        self.v = v

    def __iter__(self):
        yield self.v


class Callable:
    n = 0

    def __call__(self, q):
        return q + self.n


def counter():
    z = 0

    def count():
        nonlocal z
        z += 1
    return count, lambda: z


def length():
    return K + len(D)


def more():
    global K
    K += 1


def halved(q):
    if q.sum() > 1:
        return q * 0.5
    return q + 1


def repeated(q, times):
    for i in range(times):
        q = q * 0.5 + i
    return q


def multiples(q, times):
    for i in range(times):
        yield q * i


@contextlib.contextmanager
def scaled(by):
    N[0] += 1
    try:
        yield by
    finally:
        N[0] += 2


class Sub(nn.Cell):
    def __init__(self):
        super().__init__()
        self.c, self.box = 0, Box(T([1.0, 0.0, -1.0]))

    def construct(self, q):
        self.c += 1
        return q * self.c


O, DC, A = Plain(), Data(), Callable()
P = Parameter(T([0.5, -0.5, 1.0]), name="P")
count, counted = counter()


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.k, self.t, self.flag, self.l, self.sub = 1, T([0.0, 1.0, 0.0]), True, [0], Sub()

    def construct(self, x):
        a, b, n = x * 1, x * 0.5 + 1, 0
'''

AFTER = '''
        return a + b, n, S.k


S = Net()
RAISED = (ValueError, IndexError, KeyError, TypeError, ZeroDivisionError, AttributeError, NameError)


def tell():
    log(S.k, S.t, S.flag, S.l, S.sub.c, K, L, D, Q, N, LOG, O.k, Config.width, DC.v, P, A.n, counted(), np.random.rand(), random.random())


def change(step):
    global K
    if step == 1:
        S.k = 7
        L.append(3)
    if step == 2:
        O.k = 5
        D["n"] = 4
    if step == 3:
        K, Config.width, S.l = 9, 3, [2, 2]
    if step == 4:
        S.flag, DC.v, A.n = False, 0, 2
        P.set_data(T([1.0, 1.0, 1.0]))


def called(function, values):
    try:
        log(function(T(values)))
    except RAISED as error:
        log(type(error).__name__)
    tell()


INPUTS = [[1.0, 2.0, 0.5], [-1.0, 0.5, -2.0], [0.1, 0.2, -0.3], [3.0, 3.0, 3.0], [1.0, 2.0, 0.5]]
for step, values in enumerate(INPUTS):
    called(S, values)
    change(step)
for step, values in enumerate(INPUTS[:3]):
    called(lambda x: ms.grad(lambda q: S(q)[0].sum())(x), values)
    change(step + 2)
'''

NUMBERS = ("S.k", "len(L)", "D['n']", "K", "O.k", "Q[-1]", "Config.width", "counted()", "n", "length()", "(n + 1)", "A.n", "DC.v",
           "sum(L[-2:])", "N[0]")
ITERABLES = ("range(2)", "range({number} % 3)", "[a, b]", "enumerate([x, b])", "zip([a], [b])", "multiples(a, 2)", "L[-2:]", "list(D)",
             "range((x > 0).sum())", "reversed([x, a])")
VALUES = (
    "{name} * 0.5 + x", "ops.tanh({name})", "{name} - b * 0.25", "{name} * ({number} % 5) + 1", "{name} + S.t", "{name} * P",
    "halved({name})", "{name}[::-1]", "({name} if {test} else b)", "repeated({name}, {number} % 3)",
    "sum([{name} * i for i in range(3)], b)", "[{name}, b, x][{number} % 3]", "A({name})", "{name} + D.get('t', 0)",
    "ops.stack([{name}, b]).sum(0)", "(lambda q: q * n + {name})(b)", "functools.reduce(lambda u, w: u + w * 0.5, [{name}, b], x)",
    "max([{name}, b], key=lambda t: float(n))", "dict(z={name})['z']", "next(iter([{name}]))", "S.sub({name})",
)
STATEMENTS = (
    *["{target} = {value}"] * 5, "n += 1", "a, b = b, a * 0.5", "S.k += 1", "S.t = {value}", "L.append({number} % 7)",
    "D['n'] = {number} % 9", "D['t'] = {value}", "D.pop('t', None)", "O.k = O.k + 1", "Q.append(Q[0] % 5 + 1)",
    "ops.assign(P, ops.tanh({target}))", "P[0] = 0.25", "S.flag = not S.flag", "count()", "N[0] += 1", "DC.v += 1", "a += 0.5",
    "b[0] = 1.0", "b[0] = n", "b[0] = a[1]", "b = b.copy(); b[0] = 2.0", "Config.width += 1", "more()", "LOG.append(n)", "S.l.append(n)",
    "S.l[0] = {number} % 4", "A.n += 1", "del L[:1]", "L.extend([1, 2])", "a = a + float(np.random.rand())",
    "b = b + random.randint(0, 3)",
)
NEW = 300
"""From this seed on programs also make objects that hold Tensors, set seeds, and take gradients of Cells that were just called."""
MORE_VALUES = ("Box({name} * 2).v", "S.sub.box.v + {name}", "(lambda: {name} * 0.5)()", "{name}[{name} > -9].reshape(3)",
               "S.sub({name}) + S.sub({name} * 0.5)", "{name} + sum(ms.grad(S.sub)({name}))")
MORE_STATEMENTS = ("S.sub.box = Box({value})", "S.sub.box.v = {value}", "np.random.seed({number} % 9)", "ms.set_seed({number} % 9)",
                   "b = S.sub(a); b = b + ms.grad(S.sub)(a)", "S.l = [Box({name}).v.shape[0]]")
TESTS = (
    *["{name}.sum() > {choice}", "{name}.max() < {choice}"] * 2, "{number} % 2 == 0", "{number} < 3", "{name}[0] > {name}[1]", "S.flag",
    "'t' in D", "isinstance(n, int)", "(m := {number}) > 2",
)


class Writer:
    """The making of one program."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._lines: list[str] = []
        self._made = 0
        self._is_new, self._has_cells = seed >= NEW, seed >= cell_pieces.CELLS
        self._values = VALUES + MORE_VALUES * self._is_new + cell_pieces.VALUES * self._has_cells
        self._statements = STATEMENTS + MORE_STATEMENTS * self._is_new * 2 + cell_pieces.STATEMENTS * self._has_cells
        self._results = ("return a + b, n, {number}", *["return Box(a + b), n, [Box(b)]"] * self._is_new)

    def text(self) -> str:
        """The source."""
        for _ in range(self._random.randint(3, 5)):
            (self._compound if self._random.random() < 0.65 else self._simple)(2, 2, False)
        if self._has_cells:
            return self._around_cells()
        after = AFTER.replace("S = Net()\n", "S = Net()\nS.sub.set_grad()\n") if self._is_new else AFTER     # else modes share differently
        return BEFORE + "\n".join(self._lines) + after

    def _around_cells(self) -> str:
        """The program with Cells that change between calls, of itself and of its gradients."""
        choose, (start, end) = self._random.choice, BEFORE.split("class Net(nn.Cell):")
        end = end.replace("Sub()\n", "Sub()" + cell_pieces.MEMBERS, 1)
        after = [cell_pieces.AFTER.replace("S = Net()\n", "S = Net()\nS.sub.set_grad()\n")]
        second = "ms.grad(lambda q: ms.grad(loss)(q).sum())"
        for function in ["S"] * 6 + ["ms.grad(loss)"] * 2 + ["by_weights"] * 2 + [second]:
            after += [f"called({function}, {choose(cell_pieces.ARGUMENTS)})",
                      *[choose(cell_pieces.CHANGES)] * (self._random.random() < 0.6)]
        return start + cell_pieces.BEFORE + "\n\nclass Net(nn.Cell):" + end + "\n".join(self._lines) + "\n".join(after) + "\n"

    def _put(self, depth: int, line: str) -> None:
        self._lines.append("    " * depth + line)

    def _filled(self, form: str) -> str:
        """The form with its places filled, each with something else."""
        choose = self._random.choice
        makers: dict[str, Callable[[], str]] = {
            "name": lambda: choose("abx"), "target": lambda: choose("ab"), "number": lambda: choose(NUMBERS), "test": self._test,
            "choice": lambda: choose("0123"), "value": lambda: self._filled(choose(self._values)),
        }
        return form.format(**{key: make() if "{" + key + "}" in form else "" for key, make in makers.items()})

    def _test(self) -> str:
        test = self._filled(self._random.choice(TESTS))
        if self._random.random() < 0.25:
            other = self._filled(self._random.choice(("S.flag", "n < 3", "{name}.sum() > 0")))
            test = f"{test} {self._random.choice(('and', 'or'))} {other}"
        return f"not ({test})" if self._random.random() < 0.15 else test

    def _simple(self, depth: int, deeper: int, in_loop: bool) -> None:
        self._put(depth, self._filled(self._random.choice(self._statements)))

    def _block(self, depth: int, deeper: int, in_loop: bool) -> None:
        for _ in range(self._random.randint(1, 2)):
            if deeper > 0 and self._random.random() < 0.45:
                self._compound(depth, deeper - 1, in_loop)
            else:
                self._simple(depth, deeper, in_loop)

    def _compound(self, depth: int, deeper: int, in_loop: bool) -> None:
        kinds = [self._if] * 4 + [self._for] * 2 + [self._while, self._try, self._with, self._match, self._return, self._nested, self._sum]
        self._random.choice(kinds + [self._jump] * in_loop)(depth, deeper, in_loop)

    def _maybe(self, share: float, depth: int, line: str, in_loop: bool) -> None:
        """A clause with a simple statement, in so many of all cases."""
        if self._random.random() < share:
            self._put(depth, line)
            self._simple(depth + 1, 0, in_loop)

    def _if(self, depth: int, deeper: int, in_loop: bool) -> None:
        for word, share in (("if", 1.0), ("elif", 0.3), ("else", 0.5)):
            if self._random.random() < share:
                self._put(depth, "else:" if word == "else" else f"{word} {self._test()}:")
                self._block(depth + 1, deeper, in_loop)

    def _for(self, depth: int, deeper: int, in_loop: bool) -> None:
        self._made += 1
        self._put(depth, f"for v{self._made} in {self._filled(self._random.choice(ITERABLES))}:")
        self._block(depth + 1, deeper, True)
        self._put(depth + 1, "n += 1")
        self._maybe(0.3, depth, "else:", in_loop)

    def _while(self, depth: int, deeper: int, in_loop: bool) -> None:
        self._made += 1
        counter = f"w{self._made}"
        self._put(depth, f"{counter} = 0")
        self._put(depth, f"while {counter} < {self._random.randint(1, 3)} and {self._random.choice(('a.sum() < 9', 'n < 20', 'True'))}:")
        self._put(depth + 1, f"{counter} += 1")
        self._block(depth + 1, deeper, True)
        self._maybe(0.3, depth, "else:", in_loop)

    def _try(self, depth: int, deeper: int, in_loop: bool) -> None:
        self._put(depth, "try:")
        self._block(depth + 1, deeper, in_loop)
        if self._random.random() < 0.5:
            self._put(depth + 1, f"if {self._test()}:")
            self._put(depth + 2, "raise ValueError(n)")
        self._put(depth, self._random.choice(("except ValueError as error:", "except (KeyError, ValueError):")))
        self._simple(depth + 1, 0, in_loop)
        self._maybe(0.3, depth, "else:", in_loop)
        self._maybe(0.5, depth, "finally:", False)

    def _with(self, depth: int, deeper: int, in_loop: bool) -> None:
        self._put(depth, self._filled("with scaled({number} % 4) as by:"))
        self._block(depth + 1, deeper, in_loop)
        self._put(depth + 1, "a = a + by")

    def _match(self, depth: int, deeper: int, in_loop: bool) -> None:
        self._put(depth, self._filled("match {number} % 3:"))
        for case in ("case 0:", "case 1 if n > 1:", "case _:"):
            self._put(depth + 1, case)
            self._block(depth + 2, deeper, in_loop)

    def _jump(self, depth: int, deeper: int, in_loop: bool) -> None:
        self._put(depth, f"if {self._test()}:")
        self._put(depth + 1, self._random.choice(("break", "continue")))

    def _return(self, depth: int, deeper: int, in_loop: bool) -> None:
        self._put(depth, f"if {self._test()} and n > 1:")
        form = self._results[0] if len(self._results) == 1 else self._random.choice(self._results)
        self._put(depth + 1, self._filled(form))

    def _nested(self, depth: int, deeper: int, in_loop: bool) -> None:
        self._made += 1
        self._put(depth, self._filled(f"def f{self._made}(q, w={{number}} % 3):"))
        self._put(depth + 1, "nonlocal n, a")
        self._put(depth + 1, self._random.choice(("n += 1", "a = a * 0.5", "n = n + w")))
        self._put(depth + 1, "return q * (w + 1)")
        self._put(depth, self._filled(f"b = f{self._made}({{name}})"))

    def _sum(self, depth: int, deeper: int, in_loop: bool) -> None:
        self._put(depth, self._filled("a = sum((q * i for i, q in enumerate([{value}, b]) if i < {number} % 3), a)"))


def text(seed: int) -> str:
    """The program of `seed`."""
    return Writer(seed).text()
