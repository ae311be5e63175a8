"""Idioms of training scripts: several optimizers, a Model that callbacks take, functions of kinds, groups with rates, parameter names."""
from __future__ import annotations

from pathlib import Path

import torch
from support.training_scripts import MODEL, assert_verified, ported

from torchspore.port.verification import rounding

GAN = """generator, critic = nn.Dense(4, 4), Net()
first = nn.Adam(generator.trainable_params(), 0.01)
second = nn.SGD(critic.trainable_params(), 0.1)
loss_of_critic = ms.value_and_grad(lambda x, y: loss_fn(critic(ops.stop_gradient(generator(x))), y), None, second.parameters)
loss_of_generator = ms.value_and_grad(lambda x, y: -loss_fn(critic(generator(x)), y), None, first.parameters)
critic.set_train()
for start in (0, 8, 16):
    x, y = Tensor(pictures[start:start + 8]), Tensor(labels[start:start + 8])
    loss, grads = loss_of_critic(x, y)
    second(grads)
    loss, grads = loss_of_generator(x, y)
    first(grads)
"""
BEST = """class Best(Callback):
    def __init__(self, model, data):
        super().__init__()
        self.model, self.data, self.best = model, data, 0.0

    def on_train_epoch_end(self, run_context):
        self.best = max(self.best, self.model.eval(self.data, dataset_sink_mode=False)["accuracy"])


"""
STEP = """from mindspore.ops import composite as C, functional as F

clip = C.MultitypeFuncGraph("clip")


@clip.register("Number", "Tensor")
def _clip(limit, grad):
    return ops.clip_by_value(grad, -limit, limit)


class Step(nn.TrainOneStepCell):
    def __init__(self, network, optimizer, sens=1.0):
        super().__init__(network, optimizer, sens)
        self.hyper_map = C.HyperMap()

    def construct(self, *inputs):
        loss = self.network(*inputs)
        grads = self.grad(self.network, self.weights)(*inputs, F.fill(loss.dtype, loss.shape, self.sens))
        grads = self.hyper_map(F.partial(clip, 0.01), grads)
        return F.depend(loss, self.optimizer(grads))


step = Step(nn.WithLossCell(net, loss_fn), nn.SGD(net.trainable_params(), 0.5))
step.set_train()
for start in (0, 8, 16):
    step(Tensor(pictures[start:start + 8]), Tensor(labels[start:start + 8]))
"""


def test_two_optimizers(tmp_path: Path) -> None:
    assert_verified(ported(tmp_path, GAN))


def test_a_model_that_a_callback_takes(tmp_path: Path) -> None:
    text = MODEL.format(optimizer="nn.SGD(net.trainable_params(), 0.1)", callbacks="[Best(model, dataset)]")
    outcome = ported(tmp_path, BEST + text)
    assert_verified(outcome)
    assert 'model = Evaluation(net, loss_fn, {"accuracy": Accuracy()})' in outcome.ported.text


def test_functions_of_kinds(tmp_path: Path) -> None:
    assert_verified(ported(tmp_path, STEP))


def test_a_group_with_a_rate_beside_a_schedule(tmp_path: Path) -> None:
    groups = '[{"params": net.norm.trainable_params(), "lr": 0.3}, {"params": net.head.trainable_params()}]'
    optimizer = f"nn.SGD({groups}, nn.piecewise_constant_lr([2, 6], [0.2, 0.01]))"
    outcome = ported(tmp_path, MODEL.format(optimizer=optimizer, callbacks="None"))
    assert_verified(outcome)
    assert "[lambda _: 1.0, Rates(" in outcome.ported.text


def test_a_name_of_a_parameter(tmp_path: Path) -> None:
    text = "params = net.trainable_params()\nshadow = {p.name: p.asnumpy() for p in params}\n"
    outcome = ported(tmp_path, text + MODEL.format(optimizer="nn.SGD(params, 0.1)", callbacks="None"))
    assert_verified(outcome)
    assert "params = trainable_params(net)\nshadow = {name_of(p): " in outcome.ported.text


