"""What a program's subclass says anew acts: MindSpore's own methods call these on themselves, and so do ours.

The numbers are those of real MindSpore 2.10.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
import pytest
from mindspore import Tensor, nn, ops
from mindspore.experimental import optim as experimental
from mindspore.train import CheckpointConfig, LossMonitor, Model, ModelCheckpoint, TimeMonitor


def dense() -> Any:
    return nn.Dense(3, 1, weight_init="ones", bias_init="zeros")


def rows(count: int = 4) -> Any:
    columns = {"x": np.ones((count, 3), np.float32), "y": np.ones((count, 1), np.float32)}
    return ds.NumpySlicesDataset(columns, shuffle=False).batch(2)


@pytest.fixture(params=["GRAPH_MODE", "PYNATIVE_MODE"])
def mode(request: pytest.FixtureRequest) -> Iterator[None]:
    ms.set_context(mode=getattr(ms, request.param))
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


def half(self: Any) -> Any:
    return nn.Optimizer.get_lr(self) * 0.5


def thrice(_: Any, gradients: Any) -> Any:
    return tuple(gradient * 3 for gradient in gradients)


def twice_the_decay(self: Any) -> Any:
    return nn.Optimizer.get_weight_decay(self) * 2


@pytest.mark.usefixtures("mode")
@pytest.mark.parametrize(("base", "method_name", "arguments", "expected"), [
    (nn.Adam, {"get_lr": half}, {"learning_rate": 0.1}, 0.95),
    (nn.SGD, {"decay_weight": thrice}, {"learning_rate": 0.1, "weight_decay": 0.1}, 0.7),
    (nn.Momentum, {"scale_grad": thrice}, {"learning_rate": 0.1, "momentum": 0.9, "loss_scale": 2.0}, 0.7),
    (nn.Momentum, {"get_weight_decay": twice_the_decay}, {"learning_rate": 0.1, "momentum": 0.9, "weight_decay": 0.1}, 0.88),
    (nn.AdamWeightDecay, {"get_weight_decay": twice_the_decay}, {"learning_rate": 0.3, "weight_decay": 0.1}, -0.0087),
], ids=["get_lr", "decay_weight", "scale_grad", "get_weight_decay", "decoupled get_weight_decay"])
def test_a_step_of_an_optimizer(base, method_name, arguments, expected):
    net = dense()
    optimizer = type("Own", (base,), method_name)(net.trainable_params(), **arguments)
    optimizer(tuple(ops.ones_like(p) for p in optimizer.parameters))
    assert net.weight.asnumpy() == pytest.approx(np.full((1, 3), expected), abs=6e-5)


@pytest.mark.usefixtures("mode")
def test_steps_of_an_optimizer_with_groups():
    class Own(nn.RMSProp):
        def get_lr(self):
            rates = super().get_lr()
            return tuple(rate * 2 for rate in rates) if isinstance(rates, tuple) else rates

        def gradients_centralization(self, gradients):
            return tuple(gradient - 0.25 for gradient in gradients)

    net = dense()
    groups = [{"params": [net.weight], "lr": 0.2, "weight_decay": 0.1, "grad_centralization": True}, {"params": [net.bias]}]
    optimizer = Own(groups, 0.1)
    for weight, bias in ((0.6552, -0.1534), (0.3190, -0.3100)):
        optimizer(tuple(ops.ones_like(p) for p in optimizer.parameters))
        assert net.weight.asnumpy() == pytest.approx(np.full((1, 3), weight), abs=6e-5)
        assert float(net.bias) == pytest.approx(bias, abs=6e-5)


def test_the_steps_of_a_model():
    called: list[str] = []

    def recorded(name: str) -> Any:
        def run(self: Any, *args: Any, **kwargs: Any) -> Any:
            called.append(name)
            return getattr(Model, name)(self, *args, **kwargs)
        return run

    names = ["_train", "_train_process", "_train_dataset_sink_process", "_exec_preprocess", "_eval_process", "_eval_dataset_sink_process",
             "_clear_metrics", "_get_metrics", "_update_metrics", "_eval_in_fit"]
    net = dense()
    model = type("Own", (Model,), {name: recorded(name) for name in names})(
        net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.01), {"mae"})
    model.train(1, rows(), dataset_sink_mode=True)         # the CPU has no queue of data, in MindSpore too
    assert called == ["_train", "_train_process", "_exec_preprocess"]
    called.clear()
    model.eval(rows())
    evaluated = ["_clear_metrics", "_eval_process", "_exec_preprocess", "_update_metrics", "_update_metrics", "_get_metrics"]
    assert called == evaluated
    called.clear()
    model.fit(1, rows(), rows())
    assert called == ["_train", "_train_process", "_exec_preprocess", "_eval_in_fit", *evaluated]


def test_a_training_loop_of_a_model_subclass():
    class Own(Model):
        def _train_process(self, epoch, train_dataset, list_callback=None, cb_params=None, initial_epoch=0, valid_infos=None):
            helper, network = self._exec_preprocess(is_train=True, dataset=train_dataset, dataset_sink_mode=False, epoch_num=epoch)
            self.losses = [[float(network(*batch)) for batch in helper] for _ in range(initial_epoch, epoch)]

    net = dense()
    model = Own(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.01))
    model.train(2, rows())
    assert np.round(np.ravel(model.losses).sum(), 2) == 12.68


def test_events_of_a_loss_monitor_and_a_checkpoint(tmp_path):
    events: list[str] = []

    class Quiet(LossMonitor):
        def step_end(self, run_context):
            events.append("step")

    class Own(ModelCheckpoint):
        def begin(self, run_context):
            events.append("begin")

        def _save_ckpt(self, cb_params, force_to_save=False):
            events.append("save")
            super()._save_ckpt(cb_params, force_to_save)

        def _check_save_ckpt(self, cb_params, force_to_save):
            events.append("check")
            return super()._check_save_ckpt(cb_params, force_to_save)

    net = dense()
    model = Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.01))
    keep = Own("net", str(tmp_path), CheckpointConfig(save_checkpoint_steps=1))
    model.train(1, rows(), callbacks=[Quiet(), keep], dataset_sink_mode=False)
    assert events == ["begin", "step", "save", "check", "step", "save", "check", "save"]
    assert sorted(file.name for file in tmp_path.glob("*.ckpt")) == ["net-1_1.ckpt", "net-1_2.ckpt"]


def test_lines_of_a_loss_monitor_in_train_fit_and_eval(capsys):
    net = dense()
    model = Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.01), metrics={"mae"})
    model.fit(1, rows(), rows(2), callbacks=[LossMonitor()])
    model.eval(rows(2), callbacks=[LossMonitor(), TimeMonitor()])
    lines = [line for line in capsys.readouterr().out.splitlines() if "time" not in line]
    assert lines == [
        "epoch: 1 step: 1, loss is 4.0", "epoch: 1 step: 2, loss is 3.3855996131896973",
        "Eval result: epoch 1, metrics: {'mae': 1.6927998065948486}", "epoch: 1 step: 1, loss is 2.8655713",
    ]


@pytest.mark.usefixtures("mode")
def test_a_scale_is_processed_as_the_program_says():
    class Own(nn.TrainOneStepWithLossScaleCell):
        def process_loss_scale(self, overflow):
            return super().process_loss_scale(ops.logical_not(overflow))      # so that no step is taken

    net = dense()
    step = Own(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.01), Tensor(8.0, ms.float32))
    step(Tensor(np.ones((2, 3), np.float32)), Tensor(np.ones((2, 1), np.float32)))
    assert net.weight.asnumpy().tolist() == [[1.0, 1.0, 1.0]]


@pytest.mark.usefixtures("mode")
def test_a_step_without_a_scale_is_the_programs():
    class Own(nn.TrainOneStepCell):
        def _no_sens_impl(self, *inputs):
            return self.network(*inputs) * 10

    net = dense()
    step = Own(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.01))
    assert float(step(Tensor(np.ones((2, 3), np.float32)), Tensor(np.ones((2, 1), np.float32)))) == 40.0


@pytest.mark.usefixtures("mode")
def test_blocks_of_a_transformer_layer():
    class Own(nn.TransformerEncoderLayer):
        def _ff_block(self, x):
            return x * 0

        def _sa_block(self, x, attn_mask, key_padding_mask):
            return x * 0

    x = np.arange(8, dtype=np.float32).reshape(1, 2, 4)
    layer = Own(4, 2, 8, dropout=0.0, batch_first=True)
    once = nn.LayerNorm([4], epsilon=1e-5)
    assert layer(Tensor(x)).asnumpy() == pytest.approx(once(once(Tensor(x))).asnumpy(), abs=1e-5)


def test_a_closed_form_of_a_schedule():
    class Own(experimental.lr_scheduler.StepLR):
        def _get_closed_form_lr(self):
            return [rate * 100 for rate in super()._get_closed_form_lr()]

    optimizer = experimental.SGD(dense().trainable_params(), lr=0.5)
    Own(optimizer, 2, 0.5).step(4)
    assert float(optimizer.param_groups[0]["lr"]) == pytest.approx(12.5)


def test_the_cells_of_a_sequence_are_a_list():
    class Own(nn.SequentialCell):
        def construct(self, x):
            for cell in self.cell_list:
                x = cell(x)
            return x * 2

    net = Own(dense(), nn.ReLU())
    net.append(nn.ReLU())
    assert len(net.cell_list) == 3 and float(net(Tensor(np.ones((1, 3), np.float32)))) == 6.0


def test_an_optimizer_of_the_programs_is_not_shared():
    from torchspore.mindspore.nn.optim import overridden_steps

    assert overridden_steps.of(nn.SGD(dense().trainable_params(), 0.1)) == []
    assert overridden_steps.of(type("Own", (nn.SGD,), {"get_lr": half})(dense().trainable_params(), 0.1)) == ["get_lr"]
