"""Recurrent networks as Cells: RNN, GRU, LSTM."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from torchspore.base.arguments import check_bools, check_int_type
from torchspore.base.frames import line_prefix
from torchspore.base.text import message, with_type
from torchspore.engine.tensors import dtypes
from torchspore.mindspore import ops
from torchspore.mindspore.common.initializer import Uniform, initializer
from torchspore.mindspore.common.parameter import Parameter, ParameterTuple
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.nn.layer.parts import Part
from torchspore.mindspore.ops.layers import recurrent

_GATES = {"lstm": 4, "gru": 3, "tanh": 1, "relu": 1}


def check_sizes(name: str, **arguments: Any) -> None:
    """Raises TypeError if an argument is not an int, ValueError if it is below 1."""
    for key, value in arguments.items():
        check_int_type(name, key, value)
        if value < 1:
            raise ValueError(message(f"{name}({key}={value})", "an int from 1 on"))


class _RNNBase(Cell):
    """Base class of the networks.

    There are `weight_ih_l0` (gates * hidden, input), `weight_hh_l0` (gates * hidden, hidden), and with `has_bias` `bias_ih_l0` and
    `bias_hh_l0`, for each layer, and again with `_reverse` for the other direction; all are initialized uniformly within 1 / sqrt(hidden).
    """

    def _build_(
        self, kind: str, input_size: int, hidden_size: int, num_layers: int = 1, has_bias: bool = True, batch_first: bool = False,
        dropout: float = 0.0, bidirectional: bool = False, dtype: Any = dtypes.float32,
    ) -> None:
        name = type(self).__name__
        check_sizes(name, input_size=input_size, hidden_size=hidden_size, num_layers=num_layers)
        check_bools(name, has_bias=has_bias, batch_first=batch_first, bidirectional=bidirectional)
        if not isinstance(dropout, float):
            raise TypeError(f"{name}(dropout={dropout!r:.40}): expected a float, got {type(dropout).__name__}.")
        if not 0 <= dropout < 1:
            raise ValueError(f"{name}(dropout={dropout}): expected a number from 0 to below 1.")
        self._kind_, self.input_size, self.hidden_size, self.num_layers = kind, input_size, hidden_size, num_layers
        self.has_bias, self.batch_first, self.dropout, self.bidirectional = has_bias, batch_first, dropout, bidirectional
        self.is_lstm = kind == "lstm"
        self._dtype_ = dtype
        parts = ("weight_ih", "weight_hh", "bias_ih", "bias_hh") if has_bias else ("weight_ih", "weight_hh")
        # MindSpore draws these weights with NumPy, by layer and direction, and registers them part by part.
        bound, rows = 1 / math.sqrt(hidden_size), _GATES[kind] * hidden_size
        columns = {"weight_hh": (hidden_size,), "bias_ih": (), "bias_hh": ()}
        values = {}
        for layer, suffix in self._layers_and_suffixes_():
            inner = input_size if layer == 0 else hidden_size * (2 if bidirectional else 1)
            for part in parts:
                drawn = np.random.uniform(-bound, bound, (rows, *columns.get(part, (inner,))))
                values[f"{part}_l{layer}{suffix}"] = Tensor(drawn.astype(np.float32), dtype=dtype)
        for part in parts:
            for layer, suffix in self._layers_and_suffixes_():
                parameter_name = f"{part}_l{layer}{suffix}"
                setattr(self, parameter_name, Parameter(values[parameter_name], name=parameter_name))

    def _layers_and_suffixes_(self) -> list[tuple[int, str]]:
        return [(layer, suffix) for layer in range(self.num_layers) for suffix in (("", "_reverse") if self.bidirectional else ("",))]

    def _listed_(self, part: str) -> ParameterTuple:
        return ParameterTuple([getattr(self, f"{part}_l{layer}{suffix}") for layer, suffix in self._layers_and_suffixes_()])

    w_ih_list, w_hh_list = Part(lambda cell: cell._listed_("weight_ih")), Part(lambda cell: cell._listed_("weight_hh"))
    b_ih_list, b_hh_list = Part(lambda cell: cell._listed_("bias_ih")), Part(lambda cell: cell._listed_("bias_hh"))

    def _weights_(self) -> list[Any]:
        return [
            getattr(self, f"{part}_l{layer}{suffix}") if self.has_bias or part.startswith("weight") else None
            for layer, suffix in self._layers_and_suffixes_() for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        ]

    def construct(self, x: Any, hx: Any = None, seq_length: Any = None) -> Any:
        """Return the outputs, and the last state: (h, c) of an LSTM.

        x is (time, N, input), with `batch_first` (N, time, input); `hx` is the first state, None for zeros; `seq_length` (N,) is the number
        of steps of each sequence.
        """
        name = type(self).__name__
        if x.ndim != 3 or x.shape[2] != self.input_size:
            expected_input = f"an input of 3 axes, the last of length {self.input_size}"
            raise ValueError(f"{line_prefix()}{name}: expected {expected_input}, got shape {x.shape}.")
        if self.is_lstm and hx is not None and not isinstance(hx, tuple):
            raise TypeError(f"{line_prefix()}{name}: hx: expected a tuple (h, c), got {type(hx).__name__}.")
        if seq_length is not None and not isinstance(seq_length, Tensor):
            raise TypeError(message(f"{line_prefix()}{name}: seq_length", with_type("a Tensor", seq_length)))
        if seq_length is not None and seq_length.dtype not in (dtypes.int32, dtypes.int64):
            raise TypeError(f"{line_prefix()}{name}: expected seq_length of int32 or int64, got {seq_length.dtype}.")
        if self.batch_first:
            x = ops.transpose(x, (1, 0, 2))
        if hx is None:
            zeros = ops.zeros((len(self._layers_and_suffixes_()), x.shape[1], self.hidden_size), x.dtype)
            hx = (zeros, zeros) if self.is_lstm else zeros
        weights = [None if w is None else w.astype(x.dtype, copy=False) for w in self._weights_()]
        out, last = recurrent._recurrent(
            x, hx, weights, seq_length, self._kind_, self.num_layers, self.bidirectional, self.dropout, self.training,
        )
        return (ops.transpose(out, (1, 0, 2)) if self.batch_first else out), last


class LSTM(_RNNBase):
    """Long short-term memory (Hochreiter and Schmidhuber, 1997): gates in the order input, forget, cell, output.

    A call with (x, (h, c), seq_length) returns (outputs, (h, c)). `dropout` drops between layers while training. Raises TypeError and
    ValueError for wrong arguments.
    """

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, has_bias: bool = True, batch_first: bool = False,
        dropout: float = 0.0, bidirectional: bool = False, dtype: Any = dtypes.float32,
    ) -> None:
        super().__init__()
        self._build_("lstm", input_size, hidden_size, num_layers, has_bias, batch_first, dropout, bidirectional, dtype)


class GRU(_RNNBase):
    """Gated recurrent units (Cho and others, 2014): gates in the order reset, update, new.

    A call with (x, h, seq_length) returns (outputs, h). `dropout` drops between layers while training. Raises TypeError and ValueError
    for wrong arguments.
    """

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, has_bias: bool = True, batch_first: bool = False,
        dropout: float = 0.0, bidirectional: bool = False, dtype: Any = dtypes.float32,
    ) -> None:
        super().__init__()
        self._build_("gru", input_size, hidden_size, num_layers, has_bias, batch_first, dropout, bidirectional, dtype)


class RNN(_RNNBase):
    """Elman's network (1990), with the nonlinearity 'tanh' or 'relu', a keyword argument.

    A call with (x, h, seq_length) returns (outputs, h). `dropout` drops between layers while training. Raises TypeError and ValueError
    for wrong arguments.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        kind = kwargs.pop("nonlinearity", "tanh")
        if kind not in ("tanh", "relu"):
            raise ValueError(f"RNN(nonlinearity={kind!r:.40}): expected 'tanh' or 'relu'.")
        self.nonlinearity = kind
        self._build_(kind, *args, **kwargs)


