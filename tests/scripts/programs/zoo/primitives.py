"""Primitives of one's own and the zoo's ways with operators: PrimitiveWithInfer, prim_attr_register, operators as attributes."""
import sys

import numpy as np
from mindspore import Tensor, context, nn, ops
from mindspore.common import dtype as mstype
from mindspore.common.parameter import Parameter
from mindspore.ops import composite as C
from mindspore.ops import functional as F
from mindspore.ops import operations as P
from mindspore.ops.primitive import Primitive, prim_attr_register

mode = context.GRAPH_MODE if "graph" in sys.argv[1:] else context.PYNATIVE_MODE
context.set_context(mode=mode, device_target="CPU", save_graphs=False)


class Described(Primitive):
    @prim_attr_register
    def __init__(self, axis=0, keep=True):
        """Init."""
        self.init_prim_io_names(inputs=["x"], outputs=["y"])


described = Described(1, keep=False)
print(described.name, described.axis, described.keep)
described.add_prim_attr("extra", 7)
print(described.attrs["axis"], described.attrs["extra"])

add_n = C.MultitypeFuncGraph("add_n")


@add_n.register("Number", "Number")
def _add_numbers(a, b):
    return a + b


@add_n.register("Tensor", "Number")
def _add_tensor_number(a, b):
    return a * b


@add_n.register("Tensor", "Tensor")
def _add_tensors(a, b):
    return P.Add()(a, b)


print(add_n(1, 2), add_n(Tensor([2.0]), 4).asnumpy().tolist(), C.HyperMap(add_n)((Tensor([1.0]), Tensor([2.0])), (Tensor([3.0]), 5)))
hyper = C.HyperMap()
pairs = hyper(F.partial(add_n, Tensor([10.0])), (Tensor([1.0]), Tensor([2.0])))
print([p.asnumpy().tolist() for p in pairs], [v.asnumpy().tolist() for v in C.Map()(lambda a: a * 2, (Tensor([1.0]), Tensor([2.0])))])


class Zoo(nn.Cell):
    def __init__(self):
        super(Zoo, self).__init__()
        self.concat = P.Concat(axis=1)
        self.slice = P.Slice()
        self.strided = P.StridedSlice(begin_mask=1)
        self.topk = P.TopK(sorted=True)
        self.one_hot = P.OneHot()
        self.on, self.off = Tensor(1.0, mstype.float32), Tensor(0.0, mstype.float32)
        self.reduce_sum = P.ReduceSum(keep_dims=True)
        self.arg = P.ArgMaxWithValue(axis=1)
        self.argmax = P.Argmax(axis=1, output_type=mstype.int32)
        self.gather = P.Gather()
        self.tile, self.expand, self.squeeze = P.Tile(), P.ExpandDims(), P.Squeeze(1)
        self.transpose, self.stack, self.unstack = P.Transpose(), P.Stack(axis=1), P.Unstack(axis=0)
        self.pad = P.Pad(((0, 0), (1, 1)))
        self.select, self.less, self.cast = P.Select(), P.Less(), P.Cast()
        self.batch_matmul = P.BatchMatMul(transpose_b=True)
        self.softmax = P.Softmax(axis=-1)
        self.cum = P.CumSum()
        self.eps = 1e-6

    def construct(self, x, index):
        joined = self.concat((x, self.tile(x, (1, 2))))
        part = self.slice(joined, (0, 1), (2, 3))
        strided = self.strided(joined, (1, 0), (2, 6), (1, 2))
        values, positions = self.topk(x, 2)
        position, best = self.arg(x)
        hot = self.one_hot(self.argmax(x), 3, self.on, self.off)
        normed = x / (self.reduce_sum(x * x, 1) + self.eps)
        picked = self.gather(x, index, 1)
        wide = self.squeeze(self.expand(x, 1))
        flipped = self.transpose(self.pad(wide), (1, 0))
        rows = self.unstack(x)
        back = self.stack((rows[0], rows[1]))
        chosen = self.select(self.less(x, 0.0), x, F.zeros_like(x))
        scores = self.softmax(self.batch_matmul(self.expand(x, 0), self.expand(x, 0)))
        return (part, strided, values, positions, position, best, hot, normed, picked, flipped, back, chosen, scores, self.cum(x, 1),
                self.cast(x, mstype.int32), F.tuple_to_array((1, 2, 3)), F.shape(x))


x = Tensor(np.array([[1.5, -2.0, 0.5], [0.25, 3.0, -1.0]], np.float32))
for index, out in enumerate(Zoo()(x, Tensor([2, 0], mstype.int32))):
    print(index, out if isinstance(out, tuple) else (out.dtype, out.shape, np.round(out.asnumpy(), 4).tolist()))

accumulator = Parameter(Tensor([1.0, 1.0]), name="accumulator")
P.AssignAdd()(accumulator, Tensor([1.0, 2.0]))
P.AssignSub()(accumulator, Tensor([0.5, 0.5]))
print(accumulator.asnumpy().tolist(), P.Assign()(accumulator, Tensor([9.0, 9.0])).asnumpy().tolist())
print(P.Shape()(x), P.Rank()(x), P.DType()(x), P.Size()(x), P.Fill()(mstype.int32, (2,), 3).asnumpy().tolist(), P.Eye()(2, 2, mstype.float32).asnumpy().tolist())
print(P.Range()(Tensor(0, mstype.int32), Tensor(6, mstype.int32), Tensor(2, mstype.int32)).asnumpy().tolist(), P.Ones()((2,), mstype.float32).asnumpy().tolist())
loss, dlogits = P.SoftmaxCrossEntropyWithLogits()(x, Tensor([[0.0, 1.0, 0.0], [0.0, 1.0, 0.0]]))
print(np.round(loss.asnumpy(), 4).tolist(), np.round(dlogits.asnumpy(), 4).tolist())
print(np.round(P.LayerNorm()(x, Tensor([1.0, 1.0, 1.0]), Tensor([0.0, 0.0, 0.0]))[0].asnumpy(), 3).tolist())
grad_all = C.GradOperation(get_all=True)
gx, gi = grad_all(lambda a, b: (P.MatMul(transpose_b=True)(a, b) * a[:, :2]).sum())(x, x * 2)
print(np.round(gx.asnumpy(), 3).tolist(), np.round(gi.asnumpy(), 3).tolist())
by_list = C.GradOperation(get_all=True, get_by_list=True)
dense = nn.Dense(3, 1, weight_init="ones")
dense.bias.set_data(Tensor([0.5]))
inputs, weights = by_list(dense, dense.trainable_params())(x)
print([g.asnumpy().tolist() for g in inputs], [g.asnumpy().tolist() for g in weights])
