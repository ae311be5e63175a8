"""The message of a checkpoint file, for programs that read or write such files directly: `Checkpoint().ParseFromString(bytes)`."""
from __future__ import annotations

from typing import Any

from torchspore.base.messages import messages
from torchspore.public_names import missing

__all__ = ["Checkpoint", "MapTensorProto", "TensorProto"]
_classes = messages("checkpoint", {
    "TensorProto": "1 dims int64*, 2 tensor_type string, 3 tensor_content bytes",
    "MapTensorProto": "1 tensor TensorProto*",
    "Value": "1 tag string, 2 tensor TensorProto, 3 maptensor MapTensorProto",
    "Checkpoint": "1 value Value*",
})
Checkpoint: Any = _classes["Checkpoint"]
TensorProto: Any = _classes["TensorProto"]
MapTensorProto: Any = _classes["MapTensorProto"]
__getattr__ = missing(__name__)
