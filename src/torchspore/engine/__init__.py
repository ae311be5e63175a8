"""The one package that calls torch; loading it makes the options act that were set before."""

from __future__ import annotations

import os

from torchspore.context import effects
from torchspore.engine import device, eager, threads
from torchspore.engine.memory import freed

device.tell_default()
effects.expect_graph = eager.expect_graph
eager.await_first()
effects.engine_loaded()
threads.no_more_than_cores()
effects.note("memory", freed.keep_freed_blocks())
if effects.is_explaining():
    from torchspore.engine.memory import peak

    peak.watch()
if os.environ.get("MINDSPORE_DUMP_CONFIG") or os.environ.get("MINDSPORE_CONFIG_PATH"):
    from torchspore.engine.debug import dump

    dump.from_environment()
