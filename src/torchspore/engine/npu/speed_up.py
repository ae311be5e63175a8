"""The switches of `parallel_speed_up_json_path`: all steer the collectives of a program that runs on several devices."""
from __future__ import annotations

from typing import Any

from torchspore.context.effects import Outcome


def file(path: str) -> Outcome:
    """The file was read; its switches are options of their own."""
    return Outcome.applied(f"switches are read from {path}, see each" if path else "no file is read")


def overlaps(wanted: Any) -> Outcome:
    """A switch that orders or fuses collectives."""
    return _alone("it orders collectives")


def cuts(wanted: Any) -> Outcome:
    """A switch that cuts a graph, so that one piece is sent while another one is computed."""
    return _alone("it cuts graphs for collectives to run beside them")


def _alone(what: str) -> Outcome:
    return Outcome.no_effect(f"{what}, and a program in one process has none")