class RNNCellBase(Cell):
    """The parameters of one step: `weight_ih` (num_chunks * hidden, input), `weight_hh`, and with `has_bias` `bias_ih`, `bias_hh`."""

    def __init__(self, input_size: int, hidden_size: int, has_bias: bool, num_chunks: int, dtype: Any = dtypes.float32) -> None:
        super().__init__()
        check_sizes(type(self).__name__, input_size=input_size, hidden_size=hidden_size)
        check_bools(type(self).__name__, has_bias=has_bias)
        self.input_size, self.hidden_size, self.has_bias = input_size, hidden_size, has_bias
        rows = num_chunks * hidden_size
        # MindSpore first draws normal numbers with NumPy, and then replaces them; both draws advance NumPy's stream.
        self.weight_ih = self._drawn_(dtype, rows, input_size)
        self.weight_hh = self._drawn_(dtype, rows, hidden_size)
        self.bias_ih = self._drawn_(dtype, rows) if has_bias else None
        self.bias_hh = self._drawn_(dtype, rows) if has_bias else None
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh") if has_bias else ("weight_ih", "weight_hh"):
            getattr(self, name).name = name
        self.reset_parameters(dtype)

    def _drawn_(self, dtype: Any, *shape: int) -> Parameter:
        return Parameter(Tensor(np.random.randn(*shape), dtype=dtype))

    def reset_parameters(self, dtype: Any = dtypes.float32) -> None:
        """Draw all Parameters again, uniformly within 1 / sqrt(hidden_size)."""
        bound = 1 / math.sqrt(self.hidden_size)
        for parameter in self.get_parameters():
            parameter.set_data(initializer(Uniform(bound), parameter.shape, dtype))


