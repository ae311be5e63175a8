"""`mindspore.utils`: memory shared with other libraries, and checks of the order of collectives."""
from __future__ import annotations

from torchspore.mindspore.common.shared_memory import from_dlpack, to_dlpack
from torchspore.mindspore.utils import dlpack
from torchspore.mindspore.utils.runtime_execution_order_check import comm_exec_order_check, runtime_execution_order_check
from torchspore.public_names import missing

__all__ = ["comm_exec_order_check", "dlpack", "from_dlpack", "runtime_execution_order_check", "to_dlpack"]

__getattr__ = missing(__name__)
