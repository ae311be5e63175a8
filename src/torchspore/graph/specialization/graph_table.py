"""The record of the calls of a Cell or function: graphs by key, and the conditions of their validity."""
from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from torchspore.context.store import STORE
from torchspore.engine.execution import precision
from torchspore.engine.tensors import change_counters
from torchspore.engine.tensors import tensor as engine
from torchspore.engine.tensors.tensor import TensorBase
from torchspore.graph.capture.dynamic_shapes import Axes
from torchspore.graph.forward_cache import Learned
from torchspore.graph.refusal import Refusal
from torchspore.graph.settings import Settings, settings_of
from torchspore.graph.specialization import open_lengths
from torchspore.graph.specialization.compiled_graph import Graph
from torchspore.graph.specialization.key import keep, signature
from torchspore.graph.specialization.number_inputs import NumberInputs

MOST_GRAPHS = 64
"""How many keys of one Cell or function are kept, least recently used first to go."""

WASTED = 8
"""After so many captures in a row that served one call each, new ones are not made: something keeps changing."""

WATCHED = 32
"""So many of the last captures are kept in mind."""

WORTH = 4
"""So many calls a capture must serve in the mean of the last ones, once there were twice `WASTED`: else it costs more than it saves."""

_NONE: frozenset[int] = frozenset()
NO_AXES: dict[int, Axes] = {}


@dataclass
class Entry:
    """The record of one key: graphs for different states of the program, and why the last capture was refused."""

    settings: Settings
    form: Any = None                       # what tells calls of this form from others, but for the values of numbers
    is_open: bool = False                  # some axes of the arguments may have any length
    lifted: frozenset[int] = _NONE         # the numbers among the arguments that are inputs of the graph
    graphs: list[Graph] = field(default_factory=list)
    refusal: Refusal | None = None
    refused_at: int = -1
    refusals: int = 0
    converts: bool = False                 # Tensors decide branches or loops, so its source is converted
    is_deep: bool = False                  # calls nest deeper than Python's own limit allows


class Table(OrderedDict[Any, Entry]):
    """The keys of one Cell or function, and the graphs that were captured last."""

    def __init__(self, is_piece: bool = False) -> None:
        super().__init__()
        self.recent: list[Graph] = []
        self.numbers = NumberInputs(tries=not is_piece)
        self.lengths = open_lengths.Lengths()
        self.refused_in: tuple[int, Any] | None = None
        """The era, and the state of the context, in which no call could be captured: they are no longer tried."""
        self._forwards: Learned | None = None
        self.transforms: dict[Any, Callable[..., Any]] = {}
        self.recalled: dict[Any, tuple[Any, Graph]] = {}
        """The graphs of the last calls, by the forms of their arguments (`recalled_calls`)."""
        self.open_axes = b""
        """The open axes of the Tensors of the last remembered call with open lengths, a byte for each (`recalled_calls`)."""
        self.is_small = False      # all graphs here have too few operators to gain anything
        self.has_warned = False

    def learned_forwards(self) -> Learned:
        """By id of a Cell that is called inside, whether its gradient is requested after the call."""
        if self._forwards is None:
            self._forwards = Learned()
        return self._forwards

    def keeps_changing(self) -> bool:
        """Return whether the last captures served one call each."""
        last = self.recent[-WASTED:]
        return len(last) == WASTED and all(graph.runs <= 1 for graph in last)

    def costs_more(self) -> bool:
        """Return whether captures cost more than the graphs save: a capture takes as long as many calls by PyNative."""
        return len(self.recent) >= 2 * WASTED and sum(graph.runs for graph in self.recent) < WORTH * len(self.recent)


def table_of(owner: Any) -> Table:
    """Return the table that a Cell or function stores."""
    entries = owner.__dict__.get("_graphs_")
    if entries is None:
        entries = owner.__dict__.setdefault("_graphs_", Table(bool(getattr(owner, "is_piece", False))))
    return entries


def facts_of(owner: Any, function: Any) -> tuple[list[int], int]:
    """Return how often each graph of a function ran, and how many kinds of calls could not be one graph."""
    entries = [entry for entry in owner.__dict__.get("_graphs_", {}).values() if entry.form is not None and entry.form[0] is function]
    return [graph.runs for entry in entries for graph in entry.graphs], sum(1 for entry in entries if entry.refusal is not None)


def open_axes(owner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[int, Axes]:
    """Return by id of the Tensor the axes of any length: `set_inputs` declares them, or many lengths were seen."""
    if engine.frame() is not None:
        return NO_AXES
    if "_open_inputs_" in owner.__dict__:
        return open_lengths.declared(owner, args)
    lengths = table_of(owner).lengths
    return lengths.axes(args, kwargs) if lengths.open else NO_AXES


def look_up(
    owner: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], flat: list[TensorBase],
) -> Entry | Refusal:
    """The entry for a call, made if it is new; a Refusal where the arguments have no key. Appends their Tensors to `flat`."""
    numbers: list[Any] = []
    settings = settings_of(owner, function)
    try:
        axes = NO_AXES if settings.is_split else open_axes(owner, args, kwargs)      # parts must come out even: a graph for each length
        signatures = (signature(args, flat, numbers, axes), signature(kwargs, flat, numbers, axes) if kwargs else None)
    except Refusal as refusal:
        return refusal
    ran, is_recorded = getattr(function, "__func__", function), engine.frame() is not None and (True, precision.dtype_around())
    form: Any = (ran, signatures, STORE.snapshot(), settings, change_counters.generation, is_recorded)
    table, lifted, key = table_of(owner), _NONE, form
    if numbers:
        lifted = _NONE if settings.is_split else table.numbers.lifted(form, tuple(numbers))     # layouts of primitives need plain numbers
        key = (form, lifted, *[value for index, value in enumerate(numbers) if index not in lifted])
    entry = table.get(key)
    if entry is None and table and engine.frame() is None and not settings.is_split and "_open_inputs_" not in owner.__dict__:
        table.lengths.see(args, kwargs)
        if table.lengths.axes(args, kwargs) != axes:
            flat.clear()
            return look_up(owner, function, args, kwargs, flat)
    if entry is None:
        try:
            keep(signatures)
        except Refusal as refusal:
            return refusal
        entry = table[key] = Entry(settings, form=form, lifted=lifted, is_open=bool(axes))
        while len(table) > MOST_GRAPHS:
            table.popitem(last=False)
            table.recalled.clear()
    elif len(table) > 1:
        table.move_to_end(key)
    return entry
