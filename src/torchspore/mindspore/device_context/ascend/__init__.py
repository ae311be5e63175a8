"""`mindspore.device_context.ascend`: availability and options of Ascend devices."""
from torchspore.mindspore.device_context.ascend import device, op_debug, op_precision, op_tuning
from torchspore.mindspore.device_context.ascend.device import device_count, is_available
from torchspore.mindspore.device_context.ascend.op_debug import aclinit_config, debug_option, execute_timeout
from torchspore.mindspore.device_context.ascend.op_precision import conv_allow_hf32, matmul_allow_hf32, op_precision_mode, precision_mode
from torchspore.mindspore.device_context.ascend.op_tuning import aclnn_cache, aoe_job_type, aoe_tune_mode, op_compile
from torchspore.public_names import missing

__all__ = [
    "aclinit_config", "aclnn_cache", "aoe_job_type", "aoe_tune_mode", "conv_allow_hf32", "debug_option", "device", "device_count",
    "execute_timeout", "is_available", "matmul_allow_hf32", "op_compile", "op_debug", "op_precision", "op_precision_mode", "op_tuning",
    "precision_mode",
]
__getattr__ = missing(__name__)
