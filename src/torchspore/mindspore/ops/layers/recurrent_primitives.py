"""Internal recurrent primitives of MindSpore: LSTMV2 and GRUV2, whose sequences have lengths, and two gradients."""
from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F

from torchspore.engine.random import generators
from torchspore.mindspore.ops.declaration.declare import OPERATORS, op
from torchspore.mindspore.ops.declaration.indices import as_index
from torchspore.mindspore.ops.gradients.grad_primitives import vjp_of_many
from torchspore.mindspore.ops.layers.recurrent import unpacked

T = torch.Tensor
_INIT = ("input_size", "hidden_size", "num_layers", "has_bias", "bidirectional", "dropout")
_IN_TRAINING = (*_INIT, "is_train")


def _check_lengths(x: T, lengths: T) -> T:
    if lengths.shape != x.shape[1:2]:
        raise ValueError(f"expected seq_lengths of shape {tuple(x.shape[1:2])}, got {tuple(lengths.shape)}.")
    return as_index(lengths)


@op(primitive="LSTMV2", init=_IN_TRAINING)
def _lstm_v2(
    input: T, h: T, c: T, w: T, seq_lengths: T, input_size: int, hidden_size: int, num_layers: int, has_bias: bool, bidirectional: bool,
    dropout: float, is_train: bool = True,
) -> Any:
    """An LSTM over (time, N, input_size) with sequences that end at `seq_lengths` (N,); `w` holds the weights as for LSTM.

    Return the outputs, zeros beyond the ends, and h and c at the ends, then two states for MindSpore's gradient, empty here. `dropout`
    acts between layers if `is_train`.
    """
    weights = unpacked(w.reshape(-1), input_size, hidden_size, num_layers, 1 + bidirectional, has_bias)
    lengths = _check_lengths(input, seq_lengths)
    out, (last_h, last_c) = OPERATORS["_recurrent"].body(
        input, (h, c), weights, lengths, "lstm", num_layers, bidirectional, dropout, is_train,
    )
    return out, last_h, last_c, input.new_empty(0), input.new_empty(0)


def _steps(x: T, h: T, weights: list[T], lengths: T, backwards: bool) -> tuple[T, T]:
    """Run one layer of a GRU in one direction: gates in the order update, reset, new; the reset gate acts before the product."""
    wide, past, bias, _ = weights
    rows = past.shape[0] // 3
    order = range(x.shape[0] - 1, -1, -1) if backwards else range(x.shape[0])
    outs: list[T] = [x] * x.shape[0]
    for step in order:
        from_input = F.linear(x[step], wide, bias)
        z, r = torch.sigmoid(from_input[:, :2 * rows] + F.linear(h, past[:2 * rows])).chunk(2, 1)
        new = torch.tanh(from_input[:, 2 * rows:] + F.linear(r * h, past[2 * rows:]))
        goes_on = (step < lengths).unsqueeze(1)
        new_state = z * h + (1 - z) * new
        outs[step] = torch.where(goes_on, new_state, 0)
        h = torch.where(goes_on, new_state, h)
    return torch.stack(outs), h


def _gru(
    x: T, h: T, w: T, lengths: T, input_size: int, hidden_size: int, num_layers: int, has_bias: bool, bidirectional: bool, dropout: float,
    is_train: bool,
) -> tuple[T, T]:
    directions, last = 1 + bidirectional, []
    weights = unpacked(w.reshape(-1), input_size, hidden_size, num_layers, directions, has_bias, gates=3)
    for layer in range(num_layers):
        outs = []
        for direction in range(directions):
            index = layer * directions + direction
            out, end = _steps(x, h[index], weights[4 * index: 4 * index + 4], lengths, direction == 1)
            outs.append(out)
            last.append(end)
        x = torch.cat(outs, -1)
        if dropout and is_train and layer < num_layers - 1:
            x = generators.dropout(x, dropout)
    return x, torch.stack(last)


@op(primitive="GRUV2", init=_IN_TRAINING)
def _gru_v2(
    input: T, h: T, w: T, seq_lengths: T, input_size: int, hidden_size: int, num_layers: int, has_bias: bool, bidirectional: bool,
    dropout: float, is_train: bool = True,
) -> Any:
    """A GRU over (time, N, input_size) with sequences that end at `seq_lengths` (N,), as MindSpore computes it on the CPU.

    Gates are in the order update, reset, new; the reset gate acts before the product, and of two biases the first is used. `w` holds the
    weights for the input of each layer and direction, then those for the states, then the biases. Return the outputs, zeros beyond the
    ends, and the states at the ends, then two states for MindSpore's gradient, empty here.
    """
    lengths = _check_lengths(input, seq_lengths)
    out, last = _gru(input, h, w, lengths, input_size, hidden_size, num_layers, has_bias, bidirectional, dropout, is_train)
    return out, last, input.new_empty(0), input.new_empty(0)


def _no_dropout(dropout: float) -> None:
    if dropout:
        problem = f"dropout={dropout}: expected 0.0, because the forward pass does not store its dropout masks."
        raise ValueError(f"{problem}\n\nhint: write ms.grad of the layer.")


@op(primitive="GRUV2Grad", init=_INIT)
def _gru_v2_grad(
    x: T, hx: T, w: T, seq_lengths: T, y: T, hy: T, dy: T, dhy: T, reserve: T, input_size: int, hidden_size: int, num_layers: int,
    has_bias: bool, bidirectional: bool, dropout: float,
) -> tuple[T, ...]:
    """The gradients of GRUV2 for x, the first state and the weights; `dy` and `dhy` are those of its outputs `y` and `hy`."""
    _no_dropout(dropout)
    lengths = _check_lengths(x, seq_lengths)

    def forward(x: T, h: T, w: T) -> tuple[T, T]:
        return _gru(x, h, w, lengths, input_size, hidden_size, num_layers, has_bias, bidirectional, 0.0, False)

    return vjp_of_many(forward, (x, hx, w), (dy, dhy))


@op(primitive="LSTMGrad", init=(*_INIT, "proj_size"))
def _lstm_grad(
    x: T, hx: T, cx: T, w: T, y: T, hy: T, cy: T, dy: T, dhy: T, dcy: T, reserve: T, input_size: int, hidden_size: int, num_layers: int,
    has_bias: bool, bidirectional: bool, dropout: float, proj_size: int = 0,
) -> tuple[T, ...]:
    """The gradients of LSTM for x, the first h and c and the weights; `dy`, `dhy` and `dcy` are those of its outputs `y`, `hy` and `cy`."""
    _no_dropout(dropout)
    body = OPERATORS["_lstm"].body

    def forward(x: T, h: T, c: T, w: T) -> tuple[T, ...]:
        outputs: tuple[T, ...] = body(x, h, c, w, input_size, hidden_size, num_layers, has_bias, bidirectional, 0.0, proj_size)
        return outputs[:3]

    return vjp_of_many(forward, (x, hx, cx, w), (dy, dhy, dcy))
