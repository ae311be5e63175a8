"""What the seeded programs share: the mode out of the command line, 20 steps, and their losses printed as exact numbers.

Each batch size is used for five steps. MindSpore's dropout on the CPU tries several threads, which share one generator without a lock, from
the sixth call for a shape on: its masks then differ from run to run (docs/differences.md), and nothing could be compared with them.
"""
import sys

import mindspore as ms
import numpy as np
from mindspore import nn

STEPS = 20


def start(seed):
    """Choose the mode that the command line names, `pynative` or `graph`, and set the seed."""
    ms.set_context(mode=ms.GRAPH_MODE if "graph" in sys.argv[1:] else ms.PYNATIVE_MODE, device_target="CPU")
    ms.set_seed(seed)


def train(net, loss, optimizer, batches):
    """Print the loss of each step."""
    step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), optimizer).set_train()
    for inputs, labels in batches:
        print(float(step(ms.Tensor(inputs), ms.Tensor(labels)).asnumpy()).hex())


def batches(shape, classes, draw):
    """Batches of inputs and labels drawn from NumPy's global stream, which the seed and the construction of the net decide."""
    for step in range(STEPS):
        size = 4 + step // 5
        inputs = draw((size, *shape))
        yield inputs, np.random.randint(0, classes, size).astype(np.int32)


def images(shape):
    """Normal numbers."""
    return np.random.normal(0, 1, shape).astype(np.float32)
