"""Cells that return a network's output and a product with its Jacobian."""
from __future__ import annotations

from typing import Any

from torchspore.mindspore import ops
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.ops.gradients.transforms import check_structure


class Vjp(Cell):
    """Called with the inputs of `fn` and a vector of its output's shape: (output, vector times Jacobian).

    The second is the gradient of the input, or a tuple of them for several inputs.
    """

    def __init__(self, fn: Any) -> None:
        super().__init__()
        self.fn = fn
        self.grad = ops.GradOperation(get_all=True, sens_param=True)

    def construct(self, *args: Any) -> Any:
        """Return (output, gradients of the inputs)."""
        output = self.fn(*args[:-1])
        check_structure("Vjp", output, args[-1])
        gradients = self.grad(self.fn)(*args)
        return output, gradients[0] if len(args) == 2 else gradients


class Jvp(Cell):
    """Called with the inputs of `fn` and vectors of their shapes (a tuple of them for several inputs): (output, Jacobian times vectors).

    It is the gradient of Vjp's result by its vector, which enters linearly.
    """

    def __init__(self, fn: Any) -> None:
        super().__init__()
        self.fn = fn
        self.first = ops.GradOperation(get_all=True, sens_param=True)
        self.second = ops.GradOperation(sens_param=True)

    def construct(self, *args: Any) -> Any:
        """Return (output, product)."""
        inputs, vectors = args[:-1], args[-1]
        check_structure("Jvp", inputs[0] if len(inputs) == 1 else inputs, vectors)
        vectors = vectors if isinstance(vectors, tuple) else (vectors,)
        output = self.fn(*inputs)

        def pulled(*weights: Any) -> Any:
            total = None
            for gradient, vector in zip(self.first(self.fn)(*inputs, weights if isinstance(output, tuple) else weights[0]), vectors):
                part = (gradient * vector).sum()
                total = part if total is None else total + part
            return total

        start = tuple(map(ops.ones_like, output)) if isinstance(output, tuple) else (ops.ones_like(output),)
        products = ops.GradOperation(get_all=True)(pulled)(*start)
        return output, products if isinstance(output, tuple) else products[0]
