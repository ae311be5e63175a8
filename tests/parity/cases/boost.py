"""Accumulated gradients, and what optimizers of programs ask of their base."""
from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import Tensor, boost, nn, ops
from mindspore.boost.grad_accumulation import gradient_accumulation_op, gradient_clear_op
from parity.case import case


def dense():
    return nn.Dense(2, 1, weight_init=Tensor(np.array([[0.5, -0.5]], np.float32)), bias_init="zeros")


@case()
def gradient_accumulation():
    net = dense()
    optimizer = nn.SGD(net.trainable_params(), 0.5)
    accumulation = boost.GradientAccumulation(3, optimizer)
    found = []
    for step in range(7):
        gradients = (Tensor(np.full((1, 2), step + 1, np.float32)), Tensor(np.array([1.0], np.float32)))
        accumulation(Tensor(1.0, ms.float32), gradients)
        found.append(net.weight.asnumpy().copy())
    return {"weights": np.stack(found), "names": [p.name for p in accumulation.get_parameters()]}


@case()
def operators_of_accumulation():
    total = ms.Parameter(Tensor(np.array([1.0, 2.0], np.float32)), name="total")
    each = ops.HyperMap()
    each(ops.partial(gradient_accumulation_op, 4), (total,), (Tensor(np.array([4.0, 8.0], np.float32)),))
    added = total.asnumpy().copy()
    each(ops.partial(gradient_clear_op), (total,))
    return {"added": added, "cleared": total.asnumpy()}


class Own(nn.Optimizer):
    """Written as packages write optimizers."""

    def construct(self, gradients):
        gradients = self.flatten_gradients(gradients)
        gradients = self.decay_weight(gradients)
        gradients = self.gradients_centralization(gradients)
        gradients = self.scale_grad(gradients)
        gradients = self._grad_sparse_indices_deduplicate(gradients)
        rate = self.get_lr()
        if self._is_dynamic_lr_or_weight_decay():
            self.assignadd(self.global_step, self.global_step_increase_tensor)
        for parameter, gradient in zip(self._parameters, gradients):
            ops.assign_sub(parameter, rate * gradient)
        return True


@case(over={"fixed": 0.1, "dynamic": [0.1, 0.2, 0.3, 0.4]}, rtol=1e-6)
def own_optimizer(rate):
    net = dense()
    optimizer = Own(rate, net.trainable_params(), 0.01, 2.0)
    for _ in range(3):
        optimizer((Tensor(np.array([[1.0, 2.0]], np.float32)), Tensor(np.array([0.5], np.float32))))
    return {"weight": net.weight.asnumpy(), "bias": net.bias.asnumpy(), "step": int(optimizer.global_step.asnumpy()[0]),
            "name": optimizer.cls_name}
