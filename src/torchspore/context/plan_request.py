"""What `torchspore plan` asks for; the first call that is split answers it instead of running."""
from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Machine:
    """The assumed speed of a device and of exchanges; said beside every prediction."""

    bandwidth: float = 50e9
    """Bytes a second that one device receives."""
    latency: float = 20e-6
    """Seconds that an exchange takes at least."""
    operations: float = 100e12
    """Multiplications and additions a second of one device."""
    memory: float = 1e12
    """Bytes a second that one device reads and writes."""

    capacity: float = 16.0 * 2**30
    """Bytes that one device can hold."""

    def sending(self, received: float, messages: int = 1) -> float:
        """Seconds for exchanges in which a device receives so many bytes."""
        return messages * self.latency + received / self.bandwidth

    def told(self) -> str:
        """For people."""
        exchanges = f"{self.bandwidth / 1e9:g} GB/s and {self.latency * 1e6:g} us an exchange"
        return f"{exchanges}, {self.operations / 1e12:g} TFLOP/s and {self.memory / 1e9:g} GB/s of memory"


@dataclass
class Request:
    """A plan that is asked for."""

    machine: Machine
    devices: int = 8
    page: str = ""
    """The file that is to hold the page; empty where none is wanted."""
    is_answered: bool = False


pending: Request | None = None
"""The plan that this process is to make; None where calls run."""