FILTERS = """def is_decayed(param):
    return "gamma" not in param.name and "bias" not in param.name


params = net.trainable_params()
decayed = list(filter(is_decayed, params))
others = list(filter(lambda x: not is_decayed(x), params))
groups = [{"params": decayed, "weight_decay": 0.1}, {"params": others}]
"""
UPDATES = """net.set_train()
grad_fn = ms.value_and_grad(lambda x, y: loss_fn(net(x), y), None, net.trainable_params())
for start in (0, 8, 16):
    loss, grads = grad_fn(Tensor(pictures[start:start + 8]), Tensor(labels[start:start + 8]))
    optim(grads)
"""
LION = """class Lion(nn.Optimizer):
    def __init__(self, params, learning_rate=0.01, beta=0.9, weight_decay=0.0):
        super().__init__(learning_rate, params, weight_decay)
        self.beta = Tensor([beta], ms.float32)
        self.momentum = self._parameters.clone(prefix="lion", init="zeros")

    def construct(self, gradients):
        lr = self.get_lr()
        self.assignadd(self.global_step, self.global_step_increase_tensor)
        for p, m, g in zip(self.parameters, self.momentum, self.decay_weight(gradients)):
            ops.assign_sub(p, lr * ops.tanh(self.beta * m + g))
            ops.assign(m, self.beta * m + (1 - self.beta) * g)
        return True


"""


TABS = """if True:
\toptim = nn.SGD(net.trainable_params(), 0.1)
\tstep = nn.TrainOneStepCell(nn.WithLossCell(net, loss_fn), optim)
\tstep.set_train()
\tfor start in (0, 8, 16):
\t\tstep(Tensor(pictures[start:start + 8]), Tensor(labels[start:start + 8]))
"""


def test_names_of_parameters_in_filters(tmp_path: Path) -> None:
    text = FILTERS + "optim = nn.Momentum(groups, 0.1, 0.9)\n" + UPDATES
    outcome = ported(tmp_path, text.replace("None, net.trainable_params()", "None, optim.parameters"))
    assert_verified(outcome)
    assert "params = trainable_params(net)" in outcome.ported.text and '"gamma" not in name_of(param)' in outcome.ported.text


def test_a_script_whose_first_update_fails(tmp_path: Path) -> None:
    verdict, = ported(tmp_path, FILTERS + "optim = nn.Momentum(groups, 0.1, 0.9)\n" + UPDATES).verdicts         # gradients in another order
    assert not verdict.is_equal and verdict.reason.startswith("the script makes no training step: ValueError: Momentum(gradients)")


def test_weight_decay_of_a_list_of_parameters_with_names(tmp_path: Path) -> None:
    text = FILTERS + "optim = nn.Momentum([*others, *decayed], 0.1, 0.9, weight_decay=0.1)\n" + UPDATES
    outcome = ported(tmp_path, text.replace("None, net.trainable_params()", "None, optim.parameters"))
    assert_verified(outcome)
    assert "grouped_by_decay([*others, *decayed], 0.1)" in outcome.ported.text


def test_a_filter_of_trained_parameters_with_weight_decay(tmp_path: Path) -> None:
    text = "optim = nn.SGD(filter(lambda p: p.requires_grad, net.get_parameters()), 0.1, weight_decay=0.1)\n"
    outcome = ported(tmp_path, "net.norm.gamma.requires_grad = False\n" + text + UPDATES)
    assert_verified(outcome)
    assert "optim.SGD(with_decay(net, 0.1), lr=0.1)" in outcome.ported.text


def test_a_variable_named_optim(tmp_path: Path) -> None:
    outcome = ported(tmp_path, "optim = nn.Adam(net.trainable_params(), nn.exponential_decay_lr(0.1, 0.5, 9, 3, 1))\n" + UPDATES)
    assert_verified(outcome)
    assert "scheduler = torch.optim.lr_scheduler.LambdaLR(optim, " in outcome.ported.text


def test_an_optimizer_of_the_program(tmp_path: Path) -> None:
    outcome = ported(tmp_path, LION + "optim = Lion(net.trainable_params(), [0.1, 0.01], weight_decay=0.1)\n" + UPDATES)
    assert_verified(outcome)
    assert "class Lion(OptimizerBase):" in outcome.ported.text
    assert "optim = Lion(with_decay(net, 1.0), [0.1, 0.01], weight_decay=0.1)" in outcome.ported.text


def test_an_optimizer_of_the_program_that_uses_names_of_torch(tmp_path: Path) -> None:
    text = LION.replace("self.momentum", "self.state") + "optim = Lion(net.trainable_params())\n" + UPDATES
    outcome = ported(tmp_path, text)
    assert "Lion defines state, which torch's optimizers use: rename it" in str(outcome.ported.omitted_classes["Lion"])
    assert outcome.ported.by_hand


def test_lists_of_parameters_in_other_classes(tmp_path: Path) -> None:
    total = """class Total:
    def __init__(self, params):
        self.total = ms.ParameterTuple([p.clone() for p in params])

    def take(self):
        return tuple(t.copy() * 0 + 1 for t in self.total)


optim = nn.SGD(net.trainable_params(), 0.1)
total = Total(net.trainable_params())
"""
    outcome = ported(tmp_path, total + UPDATES.replace("optim(grads)", "optim(total.take())"))
    assert_verified(outcome)
    assert "t.clone() * 0 + 1 for t in self.total" in outcome.ported.text


