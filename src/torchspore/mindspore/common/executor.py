"""What programs call on MindSpore's executors: to wait for the device, to ask whether gradients are taken, to compile a Cell."""
from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable
from typing import Any

from torchspore.base.text import message, short
from torchspore.context import effects
from torchspore.distributed.shard import split_records
from torchspore.engine.autograd import grad as grad_module
from torchspore.engine.core import tensor as engine
from torchspore.engine.core.tensor import TensorBase, is_recording
from torchspore.engine.eager import pynative
from torchspore.graph import dispatch, gradient_recording


class _PyNativeExecutor:
    """Answers for PyNative mode as MindSpore's executor of that name; there is one, `_pynative_executor`.

    What runs between `new_graph` and `end_graph` is recorded, and `grad` gives its gradients.
    """

    def __init__(self) -> None:
        self._flag = False

    def new_graph(self, obj: Any, *args: Any, **kwargs: Any) -> None:
        """Begins a record of the call `obj(*args, **kwargs)`, which the caller makes next."""
        gradient_recording.begin(obj, args, kwargs)

    def end_graph(self, obj: Any, output: Any, *args: Any, **kwargs: Any) -> None:
        """Ends the record of `obj`, whose call gave `output`. Raises RuntimeError where none was begun."""
        del obj, args, kwargs               # the record has them from `new_graph`
        gradient_recording.end(output)

    def grad(self, obj: Any, grad: Any, weights: Any, grad_position: Any, *args: Any) -> Any:
        """Gradients of the record that ended last, or of a fresh call `obj(*args)`, grouped as the GradOperation `grad` says.

        `grad_position` (an int or a tuple) names the arguments, where `grad` does not ask for all; since 2.6 a bool stands before `args`:
        whether the first output alone is differentiated.
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
        """Waits until the device has computed all that was asked of it."""
        pynative.wait()

    def clear_res(self) -> None:
        """Frees what nobody holds any more, and forgets what `set_grad_flag` said."""
        self._flag = False
        gc.collect()

    def enable_grad(self) -> bool:
        """Whether gradients may be taken: not within `_no_grad`."""
        return pynative.takes_gradients()

    def set_enable_grad(self, flag: bool) -> None:
        """Says whether gradients flow through what is computed from now on in this thread."""
        _check_flag("set_enable_grad", flag)
        pynative.take_gradients(flag)

    def grad_flag(self) -> bool:
        """Whether a gradient is being taken of what runs now, or `set_grad_flag` said that one will be."""
        return self._flag or is_recording()

    def set_grad_flag(self, flag: bool) -> None:
        """Says that gradients will be wanted; records begin with `new_graph` alone, here."""
        _check_flag("set_grad_flag", flag)
        self._flag = flag

    def requires_grad(self) -> bool:
        """Whether a gradient is being taken, and may be."""
        return self.enable_grad() and self.grad_flag()

    def high_order(self) -> bool:
        """Whether a gradient of a gradient is being taken."""
        around = engine.frame()
        count = 0
        while around is not None:
            count += isinstance(around, grad_module.GradFrame)
            around = around.outer
        return count > 1


class _CellGraphExecutor:
    """Compiles and runs Cells as graphs, as MindSpore's executor of that name; there is one, `_cell_graph_executor`."""

    def compile(
        self, obj: Any, *args: Any, phase: str = "predict", do_convert: bool = True, jit_config_dict: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> tuple[str, bool]:
        """Captures the graph of a Cell (or function) for these arguments without running it: (name of the compilation, True).

        `phase` is part of the name and of nothing else, for graphs here are found by what they were captured for. Options in
        `jit_config_dict` belong to the Cell: `set_jit_config` takes them.
        """
        if not callable(obj):
            raise TypeError(message(f"compile({short(obj)})", f"a Cell or a function, got {type(obj).__name__}"))
        if not do_convert or jit_config_dict:
            raise ValueError(message("compile(do_convert=..., jit_config_dict=...)", "the defaults", hint="write net.set_jit_config(...)"))
        if hasattr(obj, "construct"):
            obj.compile(*args, **kwargs)
        else:
            dispatch.compile(obj, obj, args, kwargs)
        return f"{phase}.{type(obj).__name__}.{id(obj)}", True

    def _get_shard_strategy(self, obj: Any) -> dict[str, list[list[int]]]:
        """The strategies of the operators that have one, in graphs of `obj` that were split over devices."""
        return split_records.strategies(dispatch.graphs(obj))

    def __call__(self, obj: Any, *args: Any, phase: str = "predict") -> Any:
        """Runs a Cell as a captured graph, whatever the mode."""
        if not isinstance(phase, str):
            raise TypeError(message(f"phase={short(phase)}", f"a str, got {type(phase).__name__}"))
        return obj.compile_and_run(*args)

    run = __call__


class _no_grad(contextlib.ContextDecorator):
    """Around statements (`with _no_grad():`) or a function: no gradient flows through what they compute."""

    def __enter__(self) -> None:
        self._before = pynative.takes_gradients()
        pynative.take_gradients(False)

    def __exit__(self, *error: Any) -> None:
        pynative.take_gradients(self._before)


def _check_flag(name: str, flag: Any) -> None:
    if not isinstance(flag, bool):
        raise TypeError(message(f"{name}({short(flag)})", f"a bool, got {type(flag).__name__}"))


_pynative_executor = _PyNativeExecutor()
_cell_graph_executor = _CellGraphExecutor()
def flops_collection(phase: str = "train") -> tuple[float, float, float, float, bool]:
    """The operations of the graph that the Cell of this `current_phase` ran last: products, convolutions and attention.

    Four numbers, of the model and of the hardware, whole and of this process, and whether lengths are open. Raises TypeError for what is
    no str, RuntimeError where no Cell has such a phase or its graph is split among devices.
    """
    if not isinstance(phase, str):
        raise TypeError(message(f"flops_collection({short(phase)})", f"a str, got {type(phase).__name__}"))
    from torchspore.engine.eager import flops
    from torchspore.mindspore.nn.cell_facts import PHASES

    graphs = dispatch.graphs(PHASES.get(phase))
    if not graphs:
        raise RuntimeError(message(f"flops_collection({short(phase)})", "the current_phase of a Cell that ran as a graph",
                                   hint="write flops_collection(net.current_phase) after a call of net in GRAPH_MODE"))
    ran = graphs[-1]
    if ran.split is not None:
        raise RuntimeError(message(f"flops_collection({short(phase)}) of a graph that is split among devices", "a graph of one device",
                                   hint="torchspore plan tells what each device computes"))
    counted = float(flops.of_graph(ran.module))
    return counted, counted, counted, counted, ran.has_open_lengths


cells_compile_cache: dict[int, set[Any]] = {}
"""What programs enter for copies of Cells: `Cell.compile_cache` by id. Nobody reads it: graphs belong to their Cell here."""


def init_exec_dataset(
    queue_name: str, size: int, batch_size: int, types: Any, shapes: Any, input_indexs: Any, phase: str = "dataset", need_run: bool = True,
) -> bool:
    """Makes a device read the rows of a data set out of a queue: there are none here, each step is given its batch. True, as if it did."""
    if not isinstance(queue_name, str):
        raise TypeError(message(f"init_exec_dataset({short(queue_name)}, ...)", f"a str, got {type(queue_name).__name__}"))
    given = (size, batch_size, len(types), len(shapes), input_indexs, phase, need_run)
    effects.note("data", f"init_exec_dataset({queue_name!r}, {', '.join(map(short, given))}): rows come from the data set's iterator")
    return True


def _function_forbid_reuse(func: Callable[..., Any]) -> Callable[..., Any]:
    """Marks a function whose graph is never shared between calls; here each call site is captured by itself anyway."""
    if not callable(func):
        raise TypeError(f"_function_forbid_reuse({func!r:.40}): expected a function, got {type(func).__name__}.")
    func.__dict__["__function_forbid_reuse__"] = True
    return func
