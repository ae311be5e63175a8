"""`mindspore.device_context.gpu`: availability and options of GPUs."""
from torchspore.mindspore.device_context.gpu import device, op_precision, op_tuning
from torchspore.mindspore.device_context.gpu.device import device_count, is_available
from torchspore.mindspore.device_context.gpu.op_precision import conv_allow_tf32, matmul_allow_tf32
from torchspore.mindspore.device_context.gpu.op_tuning import conv_dgrad_algo, conv_fprop_algo, conv_wgrad_algo
from torchspore.public_names import missing

__all__ = [
    "conv_allow_tf32", "conv_dgrad_algo", "conv_fprop_algo", "conv_wgrad_algo", "device", "device_count", "is_available",
    "matmul_allow_tf32", "op_precision", "op_tuning",
]
__getattr__ = missing(__name__)
