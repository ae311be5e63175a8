"""Flags of a Cell: training, its compute dtype, and attributes that a program adds by name."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchspore.engine.execution.precision import Lowered, lowered_to
from torchspore.engine.tensors import change_counters
from torchspore.mindspore.common.flags import PRECISION_FLAGS, precision_flag, report_compiler_flags

if TYPE_CHECKING:
    from torchspore.mindspore.nn.cell import Cell


class CellFlags:
    """Methods of a Cell that set or read its flags."""

    if TYPE_CHECKING:
        _flags_: dict[str, Any]
        _lower_: Any

    def set_train(self: Cell, mode: bool = True) -> Cell:  # type: ignore[misc]
        """Set `training` on this Cell and every Cell inside it, for dropout and batch norm. Return this Cell."""
        for _, cell in self.cells_and_names():
            cell.training = mode
            cell._flags_["training"] = mode
        return self

    def add_flags(self: Cell, **flags: Any) -> Cell:  # type: ignore[misc]
        """Add named flags to this Cell, as entries of `get_flags()` and as attributes. Return this Cell.

        A true `fp16`, `fp32` or `bf16` makes the Cell compute in that dtype, as `to_float` does for the Cell and all Cells inside it.
        The last setting of a Cell wins. A false value changes no dtype.
        """
        self._flags_.update(flags)
        for name, value in flags.items():
            setattr(self, name, value)
        dtype = precision_flag(flags)
        if dtype is not None:
            self.__dict__["_lower_"] = lowered_to(dtype)
            change_counters.calls_changed()
        report_compiler_flags(f"{type(self).__name__}.add_flags", flags)
        return self

    def add_flags_recursive(self: Cell, **flags: Any) -> Cell:  # type: ignore[misc]
        """Add named flags to this Cell and every Cell inside it, as `add_flags` does. Return this Cell."""
        for _, cell in self.cells_and_names():
            cell.add_flags(**flags)
        return self

    def get_flags(self) -> dict[str, Any]:
        """Return the flags of this Cell by name."""
        return self._flags_

    @property
    def _func_graph_flags(self) -> dict[str, Any]:
        """The flags of this Cell by name, under the attribute that MindSpore's `add_flags` documents."""
        return self._flags_

    def set_boost(self: Cell, boost_type: str) -> Cell:  # type: ignore[misc]
        """Mark this Cell and every Cell inside it for a method of `mindspore.boost`. Return this Cell.

        Raises:
            ValueError: `boost_type` is not 'less_bn'.
        """
        if boost_type != "less_bn":
            raise ValueError(f"set_boost({boost_type!r}): expected 'less_bn'.")
        return self.add_flags_recursive(less_bn=True)

    def to_float(self: Cell, dst_type: Any) -> Cell:  # type: ignore[misc]
        """Make this Cell and every Cell inside it compute in `dst_type`. Return this Cell.

        Inputs and Parameters are cast when they are used. Parameters keep their dtype, and results are not cast back.

        Raises:
            ValueError: `dst_type` is not mindspore.float16, float32 or bfloat16.
        """
        if dst_type not in PRECISION_FLAGS.values():
            raise ValueError(f"to_float({dst_type!r}): expected mindspore.float16, float32 or bfloat16.")
        flags = {name: dtype == dst_type for name, dtype in PRECISION_FLAGS.items()}
        return self.add_flags_recursive(**flags)

    @property
    def amp_strategy(self) -> Any:
        """The mixed-precision strategy (`mindspore._c_expression.amp`) of this Cell.

        Raises:
            AttributeError: no strategy was set.
        """
        try:
            return self.__dict__["_amp_strategy_"]
        except KeyError:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute 'amp_strategy'.") from None

    @amp_strategy.setter
    def amp_strategy(self, strategy: Any) -> None:
        self.__dict__["_amp_strategy_"] = strategy
        if not isinstance(self._lower_, Lowered):
            self.__dict__["_lower_"] = strategy.rules()
            change_counters.calls_changed()
