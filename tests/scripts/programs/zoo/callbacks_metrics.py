"""Callbacks and metrics of one's own, Model.fit with early stopping, reduced rates, history and a validation set."""
import sys

import mindspore as ms
import numpy as np
from mindspore import nn
from mindspore.dataset import GeneratorDataset
from mindspore.train import (
    Callback, EarlyStopping, History, LambdaCallback, LearningRateScheduler, Metric, Model, ReduceLROnPlateau, rearrange_inputs,
)

ms.set_context(mode=ms.GRAPH_MODE if "graph" in sys.argv[1:] else ms.PYNATIVE_MODE)


class Correlation(Metric):
    def __init__(self):
        super().__init__()
        self.clear()

    def clear(self):
        self._left, self._right = [], []

    @rearrange_inputs
    def update(self, *inputs):
        self._left.append(self._convert_data(inputs[0]))
        self._right.append(self._convert_data(inputs[1]))

    def eval(self):
        if not self._left:
            raise RuntimeError("nothing to evaluate")
        return float(np.corrcoef(np.concatenate(self._left).ravel(), np.concatenate(self._right).ravel())[0, 1])


class StopAtStep(Callback):
    def __init__(self, stop_step):
        super().__init__()
        self.stop_step = stop_step
        self.seen = []

    def on_train_begin(self, run_context):
        params = run_context.original_args()
        print("train begins:", params.epoch_num, params.batch_num, type(params.train_network).__name__, type(params.optimizer).__name__)

    def on_train_step_end(self, run_context):
        params = run_context.original_args()
        self.seen.append(params.cur_step_num)
        if params.cur_step_num >= self.stop_step:
            print("stop at", params.cur_epoch_num, params.cur_step_num, "%.4f" % float(params.net_outputs.asnumpy()))
            run_context.request_stop()

    def __enter__(self):
        print("enter")
        return self

    def __exit__(self, *err):
        print("exit", len(self.seen))


class BestKeeper(Callback):
    def __init__(self):
        self.best = float("inf")
        self.events = []

    def on_eval_begin(self, run_context):
        self.events.append("eb")

    def on_eval_end(self, run_context):
        params = run_context.original_args()
        self.events.append("ee")
        loss = params.metrics["loss"]
        if loss < self.best:
            self.best = loss

    def on_train_epoch_end(self, run_context):
        self.events.append("te%d" % run_context.original_args().cur_epoch_num)


class Source:
    def __init__(self, count, seed):
        rng = np.random.RandomState(seed)
        self.x = rng.normal(0, 1, (count, 6)).astype(np.float32)
        self.y = (np.sin(self.x[:, :1]) + 0.5 * self.x[:, 1:2] + rng.normal(0, 0.05, (count, 1))).astype(np.float32)

    def __getitem__(self, index):
        return self.x[index], self.y[index]

    def __len__(self):
        return len(self.x)


def dataset(count, seed, batch):
    return GeneratorDataset(Source(count, seed), ["x", "y"], shuffle=False).batch(batch)


def make(**options):
    net = nn.SequentialCell(nn.Dense(6, 32, activation=nn.ReLU()), nn.Dense(32, 1))
    rng = np.random.RandomState(3)
    for param in net.trainable_params():
        param.set_data(ms.Tensor(rng.normal(0, 0.3, param.shape), ms.float32))
    optimizer = nn.SGD(net.trainable_params(), learning_rate=0.05)
    return Model(net, nn.MSELoss(), optimizer, metrics={"loss": nn.Loss(), "mae": nn.MAE(), "corr": Correlation()}, **options), optimizer


model, _ = make()
with StopAtStep(7) as stop:
    model.train(5, dataset(96, 0, 16), callbacks=stop, dataset_sink_mode=False)
print(stop.seen)
print({k: round(v, 4) for k, v in model.eval(dataset(40, 1, 16), dataset_sink_mode=False).items()})

model, optimizer = make()
keeper, history = BestKeeper(), History()
log = LambdaCallback(on_train_epoch_end=lambda context: print("lambda", context.original_args().cur_epoch_num))
model.fit(4, dataset(96, 0, 16), dataset(40, 1, 20), callbacks=[history, log], valid_dataset_sink_mode=False, dataset_sink_mode=False, valid_frequency=2)
print(sorted(history.history), [len(v) for _, v in sorted(history.history.items())], history.epoch)
print({k: [round(float(np.mean(i)), 4) for i in v] for k, v in sorted(history.history.items()) if k != "time"})
model.train(2, dataset(96, 0, 16), callbacks=[keeper, LearningRateScheduler(lambda lr, step: lr * 0.9)], dataset_sink_mode=False)
print(keeper.events, "%.5f" % float(optimizer.learning_rate.asnumpy()))

model, optimizer = make()
early = EarlyStopping(monitor="mae", patience=1, mode="min", min_delta=0.05, verbose=True)
reduce = ReduceLROnPlateau(monitor="mae", factor=0.5, patience=1, mode="min", min_delta=0.2, cooldown=0)
model.fit(8, dataset(96, 0, 16), dataset(40, 1, 20), callbacks=[reduce, early, keeper], dataset_sink_mode=False, valid_dataset_sink_mode=False)
print("%.5f" % float(optimizer.learning_rate.asnumpy()), keeper.events, "%.4f" % keeper.best)
metric = Correlation()
metric.set_indexes([1, 0]).update(ms.Tensor([1.0, 2.0, 4.0]), ms.Tensor([2.0, 3.0, 9.0]))
print("%.4f" % metric.eval())
