"""A profiler's view of this process: operators under MindSpore's names, the parts of a step's time, memory, floating-point operations."""
from torchspore.observe.profiling.annotations import begin_step, close_range, end_step, open_range

__all__ = ["begin_step", "close_range", "end_step", "open_range"]
