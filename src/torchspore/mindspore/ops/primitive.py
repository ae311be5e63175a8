"""`mindspore.ops.primitive`: MindSpore's path for the class form of operators."""
from torchspore.mindspore.ops.declaration.primitive import (  # noqa: F401  MindSpore offers these names under this path
    Primitive,
    PrimitiveWithCheck,
    PrimitiveWithInfer,
    prim_attr_register,
)
