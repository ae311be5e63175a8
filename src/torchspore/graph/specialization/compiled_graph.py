"""A captured graph that can be run again: inputs gathered, code called, result put together, state checked."""
from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.engine.execution import pynative
from torchspore.engine.native import operators
from torchspore.engine.split_layouts.sharded_value import ShardedValue, local_part
from torchspore.engine.tensors import change_counters, tree
from torchspore.engine.tensors import tensor as engine
from torchspore.engine.tensors.number import Number
from torchspore.engine.tensors.tensor import Composite, TensorBase, wrap
from torchspore.graph import compile_cache, passes, pipeline
from torchspore.graph.backend.eager_codegen import Code
from torchspore.graph.capture.capture import Captured, In, Out
from torchspore.graph.capture.identity import Identities, form_of
from torchspore.graph.capture.state import MISSING, Read, current, hold
from torchspore.graph.fx.aliasing import inputs_written
from torchspore.graph.fx.exchanges import has_exchanges
from torchspore.graph.fx.failing_operators import devices_of_random_operators
from torchspore.graph.fx.modules import nested_nodes
from torchspore.graph.refusal import Refusal
from torchspore.graph.report import stages
from torchspore.graph.settings import Settings
from torchspore.graph.specialization.random_streams import with_own_streams
from torchspore.graph.specialization.rollback import Rollback, undo_for
from torchspore.graph.splitter import SplitGraph, splitter

_graph_inputs, _graph_result = operators.short_path("graph_inputs"), operators.short_path("graph_result")
REFUSALS = (IndexError, RuntimeError, ValueError, TypeError, ZeroDivisionError)
"""Errors that kernels raise for their inputs: PyNative runs the call again and reports them better."""


