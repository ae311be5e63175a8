"""Hooks: forward pre hooks, forward hooks and backward hooks of Cells, of Tensors, HookBackward; they run in PyNative (1.x and 2.x)."""
import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

from measured import begin, report

ms.set_context(mode=ms.PYNATIVE_MODE)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Dense(3, 4), nn.Dense(4, 2)
        self.relu = nn.ReLU()

    def construct(self, x):
        return self.second(self.relu(self.first(x)))


net = begin(Net(), 1)
x = Tensor(np.random.RandomState(1).randn(2, 3).astype(np.float32))
gradients_seen = []


def before(cell, inputs):
    gradients_seen.append(type(cell).__name__)
    return (inputs[0] * 2,)


def after(cell, inputs, output):
    gradients_seen.append(output.shape)
    return output + 1


def backward(cell, grad_input, grad_output):
    gradients_seen.append(len(grad_output))


handles = [net.first.register_forward_pre_hook(before), net.first.register_forward_hook(after), net.second.register_backward_hook(backward)]
gradient = ops.GradOperation(get_all=True)
report(net(x))
report(gradient(net)(x))
print(gradients_seen)
for handle in handles:
    handle.remove()
del gradients_seen[:]
report(net(x), gradient(net)(x))
print(gradients_seen)


def show(grads):
    report(grads)
    return (grads[0] * 5,) if isinstance(grads, tuple) else grads * 5


hook = ops.HookBackward(show)


def function(x, y):
    z = hook(x * y)
    return z * y


report(ops.GradOperation(get_all=True)(function)(Tensor([1.0, 2.0]), Tensor([3.0, 4.0])))


def watched(x):
    y = x * 3
    y.register_hook(lambda gradient: gradient * 2)
    return (y * y).sum()


report(ms.grad(watched)(Tensor([1.0, 2.0])))
