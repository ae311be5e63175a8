"""The message of `ops.Print`'s files, for programs that read such files directly."""
from __future__ import annotations

from typing import Any

from torchspore.base.messages import messages
from torchspore.public_names import missing

__all__ = ["Print", "TensorProto"]
_classes = messages("printed", {
    "TensorProto": "1 dims int64*, 2 tensor_type string, 3 tensor_content bytes",
    "Value": "1 desc string, 2 tensor TensorProto",
    "Print": "1 value Value*",
})
Print: Any = _classes["Print"]
TensorProto: Any = _classes["TensorProto"]
__getattr__ = missing(__name__)
