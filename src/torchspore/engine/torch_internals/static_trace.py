"""A tracer of operators for static shapes. It replaces torch's `make_fx`, which loads torch's compilers and sympy at its first call.

It records what `make_fx(tracing_mode="fake")` records, with torch's own fake tensors, and costs less per operator. Where an operator has
a result whose size depends on values, the trace continues with torch's code, which gives such a size a symbol (`Recorder.admit_symbols`).
"""
from __future__ import annotations

import dis
import inspect
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
import torch.nested._internal.nested_tensor as nested_tensor
from torch import fx
from torch._dispatch.python import no_python_dispatcher
from torch._library import simple_registry
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorConverter,
    FakeTensorMode,
    in_kernel_invocation_manager,
    unset_fake_temporarily,
)
from torch.fx import _lazy_graph_module, _symbolic_trace
from torch.fx.experimental import proxy_tensor
from torch.utils._mode_utils import no_dispatch
from torch.utils._python_dispatch import TorchDispatchMode, autograd_would_have_decomposed
from torch.utils._pytree import tree_leaves, tree_map

from torchspore.engine.torch_internals import static_symbols
from torchspore.engine.torch_internals.uninterrupted_import import UninterruptedImport

LIBRARIES = UninterruptedImport("torch._dynamo", "torch._inductor.config", static_symbols.SYMBOLIC_SHAPES)
"""The modules that torch's `make_fx` imports at its first call."""

class _Operators(dict[str, Any]):
    """torch's registry of rules for the operators that torch's kernels call on fake tensors, with torch's own function as the rule.

    Without a rule torch's C++ asks whether the fake tensor is a DTensor, and imports torch.distributed.tensor and sympy for that.
    """

    def __setitem__(self, name: str, entry: Any) -> None:
        super().__setitem__(name, entry)
        if name.startswith(("aten::", "prim::", "prims::")) and entry.torch_dispatch_rules.find(FakeTensor) is None:
            entry.torch_dispatch_rules.register(FakeTensor, _dispatch_fake)


