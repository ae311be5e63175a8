"""Recurrent networks: complete layers for `nn`, and the primitives LSTM, DynamicRNN and DynamicGRUV2."""
from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from torchspore.base.text import message, with_type
from torchspore.engine.formulas import clamping
from torchspore.engine.formulas.half_precision import in_float32, is_slow
from torchspore.engine.random import generators
from torchspore.engine.torch_internals import torch_private
from torchspore.mindspore.ops.declaration.declare import op

T = torch.Tensor
Weights = tuple[T, T, Any, Any]
"""Weights for the input and the state, and their biases or None."""


def lstm_cell(x: T, state: tuple[T, T], weights: Weights) -> tuple[T, T]:
    """One LSTM step (Hochreiter and Schmidhuber, 1997): gates in the order input, forget, cell, output."""
    h, c = state
    i, f, g, o = (in_float32(F.linear, x, weights[0], weights[2]) + in_float32(F.linear, h, weights[1], weights[3])).chunk(4, 1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


def gru_cell(x: T, h: T, weights: Weights) -> T:
    """One GRU step (Cho and others, 2014): gates in the order reset, update, new; the reset gate acts after the product."""
    from_input, past = in_float32(F.linear, x, weights[0], weights[2]), in_float32(F.linear, h, weights[1], weights[3])
    (r, z, n), (hr, hz, hn) = from_input.chunk(3, 1), past.chunk(3, 1)
    z = torch.sigmoid(z + hz)
    n = torch.tanh(n + torch.sigmoid(r + hr) * hn)
    return n + z * (h - n)


def rnn_cell(x: T, h: T, weights: Weights, nonlinearity: str) -> T:
    """One step: the nonlinearity ('tanh' or 'relu') of the sum of both products."""
    out = in_float32(F.linear, x, weights[0], weights[2]) + in_float32(F.linear, h, weights[1], weights[3])
    return torch.tanh(out) if nonlinearity == "tanh" else torch.relu(out)


@op()
def _recurrent_cell(x: T, hx: Any, w_ih: T, w_hh: T, b_ih: T | None, b_hh: T | None, kind: str) -> Any:
    """One step of a cell of `kind` 'lstm', 'gru', 'tanh' or 'relu', for the layers."""
    weights = (w_ih, w_hh, b_ih, b_hh)
    if kind == "lstm":
        return lstm_cell(x, hx, weights)
    return gru_cell(x, hx, weights) if kind == "gru" else rnn_cell(x, hx, weights, kind)


@op()
def _recurrent(
    x: T, states: Any, weights: Any, lengths: T | None, kind: str, layers: int, bidirectional: bool, dropout: float, training: bool,
) -> Any:
    """Run a network of `kind` over (time, N, features). Return the outputs and the last states.

    The states are (layers * directions, N, hidden), a tuple of two for 'lstm'.

    `weights` lists the four of each layer and direction; None means no bias. With `lengths` (N,), sequences end early: later outputs are 0,
    and the last states are those at the end.
    """
    directions = 2 if bidirectional else 1
    if lengths is None and (not dropout or not training) and not _needs_cells():
        return _fused(x, states, weights, kind, layers, bidirectional)
    last = []
    for layer in range(layers):
        outs = []
        for direction in range(directions):
            index = layer * directions + direction
            first = tuple(s[index] for s in states) if kind == "lstm" else states[index]
            out, end = _direction(x, first, tuple(weights[4 * index: 4 * index + 4]), lengths, kind, direction == 1)
            outs.append(out)
            last.append(end)
        x = torch.cat(outs, -1) if len(outs) > 1 else outs[0]
        if dropout and training and layer < layers - 1:
            x = generators.dropout(x, dropout)
    if kind == "lstm":
        return x, (torch.stack([h for h, _ in last]), torch.stack([c for _, c in last]))
    return x, torch.stack(last)


def _fused(x: T, states: Any, weights: Any, kind: str, layers: int, bidirectional: bool) -> Any:
    """Run torch's kernels, which do not support lengths and use torch's random numbers."""
    if is_slow(x):
        wide_states = [s.float() for s in states] if kind == "lstm" else states.float()
        out, last = _fused(x.float(), wide_states, [w if w is None else w.float() for w in weights], kind, layers, bidirectional)
        return out.to(x.dtype), tuple(s.to(x.dtype) for s in last) if kind == "lstm" else last.to(x.dtype)
    flat = [w for w in weights if w is not None]
    has_bias = weights[2] is not None
    _check_sequence(x, states if kind == "lstm" else (states,), weights[0].shape[1], weights[1].shape[1], layers * (1 + bidirectional))
    if kind == "lstm":
        out, h, c = torch.lstm(x, list(states), flat, has_bias, layers, 0.0, False, bidirectional, False)
        return out, (h, c)
    call = {"gru": torch.gru, "tanh": torch.rnn_tanh, "relu": torch.rnn_relu}[kind]
    return call(x, states, flat, has_bias, layers, 0.0, False, bidirectional, False)


def _check_sequence(x: T, states: Any, features: int, hidden: int, count: int) -> None:
    """Raises ValueError for shapes that do not fit: torch's kernels read and write beyond the memory of such Tensors."""
    if x.ndim != 3 or x.shape[2] != features:
        raise ValueError(f"expected an input of shape (time, N, {features}), got {tuple(x.shape)}.")
    for state in states:
        if tuple(state.shape) != (count, x.shape[1], hidden):
            raise ValueError(f"expected states of shape {(count, x.shape[1], hidden)}, got {tuple(state.shape)}.")


@op(primitive="CudnnGRU", init=("input_size", "hidden_size", "num_layers", "has_bias", "bidirectional", "dropout"))
def _cudnn_gru(
    input: T, h: T, w: T, input_size: int, hidden_size: int, num_layers: int, has_bias: bool, bidirectional: bool, dropout: float,
) -> Any:
    """A GRU over (time, N, input) with all weights in one Tensor in cuDNN's order: the matrices of each layer, then the biases.

    Return (outputs, last states, empty, empty); the last two hold data of cuDNN's gradient on a GPU. Dropout is active while training.
    """
    directions, rows, at = 2 if bidirectional else 1, 3 * hidden_size, 0
    flat, weight_pairs = w.reshape(-1), []
    shapes = [(rows, input_size if index < directions else hidden_size * directions) for index in range(num_layers * directions)]
    for wide in shapes:
        pair = []
        for shape in (wide, (rows, hidden_size)):
            size = shape[0] * shape[1]
            pair.append(flat[at:at + size].reshape(shape))
            at += size
        weight_pairs.append(pair)
    for pair in weight_pairs if has_bias else ():
        pair += [flat[at:at + rows], flat[at + rows:at + 2 * rows]]
        at += 2 * rows
    _check_sequence(input, (h,), input_size, hidden_size, num_layers * directions)
    out, last = torch.gru(
        input, h, [t for pair in weight_pairs for t in pair], has_bias, num_layers, dropout, dropout > 0, bidirectional, False,
    )
    return out, last, w.new_empty(0), w.new_empty(0)


def _needs_cells() -> bool:
    """Return whether vmap or forward-mode differentiation runs, which torch's kernels of whole layers do not support."""
    return torch_private.current_transform() is not None or torch_private.has_forward_gradients()


_FROZEN = 1e4
"""A summand of a gate's input whose sigmoid is exactly 0 or 1."""


def _direction(x: T, state: Any, weights: Weights, lengths: T | None, kind: str, backwards: bool) -> tuple[T, Any]:
    """Run one layer in one direction by torch's kernel over all steps; return the outputs and the last state of each sequence.

    The kernel does not support `lengths`. Each output depends on earlier steps only, so that the outputs are set to 0 from the end of a
    sequence on, and the last h is the output of its last step. The kernel returns c of the last step of all. An additional feature of the
    input therefore closes the input gate and opens the forget gate from the end of a sequence on, which leaves c unchanged.
    """
    if backwards:
        x = _reversed(x, lengths)
    goes_on = None
    if lengths is not None:
        goes_on = (torch.arange(x.shape[0], device=x.device).unsqueeze(1) < lengths).unsqueeze(-1)
        x = torch.where(goes_on, x, torch.zeros_like(x))     # a NaN beyond the end would make gradients NaN
    # Beyond the end, the state of 'relu' could grow until gradients are NaN.
    if _needs_cells() or (kind == "relu" and goes_on is not None):
        out, end = _step_by_step(x, state, weights, goes_on, kind)
        return (_reversed(out, lengths) if backwards else out), end
    first = tuple(s.unsqueeze(0) for s in state) if kind == "lstm" else state.unsqueeze(0)
    if lengths is None or goes_on is None:
        out, last = _fused(x, first, list(weights), kind, 1, False)
        return (_reversed(out, None) if backwards else out), tuple(s[0] for s in last) if kind == "lstm" else last[0]
    if kind == "lstm":
        hidden = weights[1].shape[1]
        column = torch.zeros_like(weights[0][:, :1])
        column = torch.cat((column[:hidden] - _FROZEN, column[:hidden] + _FROZEN, column[2 * hidden:]))
        x = torch.cat((x, (~goes_on).expand(-1, -1, 1).to(x.dtype)), -1)
        weights = (torch.cat((weights[0], column), 1), *weights[1:])
    out, last = _fused(x, first, list(weights), kind, 1, False)
    h = torch.where((lengths > 0).unsqueeze(-1), _at_last_step(out, lengths), state[0] if kind == "lstm" else state)
    out = torch.where(goes_on, out, torch.zeros_like(out))
    return (_reversed(out, lengths) if backwards else out), (h, last[1][0]) if kind == "lstm" else h


def _step_by_step(x: T, state: Any, weights: Weights, goes_on: T | None, kind: str) -> tuple[T, Any]:
    """Run a layer by cells; a state stays as it is where its sequence has ended, and the outputs there are 0."""
    outs = []
    for step in range(x.shape[0]):
        if kind == "lstm":
            new: Any = lstm_cell(x[step], state, weights)
        else:
            new = gru_cell(x[step], state, weights) if kind == "gru" else rnn_cell(x[step], state, weights, kind)
        out = new[0] if kind == "lstm" else new
        if goes_on is not None:
            mask = goes_on[step]
            out = torch.where(mask, out, torch.zeros_like(out))
            pairs = zip(new, state) if kind == "lstm" else ((new, state),)
            merged = tuple(torch.where(mask, a, b) for a, b in pairs)
            new = merged if kind == "lstm" else merged[0]
        state = new
        outs.append(out)
    return torch.stack(outs), state


def _at_last_step(out: T, lengths: T) -> T:
    """Return the rows (N, features) of `out` (time, N, features) at the last step of each sequence."""
    at = (lengths.long() - 1).clamp(0, out.shape[0] - 1)
    return out.gather(0, at.reshape(1, -1, 1).expand(1, -1, out.shape[2]))[0]


def _reversed(x: T, lengths: T | None) -> T:
    """Reverse the first `lengths` steps of each sequence, or all steps if `lengths` is None."""
    if lengths is None:
        return x.flip(0)
    at = torch.arange(x.shape[0], device=x.device).unsqueeze(1)
    at = torch.where(at < lengths, lengths - 1 - at, at)
    return x.gather(0, at.unsqueeze(-1).expand(x.shape).long())


def _activation(name: str) -> Any:
    activations = {"tanh": torch.tanh}
    if name not in activations:
        raise ValueError(f"activation={name!r}: expected 'tanh'.")
    return activations[name]


def _refuse(options: dict[str, tuple[Any, Any]]) -> None:
    for name, (value, only) in options.items():
        if value != only:
            raise ValueError(f"{name}={value!r}: expected {only!r}, as in MindSpore.")


@op(primitive="DynamicRNN", init=(
    "cell_type", "direction", "cell_depth", "use_peephole", "keep_prob", "cell_clip", "num_proj", "time_major", "activation",
    "forget_bias", "is_training",
))
def _dynamic_rnn(
    x: T, w: T, b: T, seq_length: T | None = None, init_h: T | None = None, init_c: T | None = None, *, cell_type: str = "LSTM",
    direction: str = "UNIDIRECTIONAL", cell_depth: int = 1, use_peephole: bool = False, keep_prob: float = 1.0, cell_clip: float = -1.0,
    num_proj: int = 0, time_major: bool = True, activation: str = "tanh", forget_bias: float = 0.0, is_training: bool = True,
) -> Any:
    """An LSTM over (time, N, features) with one weight w (features + hidden, 4 * hidden), gates in the order input, cell, forget, output.

    Return y, h, c, i, j, f, o and tanh(c), each (time, N, hidden): h in the dtype of x, the others in that of b.
    `seq_length`, as in MindSpore, must be None; there is one layer in one direction, and `is_training` has no effect, because nothing is
    dropped.
    """
    _refuse({
        "cell_type": (cell_type, "LSTM"), "direction": (direction, "UNIDIRECTIONAL"), "cell_depth": (cell_depth, 1),
        "use_peephole": (use_peephole, False), "keep_prob": (keep_prob, 1.0), "num_proj": (num_proj, 0), "time_major": (time_major, True),
        "seq_length": (seq_length, None),
    })
    if not isinstance(is_training, bool):
        raise TypeError(message(f"is_training={is_training!r:.40}", with_type("a bool", is_training)))
    act, hidden, input_steps = _activation(activation), w.shape[1] // 4, x.float()
    zeros = input_steps.new_zeros(x.shape[1], hidden)
    h = zeros if init_h is None else init_h.reshape(zeros.shape).float()
    c = zeros if init_c is None else init_c.reshape(zeros.shape).float()
    results = []
    for step in range(x.shape[0]):
        i, j, f, o = (torch.cat([input_steps[step], h], 1) @ w.float() + b.float()).chunk(4, 1)
        i, j, f, o = torch.sigmoid(i), act(j), torch.sigmoid(f + forget_bias), torch.sigmoid(o)
        c = c * f + i * j
        if cell_clip > 0:
            c = clamping.clamp(c, -cell_clip, cell_clip)
        shown = act(c)
        h = shown * o
        results.append((h, h, c, i, j, f, o, shown))
    return tuple(torch.stack(parts).to(x.dtype if position == 1 else b.dtype) for position, parts in enumerate(zip(*results)))


@op(primitive="DynamicGRUV2", init=(
    "direction", "cell_depth", "keep_prob", "cell_clip", "num_proj", "time_major", "activation", "gate_order", "reset_after",
    "is_training",
))
def _dynamic_gru(
    x: T, weight_input: T, weight_hidden: T, bias_input: T | None = None, bias_hidden: T | None = None, seq_length: T | None = None,
    init_h: T | None = None, *, direction: str = "UNIDIRECTIONAL", cell_depth: int = 1, keep_prob: float = 1.0, cell_clip: float = -1.0,
    num_proj: int = 0, time_major: bool = True, activation: str = "tanh", gate_order: str = "rzh", reset_after: bool = True,
    is_training: bool = True,
) -> Any:
    """A GRU over (time, N, features) with weights (features, 3 * hidden) and (hidden, 3 * hidden).

    Return y, h, update, reset, new and hidden_new, each (time, N, hidden): the gates, the candidate, and the state's part of it. The gates
    are in the order 'rzh' or 'zrh'. Results have the dtype of the biases, or of `init_h`
    without biases. There is one layer in one direction, and `seq_length` must be None.
    """
    _refuse({
        "direction": (direction, "UNIDIRECTIONAL"), "cell_depth": (cell_depth, 1), "keep_prob": (keep_prob, 1.0),
        "cell_clip": (cell_clip, -1.0), "num_proj": (num_proj, 0), "time_major": (time_major, True), "reset_after": (reset_after, True),
        "seq_length": (seq_length, None),
    })
    if not isinstance(is_training, bool):
        raise TypeError(message(f"is_training={is_training!r:.40}", with_type("a bool", is_training)))
    if gate_order not in ("rzh", "zrh"):
        raise ValueError(f"gate_order={gate_order!r}: expected 'rzh' or 'zrh'.")
    act, hidden, input_steps = _activation(activation), weight_hidden.shape[0], x.float()
    h = input_steps.new_zeros(x.shape[1], hidden) if init_h is None else init_h.float()
    results = []
    for step in range(x.shape[0]):
        from_input = input_steps[step] @ weight_input.float() + (0 if bias_input is None else bias_input.float())
        past = h @ weight_hidden.float() + (0 if bias_hidden is None else bias_hidden.float())
        from_input, past = list(from_input.chunk(3, 1)), list(past.chunk(3, 1))
        r, z = (0, 1) if gate_order == "rzh" else (1, 0)
        reset, update = torch.sigmoid(from_input[r] + past[r]), torch.sigmoid(from_input[z] + past[z])
        new = act(from_input[2] + reset * past[2])
        h = new + update * (h - new)
        results.append((h, h, update, reset, new, past[2]))
    dtype = next((t.dtype for t in (bias_input, bias_hidden, init_h) if t is not None), x.dtype)
    return tuple(torch.stack(parts).to(dtype) for parts in zip(*results))


@op(primitive="LSTM", init=("input_size", "hidden_size", "num_layers", "has_bias", "bidirectional", "dropout", "proj_size"))
def _lstm(
    x: T, h: T, c: T, w: T, input_size: int, hidden_size: int, num_layers: int, has_bias: bool, bidirectional: bool, dropout: float,
    proj_size: int = 0,
) -> Any:
    """An LSTM over (time, N, input_size) with consecutive weights in `w` (count, 1, 1).

    Return the outputs and the last h and c, then two states for MindSpore's gradient, which are empty here: (0,) each. `w` holds the
    weights for the input of each layer and direction, then those for the states, then biases: one each, as on the CPU, or two, as
    on a GPU. `dropout` acts between layers.
    """
    _refuse({"proj_size": (proj_size, 0)})
    directions = 2 if bidirectional else 1
    weights = unpacked(w.reshape(-1), input_size, hidden_size, num_layers, directions, has_bias)
    out, (last_h, last_c) = _stacked(x, (h, c), weights, num_layers, directions, dropout)
    return out, last_h, last_c, x.new_empty(0), x.new_empty(0)


def unpacked(flat: T, features: int, hidden: int, layers: int, directions: int, has_bias: bool, gates: int = 4) -> list[Any]:
    """Return the four weights of each layer and direction, cut out of one vector."""
    count, rows = layers * directions, gates * hidden
    inner = [features if position < directions else directions * hidden for position in range(count)]
    lengths = [rows * n for n in inner] + [rows * hidden] * count
    has_two_biases = flat.numel() >= sum(lengths) + 2 * rows * count
    lengths += [rows] * (count * (2 if has_two_biases else 1)) if has_bias else []
    if flat.numel() < sum(lengths):
        raise ValueError(f"expected {sum(lengths)} weights, got {flat.numel()}.")
    parts = list(flat[: sum(lengths)].split(lengths))
    weights: list[Any] = []
    for position in range(count):
        weights += [parts[position].reshape(rows, -1), parts[count + position].reshape(rows, hidden)]
        biases = [parts[(2 + k) * count + position] for k in range(2 if has_two_biases else 1)] if has_bias else [None, None]
        weights += biases if len(biases) == 2 else [*biases, torch.zeros_like(biases[0])]
    return weights


def _stacked(x: T, states: tuple[T, T], weights: list[Any], layers: int, directions: int, dropout: float) -> Any:
    if not dropout or layers == 1:
        return _fused(x, states, weights, "lstm", layers, directions == 2)
    last = []
    for layer in range(layers):
        positions = slice(layer * directions, (layer + 1) * directions)
        layer_weights = weights[4 * positions.start: 4 * positions.stop]
        x, end = _fused(x, tuple(s[positions] for s in states), layer_weights, "lstm", 1, directions == 2)
        last.append(end)
        x = generators.dropout(x, dropout) if layer < layers - 1 else x
    return x, (torch.cat([h for h, _ in last]), torch.cat([c for _, c in last]))


@op(primitive="BasicLSTMCell", init=("keep_prob", "forget_bias", "state_is_tuple", "activation"))
def _basic_lstm_cell(
    x: T, h: T, c: T, w: T, b: T, keep_prob: float = 1.0, forget_bias: float = 1.0, state_is_tuple: bool = True, activation: str = "tanh",
) -> Any:
    """One step of an LSTM with w (4 * hidden, features + hidden, 1, 1), gates in the order input, cell, forget, output.

    Return c, h, i, j, f, o and tanh(c), each (N, hidden).
    """
    _refuse({"keep_prob": (keep_prob, 1.0), "state_is_tuple": (state_is_tuple, True)})
    act = _activation(activation)
    i, j, f, o = (torch.cat([x, h], 1) @ w.flatten(1).T + b.reshape(-1)).chunk(4, 1)
    i, j, f, o = torch.sigmoid(i), act(j), torch.sigmoid(f + forget_bias), torch.sigmoid(o)
    c = c * f + i * j
    return c, act(c) * o, i, j, f, o, act(c)
