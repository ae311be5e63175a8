"""torch's private modules and functions: this file and `torch_process_groups`, `static_trace` and `static_symbols` alone use them, so that
a new torch is checked here first."""
from __future__ import annotations

import functools
import importlib
import logging
import os
import shlex
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeGuard

import torch
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.autograd import forward_ad
from torch.fx._lazy_graph_module import _LazyGraphModule as graph_module
from torch.fx._lazy_graph_module import _use_lazy_graph_module as lazy_graphs
from torch.fx.experimental import proxy_tensor as _proxy_tensor
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._python_dispatch import _disable_current_modes as without_modes
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack as modes_of_now
from torch.utils._python_dispatch import _pop_mode as pop_mode
from torch.utils._python_dispatch import _push_mode as push_mode
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map

from torchspore.base.garbage_collection import import_without_collections
from torchspore.engine.native import cpp_compiler
from torchspore.engine.torch_internals import static_trace
from torchspore.engine.torch_internals.interpreter import Interpreter

fused_sgd, fused_adam, fused_adamw = torch._fused_sgd_, torch._fused_adam_, torch._fused_adamw_
add_all, multiply_all, zero_all = torch._foreach_add, torch._foreach_mul, torch._foreach_zero_
onednn_linear = torch.ops.mkldnn._linear_pointwise.default._op
set_grad_enabled, _autograd_grad = torch._C._set_grad_enabled, torch.autograd.grad
increment = torch._C._increment_version
"""Counts a write into each of these tensors, which torch's fused optimizers and batch norm leave uncounted."""
softmax, log_softmax, gelu = torch._softmax, torch._log_softmax, torch._C._nn.gelu


def gradients_of_number(number: torch.Tensor, leaves: Sequence[torch.Tensor]) -> tuple[torch.Tensor | None, ...] | None:
    """Return what `torch.autograd.grad` returns for a real number, in less time; None for arguments that other code may intercept."""
    if number.__class__ is not torch.Tensor or torch.autograd.grad is not _autograd_grad or torch._C._is_torch_function_mode_enabled():
        return None
    seed, run = torch.ones_like(number), torch.autograd.graph._engine_run_backward
    return run((number,), (seed,), False, False, tuple(leaves), allow_unreachable=True, accumulate_grad=False)


def has_products_of(dtype: torch.dtype) -> bool:
    """Return whether oneDNN has instructions of this CPU for float16 or bfloat16."""
    name = "_is_mkldnn_fp16_supported" if dtype is torch.float16 else "_is_mkldnn_bf16_supported"
    try:
        return bool(getattr(torch.ops.mkldnn, name)())
    except (AttributeError, RuntimeError):
        return False


_UPDATES = [f"_fused_{rule}_{form}" for rule in ("sgd", "adam", "adamw", "adagrad") for form in ("", ".tensor_lr")]
_META = torch.library.Library("aten", "IMPL", "Meta")
for _name in _UPDATES:
    if not torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{_name}", "Meta"):
        _META.impl(_name, lambda *_, **__: None)
"""Updates without results. torch does not treat them specially, and would run them while a graph is captured, on zeros in place of their
operands."""


@contextmanager
def around_operators(run: Callable[..., Any]) -> Iterator[None]:
    """Let `run(operator, *arguments)` run the Python code for each operator in a trace."""
    kinds: list[Any] = [_proxy_tensor.ProxyTorchDispatchMode, static_trace.Recorder]
    before = [kind.__torch_dispatch__ for kind in kinds]
    for kind, dispatch in zip(kinds, before):
        kind.__torch_dispatch__ = _around(run, dispatch)
    try:
        yield
    finally:
        for kind, dispatch in zip(kinds, before):
            kind.__torch_dispatch__ = dispatch


