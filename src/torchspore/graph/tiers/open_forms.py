"""Graphs of open lengths at O1 and O2: their operators as one launch of C++, compiled once for many lengths.

A graph runs as at O0 until its calls have taken as long as a compilation; with TORCHSPORE_WAIT=1 its first call compiles. The kernel
belongs to the trace of this process, so that no other process can compile it. It must give O0's numbers and be faster, for copies of the
inputs of that call, and serves lengths up to SPAN times as long and as short. For other lengths the graph runs as at O0, until it is
compiled again: Inductor chooses loops and threads for the lengths that it is shown.
"""
from __future__ import annotations

import operator
import threading
import time
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx.node import Node, map_arg

from torchspore.base import event_log
from torchspore.base.frames import user_line
from torchspore.base.garbage_collection import garbage_collection_paused
from torchspore.context import effects
from torchspore.engine import process
from torchspore.engine.execution import current_operator
from torchspore.engine.native import allocator
from torchspore.engine.torch_internals.torch_private import is_operator
from torchspore.graph import passes
from torchspore.graph.backend import eager_codegen, fusion, inductor, inference, measurement
from torchspore.graph.backend.eager_codegen import Code
from torchspore.graph.backend.variant_race import Race
from torchspore.graph.capture.dynamic_shapes import Fits, Limit
from torchspore.graph.fx import open_sizes
from torchspore.graph.fx.aliasing import is_view
from torchspore.graph.fx.modules import copy_module
from torchspore.graph.passes.clusters import Cluster, build_clusters, extract, insert_kernels
from torchspore.graph.report import outcomes, stages
from torchspore.graph.settings import Settings
from torchspore.graph.tiers import reasons_to_wait
from torchspore.graph.tiers.compiler_process import SECTION
from torchspore.translations import translatable, translate

Module = torch.fx.GraphModule
SPAN = 16
"""A form serves lengths from a 16th to 16 times of those that it was compiled for."""
MOST = 3
"""The number of compilations of one graph."""
LEAST = 4
"""Clusters of fewer operators stay operators."""
_SHORTEST = 2
"""Lengths of 0 and 1 have graphs of their own."""
PLAIN, LAUNCH = "O0", "one launch"
_CHUNK, _LEAST_CHUNK = 512, 16
"""`cpp.min_chunk_size`: a loop of fewer steps a thread runs in one thread; the steps are those of the trace's lengths."""
_PRODUCTS = ("mm", "addmm", "bmm", "baddbmm")
_LEAST_BYTES = 4
"""Products of float16 have sums of float32, which elementwise products would not have."""
_aten = torch.ops.aten
_LENGTHS = {_aten.sym_size.int, operator.add, operator.sub, operator.mul, operator.floordiv}


def is_fit(module: Module, settings: Settings) -> bool:
    """Return whether a form may be compiled: the graph only computes values, and no switch asks for the separate operators."""
    if settings.deterministic or settings.generates is False or settings.kernels is not None or settings.tuning is not None:
        return False
    if settings.lanes > 1 or settings.infer_boost or stages.now.get() is not None or current_operator.followers:
        return False
    if process.world.size > 1 or not inference.is_on_cpu(module) or not open_sizes.open_axes(module):
        return False
    return all(_only_computes(node) for node in module.graph.nodes if node.op == "call_function")


def compile(module: Module, plain: Code, settings: Settings, level: str) -> Code:
    """Return code that runs `plain`, the code of O0, or the form that was compiled for such lengths."""
    text = translate("{level}: a graph of open lengths starts as at O0; one form is compiled for many lengths, and used if it is faster")
    outcomes.level(text.format(level=level))
    waits = reasons_to_wait.waits_for_choice(settings) or reasons_to_wait.starts_at_once()
    tier = _Tier(plain, module, 0.0 if waits else reasons_to_wait.seconds_to_compile(module))
    effects.note(SECTION, tier.report)

    def run(*inputs: torch.Tensor) -> list[Any]:
        return tier.step(*inputs)

    tier.code = stages.shown(run, stages.graph_of(plain))
    return tier.code


def _only_computes(node: Node) -> bool:
    target = node.target
    if target in _LENGTHS or target is operator.getitem:
        return True
    if not is_operator(target) or target.namespace != "aten" or target._schema.is_mutable:
        return False
    return torch.Tag.nondeterministic_seeded not in target.tags


