"""What a profiler can be asked to look at."""
from __future__ import annotations

from enum import Enum


class ProfilerLevel(Enum):
    """How much is written down: nothing but marks, or operators too."""

    LevelNone = "LevelNone"
    Level0 = "Level0"
    Level1 = "Level1"
    Level2 = "Level2"


class ProfilerActivity(Enum):
    """Where operators are watched."""

    CPU = "CPU"
    GPU = "GPU"
    NPU = "NPU"


class AicoreMetrics(Enum):
    """What counters of Ascend's cores measure."""

    AiCoreNone = "None"
    ArithmeticUtilization = "ArithmeticUtilization"
    PipeUtilization = "PipeUtilization"
    Memory = "Memory"
    MemoryL0 = "MemoryL0"
    MemoryUB = "MemoryUB"
    ResourceConflictRatio = "ResourceConflictRatio"
    L2Cache = "L2Cache"
    MemoryAccess = "MemoryAccess"


class ExportType(Enum):
    """Forms of files."""

    Db = "db"
    Text = "text"


class HostSystem(Enum):
    """Parts of the host."""

    CPU = "cpu"
    MEM = "mem"
    DISK = "disk"
    NETWORK = "network"
    OSRT = "osrt"
