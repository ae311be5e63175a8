"""Optimizers and learning rates whose formulas torch lacks."""
from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn, optim

from torchspore.port.compat.functions import name_of


def single(value: float) -> float:
    """The number rounded to float32."""
    return float(torch.tensor(value, dtype=torch.float32))


class Adam(optim.Optimizer):
    """Adam whose eps is added to the root before the bias is corrected: w -= rate * m / (sqrt(v) + eps)."""

    def __init__(
        self, params: Any, lr: float = 1e-3, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8, weight_decay: float = 0.0,
        use_nesterov: bool = False, use_amsgrad: bool = False,
    ) -> None:
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay})
        self.beta1, self.beta2, self.eps = single(beta1), single(beta2), eps
        self.use_nesterov, self.use_amsgrad = use_nesterov, use_amsgrad

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Update the parameters."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self.update(parameter, parameter.grad + group["weight_decay"] * parameter, group["lr"])

    def update(self, parameter: Tensor, gradient: Tensor, rate: float) -> None:
        """Update one parameter."""
        state = self.state[parameter]
        if not state:
            state.update(step=0, mean=torch.zeros_like(parameter), square=torch.zeros_like(parameter))
        state["step"] += 1
        mean = state["mean"].lerp_(gradient, 1 - self.beta1)
        square = state["square"].mul_(self.beta2).addcmul_(gradient, gradient, value=1 - self.beta2)
        rate = rate * math.sqrt(1 - self.beta2 ** state["step"]) / (1 - self.beta1 ** state["step"])
        if self.use_nesterov:
            mean = self.beta1 * mean + (1 - self.beta1) * gradient
        if self.use_amsgrad:
            square = state["largest"] = torch.maximum(state.get("largest", square), square)
        parameter.sub_(rate * mean / (square.sqrt() + self.eps))


class AdamWeightDecay(optim.Optimizer):
    """Adam without correction of the bias: w -= rate * (m / (sqrt(v) + eps) + weight_decay * w)."""

    def __init__(
        self, params: Any, lr: float = 1e-3, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-6, weight_decay: float = 0.0,
    ) -> None:
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay})
        self.beta1, self.beta2, self.eps = single(beta1), single(beta2), eps

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Update the parameters."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                state = self.state[parameter]
                if not state:
                    state.update(mean=torch.zeros_like(parameter), square=torch.zeros_like(parameter))
                mean = state["mean"].lerp_(parameter.grad, 1 - self.beta1)
                square = state["square"].mul_(self.beta2).addcmul_(parameter.grad, parameter.grad, value=1 - self.beta2)
                parameter.sub_(group["lr"] * (mean / (square.sqrt() + self.eps) + group["weight_decay"] * parameter))


class RMSProp(optim.Optimizer):
    """RMSProp whose mean of squares begins with 1, and whose eps is inside of the root."""

    def __init__(
        self, params: Any, lr: float = 0.1, decay: float = 0.9, momentum: float = 0.0, eps: float = 1e-10, weight_decay: float = 0.0,
        centered: bool = False,
    ) -> None:
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay})
        self.decay, self.momentum, self.eps, self.centered = single(decay), single(momentum), single(eps), centered

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Update the parameters."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                gradient = parameter.grad + group["weight_decay"] * parameter
                state = self.state[parameter]
                if not state:
                    zeros = torch.zeros_like(parameter)
                    state.update(square=torch.ones_like(parameter), mean=zeros, moment=zeros.clone())
                square = state["square"].mul_(self.decay).addcmul_(gradient, gradient, value=1 - self.decay)
                if self.centered:
                    square = square - state["mean"].lerp_(gradient, 1 - self.decay) ** 2
                parameter.sub_(state["moment"].mul_(self.momentum).add_(group["lr"] * gradient / (square + self.eps).sqrt()))


class AdaMax(optim.Optimizer):
    """AdaMax whose eps is added to the largest gradient: w -= rate / (1 - beta1^t) * m / (v + eps)."""

    def __init__(
        self, params: Any, lr: float = 1e-3, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8, weight_decay: float = 0.0,
    ) -> None:
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay})
        self.beta1, self.beta2, self.eps = single(beta1), single(beta2), single(eps)

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Update the parameters."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                gradient = parameter.grad + group["weight_decay"] * parameter
                state = self.state[parameter]
                if not state:
                    state.update(step=0, mean=torch.zeros_like(parameter), largest=torch.zeros_like(parameter))
                state["step"] += 1
                mean = state["mean"].lerp_(gradient, 1 - self.beta1)
                largest = state["largest"] = torch.maximum(self.beta2 * state["largest"], gradient.abs())
                parameter.sub_(group["lr"] / (1 - self.beta1 ** state["step"]) * mean / (largest + self.eps))


