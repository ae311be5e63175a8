"""Gradients of networks that assign to their Parameters on the way."""
from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from parity.case import case


class Net(nn.Cell):
    """Two Parameters."""

    def __init__(self):
        super().__init__()
        self.p, self.q = Parameter(Tensor(2.0), name="p"), Parameter(Tensor(5.0), name="q")


class Assign(Net):
    def construct(self, x):
        ops.assign(self.p, x * x)
        return self.p * x


class AssignAdd(Net):
    def construct(self, x):
        ops.assign_add(self.p, x)
        return self.p * x


class AssignSub(Net):
    def construct(self, x):
        ops.assign_sub(self.p, x * x)
        return self.p * x


class Attribute(Net):
    def construct(self, x):
        self.p = x * x
        return self.p * x


class InPlace(Net):
    def construct(self, x):
        self.p += x
        return self.p * x


class Twice(Net):
    def construct(self, x):
        ops.assign(self.p, self.p * x)
        ops.assign(self.p, self.p * x)
        return self.p * 1


class Result(Net):
    def construct(self, x):
        r = ops.assign(self.p, x * x)
        return r * x


class OfAnother(Net):
    def construct(self, x):
        ops.assign(self.p, self.q * x)
        return self.p * x + self.q


KINDS = {kind.__name__: kind for kind in (Assign, AssignAdd, AssignSub, Attribute, InPlace, Twice, Result, OfAnother)}


@case(over=KINDS, graph=True)
def assigned(kind):
    net = kind()
    by_input, by_weights = ms.grad(net, 0, [net.p, net.q])(Tensor(3.0))
    return {"input": by_input.asnumpy(), "weights": np.array([w.asnumpy() for w in by_weights]), "p": net.p.asnumpy()}
