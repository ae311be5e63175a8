"""What the generator of whole programs writes from seed `CELLS` on: Cells that change between calls, and Tensors that stand in two places.

Blocks are put in, taken out, replaced, frozen, trained and hooked; one Tensor is an attribute, in a list, in a tuple and an argument;
writes go through masks and views; gradients are of first and second order, by inputs and by weights.
"""
from __future__ import annotations

CELLS = 1000
"""From this seed on programs hold what stands here."""

BEFORE = '''
from typing import NamedTuple


class Pair(NamedTuple):
    a: Tensor
    n: int = 1


class Block(nn.Cell):
    def __init__(self, k):
        super().__init__()
        self.w = Parameter(T([k, 1.0, -k]), name="w")
        self.m = Parameter(T([0.0, 0.0, 0.0]), name="m", requires_grad=False)

    def construct(self, q, *, by=1):
        if self.training:
            ops.assign(self.m, self.m * 0.5 + q * 0.25)
        return ops.tanh(q * self.w) * by + self.m


def hook(cell, given, out):
    return out * 0.5


def rows(v, *others, k=1):
    for one in (v, *others):
        yield one * k


HOOKS = []
'''

MEMBERS = '''
        self.blocks, self.seq = nn.CellList([Block(1.0), Block(0.5)]), nn.SequentialCell(Block(2.0))
        self.held, self.pair, self.table = [self.t, self.blocks[0].w], Pair(self.t), {"a": self.t}
'''

VALUES = (
    "S.held[0] * {name}", "S.pair.a + {name}", "S.table['a'] - {name} * 0.5", "S.blocks[{number} % len(S.blocks)]({name})", "S.seq({name})",
    "{name} + sum((p.sum() for p in S.trainable_params()), {name}.sum()) * 0.01", "[c({name}) for c in S.blocks][-1]",
    "S.blocks[0]({name}, by={number} % 3)", "({name} * 2 if x is S.t else {name})", "({name} if S.held[0] is S.t else {name} * 2)",
    "{name} * len(S.blocks)", "Pair({name}, n)._replace(n=2).a * n", "(lambda *q, k=1: q[0] * k)({name}, b, k={number} % 3)",
    "ops.where({name} > 0, {name}, b)", "{name} * len(S.seq) + len(S.trainable_params())", "sum(rows({name}, b, k={number} % 3), x)",
    "({name} if S.training else {name} * 0.5)", "{name} + S.blocks[0].m", "{name}.reshape(3, 1)[:, 0] + S.held[-1]",
    "sum(g.sum() for g in ms.grad(lambda q: S.seq(q).sum(), None, S.seq.trainable_params())({name})) * 0.1 + {name}",
    "ms.jvp(ops.tanh, {name}, b)[1]", "ms.vjp(ops.sin, {name})[1](b)", "ops.stack([{name}, S.t, b])[n % 3]",
    "ops.clip_by_value({name}, -2.0, float(n % 3 + 1))",
)
STATEMENTS = (
    "S.held[0] = {target}", "S.held.append({target}); del S.held[2:]", "S.t = S.held[0]", "S.pair = Pair({value})", "S.held[0] = S.t",
    "{target}[{target} > 1] = 0.5", "{target}[..., 1:] = {target}[..., :-1] * 1", "a[[0, 2]] = b[1]", "S.table['a'] = {value}",
    "S.blocks[0].m[0] = {number} % 5", "b = b * 1; b[1:] += a[:-1]", "S.table['a'] = S.t", "a, (b, n) = b, (a * 0.5, n + 1)",
    "S.blocks[0].training = not S.training", "{target}[n % 3] = {target}.max()",
)
CHANGES = (
    "S.t = S.held[0]", "S.held[0] = S.t", "S.t = T([5.0, 6.0, 7.0])", "S.held = [S.t, S.blocks[0].w]", "S.blocks.append(Block(0.25))",
    "S.blocks.insert(0, Block(3.0))", "S.blocks[0] = Block(-1.0)", "S.blocks.append(Block(0.1)); del S.blocks[0]",
    "S.seq.append(nn.Tanh())", "S.seq = nn.SequentialCell(Block(0.5), nn.ReLU())", "S.set_train(not S.training)",
    "S.blocks[0].set_train()", "S.blocks[0].w.requires_grad = not S.blocks[0].w.requires_grad",
    "S.blocks[0].w = Parameter(T([1.0, 2.0, 3.0]), name='w')", "S.blocks[0].extra = Parameter(T([0.5, 0.5, 0.5]), name='extra')",
    "S.blocks[0].w.set_data(T([0.3, 0.2, 0.1]))", "HOOKS.append(S.blocks[0].register_forward_hook(hook))", "HOOKS and HOOKS.pop().remove()",
    "S.pair = S.pair._replace(a=S.t)", "S.sub = Sub().set_grad()", "S.table['a'] = S.held[0]", "S.t[0] = 4.0",
    "S.blocks._cells['0'] = Block(0.7)",
    "S.table = {'a': S.t * 1}", "S.t, S.held[0] = T([1.0, 0.0, 2.0]), S.t", "S.pair = Pair(T([0.1, 0.2, 0.3]), 2)",
)
ARGUMENTS = ("T(values)", "T(values)", "T(values)", "S.t", "S.held[0]", "S.pair.a", "S.table['a']")

AFTER = '''
        return a + b, n, S.k


S = Net()
RAISED = (ValueError, IndexError, KeyError, TypeError, ZeroDivisionError, AttributeError, NameError)


def tell():
    log(S.k, S.t, S.flag, S.l, S.sub.c, K, L, D, Q, N, LOG, O.k, Config.width, DC.v, P, A.n, counted(), np.random.rand(), random.random())
    log(S.held, S.pair, S.table, S.training, list(S.get_parameters()), [name for name, _ in S.parameters_and_names()])


def called(function, value):
    try:
        log(function(value))
    except RAISED as error:
        log(type(error).__name__)
    tell()


def loss(q):
    return S(q)[0].sum()


def by_weights(q):
    return ms.value_and_grad(loss, None, ms.ParameterTuple(S.trainable_params()))(q)


values = [1.0, 2.0, 0.5]
'''
