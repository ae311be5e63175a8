"""Kinds of option values: one class for each kind."""

from torchspore.context.kinds.config import Members
from torchspore.context.kinds.files import Absolute, Directory, ExistingFile, JsonFile, Path, PrintPath, SpeedUpFile
from torchspore.context.kinds.flags import GraphKernelFlags, Words
from torchspore.context.kinds.plain import INT32, UINT32, Among, Bool, Choice, Float, Int, Kind, Named, Size, Str, Wrong
from torchspore.context.kinds.structured import DatasetStrategy, DictOf, Fusion, IntList, Overlap, Profiling

__all__ = [
    "INT32", "UINT32", "Absolute", "Among", "Bool", "Choice", "DatasetStrategy", "DictOf", "Directory", "ExistingFile", "Float", "Fusion",
    "GraphKernelFlags", "Int", "IntList", "JsonFile", "Kind", "Members", "Named", "Overlap", "Path", "PrintPath", "Profiling", "Size",
    "SpeedUpFile", "Str", "Words", "Wrong",
]
