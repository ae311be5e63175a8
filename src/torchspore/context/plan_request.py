"""The request of `torchspore plan`; the first call that is split answers it instead of running."""
from __future__ import annotations

from dataclasses import dataclass


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

    def transfer_seconds(self, received: float, messages: int = 1) -> float:
        """Return the seconds for exchanges in which a device receives `received` bytes in `messages` messages."""
        return messages * self.latency + received / self.bandwidth

    def describe(self) -> str:
        """Format the assumptions for people."""
        exchanges = f"{self.bandwidth / 1e9:g} GB/s and {self.latency * 1e6:g} us an exchange"
        return f"{exchanges}, {self.operations / 1e12:g} TFLOP/s and {self.memory / 1e9:g} GB/s of memory"


@dataclass
class Request:
    """A requested plan."""

    machine: Machine
    devices: int = 8
    page: str = ""
    """The file for the page, or "" for no page."""
    is_answered: bool = False


pending: Request | None = None
"""The plan that this process has to make; None if calls run normally."""
