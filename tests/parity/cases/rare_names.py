"""Names that programs use rarely: a few operators, functions of the top, types that are generic."""
from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import nn, ops
from mindspore.common import dtype
from parity.case import case, raised


@case(rtol=2e-6, atol=1e-6)
def rare():
    x = ms.Tensor(np.array([[7.5, -7.5], [3.0, -0.5]], np.float32))
    y = ms.Tensor(np.array([[2.0, 2.0], [-2.0, 2.0]], np.float32))
    return {
        "FloorDiv": ops.FloorDiv()(x, y).asnumpy(),
        "mirror_pad": ops.mirror_pad(x, ms.Tensor([[1, 1], [0, 1]]), "SYMMETRIC").asnumpy(),
        "Gelu": ops.Gelu()(x).asnumpy(),
    }


@case()
def made_by_hand():
    class Doubled(ops.PrimitiveWithCheck):
        def __init__(self):
            super().__init__("Doubled")

    @ops.constexpr
    def twice(value):
        return 2 * value

    doubled = Doubled()
    return {"name": doubled.name, "is_primitive": isinstance(doubled, ops.Primitive), "constexpr": twice(4)}


@case()
def names_of_the_top():
    ms.set_recursion_limit(900)
    results = {
        "types": [str(type_name) for type_name in (ms.tensor_type, ms.tuple_, ms.string, ms.type_none)],
        "recursion": [raised(lambda: ms.set_recursion_limit("10")), raised(lambda: ms.set_recursion_limit(0))],
        "ps": ms.get_ps_context("enable_ps"),
        "reset": ms.reset_ps_context(),
        "optimizer": issubclass(nn.Adam, nn.Optimizer),
    }
    ms.set_recursion_limit(1000)
    ms.ms_memory_recycle()
    generic = (dtype.Tuple, dtype.List, dtype.String, dtype.TensorType)
    results["generic"] = [[cls.__name__, issubclass(cls, dtype.Type)] for cls in generic]
    results["bytes"] = [dtype.type_size_in_bytes(kind) for kind in (ms.float16, ms.float32, ms.int64, ms.bool_)]
    return results


@case()
def rearranged():
    class Metric(ms.train.Metric):
        def clear(self):
            self.seen = None

        @ms.train.rearrange_inputs
        def update(self, *inputs):
            self.seen = list(inputs)

        def eval(self):
            return self.seen

    metric = Metric()
    metric.set_indexes([2, 0])
    metric.update("a", "b", "c")
    return {"seen": metric.eval()}
