"""The messages of a MINDIR file (MindSpore's `mind_ir.proto`, package `mind_ir`), made here so that no generated code is needed.

Numbers and types of the fields are those of files that MindSpore 2.10 writes; fields that are not named here are kept by protobuf unread.
"""
from __future__ import annotations

import functools
from typing import Any

import torch

from torchspore.base.messages import messages

MESSAGES: dict[str, str] = {
    "AttributeProto": """
        1 name string, 2 f float, 3 i int64, 4 d double, 5 s bytes, 6 t TensorProto, 8 floats float*, 9 doubles double*, 10 ints int64*,
        11 strings bytes*, 12 tensors TensorProto*, 16 type int32, 17 values AttributeProto*""",
    "ValueInfoProto": "1 name string, 2 tensor TensorProto*, 3 doc_string string",
    "NodeProto": """
        1 input string*, 2 output string*, 3 name string, 4 op_type string, 5 attribute AttributeProto*, 6 doc_string string,
        7 domain string, 8 node_attr AttributeProto*, 9 primal_attr AttributeProto*""",
    "PrimitiveProto": "1 name string, 2 op_type string, 3 attribute AttributeProto*, 4 instance_name string, 5 prim_type int32",
    "GraphProto": """
        1 node NodeProto*, 2 name string, 3 parameter TensorProto*, 4 doc_string string, 5 input ValueInfoProto*, 6 output ValueInfoProto*,
        8 attribute AttributeProto*""",
    "TensorProto": """
        1 dims int64*, 2 data_type int32, 3 float_data float*, 4 int32_data int32*, 6 int64_data int64*, 7 name string, 9 raw_data bytes,
        10 double_data double*, 12 external_data ExternalDataProto""",
    "ExternalDataProto": "1 location string, 2 offset int64, 3 length int64",
    "ModelProto": """
        1 ir_version string, 2 producer_name string, 3 producer_version string, 4 domain string, 5 model_version string,
        6 doc_string string, 7 graph GraphProto, 8 functions GraphProto*, 10 little_endian bool, 12 primitives PrimitiveProto*,
        13 mind_ir_version int64,
        14 user_info map""",
}
"""Field number, name and type of each message; `*` marks what may come several times, `map` is of strings."""
DTYPES = {
    1: torch.float32, 2: torch.uint8, 3: torch.int8, 4: torch.uint16, 5: torch.int16, 6: torch.int32, 7: torch.int64, 9: torch.bool,
    10: torch.float16, 11: torch.float64, 12: torch.uint32, 13: torch.uint64, 14: torch.complex64, 15: torch.complex128, 16: torch.bfloat16,
    17: torch.float64,
}
"""`TensorProto.DataType`; AttributeProto's types have the same numbers up to 16."""
NUMBERS = {dtype: number for number, dtype in reversed(DTYPES.items())}
STRING, TENSOR, TENSORS, TUPLE, LIST, UMONAD, IOMONAD, NONE = 8, 17, 19, 20, 21, 23, 24, 25


@functools.cache
def _classes() -> dict[str, Any]:
    return messages("mind_ir", MESSAGES)


def message(name: str) -> Any:
    """The class of a message."""
    return _classes()[name]


def model() -> Any:
    """A new ModelProto."""
    return message("ModelProto")()


def parsed(content: bytes) -> Any:
    """The ModelProto of a file. Raises ValueError where it is none."""
    from google.protobuf.message import DecodeError

    proto = model()
    try:
        proto.ParseFromString(content)
    except DecodeError:
        raise ValueError("it is not a MINDIR file, or is truncated") from None
    return proto


def put(into: Any, name: str, t: torch.Tensor) -> None:
    """Writes name, lengths, dtype and values of a tensor into a TensorProto."""
    into.name, into.data_type = name, NUMBERS[t.dtype]
    into.dims.extend(t.shape)
    into.raw_data = t.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes() if t.numel() else b""


def tensor(message_: Any) -> torch.Tensor:
    """The tensor of a TensorProto. Raises ValueError if lengths and values do not fit, or are in another file."""
    dtype = DTYPES.get(message_.data_type)
    if dtype is None or message_.HasField("external_data"):
        raise ValueError(f"the Tensor {message_.name!r:.60} has values that are not in the file" if dtype else
                         f"the Tensor {message_.name!r:.60} has the unknown dtype {message_.data_type}")
    count = 1
    for length in message_.dims:
        if length < 0:
            raise ValueError(f"the Tensor {message_.name!r:.60} has an axis of length {length}")
        count *= length
    if count * dtype.itemsize != len(message_.raw_data):
        shape = f"{tuple(message_.dims)!s:.60}"
        raise ValueError(f"the Tensor {message_.name!r:.60} of shape {shape} has {len(message_.raw_data)} bytes of values")
    values = torch.frombuffer(bytearray(message_.raw_data), dtype=dtype) if count else torch.empty(0, dtype=dtype)
    return values.reshape(tuple(message_.dims))
