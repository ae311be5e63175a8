"""Optimizers for sparse features that pull weights towards zero: FTRL and proximal Adagrad."""
from __future__ import annotations

from typing import Any

from torchspore.base.arguments import check_bools
from torchspore.engine.formulas import row_gradients as formulas
from torchspore.engine.tensors.tensor import raw
from torchspore.mindspore import ops
from torchspore.mindspore.nn.optim.arguments import check_floats, number, opt_init_args_register
from torchspore.mindspore.nn.optim.optimizer import Group, Optimizer
from torchspore.mindspore.ops.declaration.limits import check_real


class FTRL(Optimizer):
    """Follow the regularized leader (McMahan and others, 2013).

    n += g^2; z += g - (n_new^-p - n^-p) / rate * w; w = (sign(z) * l1 - z) / (n_new^-p / rate + 2 * l2) where |z| > l1, else 0; p is
    `lr_power`. The state is named `moments.*` (n, initially `initial_accum`) and `linear.*` (z). A sparse gradient changes only its
    rows. Weight decay applies to all Parameters. Raises TypeError and ValueError for arguments that do not fit.
    """

    _takes_rows_ = True

    @opt_init_args_register
    def __init__(
        self, params: Any, initial_accum: float = 0.1, learning_rate: float = 0.001, lr_power: float = -0.5, l1: float = 0.0,
        l2: float = 0.0, use_locking: bool = False, loss_scale: float = 1.0, weight_decay: Any = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        check_bools("FTRL", use_locking=use_locking)
        if self.dynamic_lr or self.is_group_lr:
            raise ValueError("FTRL(learning_rate=...): expected one rate for all steps and groups.\n\nhint: Adam takes schedules.")
        check_floats("FTRL", {"initial_accum": initial_accum, "l1": l1, "l2": l2})
        check_real("FTRL", above=0.0, learning_rate=learning_rate)
        check_floats("FTRL", {"lr_power": lr_power}, None)
        if lr_power > 0:
            raise ValueError(f"FTRL(lr_power={lr_power}): expected a number up to 0.")
        self._decay_all_(weight_decay)
        self.l1, self.l2, self.lr, self.lr_power = l1, l2, learning_rate, lr_power
        self.moments_, self.linear = self._moments_("moments", initial_accum), self._moments_("linear")
        self.sparse_opt = ops.SparseApplyFtrl(learning_rate, l1, l2, lr_power, use_locking)

    def construct(self, grads: Any) -> bool:
        """Update the Parameters by their gradients."""
        for parameters, group_gradients, rate, _, group in self._updates_(grads):
            for w, g, index in zip(parameters, group_gradients, group.indexes):
                n, z = raw(self.moments_[index]), raw(self.linear[index])
                new = formulas.ftrl(w, n, z, g.to(w.dtype), rate, self.l1, self.l2, self.lr_power)
                for old, value in zip((w, n, z), new):
                    old.copy_(value)
        self._advance_()
        return True

    def _update_rows_(self, index: int, indices: Any, values: Any, rate: Any, group: Group) -> None:
        at, g, _ = formulas.summed(indices, values)
        tables = [raw(p[index]) for p in (self.parameters, self.moments_, self.linear)]
        w, n, z = (formulas.rows_of(table, at) for table in tables)
        for table, new in zip(tables, formulas.ftrl(w, n, z, g, rate, self.l1, self.l2, self.lr_power)):
            formulas.put_rows(table, at, new)


class ProximalAdagrad(Optimizer):
    """Adagrad with a step towards zero (Duchi and Singer, 2009).

    n += g^2; r = rate / sqrt(n); x = w - r * g; w = sign(x) * max(|x| - r * l1, 0) / (1 + r * l2). The state is named `accum.*` (n,
    initially `accum`). A sparse gradient changes only its rows. Raises TypeError and ValueError for arguments that do not fit.
    """

    _takes_rows_ = True

    @opt_init_args_register
    def __init__(
        self, params: Any, accum: float = 0.1, learning_rate: Any = 0.001, l1: float = 0.0, l2: float = 0.0, use_locking: bool = False,
        loss_scale: float = 1.0, weight_decay: Any = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        check_floats("ProximalAdagrad", {"accum": accum, "l1": l1, "l2": l2})
        check_bools("ProximalAdagrad", use_locking=use_locking)
        self.l1, self.l2 = number("ProximalAdagrad", "l1", l1), number("ProximalAdagrad", "l2", l2)
        self.accum = self._moments_("accum", accum)
        self.sparse_opt = ops.SparseApplyProximalAdagrad(use_locking)

    def construct(self, grads: Any) -> bool:
        """Update the Parameters by their gradients."""
        for parameters, group_gradients, rate, _, group in self._updates_(grads):
            for w, g, index in zip(parameters, group_gradients, group.indexes):
                n = raw(self.accum[index])
                for old, value in zip((w, n), formulas.proximal_adagrad(w, n, g.to(w.dtype), rate, self.l1, self.l2)):
                    old.copy_(value)
        self._advance_()
        return True

    def _update_rows_(self, index: int, indices: Any, values: Any, rate: Any, group: Group) -> None:
        at, g, _ = formulas.summed(indices, values)
        tables = [raw(p[index]) for p in (self.parameters, self.accum)]
        w, n = (formulas.rows_of(table, at) for table in tables)
        for table, new in zip(tables, formulas.proximal_adagrad(w, n, g, rate, self.l1, self.l2)):
            formulas.put_rows(table, at, new)