def _around(run: Callable[..., Any], dispatch: Any) -> Any:
    def ask(self: Any, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return run(dispatch, self, function, types, args, kwargs)

    return ask


class _Quiet(logging.Filter):
    """Drops torch's log messages about an operator that a trace of this thread refuses: the error is raised and reported there."""

    def __init__(self) -> None:
        super().__init__()
        self.local = threading.local()

    def filter(self, record: logging.LogRecord) -> bool:
        return not getattr(self.local, "depth", 0)


_quiet = _Quiet()


@contextmanager
def without_log_of_refusals() -> Iterator[None]:
    """Keep torch from printing the tracebacks of its shape kernels while this thread traces; the errors are raised too."""
    logger = logging.getLogger("torch._subclasses.fake_tensor")
    if _quiet not in logger.filters:
        logger.addFilter(_quiet)
    _quiet.local.depth = getattr(_quiet.local, "depth", 0) + 1
    try:
        yield
    finally:
        _quiet.local.depth -= 1


class _Traces(threading.local):
    """The innermost trace of `static_trace` that runs in this thread; None inside of torch's `make_fx`."""

    running: static_trace.Trace | None = None
    is_open = False
    """True while torch's `make_fx` runs, in which sizes may be symbols."""


_traces = _Traces()


def graph_of(function: Callable[..., list[torch.Tensor]], inputs: Sequence[torch.Tensor] = (), has_open_sizes: bool = False) -> Any:
    """Return the graph of the operators that `function` runs with fake tensors for `inputs`; its result is a list of tensors.

    Sizes are numbers, unless `has_open_sizes`, or the trace around this one has symbols.
    """
    around, was_open = _traces.running, _traces.is_open
    modes: list[Any] = [t.fake_mode for t in inputs if isinstance(t, FakeTensor)]
    has_symbols = any(mode.shape_env is not None or not isinstance(mode, static_trace.StaticFakeMode) for mode in modes)
    _traces.is_open = has_open_sizes or was_open or has_symbols or (around is not None and around.mode.shape_env is not None)
    try:
        if not _traces.is_open:
            _traces.running = static_trace.Trace(modes[0] if modes else None)
            return _traces.running.run(function, inputs)
        _traces.running = None
        static_trace.LIBRARIES.finish()

        @functools.wraps(function)
        def traced(*tensors: torch.Tensor) -> list[torch.Tensor]:
            with static_trace.tracing_in_this_thread(), static_trace.RefuseRealOperands():
                return function(*tensors)

        return make_fx(
            traced, tracing_mode="symbolic" if has_open_sizes else "fake", _allow_non_fake_inputs=False,
            _disable_torch_fn_metadata_mode=not has_open_sizes and around is None,    # a fifth of the time; open lengths need it
        )(*inputs)
    finally:
        _traces.running, _traces.is_open = around, was_open


def current_trace() -> tuple[Any, Any]:
    """Return the tracer of the innermost `graph_of` that runs in this thread, and its fake mode."""
    if _traces.running is not None:
        return _traces.running.tracer, _traces.running.mode
    tracing: Any = _proxy_tensor._CURRENT_MAKE_FX_TRACER
    return tracing.fx_tracer, tracing.fake_tensor_mode


def track(value: Any, proxy: Any, tracer: Any) -> None:
    """Record that `proxy` represents the fake tensors in `value` in the trace of a tracer."""
    if _traces.running is not None and _traces.running.mode.shape_env is None:
        static_trace.track(value, proxy, tracer)
    else:
        _proxy_tensor.track_tensor_tree(value, proxy, constant=None, tracer=tracer)


def load_for_symbols() -> None:
    """Import the modules that `make_fx` and symbolic shapes import at their first use. Some read and set environment variables."""
    static_trace.LIBRARIES.finish()
    for name in ("torch._inductor.config", "torch.export._trace"):
        importlib.import_module(name)


def storage_users(storage: torch.UntypedStorage) -> int:
    """Return how many tensors share this memory, without Python's `storage` objects."""
    return torch._C._storage_Use_Count(storage._cdata) - 1


def weak_storage(storage: torch.UntypedStorage) -> int:
    """A number that finds the memory again as long as a tensor shows it; it is given back once, to `forget_storage`."""
    number: Any = storage._weak_ref()
    return int(number)


def storage_of(number: int) -> torch.UntypedStorage | None:
    """Return the memory of a number from `weak_storage`; None if it was freed."""
    storage: Any = torch.UntypedStorage._new_with_weak_ptr(number)
    return storage


def forget_storage(number: int) -> None:
    """Release the number."""
    torch.UntypedStorage._free_weak_ref(number)


def is_wrapped(t: torch.Tensor) -> bool:
    """Return whether one of `torch.func`'s transforms has put the tensor into another."""
    return bool(torch._C._functorch.is_functorch_wrapped_tensor(t))


current_transform: Callable[[], Any] = torch._C._functorch.peek_interpreter_stack
"""Returns the innermost transform of `torch.func` that runs in this thread, or None."""


def has_forward_gradients() -> bool:
    """Return whether the process computes gradients in forward mode now."""
    return forward_ad._current_level >= 0


has_global_module_hooks: Callable[[], bool] = torch.nn.modules.module._has_any_global_hook
"""Returns whether hooks for all torch Modules are registered."""


def is_transforming() -> bool:
    """Return whether one of `torch.func`'s transforms runs in this thread."""
    return current_transform() is not None


@contextmanager
def without_saved_hooks() -> Iterator[None]:
    """A block without hooks on saved tensors, which some of `torch.func`'s transforms refuse."""
    popped = []
    while (top := torch._C._autograd._top_saved_tensors_default_hooks(True)) is not None:
        popped.append(top)
        torch._C._autograd._pop_saved_tensors_default_hooks()
    try:
        yield
    finally:
        for pack, unpack in reversed(popped):
            torch._C._autograd._push_saved_tensors_default_hooks(pack, unpack)


backward_node: Callable[[], Any] = torch._C._current_autograd_node
"""Return the node of the backward pass that runs now in this thread, or None."""


def at_end_of_backward(act: Callable[[], None]) -> None:
    """Call `act` at the end of the running backward pass, before its gradients are returned."""
    torch.autograd.Variable._execution_engine.queue_callback(act)


def next_sequence_number() -> int:
    """The number that the next node of the backward pass will have."""
    return torch.autograd._get_sequence_nr()  # type: ignore[attr-defined]


def make_fx(function: Callable[..., Any], decomposition_table: Any = None, **options: Any) -> Callable[..., torch.fx.GraphModule]:
    """torch's `make_fx` with graphs that keep each `detach`: without a table torch 2.15 writes `alias`, through which a gradient would
    flow."""
    return _proxy_tensor.make_fx(function, decomposition_table={} if decomposition_table is None else decomposition_table, **options)


def proxy_of(t: torch.Tensor, tracer: Any) -> torch.fx.Proxy:
    """Return the proxy for `t` in the trace of a tracer."""
    return _proxy_tensor.get_proxy_slot(t, tracer).proxy


def is_operator(target: Any) -> TypeGuard[OpOverload]:
    """Return whether the target of a graph's node is an ATen operator (not `getitem`, say)."""
    return isinstance(target, OpOverload)


def has_operator(namespace: str, name: str, overload: str) -> bool:
    """Return whether torch's dispatcher knows this operator; the overload that torch shows as `default` is the empty text."""
    try:
        torch._C._get_schema(f"{namespace}::{name}", overload)
    except (RuntimeError, TypeError):
        return False
    return True


def kernel_of(target: Any) -> Callable[..., Any]:
    """Return the function that the operator object itself calls."""
    return target._op if isinstance(target, OpOverload) else target


class NoCompiler(RuntimeError):
    """No C++ compiler was found."""


def is_of_compiler(error: BaseException) -> bool:
    """Return whether an error of `inductor` comes from the C++ compiler, or the disk, and not from what Inductor makes of one graph."""
    from torch._inductor.exc import CppCompileError

    inner = getattr(error, "inner_exception", error)
    return isinstance(inner, (CppCompileError, OSError))


def inductor(
    module: torch.fx.GraphModule, inputs: list[Any], options: dict[str, Any], is_single_kernel: bool = False,
) -> Any:
    """Return the graph, which writes into none of its inputs, as one function compiled by Inductor; `inputs` are fake tensors.

    Lengths may be symbols of the inputs' fake mode; the compilation then adds its conditions on them to the mode's ShapeEnv. The function
    has the Python text that Inductor wrote as `source`, and the paths of its shared libraries as `libraries`. With `is_single_kernel` the
    calls of other kernels are C++ too, so that the entire graph is one launch. Raises NoCompiler without a compiler, and any error of
    Inductor or the compiler.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")           # torch warns about its modules when it loads and runs these
        return _inductor(module, inputs, options, is_single_kernel)


def _inductor(module: torch.fx.GraphModule, inputs: list[Any], options: dict[str, Any], is_single_kernel: bool) -> Any:
    from torch._guards import TracingContext, tracing
    with import_without_collections():
        from torch._inductor import compile_fx, config, cpp_builder, exc
        from torch._inductor.decomposition import select_decomp_table
        from torch._inductor.virtualized import V

    open_inputs = [t for t in inputs if isinstance(t, FakeTensor) and not all(isinstance(size, int) for size in t.shape)]
    mode = open_inputs[0].fake_mode if open_inputs else FakeTensorMode()
    if open_inputs:                                   # torch 2.15 reads open lengths from the inputs only if it checks their sizes
        options = {**options, "size_asserts": True}
    tensors = [t for t in inputs if isinstance(t, torch.Tensor)]
    numbers = {t.device.index or 0: t.device.type for t in tensors if t.device.type not in ("cpu", "meta")}
    # Without devices, fork_rng initializes all accelerators of the machine, and warns. torch before 2.13 needs a type in any case.
    fork = torch.random.fork_rng(list(numbers), device_type=next(iter(numbers.values()), "cuda"))
    with without_modes(), torch.no_grad(), fork, config.patch(options), _interruptible_compiler(cpp_builder):
        with mode:
            fakes = [
                torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=t.device) if isinstance(t, torch.Tensor) else t
                for t in inputs
            ]
            plain = make_fx(Interpreter(module).run, decomposition_table=select_decomp_table())(*fakes)
        try:
            with V.set_fake_mode(mode), tracing(TracingContext(mode)):
                code: Any = compile_fx.compile_fx_inner(plain, fakes, is_inference=True, cpp_wrapper=is_single_kernel)
        except exc.InductorError as error:
            if isinstance(error.inner_exception, exc.InvalidCxxCompiler):
                raise NoCompiler("g++ or what CXX names") from None
            raise
        except exc.InvalidCxxCompiler:
            raise NoCompiler("g++ or what CXX names") from None

    def run(*tensors: torch.Tensor) -> list[Any]:
        return code(list(tensors))

    run.source, run.libraries = getattr(code, "source_code", ""), _libraries(code)  # type: ignore[attr-defined]
    return run


KERNEL_CALLS: dict[str, Any] = {
    "assert_size_stride": torch._C._dynamo.guards.assert_size_stride,
    "empty_strided_cpu": torch._C._dynamo.guards._empty_strided_cpu,  # type: ignore[attr-defined]
    "reinterpret_tensor": torch._C._dynamo.guards._reinterpret_tensor,  # type: ignore[attr-defined]
}
"""The functions that Inductor's generated Python calls, by the names that it uses."""


def _libraries(code: Any) -> dict[str, str]:
    """The shared libraries of the C++ kernels that compiled code calls, by the names that it has for them."""
    names = getattr(getattr(code, "current_callable", None), "__globals__", {})
    return {name: value.__self__.__file__ for name, value in names.items() if name.startswith("cpp_fused") and hasattr(value, "__self__")}


def kernel_folder() -> str:
    """Return the directory in which Inductor stores kernels; it exists."""
    from torch._inductor.runtime.cache_dir_utils import cache_dir

    return cache_dir()


def prepare_kernels() -> None:
    """Provide what libraries of C++ kernels request when they are loaded: the function that finds a tensor's memory."""
    address = torch._C._dynamo.guards._torchinductor_pyobject_tensor_data_ptr  # type: ignore[attr-defined]
    os.environ["_TORCHINDUCTOR_PYOBJECT_TENSOR_DATA_PTR"] = str(address)


@contextmanager
def _interruptible_compiler(cpp_builder: Any) -> Iterator[None]:
    """Let Inductor run the C++ compiler by `cpp_compiler.run`, which an interrupt ends with all of the compiler's processes."""
    before = cpp_builder.run_compile_cmd
    cpp_builder.run_compile_cmd = _run_compiler
    try:
        yield
    finally:
        cpp_builder.run_compile_cmd = before


def _run_compiler(command: str, cwd: str) -> None:
    from torch._inductor.exc import CppCompileError

    words = shlex.split(command)
    try:
        cpp_compiler.run(words, cwd)
    except cpp_compiler.CompilerFailed as error:
        raise CppCompileError(words, error.output) from None


def outside_of_transforms(t: torch.Tensor) -> torch.Tensor:
    """The values of a tensor that one of `torch.func`'s transforms has kept inside of itself."""
    while is_wrapped(t):
        t = torch._C._functorch.get_unwrapped(t)
    return t


def is_batched(t: torch.Tensor) -> bool:
    """Return whether a tensor stands for the rows of several, inside of `vmap`."""
    while is_wrapped(t) and not torch._C._functorch.is_batchedtensor(t):
        t = torch._C._functorch.get_unwrapped(t)
    return is_wrapped(t)


@contextmanager
def no_transforms() -> Iterator[None]:
    """Return a context manager that hides its block from `torch.func`'s transforms: that of `jvp` forbids reading memory."""
    if not is_transforming():
        yield
        return
    from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack

    with temporarily_clear_interpreter_stack():
        yield


def in_transform() -> bool:
    """Return whether this thread is inside of one of `torch.func`'s transforms, or of a block of forward derivatives."""
    return is_transforming() or torch.autograd.forward_ad._current_level >= 0


def standard_gamma(shape: torch.Tensor, generator: torch.Generator | None) -> torch.Tensor:
    """Gamma numbers of scale 1 with the shape parameters given, from a generator, which torch.distributions does not take."""
    return torch._standard_gamma(shape, generator=generator)


def when_initialized(module: Any, act: Callable[[], None]) -> None:
    """Run `act` as soon as `module`, torch's for a kind of accelerator, is initialized; at once if it already is."""
    lazy_call = getattr(module, "_lazy_call", None)          # Apple's mps is always initialized
    (lazy_call or (lambda call: call()))(act)


_allocator_settings = [""]
"""The last setting passed to torch 2.11, which has no getter for it."""


def allocator_settings() -> str | None:
    """Return the settings of the accelerators' allocators: `key:value` pairs with commas between them; None or empty for none."""
    read: Any = getattr(torch._C, "_accelerator_getAllocatorSettings", None)
    return read() if read is not None else _allocator_settings[0]


def set_allocator_settings(text: str) -> None:
    """Apply settings of torch's allocator. Raises ValueError or RuntimeError for settings that torch does not know."""
    torch._C._accelerator_setAllocatorSettings(text)
    _allocator_settings[0] = text


TELLS_PYTHON = hasattr(torch._C._autograd._KinetoEvent, "is_python_function")
"""True if a profile's records hold the calls of Python: not those of torch 2.11."""

quick_mark = torch._C._profiler._RecordFunctionFast
"""A named stretch of the profiler's trace, for a tenth of what `torch.profiler.record_function` costs."""


def profile_events(profile: torch.profiler.profile) -> list[Any]:
    """Return the events of a stopped profile as Kineto's own records: torch's public ones cost twenty times as much to create."""
    inner: Any = profile.profiler
    return [] if inner is None or inner.kineto_results is None else list(inner.kineto_results.events())


def copy_all(targets: list[torch.Tensor], sources: list[torch.Tensor]) -> None:
    """Copy each source into the target at its position, in as few kernels as the device allows."""
    torch._foreach_copy_(targets, sources)


def mps_generator() -> torch.Generator:
    """Return the generator of Apple's GPU."""
    return torch.mps._get_default_mps_generator()


def wrapper_tensor(kind: type[torch.Tensor], like: torch.Tensor, device: torch.device) -> Any:
    """A tensor of a class of ours that has the shape, strides and dtype of `like` and no memory."""
    return torch.Tensor._make_wrapper_subclass(
        kind, like.shape, strides=like.stride(), storage_offset=like.storage_offset(), dtype=like.dtype, device=device,
    )


def change_function_modes(change: Callable[[list[Any]], list[Any]]) -> None:
    """Give this thread the stack of torch function modes that `change` returns for the present one, the outermost first."""
    for mode in change([torch.overrides._pop_mode() for _ in range(torch._C._len_torch_function_stack())][::-1]):
        torch.overrides._push_mode(mode)


no_torch_function = torch._C._disabled_torch_function_impl
"""The `__torch_function__` of a class of tensors whose results are plain tensors."""


__all__ = [
    "disable_proxy_modes_tracing", "FakeTensor", "FakeTensorMode", "graph_module", "lazy_graphs", "modes_of_now", "OpOverload", "pop_mode",
    "push_mode", "TorchDispatchMode", "tree_flatten", "tree_leaves", "tree_map", "without_modes",
]
