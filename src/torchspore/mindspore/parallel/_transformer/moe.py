"""A mixture of experts: a router chooses the feed-forward nets for each token (Fedus and others, 2021)."""
from __future__ import annotations

import math
from typing import Any

from torchspore.base.arguments import is_int
from torchspore.base.text import message, short
from torchspore.engine.tensors import dtypes
from torchspore.mindspore import ops
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.nn.layer.basic import Dense
from torchspore.mindspore.parallel._transformer.op_parallel_config import default_moeparallel_config


class MoEConfig:
    """The number of experts and the settings of the router."""

    def __init__(
        self, expert_num: int = 1, capacity_factor: float = 1.1, aux_loss_factor: float = 0.05, num_experts_chosen: int = 1,
        expert_group_size: int | None = None,
    ) -> None:
        for name, value in (("expert_num", expert_num), ("num_experts_chosen", num_experts_chosen)):
            if not is_int(value) or value < 1:
                raise ValueError(message(f"MoEConfig({name}={short(value)})", "an int from 1 on"))
        if capacity_factor < 1:
            raise ValueError(message(f"MoEConfig(capacity_factor={capacity_factor})", "a number from 1 on"))
        if num_experts_chosen > expert_num:
            raise ValueError(message(f"MoEConfig(num_experts_chosen={num_experts_chosen})", f"at most expert_num={expert_num}"))
        self.expert_num, self.capacity_factor, self.aux_loss_factor = expert_num, capacity_factor, aux_loss_factor
        self.num_experts_chosen, self.expert_group_size = num_experts_chosen, expert_group_size


default_moe_config = MoEConfig()


def _check_moe_config(moe_config: Any = None, parallel_config: Any = None) -> None:
    """Raises TypeError unless it is a MoEConfig, ValueError for several experts and a configuration without expert_parallel."""
    if not isinstance(moe_config, MoEConfig):
        raise TypeError(message(f"moe_config={short(moe_config)}", f"a MoEConfig, got {type(moe_config).__name__}"))
    if moe_config.expert_num > 1 and parallel_config is not None and not hasattr(parallel_config, "expert_parallel"):
        raise ValueError(message(f"parallel_config={short(parallel_config)}", "one with expert_parallel, for several experts"))


class MoE(Cell):
    """Maps x (..., hidden) to (the experts' outputs weighted by the router, the loss that balances the experts).

    Each expert takes at most capacity_factor * tokens / experts tokens; those beyond get zeros.
    """

    def __init__(
        self, hidden_size: int, ffn_hidden_size: int, dropout_rate: float, hidden_act: str = "gelu",
        param_init_type: Any = dtypes.float32, moe_config: MoEConfig = default_moe_config,
        parallel_config: Any = default_moeparallel_config,
    ) -> None:
        super().__init__()
        from torchspore.mindspore.parallel._transformer.transformer import FeedForward

        _check_moe_config(moe_config, parallel_config)
        self.hidden_size, self.expert_dim, self.chosen = hidden_size, moe_config.expert_num, moe_config.num_experts_chosen
        self.capacity_factor, self.aux_loss_factor = moe_config.capacity_factor, moe_config.aux_loss_factor
        self.ffn = FeedForward(
            hidden_size, ffn_hidden_size, dropout_rate, hidden_act, expert_num=self.expert_dim, param_init_type=param_init_type,
            parallel_config=parallel_config,
        )
        self.router = Dense(hidden_size, self.expert_dim, has_bias=False)

    def construct(self, input_tensor: Any) -> tuple[Any, Any]:
        """Returns (outputs (..., hidden), loss ())."""
        x = ops.reshape(input_tensor, (-1, self.hidden_size))
        tokens, capacity = x.shape[0], max(1, math.ceil(self.chosen * x.shape[0] * self.capacity_factor / self.expert_dim))
        shares = ops.softmax(self.router(x.astype(dtypes.float32)), -1)
        loss, answers, remaining = 0.0, 0.0, shares
        for _ in range(self.chosen):
            assignment = ops.one_hot(ops.argmax(remaining, -1), self.expert_dim, ops.scalar_to_tensor(1.0), ops.scalar_to_tensor(0.0))
            loss = loss + self.aux_loss_factor * self.expert_dim * ops.sum(ops.mean(assignment, 0) * ops.mean(shares, 0))
            position = (ops.cumsum(assignment, 0) - 1.0) * assignment
            taken = assignment * (position < capacity).astype(assignment.dtype)
            slots = ops.one_hot(position.astype(dtypes.int32), capacity, ops.scalar_to_tensor(1.0), ops.scalar_to_tensor(0.0))
            slots = (slots * ops.expand_dims(taken, -1)).astype(x.dtype)                  # (tokens, experts, capacity)
            expert_inputs = ops.matmul(ops.reshape(slots, (tokens, -1)).T, x)                     # (experts * capacity, hidden)
            out = self.ffn(ops.reshape(expert_inputs, (1, self.expert_dim, capacity, self.hidden_size)))
            back = ops.matmul(ops.reshape(slots, (tokens, -1)), ops.reshape(out, (-1, self.hidden_size)))
            answers = answers + back * ops.sum(shares * taken, -1, keepdim=True).astype(x.dtype)
            remaining = remaining * (1.0 - assignment)
        return ops.reshape(answers, input_tensor.shape), loss
