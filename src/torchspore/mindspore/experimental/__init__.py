"""`mindspore.experimental`."""
from __future__ import annotations

from torchspore.names import missing

__getattr__ = missing(__name__)
