"""Cells of recurrent layers: torch has kernels of its own for them on accelerators, and none for the host."""
from __future__ import annotations

import torch

Optional = torch.Tensor | None


def _with_bias(gates: torch.Tensor, bias: Optional) -> torch.Tensor:
    return gates if bias is None else gates + bias


def lstm_cell(
    input_gates: torch.Tensor, hidden_gates: torch.Tensor, cx: torch.Tensor, input_bias: Optional = None, hidden_bias: Optional = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return (hidden state, cell state, gates) of shapes (N, H), (N, H) and (N, 4H)."""
    gates = _with_bias(input_gates, input_bias) + _with_bias(hidden_gates, hidden_bias)
    i, f, g, o = gates.chunk(4, 1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    cy = f * cx + i * g
    return o * cy.tanh(), cy, torch.cat([i, f, g, o], 1)


def lstm_cell_backward(
    grad_hy: Optional, grad_cy: Optional, cx: torch.Tensor, cy: torch.Tensor, workspace: torch.Tensor, has_bias: bool,
) -> tuple[Optional, Optional, Optional]:
    """Return the gradients of the gates, of the cell state before, and of each bias."""
    if grad_hy is None and grad_cy is None:
        return None, None, None
    i, f, g, o = workspace.chunk(4, 1)
    of_h = torch.zeros_like(cy) if grad_hy is None else grad_hy
    t = cy.tanh()
    of_c = of_h * o * (1 - t * t)
    of_c = of_c if grad_cy is None else of_c + grad_cy
    gates = torch.cat([of_c * g * i * (1 - i), of_c * cx * f * (1 - f), of_c * i * (1 - g * g), of_h * t * o * (1 - o)], 1)
    return gates, of_c * f, gates.sum(0) if has_bias else None


def gru_cell(
    input_gates: torch.Tensor, hidden_gates: torch.Tensor, hx: torch.Tensor, input_bias: Optional = None, hidden_bias: Optional = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (hidden state, what the gradient needs) of shapes (N, H) and (N, 5H)."""
    ir, iz, i_n = _with_bias(input_gates, input_bias).chunk(3, 1)
    hr, hz, h_n = _with_bias(hidden_gates, hidden_bias).chunk(3, 1)
    r, z = (ir + hr).sigmoid(), (iz + hz).sigmoid()
    n = (i_n + r * h_n).tanh()
    return n + z * (hx - n), torch.cat([r, z, n, hx, h_n], 1)


def gru_cell_backward(grad_hy: torch.Tensor, workspace: torch.Tensor, has_bias: bool) -> tuple[Optional, ...]:
    """Return the gradients of the gates of the input and of the state, of the state before, and of both biases."""
    r, z, n, hx, h_n = workspace.chunk(5, 1)
    of_n = grad_hy * (1 - z) * (1 - n * n)
    of_z, of_r = grad_hy * (hx - n) * z * (1 - z), of_n * h_n * r * (1 - r)
    of_input, of_hidden = torch.cat([of_r, of_z, of_n], 1), torch.cat([of_r, of_z, of_n * r], 1)
    return of_input, of_hidden, grad_hy * z, of_input.sum(0) if has_bias else None, of_hidden.sum(0) if has_bias else None


KERNELS = {
    "_thnn_fused_lstm_cell": lstm_cell, "_thnn_fused_lstm_cell_backward_impl": lstm_cell_backward, "_thnn_fused_gru_cell": gru_cell,
    "_thnn_fused_gru_cell_backward": gru_cell_backward,
}
