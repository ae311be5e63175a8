"""Helpers that compute gradients as values."""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn, optim


def parameters_of(optimizer: optim.Optimizer) -> list[Tensor]:
    """The parameters of an optimizer, in the order of the model if its groups have positions."""
    numbered: list[tuple[int, Tensor]] = []
    for group in optimizer.param_groups:
        numbered += zip(group.get("positions", range(len(numbered), len(numbered) + len(group["params"]))), group["params"])
    return [parameter for _, parameter in sorted(numbered, key=lambda item: item[0]) if parameter.requires_grad]


def with_schedule(optimizer: optim.Optimizer, schedule: Any) -> optim.Optimizer:
    """The optimizer; after each of its steps its rate is lr times what the schedule returns for the number of the step."""
    scheduler = optim.lr_scheduler.LambdaLR(optimizer, schedule)
    optimizer.register_step_post_hook(lambda *_: scheduler.step())
    return optimizer


def apply_gradients(optimizer: optim.Optimizer, gradients: Sequence[Tensor]) -> bool:
    """Update the parameters of an optimizer, in their order, by gradients; returns True."""
    for parameter, gradient in zip(parameters_of(optimizer), gradients, strict=True):
        parameter.grad = gradient.detach()
    optimizer.step()
    return True


def differentiate(
    function: Callable[..., Any], inputs: Sequence[Any], positions: Sequence[int], weights: Sequence[Tensor], has_aux: bool = False,
    sens: Any = None,
) -> tuple[Any, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """The value of a function, and the gradients of its results for inputs and weights; with `has_aux` of the first result only."""
    values = list(inputs)
    for position in positions:
        values[position] = values[position] if values[position].requires_grad else values[position].detach().requires_grad_()
    value = function(*values)
    results = value if isinstance(value, (tuple, list)) else (value,)
    results = results[:1] if has_aux else results
    seeds = [torch.ones_like(result) for result in results] if sens is None else sens if isinstance(sens, (tuple, list)) else [sens]
    pairs = [(result, seed.to(result)) for result, seed in zip(results, seeds) if result.requires_grad]
    gradients = torch.autograd.grad(
        [result for result, _ in pairs], [values[position] for position in positions] + list(weights), [seed for _, seed in pairs],
        create_graph=bool(positions), allow_unused=True, materialize_grads=True,
    )
    return value, gradients[: len(positions)], gradients[len(positions) :]


def value_and_grad(
    function: Callable[..., Any], grad_position: Any = 0, weights: Any = None, has_aux: bool = False,
) -> Callable[..., tuple[Any, Any]]:
    """A function of the value of `function` and its gradients for inputs (one position, several, or None) and weights."""
    positions = [] if grad_position is None else [grad_position] if isinstance(grad_position, int) else list(grad_position)
    parameters = [] if weights is None else [weights] if isinstance(weights, Tensor) else [w for w in weights if w.requires_grad]

    def compute(*inputs: Any) -> tuple[Any, Any]:
        value, of_inputs, of_weights = differentiate(function, inputs, positions, parameters, has_aux)
        first: Any = of_inputs[0] if isinstance(grad_position, int) else of_inputs
        second: Any = of_weights[0] if isinstance(weights, Tensor) else of_weights
        return value, second if grad_position is None else first if weights is None else (first, second)

    return compute


def grad(function: Callable[..., Any], grad_position: Any = 0, weights: Any = None, has_aux: bool = False) -> Callable[..., Any]:
    """A function of the gradients of `function`; with `has_aux` they are followed by the results behind the first."""
    with_value = value_and_grad(function, grad_position, weights, has_aux)

    def compute(*inputs: Any) -> Any:
        value, gradients = with_value(*inputs)
        return (gradients, tuple(value[1:])) if has_aux else gradients

    return compute


class GradientFromBprop(torch.autograd.Function):
    """The results of a function, whose gradients a Module computes."""

    @staticmethod
    def forward(ctx: Any, module: Any, function: Callable[..., Any], *inputs: Any) -> Any:
        output = function(*inputs)
        ctx.module, ctx.is_single = module, isinstance(output, Tensor)
        ctx.positions = [position for position, value in enumerate(inputs) if isinstance(value, Tensor)]
        ctx.others = [None if isinstance(value, Tensor) else value for value in inputs]
        ctx.save_for_backward(*(inputs[position] for position in ctx.positions), *((output,) if ctx.is_single else output))
        return output if ctx.is_single else tuple(output)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        count, inputs = len(ctx.positions), list(ctx.others)
        for position, value in zip(ctx.positions, ctx.saved_tensors[:count]):
            inputs[position] = value
        output = ctx.saved_tensors[count] if ctx.is_single else ctx.saved_tensors[count:]
        of_inputs = ctx.module.bprop(*inputs, output, gradients[0] if ctx.is_single else gradients)
        of_inputs = of_inputs if isinstance(of_inputs, (tuple, list)) else (of_inputs,)
        return None, None, *(g if position in ctx.positions else None for position, g in enumerate(of_inputs))


def with_bprop(forward: Callable[..., Any]) -> Callable[..., Any]:
    """A forward of a Module with the gradients that its method `bprop(*inputs, output, gradient_of_output)` returns."""

    @functools.wraps(forward)
    def compute(self: Any, *inputs: Any, **options: Any) -> Any:
        function = functools.partial(forward, self, **options)
        nested = [part for value in inputs if isinstance(value, (tuple, list)) for part in value if isinstance(part, Tensor)]
        if any(part.requires_grad for part in nested):
            raise TypeError("with_bprop: expected Tensors that are not in a tuple or list")
        if not torch.is_grad_enabled() or not any(isinstance(value, Tensor) and value.requires_grad for value in inputs):
            return function(*inputs)
        return GradientFromBprop.apply(self, function, *inputs)

    return compute


class GradOperation:
    """Gradients of a function for its first input, all inputs, or weights; with `sens_param` the last input is that of the result."""

    def __init__(self, get_all: bool = False, get_by_list: bool = False, sens_param: bool = False) -> None:
        self.get_all, self.get_by_list, self.sens_param = get_all, get_by_list, sens_param

    def __call__(self, function: Callable[..., Any], weights: Any = None) -> Callable[..., Any]:
        if self.get_by_list and weights is None and isinstance(function, nn.Module):
            weights = function.parameters()
        parameters = [weight for weight in weights or () if weight.requires_grad] if self.get_by_list else []

        def compute(*inputs: Any) -> Any:
            values, sens = (inputs[:-1], inputs[-1]) if self.sens_param else (inputs, None)
            tensors = [number for number, value in enumerate(values) if isinstance(value, Tensor)]
            positions = tensors if self.get_all else [] if self.get_by_list else [0]
            _, of_inputs, of_weights = differentiate(function, values, positions, parameters, sens=sens)
            if self.get_by_list:
                return (of_inputs, of_weights) if self.get_all else of_weights
            return of_inputs if self.get_all else of_inputs[0]

        return compute


def clip_by_global_norm(gradients: Any, clip_norm: float = 1.0) -> Any:
    """Tensors scaled down so that their common norm is at most `clip_norm`."""
    tensors = [gradients] if isinstance(gradients, Tensor) else list(gradients)
    norm = torch.sqrt(torch.stack([tensor.float().square().sum() for tensor in tensors]).sum())
    scale = clip_norm / norm.clamp(min=clip_norm)
    clipped = tuple((tensor * scale).to(tensor.dtype) for tensor in tensors)
    return clipped[0] if isinstance(gradients, Tensor) else clipped


def clip_by_norm(gradients: Any, max_norm: float, norm_type: float = 2.0) -> Any:
    """Tensors scaled down so that their common norm is at most `max_norm`, with 1e-6 added to the norm."""
    tensors = [gradients] if isinstance(gradients, Tensor) else list(gradients)
    norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(tensor, norm_type) for tensor in tensors]), norm_type)
    scale = max_norm / (norm + 1e-6)
    scale = torch.where(scale < 1, scale, torch.ones_like(scale))       # a norm that is NaN changes nothing
    return tensors[0] * scale if isinstance(gradients, Tensor) else tuple(tensor * scale for tensor in tensors)


