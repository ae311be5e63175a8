"""The one package that calls torch; loading it makes the options act that were set before."""

from __future__ import annotations

import os

from torchspore.context import effects
from torchspore.engine.core import device, threads
from torchspore.engine.eager import pynative
from torchspore.engine.memory import malloc

device.tell_default()
effects.expect_graph = pynative.expect_graph
pynative.await_first()
effects.engine_loaded()
threads.no_more_than_cores()
effects.note("memory", malloc.keep_freed_blocks())
if effects.is_explaining():
    from torchspore.graph.report import peak_memory

    peak_memory.watch()
if os.environ.get("MINDSPORE_DUMP_CONFIG") or os.environ.get("MINDSPORE_CONFIG_PATH"):
    from torchspore.observe.debug import dump

    dump.from_environment()
