"""A program written for a cluster: device_target, device_num and mode come from arguments; branches look at get_context."""
import argparse
import os

import numpy as np
from mindspore import Tensor, context, nn, ops, set_seed
from mindspore import dtype as mstype
from mindspore.communication.management import get_group_size, get_rank, init
from mindspore.context import ParallelMode
from mindspore.dataset import GeneratorDataset
from mindspore.train import LossMonitor, Model, TimeMonitor
from mindspore.train.loss_scale_manager import FixedLossScaleManager

set_seed(1)
parser = argparse.ArgumentParser()
parser.add_argument("mode", nargs="?", default="pynative")
parser.add_argument("--device_target", default=os.environ.get("ZOO_DEVICE", "CPU"))
parser.add_argument("--run_distribute", action="store_true")
args = parser.parse_args()

context.set_context(mode=context.GRAPH_MODE if args.mode == "graph" else context.PYNATIVE_MODE, save_graphs=False)
context.set_context(device_target=args.device_target)
if args.run_distribute:
    init()
    context.reset_auto_parallel_context()
    context.set_auto_parallel_context(device_num=get_group_size(), parallel_mode=ParallelMode.DATA_PARALLEL, gradients_mean=True)
    rank, size = get_rank(), get_group_size()
else:
    rank, size = 0, 1
target = context.get_context("device_target")
if target == "Ascend":
    compute_type, keep = mstype.float16, True
elif target == "GPU":
    compute_type, keep = mstype.float16, False
else:
    compute_type, keep = mstype.float32, False
print(rank, size, target, compute_type, keep, context.get_context("mode") == (context.GRAPH_MODE if args.mode == "graph" else context.PYNATIVE_MODE))
print(context.get_auto_parallel_context("parallel_mode"), context.get_auto_parallel_context("device_num"), context.get_context("save_graphs"))


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.is_graph = context.get_context("mode") == context.GRAPH_MODE
        self.cpu = context.get_context("device_target") == "CPU"
        self.dense = nn.Dense(3, 8, weight_init="ones", bias_init="zeros").to_float(compute_type)
        self.out = nn.Dense(8, 1, weight_init=0.05, bias_init="zeros")
        self.act = nn.GELU() if self.cpu else nn.ReLU()

    def construct(self, x):
        x = self.act(self.dense(x))
        return self.out(ops.cast(x, mstype.float32))


def rows():
    rng = np.random.RandomState(2)
    for _ in range(48):
        x = rng.normal(0, 1, 3).astype(np.float32)
        yield x, np.array([x.sum() * 0.3], np.float32)


dataset = GeneratorDataset(list(rows()), ["x", "y"], shuffle=False, num_shards=size, shard_id=rank).batch(8, drop_remainder=True)
net = Net()
manager = FixedLossScaleManager(1.0, drop_overflow_update=False)
optimizer = nn.Momentum(filter(lambda p: p.requires_grad, net.get_parameters()), 0.02, 0.9, 1e-4, manager.get_loss_scale())
model = Model(net, nn.MSELoss(), optimizer, loss_scale_manager=manager, amp_level="O0", metrics={"mse"})
steps = dataset.get_dataset_size()
callbacks = [LossMonitor(per_print_times=steps)]
if rank == 0 and os.environ.get("ZOO_TIME"):
    callbacks.append(TimeMonitor(data_size=steps))
model.train(3, dataset, callbacks=callbacks, dataset_sink_mode=target != "CPU")
print({key: round(float(value), 4) for key, value in model.eval(dataset, dataset_sink_mode=False).items()})
print(np.round(net.out.weight.asnumpy()[0, :3], 4).tolist(), net.dense.weight.dtype, Tensor(1.0).dtype)
