"""The available GPUs."""
from __future__ import annotations

from torchspore.mindspore import hal
from torchspore.public_names import missing


def is_available() -> bool:
    """Returns whether this machine has such a device."""
    return hal.is_available("GPU")


def device_count() -> int:
    """Returns the number of such devices. Raises ValueError if there is none."""
    return hal.device_count("GPU")


__all__ = ["device_count", "is_available"]
__getattr__ = missing(__name__)
