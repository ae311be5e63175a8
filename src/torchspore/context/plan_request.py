"""The request of `torchspore plan`; the first call that is split answers it instead of running."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from torchspore.translations import translate


@dataclass(frozen=True)
class Level:
    """Devices with consecutive numbers that a faster connection joins: those of one machine, or of one rack."""

    devices: int
    bandwidth: float
    """Bytes per second that one device receives from devices of the same level."""
    latency: float
    """Minimum duration of an exchange, in seconds."""


@dataclass(frozen=True)
class Machine:
    """The assumed speed of a device and of exchanges; it is printed with every prediction."""

    bandwidth: float = 50e9
    """Bytes per second that one device receives."""
    latency: float = 20e-6
    """Minimum duration of an exchange, in seconds."""
    operations: float = 100e12
    """Multiplications and additions per second on one device."""
    memory: float = 1e12
    """Bytes per second that one device reads and writes."""

    capacity: float = 16.0 * 2**30
    """Bytes of memory on one device."""

    launch: float = 0.0
    """Minimum duration of an operator, in seconds."""

    levels: tuple[Level, ...] = ()
    """Faster connections among fewer devices, the smallest group first; `bandwidth` and `latency` join all devices."""

    def level(self, extent: int) -> Level:
        """Return the connection of a group that an aligned block of `extent` consecutive devices contains; 0 for all devices."""
        for level in self.levels:
            if extent and level.devices % extent == 0:
                return level
        return Level(0, self.bandwidth, self.latency)

    def transfer_seconds(self, received: float, messages: int = 1, extent: int = 0) -> float:
        """Return the seconds for exchanges in which a device receives `received` bytes in `messages` messages.

        A block of `extent` consecutive devices contains each group; 0 stands for all devices.
        """
        level = self.level(extent)
        return messages * level.latency + received / level.bandwidth

    def describe_exchanges(self) -> str:
        """Format the speeds of exchanges for users, the slowest connection first."""
        text = translate("{bandwidth:.4g} GB/s and {latency:.3g} us an exchange").format(
            bandwidth=self.bandwidth / 1e9, latency=self.latency * 1e6)
        among = translate("{bandwidth:.4g} GB/s and {latency:.3g} us among {count} devices")
        inner = [
            among.format(bandwidth=level.bandwidth / 1e9, latency=level.latency * 1e6, count=level.devices)
            for level in reversed(self.levels)
        ]
        return translate(", ").join((text, *inner))

    def describe(self) -> str:
        """Format the assumptions for users."""
        text = translate("{exchanges}, {operations:.4g} TFLOP/s and {memory:.4g} GB/s of memory")
        return text.format(exchanges=self.describe_exchanges(), operations=self.operations / 1e12, memory=self.memory / 1e9)


@dataclass
class Request:
    """A requested plan."""

    machine: Machine
    devices: int = 8
    page: str = ""
    """The file for the page, or "" for no page."""
    strategies: str = ""
    """The strategy file to write, or ""."""
    is_json: bool = False
    """True if the last line is the plan as one JSON object."""
    stages: int = 0
    """The number of pipeline stages to plan with; 0 for that of the program."""
    before_capture: list[Callable[[], None]] = field(default_factory=list)
    """Functions that read or change the program's Cells before the call to plan is captured; each runs once."""
    micro_batches: int = 1
    """The number of parts of the batch that the program's Cells compute one after the other."""
    expects_parts: bool = False
    """True if the plan put the network of a step into a Cell that splits the batch: the graph must have its parts."""
    is_answered: bool = False
    compiled: Any = None
    """The last split graph that the program compiled (`net.compile(...)`); the end of the program answers with it if no call is split."""

    def prepare(self) -> None:
        """Run the functions of `before_capture` that have not run."""
        while self.before_capture:
            self.before_capture.pop(0)()


pending: Request | None = None
"""The plan that this process has to make; None if calls run normally."""
