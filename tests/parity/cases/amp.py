"""Loss scalers and levels of mixed precision."""
from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import Tensor, amp, nn, ops
from parity.case import case, raised

GRADIENTS = (np.array([1.0, 2.0], np.float32), np.array([3.0], np.float16))


def gradients():
    return tuple(map(Tensor, GRADIENTS))


@case(over=["static", "dynamic"], graph=True)
def scaled(kind):
    scaler = amp.StaticLossScaler(8) if kind == "static" else amp.DynamicLossScaler(2.0**4, 2, 2)
    result = scaler.scale(gradients())
    return {**{f"scaled{i}": t.asnumpy() for i, t in enumerate(result)}, "loss": scaler.scale(Tensor(2.0, ms.float32)).asnumpy(),
            **{f"unscaled{i}": t.asnumpy() for i, t in enumerate(scaler.unscale(result))}}


@case(graph=True)
def dynamic_scale_follows_the_gradients():
    scaler, results = amp.DynamicLossScaler(2.0**4, 2, 2), []
    for finite in (True, True, False, True, False, False, False, False, False, True, True):
        scaler.adjust(Tensor(finite))
        results.append([float(scaler.scale_value.asnumpy()), int(scaler.counter.asnumpy())])
    return {"scale and count": results}


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


SQUARE = np.array([[0.5, -1.25, 2.1, 0.3], [1.1, 0.7, -0.4, 1.9], [-0.6, 0.2, 1.3, -2.2], [0.9, -0.1, 0.8, 0.4]], np.float32)
FLOAT32 = ms.float32
AT_AUTO = {
    "matmul": lambda x: ops.matmul(x, x), "MatMul": lambda x: ops.MatMul()(x, x), "@": lambda x: x @ x, "bmm": lambda x: ops.bmm(x[None],
    x[None]),
    "dense": lambda x: ops.dense(x, x.astype(FLOAT32), x[0].astype(FLOAT32)), "inner": lambda x: ops.inner(x, x),
    "conv2d": lambda x: ops.conv2d(x[None, None], x[None, None], x[0, :1].astype(FLOAT32)), "addmm": lambda x: ops.addmm(x, x, x),
    "prelu": lambda x: ops.prelu(x, x[0]), "pow": lambda x: x**2, "exp": ops.exp, "log": lambda x: ops.log(ops.abs(x)),
    "sum": lambda x: x.sum(),
    "ReduceSum": lambda x: ops.ReduceSum()(x, 0), "softmax": ops.softmax, "Softmax": lambda x: ops.Softmax()(x),
    "log_softmax": ops.log_softmax,
    "softplus": ops.softplus, "Softplus": lambda x: ops.Softplus()(x), "cumsum": lambda x: ops.cumsum(x, 0),
    "rsqrt": lambda x: ops.rsqrt(ops.abs(x)),
    "layer norm": lambda x: ops.LayerNorm()(x, x[0], x[1])[0], "smooth l1": lambda x: ops.smooth_l1_loss(x, x * 2), "prod": ops.prod,
    "concat": lambda x: ops.concat((x, x.astype(FLOAT32))), "addcmul": lambda x: ops.addcmul(x, x.astype(FLOAT32), x),
    "addn": lambda x: ops.addn([x, x.astype(FLOAT32)]), "add": lambda x: x + x, "relu": ops.relu, "sqrt": lambda x: ops.sqrt(ops.abs(x)),
    "mean": lambda x: x.mean(), "sigmoid": ops.sigmoid, "logsumexp": lambda x: ops.logsumexp(x, 1), "var": lambda x: x.var(),
    "float_power": lambda x: ops.float_power(ops.abs(x), 1.5), "exp of matmul": lambda x: ops.exp(ops.matmul(x, x) * 0.1),
    "loss": lambda x: ops.cross_entropy(x, Tensor(np.array([0, 1, 2, 3], np.int32))),
}


@case(over=AT_AUTO, graph=True, rtol=2e-3, atol=2e-3)
def at_auto(call):
    """In float16 a unit of the last place is 1e-3."""
    results = {}
    for dtype in (ms.float32, ms.float16):
        out = amp.auto_mixed_precision(lambda x: call(x), "auto")(Tensor(SQUARE).astype(dtype))
        results.update({f"{dtype}": out.asnumpy(), f"{dtype} gives": str(out.dtype)})
    return results