def test_random_numbers_are_equal_in_the_comparison(tmp_path: Path) -> None:
    noise = "lambda x, y: loss_fn(net(x + ops.standard_normal(x.shape) * ops.StandardNormal()(x.shape)), y)"
    text = "optim = nn.SGD(net.trainable_params(), 0.1)\n" + UPDATES.replace("lambda x, y: loss_fn(net(x), y)", noise)
    assert_verified(ported(tmp_path, text))


def test_functions_of_a_map_stay(tmp_path: Path) -> None:
    rows = "dataset = dataset.map(lambda row: row.reshape(2, 2).transpose(1, 0).reshape(4).astype(np.float32), ['picture'])\n"
    text = MODEL.format(optimizer="nn.SGD(net.trainable_params(), 0.1)", callbacks="None")
    head, tail = text.split("model = ")
    outcome = ported(tmp_path, head.replace(".batch(8)", "") + rows + "dataset = dataset.batch(8)\nmodel = " + tail)
    assert_verified(outcome)
    assert "lambda row: row.reshape(2, 2).transpose(1, 0).reshape(4).astype(np.float32)" in outcome.ported.text


def test_steps_in_a_file_with_tabs(tmp_path: Path) -> None:
    outcome = ported(tmp_path, TABS)
    assert_verified(outcome)
    assert "\tdef step(data, label):\n\t\toptim.zero_grad()\n" in outcome.ported.text


def test_weights_that_rounding_changes() -> None:
    expected = [torch.tensor([1.0, 2.0, 3.0] + [0.5] * 30)]
    noisy = [[expected[0] + torch.tensor([0.0, 0.1, 0.0] + [0.0] * 30)] for _ in range(2)]
    one = [expected[0] + torch.tensor([0.0, 0.0, 0.2] + [0.0] * 30)]
    two, large = [one[0] + torch.tensor([0.2, 0.0, 0.0] + [0.0] * 30)], [expected[0] + torch.tensor([0.4] + [0.0] * 32)]
    assert rounding.compare_stable(expected, one, noisy, 1e-5) == (0.0, 1 / 33)
    assert rounding.compare_stable(expected, two, noisy, 1e-5)[0] == float("inf")
    assert rounding.compare_stable(expected, large, noisy, 1e-5)[0] > 0.1


TEACHER = """class Distilled(nn.Cell):
    def __init__(self, student, teacher):
        super().__init__()
        self.student, self.teacher = student, teacher
        self.scale = Parameter(Tensor(1.0), name="other")
        for parameter in teacher.get_parameters():
            parameter.requires_grad = False

    def construct(self, x, y):
        return loss_fn(self.student(x), y) * self.scale + ops.square(self.student(x) - self.teacher(x)).mean()


loss_net = Distilled(net, Net())
optim = nn.SGD([p for p in loss_net.trainable_params() if "bias" not in p.name], 0.1)
grad_fn = ms.value_and_grad(loss_net, None, optim.parameters)
net.set_train()
for start in (0, 8, 16):
    loss, grads = grad_fn(Tensor(pictures[start:start + 8]), Tensor(labels[start:start + 8]))
    optim(grads)
"""


def test_a_teacher_has_the_weights_of_the_original(tmp_path: Path) -> None:
    outcome = ported(tmp_path, "from mindspore import Parameter\n" + TEACHER)
    assert_verified(outcome)
    assert "# names of MindSpore's parameters in torch: other is scale\n" in outcome.ported.text
    assert "# a Cell begins in evaluation\nloss_net = Distilled(net, Net().eval())\n" in outcome.ported.text


def test_a_named_teacher_that_stays_in_evaluation(tmp_path: Path) -> None:
    text = TEACHER.replace("loss_net = Distilled(net, Net())", "teacher = Net()\nloss_net = Distilled(net, teacher)")
    outcome = ported(tmp_path, "from mindspore import Parameter\n" + text)
    assert_verified(outcome)
    assert "teacher = Net()\nteacher.eval()\n" in outcome.ported.text and "net.eval()" not in outcome.ported.text


def test_functions_of_gradients_without_further_arguments(tmp_path: Path) -> None:
    text = "optim = nn.SGD(net.trainable_params(), 0.1)\n" + UPDATES.replace(
        "    optim(grads)", "    grads = ops.HyperMap()(ops.partial(ops.tanh), grads)\n    optim(grads)")
    outcome = ported(tmp_path, text)
    assert_verified(outcome)
    assert "with_first(torch.tanh)," in outcome.ported.text