def _dispatch_fake(_: type, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    return FakeTensor.__torch_dispatch__(function, types, args, kwargs or {})


_entries = simple_registry.singleton._data
simple_registry.singleton._data = _Operators()
for _name, _entry in _entries.items():
    simple_registry.singleton._data[_name] = _entry

_SET_BY_US = {
    "_allow_unsafe_data_ptr_access", "_mode_key", "_stack", "_stack_trace", "allow_fallback_kernels", "allow_meta", "allow_non_fake_inputs",
    "allow_scalar_outputs", "cache_crosscheck_enabled", "cache_enabled", "enter_stack", "fake_tensor_converter", "in_kernel_invocation",
    "nt_tensor_id_counter", "nt_tensor_id_initial_count", "propagate_real_tensors", "shape_env", "static_shapes",
}
"""The attributes of a fake mode that `StaticFakeMode` sets itself."""
_SET_BY_TORCH = {step.argval for step in dis.get_instructions(FakeTensorMode.__init__) if step.opname == "STORE_ATTR"}
_KNOWS_FAKE_MODE = _SET_BY_TORCH == _SET_BY_US
"""True if this version of torch sets exactly these attributes. `FakeTensorMode.__init__` loads torch's compilers to read two options."""

_aten = torch.ops.aten
_LIFTS = (_aten.lift.default, _aten.lift_fresh.default, _aten.lift_fresh_copy.default)
_SIZES = (_aten.size.default, _aten.stride.default, _aten.storage_offset.default)
_DEVICE = torch.ops.prim.device.default
_HANDLED = (FakeTensor, torch.Tensor, torch.nn.Parameter)


class StaticFakeMode(FakeTensorMode):
    """A fake mode without symbols for sizes, in a block of `static_symbols`."""

    def __init__(self) -> None:
        from torch._functorch import config  # which the import of this module does not load

        if _KNOWS_FAKE_MODE and "torch._dynamo" not in sys.modules and not config.fake_tensor_propagate_real_tensors:
            self._begin(config.fake_tensor_allow_meta)
        else:
            super().__init__()
        self.fake_tensor_converter = _Converter()
        self._allow_unsafe_data_ptr_access = False                 # as `make_fx` sets it
        self._blocks: list[Any] = []
        self._examples: dict[torch.device, FakeTensor] = {}

    def create(self, meta: torch.Tensor, device: torch.device, constant: torch.Tensor | None = None) -> FakeTensor:
        """Return what `FakeTensor(self, meta, device, constant=constant)` returns. Its attributes are those of another such tensor."""
        example = self._examples.get(device)
        if example is None:
            with no_dispatch():
                example = self._examples[device] = FakeTensor(self, torch.empty(0, device="meta"), device)
        fake: Any = torch.Tensor._make_subclass(FakeTensor, meta, False, dispatch_device=True, device_for_backend_keys=example.fake_device)
        torch._C._set_throw_on_mutable_data_ptr(fake)
        vars(fake).update(vars(example))
        if constant is not None:
            fake.constant = constant
        return fake

    def _begin(self, allow_meta: bool) -> None:
        """Do what `FakeTensorMode.__init__` does, with the defaults of torch._dynamo.config."""
        TorchDispatchMode.__init__(self)
        self.allow_fallback_kernels = self.cache_enabled = self.static_shapes = True
        self.allow_non_fake_inputs = self.allow_scalar_outputs = self.propagate_real_tensors = self.in_kernel_invocation = False
        self.cache_crosscheck_enabled = False
        self.allow_meta = allow_meta
        self.shape_env = self._stack = None
        self._stack_trace: Any = []
        self.enter_stack = []
        self._mode_key = torch._C._TorchDispatchModeKey.FAKE
        self.nt_tensor_id_initial_count = self.nt_tensor_id_counter = nested_tensor._tensor_id_counter

    def __enter__(self) -> Any:
        block = static_symbols.static_symbols()
        block.__enter__()
        self._blocks.append(block)
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        try:
            super().__exit__(*error)
        finally:
            self._blocks.pop().__exit__(None, None, None)


_fake_dispatch: Any = FakeTensorMode.__torch_dispatch__
StaticFakeMode.__torch_dispatch__ = getattr(_fake_dispatch, "__wrapped__", _fake_dispatch)  # type: ignore[method-assign]
"""torch wraps this method of a mode in a loader of torch._dynamo if the body of the class defines it, so it is set afterwards."""


class _Converter(FakeTensorConverter):
    """Creates fake tensors for real ones. torch's converter loads torch._dynamo to name the origin of each."""

    def from_real_tensor(self, fake_mode: Any, t: torch.Tensor, make_constant: bool = False, shape_env: Any = None, **options: Any) -> Any:
        if shape_env is not None or options.get("symbolic_context") is not None or not _is_plain(t):
            return super().from_real_tensor(fake_mode, t, make_constant, shape_env, **options)
        memo = self._get_memo(t)
        if memo is not None:
            return memo
        constant = t if make_constant else None
        if t._is_view():
            fake = self._view(fake_mode, t)
        elif _is_sole(t) and t.untyped_storage() not in self.meta_converter.describer.lookup_storage:
            fake = self._fresh(fake_mode, t, constant)
        else:
            def make(create: Callable[[], Any], device: Any) -> FakeTensor:
                with no_dispatch():
                    return FakeTensor(fake_mode, create(), device, constant=constant)

            fake = self.meta_converter(t, shape_env=None, callback=make, source=_ORIGIN, trace=False)   # type: ignore[arg-type]
        if constant is not None:
            self.add_constant_storage_mapping(fake)
        return fake

    def _fresh(self, fake_mode: StaticFakeMode, t: torch.Tensor, constant: torch.Tensor | None) -> Any:
        """Return the fake tensor for a tensor at the start of memory that no other fake tensor has. torch's converter is slower."""
        with no_dispatch():
            meta = torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device="meta")
            fake = fake_mode.create(meta, t.device, constant)
        converter = self.meta_converter
        converter.storage_memo[converter.describer.get_storage_id(t.untyped_storage())] = fake.untyped_storage()
        self.set_tensor_memo(t, fake)
        return fake

    def _view(self, fake_mode: Any, t: torch.Tensor) -> Any:
        """Return the same view of the base's fake tensor."""
        base = self.from_real_tensor(fake_mode, t._base)  # type: ignore[arg-type]
        key = torch._C.DispatchKey.ADInplaceOrView
        excluded = torch._C._dispatch_tls_is_dispatch_key_excluded(key)
        torch._C._dispatch_tls_set_dispatch_key_excluded(key, False)
        try:
            with torch.no_grad():
                fake = base.as_strided(t.size(), t.stride(), t.storage_offset())
            torch._C._autograd._set_creation_meta(fake, torch._C._autograd._get_creation_meta(t))
        finally:
            torch._C._dispatch_tls_set_dispatch_key_excluded(key, excluded)
        fake.fake_device = t.device
        self.set_tensor_memo(t, fake)
        return fake


