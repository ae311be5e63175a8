"""Reduction of gradients over processes."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torchspore.base.arguments import is_int
from torchspore.base.text import message, short
from torchspore.distributed.data_parallel import fusion, gradient_reduction, option_effects, overlap, settings
from torchspore.distributed.data_parallel.gradient_reduction import Plan
from torchspore.engine.tensors import dtypes
from torchspore.engine.tensors.tensor import raw, wrap
from torchspore.graph.capture.running_trace import current
from torchspore.graph.splitter import is_needed
from torchspore.mindspore.common.parameter import Parameter, ParameterTuple
from torchspore.mindspore.common.process_groups import HCCL_WORLD_COMM_GROUP
from torchspore.mindspore.common.sparse_tensor import COOTensor, RowTensorInner
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.nn.optim.optimizer import optimizer_of


class DistributedGradReducer(Cell):
    """The sum of each gradient over the processes of `group`, and with `mean` divided by `degree`.

    `mean` None means the context's `gradients_mean`, `degree` None the number of processes in `group`. Gradients are summed in
    float32, in few messages: by `fusion_type` (above 1: all in one), else by the Parameters' `comm_fusion` and the context. Those of
    Parameters with `layerwise_parallel` stay unchanged; for sparse ones, the rows of all processes are concatenated.

    Raises ValueError for a degree that is not an int above 0 or an unknown group, TypeError for a value that is not a list of Parameters or
    not an int; a call raises RuntimeError for a `device_num` that is not the number of processes, and in the modes that split graphs.
    """

    def __init__(
        self, parameters: Any, mean: bool | None = None, degree: int | None = None, fusion_type: int = 1,
        group: str = HCCL_WORLD_COMM_GROUP,
    ) -> None:
        super().__init__(auto_prefix=False)
        from torchspore.distributed.comm import groups

        if not is_int(fusion_type):
            raise TypeError(message(f"DistributedGradReducer(fusion_type={short(fusion_type)})", "an int"))
        members = groups.find(group)
        if degree is None:
            degree = members.size
        elif not is_int(degree) or degree <= 0:
            raise ValueError(message(f"DistributedGradReducer(degree={short(degree)})", "an int above 0"))
        self.mean = settings.takes_means() if mean is None else mean
        self.degree, self._is_alone = Tensor(1.0 / degree, dtypes.float32), degree == 1
        parameters = list(parameters) if isinstance(parameters, Iterable) else parameters
        if not isinstance(parameters, list) or not all(isinstance(parameter, Parameter) for parameter in parameters):
            description = f"DistributedGradReducer(parameters={short(parameters)})"
            expected = f"a list of Parameters, got {type(parameters).__name__}"
            raise TypeError(message(description, expected, hint="write optimizer.parameters"))
        self.allreduce_filter = tuple(not getattr(parameter, "layerwise_parallel", False) for parameter in parameters)
        buckets = fusion.of_gradients(
            [getattr(p, "comm_fusion", 1) for p in parameters], [4 * p.size for p in parameters], fusion.rule(), fusion_type,
        )
        shared = ([index for index in bucket if self.allreduce_filter[index]] for bucket in buckets)
        self._plan = Plan([b for b in shared if b], members, 1.0 / degree if self.mean and degree > 1 else None)
        self._is_several = members.size > 1
        self._description = "sums" if self._plan.factor is None else f"means of {degree}"
        self._shapes = tuple(tuple(p.shape) for p in parameters)
        self.__dict__["_reduced"] = tuple(parameters)                  # not children of this Cell
        self._ahead = overlap.EarlyReducer(parameters, self._plan) if self._is_several else None
        option_effects.report_plan(self._plan, len(parameters))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._is_several and "_has_said" not in self.__dict__:      # a user-defined training step does not report it
            self._say_update_()
        return super().__call__(*args, **kwargs)

    def _say_update_(self) -> None:
        from torchspore.mindspore.nn.wrap import settings_report

        self.__dict__["_has_said"] = True
        optimizer = optimizer_of(self.__dict__["_reduced"])
        if optimizer is not None:
            settings_report.report_update(self._plan.group, optimizer)

    def construct(self, grads: Any) -> Any:
        """Return the gradients, each reduced over all processes."""
        from torchspore.distributed.comm import groups

        devices = settings.planned_devices()
        if devices > 1 and current() is not None:
            return self._planned_(tuple(grads), devices)
        settings.check()
        if is_needed():
            hint = "leave the reducer out: a graph that is split sums its gradients itself"
            wrote = f"DistributedGradReducer with parallel_mode={settings.mode()!r}"
            error = RuntimeError(message(wrote, "'data_parallel' or 'hybrid_parallel'", hint=hint))
            error.final = True  # type: ignore[attr-defined]  # PyNative, in which no graph is split, would run it
            raise error
        if self._is_several:
            groups.report_terms(self._plan.group, "gradients over processes", self._description)
            return self._summed_(tuple(grads))
        if not self.mean or self._is_alone:
            return grads
        return tuple(self._mean_(grad) if shared else grad for grad, shared in zip(grads, self.allreduce_filter))

    def _planned_(self, grads: tuple[Any, ...], devices: int) -> tuple[Any, ...]:
        """Return what the sums among planned devices have as shapes; the graph can be compiled and raises an error when it runs."""
        from torchspore.distributed.comm import operators

        return tuple(
            wrap(operators.PLANNED(raw(grad), list(grad.shape), "the sum of gradients", devices)) if isinstance(grad, Tensor) else grad
            for grad in grads
        )

    def _mean_(self, grad: Any) -> Any:
        return grad * self.degree.astype(grad.values.dtype if isinstance(grad, RowTensorInner) else grad.dtype)

    def _summed_(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        if len(grads) != len(self.allreduce_filter):
            raise ValueError(message(
                f"DistributedGradReducer of {len(self.allreduce_filter)} Parameters, called with {len(grads)} gradients",
                "a gradient for each Parameter",
            ))
        sparse = [index for index, grad in enumerate(grads) if isinstance(grad, (RowTensorInner, COOTensor))]
        if sparse:
            return self._with_rows_(grads, sparse)
        tensors = [raw(grad) for grad in grads]
        done = [index for index, t in enumerate(tensors) if tuple(t.shape) != self._shapes[index]]
        if done:                                          # rows of a shared Parameter are sums already
            remaining_buckets = [[index for index in bucket if index not in done] for bucket in self._plan.buckets]
            plan = Plan([bucket for bucket in remaining_buckets if bucket], self._plan.group, self._plan.factor)
            return tuple(wrap(t) for t in gradient_reduction.reduced(tensors, plan))
        is_plain = self._ahead is None or gradient_reduction.is_traced() or any(t.requires_grad for t in tensors)
        summed = gradient_reduction.reduced(tensors, self._plan) if is_plain else self._ahead.reduced(tensors)
        return tuple(wrap(t) for t in summed)

    def _with_rows_(self, grads: tuple[Any, ...], sparse: list[int]) -> tuple[Any, ...]:
        """Return the sums when some gradients are rows: for those, the concatenated rows of all processes."""
        dense_buckets = [[index for index in bucket if index not in sparse] for bucket in self._plan.buckets]
        plan = Plan([bucket for bucket in dense_buckets if bucket], self._plan.group, self._plan.factor)
        dense = gradient_reduction.reduced([raw(grad.values if index in sparse else grad) for index, grad in enumerate(grads)], plan)
        return tuple(
            self._rows_(grad) if index in sparse and self.allreduce_filter[index] else grad if index in sparse else wrap(dense[index])
            for index, grad in enumerate(grads)
        )

    def _rows_(self, grad: Any) -> Any:
        from torchspore.distributed.comm import collectives

        rows = grad.rows() if isinstance(grad, COOTensor) else grad
        indices, values = (collectives.all_gather(raw(part), self._plan.group) for part in rows.parts())
        return rows.rebuilt((wrap(indices), wrap(values if self._plan.factor is None else values * self._plan.factor)))


class PipelineGradReducer(Cell):
    """The gradients of the stages of a pipeline, divided by `scale_sense`; here there is one stage.

    `opt_shard` sets whether processes share the optimizer's state, which requires several. Raises TypeError unless it is a list of
    Parameters.
    """

    def __init__(self, parameters: Any, scale_sense: Any = 1.0, opt_shard: Any = None) -> None:
        super().__init__(auto_prefix=False)
        if not isinstance(parameters, (list, tuple)):
            raise TypeError(message(f"PipelineGradReducer(parameters={short(parameters)})", f"a list, got {type(parameters).__name__}"))
        if opt_shard:
            raise ValueError(message("PipelineGradReducer(opt_shard=True)", "None or False: a single process cannot share its state"))
        self.accu_grads = ParameterTuple(parameters).clone(prefix="accu_grads", init="zeros")
        self.scale_sense = scale_sense

    def construct(self, grads: Any) -> Any:
        """Return the gradients, divided by the scale."""
        return tuple(grad / self.scale_sense for grad in grads)
