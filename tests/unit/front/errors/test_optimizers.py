"""What optimizers and learning rates say of bad arguments."""
from __future__ import annotations

import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn
from mindspore.experimental import optim
from support.error_messages import Bad, check

from torchspore.errors import NameRefused


def z(*shape, d=np.float32):
    return Tensor(np.zeros(shape, d))


def p(name="w"):
    return Parameter(z(2), name=name)


BAD = {
    "beta_type": Bad(lambda: nn.Adam([p()], beta1=1), TypeError, "Adam(beta1=1)", "expected a float, got int."),
    "beta_value": Bad(lambda: nn.Adam([p()], beta1=1.5), ValueError, "Adam(beta1=1.5)", "expected a number between 0 and 1."),
    "eps": Bad(lambda: nn.Adam([p()], eps=0.0), ValueError, "Adam(eps=0.0)", "expected a number above 0."),
    "adam_flag": Bad(lambda: nn.Adam([p()], use_nesterov=1), TypeError, "Adam(use_nesterov=1)", "expected a bool, got int."),
    "adam_unknown": Bad(lambda: nn.Adam([p()], foo=1), TypeError, "Adam(foo=1)", "expected one of use_amsgrad, use_lazy, use_offload."),
    "adam_option": Bad(lambda: nn.Adam([p()], use_offload=1), TypeError, "Adam(use_offload=1)", "expected a bool, got int."),
    "loss_scale": Bad(lambda: nn.SGD([p()], loss_scale=0), ValueError, "SGD(loss_scale=0)", "expected a number above 0."),
    "loss_scale_type": Bad(lambda: nn.SGD([p()], loss_scale="a"), TypeError, "SGD(loss_scale='a')", "expected a number, got str."),
    "count": Bad(lambda: nn.SGD([p()])(()), ValueError, "SGD", "expected 1 gradients, one for each Parameter, got 0."),
    "no_tuple": Bad(
        lambda: nn.SGD([p()])(z(2)), TypeError, "SGD(gradients)", "expected a tuple of gradients, one for each Parameter, got Tensor.",
    ),
    "no_gradient": Bad(
        lambda: nn.SGD([p(), p("q")])((z(2), None)), TypeError,
        "SGD(gradients)", "expected a tuple of gradients, one for each Parameter, got NoneType at index 1.",
    ),
    "gradient_shape": Bad(
        lambda: nn.Adam([p()])((z(1),)), ValueError,
        "Adam(gradients): the gradient of 'w' with shape [1]", "expected the Parameter's shape, [2].",
    ),
    "experimental_no_tuple": Bad(
        lambda: optim.Adam([p()])(z(2)), TypeError, "Adam(gradients)", "expected a tuple of gradients, one for each Parameter, got Tensor.",
    ),
    "experimental_no_gradient": Bad(
        lambda: optim.Rprop([p()])([None]), TypeError,
        "Rprop(gradients)", "expected a tuple of gradients, one for each Parameter, got NoneType at index 0.",
    ),
    "experimental_gradient_shape": Bad(
        lambda: optim.SGD([p()], 0.1)((z(),)), ValueError,
        "SGD(gradients): the gradient of 'w' with shape []", "expected the Parameter's shape, [2].",
    ),
    "sequential": Bad(
        lambda: optim.lr_scheduler.SequentialLR(optim.SGD([p()], 0.1), [3], []), TypeError,
        "SequentialLR(schedulers=[3])", "expected a list of schedulers.",
    ),
    "restarts_epoch": Bad(
        lambda: optim.lr_scheduler.CosineAnnealingWarmRestarts(optim.SGD([p()], 0.1), 2).step("a"), TypeError,
        "CosineAnnealingWarmRestarts.step('a')", "expected a number, got str.",
    ),
    "lr_parameter": Bad(
        lambda: nn.SGD([p()]).get_lr_parameter(p("other")), ValueError,
        "get_lr_parameter",
        "'other' is not one of this optimizer's Parameters.",
    ),
    "lr_parameter_list": Bad(
        lambda: nn.SGD([p()]).get_lr_parameter([1]), TypeError, "get_lr_parameter([1])", "expected Parameters, got int.",
    ),
    "lr_parameter_type": Bad(
        lambda: nn.SGD([p()]).get_lr_parameter(1), TypeError, "get_lr_parameter(1)", "expected a Parameter or a list, got int.",
    ),
    "decay": Bad(lambda: nn.SGD([p()], weight_decay=-1.0), ValueError, "SGD(weight_decay=-1.0)", "expected a number from 0 on."),
    "decay_type": Bad(lambda: nn.SGD([p()], weight_decay="a"), TypeError, "SGD(weight_decay='a')", "expected a number, got str."),
    "rate_bool": Bad(
        lambda: nn.SGD([p()], True), TypeError,
        "SGD(learning_rate=True)",
        "expected a number, rates or a LearningRateSchedule, got bool.",
    ),
    "rate_value": Bad(lambda: nn.SGD([p()], -0.1), ValueError, "SGD(learning_rate=-0.1)", "expected a number from 0 on."),
    "rate_axes": Bad(
        lambda: nn.SGD([p()], z(2, 2)), ValueError,
        "SGD(learning_rate=Tensor of shape (2, 2))",
        "expected none or one axis.",
    ),
    "rate_type": Bad(
        lambda: nn.SGD([p()], object), TypeError,
        "SGD(learning_rate=<class 'object'>)",
        "expected a number, rates or a LearningRateSchedule, got type.",
    ),
    "params_type": Bad(
        lambda: nn.SGD(p()), TypeError,
        "SGD(parameters=Parameter)",
        "expected a list of Parameters.",
        "write net.trainable_params().",
    ),
    "params_none": Bad(
        lambda: nn.SGD([]), ValueError,
        "SGD(parameters=[])",
        "expected at least one Parameter. For 'Optimizer', the argument parameters must not be empty.",
        "check their requires_grad.",
    ),
    "no_construct": Bad(
        lambda: nn.Optimizer(0.1, [p()])((z(2),)), NotImplementedError, "Optimizer.construct",
        "expected a subclass that defines construct(self, gradients).",
    ),
    "params_item": Bad(lambda: nn.SGD([3]), TypeError, "SGD(parameters=...)", "expected Parameters, got int."),
    "groups_item": Bad(
        lambda: nn.SGD([{"params": [p()]}, 3]), TypeError,
        "SGD(parameters=...)",
        "expected groups only, got int among them.",
    ),
    "groups_key": Bad(
        lambda: nn.SGD([{"params": [p()], "rate": 1}]), NameRefused,
        "SGD",
        "group with params, rate: expected the keys params, lr, weight_decay, grad_centralization, order_params.",
    ),
    "twice": Bad(
        lambda: nn.SGD([p(), p()]), ValueError,
        "SGD",
        "two Parameters have the name 'w', or one occurs twice.",
        "give each a unique name.",
    ),
    "order": Bad(
        lambda: nn.SGD([{"params": [p("a"), p("b")]}, {"order_params": [p("c")]}]), ValueError,
        "SGD",
        "order_params lacks a, b.",
    ),
    "momentum": Bad(lambda: nn.Momentum([p()], 0.1, -1.0), ValueError, "Momentum(momentum=-1.0)", "expected a number from 0 on."),
    "momentum_type": Bad(lambda: nn.Momentum([p()], 0.1, "a"), TypeError, "Momentum(momentum='a')", "expected a float, got str."),
    "nesterov": Bad(
        lambda: nn.Momentum([p()], 0.1, 0.9, use_nesterov=1), TypeError,
        "Momentum(use_nesterov=1)",
        "expected a bool, got int.",
    ),
    "sgd_value": Bad(lambda: nn.SGD([p()], momentum=-1.0), ValueError, "SGD(momentum=-1.0)", "expected a number from 0 on."),
    "sgd_nesterov_type": Bad(lambda: nn.SGD([p()], nesterov=1), TypeError, "SGD(nesterov=1)", "expected a bool, got int."),
    "sgd_nesterov": Bad(
        lambda: nn.SGD([p()], nesterov=True), ValueError,
        "SGD(nesterov=True, momentum=0.0, dampening=0.0)",
        "expected a momentum above 0 and no dampening.",
    ),
    "decay_rate_type": Bad(
        lambda: nn.ExponentialDecayLR("a", 0.9, 4), TypeError,
        "ExponentialDecayLR(learning_rate='a')",
        "expected a float, got str.",
    ),
    "decay_rate_value": Bad(
        lambda: nn.ExponentialDecayLR(0.1, 0.9, 0), ValueError,
        "ExponentialDecayLR(decay_steps=0)",
        "expected a number above 0.",
    ),
    "decay_steps": Bad(
        lambda: nn.ExponentialDecayLR(0.1, 0.9, 1.5), TypeError,
        "ExponentialDecayLR(decay_steps=1.5)",
        "expected an int, got float.",
    ),
    "schedule": Bad(
        lambda: nn.learning_rate_schedule.LearningRateSchedule()(Tensor(1)), NotImplementedError,
        "LearningRateSchedule",
        "expected a method construct(self, global_step).",
    ),
    "cosine_type": Bad(lambda: nn.CosineDecayLR(1, 2.0, 3), TypeError, "CosineDecayLR(min_lr=1)", "expected a float, got int."),
    "cosine_value": Bad(
        lambda: nn.CosineDecayLR(0.5, 0.1, 3), ValueError,
        "CosineDecayLR(min_lr=0.5, max_lr=0.1)",
        "expected 0 <= min_lr < max_lr.",
    ),
    "polynomial": Bad(
        lambda: nn.PolynomialDecayLR(0.1, -0.1, 3, 1.0), ValueError,
        "PolynomialDecayLR(end_learning_rate=-0.1)",
        "expected a number from 0 on.",
    ),
    "warm_up": Bad(lambda: nn.WarmUpLR("a", 3), TypeError, "WarmUpLR(learning_rate='a')", "expected a float, got str."),
    "piecewise_type": Bad(
        lambda: nn.piecewise_constant_lr(3, [0.1]), TypeError,
        "piecewise_constant_lr",
        "expected lists of milestones and of rates.",
    ),
    "piecewise_count": Bad(
        lambda: nn.piecewise_constant_lr([2], [0.1, 0.2]), ValueError,
        "piecewise_constant_lr",
        "expected as many rates as milestones, got 2 and 1.",
    ),
    "piecewise_order": Bad(
        lambda: nn.piecewise_constant_lr([3, 2], [0.1, 0.2]), ValueError,
        "piecewise_constant_lr(milestone=[3, 2])",
        "expected increasing milestones.",
    ),
    "cosine_lr_type": Bad(
        lambda: nn.cosine_decay_lr(1, 2.0, 3, 1, 1), TypeError,
        "cosine_decay_lr(min_lr=1)",
        "expected a float, got int.",
    ),
    "cosine_lr_value": Bad(
        lambda: nn.cosine_decay_lr(-0.1, 2.0, 3, 1, 1), ValueError,
        "cosine_decay_lr(min_lr=-0.1)",
        "expected a number from 0 on.",
    ),
    "cosine_lr_order": Bad(
        lambda: nn.cosine_decay_lr(0.5, 0.1, 3, 1, 1), ValueError,
        "cosine_decay_lr(min_lr=0.5, max_lr=0.1)",
        "expected min_lr below max_lr.",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_the_message(name: str) -> None:
    check(BAD[name])
