"""`mindspore.run_check`: whether what is installed computes."""
from __future__ import annotations

from torchspore.names import mindspore_version


def run_check() -> None:
    """Multiplies two small matrices on the device and prints whether the product is right, in MindSpore's words.

    An error of the device, or a wrong product, is printed as a failure with its reason.
    """
    import numpy as np

    from torchspore.mindspore import context, ops
    from torchspore.mindspore.common.tensor import Tensor

    print(f"MindSpore version:  {mindspore_version()}")
    left, right = np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(12, dtype=np.float32).reshape(3, 4) - 5
    try:
        found = ops.matmul(Tensor(left), Tensor(right)).asnumpy()
        if not np.array_equal(found, left @ right):
            raise RuntimeError(f"a product is {found.tolist()}, expected {(left @ right).tolist()}")
    except Exception as error:
        print(f"MindSpore running check failed.\n{error}")
        return
    target = context.get_context("device_target")
    print(f"The result of multiplication calculation is correct, MindSpore has been installed on platform [{target}] successfully!")
