"""`mindspore.profiler`: which operators ran, how often and how long."""
from torchspore.mindspore.profiler.choices import AicoreMetrics, ExportType, HostSystem, ProfilerActivity, ProfilerLevel
from torchspore.mindspore.profiler.mstx import mstx
from torchspore.mindspore.profiler.profiler import Profiler, profile, schedule, tensorboard_trace_handler

__all__ = [
    "AicoreMetrics", "ExportType", "HostSystem", "Profiler", "ProfilerActivity", "ProfilerLevel", "mstx", "profile", "schedule",
    "tensorboard_trace_handler",
]
