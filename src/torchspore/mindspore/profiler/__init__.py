"""`mindspore.profiler`: the operators that ran, their counts and times, the breakdown of a step's time, and memory."""
from torchspore.mindspore.profiler.arguments import _ExperimentalConfig
from torchspore.mindspore.profiler.choices import AicoreMetrics, ExportType, HostSystem, ProfilerActivity, ProfilerLevel
from torchspore.mindspore.profiler.envprofiler import EnvProfiler
from torchspore.mindspore.profiler.mstx import mstx
from torchspore.mindspore.profiler.profiler import Profiler, profile
from torchspore.mindspore.profiler.schedules import ProfilerAction, schedule, tensorboard_trace_handler


def __getattr__(name: str) -> object:
    """`DynamicProfilerMonitor` is a callback: it is loaded with the training classes on demand."""
    if name == "DynamicProfilerMonitor":
        from torchspore.mindspore.profiler.dynamic_profiler import DynamicProfilerMonitor

        return DynamicProfilerMonitor
    from torchspore.public_names import missing

    return missing(__name__)(name)


__all__ = [
    "AicoreMetrics", "DynamicProfilerMonitor", "EnvProfiler", "ExportType", "HostSystem", "Profiler", "ProfilerAction", "ProfilerActivity",
    "ProfilerLevel", "_ExperimentalConfig", "mstx", "profile", "schedule", "tensorboard_trace_handler",
]
