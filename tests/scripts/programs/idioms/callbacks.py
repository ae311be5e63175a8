"""Callbacks of one's own: early stopping by request_stop, a schedule that writes the optimizer's rate, best weights, own metrics (1.x and 2.x)."""
import mindspore as ms
import mindspore.dataset as ds
import mindspore.nn as nn
import numpy as np
from mindspore import Model, Tensor
from mindspore.train import Callback, LambdaCallback, RunContext

from measured import MODE, begin, finish, report

ms.set_context(mode=MODE)


class StopAtLoss(Callback):
    def __init__(self, threshold):
        super(StopAtLoss, self).__init__()
        self.threshold = threshold

    def step_end(self, run_context: RunContext):
        cb_params = run_context.original_args()
        loss = cb_params.net_outputs
        report(cb_params.cur_epoch_num, cb_params.cur_step_num, loss)
        if loss.asnumpy() < self.threshold:
            print("stops", cb_params.cur_step_num)
            run_context.request_stop()


class Halve(Callback):
    """Halves the rate where an epoch ends."""

    def epoch_end(self, run_context):
        optimizer = run_context.original_args().optimizer
        rate = optimizer.learning_rate.asnumpy() / 2
        ms.ops.assign(optimizer.learning_rate, Tensor(rate, ms.float32))
        report(optimizer.learning_rate)


class Best(Callback):
    def __init__(self, model, dataset):
        self.model, self.dataset, self.best, self.kept = model, dataset, 1e9, None

    def epoch_end(self, run_context):
        result = self.model.eval(self.dataset, dataset_sink_mode=False)
        report(result["error"], result["mae"])
        if result["error"] < self.best:
            self.best = result["error"]
            network = run_context.original_args().network
            self.kept = {p.name: p.asnumpy().copy() for p in network.trainable_params()}

    def on_train_end(self, run_context):
        print("best", len(self.kept))


class AfterEval(Callback):
    def on_eval_end(self, run_context):
        report(run_context.original_args().metrics["mae"])


class MeanError(nn.Metric):
    """A metric with decorators of its own use."""

    def __init__(self):
        super(MeanError, self).__init__()
        self.clear()

    def clear(self):
        self.total, self.count = 0.0, 0

    @nn.rearrange_inputs
    def update(self, *inputs):
        prediction, truth = self._convert_data(inputs[0]), self._convert_data(inputs[1])
        self.total += float(np.square(prediction - truth).sum())
        self.count += truth.shape[0]

    def eval(self):
        if not self.count:
            raise RuntimeError("nothing was added")
        return self.total / self.count


random = np.random.RandomState(9)
features = random.randn(20, 4).astype(np.float32)
targets = (features @ np.array([[1.0], [-2.0], [0.5], [3.0]], np.float32) + 0.3).astype(np.float32)
dataset = ds.NumpySlicesDataset((features, targets), column_names=["x", "y"], shuffle=False).batch(5)
net = begin(nn.Dense(4, 1), 1)
optimizer = nn.Momentum(net.trainable_params(), 0.05, 0.5)
model = Model(net, nn.MSELoss(), optimizer, metrics={"error": MeanError(), "mae": nn.MAE()})
seen = LambdaCallback(on_train_epoch_begin=lambda context: print("epoch", context.original_args().cur_epoch_num))
model.train(6, dataset, callbacks=[StopAtLoss(1.0), Halve(), Best(model, dataset), seen], dataset_sink_mode=False)
finish(net, optimizer)
model.fit(2, dataset, dataset, callbacks=[AfterEval()],
          dataset_sink_mode=False)
finish(net)