def with_decay(model: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """The parameters in two groups: norms, and parameters named beta or gamma, have no weight decay."""
    norms = (nn.modules.batchnorm._BatchNorm, nn.modules.instancenorm._InstanceNorm, nn.LayerNorm, nn.GroupNorm)
    free = {id(parameter) for layer in model.modules() if isinstance(layer, norms) for parameter in layer.parameters(recurse=False)}
    free |= {id(parameter) for name, parameter in model.named_parameters() if "beta" in name or "gamma" in name}
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups = []
    for decay, is_free in ((weight_decay, False), (0.0, True)):
        positions = [number for number, parameter in enumerate(trained) if (id(parameter) in free) is is_free]
        groups.append({"params": [trained[number] for number in positions], "weight_decay": decay, "positions": positions})
    return [group for group in groups if group["params"]]


def grouped_by_decay(parameters: Iterable[nn.Parameter], weight_decay: float) -> list[dict[str, Any]]:
    """Parameters with names in two groups: those named beta or gamma have no weight decay."""
    trained = list(parameters)
    free = ["beta" in name_of(parameter) or "gamma" in name_of(parameter) for parameter in trained]
    groups = []
    for decay, is_free in ((weight_decay, False), (0.0, True)):
        positions = [number for number, each in enumerate(free) if each is is_free]
        groups.append({"params": [trained[number] for number in positions], "weight_decay": decay, "positions": positions})
    return [group for group in groups if group["params"]]


def named_as_before(model: nn.Module) -> list[tuple[str, nn.Parameter]]:
    """The parameters by names as in MindSpore: gamma and beta in norms, embedding_table in embeddings."""
    norms = (nn.modules.batchnorm._BatchNorm, nn.modules.instancenorm._InstanceNorm, nn.LayerNorm, nn.GroupNorm)
    names: dict[str, str] = {}
    for path, layer in model.named_modules():
        start = f"{path}." if path else ""
        if isinstance(layer, norms):
            names |= {f"{start}weight": f"{start}gamma", f"{start}bias": f"{start}beta"}
        elif isinstance(layer, nn.Embedding):
            names[f"{start}weight"] = f"{start}embedding_table"
    return [(names.get(name, name), parameter) for name, parameter in model.named_parameters()]


def get_parameters(model: nn.Module) -> list[nn.Parameter]:
    """The parameters of a model; `name_of` returns their names."""
    named = named_as_before(model)
    for name, parameter in named:
        vars(parameter)["name_in_model"] = name
    return [parameter for _, parameter in named]


def trainable_params(model: nn.Module) -> list[nn.Parameter]:
    """The parameters of a model that have gradients; `name_of` returns their names."""
    return [parameter for parameter in get_parameters(model) if parameter.requires_grad]


class Rates:
    """The learning rate of each step; beyond the last one it stays."""

    def __init__(self, rates: Any) -> None:
        self.rates = [single(float(rate)) for rate in rates]

    def __call__(self, step: int) -> float:
        return self.rates[min(step, len(self.rates) - 1)]


class CosineDecay:
    """Half a cosine from `max_lr` down to `min_lr`."""

    def __init__(self, min_lr: float, max_lr: float, decay_steps: int) -> None:
        self.min_lr, self.max_lr, self.decay_steps = min_lr, max_lr, decay_steps

    def __call__(self, step: int) -> float:
        share = min(step, self.decay_steps) / self.decay_steps
        return self.min_lr + 0.5 * (self.max_lr - self.min_lr) * (1 + math.cos(share * math.pi))


class ExponentialDecay:
    """learning_rate * decay_rate ^ (step / decay_steps)."""

    def __init__(self, learning_rate: float, decay_rate: float, decay_steps: int, is_stair: bool = False) -> None:
        self.learning_rate, self.decay_rate, self.decay_steps, self.is_stair = learning_rate, decay_rate, decay_steps, is_stair

    def __call__(self, step: int) -> float:
        return self.learning_rate * self.decay_rate ** (step // self.decay_steps if self.is_stair else step / self.decay_steps)


class NaturalExpDecay:
    """learning_rate * exp(-decay_rate * step)."""

    def __init__(self, learning_rate: float, decay_rate: float, decay_steps: int, is_stair: bool = False) -> None:
        self.learning_rate, self.decay_rate, self.decay_steps, self.is_stair = learning_rate, decay_rate, decay_steps, is_stair

    def __call__(self, step: int) -> float:
        return self.learning_rate * math.exp(-self.decay_rate * (step // self.decay_steps * self.decay_steps if self.is_stair else step))


class InverseDecay:
    """learning_rate / (1 + decay_rate * step / decay_steps)."""

    def __init__(self, learning_rate: float, decay_rate: float, decay_steps: int, is_stair: bool = False) -> None:
        self.learning_rate, self.decay_rate, self.decay_steps, self.is_stair = learning_rate, decay_rate, decay_steps, is_stair

    def __call__(self, step: int) -> float:
        return self.learning_rate / (1 + self.decay_rate * (step // self.decay_steps if self.is_stair else step / self.decay_steps))


class PolynomialDecay:
    """(learning_rate - end) * (1 - step / decay_steps) ^ power + end; with `update_decay_steps`, longer periods follow."""

    def __init__(
        self, learning_rate: float, end_learning_rate: float, decay_steps: int, power: float, update_decay_steps: bool = False,
    ) -> None:
        self.learning_rate, self.end, self.decay_steps = learning_rate, end_learning_rate, decay_steps
        self.power, self.update_decay_steps = power, update_decay_steps

    def __call__(self, step: int) -> float:
        period = self.decay_steps * max(math.ceil(step / self.decay_steps), 1) if self.update_decay_steps else self.decay_steps
        return (self.learning_rate - self.end) * (1 - min(step, period) / period) ** self.power + self.end


class WarmUp:
    """A linear increase to `learning_rate`, which then stays."""

    def __init__(self, learning_rate: float, warmup_steps: int) -> None:
        self.learning_rate, self.warmup_steps = learning_rate, warmup_steps

    def __call__(self, step: int) -> float:
        return self.learning_rate * min(step, self.warmup_steps) / self.warmup_steps


def piecewise_constant_lr(milestone: Sequence[int], learning_rates: Sequence[float]) -> list[float]:
    """`learning_rates[i]` up to step `milestone[i]`."""
    rates: list[float] = []
    for last, rate in zip(milestone, learning_rates):
        rates += [rate] * (last - len(rates))
    return rates


def exponential_decay_lr(
    learning_rate: float, decay_rate: float, total_step: int, step_per_epoch: int, decay_epoch: int, is_stair: bool = False,
) -> list[float]:
    """learning_rate * decay_rate ^ (epoch / decay_epoch) for each step."""
    epochs = [step // step_per_epoch for step in range(total_step)]
    return [learning_rate * decay_rate ** (epoch // decay_epoch if is_stair else epoch / decay_epoch) for epoch in epochs]


def natural_exp_decay_lr(
    learning_rate: float, decay_rate: float, total_step: int, step_per_epoch: int, decay_epoch: int, is_stair: bool = False,
) -> list[float]:
    """learning_rate * exp(-decay_rate * epoch) for each step."""
    epochs = [step // step_per_epoch for step in range(total_step)]
    return [learning_rate * math.exp(-decay_rate * (epoch // decay_epoch * decay_epoch if is_stair else epoch)) for epoch in epochs]


def inverse_decay_lr(
    learning_rate: float, decay_rate: float, total_step: int, step_per_epoch: int, decay_epoch: int, is_stair: bool = False,
) -> list[float]:
    """learning_rate / (1 + decay_rate * epoch / decay_epoch) for each step."""
    epochs = [step // step_per_epoch for step in range(total_step)]
    return [learning_rate / (1 + decay_rate * (epoch // decay_epoch if is_stair else epoch / decay_epoch)) for epoch in epochs]


def cosine_decay_lr(min_lr: float, max_lr: float, total_step: int, step_per_epoch: int, decay_epoch: int) -> list[float]:
    """Half a cosine from `max_lr` down to `min_lr` for each step."""
    epochs = [step // step_per_epoch for step in range(total_step)]
    return [min_lr + 0.5 * (max_lr - min_lr) * (1 + math.cos(math.pi * min(epoch, decay_epoch) / decay_epoch)) for epoch in epochs]


def polynomial_decay_lr(
    learning_rate: float, end_learning_rate: float, total_step: int, step_per_epoch: int, decay_epoch: int, power: float,
    update_decay_epoch: bool = False,
) -> list[float]:
    """(learning_rate - end) * (1 - epoch / decay_epoch) ^ power + end for each step."""
    rates = []
    for epoch in (step // step_per_epoch for step in range(total_step)):
        period = decay_epoch * max(math.ceil(epoch / decay_epoch), 1) if update_decay_epoch else decay_epoch
        rates.append((learning_rate - end_learning_rate) * (1 - min(epoch, period) / period) ** power + end_learning_rate)
    return rates


def warmup_lr(learning_rate: float, total_step: int, step_per_epoch: int, warmup_epoch: int) -> list[float]:
    """A linear increase to `learning_rate`, which then stays, for each step."""
    epochs = [step // step_per_epoch for step in range(total_step)]
    return [learning_rate * min(epoch, warmup_epoch) / warmup_epoch for epoch in epochs]
