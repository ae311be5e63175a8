"""oneDNN's recurrent layer in a graph: it keeps what its gradient needs only where torch records gradients, and in graphs it does not."""
from __future__ import annotations

from typing import Any

import torch

_layer = torch.ops.aten.mkldnn_rnn_layer.default


def layer(*args: Any) -> Any:
    """As `mkldnn_rnn_layer`, with what its gradient needs: that is another node of the graph."""
    with torch.enable_grad():
        return _layer(*args)


KEEPING = {_layer: layer}
"""By operator, the function that a graph calls for it."""
