"""`mindspore.Tensor`: values on a device. The operators add their methods when `ops` is imported (`ops/tensor_methods/methods.py`)."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from torchspore.base.text import message, with_type
from torchspore.engine.autograd import gradient_hooks
from torchspore.engine.devices import device as placing
from torchspore.engine.execution import pynative, thread_state
from torchspore.engine.tensors import change_counters, creation, dtypes, torch_aliases, torch_interop
from torchspore.engine.tensors import tensor as engine
from torchspore.engine.tensors.tensor import TensorBase, measured, raw, rebind, wrap
from torchspore.engine.tensors.tensor_text import shown
from torchspore.errors import ValueElsewhere
from torchspore.mindspore.common.unsupported import without_lacking


class _TensorMeta(type):
    """Shows the class under its public name, which programs print (`f"... got {type(x)}"`), and reports class attributes to graphs."""

    def __setattr__(cls, name: str, value: Any) -> None:
        type.__setattr__(cls, name, value)
        cls._was_changed(name)

    def __delattr__(cls, name: str) -> None:
        type.__delattr__(cls, name)
        cls._was_changed(name)

    def __dir__(cls) -> list[str]:
        return without_lacking(cls, type.__dir__(cls))

    def _was_changed(cls, name: str) -> None:
        """Invalidate graphs that were captured with another attribute of this class; user-defined classes are watched by name."""
        if cls.__module__.startswith("torchspore."):
            around = engine.frame()
            if around is not None:
                around.acts_beside(f"changes {cls.__qualname__}.{name}")
            change_counters.calls_changed()

    def __repr__(cls) -> str:
        return f"<class '{cls.__module__.removeprefix('torchspore.')}.{cls.__qualname__}'>"


class Tensor(TensorBase, metaclass=_TensorMeta):
    """An array of numbers of one dtype.

    `input_data` is a number, nested lists, a NumPy array (copied) or a Tensor. Python floats give float32, ints int64; arrays keep their
    dtype unless `dtype` names another. With `shape`, `dtype` and `init` (an Initializer) it is filled by that initializer. Without data it
    describes an input for `Cell.set_inputs`: None in `shape` is an open axis, `shape` None any number of axes.

    Raises TypeError for data or a dtype that a Tensor cannot contain, ValueError for `init` without a shape.
    """

    __slots__ = ()
    __parameter__ = False
    grad: Any = None
    """The gradient that packages with their own `backward` store, as in MindSpore 2.4; nothing here sets it."""

    # Fields of MindSpore 2.3 and 2.4 for the same packages. Only those of a Parameter have a meaning here.
    _grad: Any = None
    _grad_fn: Any = None
    _requires_grad: bool = False
    _retain_grad: bool = False

    init: Any = None
    """The Initializer of a Tensor before `init_data`; None afterwards, and for all other Tensors."""

    const_arg = False
    """True if a graph treats this Tensor's values as constants, not as an input."""

    __ms_origin_object__ = property(lambda self: self, doc="The Tensor itself, as `mutable` stores its argument in the values it marks.")

    def __init__(
        self, input_data: Any = None, dtype: Any = None, shape: Any = None, init: Any = None, const_arg: bool = False,
        device: str | None = None,
    ) -> None:
        if dtype is not None:
            _check_dtype(dtype)
        if device is not None:
            check_device("Tensor", device)
        if init is not None:
            if shape is None or dtype is None:
                raise ValueError(
                    "Tensor(init=...): expected shape and dtype with it."
                    "\n\nhint: write Tensor(shape=(2, 3), dtype=mindspore.float32, init=One())."
                )
            sizes = (shape,) if isinstance(shape, int) else tuple(shape)
            self.init = init
            init._prepare_(self, sizes, dtype)
        elif input_data is None:
            if dtype is None:
                raise TypeError("Tensor(): expected data, or a shape and a dtype.\n\nhint: write Tensor([1.0, 2.0]).")
            sizes = (None,) if shape is None else (shape,) if isinstance(shape, int) else tuple(shape)
            is_open = [s is None or hasattr(s, "divisor") for s in sizes]       # a Symbol has a divisor
            self._t = creation.filled([0 if o else s for s, o in zip(sizes, is_open)], 0, dtype)
            if any(is_open):
                self.symbolic = () if shape is None else sizes     # for `set_inputs`: open axes, or the number of axes
        else:
            if shape is not None:
                call = f"Tensor({input_data!r:.40}, shape={shape!r:.40})"
                raise ValueError(f"{call}: expected no shape with data.\n\nhint: remove shape.")
            self._t = creation.from_data(input_data, dtype)
        if const_arg:
            if const_arg is not True:
                raise TypeError(message(f"Tensor(const_arg={const_arg!r:.40})", with_type("a bool", const_arg)))
            self.const_arg = True

    # ---- properties

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths along the axes."""
        return tuple(measured(self).shape)

    @property
    def dtype(self) -> dtypes.Type:
        """The dtype of the elements."""
        return dtypes.FROM_TORCH[self._t.dtype]

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._t.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return measured(self).numel()

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self._t.element_size()

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return measured(self).numel() * self._t.element_size()

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next along each axis."""
        return tuple(s * self._t.element_size() for s in measured(self).stride())

    @property
    def device(self) -> str:
        """The device of the values: `CPU`, `GPU:0` or `Ascend:0`."""
        kind = {"cpu": "CPU", "cuda": "GPU", "xpu": "GPU", "mps": "GPU", "npu": "Ascend"}.get(self._t.device.type, self._t.device.type)
        return kind if self._t.device.index is None else f"{kind}:{self._t.device.index}"

    @property
    def has_init(self) -> bool:
        """True if it has an initializer whose values `init_data` has not drawn yet."""
        return self.init is not None

    def dim(self) -> int:
        """The number of axes."""
        return self._t.ndim

    ndimension = dim

    def numel(self) -> int:
        """The number of elements."""
        return measured(self).numel()

    nelement = numel

    def is_contiguous(self) -> bool:
        """Return whether the elements are contiguous."""
        return self._t.is_contiguous()

    def stride(self, dim: int | None = None) -> Any:
        """Elements from one to the next along each axis, or along `dim`."""
        return measured(self).stride() if dim is None else measured(self).stride(dim)

    def storage_offset(self) -> int:
        """The index of the first element in its storage."""
        return int(self._t.storage_offset())

    def data_ptr(self) -> int:
        """The address of the first element."""
        return self._t.data_ptr()

    def is_floating_point(self) -> bool:
        """Return whether the dtype is real floating point."""
        return self._t.is_floating_point()

    def is_complex(self) -> bool:
        """Return whether the dtype is complex."""
        return self._t.is_complex()

    def is_signed(self) -> bool:
        """Return whether the dtype has negative values."""
        return self._t.is_signed()

    # ---- to and from Python, NumPy and torch

    def asnumpy(self) -> np.ndarray[Any, Any]:
        """Return the values as a NumPy array, which on the CPU shares memory with this Tensor."""
        return creation.to_numpy(self)

    numpy = asnumpy

    def tolist(self) -> Any:
        """Return the values as nested lists of Python numbers."""
        return creation.host(self).tolist()

    def item(self, index: Any = None) -> Any:
        """Return the only element as a Python number. Raises ValueError for several elements.

        MindSpore 1.x: with an `index`, an int into the flat Tensor or a tuple, return that element.
        """
        if index is None:
            return self._single("item()").item()
        return (self.reshape(-1) if isinstance(index, int) else self)[index].item()  # type: ignore[index]

    def torch(self) -> Any:
        """Return the torch tensor that holds the values (shared, not copied). Where a gradient is recorded it carries the gradient."""
        return torch_aliases.torch_tensor(self)

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Let torch's functions take Tensors; their results are torch tensors."""
        return torch_interop.call_torch(function, args, kwargs or {})

    @staticmethod
    def from_torch(t: Any) -> Tensor:
        """Return a Tensor on the torch tensor `t` (shared); a Tensor itself. Gradients that MindSpore or torch records flow through `t`.

        Raises:
            TypeError: `t` is not a torch tensor with dense memory.
            RuntimeError: inside a gradient transform, `t` depends on a torch Parameter, which the gradient would not reach.
        """
        return t if isinstance(t, Tensor) else wrap(torch_interop.enter(t))  # type: ignore[no-any-return]

    @staticmethod
    def from_numpy(array: np.ndarray[Any, Any]) -> Tensor:
        """Return a Tensor that shares the memory of `array`. Raises TypeError if it is not a NumPy array."""
        if not isinstance(array, np.ndarray):
            raise TypeError(
                f"Tensor.from_numpy({array!r:.40}): expected a NumPy array, got {type(array).__name__}."
                f"\n\nhint: write Tensor({array!r:.40})."
            )
        return wrap(creation.from_array(array, share=True))  # type: ignore[no-any-return]

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray[Any, Any]:
        array = self.asnumpy()
        return array if dtype is None else array.astype(dtype, copy=False)

    @staticmethod
    def to_dlpack(tensor: Tensor) -> Any:
        """As `mindspore.utils.dlpack.to_dlpack`: a capsule with the memory of `tensor`."""
        from torchspore.mindspore.common import shared_memory

        return shared_memory.to_dlpack(tensor)

    @staticmethod
    def from_dlpack(dlpack: Any) -> Tensor:
        """As `mindspore.utils.dlpack.from_dlpack`: a Tensor in the memory of a capsule, or of an array of another library."""
        from torchspore.mindspore.common import shared_memory

        return shared_memory.from_dlpack(dlpack)

    def __dlpack__(self, **keywords: Any) -> Any:
        torch_interop.leave(raw(self), "DLPack")
        t = creation.host(self) if self._t.device.type == "cpu" else self._t
        if t.is_conj() or t.is_neg():                        # memory with other values, which torch shows conjugated or negated
            if keywords.get("copy") is False:
                raise BufferError(message("__dlpack__(copy=False) of a conjugated or negated view", "x.copy(), or copy=None"))
            t = t.resolve_conj().resolve_neg()
        return t.__dlpack__(**keywords)

    def __dlpack_device__(self) -> Any:
        return self._t.__dlpack_device__()

    # ---- Python's protocols

    def _single(self, use: str) -> Any:
        if measured(self).numel() != 1:
            raise ValueError(
                f"{use}: expected a Tensor of one element, got shape {self.shape}.\n\nhint: use .asnumpy() for all of them, or index one."
            )
        return creation.host(self)

    def __bool__(self) -> bool:
        return bool(self._single("truth of a Tensor"))

    def __int__(self) -> int:
        return int(self._single("int(Tensor)").item())

    def __float__(self) -> float:
        return float(self._single("float(Tensor)"))

    def __complex__(self) -> complex:
        return complex(self._single("complex(Tensor)"))

    def __index__(self) -> int:
        single = self._single("index")
        if single.is_floating_point():
            raise TypeError(f"a Tensor as an index: expected integers, got {self.dtype}.")
        return int(single)

    def __round__(self, digits: int = 0) -> Any:
        return self.round() if not digits else round(float(self), digits)  # type: ignore[attr-defined]

    def __len__(self) -> int:
        if self._t.ndim == 0:
            raise TypeError("len(Tensor): expected at least one axis, got a 0-d Tensor. Not support len of a 0-D tensor.")
        return measured(self).shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        if self._t.ndim == 0:
            raise TypeError("iter(Tensor): expected at least one axis, got a 0-d Tensor. Cannot iterate over a scalar tensor.")
        return iter([self[i] for i in range(measured(self).shape[0])])  # type: ignore[index]

    def __contains__(self, element: Any) -> bool:
        equal = self == element                                # False for values that are not numbers, as in MindSpore
        return bool(equal.any()) if isinstance(equal, Tensor) else bool(equal)  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        try:
            text, holding_text = shown(creation.to_print(self), str(self.dtype)), description_of_part(self)
            return f"{text[:-1]}, {holding_text})" if holding_text else text
        except ValueElsewhere:
            return f"Tensor(shape={list(self.shape)}, dtype={self.dtype}, value=<{self._t}>)"

    def __str__(self) -> str:
        try:
            text, holding_text = str(creation.to_print(self)), description_of_part(self)
            return f"{text} ({holding_text})" if holding_text else text
        except ValueElsewhere:
            return f"<{self._t}>"

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec and self.size == 1 else str(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        copied = engine.new_object(type(self))
        copied._t = raw(self).clone()
        memo[id(self)] = copied
        import copy

        copied.__dict__.update({key: copy.deepcopy(value, memo) for key, value in copied_attributes(self).items()})
        return copied  # type: ignore[no-any-return]

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _rebuild, (type(self), creation.host(self).contiguous(), copied_attributes(self))

    # ---- gradients

    def register_hook(self, hook: Callable[[Any], Any]) -> _TensorHookHandle:
        """Call `hook(gradient)` when a gradient of this Tensor is computed; its result, if not None, replaces the gradient.

        The handle's `remove()` removes the hook. Raises TypeError for a value that is not callable, ValueError for a Parameter inside a
        graph, where each call would register the hook again.
        """
        if not callable(hook):
            raise TypeError(f"Tensor.register_hook({hook!r:.40}): expected a function of a gradient, got {type(hook).__name__}.")
        if self.__parameter__ and thread_state.is_in_graph():
            raise ValueError("Register hook for Parameter inside graph is not supported.\n\nhint: call register_hook before the network.")
        return _TensorHookHandle(gradient_hooks.register(self, hook))

    def hooks(self) -> list[Callable[[Any], Any]]:
        """The functions that `register_hook` attached to this Tensor outside of gradient transforms."""
        return gradient_hooks.hooks_of(self)

    # ---- changes of the complete value

    def assign_value(self, value: Tensor) -> Tensor:
        """Copy the values of `value`, even if shape or dtype differ; return the Tensor."""
        source = raw(value)
        if source.shape == self._t.shape and source.dtype is self._t.dtype:
            engine.write(self, source)
        else:
            rebind(self, source.clone())
        return self

    assign_value_cpp = assign_value

    def set_dtype(self, dtype: Any) -> dtypes.Type:
        """Cast the values in place to `dtype`; return the dtype."""
        rebind(self, raw(self).to(dtypes.to_torch(dtype)))
        return self.dtype

    def set_const_arg(self, const_arg: bool = True) -> Tensor:
        """Set whether a graph treats the Tensor, as an argument, as a constant, which has no effect here; return the Tensor."""
        if not isinstance(const_arg, bool):
            raise TypeError(message(f"Tensor.set_const_arg({const_arg!r:.40})", with_type("a bool", const_arg)))
        self.const_arg = const_arg
        return self

    def init_data(self, slice_index: int | None = None, shape: Any = None, opt_shard_group: Any = None) -> Tensor:
        """Draw the initial values, if that has not happened yet; return the Tensor itself.

        With `slice_index` they are drawn from the seed of the program plus this index, and NumPy's stream is seeded before and after, as
        in MindSpore, so that devices with the same slice have the same values. `shape` is the shape of the slice.
        """
        from torchspore.mindspore.common import deferred_init

        return deferred_init.draw(self, slice_index, shape)  # type: ignore[no-any-return]

    def to_tensor(self, slice_index: int | None = None, shape: Any = None, opt_shard_group: Any = None) -> Tensor:
        """The name of `init_data` in 1.x."""
        return self.init_data(slice_index, shape, opt_shard_group)

    def data_sync(self, need_wait: bool = True) -> None:
        """Wait until the values exist, with `need_wait`; reads wait automatically."""
        if need_wait:
            pynative.wait()

    def flush_from_cache(self) -> None:
        """Do nothing: there is no cache on the way to the host."""


class _TensorHookHandle:
    """Removes a hook on a gradient."""

    def __init__(self, take_away: Callable[[], None]) -> None:
        self._take_away = take_away

    def remove(self) -> None:
        """Remove the hook; a second call has no effect."""
        self._take_away()


def check_device(call: str, device: Any) -> None:
    """Raises TypeError or ValueError unless `device` is where Tensors are created: the device of the process, by target or with its index.

    If TORCHSPORE_DEVICE chose another device than the program names, the chosen one is meant.
    """
    home = placing.home()
    if not isinstance(device, str):
        raise TypeError(f"{call}(device={device!r:.40}): expected {home!r} or None, got {type(device).__name__}.")
    if not placing.is_home(device):
        raise ValueError(
            f"{call}(device={device!r:.40}): expected {home!r} or None.\n\nhint: write set_context(device_target=...) for all Tensors, or "
            "move_to for a single one."
        )


def _check_dtype(dtype: Any) -> None:
    if not isinstance(dtype, dtypes.Type) or dtype._torch is None:
        raise TypeError(
            f"Tensor(dtype={dtype!r}): expected a MindSpore dtype that holds numbers."
            f"\n\nhint: write dtype=mindspore.{_hint(dtype)}."
        )


def _hint(dtype: Any) -> str:
    try:
        return repr(dtypes.from_python(np.dtype(dtype).type)).removeprefix("mindspore.")
    except TypeError:
        return "float32"


def description_of_part(tensor: Tensor) -> str:
    """Describe which part of a full value this process stores, or who stores it; empty if it stores all."""
    return getattr(tensor._t, "description", "")


def copied_attributes(tensor: Tensor) -> dict[str, Any]:
    """Return the attributes that a copy has too; hooks and torch Modules belong only to the original."""
    return {name: value for name, value in tensor.__dict__.items() if name not in (gradient_hooks.ATTRIBUTE, engine.LINKS)}


def _rebuild(cls: type[Tensor], t: Any, attributes: dict[str, Any]) -> Tensor:
    tensor = engine.new_object(cls)
    tensor._t = t
    tensor.__dict__.update(attributes)
    return tensor  # type: ignore[no-any-return]


engine.register(Tensor)


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Exchange two Tensors in place: values, class and attributes. Raises TypeError for a value that is not a Tensor."""
    for tensor in (t1, t2):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"swap_tensors({tensor!r:.40}): expected two Tensors, got {type(tensor).__name__}.")
        tensor.init_data()
    t1.__class__, t2.__class__ = t2.__class__, t1.__class__
    t1.__dict__, t2.__dict__ = t2.__dict__, t1.__dict__
    t1._t, t2._t = t2._t, t1._t


def tensor(
    input_data: Any = None, dtype: Any = None, shape: Any = None, init: Any = None, const_arg: bool = False, device: str | None = None,
) -> Tensor:
    """Return a Tensor, as a call of the class does."""
    return Tensor(input_data, dtype, shape, init, const_arg, device)