class HyperMap:
    """A function applied to the elements of tuples and lists of equal length, also to those inside."""

    def __call__(self, function: Callable[..., Any], *nests: Any) -> Any:
        if isinstance(nests[0], (tuple, list, nn.ParameterList)):
            return tuple(self(function, *elements) for elements in zip(*nests, strict=True))
        return function(*nests)


class MultitypeFuncGraph:
    """Functions of which the kinds of the arguments select one."""

    def __init__(self) -> None:
        self.kinds: dict[str, Any] = {
            "Tensor": Tensor, "Number": (int, float), "Bool": bool, "Tuple": tuple, "List": list, "String": str, "Function": Callable,
        }
        self.functions: list[tuple[tuple[str, ...], Callable[..., Any]]] = []

    def register(self, *kinds: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Add a function for these kinds of arguments."""
        def add(function: Callable[..., Any]) -> Callable[..., Any]:
            self.functions.append((kinds, function))
            return function

        return add

    def __call__(self, *values: Any) -> Any:
        for kinds, function in self.functions:
            if len(kinds) == len(values) and all(isinstance(value, self.kinds.get(kind, ())) for kind, value in zip(kinds, values)):
                return function(*values)
        raise TypeError(f"no function for {', '.join(type(value).__name__ for value in values)}")


def with_first(function: Callable[..., Any], *first: Any) -> Callable[..., Any]:
    """The function with its first arguments."""
    return lambda *rest: function(*first, *rest)


def cloned_parameters(parameters: Sequence[Tensor], init: Any = "same") -> list[Tensor]:
    """Tensors of the shapes of parameters: copies, or with other values."""
    if init == "same":
        return [parameter.detach().clone() for parameter in parameters]
    values = {"zeros": 0.0, "ones": 1.0}
    return [torch.full_like(parameter, values.get(init, init)).detach() for parameter in parameters]


class OptimizerBase(optim.Optimizer):
    """An optimizer whose `forward` takes the gradients of its parameters, and writes into these.

    `learning_rate` is a number, a list of rates by step, or a schedule. Groups with the weight decay 0 are not decayed. `state_dict` has no
    tensors that a subclass stores in attributes.
    """

    is_group = is_group_lr = dynamic_weight_decay = use_parallel = False
    hyper_map = map_ = HyperMap()

    def __init__(self, learning_rate: Any, parameters: Any, weight_decay: float = 0.0, loss_scale: float = 1.0) -> None:
        super().__init__(parameters, {"weight_decay": 1.0})
        self.parameters = self._parameters = parameters_of(self)
        decayed = {id(each) for group in self.param_groups if group["weight_decay"] for each in group["params"]}
        self.decay_flags = tuple(weight_decay > 0 and id(parameter) in decayed for parameter in self.parameters)
        self.optim_filter, self.param_length = (True,) * len(self.parameters), len(self.parameters)
        self.learning_rate, self.weight_decay, self.loss_scale = learning_rate, torch.tensor(weight_decay * loss_scale), loss_scale
        self.dynamic_lr, self.exec_weight_decay = not isinstance(learning_rate, (int, float)), any(self.decay_flags)
        self.need_scale, self.reciprocal_scale = loss_scale != 1.0, torch.tensor(1.0 / loss_scale)
        self.global_step, self.global_step_increase_tensor = torch.zeros(1, dtype=torch.int32), torch.ones(1, dtype=torch.int32)
        self.cls_name = type(self).__name__

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Update the parameters by their gradients."""
        self.forward(tuple(torch.zeros_like(each) if each.grad is None else each.grad for each in self.parameters))

    def forward(self, gradients: Any) -> Any:
        """Update the parameters."""
        raise NotImplementedError

    def get_lr(self) -> Tensor:
        """Return the rate of the step `global_step`."""
        rate, step = self.learning_rate, int(self.global_step)
        if isinstance(rate, nn.Module):
            rate = rate(self.global_step)
        elif callable(rate):
            rate = rate(step)
        elif not isinstance(rate, (int, float)) and len(rate) > 0:
            rate = rate[min(step, len(rate) - 1)]
        return torch.as_tensor(rate, dtype=torch.float32).reshape(())

    def get_weight_decay(self) -> Tensor:
        """Return the weight decay."""
        return self.weight_decay

    def scale_grad(self, gradients: Any) -> Any:
        """Return the gradients without the loss scale."""
        return tuple(gradient * self.reciprocal_scale for gradient in gradients) if self.need_scale else gradients

    def decay_weight(self, gradients: Any) -> Any:
        """Return the gradients with the weight decay of those that have one."""
        triples = zip(gradients, self.parameters, self.decay_flags)
        return tuple(gradient + self.weight_decay * each if decays else gradient for gradient, each, decays in triples)

    def gradients_centralization(self, gradients: Any) -> Any:
        """Return the gradients: no group is centralized."""
        return gradients

    flatten_gradients = broadcast_params = gradients_centralization

    def assignadd(self, value: Tensor, increase: Tensor) -> Tensor:
        """Add to a tensor in place, such as `global_step`."""
        return value.add_(increase)

    def _is_dynamic_lr_or_weight_decay(self) -> bool:
        return self.dynamic_lr


class TrainOneStepCell(nn.Module):
    """A network that returns its loss, with its optimizer: a call updates the parameters."""

    def __init__(self, network: nn.Module, optimizer: optim.Optimizer, sens: float = 1.0) -> None:
        super().__init__()
        self.network, self.optimizer, self.sens, self.reducer_flag = network, optimizer, sens, False
        self.weights = parameters_of(optimizer)
        self.grad = GradOperation(get_by_list=True, sens_param=True)

    def grad_reducer(self, gradients: Any) -> Any:
        """Return the gradients: one process computes all of them."""
        return gradients

    def forward(self, *inputs: Any) -> Any:
        """Update the parameters, and return the loss."""
        loss = self.network(*inputs)
        apply_gradients(self.optimizer, self.grad(self.network, self.weights)(*inputs, torch.full_like(loss, self.sens)))
        return loss
