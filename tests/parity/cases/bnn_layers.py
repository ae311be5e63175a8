"""Layers whose weights are drawn: what of them is no chance."""
from __future__ import annotations

import numpy as np
from mindspore import Tensor, nn
from mindspore.nn.probability import bnn_layers
from parity.case import case, raised

LAYERS = {
    "dense": lambda: bnn_layers.DenseReparam(3, 2, activation="relu"), "dense, no bias": lambda: bnn_layers.DenseReparam(3, 2,
    has_bias=False),
    "local": lambda: bnn_layers.DenseLocalReparam(3, 2), "conv": lambda: bnn_layers.ConvReparam(1, 2, 2, pad_mode="valid", has_bias=True),
    "conv, strides": lambda: bnn_layers.ConvReparam(1, 2, (2, 3), stride=2, dilation=1),
    "own prior": lambda: bnn_layers.DenseReparam(3, 2, weight_prior_fn=lambda: bnn_layers.NormalPrior(mean=1, std=0.5)),
}
ROWS, IMAGE = Tensor(np.arange(6).reshape(2, 3).astype(np.float32)), Tensor(np.arange(16).reshape(1, 1, 4, 4).astype(np.float32) / 4)


def fixed(cell, width):
    for index, p in enumerate(cell.get_parameters()):
        p.set_data(Tensor(np.full(p.shape, 0.1 * (index + 1) if "mean" in p.name else width, np.float32)))
    return cell


@case(over=LAYERS, graph=True, rtol=1e-3, atol=1e-4)
def layer(make):
    """With a width of 1e-6 what is drawn is the mean."""
    cell = fixed(make(), -1.0)
    results = {"kl": cell.compute_kl_loss().asnumpy(), "names": [p.name for p in cell.get_parameters() if "posterior" in p.name]}
    cell = fixed(cell, -30.0)
    out = cell(IMAGE if "Conv" in type(cell).__name__ else ROWS)
    return {**results, "out": out.asnumpy(), "shapes": [list(p.shape) for p in cell.get_parameters()]}


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first, self.second = bnn_layers.DenseReparam(3, 2), bnn_layers.DenseLocalReparam(2, 2)

    def construct(self, x):
        return self.second(self.first(x))


@case(graph=True, rtol=1e-2, atol=1e-3)
def loss_and_gradients():
    """Weights are drawn within 3e-4 of their means."""
    net = fixed(Net(), -8.0)
    cell = bnn_layers.WithBNNLossCell(net, nn.MSELoss(), dnn_factor=2.0, bnn_factor=1e-6)
    step = nn.TrainOneStepCell(cell, nn.SGD(net.trainable_params(), 1e-3))
    losses = [float(step(ROWS, Tensor(np.ones((2, 2), np.float32))).asnumpy()) for _ in range(2)]
    return {"losses": np.array(losses, np.float32), "means": net.first.weight_posterior.mean.asnumpy()}


@case(rtol=1e-5)
def distributions():
    prior = bnn_layers.NormalPrior(mean=1, std=2)
    posterior = fixed(bnn_layers.NormalPosterior("w", (2, 3)), -1.0)
    value = Tensor(np.array([[0.0, 1.0, 2.0]], np.float32))
    return {"log_prob": prior("log_prob", value).asnumpy(), "prob": prior("prob", value).asnumpy(),
            "sd": posterior("sd").asnumpy(), "mean": posterior("mean").asnumpy(), "names": [p.name for p in posterior.get_parameters()],
            "shape": list(posterior("sample").shape)}


@case(over={
    "name": lambda: bnn_layers.NormalPosterior(3, (2,)), "shape": lambda: bnn_layers.NormalPosterior("w", "x"),
    "width": lambda: bnn_layers.NormalPosterior("w", (2,), loc_std=-1), "mean": lambda: bnn_layers.NormalPosterior("w", (2,),
    untransformed_scale_mean="a"),
    "channels": lambda: bnn_layers.DenseReparam("a", 2), "none": lambda: bnn_layers.DenseReparam(0, 2),
    "bias": lambda: bnn_layers.DenseReparam(3, 2, has_bias=3), "prior": lambda: bnn_layers.DenseReparam(3, 2, weight_prior_fn=3),
    "kernel": lambda: bnn_layers.ConvReparam(1, 2, 0), "activation": lambda: bnn_layers.DenseReparam(3, 2, activation=3),
    "factor": lambda: bnn_layers.WithBNNLossCell(nn.Dense(2, 2), nn.MSELoss(), "a"),
    "below": lambda: bnn_layers.WithBNNLossCell(nn.Dense(2, 2), nn.MSELoss(), -1), "sd": lambda: bnn_layers.NormalPrior(std=-1),
})
def refused(call):
    return {"raised": raised(call)}
