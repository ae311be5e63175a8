"""What a profiler sees of this process: operators under MindSpore's names, where a step's time goes, memory, floating-point operations."""
from torchspore.observe.profiling.annotations import begin_step, close_range, end_step, open_range

__all__ = ["begin_step", "close_range", "end_step", "open_range"]
