"""Loss scalers and levels of mixed precision."""
from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import Tensor, amp, nn
from parity.case import case

GRADIENTS = (np.array([1.0, 2.0], np.float32), np.array([3.0], np.float16))


def given():
    return tuple(map(Tensor, GRADIENTS))


@case(over=["static", "dynamic"], graph=True)
def scaled(kind):
    scaler = amp.StaticLossScaler(8) if kind == "static" else amp.DynamicLossScaler(2.0**4, 2, 2)
    found = scaler.scale(given())
    return {**{f"scaled{i}": t.asnumpy() for i, t in enumerate(found)}, "loss": scaler.scale(Tensor(2.0, ms.float32)).asnumpy(),
            **{f"unscaled{i}": t.asnumpy() for i, t in enumerate(scaler.unscale(found))}}


@case(graph=True)
def dynamic_scale_follows_the_gradients():
    scaler, found = amp.DynamicLossScaler(2.0**4, 2, 2), []
    for finite in (True, True, False, True, False, False, False, False, False, True, True):
        scaler.adjust(Tensor(finite))
        found.append([float(scaler.scale_value.asnumpy()), int(scaler.counter.asnumpy())])
    return {"scale and count": found}


@case(over=["O0", "O2", "O3"], rtol=2e-3, atol=1e-3)
def level(item):
    net = nn.SequentialCell(
        nn.Dense(3, 2, weight_init=Tensor(np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]], np.float32)), bias_init="zeros"),
        nn.BatchNorm1d(2), nn.ReLU(),
    )
    net = amp.auto_mixed_precision(net, item)
    net.set_train()
    out = net(Tensor(np.array([[1.0, 2.0, 3.0], [2.0, 1.0, 0.5], [0.5, 0.1, 0.2]], np.float32)))
    return {"out": out.asnumpy().astype(np.float32), "dtype": str(out.dtype)}


@case(over={"level": lambda net: amp.auto_mixed_precision(net, "O7"), "no cell": lambda net: amp.auto_mixed_precision(3, "O2"),
            "no list": lambda net: amp.custom_mixed_precision(net)})
def refused(item):
    try:
        item(nn.Dense(2, 2))
    except (TypeError, ValueError) as error:
        return {"raised": type(error).__name__}
    return {"raised": ""}
