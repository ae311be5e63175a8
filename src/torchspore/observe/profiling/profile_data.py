"""The contents of a profile as plain data: operators, steps, memory. Times are nanoseconds of the machine's clock."""
from __future__ import annotations

from dataclasses import dataclass, field

DATA, FORWARD, BACKWARD, SYNC, UPDATE, OTHER = PHASES = ("data", "forward", "backward", "sync", "update", "other")
"""Other is the making of graphs."""


@dataclass
class Operator:
    """One run of an operator."""

    name: str
    """`Default/fc-Dense/MatMul-op0`, `Gradients/Default/fc-Dense/Grad_MatMul/MatMul-op0` for what belongs to its gradient."""
    kind: str
    phase: str
    start: int
    span: int
    thread: int
    inputs: list[list[int]] = field(default_factory=list)
    dtypes: list[str] = field(default_factory=list)
    flops: int = 0
    read: int = 0
    """Bytes of its inputs, where their shapes are known."""
    stack: list[str] = field(default_factory=list)
    """The user's lines that led there, where the profile was to keep them."""
    device_span: int = 0
    """Nanoseconds that its kernels took on an accelerator, and where they lay there."""
    device_start: int = 0
    device_end: int = 0

    @property
    def cost(self) -> int:
        """Nanoseconds on the device that computed."""
        return self.device_span or self.span


@dataclass
class Stretch:
    """A named range of the program: a wait for data, a Cell, a range that the program opened."""

    name: str
    kind: str
    start: int
    span: int
    thread: int
    depth: int = 0


@dataclass
class Kernel:
    """One piece of work of an accelerator."""

    name: str
    start: int
    span: int
    device: int
    stream: int
    operator: str = ""


@dataclass
class Step:
    """One step: from the end of the one before to its own end, and how much of it each phase takes. They fill it without a gap."""

    number: int
    start: int
    end: int
    phases: dict[str, int]
    forward_start: int
    """The first forward operator, or what `fp_point` names."""
    backward_end: int
    """The end of the last operator of the gradient, or of what `bp_point` names; 0 where no gradient was taken."""
    reductions: list[tuple[str, int, int]] = field(default_factory=list)

    @property
    def total(self) -> int:
        """The total."""
        return self.end - self.start


@dataclass
class Allocation:
    """Memory that was taken or given back: bytes, below 0 where they were given back, and those held after it on that device."""

    at: int
    bytes: int
    bytes_in_use: int
    device: str
    operator: str = ""


@dataclass
class ProfileData:
    """All that one profile holds."""

    operators: list[Operator] = field(default_factory=list)
    stretches: list[Stretch] = field(default_factory=list)
    kernels: list[Kernel] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    allocations: list[Allocation] = field(default_factory=list)
    start: int = 0
    end: int = 0
    device: str = "CPU"
    forward_point: str = ""
    backward_point: str = ""
    notes: list[str] = field(default_factory=list)
    unknown_points: dict[str, str] = field(default_factory=dict)
    """For `fp_point` and `bp_point`, the reason why the point does not count: no operator of that name ran."""
