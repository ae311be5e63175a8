"""The base of Tensor: one slot that contains a torch tensor, functions that read and write it, and the traversal of nested structures.

`raw` returns the torch tensor of a value: by default that of the slot. While a thread computes gradients or captures a graph, a *frame* may
return a substitute, so that live Parameters never change for others.
"""
from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch

from torchspore.engine.native import allocator
from torchspore.engine.tensors import change_counters, tree
from torchspore.engine.tensors.in_place_versions import Extent, base_of

active = 0
"""The number of open frames in all threads, and of other observers of operators: one plain integer on the hot path; the thread-local is
read only if it is not zero."""
observers = 0
"""The number of observers among them."""

_lock = threading.Lock()


class _ThreadState(threading.local):
    """The state of a thread: the frame of the capture or gradient that it runs, and what `engine.execution.thread_state` stores."""

    frame: Frame | None = None
    in_pynative = False
    broken: Any = None
    """The Cell whose `construct` is to be split."""
    breaks = 0
    """The depth of nested calls that run with graph breaks."""
    refuses_gradients = False
    """True inside MindSpore's `_no_grad`; `torch.no_grad` does not count."""


thread_state = _ThreadState()


class TensorBase:
    """Holds one torch tensor. The front end's `Tensor` adds the methods."""

    __slots__ = ("__dict__", "__weakref__", "_t")
    _t: torch.Tensor


class Composite:
    """A value that consists of several Tensors, such as a sparse gradient; traversals visit its parts."""

    def parts(self) -> tuple[Any, ...]:
        """The Tensors that it is made of."""
        raise NotImplementedError

    def rebuilt(self, parts: tuple[Any, ...]) -> Composite:
        """The same kind of value of other Tensors."""
        raise NotImplementedError

    def fixed(self) -> Any:
        """Return the hashable facts apart from its Tensors that a graph depends on."""
        raise NotImplementedError


