"""`mindspore.experimental`."""
from __future__ import annotations

from torchspore.mindspore.experimental.map_parameter import MapParameter
from torchspore.public_names import missing

__all__ = ["MapParameter"]

__getattr__ = missing(__name__)
