"""The interface through which Graph mode splits a graph over devices.

`distributed.graph_splitter` implements it, and the front end registers that module. Graph mode imports nothing of `distributed`.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from torchspore.context.store import STORE

if TYPE_CHECKING:
    import torch

    from torchspore.engine.tensors.tensor import TensorBase

SPLIT_MODES = ("semi_auto_parallel", "auto_parallel")
"""The values of `parallel_mode` under which graphs are split."""
Trace = TypeVar("Trace")


class SplitGraph(Protocol):
    """A graph of N devices, for processes, for ranks that are simulated in this process, or for a plan."""

    code: Callable[..., list[Any]] | None
    """Runs the graph; None if Graph mode compiles `module`."""
    module: torch.fx.GraphModule

    @property
    def unsplit(self) -> torch.fx.GraphModule:
        """The graph of one device."""

    def wrapped(self, outs: Sequence[Any]) -> dict[int, Any]:
        """Return the results by number of which this process holds a part."""


class Splitter(Protocol):
    """Splits captured graphs over devices."""

    def device_count(self) -> int:
        """Return the number of devices that the context, the processes or a simulation name."""

    def begin_capture(self, tensors: list[TensorBase], stages: int | None) -> Any:
        """Return the record of one capture: full shapes and layouts of the inputs. `stages` is the number of pipeline stages."""

    def chooses_stage_count(self) -> bool:
        """Return whether `auto_pipeline` chooses the number of pipeline stages."""

    def cheapest_capture(self, trace: Callable[[int], Trace], parts: Callable[[Trace], tuple[Any, Any, list[Any]]]) -> Trace:
        """Capture a call for each number of pipeline stages and return the capture that costs the least."""

    def split(self, module: torch.fx.GraphModule, capture: Any, inputs: Sequence[Any]) -> SplitGraph:
        """Split a captured graph. `capture` is the result of `begin_capture`. Raises StrategyRefused for strategies that do not fit."""

    def refusal_error(self, line: str, reason: str) -> Exception:
        """Return the error for a call that no single graph can hold, and that therefore cannot be split."""

    def broadcast_parameters(self, parameters: Iterable[Any]) -> None:
        """Give new Parameters the values of process 0 if `parameter_broadcast` is set."""


@dataclass
class Registry:
    """Holds the splitter of this process; None until the front end registers it."""

    splitter: Splitter | None = None


REGISTRY = Registry()


def splitter() -> Splitter:
    """Return the registered splitter. Raise RuntimeError if there is none."""
    if REGISTRY.splitter is None:
        raise RuntimeError("torchspore: no splitter is registered; `import mindspore` registers torchspore.distributed.graph_splitter.")
    return REGISTRY.splitter


def is_needed() -> bool:
    """Return whether the context asks for graphs that are split over several devices."""
    return STORE.get("auto_parallel.parallel_mode") in SPLIT_MODES and splitter().device_count() > 1
