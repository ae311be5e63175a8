"""Protobuf messages from a table of their fields, so that no generated code is needed."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_KINDS = {"float": 2, "double": 1, "int64": 3, "int32": 5, "bool": 8, "string": 9, "bytes": 12}
_OF_NUMBERS = ("float", "double", "int64", "int32", "bool")


def messages(name: str, table: Mapping[str, str], *, packed: bool = False) -> dict[str, Any]:
    """The classes of the messages in `table`: for each 'NUMBER FIELD TYPE, ...', where TYPE* may come several times, `map` is of strings.

    With `packed`, numbers that come several times are written behind each other without their field's number; both forms are read.
    """
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name=f"torchspore/{name}.proto", package=f"torchspore.{name}", syntax="proto2")
    for title, fields in table.items():
        made = file.message_type.add(name=title)
        for field in fields.split(","):
            number, label, kind = field.split()
            if kind == "map":
                _add_map(made, label, int(number), f".torchspore.{name}.{title}")
                continue
            repeated, kind = kind.endswith("*"), kind.rstrip("*")
            added = made.field.add(name=label, number=int(number), label=3 if repeated else 1, type=_KINDS.get(kind, 11))
            if kind not in _KINDS:
                added.type_name = f".torchspore.{name}.{kind}"
            elif packed and repeated and kind in _OF_NUMBERS:
                added.options.packed = True
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {title: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"torchspore.{name}.{title}")) for title in table}


def _add_map(made: Any, label: str, number: int, owner: str) -> None:
    """Adds a field that maps strings to strings: protobuf keeps it as a message of its own for each pair."""
    title = "".join(word.title() for word in label.split("_")) + "Entry"
    entry = made.nested_type.add(name=title)
    entry.options.map_entry = True
    for place, part in enumerate(("key", "value"), 1):
        entry.field.add(name=part, number=place, label=1, type=_KINDS["string"])
    made.field.add(name=label, number=number, label=3, type=11, type_name=f"{owner}.{title}")
