"""The method of a network's class that is read."""
from __future__ import annotations

from torchspore.mindspore.nn.cell import Cell


class ClassDefParser:
    """The settings of classes: a network's statements are those of its first method of a name in `entry_functions`.

    Classes of `final_networks`, and the classes that these are derived from, are not read.
    """

    entry_functions: list[str] = ["construct"]
    final_networks: list[type] = [Cell]


def entry_function(cls: type) -> str:
    """Return the name of the method to read."""
    for base in cls.__mro__:
        if base in ClassDefParser.final_networks:
            break
        for name in ClassDefParser.entry_functions:
            if name in vars(base):
                return name
    return "construct"
