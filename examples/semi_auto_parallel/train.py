"""Trains a feed-forward network whose matrices are split over the devices (tensor parallelism) and whose batch is split too.

torchspore run train.py                  # one device
torchspore workers -n 2 train.py         # two processes, each of which stores half of both matrices
torchspore run --simulate 8 train.py     # eight devices in this one process
torchspore plan --devices 8 train.py     # runs nothing, and prints the split, the exchanges and the cost
"""
import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common.initializer import Normal, initializer
from mindspore.communication import get_group_size, get_rank, init

INPUTS, HIDDEN, OUTPUTS, BATCH = 32, 64, 8, 16


class FeedForward(nn.Cell):
    """Two matrices: the columns of the first and the rows of the second are split over `model_axis` devices.

    Each device computes a part of the hidden values and a partial sum of the result; torchspore adds the exchange of these sums. The rows
    of the batch are split over `data_axis` devices, which average their gradients.
    """

    def __init__(self, data_axis, model_axis):
        super().__init__()
        self.up = Parameter(initializer(Normal(0.1), (INPUTS, HIDDEN)), name="up")
        self.down = Parameter(initializer(Normal(0.1), (HIDDEN, OUTPUTS)), name="down")
        self.first = ops.MatMul().shard(((data_axis, 1), (1, model_axis)))
        self.relu = ops.ReLU().shard(((data_axis, model_axis),))
        self.second = ops.MatMul().shard(((data_axis, model_axis), (model_axis, 1)))

    def construct(self, x):
        return self.second(self.relu(self.first(x, self.up)), self.down)


def examples(count):
    """Yield batches of inputs and of targets, which are a fixed function of the inputs."""
    generator = np.random.default_rng(1)
    teacher = generator.standard_normal((INPUTS, OUTPUTS)).astype(np.float32) / INPUTS**0.5
    for _ in range(count):
        inputs = generator.standard_normal((BATCH, INPUTS)).astype(np.float32)
        yield Tensor(inputs), Tensor(np.maximum(inputs @ teacher, 0))


def main():
    ms.set_context(mode=ms.GRAPH_MODE)
    init()
    devices = get_group_size()
    data_axis = 2 if devices % 4 == 0 else 1
    model_axis = devices // data_axis
    # full_batch: each process passes the complete batch, and the split graph takes its rows.
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", device_num=devices, full_batch=True)
    ms.set_seed(1)

    net = FeedForward(data_axis, model_axis)
    loss = nn.MSELoss()
    optimizer = nn.Adam(net.trainable_params(), learning_rate=0.01)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), optimizer)
    step.set_train()

    print(f"{devices} devices: the batch in {data_axis} parts, the matrices in {model_axis}", flush=True)
    for number, (inputs, targets) in enumerate(examples(60), 1):
        value = step(inputs, targets)
        if number % 20 == 0:
            print(f"step {number}: loss {float(value):.4f}", flush=True)
    print(f"rank {get_rank()} stores up {tuple(net.up.shape)} and down {tuple(net.down.shape)}", flush=True)


if __name__ == "__main__":
    main()
