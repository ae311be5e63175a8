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
    results = []
    for step in range(7):
        gradients = (Tensor(np.full((1, 2), step + 1, np.float32)), Tensor(np.array([1.0], np.float32)))
        accumulation(Tensor(1.0, ms.float32), gradients)
        results.append(net.weight.asnumpy().copy())
    return {"weights": np.stack(results), "names": [p.name for p in accumulation.get_parameters()]}


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


class Small(nn.Cell):
    """Four layers with weights of their own, and names that say what they are."""

    def __init__(self):
        super().__init__()
        draw = np.random.RandomState(3)

        def weight(*shape):
            return Tensor(draw.uniform(-0.5, 0.5, shape).astype(np.float32))

        self.conv = nn.Conv2d(2, 4, 3, group=2, has_bias=True, weight_init=weight(4, 1, 3, 3), bias_init="zeros")
        self.bn = nn.BatchNorm2d(4)
        self.middle = nn.Dense(4, 6, weight_init=weight(6, 4), bias_init="zeros")
        self.head = nn.Dense(6, 3, weight_init=weight(3, 6), bias_init="zeros")

    def construct(self, x):
        return self.head(ops.tanh(self.middle(self.bn(self.conv(x)).mean((2, 3)))))


def batch():
    draw = np.random.RandomState(4)
    return Tensor(draw.rand(4, 2, 5, 5).astype(np.float32)), Tensor(draw.rand(4, 3).astype(np.float32))


def trained(net, step, steps):
    losses = []
    for _ in range(steps):
        loss = step(*batch())
        losses.append(0.0 if loss is None else float(loss.asnumpy()))
    # MindSpore's FreezeOpt renames the network's Parameters, so that checkpoints no longer fit the network.
    names = [parameter.name.replace("single_opt.", "") for parameter in net.get_parameters()]
    weights = np.concatenate([p.asnumpy().reshape(-1) for p in net.get_parameters()])
    return {"losses": np.array(losses, np.float32), "names": names, "weights": weights}


@case(rtol=1e-5, atol=1e-6, graph=True)
def less_bn_replaces_the_last_dense():
    net = Small()
    less = boost.LessBN(net, fn_flag=True)
    step = nn.TrainOneStepCell(nn.WithLossCell(less, nn.MSELoss()), nn.SGD(less.trainable_params(), 0.1)).set_train()
    return {**trained(less, step, 3), "head": type(net.head).__name__, "flag": net.get_flags()["less_bn"]}


@case(rtol=1e-5, atol=1e-6, over={"groups": True, "plain": False})
def centred_gradients(in_groups):
    net = Small()
    optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9, weight_decay=0.01)
    process = boost.OptimizerProcess(optimizer)
    if in_groups:
        process.origin_params = boost.ParameterProcess.generate_group_params(net.trainable_params(), [
            {"params": net.trainable_params()[:2], "lr": 0.2}, {"params": net.trainable_params()[2:5]},
        ])
    process.add_grad_centralization(net)
    update = process.generate_new_optimizer()
    fusions = [p.comm_fusion for p in boost.ParameterProcess().assign_parameter_group(net.trainable_params(), [2, 5])]
    groups = [[p.name for p in param["params"]] for param in process.origin_params] if in_groups else []
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer if in_groups else update).set_train()
    return {**trained(net, step, 3), "groups": groups, "fusions": fusions, "kind": type(update).__name__,
            "flags": list(update.grad_centralization_flags) if in_groups else []}


@case(over={"continuous": (0, 0.5), "mixed": (1, 0.7), "one": (0, 0.7)})
def turns_of_layers(kind):
    freeze = boost.GradientFreeze(3, kind[0], kind[1], 100)
    sets = [[p.name for p in group] for group in freeze.split_parameters_groups(Small(), 3)]
    np.random.seed(5)
    return {"turns": freeze.generate_freeze_index_sequence(3, *kind, 100), "one": freeze.generate_freeze_index_sequence(1, *kind, 10),
            "sets": sets}


@case(over={"number": 0.1, "by step": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]}, rtol=1e-5, atol=1e-6)
def layers_that_rest(rate):
    net = Small()
    names = [p for p in net.trainable_params() if "head" in p.name]
    optimizer = nn.Momentum(net.trainable_params(), rate, 0.9)
    frozen = boost.FreezeOpt(optimizer, [net.trainable_params(), names], [0, 1, 1, 0, 1, 0])
    step = boost.BoostTrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), frozen).set_train()
    state = sorted(p.name.replace("single_opt.", "") for opt in frozen.opts for p in opt.get_parameters())
    return {**trained(net, step, 5), "state": state}


@case(rtol=1e-5, atol=1e-6, over={"continuous": 0, "mixed": 1})
def a_network_that_freezes(kind):
    net = Small()
    np.random.seed(6)
    loss = nn.WithLossCell(net, nn.MSELoss())
    network, optimizer = boost.GradientFreeze(2, kind, 0.6, 20).freeze_generate(loss, nn.SGD(net.trainable_params(), 0.1))
    return trained(net, boost.BoostTrainOneStepCell(network, optimizer).set_train(), 4)


@case()
def configurations_of_boost():
    results = {}
    for name, level, config in (
        ("nothing", "O0", ""), ("level", "O2", ""), ("manual", "O0", {"boost": {"mode": "manual", "adasum": True}}),
        ("all", "O0", {"boost": {"mode": "enable_all"}, "grad_freeze": {"freeze_p": 0.25}, "common": {"device_number": 4}}),
        ("none", "O1", {"boost": {"mode": "disable_all"}, "grad_freeze": {"freeze_p": 0.25}}),
    ):
        boost.AutoBoost._instance = None
        auto_boost = boost.AutoBoost(level, config)
        chosen = [f"{key} {auto_boost.boost_config[key]}" for key in sorted(auto_boost.boost_config)]
        results[name] = [*chosen, str(auto_boost._freeze_p), str(auto_boost.device_number)]
    boost.AutoBoost._instance = None
    return results


@case(rtol=1e-4, atol=1e-6)
def few_directions():
    net = Small()
    loss = nn.WithLossCell(net, nn.MSELoss()).set_train()
    weights = ms.ParameterTuple(net.trainable_params())
    size = sum(p.size for p in weights)
    directions = np.linalg.qr(np.random.RandomState(7).normal(size=(size, 3)))[0].T
    optimizer = nn.SGD(net.trainable_params(), learning_rate=1.0)
    copies = weights.clone("copies", "same")
    reduce = boost.DimReduce(loss, optimizer, weights, directions, 3, 0.55, 0.9, 0.1, 0.4, 0, 1)
    results = []
    for _ in range(4):
        value, grads = ms.value_and_grad(loss, None, weights)(*batch())
        results.append(float(reduce(value, grads, Tensor(1.0, ms.float32), weights, copies, *batch()).asnumpy()))
    return {"losses": np.array(results, np.float32), "bk": reduce.bk.asnumpy(),
            "weights": np.concatenate([p.asnumpy().reshape(-1) for p in weights])}


@case(rtol=1e-5, atol=1e-6)
def a_model_that_is_boosted():
    boost.AutoBoost._instance = None
    net = Small()
    np.random.seed(8)
    model = ms.Model(net, nn.MSELoss(), nn.Momentum(net.trainable_params(), 0.1, 0.9), metrics={"loss"}, boost_level="O1",
                     boost_config_dict={"less_bn": {"gc_flag": False}, "grad_freeze": {"param_groups": 2, "total_steps": 20}})
    step = model.train_network.set_train()
    results = {**trained(net, step, 3), "kind": type(step).__name__}
    boost.AutoBoost._instance = None
    return results
