"""What `import mindspore` makes true of the process besides its own modules, as real MindSpore 2.10 does."""
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from support.processes import Run

PROGRAM = """import importlib.metadata, importlib.util, os
spec = importlib.util.find_spec("mindspore")
print(spec.name, os.path.basename(spec.origin), os.path.isdir(spec.submodule_search_locations[0]), importlib.metadata.version("MindSpore"))
import sys, mindspore
print("PIL.Image" in sys.modules)
import PIL
print(int(PIL.Image.BILINEAR), PIL.Image.new("L", (2, 3)).size)
from google.protobuf.internal import api_implementation
print(api_implementation.Type(), os.environ["PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION"])
from mindspore import nn
mindspore.save_checkpoint(nn.Dense(2, 3), "net.ckpt")
print(sorted(mindspore.load_checkpoint("net.ckpt")))
print(sorted(importlib.metadata.packages_distributions()["mindspore"]))
try:
    importlib.metadata.version("mindspore_nowhere")
except importlib.metadata.PackageNotFoundError as error:
    print(error)
"""

OLD_PB2 = '''from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from google.protobuf import reflection as _reflection
DESCRIPTOR = _descriptor.FileDescriptor(
    name="old.proto", package="old", syntax="proto2",
    serialized_pb=b'\\n\\told.proto\\x12\\x03old"\\x15\\n\\x04Item\\x12\\r\\n\\x05value\\x18\\x01 \\x01(\\x05')
_ITEM = _descriptor.Descriptor(
    name="Item", full_name="old.Item", filename=None, file=DESCRIPTOR, containing_type=None,
    fields=[_descriptor.FieldDescriptor(
        name="value", full_name="old.Item.value", index=0, number=1, type=5, cpp_type=1, label=1, has_default_value=False, default_value=0,
        message_type=None, enum_type=None, containing_type=None, is_extension=False, extension_scope=None, serialized_options=None,
        file=DESCRIPTOR)],
    extensions=[], nested_types=[], enum_types=[], serialized_options=None, is_extendable=False, syntax="proto2", extension_ranges=[],
    oneofs=[], serialized_start=18, serialized_end=39)
'''


def test_what_an_import_changes(run: Callable[..., Run], tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    ended = run("run", "program.py")
    assert ended.out.splitlines() == [
        "mindspore __init__.py True 2.10.0", "True", "2 (2, 3)", "python python", "['bias', 'weight']", "['mindspore']",
        "No package metadata was found for mindspore_nowhere",
    ], ended.err


def test_modules_generated_by_an_old_protobuf_compiler_load(run: Callable[..., Run], tmp_path: Path) -> None:
    (tmp_path / "old_pb2.py").write_text(OLD_PB2)
    (tmp_path / "program.py").write_text("import mindspore\nimport old_pb2\nprint(old_pb2._ITEM.fields[0].name)\n")
    ended = run("run", "program.py")
    assert ended.out == "value\n", ended.err
