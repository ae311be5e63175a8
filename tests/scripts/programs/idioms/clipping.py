"""Gradient clipping inside a training Cell, in five spellings: by value and by norm in a HyperMap, the global norm, and its own Cell."""
import mindspore.nn as nn
import numpy as np
from mindspore import Tensor, context, ops
from mindspore import dtype as mstype
from mindspore.ops import composite as C
from mindspore.ops import functional as F
from mindspore.ops import operations as P

from measured import MODE, begin, train

context.set_context(mode=MODE)
clip_grad = C.MultitypeFuncGraph("clip_grad")
get_square_sum = C.MultitypeFuncGraph("get_square_sum")
apply_global_norm = C.MultitypeFuncGraph("apply_global_norm")


@clip_grad.register("Number", "Number", "Tensor")
def _clip_grad(clip_type, clip_value, grad):
    if clip_type != 0 and clip_type != 1:
        return grad
    dt = F.dtype(grad)
    if clip_type == 0:
        return C.clip_by_value(grad, F.cast(F.tuple_to_array((-clip_value,)), dt), F.cast(F.tuple_to_array((clip_value,)), dt))
    return nn.ClipByNorm()(grad, F.cast(F.tuple_to_array((clip_value,)), dt))


@get_square_sum.register("Tensor")
def _get_square_sum(grad):
    norm = P.ReduceSum(False)(F.square(grad), ())
    return F.expand_dims(F.cast(norm, mstype.float32), 0)


@apply_global_norm.register("Tensor", "Tensor", "Tensor")
def _apply_global_norm(clip_norm, global_norm, grad):
    return grad * clip_norm / global_norm


class GlobalNorm(nn.Cell):
    def __init__(self):
        super(GlobalNorm, self).__init__()
        self.norm = nn.Norm()
        self.hyper_map = C.HyperMap()

    def construct(self, grads):
        square_sum = self.hyper_map(get_square_sum, grads)
        return F.sqrt(P.AddN()(square_sum))


class ClipByGlobalNorm(nn.Cell):
    def __init__(self, clip_norm=1.0):
        super(ClipByGlobalNorm, self).__init__()
        self.global_norm = GlobalNorm()
        self.clip_norm = Tensor([clip_norm], mstype.float32)
        self.hyper_map = C.HyperMap()
        self.greater_equal = P.GreaterEqual()

    def construct(self, grads):
        global_norm = self.global_norm(grads)
        global_norm = F.select(self.greater_equal(global_norm, self.clip_norm), global_norm, self.clip_norm)
        return self.hyper_map(F.partial(apply_global_norm, self.clip_norm, global_norm), grads)


class TrainOneStep(nn.TrainOneStepCell):
    def __init__(self, network, optimizer, way):
        super(TrainOneStep, self).__init__(network, optimizer)
        self.way = way
        self.hyper_map = C.HyperMap()
        self.clip = ClipByGlobalNorm(0.5)
        self.grad = C.GradOperation(get_by_list=True, sens_param=True)
        self.grad_reducer = F.identity

    def construct(self, x, y):
        loss = self.network(x, y)
        sens = P.Fill()(P.DType()(loss), P.Shape()(loss), 1.0)
        grads = self.grad(self.network, self.weights)(x, y, sens)
        grads = self.grad_reducer(grads)
        if self.way == "value":
            grads = self.hyper_map(F.partial(clip_grad, 0, 0.1), grads)
        elif self.way == "norm":
            grads = self.hyper_map(F.partial(clip_grad, 1, 0.2), grads)
        elif self.way == "global":
            grads = C.clip_by_global_norm(grads, 0.3)
        elif self.way == "own":
            grads = self.clip(grads)
        else:
            grads = ops.clip_by_value(grads, -0.05, 0.05)
        return F.depend(loss, self.optimizer(grads))


random = np.random.RandomState(1)
x, y = Tensor(random.randn(8, 6).astype(np.float32)), Tensor(random.randn(8, 2).astype(np.float32))
for way in ("value", "norm", "global", "own", "list"):
    net = begin(nn.SequentialCell([nn.Dense(6, 5, activation="relu"), nn.Dense(5, 2)]), 2)
    step = TrainOneStep(nn.WithLossCell(net, nn.MSELoss()), nn.Momentum(net.trainable_params(), 0.1, 0.9), way)
    step.set_train()
    train(lambda: step(x, y), net)
