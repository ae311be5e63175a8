"""Gradients of several processes made one."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torchspore.base.text import message, short
from torchspore.distributed.parallel import fusion, gradient_reduction, option_effects, overlap, settings
from torchspore.distributed.parallel.gradient_reduction import Plan
from torchspore.engine.core import dtypes
from torchspore.engine.core.tensor import raw, wrap
from torchspore.mindspore.common.parameter import ParameterTuple
from torchspore.mindspore.common.sparse_tensor import COOTensor, RowTensorInner
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.communication.management import HCCL_WORLD_COMM_GROUP
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.nn.optim.optimizer import optimizer_of


class DistributedGradReducer(Cell):
    """The sum of each gradient over the processes of `group`, and with `mean` divided by `degree`.

    `mean` None is what the context's `gradients_mean` says, `degree` None the number of processes in `group`. Gradients are summed in
    float32, in few messages: by `fusion_type` (above 1 all in one), else by the Parameters' `comm_fusion` and the context. Those of
    Parameters with `layerwise_parallel` stay as they are; of sparse ones the rows of all processes come one after the other.

    Raises ValueError for a degree that is no int above 0 or a group that no one made, TypeError for what is no list of Parameters or no
    int; at the call RuntimeError for a `device_num` that is not the number of processes.
    """

    def __init__(
        self, parameters: Any, mean: bool | None = None, degree: int | None = None, fusion_type: int = 1,
        group: str = HCCL_WORLD_COMM_GROUP,
    ) -> None:
        super().__init__(auto_prefix=False)
        from torchspore.distributed.comm import groups

        if isinstance(fusion_type, bool) or not isinstance(fusion_type, int):
            raise TypeError(message(f"DistributedGradReducer(fusion_type={short(fusion_type)})", "an int"))
        members = groups.find(group)
        if degree is None:
            degree = members.size
        elif isinstance(degree, bool) or not isinstance(degree, int) or degree <= 0:
            raise ValueError(message(f"DistributedGradReducer(degree={short(degree)})", "an int above 0"))
        self.mean = settings.takes_means() if mean is None else mean
        self.degree, self._is_alone = Tensor(1.0 / degree, dtypes.float32), degree == 1
        parameters = list(parameters) if isinstance(parameters, Iterable) else parameters
        if not isinstance(parameters, list) or not all(isinstance(one, Tensor) for one in parameters):
            what = f"DistributedGradReducer(parameters={short(parameters)})"
            raise TypeError(message(what, f"a list of Parameters, got {type(parameters).__name__}", hint="write optimizer.parameters"))
        self.allreduce_filter = tuple(not getattr(parameter, "layerwise_parallel", False) for parameter in parameters)
        buckets = fusion.of_gradients(
            [getattr(p, "comm_fusion", 1) for p in parameters], [4 * p.size for p in parameters], fusion.rule(), fusion_type,
        )
        shared = ([place for place in bucket if self.allreduce_filter[place]] for bucket in buckets)
        self._plan = Plan([b for b in shared if b], members, 1.0 / degree if self.mean and degree > 1 else None)
        self._is_several = members.size > 1
        self._made = "sums" if self._plan.factor is None else f"means of {degree}"
        self._shapes = tuple(tuple(p.shape) for p in parameters)
        self.__dict__["_reduced"] = tuple(parameters)                  # no children of this Cell
        self._ahead = overlap.Ahead(parameters, self._plan) if self._is_several else None
        option_effects.report_plan(self._plan, len(parameters))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._is_several and "_has_said" not in self.__dict__:      # a step of the program's own says nothing
            self._say_update_()
        return super().__call__(*args, **kwargs)

    def _say_update_(self) -> None:
        from torchspore.mindspore.nn.wrap import stating

        self.__dict__["_has_said"] = True
        optimizer = optimizer_of(self.__dict__["_reduced"])
        if optimizer is not None:
            stating.say_update(self._plan.group, optimizer)

    def construct(self, grads: Any) -> Any:
        """The gradients, each over all processes."""
        from torchspore.distributed.comm import groups

        settings.check()
        if self._is_several:
            groups.say(self._plan.group, "gradients over processes", self._made)
            return self._summed_(tuple(grads))
        if not self.mean or self._is_alone:
            return grads
        return tuple(self._mean_(grad) if shared else grad for grad, shared in zip(grads, self.allreduce_filter))

    def _mean_(self, grad: Any) -> Any:
        return grad * self.degree.astype(grad.values.dtype if isinstance(grad, RowTensorInner) else grad.dtype)

    def _summed_(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        if len(grads) != len(self.allreduce_filter):
            raise ValueError(message(
                f"DistributedGradReducer of {len(self.allreduce_filter)} Parameters, called with {len(grads)} gradients",
                "a gradient for each Parameter",
            ))
        sparse = [place for place, grad in enumerate(grads) if isinstance(grad, (RowTensorInner, COOTensor))]
        if sparse:
            return self._with_rows_(grads, sparse)
        found = [raw(grad) for grad in grads]
        done = [place for place, t in enumerate(found) if tuple(t.shape) != self._shapes[place]]
        if done:                                          # rows of a Parameter that processes share, which are sums already
            left = [[place for place in bucket if place not in done] for bucket in self._plan.buckets]
            plan = Plan([bucket for bucket in left if bucket], self._plan.group, self._plan.factor)
            return tuple(wrap(t) for t in gradient_reduction.reduced(found, plan))
        is_plain = self._ahead is None or gradient_reduction.is_traced() or any(t.requires_grad for t in found)
        summed = gradient_reduction.reduced(found, self._plan) if is_plain else self._ahead.reduced(found)
        return tuple(wrap(t) for t in summed)

    def _with_rows_(self, grads: tuple[Any, ...], sparse: list[int]) -> tuple[Any, ...]:
        """The sums where some gradients are rows: of those all processes' rows, one after the other."""
        whole = [[place for place in bucket if place not in sparse] for bucket in self._plan.buckets]
        plan = Plan([bucket for bucket in whole if bucket], self._plan.group, self._plan.factor)
        dense = gradient_reduction.reduced([raw(grad.values if place in sparse else grad) for place, grad in enumerate(grads)], plan)
        return tuple(
            self._rows_(grad) if place in sparse and self.allreduce_filter[place] else grad if place in sparse else wrap(dense[place])
            for place, grad in enumerate(grads)
        )

    def _rows_(self, grad: Any) -> Any:
        from torchspore.distributed.comm import collectives

        rows = grad.rows() if isinstance(grad, COOTensor) else grad
        indices, values = (collectives.all_gather(raw(part), self._plan.group) for part in rows.parts())
        return rows.rebuilt((wrap(indices), wrap(values if self._plan.factor is None else values * self._plan.factor)))


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
