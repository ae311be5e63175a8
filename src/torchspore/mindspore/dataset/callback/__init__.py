"""`mindspore.dataset.callback`: functions that a `map` calls around its epochs and steps."""
from __future__ import annotations

from torchspore.mindspore.dataset.callback.ds_callback import DSCallback, WaitedDSCallback

__all__ = ["DSCallback", "WaitedDSCallback"]
