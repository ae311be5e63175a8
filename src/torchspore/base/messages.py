"""Protobuf messages that are built from a table of their fields, without generated code."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_KINDS = {"float": 2, "double": 1, "int64": 3, "int32": 5, "bool": 8, "string": 9, "bytes": 12}
_NUMERIC_KINDS = ("float", "double", "int64", "int32", "bool")


def messages(name: str, table: Mapping[str, str], *, packed: bool = False) -> dict[str, Any]:
    """Return the message classes for `table`: names and 'NUMBER FIELD TYPE, ...'. TYPE* is a repeated field, `map` maps strings to strings.

    With `packed`, repeated numbers are written without a field number for each; both forms can be read.
    """
    from google.protobuf import descriptor_pb2

    file = descriptor_pb2.FileDescriptorProto(name=f"torchspore/{name}.proto", package=f"torchspore.{name}", syntax="proto2")
    for title, fields in table.items():
        descriptor = file.message_type.add(name=title)
        for field in fields.split(","):
            number, label, kind = field.split()
            if kind == "map":
                _add_map(descriptor, label, int(number), f".torchspore.{name}.{title}")
                continue
            repeated, kind = kind.endswith("*"), kind.rstrip("*")
            added = descriptor.field.add(name=label, number=int(number), label=3 if repeated else 1, type=_KINDS.get(kind, 11))
            if kind not in _KINDS:
                added.type_name = f".torchspore.{name}.{kind}"
            elif packed and repeated and kind in _NUMERIC_KINDS:
                added.options.packed = True
    return _compiled_classes(file) or _default_classes(file)


def _default_classes(file: Any) -> dict[str, Any]:
    """Return the message classes of `file` by name, in the implementation that protobuf has selected for the process."""
    from google.protobuf import descriptor_pool, message_factory

    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {m.name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{file.package}.{m.name}")) for m in file.message_type}


def _compiled_classes(file: Any) -> dict[str, Any]:
    """Return the message classes of `file` by name, in protobuf's compiled implementation, or an empty dict if it cannot be used.

    `import mindspore` selects the Python implementation for the process, as MindSpore does, so that old `_pb2` modules load. Arrays of
    30,000 numbers are read 700 times as fast by the compiled one.
    """
    try:
        from google._upb import _message as upb
        from google.protobuf.message import Message

        pool = upb.DescriptorPool()
        pool.AddSerializedFile(file.SerializeToString())
        classes: dict[str, Any] = {}
        for message in file.message_type:
            for path in (message.name, *(f"{message.name}.{nested.name}" for nested in message.nested_type)):
                descriptor = pool.FindMessageTypeByName(f"{file.package}.{path}")
                classes[path] = upb.MessageMeta(path.rpartition(".")[2], (Message,), {"DESCRIPTOR": descriptor, "__module__": None})
        for message in file.message_type:                # an incomplete class fails here instead of in a reader
            classes[message.name].FromString(b"").SerializeToString()
    except (ImportError, AttributeError, TypeError, SystemError):
        return {}
    return classes


def has_unknown_fields(message: Any) -> bool:
    """Return whether a message contains fields that its table does not list."""
    from google.protobuf import unknown_fields

    fields: Any = unknown_fields.UnknownFieldSet
    if type(type(message)).__module__ == "google._upb._message":      # compiled, whatever implementation protobuf has selected
        from google._upb._message import UnknownFieldSet as fields
    return len(fields(message)) > 0


def with_size(content: bytes) -> bytes:
    """Return a message with its size in bytes in front, as field SIZE_FIELD, which other readers of the message skip."""
    head, size = bytearray([SIZE_FIELD << 3]), len(content)
    while size > 0x7F:
        head.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes([*head, size]) + content


SIZE_FIELD = 15
"""The number of the field that stores the remaining length of a file. Without it, a protobuf file cut between two fields would be valid."""


def _add_map(descriptor: Any, label: str, number: int, owner: str) -> None:
    """Add a field that maps strings to strings; protobuf represents each pair as a nested message."""
    title = "".join(word.title() for word in label.split("_")) + "Entry"
    entry = descriptor.nested_type.add(name=title)
    entry.options.map_entry = True
    for field_number, part in enumerate(("key", "value"), 1):
        entry.field.add(name=part, number=field_number, label=1, type=_KINDS["string"])
    descriptor.field.add(name=label, number=number, label=3, type=11, type_name=f"{owner}.{title}")
