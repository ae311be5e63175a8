"""How a program is run."""

from __future__ import annotations

from torchspore.context.kinds import Named
from torchspore.context.option import Option
from torchspore.errors import OptionValueError

mode = Option(
    kind=Named({"GRAPH_MODE": 0, "PYNATIVE_MODE": 1}, none=OptionValueError), default=1, read_by="engine.graph.dispatch",
    example="set_context(mode=GRAPH_MODE)",
    doc="Whether a Cell runs operator by operator (PYNATIVE_MODE) or as one captured graph (GRAPH_MODE). "
        "It may change at any time; the same Cell keeps working and gives the same numbers.",
)
