"""What the programs of `models` and `idioms` share: weights out of a NumPy seed, three steps whose losses are printed, a checksum, time.

    net = begin(Net())                            the same weights in every framework
    train(lambda: step(images, labels), net)      prints three losses and a checksum of the parameters

A program that Model.train drives calls report(loss) in its callback and finish(net) at its end. Lines that begin with `#` are seconds
and are not compared; after the three steps six more follow for the clock's sake.
"""
import sys
import time
import zlib

import mindspore as ms
import numpy as np

GRAPH = "graph" in sys.argv[1:]
MODE = ms.GRAPH_MODE if GRAPH else ms.PYNATIVE_MODE
_clock = []


def begin(net, seed=1, scale=1.0):
    """Gives the Parameters of a Cell values that depend on their order and shapes alone; normal ones have the variance 2 / fan-in."""
    random = np.random.RandomState(seed)
    for parameter in net.get_parameters():
        shape, name = parameter.shape, parameter.name
        if not shape or "float" not in str(parameter.dtype).lower() or name.endswith(("moving_mean", "moving_variance")):
            continue
        if len(shape) > 1:
            values = random.normal(0, scale * np.sqrt(2 / np.prod(shape[1:])), shape)
        elif name.endswith("gamma"):
            values = 1 + random.uniform(-0.1, 0.1, shape)
        else:
            values = random.uniform(-0.1, 0.1, shape)
        parameter.set_data(ms.Tensor(values.astype(np.float32), parameter.dtype))
    return net


def numbers(values):
    """The numbers of a Tensor, a number, or a nest of them, in order."""
    if isinstance(values, (tuple, list)):
        return [number for value in values for number in numbers(value)]
    array = values.asnumpy() if hasattr(values, "asnumpy") else np.asarray(values)
    return [float(number) for number in array.astype(np.float64).ravel()]


def report(*values):
    """Prints the losses of a step, or whatever is to be compared, with 8 digits."""
    result = numbers(values)
    _clock.append(time.perf_counter())
    print(*(f"{number:.8g}" for number in result))


def finish(*nets):
    """Prints names and sums of the Parameters of Cells (or of tuples of Parameters), and the time of the quickest step but the first."""
    for net in nets:
        parameters = list(net.get_parameters()) if hasattr(net, "get_parameters") else list(net)
        arrays = [parameter.asnumpy().astype(np.float64) for parameter in parameters]
        names = zlib.crc32(" ".join(parameter.name for parameter in parameters).encode())
        total, size = sum(array.sum() for array in arrays), sum(np.abs(array).sum() for array in arrays)
        print(f"parameters {len(arrays)} {names} {size:.8g} {total / size if size else 0:.6f}")
    if len(_clock) > 2:
        print(f"# seconds {min(b - a for a, b in zip(_clock[1:], _clock[2:])):.6f}")
    del _clock[:]


def train(step, *nets):
    """Calls `step` three times and prints what it returns; then a checksum of the Parameters."""
    start = time.perf_counter()
    for _ in range(3):
        report(step())
        if len(_clock) == 1:
            print(f"# first {_clock[0] - start:.6f}")
    del _clock[:]
    finish(*nets)
    more = [time.perf_counter()]
    for _ in range(6):
        numbers(step())
        more.append(time.perf_counter())
    spans = sorted(b - a for a, b in zip(more, more[1:]))
    print(f"# seconds {spans[len(spans) // 3]:.6f}")