class _Step(RNNCellBase):
    """Base class of one step of a network of a known kind."""

    _kind_: str

    def construct(self, x: Any, hx: Any) -> Any:
        """The next state (N, hidden); (h, c) of an LSTM."""
        name = type(self).__name__
        if x.ndim != 2 or x.shape[1] != self.input_size:
            raise ValueError(f"{line_prefix()}{name}: expected an input (N, {self.input_size}), got shape {x.shape}.")
        if self._kind_ == "lstm" and not isinstance(hx, tuple):
            raise TypeError(f"{line_prefix()}{name}: hx: expected a tuple (h, c), got {type(hx).__name__}.")
        return recurrent._recurrent_cell(x, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh, self._kind_)


class LSTMCell(_Step):
    """One step of an LSTM: x (N, input) and (h, c) (N, hidden) give the next (h, c)."""

    def __init__(self, input_size: int, hidden_size: int, has_bias: bool = True, dtype: Any = dtypes.float32) -> None:
        super().__init__(input_size, hidden_size, has_bias, 4, dtype)
        self._kind_ = "lstm"


class GRUCell(_Step):
    """One step of a GRU: x (N, input) and h (N, hidden) give the next h."""

    def __init__(self, input_size: int, hidden_size: int, has_bias: bool = True, dtype: Any = dtypes.float32) -> None:
        super().__init__(input_size, hidden_size, has_bias, 3, dtype)
        self._kind_ = "gru"


class RNNCell(_Step):
    """One step of Elman's network: x (N, input) and h (N, hidden) give the next h, with the nonlinearity 'tanh' or 'relu'."""

    def __init__(
        self, input_size: int, hidden_size: int, has_bias: bool = True, nonlinearity: str = "tanh", dtype: Any = dtypes.float32,
    ) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"RNNCell(nonlinearity={nonlinearity!r:.40}): expected 'tanh' or 'relu'.")
        super().__init__(input_size, hidden_size, has_bias, 1, dtype)
        self._kind_ = self.nonlinearity = nonlinearity


def _lstm_cell(inputs: Any, hidden: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any) -> Any:
    """The next (h, c) of an LSTM; `hidden` is (h, c)."""
    return recurrent._recurrent_cell(inputs, hidden, w_ih, w_hh, b_ih, b_hh, "lstm")


def _gru_cell(inputs: Any, hidden: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any) -> Any:
    """The next state of a GRU."""
    return recurrent._recurrent_cell(inputs, hidden, w_ih, w_hh, b_ih, b_hh, "gru")


def _rnn_tanh_cell(inputs: Any, hidden: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any) -> Any:
    """The next state of Elman's network with tanh."""
    return recurrent._recurrent_cell(inputs, hidden, w_ih, w_hh, b_ih, b_hh, "tanh")


def _rnn_relu_cell(inputs: Any, hidden: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any) -> Any:
    """The next state of Elman's network with ReLU."""
    return recurrent._recurrent_cell(inputs, hidden, w_ih, w_hh, b_ih, b_hh, "relu")


__all__ = ["GRU", "GRUCell", "LSTM", "LSTMCell", "RNN", "RNNCell"]
