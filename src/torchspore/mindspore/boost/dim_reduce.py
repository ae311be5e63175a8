"""Quasi-Newton steps in a few directions, and gradient descent in all others."""
from __future__ import annotations

from typing import Any

import numpy as np

from torchspore.base.text import message
from torchspore.graph.capture.running_trace import converted
from torchspore.mindspore import ops
from torchspore.mindspore.common import dtype as mstype
from torchspore.mindspore.common.parameter import Parameter, ParameterTuple
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.nn.cell import Cell
from torchspore.public_names import missing

_SMALLEST = 1e-20


class DimReduce(Cell):
    """A BFGS step along `pca_mat_local` (n_components, weights), with a line search, and in the other directions a momentum step.

    gk = pca @ grad, dk = -bk @ gk; the length is the first of 1, `rho` and 0 with network(*inputs) < loss + `sigma` * length * gk . dk. The
    other directions get `alpha` * (`gamma` * momentum + grad - pca.T @ gk). The optimizer's step must be its gradient: SGD with the rate 1.
    Called with (loss, gradients, loss scale, weights, copies of the weights, *inputs) it returns the loss. Raises ValueError for a matrix
    of another shape, RuntimeError for directions that are cut among several processes.
    """

    def __init__(
        self, network: Cell, optimizer: Any, weight: Any, pca_mat_local: np.ndarray, n_components: int, rho: float, gamma: float,
        alpha: float, sigma: float, rank: int, rank_size: int,
    ) -> None:
        super().__init__()
        if rank_size > 1:
            raise RuntimeError(message(
                f"DimReduce(rank={rank}, rank_size={rank_size})", "one process: directions that several share are not in torchspore",
            ))
        sizes = [int(np.prod(parameter.shape)) for parameter in weight]
        if pca_mat_local.shape != (n_components, sum(sizes)):
            raise ValueError(message(f"DimReduce(pca_mat_local of {pca_mat_local.shape})", f"the shape {(n_components, sum(sizes))}"))
        self.network, self.optimizer = network, optimizer
        self.n_components, self.gamma, self.alpha, self.sigma = n_components, gamma, alpha, sigma
        self.rho_list = [1.0, float(rho)]
        cuts = np.split(pca_mat_local.astype(np.float32), np.cumsum(sizes)[:-1], axis=1)
        self.pca_list_local = tuple(Tensor(part) for part in cuts)
        self.eye = Tensor(np.eye(n_components), mstype.float32)
        self.bk = Parameter(Tensor(np.eye(n_components), mstype.float32), name="bk")
        for name in ("gk_last", "sk"):
            setattr(self, name, Parameter(Tensor(np.zeros((n_components, 1)), mstype.float32), name=name))
        self.gk_last_init = Parameter(Tensor(False), name="gk_last_init")
        self.grad_res_momentum = ParameterTuple(weight).clone(prefix="grad_res_momentum", init="zeros")

    def construct(self, loss: Any, old_grad: Any, loss_scale: Any, weight: Any, weight_clone: Any, *inputs: Any) -> Any:
        """Runs one step; returns the loss."""
        scaled = [grad.astype(mstype.float32) / loss_scale for grad in old_grad]
        gk = ops.addn([ops.matmul(components, grad.reshape((-1, 1))) for components, grad in zip(self.pca_list_local, scaled)])
        last, before = self.gk_last * 1.0, self.bk * 1.0
        self._update_bk(gk)
        dk = -ops.matmul(self.bk, gk)
        dn, in_plane = self._back(dk, old_grad), self._back(gk, old_grad)
        length = converted(_search)(self, loss, ops.matmul(gk.T, dk).reshape(()), dk, dn, weight, weight_clone, inputs)
        is_better = length > 0
        ops.assign(self.gk_last, ops.select(is_better, self.gk_last * 1.0, last))
        ops.assign(self.bk, ops.select(is_better, self.bk * 1.0, before))
        self.optimizer(tuple(
            self._other_directions(momentum, grad, plane_grad) - length * step
            for momentum, grad, plane_grad, step in zip(self.grad_res_momentum, old_grad, in_plane, dn)
        ))
        for copy, parameter in zip(weight_clone, weight):
            ops.assign(copy, parameter)
        return loss

    def _back(self, along: Any, like: Any) -> list[Any]:
        """Convert coordinates along the directions to changes of each weight."""
        return [ops.matmul(components.T, along).reshape(parameter.shape) for components, parameter in zip(self.pca_list_local, like)]

    def _other_directions(self, momentum: Any, grad: Any, in_plane: Any) -> Any:
        after = self.gamma * momentum + grad - in_plane
        ops.assign(momentum, after)
        return self.alpha * after

    def _update_bk(self, gk: Any) -> None:
        """Update `bk` by the change of the gradient since the last step, and store this gradient."""
        yk = gk - self.gk_last
        curvature = ops.matmul(yk.T, self.sk).reshape(())
        counts = ops.logical_and(self.gk_last_init, curvature > _SMALLEST)
        inverse = 1.0 / ops.select(counts, curvature, ops.ones_like(curvature))
        turn = self.eye - ops.matmul(inverse * yk, self.sk.T)
        after = ops.matmul(ops.matmul(turn.T, self.bk), turn) + ops.matmul(inverse * self.sk, self.sk.T)
        ops.assign(self.bk, ops.select(counts, after, self.bk * 1.0))
        ops.assign(self.gk_last, gk)
        ops.assign(self.gk_last_init, ops.ones_like(self.gk_last_init))

    def _is_better(self, length: float, loss: Any, slope: Any, dk: Any, dn: Any, weight: Any, weight_clone: Any, inputs: Any) -> Any:
        """Return whether a step of this length makes the loss small enough. Restores the weights."""
        self.optimizer(tuple(-length * direction for direction in dn))
        is_better = self.network(*inputs) < loss + self.sigma * length * slope
        for parameter, copy in zip(weight, weight_clone):
            ops.assign(parameter, copy)
        ops.assign(self.sk, ops.select(is_better, length * dk, self.sk * 1.0))
        return is_better


def _search(cell: Any, loss: Any, slope: Any, dk: Any, dn: Any, weight: Any, weight_clone: Any, inputs: Any) -> Any:
    """Return the first length that makes the loss small enough, or 0."""
    first, second = cell.rho_list
    length = ops.zeros_like(slope)
    if cell._is_better(first, loss, slope, dk, dn, weight, weight_clone, inputs):
        length = ops.full_like(slope, first)
    elif cell._is_better(second, loss, slope, dk, dn, weight, weight_clone, inputs):
        length = ops.full_like(slope, second)
    return length


_search.converts = True  # type: ignore[attr-defined]
__getattr__ = missing(__name__)
