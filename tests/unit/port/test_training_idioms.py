"""Idioms of training scripts: several optimizers, a Model that callbacks take, functions of kinds, groups with rates, parameter names."""
from __future__ import annotations

from pathlib import Path

from support.training_scripts import MODEL, assert_verified, ported

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
    assert "a parameter has no name in torch" in outcome.verdicts[0].reason