class Several(nn.Cell):
    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(4, 4, weight_init=Tensor(SQUARE), bias_init="ones")
        self.free = nn.Dense(4, 4, weight_init=Tensor(SQUARE), bias_init="ones")
        self.free.to_float(ms.float32)
        self.conv = nn.Conv2d(1, 2, 2, weight_init="ones", has_bias=True, bias_init="ones")
        self.norm, self.layer_norm, self.relu = nn.BatchNorm2d(2), nn.LayerNorm((4,)), nn.ReLU()
        self.inner = nn.SequentialCell(nn.Dense(4, 4, weight_init=Tensor(SQUARE), bias_init="zeros"), nn.ReLU())
        self.matmul, self.act, self.outer = ops.MatMul(), ops.ReLU(), ops.Ger()
        self.weight = ms.Parameter(Tensor(SQUARE), name="weight")

    def construct(self, x):
        conv = self.conv(x.reshape((1, 1, 4, 4)))
        return (self.dense(x), self.free(x), conv, self.norm(conv), self.layer_norm(x), self.relu(x), self.inner(x), self.matmul(x,
            self.weight),
                self.act(x), self.outer(x[0], x[1]), ops.matmul(x, self.weight), ops.relu(x), ops.bmm(x[None], x[None]), x * self.weight)


def answers(net):
    out = net(Tensor(SQUARE * 1.2345))
    return {**{f"{i}": t.asnumpy() for i, t in enumerate(out)}, "dtypes": [str(t.dtype) for t in out]}


@case(over=["O0", "O1", "O2", "O3", "auto"], graph=True, rtol=2e-3, atol=4e-3)
def network_at(level):
    return answers(amp.auto_mixed_precision(Several(), level))


@case(over={"Dense": [nn.Dense], "ReLU": [ops.ReLU], "the layer ReLU": [nn.ReLU], "MatMul": [ops.MatMul], "several": [nn.Conv2d, ops.Ger,
    ops.BatchMatMul],
            "none": [], "a container": [nn.SequentialCell]}, graph=True, rtol=1e-3, atol=2e-3)
def white_list(kinds):
    result = answers(amp.custom_mixed_precision(Several(), white_list=kinds))
    out = answers(Several())
    result["changed"] = [not np.array_equal(result[str(i)], out[str(i)]) for i in range(14)]
    return result


@case(over=["O0", "O1", "O2", "O3", "auto"], graph=True, rtol=3e-3, atol=1e-3)
def training_step(level):
    results = {}
    for name, keywords in {"": {}, "float32": {"cast_model_type": ms.float32}, "float16": {"cast_model_type": ms.float16}}.items():
        net = nn.SequentialCell(nn.Dense(4, 4, weight_init=Tensor(SQUARE), bias_init="zeros"), nn.ReLU(), nn.Dense(4, 2,
            weight_init=Tensor(SQUARE[:2])))
        net[2].bias.set_data(Tensor(np.zeros(2, np.float32)))
        step = amp.build_train_network(net, nn.SGD(net.trainable_params(), 0.02), nn.MSELoss(), level=level, loss_scale_manager=None,
            **keywords)
        results[f"losses {name}"] = np.array([step(Tensor(SQUARE), Tensor(SQUARE[:, :2])).asnumpy() for _ in range(3)])
        results[f"weight {name}"] = net[0].weight.asnumpy()
    return results


@case()
def lists():
    def named(kinds):
        return [kind.__name__ for kind in kinds]

    amp.get_white_list().clear()
    return {"white": named(amp.get_white_list()), "black": named(amp.get_black_list())}


@case(over={
    "no class": lambda: amp.custom_mixed_precision(nn.Dense(2, 2), white_list=[3]), "text": lambda: amp.custom_mixed_precision(nn.Dense(2,
    2), white_list="x"),
    "a Cell": lambda: amp.custom_mixed_precision(nn.Dense(2, 2), black_list=[nn.Dense(2, 2)]),
    "both": lambda: amp.custom_mixed_precision(nn.Dense(2, 2), black_list=[nn.Dense], white_list=[nn.Dense]),
    "a primitive": lambda: amp.custom_mixed_precision(nn.Dense(2, 2), black_list=[ops.MatMul]),
    "function at O1": lambda: amp.auto_mixed_precision(lambda x: x, "O1"), "dtype": lambda: amp.auto_mixed_precision(nn.Dense(2, 2), "O1",
    ms.float32),
})
def refused_list(call):
    return {"raised": raised(call)}


@case(over={"level": lambda net: amp.auto_mixed_precision(net, "O7"), "no cell": lambda net: amp.auto_mixed_precision(3, "O2"),
            "no list": lambda net: amp.custom_mixed_precision(net)})
def refused(item):
    try:
        item(nn.Dense(2, 2))
    except (TypeError, ValueError) as error:
        return {"raised": type(error).__name__}
    return {"raised": ""}
