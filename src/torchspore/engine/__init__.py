"""Tensors, devices, random numbers, memory, gradients: what every mode needs from torch.

Importing this package applies the options that the program set before it.
"""

from __future__ import annotations

from torchspore.context import effects
from torchspore.engine.devices import threads
from torchspore.engine.execution import device_selection, pynative
from torchspore.engine.memory import malloc

device_selection.set_default_target()
effects.expect_graph = pynative.expect_graph
pynative.await_first()
effects.engine_loaded()
threads.no_more_than_cores()
effects.note("memory", malloc.keep_freed_blocks())
