"""A Primitive subclass with prim_attr_register, infer_shape, infer_dtype and vm_impl, and one that ops.Custom makes of a Python function."""
import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops
from mindspore.ops import PrimitiveWithInfer, prim_attr_register

from measured import report

ms.set_context(mode=ms.PYNATIVE_MODE)


class Scaled(PrimitiveWithInfer):
    @prim_attr_register
    def __init__(self, factor=2.0, offset=1):
        self.init_prim_io_names(inputs=["x"], outputs=["y"])
        self.factor, self.offset = factor, offset

    def infer_shape(self, x_shape):
        return x_shape

    def infer_dtype(self, x_dtype):
        return x_dtype

    def vm_impl(self, x):
        return Tensor(x.asnumpy() * self.factor + self.offset)


scaled = Scaled(3.0)
print(scaled.name, scaled.attrs["factor"], scaled.attrs["offset"])
print(scaled.infer_shape([2, 3]), scaled.infer_dtype(ms.float32))
report(scaled.vm_impl(Tensor([1.0, 2.0])))
scaled.add_prim_attr("extra", 5)
print(scaled.attrs["extra"], hasattr(scaled, "extra"))


def doubled(a, b):
    return a * 2 + b


custom = ops.Custom(doubled, lambda a, b: a, lambda a, b: a, func_type="pyfunc")
report(custom(Tensor(np.array([1.0, 2.0], np.float32)), Tensor(np.array([5.0, 6.0], np.float32))))


class Holder(nn.Cell):
    def __init__(self):
        super(Holder, self).__init__()
        self.custom = custom

    def construct(self, x):
        return self.custom(x, x) + 1


report(Holder()(Tensor(np.array([1.0, -1.0], np.float32))))
