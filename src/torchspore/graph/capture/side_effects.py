"""Actions that end a trace, because a graph would do them once or never: reading clocks, looking at files, communication."""
from __future__ import annotations

import _locale
import builtins
import datetime
import gc
import io
import os
import sys
import threading
import time
import warnings
from types import CodeType
from typing import Any

from torchspore.graph.refusal import Kind
from torchspore.translations import translatable

CLOCKS: dict[Any, str] = {
    **dict.fromkeys((
        time.time, time.time_ns, time.perf_counter, time.perf_counter_ns, time.monotonic, time.monotonic_ns, time.process_time,
        time.process_time_ns, time.thread_time, time.thread_time_ns, time.localtime, time.gmtime, time.ctime, time.strftime, time.sleep,
        *([time.clock_gettime] if hasattr(time, "clock_gettime") else ()),              # Windows lacks it
        os.urandom, datetime.datetime.now, datetime.datetime.utcnow, datetime.datetime.today, datetime.date.today,
    ), translatable("reads the clock")),
    **dict.fromkeys((os.stat, os.lstat, os.listdir, os.scandir, os.getcwd, os.access), translatable("looks at files")),
    **dict.fromkeys(
        (sys.getrecursionlimit, sys.getswitchinterval, sys.gettrace, sys.getprofile, sys.getrefcount, gc.isenabled, gc.get_count,
         gc.get_threshold, gc.get_objects, os.getpid, os.getppid, _locale.localeconv, _locale.setlocale),
        translatable("asks the interpreter how it is set"),
    ),
    **dict.fromkeys(
        (os.remove, os.unlink, os.mkdir, os.rmdir, os.rename, os.replace, os.chdir, os.putenv, os.unsetenv),
        translatable("changes files or the process"),
    ),
}
ASKS: dict[CodeType, str] = dict.fromkeys(
    (function.__code__ for function in (threading.current_thread, threading.active_count, threading.enumerate)),
    translatable("asks which threads run"),
)
"""The same of functions that are written in Python."""
WARNS = (warnings.warn, warnings.warn_explicit)
TALK = {
    builtins.print: (translatable("calls print"), Kind.PRINTS), builtins.input: (translatable("calls input"), Kind.OTHER),
    builtins.open: (translatable("opens a file"), Kind.OTHER),
}


def is_stream(argument: Any) -> bool:
    """Return whether a function that Python is about to call reads or writes a file."""
    return isinstance(getattr(argument, "__self__", None), io.IOBase) and getattr(argument, "__name__", "") in (
        "write", "writelines", "flush", "read", "read1", "readline", "readlines", "readinto", "seek", "tell", "truncate",
    )
