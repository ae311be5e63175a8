"""`mindspore.device_context`: a module for each kind of device."""
from torchspore.mindspore.device_context import ascend, cpu, gpu
from torchspore.public_names import missing

__all__ = ["ascend", "cpu", "gpu"]
__getattr__ = missing(__name__)