def _is_fusable(node: Node) -> bool:
    """Return whether a kernel may compute the node.

    It reads at no index: the error of a wrong index in a loop of several threads would end the process.
    """
    return node.target in _LENGTHS or fusion.is_fusable(node, True, _PRODUCTS)


def _multiply_single_rows(module: Module) -> Module:
    """Replace batched products of one row by elementwise products and sums, in place: Inductor fuses them with the softmax of attention."""
    for node in list(module.graph.nodes):
        if node.target is not _aten.bmm.default or not _is_single_row(node.args[0].meta["val"]):
            continue
        first, second = node.args
        with module.graph.inserting_before(node):
            columns = _call(module, _aten.transpose.int, second, 1, 2)
            sums = _call(module, _aten.sum.dim_IntList, _call(module, _aten.mul.Tensor, first, columns), [2])
            row = _call(module, _aten.unsqueeze.default, sums, 1)
        node.replace_all_uses_with(row)
        module.graph.erase_node(node)
    return module


def _is_single_row(value: torch.Tensor) -> bool:
    rows = value.shape[1]
    return isinstance(rows, int) and rows == 1 and value.is_floating_point() and value.element_size() >= _LEAST_BYTES


def _call(module: Module, target: Any, *arguments: Any) -> Node:
    node = module.graph.call_function(target, arguments)
    node.meta["val"] = target(*map_arg(arguments, lambda item: item.meta["val"]))
    return node


def with_kernels(module: Module, more: dict[str, Any]) -> Module | None:
    """Return the graph with each large cluster as one kernel, compiled with the settings `more` of Inductor; None if there is none."""
    module = _multiply_single_rows(module)
    replacements: list[tuple[Cluster, inductor.Kernel]] = []
    for cluster in build_clusters(module, _is_fusable, may_delay=is_view):
        work = [node for node in cluster.nodes if is_operator(node.target) and not is_view(node)]
        if len(work) < LEAST or not all(isinstance(item.meta["val"], torch.Tensor) for item in cluster.outputs):
            continue
        if not open_sizes.are_symbols_bound(cluster.inputs, cluster.nodes):
            continue
        part = extract(cluster)
        kernel = inductor.compile_single_kernel(part, more) or inductor.kernel(part, "O1", more)
        if kernel is None:
            return None
        replacements.append((cluster, kernel))
    return insert_kernels(module, replacements) if replacements else None


@dataclass
class _Form:
    """A code for some lengths."""

    fits: Fits
    code: Code


class _Report:
    """The line of `explain` about one graph; it outlives the graph."""

    def __init__(self) -> None:
        self._line = user_line() or ""
        self._texts = [translatable(
            "a graph of open lengths ran as at O0: its calls took less time than a compilation (TORCHSPORE_WAIT=1 compiles at the first "
            "call)")]
        self._is_first = True

    def __call__(self) -> str:
        return f"{self._line}: {'; '.join(map(translate, self._texts))}"

    def tell(self, text: str) -> None:
        """Report what one compilation brought."""
        self._texts = [text] if self._is_first else [*self._texts, text]
        self._is_first = False
        event_log.event("tier", self())


