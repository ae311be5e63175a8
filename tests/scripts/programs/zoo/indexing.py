"""Reading and writing parts of Tensors in every way that programs do, outside and inside construct."""
import sys

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

ms.set_context(mode=ms.GRAPH_MODE if "graph" in sys.argv[1:] else ms.PYNATIVE_MODE)
t = Tensor(np.arange(24).reshape(2, 3, 4).astype(np.float32))


def show(name, value):
    print(name, value.dtype, value.shape, value.asnumpy().tolist())


show("int", t[1])
show("negative", t[-1, -2])
show("slice", t[:, 1:, ::2])
show("ellipsis", t[..., 0])
show("none", t[:, None, 2, :2])
show("list", t[:, [0, 2]])
show("tensor", t[Tensor([1, 0, 1]), 0])
show("two tensors", t[Tensor([0, 1]), Tensor([1, 2])])
show("mixed", t[0, Tensor([[0, 1], [2, 0]]), 1:3])
show("bool", t[Tensor(np.array([True, False]))])
show("mask", t[t > 20])
show("flip", ops.flip(t[0], (0,)))
show("range", t[:, slice(0, 2), 3])
show("row", t[0][1][2])
for index, row in enumerate(t):
    print(index, row.shape, len(row), float(row.sum().asnumpy()))
a, b = t
print(a.shape, b[0, 0].item(), int(t[1, 2, 3]), float(t[0, 0, 1]), 5.0 in t[0, 1].asnumpy())

w = Tensor(np.zeros((3, 4), np.float32))
w[0] = 1
w[1, 1:3] = Tensor([2.0, 3.0])
w[2, [0, 3]] = 4
w[:, 0] += 10
w[w > 10.5] = -1
w[Tensor([0, 2]), Tensor([1, 2])] = Tensor([7.0, 8.0])
w[1:, -1] = [5.0, 6.0]
w[..., 2] *= 2
show("written", w)
v = w[1]
v[0] = 99
show("aliased", w[1])
u = w.view(-1)
u[0] = 55
print(float(w[0, 0]), float(w.reshape(12)[0]), float(w.T[0, 0]))
x = y = Tensor([1.0, 2.0])
x += 1
print(x.asnumpy().tolist(), y.asnumpy().tolist())
p = Parameter(Tensor(np.ones((2, 2), np.float32)), name="p")
p[0, 1] = 3
p[1] = p[0] * 2
show("parameter", p)
print(type(p[0]).__name__, type(p + 1).__name__, type(p).__name__)


class Writer(nn.Cell):
    def __init__(self):
        super().__init__()
        self.table = Parameter(Tensor(np.zeros((4, 2), np.float32)), name="table", requires_grad=False)
        self.count = Parameter(Tensor(0, ms.int32), name="count", requires_grad=False)

    def construct(self, x, index):
        self.table[index] = x
        self.count += 1
        out = ops.zeros((3, 2), ms.float32)
        out[0] = x * 2
        out[1:, 0] = x[0]
        rows = []
        for i in range(self.table.shape[0]):
            if i % 2 == 0:
                rows.append(self.table[i] + i)
        return out, ops.stack(rows), self.table[index], x.flip((0,))


net = Writer()
for step in range(3):
    out, rows, picked, flipped = net(Tensor([1.0 + step, 2.0]), step)
    print(step, out.asnumpy().tolist(), rows.asnumpy().tolist(), picked.asnumpy().tolist(), flipped.asnumpy().tolist())
print(net.table.asnumpy().tolist(), int(net.count.asnumpy()))

grad = ops.grad(lambda a: (a[1:, ::2] * 2).sum() + (a[[0, 0]] ** 2).sum() + a[Tensor([1, 1]), Tensor([0, 0])].sum())(Tensor(np.ones((3, 4)), ms.float32))
show("grad", grad)


def assign_rows(a, b):
    c = a * 1
    c[0] = b
    return (c * c).sum()


ga, gb = ops.grad(assign_rows, (0, 1))(Tensor(np.ones((2, 2)), ms.float32), Tensor([3.0, 4.0]))
show("grad a", ga)
show("grad b", gb)
z = ops.tensor_scatter_update(Tensor(np.zeros((3, 2)), ms.float32), Tensor([[0, 1], [2, 0]]), Tensor([1.0, 2.0]))
show("scatter", z)
show("gather_nd", ops.gather_nd(t, Tensor([[0, 1], [1, 2]])))
show("gather_elements", ops.gather_elements(t[0], 1, Tensor([[0, 1], [2, 3], [1, 1]])))
show("where", ops.where(t[0] > 5, t[0], Tensor(0.0)))
show("select", ops.select(Tensor([True, False]), Tensor([1, 2]), Tensor([3, 4])))
show("masked", ops.masked_select(t[1], t[1] % 2 == 0))
show("index_select", t.index_select(2, Tensor([3, 0]))[0])
show("int index", Tensor([10, 20, 30])[Tensor(1)])
for bad in (lambda: t[2], lambda: t[0, 0, 0, 0], lambda: t["a"]):
    try:
        bad()
        print("no error")
    except (IndexError, TypeError, ValueError) as error:
        print(type(error).__name__)