class Frame:
    """A layer between a thread's Tensors and their torch tensors for a while; frames nest."""

    outer: Frame | None = None
    traces = False
    """True if what runs inside is captured."""
    records = False
    """True if a gradient is taken of what runs inside."""
    rules: Any = None
    """The rules for computing in another dtype (`engine.execution.precision`): those of the outer frame unless `has_rules`."""
    has_rules = False
    is_part = False
    """True if it captures a branch or loop."""
    settles = False
    """True if a frame inside it hands on the values that it ended with: all of them are known, whatever may be the same memory."""
    forwards: Any = None
    """The calls of nested Cells whose gradients may be requested later (`graph.forward_cache.Calls`), if it stores them."""
    modules: Any = None
    """The frame of a call of a Cell's torch Module (`torch_modules.module_frame`), which runs the calls of Cells inside it."""
    lookup: Callable[[int, torch.Tensor], torch.Tensor] | None = None
    """Returns what `resolve` returns, for the id of a Tensor and its torch tensor: the `get` of a dict, as long as that is all of it.

    It is set only if neither rules nor marks concern the operators inside.
    """

    def leaf_ids(self) -> set[int]:
        """Return the ids of the leaves of torch.autograd that this frame hands out for Tensors."""
        return set()

    def acts_beside(self, what: str) -> None:
        """Called when code inside has an effect apart from its results, which ends a capture."""
        if self.outer is not None:
            self.outer.acts_beside(what)

    def custom_gradient(self) -> None:
        """Called when code inside has a custom gradient, which is not that of its operators: `bprop`, a hook."""
        if self.outer is not None:
            self.outer.custom_gradient()

    def resolve(self, tensor: TensorBase) -> torch.Tensor:
        """The torch tensor to compute with for `tensor`."""
        return self.outer.resolve(tensor) if self.outer is not None else tensor._t

    def flag_set(self, parameter: TensorBase, requires_grad: bool) -> None:
        """Called when `requires_grad` of a Parameter changes."""

    def measured(self, tensor: TensorBase) -> torch.Tensor:
        """The torch tensor whose lengths count for `tensor`: they are numbers, but for axes that a graph leaves open."""
        return self.outer.measured(tensor) if self.outer is not None else tensor._t

    def write(self, tensor: TensorBase, value: torch.Tensor) -> None:
        """Give `tensor` the values of `value`, which has its shape and dtype."""
        if self.outer is not None:
            self.outer.write(tensor, value)
        else:
            with torch.no_grad():
                tensor._t.copy_(value)

    def modify(self, tensor: TensorBase, change: Callable[[torch.Tensor], Any]) -> None:
        """Let `change` write into the values of `tensor` in place."""
        if self.outer is not None:
            self.outer.modify(tensor, change)
        else:
            change(tensor._t)

    def origin(self, base: torch.Tensor) -> torch.Tensor:
        """The memory that `base`, a torch tensor that is not a view, is a version of."""
        return self.outer.origin(base) if self.outer is not None else base

    def extent(self, t: torch.Tensor) -> Extent:
        """Return the memory that `t` shows, as `origin` names it, and where `t` begins in it, in elements.

        A view that is an input of a part of a graph shows the memory around that part, and begins there where the outer tensor does.
        """
        base = base_of(t)
        return self.origin(base), t.storage_offset() - base.storage_offset()

    def aliases(self, base: torch.Tensor) -> list[tuple[torch.Tensor, BaseException]]:
        """Record that a Tensor decides at run time which memory equals that of `base`, and what to raise when the memory is read."""
        return self.outer.aliases(base) if self.outer is not None else []

    def forget(self, base: torch.Tensor, reason: BaseException) -> None:
        """Record that the contents of the memory of `base` are unknown; reading them raises `reason`."""
        if self.outer is not None:
            self.outer.forget(base, reason)

    def literal(self, data: Any, make: Callable[[Any], torch.Tensor]) -> torch.Tensor:
        """The torch tensor for `data` that the program wrote down or computed outside of operators."""
        return self.outer.literal(data, make) if self.outer is not None else make(data)

    def host(self, tensor: TensorBase) -> torch.Tensor:
        """The values of `tensor`, to be read by Python."""
        return self.outer.host(tensor) if self.outer is not None else self.resolve(tensor)

    def known_out(self, tensor: TensorBase) -> Any:
        """The number in a Tensor of one element that the program wrote down in the call, as in `Tensor(16)`; None for any other."""
        return self.outer.known_out(tensor) if self.outer is not None else None

    def rebind(self, tensor: TensorBase, t: torch.Tensor) -> None:
        """Give `tensor` another torch tensor."""
        if self.outer is not None:
            self.outer.rebind(tensor, t)
        else:
            tensor._t = t.detach()
            tell_links(tensor)

    def callee(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function to call for a function of the program's that an operator or transform calls."""
        return self.outer.callee(function) if self.outer is not None else function

    def draw(self, draw: Callable[[], Any], redraw: Callable[[torch.Tensor], Any]) -> Any:
        """Random values and the state that they were drawn from: `draw()`. Where a region runs again, `again(state)` of its first run."""
        return self.outer.draw(draw, redraw) if self.outer is not None else draw()

    def keep_alive(self, stream: Any) -> None:
        """Keep a stream of random numbers alive as long as the graph that is recorded: a graph names its streams by their numbers."""
        if self.outer is not None:
            self.outer.keep_alive(stream)

    def begin_block(self) -> None:
        """Begin the block of gradients by integers (`engine.autograd.integer_gradients`) of a frame that begins it only if it is needed."""
        if self.outer is not None:
            self.outer.begin_block()

    def follows_integers(self) -> None:
        """Called before a gradient passes through a cast to integers, which a part of a graph cannot report to the enclosing parts."""
        if self.outer is not None:
            self.outer.follows_integers()

    def born(self, cell: Any) -> None:
        """Called for each Cell that is created inside this frame, before it has an attribute."""
        if self.outer is not None:
            self.outer.born(cell)

    def attribute_set(self, owner: Any, name: str, value: Any) -> None:
        """Called for each attribute that is set on a Cell inside this frame, before it is written."""
        if self.outer is not None:
            self.outer.attribute_set(owner, name, value)

    def open(self) -> AbstractContextManager[Any]:
        """Return the context in which this is the thread's innermost frame. A frame is opened once at a time."""
        return self

    def __enter__(self) -> None:
        global active
        outer = self.outer = thread_state.frame
        if not self.has_rules:
            self.rules = None if outer is None else outer.rules
        if outer is not None and outer.modules is not None:
            self.modules = outer.modules
        with _lock:
            active += 1
        thread_state.frame = self

    def __exit__(self, *error: Any) -> None:
        global active
        thread_state.frame = self.outer
        with _lock:
            active -= 1


def follow_operators(is_on: bool) -> None:
    """Make every operator take its long path, which passes its result to `engine.execution.pynative.after`; or stop."""
    global active, observers
    with _lock:
        active += 1 if is_on else -1
        observers += 1 if is_on else -1


def lose_observer() -> None:
    """Count an observer less in a forked child, without the lock: the thread that held it may not exist there."""
    global active, observers
    active -= 1
    observers -= 1


def frame() -> Frame | None:
    """The innermost frame of this thread."""
    return thread_state.frame if active else None


def is_recording() -> bool:
    """Return whether this thread is inside a gradient transform."""
    around = frame()
    while around is not None:
        if around.records:
            return True
        around = around.outer
    return False


@contextmanager
def outside() -> Iterator[None]:
    """Runs its block as if no frame were open in this thread."""
    around, thread_state.frame = thread_state.frame, None
    try:
        yield
    finally:
        thread_state.frame = around


def apart(kind: Any, *arguments: Any) -> Any:
    """Call `kind.apply(*arguments)` of a torch.autograd.Function whose gradient is not that of its operators."""
    if active and thread_state.frame is not None:
        thread_state.frame.custom_gradient()
    return kind.apply(*arguments)


def raw(tensor: TensorBase) -> torch.Tensor:
    """Return the torch tensor to compute with: the real one, or the one that this thread's frame returns for it."""
    if active:
        around = thread_state.frame
        if around is not None:
            return around.resolve(tensor)
    return tensor._t


def measured(tensor: TensorBase) -> torch.Tensor:
    """The torch tensor to read lengths from."""
    if active:
        around = thread_state.frame
        if around is not None:
            return around.measured(tensor)
    return tensor._t


new_object = object.__new__
tensor_class: type[TensorBase] = TensorBase
"""The class of Tensors that `wrap` creates."""


def register(cls: type[TensorBase]) -> None:
    """Set the class that `wrap` creates; called once by the front end."""
    global tensor_class
    tensor_class = cls


def wrap(t: torch.Tensor) -> Any:
    """A Tensor of the front end around `t`."""
    out = new_object(tensor_class)
    out._t = t
    return out


def write(tensor: TensorBase, value: torch.Tensor) -> None:
    """Write `value` into `tensor` in place: at once, or through this thread's frame."""
    around = frame()
    if around is not None:
        around.write(tensor, value)
    else:
        with torch.no_grad():
            tensor._t.copy_(value)


def modify(tensor: TensorBase, change: Callable[[torch.Tensor], Any]) -> None:
    """Let `change` write in place into the torch tensor of `tensor`, or into the one that this thread's frame returns for it."""
    around = frame()
    if around is not None:
        around.modify(tensor, change)
    else:
        change(tensor._t)


def rebind(tensor: TensorBase, t: torch.Tensor) -> None:
    """Give `tensor` another torch tensor, of any shape and dtype."""
    around = frame()
    if around is not None:
        around.rebind(tensor, t)
    else:
        if allocator.is_on:
            allocator.follow(tensor._t, t)
        tensor._t = t
        tell_links(tensor)
    change_counters.rebinds += 1


_PLAIN = frozenset({int, float, bool, str, type(None)})

LINKS = "_torch_links_"
"""The attribute of a Tensor whose memory torch Modules share: the object that is notified of new memory (`modules.parameter_links`)."""


def tell_links(tensor: TensorBase) -> None:
    """Give torch Modules that share the memory of `tensor` its new memory."""
    for link in tensor.__dict__.get(LINKS, ()):
        link.update()


def unwrap(value: Any) -> Any:
    """`value` with every Tensor in it, also inside lists, tuples and dicts, replaced by its torch tensor."""
    if isinstance(value, TensorBase):
        return raw(value)
    kind = type(value)
    if kind is tuple and _PLAIN.issuperset(map(type, value)):
        return value
    if kind is tuple or kind is list:                      # of numbers or Tensors: most sequences are
        around = thread_state.frame if active else None
        items = []
        for item in value:
            if isinstance(item, TensorBase):
                items.append(item._t if around is None else around.resolve(item))
            elif type(item) in _PLAIN:
                items.append(item)
            else:
                break
        else:
            return tuple(items) if kind is tuple else items
    if isinstance(value, torch.Tensor) and (value.requires_grad or active):
        return foreign_operand(value)
    return transform(value, raw, foreign_operand) if isinstance(value, (list, tuple, dict)) else value


def wrap_all(value: Any) -> Any:
    """`value` with every torch tensor in it, also inside lists, tuples and dicts, replaced by a Tensor; lists become tuples."""
    if isinstance(value, torch.Tensor):
        return wrap(value)
    if isinstance(value, (list, tuple)):
        return tuple(wrap_all(item) for item in value)
    return {key: wrap_all(item) for key, item in value.items()} if isinstance(value, dict) else value


def foreign_operand(t: torch.Tensor) -> torch.Tensor:
    """Return an operator's argument that is a torch tensor. Raises GradientLost for a torch Parameter that would get no gradient."""
    if t.requires_grad or active:
        from torchspore.engine.tensors import torch_interop

        return torch_interop.operand(t)
    return t


def transform(
    value: Any, function: Callable[[Any], Any], convert_foreign: Callable[[torch.Tensor], torch.Tensor] | None = None,
) -> Any:
    """Return `value` with `function` applied to every Tensor in it; the structure (lists, tuples, dicts, of any class) is preserved.

    `convert_foreign` is applied to torch tensors.
    """
    if isinstance(value, TensorBase):
        return function(value)

    def convert_leaf(leaf: Any) -> Any:
        if isinstance(leaf, TensorBase):
            return function(leaf)
        if convert_foreign is not None and isinstance(leaf, torch.Tensor):
            return convert_foreign(leaf)
        return leaf.rebuilt(tuple(map(function, leaf.parts()))) if isinstance(leaf, Composite) else leaf

    return tree.mapped(value, convert_leaf)


def tensors(value: Any) -> Iterator[Any]:
    """Every Tensor in a nested structure, in order."""
    if isinstance(value, TensorBase):
        yield value
        return
    for leaf in tree.leaves(value):
        if isinstance(leaf, TensorBase):
            yield leaf
        elif isinstance(leaf, Composite):
            yield from leaf.parts()
