"""The layer of MindSpore 1.x that simulates quantization while training."""
from __future__ import annotations

from typing import Any

import numpy as np

from torchspore.base.arguments import is_int
from torchspore.base.text import message, short
from torchspore.mindspore import ops
from torchspore.mindspore.common import dtype as mstype
from torchspore.mindspore.common.parameter import Parameter
from torchspore.mindspore.common.quant import QuantDtype
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.nn.cell import Cell
from torchspore.public_names import missing

_CALL = "FakeQuantWithMinMaxObserver"


class _Maker:
    """A class with some of its arguments bound; `partial_init` binds more."""

    def __init__(self, kind: Any, arguments: dict[str, Any]) -> None:
        self.kind, self.arguments = kind, arguments

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.kind(*args, **{**self.arguments, **kwargs})

    def partial_init(self, **kwargs: Any) -> _Maker:
        """Return a copy with more arguments."""
        return _Maker(self.kind, {**self.arguments, **kwargs})


class _Observer(Cell):
    """The base of layers that observe values to learn how to quantize them."""

    def __init__(self, quant_dtype: Any) -> None:
        super().__init__()
        self.quant_dtype = quant_dtype

    @classmethod
    def partial_init(cls, **kwargs: Any) -> _Maker:
        """Return a factory of such layers with these arguments, which takes further ones when it is called."""
        return _Maker(cls, kwargs)


class UniformQuantObserver(_Observer):
    """The base of layers that quantize in steps of one width."""

    min_max_map = {
        dtype: (-(1 << (n - 1)), (1 << (n - 1)) - 1) if dtype.name.startswith("I") else (0, (1 << n) - 1)
        for n in range(2, 9) for dtype in (QuantDtype[f"INT{n}"], QuantDtype[f"UINT{n}"])
    }

    def __init__(
        self, quant_dtype: Any = QuantDtype.INT8, per_channel: bool = False, symmetric: bool = False, narrow_range: bool = False,
        num_channels: int = 1,
    ) -> None:
        super().__init__(quant_dtype)
        self.per_channel, self.symmetric, self.narrow_range, self.num_channels = per_channel, symmetric, narrow_range, num_channels


