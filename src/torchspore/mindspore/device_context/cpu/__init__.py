"""`mindspore.device_context.cpu`: availability and options of the CPU."""
from torchspore.mindspore.device_context.cpu import device, op_tuning
from torchspore.mindspore.device_context.cpu.device import device_count, is_available
from torchspore.mindspore.device_context.cpu.op_tuning import threads_num
from torchspore.public_names import missing

__all__ = ["device", "device_count", "is_available", "op_tuning", "threads_num"]
__getattr__ = missing(__name__)