_ORIGIN = object()
"""The origin of a tensor. torch reads names from it only for tensors that consist of several parts, which `_is_plain` excludes."""


def _is_plain(t: torch.Tensor) -> bool:
    """Return whether the tensor is an ordinary one: strided, without a gradient, outside of transforms."""
    return (
        type(t) is torch.Tensor and t.layout is torch.strided and not t.requires_grad and not t.is_quantized and not t.is_nested
        and t.device.type != "meta" and not hasattr(t, "_is_param") and not t.is_inference()
        and not torch._C._functorch.is_functorch_wrapped_tensor(t) and not torch._is_functional_tensor(t)
        and t.grad is None and not (t._is_view() and not _is_plain_view(t))
        and not (t.numel() and not t.untyped_storage().nbytes())
    )


def _is_sole(t: torch.Tensor) -> bool:
    """Return whether a plain tensor is all that its memory holds."""
    return not t.storage_offset() and not t.is_conj() and not t.is_neg() and not torch.is_inference_mode_enabled()


def _is_plain_view(t: torch.Tensor) -> bool:
    base: Any = t._base
    return base.dtype == t.dtype and t.is_conj() == t.is_neg() == base.is_conj() == base.is_neg() == False and _is_plain(base)  # noqa: E712


def refuse_real_operands(func: Any, tensors: Sequence[torch.Tensor]) -> None:
    """Raises RealOperands for an operator of real tensors alone.

    A fake mode would compute `k + 1` and `k += 1` with the values of `k` at this time, because these operators also accept numbers.
    """
    if tensors and func not in _LIFTS and not any(isinstance(t, FakeTensor) for t in tensors):
        raise RealOperands(f"{func} of torch tensors that are not inputs of the graph")


class RealOperands(RuntimeError):
    """A trace computes with torch tensors that its graph does not have as inputs."""


class RefuseRealOperands(TorchDispatchMode):
    """`refuse_real_operands` for the operators of torch's tracer."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if torch._C._should_allow_numbers_as_tensors(func.overloadpacket.__name__):
            refuse_real_operands(func, [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)])
        return func(*args, **kwargs)


class _TracingFlag:
    """A value for the flag by which torch's compiler refuses to run inside of a trace: true in one thread."""

    def __init__(self) -> None:
        self.thread: int | None = threading.get_ident()

    def __bool__(self) -> bool:
        return threading.get_ident() == self.thread


@contextmanager
def tracing_in_this_thread() -> Iterator[None]:
    """A block in which torch's flag says that this thread traces. Before torch 2.14, the flag of torch's tracers is true in all threads."""
    if hasattr(_symbolic_trace, "_is_fx_tracing_context"):         # from torch 2.14 on, each thread has a flag
        with _symbolic_trace._is_fx_tracing_context(True):
            yield
        return
    before, flag = _symbolic_trace._is_fx_tracing_flag, _TracingFlag()
    try:
        _symbolic_trace._is_fx_tracing_flag = flag  # type: ignore[assignment]
        yield
    finally:
        flag.thread = None                                         # a tracer of another thread may restore this flag later
        _symbolic_trace._is_fx_tracing_flag = before


class _Tracer(proxy_tensor.PythonKeyTracer):
    """Writes the graph. Nodes lack what torch adds for Inductor alone."""

    def trace(self, root: Any, concrete_args: Any = None) -> fx.Graph:
        """Do what torch's method does for a function without arguments, but replace no methods of torch's Modules: all threads use them."""
        self.root, self.graph, self.tensor_attrs = torch.nn.Module(), fx.Graph(tracer_cls=type(self)), {}
        with tracing_in_this_thread():
            self.create_node("output", "output", (self.create_arg(root()),), {})
        return self.graph

    def create_node(self, kind: str, target: Any, args: Any, kwargs: Any, name: Any = None, type_expr: Any = None) -> fx.Node:
        node = fx.Tracer.create_node(self, kind, target, args, kwargs, name, type_expr)
        node.meta.pop("stack_trace", None)
        if kind == "get_attr":
            value = getattr(self.root, target)
            if isinstance(value, torch.Tensor):
                with proxy_tensor.disable_proxy_modes_tracing():
                    node.meta["val"] = proxy_tensor.extract_val(value)
        return node


