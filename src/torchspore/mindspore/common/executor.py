"""Interfaces of MindSpore's executors: wait for the device, query gradients, compile a Cell."""
from __future__ import annotations

import contextlib
import gc
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from torchspore.base.lazy_modules import import_lazily
from torchspore.base.text import message, short, with_type
from torchspore.context import effects
from torchspore.engine.autograd.gradient_frame import GradFrame
from torchspore.engine.execution import pynative, thread_state
from torchspore.engine.tensors import tensor as engine
from torchspore.engine.tensors.tensor import TensorBase, is_recording
from torchspore.graph import gradient_recording

if TYPE_CHECKING:
    from torchspore.distributed.shard import graph_info, split_records
    from torchspore.graph import dispatch
else:
    import_lazily(
        globals(), "torchspore.distributed.shard.graph_info", "torchspore.distributed.shard.split_records", "torchspore.graph.dispatch",
    )


class _PyNativeExecutor:
    """The interface of MindSpore's PyNative executor; there is one instance, `_pynative_executor`.

    Operators between `new_graph` and `end_graph` are recorded, and `grad` returns their gradients.
    """

    def __init__(self) -> None:
        self._flag = False

    def new_graph(self, obj: Any, *args: Any, **kwargs: Any) -> None:
        """Start a record of the call `obj(*args, **kwargs)`, which the caller makes next."""
        gradient_recording.begin(obj, args, kwargs)

    def end_graph(self, obj: Any, output: Any, *args: Any, **kwargs: Any) -> None:
        """End the record of `obj`, whose call returned `output`. Raises RuntimeError if none was started."""
        del obj, args, kwargs               # `new_graph` has recorded them
        gradient_recording.end(output)

    def grad(self, obj: Any, grad: Any, weights: Any, grad_position: Any, *args: Any) -> Any:
        """Gradients of the last record, or of a new call `obj(*args)`, grouped as the GradOperation `grad` requires.

        `grad_position` (an int or a tuple) names the arguments, unless `grad` requests all; since 2.6 a bool precedes `args`:
        whether only the first output is differentiated.
        """
        has_aux = bool(args) and isinstance(args[0], bool)
        aux, args = (args[0], args[1:]) if has_aux else (False, args)
        by_list, every = getattr(grad, "get_by_list", bool(weights)), getattr(grad, "get_all", False)
        listed = () if not by_list else (weights,) if isinstance(weights, TensorBase) else tuple(weights)
        sens, args = (args[-1], args[:-1]) if getattr(grad, "sens_param", False) else (None, args)
        at = (grad_position,) if isinstance(grad_position, int) else tuple(grad_position or ())
        positions = tuple(range(len(args))) if every else at or (() if by_list else (0,))
        _, by_position, by_weight = gradient_recording.gradients(obj, args, positions, listed, sens, aux)
        by_position = [g for g in by_position if g is not None]
        inputs = tuple(by_position) if every or isinstance(grad_position, tuple) else by_position[0] if by_position else ()
        if not by_list:
            return inputs
        return (inputs, tuple(by_weight)) if positions else tuple(by_weight)

    def sync(self) -> None:
        """Wait until the device has finished all computations."""
        pynative.wait()

    def clear_res(self) -> None:
        """Free unused memory, and reset `set_grad_flag`."""
        self._flag = False
        gc.collect()

    def set_async_for_graph(self, flag: bool) -> None:
        """Accept MindSpore's switch for operators between graphs; here Python never waits for them, whatever `flag` is."""
        _check_flag("set_async_for_graph", flag)

    def enable_grad(self) -> bool:
        """Return whether gradients may be taken: False within `_no_grad`."""
        return pynative.takes_gradients()

    def set_enable_grad(self, flag: bool) -> None:
        """Set whether gradients flow through later computations in this thread."""
        _check_flag("set_enable_grad", flag)
        pynative.take_gradients(flag)

    def grad_flag(self) -> bool:
        """Return whether a gradient is being taken, or `set_grad_flag` announced one."""
        return self._flag or is_recording()

    def set_grad_flag(self, flag: bool) -> None:
        """Announce that gradients will be taken; here records start only with `new_graph`."""
        _check_flag("set_grad_flag", flag)
        self._flag = flag

    def requires_grad(self) -> bool:
        """Return whether a gradient is being taken, and is allowed."""
        return self.enable_grad() and self.grad_flag()

    def high_order(self) -> bool:
        """Return whether a gradient of a gradient is being taken."""
        around = engine.frame()
        count = 0
        while around is not None:
            count += isinstance(around, GradFrame)
            around = around.outer
        return count > 1


class _GraphQueries:
    """The answers of MindSpore's compiled executor about a graph, by the phase that `_cell_graph_executor.compile` returned."""

    def __init__(self) -> None:
        self._compiled: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()

    def note(self, phase: str, owner: Any) -> None:
        """Remember the Cell or function that was compiled under this name."""
        self._compiled[phase] = owner

    def get_strategy(self, phase: str) -> dict[str, list[list[int]]]:
        """Return the strategies of operators in split graphs by the operators' names; empty for an unknown phase."""
        return split_records.strategies(dispatch.graphs(self._compiled.get(phase)))

    def get_parallel_graph_info(self, phase: str) -> dict[str, dict[str, dict[str, Any]]]:
        """Return the operators of split graphs, as `graph_info.operators_by_graph` describes them; empty for an unknown phase."""
        return graph_info.operators_by_graph(dispatch.graphs(self._compiled.get(phase)))

    def get_num_parallel_ops(self, phase: str) -> int:
        """Return the number of operators that have a strategy; 0 for an unknown phase."""
        return len(self.get_strategy(phase))


