"""The options of `ops.CTCLoss`. A file of its own: in one process with others MindSpore crashes."""
from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore.ops import operations as P
from parity.case import case


def t(values, dtype=np.float32):
    return ms.Tensor(np.array(values, dtype))


def of(*shape, start=0.5):
    count = int(np.prod(shape))
    return t((np.sin(np.arange(count) * 1.7 + start) * 3).reshape(shape))


OPTIONS = {f"{a:d}{b:d}": (a, b) for a in (False, True) for b in (False, True)}
POSITIONS = [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1]]


@case(over=OPTIONS, rtol=1e-4, atol=1e-5)
def ctc_options(options):
    results = {}
    for name, values, lengths in (("long", [1, 1, 2, 2, 1], [6, 5]), ("short", [1, 1, 1, 2, 2], [6, 2])):
        labels = t(POSITIONS, np.int64), t(values, np.int32), t(lengths, np.int32)
        if name == "short" and not options[0] and options[1]:
            continue                                                # impossible, which MindSpore refuses
        losses, gradient = P.CTCLoss(*options)(of(6, 2, 4), *labels)
        results |= {name: losses.asnumpy(), f"{name}_gradient": gradient.asnumpy()}
    return results