class _Tier:
    """One graph: the code of O0, and the forms for ranges of lengths."""

    def __init__(self, plain: Code, module: Module, seconds: float) -> None:
        """A form is compiled when calls that no form serves have taken `seconds`."""
        self.plain, self.code = plain, plain
        self.report = _Report()
        self.step: Code = self._count_down
        self._module: Module | None = module
        self._seconds = self._seconds_until_start = seconds
        self._forms: list[_Form] = []
        self._lock = threading.Lock()

    def _run(self, *inputs: torch.Tensor) -> list[Any]:
        """Run the form for these lengths; a dump reads what each operator computes."""
        if not current_operator.followers:
            for form in self._forms:
                if form.fits(inputs):
                    return form.code(*inputs)
        return self.plain(*inputs)

    def _count_down(self, *inputs: torch.Tensor) -> list[Any]:
        """Run a form, or O0's code; compile the next form once O0's code has run long enough."""
        if current_operator.followers:
            return self.plain(*inputs)
        for form in self._forms:
            if form.fits(inputs):
                return form.code(*inputs)
        if self._seconds_until_start <= 0 and self._lock.acquire(blocking=False):
            try:
                if self.step == self._count_down:
                    self._add_form(inputs)
            finally:
                self._lock.release()
            return self._run(*inputs)
        started = measurement.now()
        outs = self.plain(*inputs)
        self._seconds_until_start -= measurement.now() - started
        return outs

    def _add_form(self, inputs: tuple[torch.Tensor, ...]) -> None:
        """Compile a form for lengths near those of `inputs`; keep it if it is faster."""
        assert self._module is not None
        started = time.perf_counter()
        limits = _limits(self._module, inputs)
        try:
            with allocator.aside(), garbage_collection_paused():
                race = Race(lambda: list(inputs))
                race.enter(PLAIN, lambda: self.plain)
                changed = with_kernels(copy_module(self._module), _options(self._module, inputs))
                if changed is not None:
                    code = eager_codegen.compile(passes.with_fewest_calls(changed))
                    race.enter(LAUNCH, lambda: code)
                best = race.best()
        except measurement.Unrunnable:                  # the run that follows reports it to the program
            return
        except Exception as error:                      # the program runs as before, and this is reported
            best, changed, race = PLAIN, None, None
            event_log.event("tier", f"no form of open lengths: {type(error).__name__}: {error!s:.200}")
        self._forms.insert(0, _Form(_fits(self._module, limits), self.plain if best == PLAIN else race.codes[best]))   # type: ignore[union-attr]
        self.report.tell(_result(best, race, time.perf_counter() - started, limits))
        self._seconds_until_start = self._seconds
        if changed is None or len(self._forms) >= MOST:
            self._module, self.step = None, self._run


def _result(best: str, race: Race | None, seconds: float, limits: list[Limit]) -> str:
    if race is None or LAUNCH not in race.codes:
        return translate("a graph of open lengths stays as at O0: no other form gives its numbers here")
    before, after = race.seconds[PLAIN], race.seconds[LAUNCH]
    lengths = ", ".join(f"{least}..{most}" for _, _, least, most in limits)
    text = (
        translate("a graph of open lengths stays as at O0 for lengths {lengths}: a form that was compiled in {seconds:.1f} s is not faster "
                  "({times})")
        if best == PLAIN else
        translate("a graph of open lengths has a form for lengths {lengths}, compiled in {seconds:.1f} s: {ratio:.2f} times faster "
                  "({times})")
    )
    return text.format(lengths=lengths, seconds=seconds, ratio=before / after, times=f"{before * 1e3:.3f} -> {after * 1e3:.3f} ms")


def _values(module: Module) -> list[Any]:
    return [node.meta.get("val") for node in module.graph.nodes if node.op == "placeholder"]


def _open_axes(module: Module) -> list[tuple[int, int, Any]]:
    """Return the index of an input, an axis and its symbol, for each symbol once."""
    axes: dict[Any, tuple[int, int, Any]] = {}
    for index, value in enumerate(_values(module)):
        sizes: Any = value.shape if isinstance(value, torch.Tensor) else ()
        for axis, size in enumerate(sizes):
            if open_sizes.is_plain_symbol(size):
                axes.setdefault(size.node.expr, (index, axis, size))
    return list(axes.values())


def _limits(module: Module, inputs: tuple[torch.Tensor, ...]) -> list[Limit]:
    """Return the lengths near those of `inputs`."""
    limits: list[Limit] = []
    for index, axis, _ in _open_axes(module):
        length = inputs[index].shape[axis]
        limits.append((index, axis, max(_SHORTEST, length // SPAN), length * SPAN))
    return limits


def _options(module: Module, inputs: tuple[torch.Tensor, ...]) -> dict[str, Any]:
    """Return Inductor's settings for lengths that may be far from those of the trace."""
    factor = max((inputs[index].shape[axis] / open_sizes.hint_of(size) for index, axis, size in _open_axes(module)), default=1.0)
    return {"cpp.min_chunk_size": max(_LEAST_CHUNK, int(_CHUNK / factor))} if factor > SPAN else {}


def _fits(module: Module, limits: list[Limit]) -> Fits:
    """Return the conditions of a form: those of the trace, those that its compilation added, and the limits."""
    values = _values(module)
    indices = [index for index, value in enumerate(values) if isinstance(value, torch.Tensor) and open_sizes.is_open(value)]
    environment: Any = values[indices[0]].fake_mode.shape_env
    return Fits(environment, values, indices, limits)
