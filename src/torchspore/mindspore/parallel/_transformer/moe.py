"""A mixture of experts: each token goes to the feed-forward nets that a router chooses (Fedus and others, 2021)."""
from __future__ import annotations

import math
from typing import Any

from torchspore.base.text import message, short
from torchspore.engine.core import dtypes
from torchspore.mindspore import ops
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.nn.layer.basic import Dense
from torchspore.mindspore.parallel._transformer.op_parallel_config import default_moeparallel_config


class MoEConfig:
    """How many experts there are and how tokens are given to them."""

    def __init__(
        self, expert_num: int = 1, capacity_factor: float = 1.1, aux_loss_factor: float = 0.05, num_experts_chosen: int = 1,
        expert_group_size: int | None = None,
    ) -> None:
        for name, value in (("expert_num", expert_num), ("num_experts_chosen", num_experts_chosen)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(message(f"MoEConfig({name}={short(value)})", "an int from 1 on"))
        if capacity_factor < 1:
            raise ValueError(message(f"MoEConfig(capacity_factor={capacity_factor})", "a number from 1 on"))
        if num_experts_chosen > expert_num:
            raise ValueError(message(f"MoEConfig(num_experts_chosen={num_experts_chosen})", f"at most expert_num={expert_num}"))
        self.expert_num, self.capacity_factor, self.aux_loss_factor = expert_num, capacity_factor, aux_loss_factor
        self.num_experts_chosen, self.expert_group_size = num_experts_chosen, expert_group_size


default_moe_config = MoEConfig()


def _check_moe_config(moe_config: Any = None, parallel_config: Any = None) -> None:
    """Raises TypeError for no MoEConfig, ValueError where several experts are wanted with a configuration that has no share of them."""
    if not isinstance(moe_config, MoEConfig):
        raise TypeError(message(f"moe_config={short(moe_config)}", f"a MoEConfig, got {type(moe_config).__name__}"))
    if moe_config.expert_num > 1 and parallel_config is not None and not hasattr(parallel_config, "expert_parallel"):
        raise ValueError(message(f"parallel_config={short(parallel_config)}", "one with expert_parallel, for several experts"))


class MoE(Cell):
    """Called with x (..., hidden) it gives (the experts' answers weighed by the router, the loss that keeps the experts evenly used).

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
        """(answers (..., hidden), loss ())."""
        x = ops.reshape(input_tensor, (-1, self.hidden_size))
        tokens, room = x.shape[0], max(1, math.ceil(self.chosen * x.shape[0] * self.capacity_factor / self.expert_dim))
        shares = ops.softmax(self.router(x.astype(dtypes.float32)), -1)
        loss, answers, left = 0.0, 0.0, shares
        for _ in range(self.chosen):
            goes = ops.one_hot(ops.argmax(left, -1), self.expert_dim, ops.scalar_to_tensor(1.0), ops.scalar_to_tensor(0.0))
            loss = loss + self.aux_loss_factor * self.expert_dim * ops.sum(ops.mean(goes, 0) * ops.mean(shares, 0))
            place = (ops.cumsum(goes, 0) - 1.0) * goes
            taken = goes * (place < room).astype(goes.dtype)
            seats = ops.one_hot(place.astype(dtypes.int32), room, ops.scalar_to_tensor(1.0), ops.scalar_to_tensor(0.0))
            seats = (seats * ops.expand_dims(taken, -1)).astype(x.dtype)                  # (tokens, experts, room)
            given = ops.matmul(ops.reshape(seats, (tokens, -1)).T, x)                     # (experts * room, hidden)
            out = self.ffn(ops.reshape(given, (1, self.expert_dim, room, self.hidden_size)))
            back = ops.matmul(ops.reshape(seats, (tokens, -1)), ops.reshape(out, (-1, self.hidden_size)))
            answers = answers + back * ops.sum(shares * taken, -1, keepdim=True).astype(x.dtype)
            left = left * (1.0 - goes)
        return ops.reshape(answers, input_tensor.shape), loss
