"""`FlopsUtilizationCollector`: the share of the hardware's computing power that a training uses."""
from __future__ import annotations

import time

from torchspore.base.arguments import check_bool, is_int
from torchspore.base.text import message, short
from torchspore.context.store import STORE
from torchspore.engine.execution.flop_counts import Counter
from torchspore.mindspore import log
from torchspore.mindspore.train.callback._callback import Callback, RunContext


class FlopsUtilizationCollector(Callback):
    """Prints every `data_size` steps the share of `computility` (operations per second) that the model's products and convolutions use.

    The operations are counted once, while the second step runs. One process computes the whole model, so that all four figures are the
    same for any `full_flops`. `enable_ma_collector` also logs them. Raises TypeError and ValueError for invalid arguments, ValueError in
    PYNATIVE_MODE.
    """

    def __init__(self, data_size: int, computility: float = 1, full_flops: bool = True, enable_ma_collector: bool = False) -> None:
        super().__init__()
        if not is_int(data_size):
            raise TypeError(message(f"FlopsUtilizationCollector({short(data_size)})", f"an int, got {type(data_size).__name__}"))
        if data_size < 1:
            raise ValueError(message(f"FlopsUtilizationCollector({data_size})", "an int from 1 on"))
        if isinstance(computility, bool) or not isinstance(computility, (int, float)):
            call_text = f"FlopsUtilizationCollector(computility={short(computility)})"
            raise TypeError(message(call_text, f"a number, got {type(computility).__name__}"))
        if not computility > 0:
            raise ValueError(message(f"FlopsUtilizationCollector(computility={computility})", "a number above 0"))
        check_bool("FlopsUtilizationCollector", "full_flops", full_flops)
        check_bool("FlopsUtilizationCollector", "enable_ma_collector", enable_ma_collector)
        self.step_size, self.computility = data_size, computility
        self.full_flops, self.enable_ma_collector = full_flops, enable_ma_collector
        self._counter, self._flops, self._steps, self._since = Counter(), 0, 0, 0.0

    def step_begin(self, run_context: RunContext) -> None:
        """Starts counting or measuring. Raises ValueError in PYNATIVE_MODE."""
        if not STORE.graph_mode:
            raise ValueError(message("FlopsUtilizationCollector in PYNATIVE_MODE", "GRAPH_MODE"))
        if self._steps % self.step_size == 0:
            self._since = time.time()
        if self._steps == 1:
            self._counter.start()

    def step_end(self, run_context: RunContext) -> None:
        """Prints the line if it is time to."""
        self._steps += 1
        if self._steps == 2:
            self._flops = self._counter.stop()
            self._print_line_(", ".join(f"{kind} flops is {float(self._flops)}" for kind in (
                "Full model", "Full hardware", "Shard model", "Shard hardware",
            )) + ".")
        if self._steps % self.step_size == 0 and self._steps > 1:
            seconds = (time.time() - self._since) / self.step_size
            share = self._flops / max(seconds, 1e-12) / self.computility
            self._print_line_(f"Train per step time: {seconds * 1000:.3f} ms mfu:{share:.2%} hfu:{share:.2%}")

    def end(self, run_context: RunContext) -> None:
        """Ends the count of a training with only one step."""
        self._counter.stop()

    def _print_line_(self, line: str) -> None:
        print(line, flush=True)
        if self.enable_ma_collector:
            log.info(line)
