"""Hooks on gradients of Tensors and Parameters: Tensor.register_hook inside of a transform and outside, several, and taken away again."""
import mindspore as ms
from mindspore import Parameter, Tensor, nn, ops
from parity.case import case

X = [1.0, 2.0]


def twice(gradient):
    return gradient * 2


class Weighted(nn.Cell):
    """Multiplies by a Parameter, with a hook on the product."""

    def __init__(self):
        super().__init__()
        self.weight = Parameter(Tensor([2.0, 3.0]), name="weight")

    def construct(self, x):
        y = self.weight * x
        y.register_hook(twice)
        return (y * y).sum()


def inside(x):
    y = x * 3
    y.register_hook(twice)
    return (y * y).sum()


def several(x):
    y = x * 3
    y.register_hook(lambda gradient: None)
    y.register_hook(twice)
    y.register_hook(lambda gradient: gradient + 1)
    return (y * y).sum()


def removed(x):
    y = x * 3
    y.register_hook(twice).remove()
    return (y * y).sum()


def late(x):
    y = x * 3
    z = y * y
    y.register_hook(twice)
    return z.sum()


@case(rtol=1e-6, graph=True)
def register_hook():
    results = {way.__name__: ms.grad(way)(Tensor(X)).asnumpy() for way in (inside, several, removed, late)}
    net = Weighted()
    gradient = ops.GradOperation(get_all=True, get_by_list=True)(net, ms.ParameterTuple([net.weight]))
    handle = net.weight.register_hook(twice)
    for name in ("with", "without"):
        inputs, weights = gradient(Tensor(X))
        results[name + "_input"], results[name + "_weight"] = inputs[0].asnumpy(), weights[0].asnumpy()
        handle.remove()
    return results
