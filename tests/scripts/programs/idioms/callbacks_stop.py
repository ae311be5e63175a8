"""Callbacks that stop, look and set: early stopping by loss, EarlyStopping, ReduceLROnPlateau, validation within fit, LambdaCallback, History."""
import mindspore as ms
import mindspore.nn as nn
import numpy as np
from mindspore import Model, Tensor
from mindspore import dataset as ds
from mindspore.train import EarlyStopping, History, LambdaCallback, LearningRateScheduler, ReduceLROnPlateau
from mindspore.train.callback import Callback

from measured import MODE, begin, finish, report

ms.set_context(mode=MODE)
random = np.random.RandomState(2)
features = random.randn(24, 5).astype(np.float32)
targets = (features @ random.randn(5, 2)).astype(np.float32)


def data(rows=slice(None), batch=4):
    return ds.NumpySlicesDataset((features[rows], targets[rows]), ["x", "y"], shuffle=False).batch(batch)


class Stop(Callback):
    """Ends the training where the loss has come down enough."""

    def __init__(self, below):
        super(Stop, self).__init__()
        self.below, self.steps = below, 0

    def step_end(self, run_context):
        cb = run_context.original_args()
        self.steps += 1
        if self.steps % 4 == 1:
            report(cb.net_outputs, cb.cur_step_num, cb.cur_epoch_num, cb.batch_num)
        if float(cb.net_outputs.asnumpy()) < self.below:
            run_context.request_stop()

    def end(self, run_context):
        print("stopped after", self.steps, run_context.get_stop_requested())


def fresh(rate=0.05):
    net = begin(nn.SequentialCell(nn.Dense(5, 6, activation="sigmoid"), nn.Dense(6, 2)), 4)
    return net, nn.Momentum(net.trainable_params(), rate, 0.9)


net, optimizer = fresh()
Model(net, nn.MSELoss(), optimizer).train(4, data(), callbacks=[Stop(1.2)], dataset_sink_mode=False)
finish(net)

net, optimizer = fresh(0.3)
history = History()
model = Model(net, nn.MSELoss(), optimizer, metrics={"mae": nn.MAE(), "mse": nn.MSE()})
plateau = ReduceLROnPlateau(monitor="mae", factor=0.5, patience=1, mode="min", min_delta=0.5, cooldown=0, min_lr=0.01)
early = EarlyStopping(monitor="mae", patience=3, mode="min", min_delta=0.4, restore_best_weights=True)
model.fit(8, data(slice(0, 16)), data(slice(16, 24)), callbacks=[plateau, early, history], dataset_sink_mode=False)
report(optimizer.learning_rate)
print(sorted(history.epoch), [sorted(history.history)])
report(*[v for k in sorted(history.history) for v in history.history[k]])
finish(net)

net, optimizer = fresh()
seen = []
lam = LambdaCallback(on_train_epoch_end=lambda run: seen.append(run.original_args().cur_epoch_num), on_train_step_begin=lambda run: seen.append("s") if run.original_args().cur_step_num == 2 else None)
rate = LearningRateScheduler(lambda lr, step: lr * 0.5 if step % 3 == 0 else lr)
Model(net, nn.L1Loss(), optimizer).train(2, data(), callbacks=[lam, rate], dataset_sink_mode=False)
print(seen)
report(optimizer.learning_rate)
finish(net)
result = Model(net, nn.L1Loss(), metrics={"loss", "mse"}).eval(data(batch=6), dataset_sink_mode=False)
report(*[result[k] for k in sorted(result)])
