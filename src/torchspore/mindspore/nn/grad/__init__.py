"""Products of vectors with the Jacobian, as Cells."""
from torchspore.mindspore.nn.grad.cell_grad import Jvp, Vjp

__all__ = ["Jvp", "Vjp"]