class Recorder(proxy_tensor.ProxyTorchDispatchMode):
    """Records each operator that runs on fake tensors."""

    def __init__(self, tracer: _Tracer, fake_mode: StaticFakeMode) -> None:
        TorchDispatchMode.__init__(self)
        self._mode_key = torch._C._TorchDispatchModeKey.PROXY
        self.enter_stack = []
        self.tracer, self.fake_mode = tracer, fake_mode
        self.torch_recorder: Any = None
        self._table: Any = None

    def _dispatch(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is _DEVICE:
            fake = args[0]
            if type(fake) is FakeTensor and not fake.fake_mode.in_kernel_invocation:
                return fake.fake_device        # as torch's fake mode answers; torch.autograd asks several times for each operator
            return func(*args, **kwargs)
        if self.fake_mode.shape_env is None:
            try:
                return self._call(func, args, kwargs)
            except (DataDependentOutputException, DynamicOutputShapeException):
                self.admit_symbols()
        with nullcontext() if self._table is None else proxy_tensor.decompose(self._table):
            return proxy_tensor.proxy_call(self.torch_recorder, func, False, args, kwargs)

    def admit_symbols(self) -> None:
        """Continue with torch's own code."""
        LIBRARIES.finish()
        from torch.fx.experimental.symbolic_shapes import ShapeEnv

        kind, table = proxy_tensor.ProxyTorchDispatchMode, {_aten.sym_numel.default: torch._decomp.decompositions.sym_numel}
        if "decomposition_table" in inspect.signature(kind).parameters:
            self.torch_recorder = kind(self.tracer, "fake", decomposition_table=table)
        else:                                                      # torch 2.11
            self.torch_recorder, self._table = kind(self.tracer, "fake"), table
        self.fake_mode.shape_env = ShapeEnv()

    def _call(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Run the operator on its fake tensors and write its node."""
        tensors: list[torch.Tensor] = []
        proxies, named_proxies = self._proxies(args, tensors), self._proxies(kwargs, tensors)
        if not all(type(t) in _HANDLED or t in self.tracer.tensor_tracker for t in tensors):
            return NotImplemented
        refuse_real_operands(func, tensors)
        if func not in _SIZES and autograd_would_have_decomposed(func, tensors):
            with self:
                result = func.decompose(*args, **kwargs)
            if result is not NotImplemented:
                return result
        if func is _aten.is_nonzero.default:
            with self:
                torch._check(args[0].numel() == 1, lambda: "Boolean value of Tensor with more than one value is ambiguous")
                return (args[0] != 0).item()
        slots = [self.tracer.tensor_tracker.get(t) for t in tensors]
        is_constant = any(slot is not None and slot.constant is not None for slot in slots) and not any(
            slot is not None and slot.constant is None for slot in slots
        )
        if torch.Tag.data_dependent_output in func.tags and is_constant:
            return self._of_constants(func, args, kwargs)
        if func is _aten.lift_fresh.default:
            func = _aten.lift_fresh_copy.default
        out = func(*args, **kwargs)
        name = self.tracer.graph._target_to_str(func.overloadpacket.__name__)
        proxy = self.tracer.create_proxy("call_function", func, proxies, named_proxies, name=name)
        constant = None
        if func is _aten.lift_fresh_copy.default and out.numel() <= proxy_tensor.CONSTANT_NUMEL_LIMIT:
            with unset_fake_temporarily():
                constant = args[0].clone()
        elif is_constant and torch.Tag.nondeterministic_seeded not in func.tags and _is_small(out):
            constant = self._of_constants(func, args, kwargs)
        track(out, proxy, self.tracer, constant)
        return out

    def _proxies(self, value: Any, tensors: list[torch.Tensor]) -> Any:
        """Return `value` with the proxies of its tensors, which `tensors` receives."""
        kind = type(value)
        if kind is tuple or kind is torch.Size:
            return tuple([self._proxies(item, tensors) for item in value])
        if kind is list:
            return [self._proxies(item, tensors) for item in value]
        if kind is dict:
            return {name: self._proxies(item, tensors) for name, item in value.items()}
        if isinstance(value, torch.Tensor):
            tensors.append(value)
            slot = self.tracer.tensor_tracker.get(value)
            return value if slot is None else slot.proxy
        if isinstance(value, (tuple, list, dict)):
            return tree_map(lambda item: self._proxies(item, tensors), value)
        return value

    def _of_constants(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Return the result of an operator whose operands are constants."""
        def constant_of(value: Any) -> Any:
            slot = self.tracer.tensor_tracker.get(value) if isinstance(value, torch.Tensor) else None
            return value if slot is None else slot.constant

        with unset_fake_temporarily():
            return func(*tree_map(constant_of, args), **tree_map(constant_of, kwargs))


Recorder.__torch_dispatch__ = Recorder._dispatch  # type: ignore[method-assign,assignment]


def _is_small(out: Any) -> bool:
    values = out if isinstance(out, (tuple, list)) else (out,)
    return all(value.numel() <= proxy_tensor.CONSTANT_NUMEL_LIMIT for value in values if isinstance(value, torch.Tensor))


def _snapshot(out: Any) -> Any:
    """Return what torch's `extract_val` returns: the shape, strides and dtype of a value at this time."""
    if type(out) is FakeTensor and isinstance(out.fake_mode, StaticFakeMode) and out.real_tensor is None:
        with no_python_dispatcher(), in_kernel_invocation_manager(out.fake_mode):
            meta = _aten.detach.default(out)
        return out.fake_mode.create(meta, out.fake_device)
    return proxy_tensor.extract_val(out, include_real=True)


def track(out: Any, proxy: Any, tracer: Any, constant: Any = None) -> None:
    """Record that `proxy` represents the value `out` in the trace of a tracer."""
    if isinstance(out, torch.Tensor):
        tracer.tensor_tracker[out] = proxy_tensor._ProxyTensor(proxy, constant)
        proxy.node.meta["val"] = _snapshot(out)
    elif isinstance(out, (tuple, list)):
        proxy.node.meta["val"] = type(out)(map(_snapshot, out)) if type(out) in (list, tuple) else proxy_tensor.extract_val(out)
        for index, item in enumerate(out):
            track(item, proxy[index], tracer, None if constant is None else constant[index])
    elif out is not None and type(out) not in (bool, int, float):
        proxy_tensor.track_tensor_tree(out, proxy, constant=constant, tracer=tracer)


class Trace:
    """A running trace: the tracer that writes its graph, and its fake mode, which is the mode of its inputs if they are fake tensors."""

    def __init__(self, mode: StaticFakeMode | None = None) -> None:
        self.tracer, self.mode = _Tracer(), mode or StaticFakeMode()

    def run(self, function: Callable[..., list[torch.Tensor]], inputs: Sequence[torch.Tensor]) -> fx.GraphModule:
        """Return the graph of the operators that `function` runs with fake tensors for `inputs`; its result is a list of tensors."""
        fakes = [self._fake_tensor(t) for t in inputs]

        def traced() -> Any:
            with proxy_tensor.disable_proxy_modes_tracing():
                for number, fake in enumerate(fakes):
                    track(fake, fx.Proxy(self.tracer.graph.placeholder(f"arg{number}_1"), self.tracer), self.tracer)
            return [self._proxy(value) for value in function(*fakes)]

        recorder = Recorder(self.tracer, self.mode)
        with self.mode, recorder, _without_autocast_cache():
            graph = self.tracer.trace(traced)
        if self.mode.shape_env is None:
            return _lazy_graph_module._make_graph_module(self.tracer.root, graph, function.__name__)
        function_name = function.__name__

        class Finished:
            """A tracer that has traced already."""

            root = self.tracer.root

            def trace(self, root: Any, concrete_args: Any) -> Any:
                return graph

        def named() -> None:
            """Has the name of the traced function."""

        named.__name__ = function_name
        return proxy_tensor.dispatch_trace(named, Finished())  # type: ignore[arg-type]

    def _fake_tensor(self, t: torch.Tensor) -> torch.Tensor:
        """Return a fake tensor for an input."""
        if isinstance(t, FakeTensor) and not t.requires_grad and not t._is_view() and not t.storage_offset():
            with self.mode:
                return torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=t.device)
        return self.mode.from_tensor(t)

    def _proxy(self, value: Any) -> Any:
        slot = self.tracer.tensor_tracker.get(value) if isinstance(value, torch.Tensor) else None
        return value if slot is None else slot.proxy


@contextmanager
def _without_autocast_cache() -> Iterator[None]:
    """A block in which autocast casts a value each time: a cached cast would be a value of another trace."""
    before = torch.is_autocast_cache_enabled()
    torch.set_autocast_cache_enabled(False)
    try:
        yield
    finally:
        torch.set_autocast_cache_enabled(before)
