"""The base of a program's metrics."""
from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor


class Metric:
    """Base of metrics: clear(), then update(...) for each batch, then eval()."""

    def __call__(self, *inputs: Any) -> Any:
        metric: Any = self
        metric.clear()
        metric.update(*inputs)
        return metric.eval()

    def _convert_data(self, data: Any) -> Any:
        """An array of a tensor, an array or a list."""
        return data.detach().cpu().numpy() if isinstance(data, Tensor) else np.array(data)
