"""Saved in the middle and gone on from there: weights, the optimizer's state, the step, by ModelCheckpoint and by hand; then a MINDIR file."""
import os
import tempfile

import mindspore as ms
import mindspore.nn as nn
import numpy as np
from mindspore import Model, Parameter, Tensor, ops
from mindspore import dataset as ds
from mindspore.train import CheckpointConfig, ModelCheckpoint
from mindspore.train.serialization import export, load, load_checkpoint, load_param_into_net, save_checkpoint

from measured import MODE, begin, finish, report

ms.set_context(mode=MODE)
random = np.random.RandomState(5)
x, y = random.randn(12, 1, 6, 6).astype(np.float32), random.randint(0, 3, 12).astype(np.int32)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.body = nn.SequentialCell([nn.Conv2d(1, 4, 3, weight_init="XavierUniform"), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten()])
        self.drop = nn.Dropout(p=0.0)
        self.head = nn.Dense(36, 3)

    def construct(self, x):
        return self.head(self.drop(self.body(x)))


def data():
    return ds.NumpySlicesDataset({"x": x, "y": y}, shuffle=False).batch(4)


def fresh(seed=2):
    net = begin(Net(), seed)
    optimizer = nn.Adam(net.trainable_params(), nn.piecewise_constant_lr([2, 5, 20], [0.02, 0.01, 0.005]), weight_decay=1e-3, eps=1e-4)
    return net, optimizer, nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")


folder = tempfile.mkdtemp()
net, optimizer, loss = fresh()
model = Model(net, loss, optimizer, metrics={"acc"})
config = CheckpointConfig(save_checkpoint_steps=3, keep_checkpoint_max=2, saved_network=None, append_info=["epoch_num", "step_num", {"lr": 0.5}])
model.train(3, data(), callbacks=[ModelCheckpoint("net", folder, config)], dataset_sink_mode=False)
finish(net, optimizer)
print(sorted(name for name in os.listdir(folder) if name.endswith("ckpt")))
checkpoint = load_checkpoint(os.path.join(folder, "net-2_3.ckpt"))
print(sorted(checkpoint)[:6], len(checkpoint))
report(checkpoint["epoch_num"], checkpoint["step_num"], checkpoint["lr"])

resumed, optimizer2, loss2 = fresh(9)
missing = load_param_into_net(resumed, checkpoint)
missing2 = load_param_into_net(optimizer2, checkpoint)
print(missing, missing2)
Model(resumed, loss2, optimizer2).train(1, data(), dataset_sink_mode=False)
finish(resumed, optimizer2)

path = os.path.join(folder, "own.ckpt")
save_checkpoint([{"name": "scale", "data": Tensor([1.5], ms.float32)}, {"name": "steps", "data": Tensor(7, ms.int64)}], path, append_dict={"epoch": 4, "note": "here", "flag": True, "rate": 0.25})
saved_state = load_checkpoint(path)
print({k: (str(v.dtype), v.asnumpy().tolist()) if hasattr(v, "asnumpy") else v for k, v in sorted(saved_state.items())})
part = load_checkpoint(os.path.join(folder, "net-3_3.ckpt"), resumed, filter_prefix="head", choice_func=lambda name: "moving" not in name)
print(len(part), sorted(part)[:3])
resumed.set_train(False)
inputs = Tensor(x[:2])
expected = resumed(inputs)
export(resumed, inputs, file_name=os.path.join(folder, "net"), file_format="MINDIR")
cell = nn.GraphCell(load(os.path.join(folder, "net.mindir")))
report(expected, ops.abs(cell(inputs) - expected).max() < 1e-5)
