"""Softmax regression on iris-like rows: train and test halves, a Loss of one's own, `ops.GradOperation` over a function (1.x course)."""
import mindspore as ms
import mindspore.nn as nn
import numpy as np
from mindspore import Model, Tensor, context
from mindspore import dataset as ds
from mindspore.train.callback import Callback, LossMonitor

from measured import MODE, begin, finish, report

context.set_context(mode=MODE, device_target="CPU")
random = np.random.RandomState(291)
CENTRES = np.array([[5.0, 3.4, 1.5, 0.2], [5.9, 2.8, 4.3, 1.3], [6.6, 3.0, 5.6, 2.0]])
rows = [(random.normal(CENTRES[kind], 0.3).astype(np.float32), np.int32(kind)) for kind in random.randint(0, 3, 60)]


class Steps(Callback):
    def step_end(self, run_context):
        parameters = run_context.original_args()
        if parameters.cur_step_num <= 4:
            report(parameters.net_outputs)


def create(data, batch_size):
    dataset = ds.GeneratorDataset(data, ["data", "label"], shuffle=False)
    dataset = dataset.map(operations=lambda row: row / 10, input_columns="data")
    return dataset.batch(batch_size)


training, testing = create(rows[:40], 10), create(rows[40:], 20)
net = begin(nn.Dense(4, 3), 2)
loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
model = Model(net, loss, nn.Momentum(net.trainable_params(), 0.5, 0.9), metrics={"acc", "loss"}, amp_level="O0")
model.train(8, training, callbacks=[Steps(), LossMonitor(per_print_times=1000)], dataset_sink_mode=False)
finish(net)
result = model.eval(testing, dataset_sink_mode=False)
report(result["acc"], result["loss"])


def objective(x, y):
    return loss(net(x), y).sum()


gradient = ms.ops.GradOperation()(objective)(Tensor(rows[0][0][None] / 10), Tensor(rows[0][1][None]))
report(gradient)
