"""The one package that calls torch; loading it makes the options act that were set before."""

from __future__ import annotations

from torchspore.context import effects
from torchspore.engine.core import device, threads
from torchspore.engine.execution import pynative
from torchspore.engine.memory import malloc

device.set_default_target()
effects.expect_graph = pynative.expect_graph
pynative.await_first()
effects.engine_loaded()
threads.no_more_than_cores()
effects.note("memory", malloc.keep_freed_blocks())
