"""Cells around networks: parts of batches, gradients, products with the Jacobian; and the helpers of initializers."""
from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import nn, ops
from mindspore.common import initializer as start
from mindspore.nn.wrap.cell_wrapper import _MicroBatch
from mindspore.nn.wrap.loss_scale import _grad_scale, grad_scale
from parity.case import case, raised

rng = np.random.RandomState(2)
DATA, LABEL = rng.randn(4, 3).astype(np.float32), rng.randn(4, 2).astype(np.float32)


def network():
    net = nn.Dense(3, 2)
    net.weight.set_data(ms.Tensor(np.arange(6, dtype=np.float32).reshape(2, 3) * 0.1))
    net.bias.set_data(ms.Tensor(np.array([0.5, -0.5], np.float32)))
    return nn.WithLossCell(net, nn.MSELoss())


PARTS = {
    "PipelineCell": lambda: nn.PipelineCell(network(), 2), "GradAccumulationCell": lambda: nn.GradAccumulationCell(network(), 4),
    "MicroBatchInterleaved": lambda: nn.MicroBatchInterleaved(network()),
}


@case(over=PARTS, rtol=1e-5)
def parts(make):
    net = make()
    weights = ms.ParameterTuple(net.trainable_params())
    value, gradients = ms.value_and_grad(net, None, weights)(ms.Tensor(DATA), ms.Tensor(LABEL))
    return {"value": value.asnumpy(), "weight": gradients[0].asnumpy(), "names": [weight.name for weight in weights]}


@case()
def micro_batch():
    first, second = _MicroBatch(2)(1, ms.Tensor(DATA), ms.Tensor([1, 2, 3, 4]))
    return {"first": first.asnumpy(), "second": second.asnumpy()}


@case(rtol=1e-5)
def gradients():
    both = nn.WithGradCell(network())(ms.Tensor(DATA), ms.Tensor(LABEL))
    net = network().backbone_network
    weighed = nn.WithGradCell(net, nn.MSELoss(), ms.Tensor(2.0))(ms.Tensor(DATA), ms.Tensor(LABEL))
    reducer = nn.DistributedGradReducer(net.trainable_params(), degree=4, mean=True)
    return {"weight": both[0].asnumpy(), "bias": both[1].asnumpy(), "weighed": weighed[0].asnumpy(), "degree": reducer.degree.asnumpy(),
            "mean": reducer.mean, "filter": list(reducer.allreduce_filter)}  # fmt: skip


class _Product(nn.Cell):
    def construct(self, x, y):
        return x * x * y


class _Square(nn.Cell):
    def construct(self, x):
        return x * x


class _Two(nn.Cell):
    def construct(self, x, y):
        return x * y, x + 2 * y


@case(rtol=1e-5)
def products():
    x, y = ms.Tensor([1.0, 2.0], ms.float32), ms.Tensor([3.0, 4.0], ms.float32)
    v, w = ms.Tensor([1.0, 0.5], ms.float32), ms.Tensor([2.0, 1.0], ms.float32)
    results = {"jvp": nn.Jvp(_Product())(x, y, (v, w)), "jvp_one": nn.Jvp(_Square())(x, v), "vjp": nn.Vjp(_Product())(x, y, v),
             "vjp_one": nn.Vjp(_Square())(x, v)}  # fmt: skip
    answer = {}
    for name, (value, product) in results.items():
        answer[name] = value.asnumpy()
        for i, tensor in enumerate(product if isinstance(product, tuple) else (product,)):
            answer[f"{name}{i}"] = tensor.asnumpy()
    return answer


@case(rtol=1e-6)
def scaled_gradients():
    scale, gradient = ms.Tensor(4.0, ms.float32), ms.Tensor([1.0, 3.0], ms.float32)
    store = ms.Parameter(ms.Tensor([4.0, 8.0], ms.float32), name="store")
    return {
        "scaled": ops.HyperMap()(ops.partial(_grad_scale, scale), (gradient, gradient))[1].asnumpy(),
        "accumulated": grad_scale(scale, gradient, store).asnumpy(), "after": store.asnumpy(),
    }


@case(rtol=1e-6)
def initializer_helpers():
    array = np.zeros((2, 2), np.float32)
    assigned = start._assignment(array, np.ones((2, 2), np.float32))
    return {
        "array": array, "given": np.asarray(assigned), "number": np.asarray(start._assignment(np.zeros(3, np.float32), 2.0)),
        "fan_in": int(start._calculate_correct_fan((4, 3, 2, 2), "fan_in")),
        "fan_out": int(start._calculate_correct_fan((4, 3, 2, 2), "FAN_OUT")),
        "fans": [int(n) for n in start._calculate_fan_in_and_fan_out((4, 3, 2, 2))],
        "fans_of_array": [int(n) for n in start._calculate_in_and_out(np.zeros((4, 3)))],
        "gains": [start._calculate_gain(name) for name in ("tanh", "relu", "sigmoid", "leaky_relu")],
        "slope": start._calculate_gain("leaky_relu", 0.2),
        "seed": list(start._get_graph_seed(3, "x")),
        "shapes": [list(start._init_random_normal(0.0, 1.0, (2, 3)).shape), list(start._init_random_uniform(0.0, 1.0, (2,)).shape)],
        "cut": bool(np.abs(start._init_truncated_normal(-2.0, 2.0, 0.0, 1.0, (1000,))).max() <= 2),
        "errors": [raised(call) for call in (
            lambda: start._calculate_correct_fan((4, 3), "x"), lambda: start._calculate_fan_in_and_fan_out((4,)),
            lambda: start._calculate_gain("other"),
        )],
    }  # fmt: skip


@case()
def own_initializer():
    aliases = dict(start._INITIALIZER_ALIAS)

    @start._register("mine")
    class Mine(start.Initializer):
        def _initialize(self, arr):
            arr[:] = 7

    try:
        return {"output": start.initializer("mine", [2, 2], ms.float32).init_data().asnumpy()}
    finally:
        start._INITIALIZER_ALIAS.clear()
        start._INITIALIZER_ALIAS.update(aliases)


class _HostStatus(nn.TrainOneStepWithLossScaleCell):
    """MindSpore's own look for overflows has no kernel on its CPU."""

    def get_overflow_status(self, status, compute_output):
        finite = ops.isfinite(compute_output[0]).all()
        for gradient in compute_output[1:]:
            finite = ops.logical_and(finite, ops.isfinite(gradient).all())
        return ops.logical_not(finite)

    def start_overflow_check(self, pre_cond, compute_input):
        return False, compute_input


SCALED = {
    "dynamic": lambda: nn.DynamicLossScaleUpdateCell(1024.0, 2, 2), "fixed": lambda: nn.FixedLossScaleUpdateCell(1024.0),
    "tensor": lambda: ms.Tensor(1024.0, ms.float32),
}


@case(over=SCALED, rtol=1e-5, graph=True)
def loss_scale(make):
    """Six steps, the fourth of which overflows."""
    net = network()
    step = _HostStatus(net, nn.Momentum(net.trainable_params(), 0.1, 0.9), make())
    step.set_train()
    scales = []
    for at in range(6):
        _, overflow, scale = step(ms.Tensor(DATA * (1e30 if at == 3 else 1.0)), ms.Tensor(LABEL))
        scales.append([float(bool(overflow.asnumpy())), float(scale.asnumpy())])
    return {"told": scales, **{parameter.name: parameter.asnumpy() for parameter in net.trainable_params()}}