class Graph:
    """One captured call: `matches` says whether the state that it read is still the same, `run` runs it."""

    def __init__(self, captured: Captured, flat: list[TensorBase], seconds: float, settings: Settings) -> None:
        started = time.perf_counter()
        self.module = passes.run(passes.CLEAN, captured.module, keep=stages.keep_pass)
        stages.keep("optimize", self.module)
        stages.keep("validate", self.module)
        _check_generators(self.module)
        self._result, self._write_backs = captured.result, captured.write_backs
        self._streams = captured.streams                 # a primitive that the call creates has no other owner
        self.split: SplitGraph | None = None
        """The graph of N devices; None if the graph is not split."""
        if captured.sharded_capture is not None:
            self.split = splitter().split(self.module, captured.sharded_capture, captured.lifted)
            self.module = self.split.module
        self._has_parts = self.split is not None or any(isinstance(getattr(item, "_t", None), ShardedValue) for item in captured.lifted)
        self._is_simple = isinstance(captured.result, Out) and not captured.result.is_number
        self._positions_of_result = None if captured.write_backs or self.split is not None else _positions_in(captured.result)
        reads = list(captured.watch.reads.values())
        # A change of what an attribute names is counted (`version`); a change inside a list, a dict or an object is not.
        self._attributes = [read for read in reads if read.is_attribute]
        # A Tensor given to an attribute is counted too, and so is another torch tensor in a Tensor (`change_counters.rebinds`).
        self._variables = [
            read for read in reads
            if not read.is_attribute or id(read.holder) in captured.watch.uncounted
            or not (read.is_constant or read.name in ("_cells", "_params") or isinstance(read.value, TensorBase))
        ]
        # Most only need a look whether they are the same object; the others compare what is in it.
        self._names = [(read.holder.get, read.name, read.value, read) for read in self._variables if read.is_constant]
        self._contents = [read for read in self._variables if not read.is_constant]
        self._identities = Identities(captured.watch, flat, captured.lifted)
        self._twice, self._containers = self._identities.in_attributes, self._identities.in_containers
        self._argument_positions = frozenset(index for index, _ in (*self._twice, *self._containers))
        self._rereads = any(isinstance(read.value, TensorBase) for read in self._variables)
        self._sources = [self._source(item, flat, captured.watch.homes) for item in captured.lifted]
        self.inputs: list[Any] = captured.lifted
        self._seen: tuple[int, int] | None = None
        self._inputs: list[Any] = []
        self._state_ids: frozenset[int] = frozenset()
        """The ids of the Tensors of the program's state, as they are now."""
        self.settings = settings if captured.fits is None else dataclasses.replace(settings, level="O0")
        self._open_level = "O0" if captured.fits is None else settings.level
        self._fits = _all_hold(captured.assumptions) if captured.assumptions else None
        self._lengths = None if captured.assumptions else captured.fits
        self._open_arguments = () if self._lengths is None else self._positions(self._lengths.indices)
        self.has_open_lengths = captured.fits is not None
        """True if it serves several lengths of an axis."""
        with compile_cache.open(self.module, captured.watch.codes, settings, self._labels()) as self.module:
            # Before a pass lets weights be written early: what it computes again has not failed the first time.
            self._writes, self._exchanges = inputs_written(self.module), has_exchanges(self.module)
            nodes, nested = list(self.module.graph.nodes), nested_nodes(self.module)
            self._undo = undo_for(nodes, nested, self.settings, self._writes)
            random_devices = devices_of_random_operators(nodes, nested)
            self.code = with_own_streams(self._compiled(flat), random_devices)
        if captured.fits is not None:
            captured.fits.renew()
        # The arguments of this call are the program's own, who may want to be rid of them.
        self.inputs = [None if isinstance(source, int) else item for source, item in zip(self._sources, self.inputs)]
        self.operators = sum(node.op == "call_function" for node in self.module.graph.nodes)
        self.seconds = seconds + time.perf_counter() - started
        self.runs = 0

    def _labels(self) -> list[str]:
        """Return a label for each input, to distinguish inputs of one shape: an argument's position, a Parameter's or attribute's name."""
        return [
            str(source) if isinstance(source, int) else str(getattr(item, "name", "") or getattr(source, "name", ""))
            for source, item in zip(self._sources, self.inputs)
        ]

    def _compiled(self, flat: list[TensorBase]) -> Code:
        if self.split is not None and self.split.code is not None:
            code: Code = self.split.code
            return code
        persistent = frozenset(p for p, s in enumerate(self._sources) if isinstance(s, (Read, TensorBase)))
        examples = functools.partial(self._examples, flat)
        return pipeline.compile(self.module, examples, self.settings, self._exchanges, persistent, self._open_level)

    def values_read(self, flat: list[TensorBase]) -> list[Any]:
        """Return what the graph reads of the program's state as it is now: Tensors, and functions that give torch tensors."""
        return [flat[s] if isinstance(s, int) else s for s in current(self._sources)]

    def _examples(self, flat: list[TensorBase]) -> list[torch.Tensor]:
        """The real tensors of the inputs as they are now."""
        values = self.values_read(flat)
        tensors = [item._t if isinstance(item, TensorBase) else item() for item in values]
        return [local_part(t) for t in tensors] if self._has_parts else tensors

    @staticmethod
    def _source(item: Any, flat: list[TensorBase], homes: dict[int, Read]) -> Any:
        """Return the source of an input: the position of an argument, a read, the Tensor itself, or a function."""
        for index, argument in enumerate(flat):
            if argument is item:
                return index
        return homes.get(id(item), item) if isinstance(item, TensorBase) else item

    def matches(self, version: int, flat: list[TensorBase]) -> bool:
        """Return whether all that the trace read is as it was; `version` counts changes of Cells, `flat` are the Tensors of the call."""
        for get, name, value, read in self._names:
            if get(name, MISSING) is not value and not read.holds():
                return False
        if self._contents and not hold(self._contents):
            return False
        for index, read in self._twice:
            if read.now() is not flat[index]:
                return False
        for index, item in self._containers:
            if item is not flat[index]:
                return False
        now = (version, change_counters.rebinds)
        if now == self._seen and not self._rereads:
            state_ids = self._state_ids
            for item in flat:
                if id(item) in state_ids and self._meets(flat):
                    return False
            return self._fits_arguments(flat)
        if now != self._seen and not hold(self._attributes):
            return False
        inputs, identities = current(self._sources), self._identities
        if not identities.are_held() or not identities.fit(inputs):
            return False
        self._inputs, self._seen = inputs, now
        met = (*inputs, *current(identities.tensors))
        self._state_ids = identities.ids_in_containers.union([id(item) for item in met if isinstance(item, TensorBase)])
        return not self._meets(flat) and self._fits_arguments(flat)

    def _fits_arguments(self, flat: list[TensorBase]) -> bool:
        """Return whether the lengths, and the values that the trace read, are such as the trace allowed for."""
        if self._open_arguments:
            return self._lengths.are_met(*[flat[position]._t for position in self._open_arguments])  # type: ignore[union-attr]
        if self._lengths is not None:
            return self._lengths(self._examples(flat))
        return self._fits is None or self._fits(self._examples(flat))

    def _positions(self, indices: Sequence[int]) -> tuple[int, ...]:
        """Return the positions of these inputs among the arguments; nothing if some are not plain arguments."""
        positions = tuple(source for index in indices if isinstance(source := self._sources[index], int))
        return positions if len(positions) == len(indices) and not self._has_parts else ()

    def _meets(self, flat: list[TensorBase]) -> bool:
        """Return whether an argument is a Tensor that the trace read elsewhere and that was a different argument then."""
        return any(id(item) in self._state_ids and index not in self._argument_positions for index, item in enumerate(flat))

    def changed(self) -> list[Read]:
        """Return the reads of the trace whose value has changed since."""
        return [read for read in self._attributes if not read.holds()]

    def reads(self) -> list[Read]:
        """The attributes and variables that must be as the trace read them."""
        return [*self._attributes, *(read for read in self._variables if not read.is_attribute)]

    def changed_inputs(self) -> list[tuple[str, tuple[Any, ...], tuple[Any, ...]]]:
        """(Name, (shape, dtype) in the trace, (shape, dtype) now) of each Tensor of the program's state that has become another one."""
        sources, labels = current(self._sources), self._labels()
        return [
            (label, (before[0], before[2]), (item._t.shape, item._t.dtype))
            for label, item, before in zip(labels, sources, self._identities.forms)
            if isinstance(item, TensorBase) and before is not None and form_of(item) != before
        ]

    def rebound(self) -> list[Read]:
        """The names that must name the very Tensor that the trace met, and name another one."""
        return [read for read in self._identities.pinned if read.now() is not read.value]

    def run(self, flat: list[TensorBase]) -> Any:
        """Runs the graph for these arguments."""
        self.runs += 1
        tensors = None if _graph_inputs is None else _graph_inputs(self._inputs, flat)
        if tensors is None:
            tensors = [item._t if isinstance(item, TensorBase) else item() for item in self._items_of(flat)]
        if self._has_parts:
            tensors = [local_part(t) for t in tensors]
        outs = self.code(*tensors) if self._undo is None else self._undoing(self._undo, tensors)
        if engine.observers:
            pynative.after(outs)
        return self._result_of(outs, flat)

    def _items_of(self, flat: list[TensorBase]) -> list[Any]:
        """Return the Tensors of the inputs, and functions that return torch tensors."""
        return [flat[item] if item.__class__ is int else item for item in self._inputs]

    def can_rerun(self, error: BaseException) -> bool:
        """Return whether a run that ended with `error` changed nothing, here or elsewhere. A lack of memory may end it anywhere."""
        if self._exchanges:          # the other ranks do not run again
            return False
        lacks_memory = isinstance(error, MemoryError) or "alloc" in str(error) or "out of memory" in str(error)
        return not self._writes or not lacks_memory

    def _undoing(self, undo: Rollback, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        """Run the code; undo its effects if it fails."""
        aside = undo.begin(tensors)
        try:
            outs = self.code(*tensors)
        except BaseException as error:
            undo.back(aside, isinstance(error, REFUSALS) and self.can_rerun(error))
            raise
        undo.end()
        return outs

    def _result_of(self, outs: list[torch.Tensor], flat: list[TensorBase]) -> Any:
        """Build the result and write the attributes that the trace wrote."""
        if self._is_simple and not self._write_backs and self.split is None:
            return wrap(outs[self._result.index])
        if self._positions_of_result is not None and _graph_result is not None:
            result = _graph_result(self._positions_of_result, outs)
            if result is not None:
                return result
        inputs = self._items_of(flat)
        results: dict[int, Any] = {} if self.split is None else self.split.wrapped(outs)
        for owner, name, value in self._write_backs:
            owner.__dict__[name] = _filled(value, outs, inputs, results)
            change_counters.rebinds += 1
        return _filled(self._result, outs, inputs, results)

    def nodes(self) -> list[Node]:
        """The nodes of the graph and of its branches and loops."""
        return list(nested_nodes(self.module))

    @property
    def unsplit_module(self) -> torch.fx.GraphModule:
        """The graph of one device."""
        return self.module if self.split is None else self.split.unsplit

    def __str__(self) -> str:
        from torchspore.graph.fx.text import text

        return text(self.module)


def _all_hold(assumptions: Sequence[Any]) -> Callable[[Sequence[torch.Tensor]], bool]:
    """Return the check whether constants, whose values the trace read, still have the same values."""
    return lambda inputs: all(assumption.holds(inputs) for assumption in assumptions)


def _filled(value: Any, outs: list[torch.Tensor], inputs: list[Any], results: dict[int, Any]) -> Any:
    """Return the nested result with Tensors in the positions of outputs and inputs."""
    def fill_leaf(leaf: Any) -> Any:
        if isinstance(leaf, Out):
            if leaf.is_number:
                return outs[leaf.index].item()
            if leaf.index not in results:
                results[leaf.index] = wrap(outs[leaf.index])
            return results[leaf.index]
        if isinstance(leaf, In):
            value = inputs[leaf.index]
            return value._t.item() if isinstance(value, Number) else value
        return leaf.rebuilt(tuple(map(fill_leaf, leaf.parts()))) if isinstance(leaf, Composite) else leaf

    return tree.mapped(value, fill_leaf)


def _positions_in(result: Any) -> Any:
    """Return a result of tuples and lists with the position of an output for each Tensor.

    None if it has other values, or a Tensor twice.
    """
    positions: list[int] = []

    def of(value: Any) -> Any:
        if type(value) in (tuple, list):
            return type(value)(map(of, value))
        if not isinstance(value, Out) or value.is_number or value.index in positions:
            raise ValueError
        positions.append(value.index)
        return value.index

    try:
        return of(result) if type(result) in (tuple, list) else None
    except ValueError:
        return None


def _check_generators(module: torch.fx.GraphModule) -> None:
    for node in module.graph.nodes:
        if any(isinstance(value, torch.Generator) for value in (*node.args, *node.kwargs.values())):
            raise Refusal("draws random numbers with a separate seed")