class FakeQuantWithMinMaxObserver(UniformQuantObserver):
    """Rounds values to the steps of `quant_dtype` between the smallest and the largest value; gradients pass through.

    While training it observes: `quant_min` and `quant_max` are those of the batch, or with `ema` moving averages; `per_channel` has one for
    each of `num_channels` along `channel_axis`. The first `quant_delay` batches pass unchanged. `mode` 'LEARNED_SCALE' learns the largest
    value `maxq` from its gradient instead: symmetric with a narrow range, or from 0 on with `neg_trunc`. Raises TypeError and ValueError
    for arguments that do not fit.
    """

    def __init__(
        self, min_init: Any = -6, max_init: Any = 6, ema: bool = False, ema_decay: float = 0.999, per_channel: bool = False,
        channel_axis: int = 1, num_channels: int = 1, quant_dtype: Any = QuantDtype.INT8, symmetric: bool = False,
        narrow_range: bool = False, quant_delay: int = 0, neg_trunc: bool = False, mode: str = "DEFAULT",
    ) -> None:
        super().__init__(quant_dtype, per_channel, symmetric, narrow_range, num_channels)
        if not is_int(quant_delay):
            raise TypeError(message(f"{_CALL}(quant_delay={short(quant_delay)})", f"an int, got {type(quant_delay).__name__}"))
        if quant_delay < 0:
            raise ValueError(message(f"{_CALL}(quant_delay={quant_delay})", "an int from 0 on"))
        if mode not in ("DEFAULT", "LEARNED_SCALE"):
            raise ValueError(message(f"{_CALL}(mode={short(mode)})", "'DEFAULT' or 'LEARNED_SCALE'"))
        self.min_init, self.max_init, self.ema, self.ema_decay = min_init, max_init, ema, ema_decay
        self.channel_axis, self.quant_delay, self.neg_trunc, self.mode = channel_axis, quant_delay, neg_trunc, mode
        self.num_bits = int("".join(filter(str.isdigit, quant_dtype.name)))
        low, high = self._initial("min_init", 0 if neg_trunc and mode == "LEARNED_SCALE" else min_init), self._initial("max_init", max_init)
        if not (high > low).all():
            raise ValueError(message(f"{_CALL}(min_init={short(min_init)}, max_init={short(max_init)})", "max_init above min_init"))
        if quant_delay:
            self.steps = Parameter(Tensor(0, mstype.int32), name="steps", requires_grad=False)
        if mode == "DEFAULT":
            self._begin_default(low, high)
        else:
            self._begin_learned(low, high)

    def _initial(self, name: str, value: Any) -> np.ndarray:
        if not isinstance(value, (int, float, list)):
            raise TypeError(message(f"{_CALL}({name}={short(value)})", f"a number or a list of numbers, got {type(value).__name__}"))
        count = self.num_channels if self.per_channel else 1
        values = value if isinstance(value, list) else [value] * count
        if len(values) != count:
            raise ValueError(message(f"{_CALL}({name}={short(value)})", f"a number, or a list of {count}"))
        return np.array(values, np.float32)

    def _begin_default(self, low: np.ndarray, high: np.ndarray) -> None:
        self.minq = Parameter(Tensor(low), name="quant_min", requires_grad=False)
        self.maxq = Parameter(Tensor(high), name="quant_max", requires_grad=False)
        axis = {"channel_axis": self.channel_axis} if self.per_channel else {}
        update, quantize = (
            (ops.MinMaxUpdatePerChannel, ops.FakeQuantPerChannel) if self.per_channel else (ops.MinMaxUpdatePerLayer, ops.FakeQuantPerLayer)
        )
        self.ema_update = update(ema=self.ema, ema_decay=self.ema_decay, **axis)
        self.fake_quant = quantize(num_bits=self.num_bits, symmetric=self.symmetric, narrow_range=self.narrow_range, **axis)

    def _begin_learned(self, low: np.ndarray, high: np.ndarray) -> None:
        if not self.symmetric or self.narrow_range is self.neg_trunc:
            raise ValueError(message(
                f"{_CALL}(mode='LEARNED_SCALE', symmetric={self.symmetric}, narrow_range={self.narrow_range}, neg_trunc={self.neg_trunc})",
                "symmetric=True, and one of narrow_range and neg_trunc",
            ))
        self.minq, self.maxq = Parameter(Tensor(low), name="minq"), Parameter(Tensor(high), name="maxq")
        self.quant_max = Parameter(Tensor(np.array([self._steps_of_a_side()], np.float32)), name="quant_max", requires_grad=False)
        kind = ops.FakeLearnedScaleQuantPerChannel if self.per_channel else ops.FakeLearnedScaleQuantPerLayer
        self.fake_quant = kind(neg_trunc=self.neg_trunc, **({"channel_axis": self.channel_axis} if self.per_channel else {}))

    def _steps_of_a_side(self) -> int:
        return (1 << (self.num_bits if self.neg_trunc else self.num_bits - 1)) - 1

    def reset(self, quant_dtype: Any = QuantDtype.INT8, min_init: Any = -6, max_init: Any = 6) -> None:
        """Restart with another dtype and other bounds. Raises ValueError except in the mode LEARNED_SCALE."""
        if self.mode != "LEARNED_SCALE":
            raise ValueError(message(f"{_CALL}.reset in the mode {self.mode!r}", "mode='LEARNED_SCALE'"))
        self.quant_dtype, self.num_bits = quant_dtype, int("".join(filter(str.isdigit, quant_dtype.name)))
        self.min_init, self.max_init = 0 if self.neg_trunc else min_init, max_init
        self.minq.set_data(Tensor(self._initial("min_init", self.min_init)))
        self.maxq.set_data(Tensor(self._initial("max_init", max_init)))
        self.quant_max.set_data(Tensor(np.array([self._steps_of_a_side()], np.float32)))

    def construct(self, x: Any) -> Any:
        """The values, rounded."""
        if self.mode == "LEARNED_SCALE":
            out = self.fake_quant(x, self.maxq, self.quant_max)
            if self.training and not self.neg_trunc:
                ops.assign(self.minq, -self.maxq)
        else:
            if self.training:
                low, high = self.ema_update(x, self.minq, self.maxq)
                ops.assign(self.minq, low)
                ops.assign(self.maxq, high)
            out = self.fake_quant(x, self.minq, self.maxq)
        if self.training and self.quant_delay:
            out = ops.select((self.steps < self.quant_delay).broadcast_to(x.shape), x, out)
            ops.assign(self.steps, self.steps + 1)
        return out


__all__ = ["FakeQuantWithMinMaxObserver"]
__getattr__ = missing(__name__)
