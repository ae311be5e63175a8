"""Gradients of several processes made one; here of the one process that there is."""
from __future__ import annotations

from typing import Any

from torchspore.base.text import message, short
from torchspore.context.public import get_auto_parallel_context
from torchspore.engine import dtypes
from torchspore.mindspore.common.parameter import ParameterTuple
from torchspore.mindspore.common.sparse_tensor import RowTensorInner
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.communication.management import HCCL_WORLD_COMM_GROUP, get_group_size
from torchspore.mindspore.nn.cell import Cell


class DistributedGradReducer(Cell):
    """The sum of each gradient over the processes of `group`, and with `mean` divided by `degree`.

    `mean` None is what the context's `gradients_mean` says, `degree` None the number of processes in `group`, which is one. `fusion_type`
    numbers the messages in which gradients would travel; one process sends none. Raises ValueError for a degree that is no int above 0 or
    a group that no one made, TypeError for what is no list of Parameters or no int.
    """

    def __init__(
        self, parameters: Any, mean: bool | None = None, degree: int | None = None, fusion_type: int = 1,
        group: str = HCCL_WORLD_COMM_GROUP,
    ) -> None:
        super().__init__(auto_prefix=False)
        if isinstance(fusion_type, bool) or not isinstance(fusion_type, int):
            raise TypeError(message(f"DistributedGradReducer(fusion_type={short(fusion_type)})", "an int"))
        if degree is None:
            degree = get_group_size(group)
        elif isinstance(degree, bool) or not isinstance(degree, int) or degree <= 0:
            raise ValueError(message(f"DistributedGradReducer(degree={short(degree)})", "an int above 0"))
        self.mean = bool(get_auto_parallel_context("gradients_mean")) if mean is None else mean
        self.degree, self._is_alone = Tensor(1.0 / degree, dtypes.float32), degree == 1
        self.allreduce_filter = tuple(not getattr(parameter, "layerwise_parallel", False) for parameter in parameters)

    def construct(self, grads: Any) -> Any:
        """The gradients, each over all processes."""
        if not self.mean or self._is_alone:
            return grads
        return tuple(self._mean(grad) if shared else grad for grad, shared in zip(grads, self.allreduce_filter))

    def _mean(self, grad: Any) -> Any:
        return grad * self.degree.astype(grad.values.dtype if isinstance(grad, RowTensorInner) else grad.dtype)


class PipelineGradReducer(Cell):
    """The gradients of the stages of a pipeline, divided by `scale_sense`; here of the one stage that there is.

    `opt_shard` says whether processes share the optimizer's state, which takes several. Raises TypeError for what is no list of
    Parameters.
    """

    def __init__(self, parameters: Any, scale_sense: Any = 1.0, opt_shard: Any = None) -> None:
        super().__init__(auto_prefix=False)
        if not isinstance(parameters, (list, tuple)):
            raise TypeError(message(f"PipelineGradReducer(parameters={short(parameters)})", f"a list, got {type(parameters).__name__}"))
        if opt_shard:
            raise ValueError(message("PipelineGradReducer(opt_shard=True)", "None or False: one process shares its state with no other"))
        self.accu_grads = ParameterTuple(parameters).clone(prefix="accu_grads", init="zeros")
        self.scale_sense = scale_sense

    def construct(self, grads: Any) -> Any:
        """The gradients, divided by the scale."""
        return tuple(grad / self.scale_sense for grad in grads)
