"""Machines by name, and as JSON files: the speeds that predictions assume.

The figures of accelerators are the makers' peaks. Products are those of 16-bit numbers without sparsity. A link's figure is one direction.

- H100: NVIDIA H100 SXM data sheet (989 TFLOP/s, 3.35 TB/s, 80 GB, NVLink 900 GB/s both ways); DGX H100: 8 devices, 400 Gb/s each.
- A100: NVIDIA A100 80 GB SXM data sheet (312 TFLOP/s, 2,039 GB/s, NVLink 600 GB/s both ways); DGX A100: 8 devices, 200 Gb/s each.
- Ascend 910: Liao et al., "DaVinci: A Scalable Architecture for Neural Network Computing", Hot Chips 31, 2019 (256 TFLOP/s, 1.2 TB/s,
  32 GB, three HCCS links of 240 Gb/s among 4 devices, 100 Gb/s RoCE each).
"""
from __future__ import annotations

import json
import math
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from torchspore.base import json_text
from torchspore.base.text import message
from torchspore.base.trust import cache_folder
from torchspore.context.plan_request import Level, Machine

NAMED = {
    "h100": Machine(50e9, 10e-6, 989e12, 3.35e12, 80e9, levels=(Level(8, 450e9, 5e-6),)),
    "a100": Machine(25e9, 10e-6, 312e12, 2.039e12, 80e9, levels=(Level(8, 300e9, 5e-6),)),
    "ascend910": Machine(12.5e9, 10e-6, 256e12, 1.2e12, 32e9, levels=(Level(4, 90e9, 5e-6),)),
}
"""Latencies are assumptions: 5 us within a machine, 10 us between machines."""
MEASURED = "measured"
"""The name of the machine that `torchspore calibrate` measured."""


def measured_file() -> Path:
    """Return the file that `torchspore calibrate` writes."""
    return cache_folder("the measured speeds") / "machine.json"


def machine_of(name: str) -> Machine:
    """Return the machine of a name, or of a JSON file. Raises ValueError for an unknown name, a missing file or wrong members."""
    if name in NAMED:
        return NAMED[name]
    path = measured_file() if name == MEASURED else Path(name)
    if not path.is_file():
        hint = "run torchspore calibrate" if name == MEASURED else "torchspore calibrate --out FILE writes such a file"
        raise ValueError(message(f"the machine {name}", f"{', '.join((*NAMED, MEASURED))} or a JSON file", hint=hint))
    return from_json(path.read_text("utf-8"), str(path))


def to_json(machine: Machine) -> str:
    """Return the machine as JSON: speeds in bytes and operations per second, latencies in seconds."""
    return json.dumps(asdict(machine), indent=2) + "\n"


def from_json(text: str, source: str) -> Machine:
    """Return the machine that `to_json` wrote. Raises ValueError for other members, and for values that are not positive numbers."""
    members = json_text.parse(text)
    names = {field.name for field in fields(Machine)}
    if not isinstance(members, dict) or not set(members) <= names:
        raise ValueError(message(f"{source}: {text[:60]!r}", f"an object with members of {', '.join(sorted(names))}"))
    levels = members.pop("levels", [])
    if not isinstance(levels, list) or not all(isinstance(level, dict) and set(level) == _LEVEL for level in levels):
        raise ValueError(message(f"{source}: levels", f"a list of objects with {', '.join(sorted(_LEVEL))}"))
    for holder in (members, *levels):
        for name, value in holder.items():
            if not _is_valid(name, value):
                raise ValueError(message(f"{source}: {name}={value!r}", "a number above 0"))
    return Machine(**members, levels=tuple(Level(**level) for level in levels))


_LEVEL = {field.name for field in fields(Level)}


def _is_valid(name: str, value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return False
    if name == "devices":
        return isinstance(value, int) and value > 1
    return value > 0 or (name == "launch" and value == 0)
