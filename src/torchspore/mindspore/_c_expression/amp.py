"""`mindspore._c_expression.amp`: the dtype of each operator, as C++ code stores it, for `net.amp_strategy`."""
from __future__ import annotations

import enum
from contextlib import AbstractContextManager
from typing import Any

from torchspore.base.text import message, short
from torchspore.engine.execution import precision
from torchspore.mindspore.common import dtype as mstype
from torchspore.mindspore.ops.precision import amp_operators

Named = list[tuple[str, list[int]]]
"""Primitives by name, each with the positions of the inputs that are cast; empty means all."""


class AmpLevel(enum.Enum):
    """The levels of mixed precision."""

    AmpO0 = 0
    AmpO1 = 1
    AmpO2 = 2
    AmpO3 = 3
    AmpAuto = 4


class PrimCastStrategy(enum.Enum):
    """The treatment of a primitive's inputs."""

    AmpIgnore = 0
    AmpDoCast = 1
    AmpSetDtype = 2
    AmpSetDtypeOpt = 3
    AmpAutoPromote = 4


class PrimCastStrategyInfo:
    """A strategy's treatment of one primitive: `strategy`, the `dtype` of its inputs, and their positions (`arg_pos`; empty: all)."""

    def __init__(self, strategy: PrimCastStrategy, dtype: Any = mstype.float32, arg_pos: list[int] | None = None) -> None:
        self.strategy, self.dtype, self.arg_pos = strategy, dtype, list(arg_pos or [])


class AmpStrategy:
    """A level with its dtype and lists. Lists override the level's; at O2 and O3 all other primitives compute in the dtype."""

    def __init__(self, level: AmpLevel, dtype: Any, white_list: Named, black_list: Named) -> None:
        if not isinstance(level, AmpLevel):
            raise TypeError(message(f"create_amp_strategy({short(level)})", f"an AmpLevel, got {type(level).__name__}"))
        if dtype not in (mstype.float16, mstype.bfloat16, mstype.float32):
            raise ValueError(message(f"create_amp_strategy(..., {short(dtype)})", "mindspore.float16, bfloat16 or float32"))
        for listed in (white_list, black_list):
            if not isinstance(listed, list) or not all(isinstance(pair, (tuple, list)) and len(pair) == 2 for pair in listed):
                call_text = f"create_amp_strategy(..., {short(listed)})"
                raise TypeError(message(call_text, "a list of pairs: a primitive's name, indexes of inputs"))
        self._level, self._dtype, self._white, self._black = level, dtype, dict(white_list), dict(black_list)

    def get_amp_level(self) -> AmpLevel:
        """Return the level."""
        return self._level

    def get_amp_dtype(self) -> Any:
        """Return the lower dtype."""
        return self._dtype

    def get_white_list(self) -> Named:
        """Return the primitives that compute in the lower dtype."""
        return list(self._white.items())

    def get_black_list(self) -> Named:
        """Return the primitives that compute in float32."""
        return list(self._black.items())

    def of(self, primitive: str) -> PrimCastStrategyInfo:
        """Return the treatment of the inputs of the primitive of this name."""
        if self._level is AmpLevel.AmpO0:
            return PrimCastStrategyInfo(PrimCastStrategy.AmpIgnore)
        is_full = self._level in (AmpLevel.AmpO2, AmpLevel.AmpO3)
        if primitive in self._black and self._level in (AmpLevel.AmpO2, AmpLevel.AmpAuto):
            return PrimCastStrategyInfo(PrimCastStrategy.AmpDoCast, mstype.float32, self._black[primitive])
        if is_full or primitive in self._white:
            return PrimCastStrategyInfo(PrimCastStrategy.AmpDoCast, self._dtype, [] if is_full else self._white[primitive])
        if self._level is AmpLevel.AmpAuto and primitive in amp_operators.PROMOTED:
            return PrimCastStrategyInfo(PrimCastStrategy.AmpAutoPromote)
        return PrimCastStrategyInfo(PrimCastStrategy.AmpIgnore)

    def rules(self) -> precision.ByOperator:
        """Return the strategy in the engine's form; set on a Cell it acts in GRAPH_MODE, as in MindSpore."""
        named = {name: self.of(name) for name in amp_operators.primitive_names()}
        return amp_operators.by_names({
            name: "widest" if info.strategy is PrimCastStrategy.AmpAutoPromote else (info.dtype, info.arg_pos)
            for name, info in named.items() if info.strategy is not PrimCastStrategy.AmpIgnore
        }, otherwise=self._dtype if self._level in (AmpLevel.AmpO2, AmpLevel.AmpO3) else None)


def create_amp_strategy(level: AmpLevel, dtype: Any, white_list: Named, black_list: Named) -> AmpStrategy:
    """Return a custom strategy. Raises TypeError and ValueError for invalid arguments."""
    return AmpStrategy(level, dtype, white_list, black_list)


_pushed: list[tuple[AmpStrategy, AbstractContextManager[None]]] = []


def push_amp_strategy(level: AmpLevel, dtype: Any, white_list: Named, black_list: Named) -> None:
    """Apply a strategy to the operators of this thread until `pop_amp_strategy`."""
    strategy = create_amp_strategy(level, dtype, white_list, black_list)
    around = precision.ruling(strategy.rules())
    around.__enter__()
    _pushed.append((strategy, around))


def pop_amp_strategy() -> None:
    """End the effect of the last `push_amp_strategy`, if any."""
    if _pushed:
        _pushed.pop()[1].__exit__(None, None, None)


def get_curr_amp_strategy() -> AmpStrategy | None:
    """Return the last pushed strategy; None if there is none."""
    return _pushed[-1][0] if _pushed else None


def get_prim_cast_strategy_info(strategy: AmpStrategy, primitive: str) -> PrimCastStrategyInfo:
    """Return a strategy's treatment of the inputs of the primitive of this name."""
    return strategy.of(primitive)