class _CellGraphExecutor:
    """The interface of MindSpore's graph executor; there is one instance, `_cell_graph_executor`."""

    def __init__(self) -> None:
        self._graph_executor = _GraphQueries()

    def compile(
        self, obj: Any, *args: Any, phase: str = "predict", do_convert: bool = True, jit_config_dict: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> tuple[str, bool]:
        """Capture the graph of a Cell (or function) for these arguments without running it. Return (name of the compilation, True).

        `phase` affects only the name, because graphs here have other keys. Options in
        `jit_config_dict` belong to the Cell, as for `set_jit_config`.
        """
        if not callable(obj):
            raise TypeError(message(f"compile({short(obj)})", f"a Cell or a function, got {type(obj).__name__}"))
        if not do_convert or jit_config_dict:
            raise ValueError(message("compile(do_convert=..., jit_config_dict=...)", "the defaults", hint="write net.set_jit_config(...)"))
        if hasattr(obj, "construct"):
            obj.compile(*args, **kwargs)
        else:
            dispatch.compile(obj, obj, args, kwargs)
        name = f"{phase}.{type(obj).__name__}.{id(obj)}"
        self._graph_executor.note(name, obj)
        return name, True

    def _get_shard_strategy(self, obj: Any) -> dict[str, list[list[int]]]:
        """Return the strategies of operators in graphs of `obj` that were split over devices."""
        return split_records.strategies(dispatch.graphs(obj))

    def _get_allreduce_fusion(self, obj: Any) -> dict[str, int]:
        """Return the numbers of the message groups of summed gradients in the split graphs of `obj`, by the Parameters' names."""
        return split_records.fusion_numbers(dispatch.graphs(obj))

    def _get_num_parallel_ops(self, obj: Any) -> int:
        """Return the number of operators in graphs of `obj` that have a strategy."""
        return len(self._get_shard_strategy(obj))

    def __call__(self, obj: Any, *args: Any, phase: str = "predict") -> Any:
        """Run a Cell as a captured graph, whatever the mode."""
        if not isinstance(phase, str):
            raise TypeError(message(f"phase={short(phase)}", f"a str, got {type(phase).__name__}"))
        return obj.compile_and_run(*args)

    run = __call__


class _no_grad(contextlib.ContextDecorator):
    """A context manager (`with _no_grad():`) or decorator that stops gradients through the computations inside."""

    def __enter__(self) -> None:
        self._before = pynative.takes_gradients(), thread_state.local.refuses_gradients
        pynative.take_gradients(False)
        thread_state.local.refuses_gradients = True

    def __exit__(self, *error: Any) -> None:
        takes_gradients, thread_state.local.refuses_gradients = self._before
        pynative.take_gradients(takes_gradients)


def _check_flag(name: str, flag: Any) -> None:
    if not isinstance(flag, bool):
        raise TypeError(message(f"{name}({short(flag)})", f"a bool, got {type(flag).__name__}"))


_pynative_executor = _PyNativeExecutor()
_cell_graph_executor = _CellGraphExecutor()
def flops_collection(phase: str = "train") -> tuple[float, float, float, float, bool]:
    """Count the operations of the last graph of the Cell with this `current_phase`: products, convolutions and attention.

    Returns four numbers, of the model and of the hardware, total and of this process, and whether lengths are open. A graph that is split
    among devices has fewer operations on each of them. Raises TypeError for a value that is not a str, RuntimeError if no Cell has such a
    phase.
    """
    if not isinstance(phase, str):
        raise TypeError(message(f"flops_collection({short(phase)})", f"a str, got {type(phase).__name__}"))
    from torchspore.engine.execution import flop_counts
    from torchspore.mindspore.common.cell_phases import PHASES

    graphs = dispatch.graphs(PHASES.get(phase))
    if not graphs:
        raise RuntimeError(message(f"flops_collection({short(phase)})", "the current_phase of a Cell that ran as a graph",
                                   hint="write flops_collection(net.current_phase) after a call of net in GRAPH_MODE"))
    ran = graphs[-1]
    full = float(flop_counts.of_graph(ran.unsplit_module))
    own_share = full if ran.split is None else float(flop_counts.of_graph(ran.split.local.module))
    return full, full, own_share, own_share, ran.has_open_lengths


cells_compile_cache: dict[int, set[Any]] = {}
"""Copies of `Cell.compile_cache` by id, which programs enter. Nothing reads it, because graphs belong to their Cell here."""


def init_exec_dataset(
    queue_name: str, size: int, batch_size: int, types: Any, shapes: Any, input_indexs: Any, phase: str = "dataset", need_run: bool = True,
) -> bool:
    """Make a device read the rows of a data set from a queue. It has no effect, because each step gets its batch. Returns True."""
    if not isinstance(queue_name, str):
        raise TypeError(message(f"init_exec_dataset({short(queue_name)}, ...)", f"a str, got {type(queue_name).__name__}"))
    arguments = (size, batch_size, len(types), len(shapes), input_indexs, phase, need_run)
    effects.note("data", f"init_exec_dataset({queue_name!r}, {', '.join(map(short, arguments))}): rows come from the data set's iterator")
    return True


def _function_forbid_reuse(func: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function whose graph is never shared between calls; here each call site is captured separately anyway."""
    if not callable(func):
        raise TypeError(message(f"_function_forbid_reuse({func!r:.40})", with_type("a function", func)))
    func.__dict__["__function_forbid_reuse__"] = True
    return func
