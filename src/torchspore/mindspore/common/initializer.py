"""Initial values: `initializer('normal', shape)` and the classes behind the names."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from torchspore.base.text import message, short
from torchspore.engine.random import philox
from torchspore.engine.random.initial_values import InitialValues
from torchspore.engine.tensors import creation, dtypes
from torchspore.engine.tensors.tensor import write
from torchspore.mindspore.common.deferred_init import is_delay_requested, is_table_of_server_job, postpone
from torchspore.mindspore.common.seed import _get_graph_seed, get_seed
from torchspore.mindspore.common.tensor import Tensor


class Initializer:
    """The base class. A subclass fills the array `arr` in `_initialize(self, arr)`; `arr` has the shape and dtype of the Tensor.

    A bfloat16 Tensor is filled through a float32 array, because NumPy has no bfloat16.
    """

    def __init__(self, **kwargs: Any) -> None:
        self._kwargs = kwargs
        self._seed: int | None = None

    @property
    def seed(self) -> tuple[int, int]:
        """Return (seed of the program, seed of this use), as MindSpore counts them; (value + 1, 0) after `seed = value`."""
        if self.__dict__.get("_seed") is None:
            return _get_graph_seed(get_seed() or 0, "init")
        return self._seed + 1, 0  # type: ignore[operator]

    @seed.setter
    def seed(self, value: int | None) -> None:
        self._seed = value

    def _initialize(self, arr: np.ndarray[Any, Any]) -> None:
        raise NotImplementedError(f"{type(self).__name__}: expected a method _initialize(self, arr).")

    def __call__(self, arr: np.ndarray[Any, Any]) -> None:
        return self._initialize(arr)

    def _values_(self, shape: Sequence[int], dtype: Any) -> Any:
        """Draw the initial values for `shape` on the host; return them as a torch tensor on the device of the program."""
        return creation.from_filler(shape, dtype, self)

    def _describe_(self, shape: Sequence[int], dtype: Any) -> InitialValues | None:
        """Return what the values will be, with the seed that this use takes from NumPy's stream; None if only `_initialize` knows."""
        if type(self) not in _DESCRIBED:
            return None
        recorder = _Recorder(tuple(shape))
        self._initialize(recorder)                                # type: ignore[arg-type]
        if recorder.distribution is None:
            return None
        return InitialValues(*recorder.distribution, tuple(shape), dtypes.to_torch(dtype))

    def _prepare_(self, tensor: Tensor, shape: Sequence[int], dtype: Any) -> None:
        """Give `tensor` its values, or postpone this until the first use, when MindSpore draws them."""
        postpone(tensor, shape, dtype)


class _Fixed(Initializer):
    """An Initializer that draws no random numbers: the Tensor has its values at once."""

    def _prepare_(self, tensor: Tensor, shape: Sequence[int], dtype: Any) -> None:
        if is_delay_requested() or is_table_of_server_job(shape, dtype):
            postpone(tensor, shape, dtype)
        else:
            tensor._t = self._values_(shape, dtype)


class _Recorder:
    """Takes the place of an array in `Initializer._initialize`, and records the distribution that would fill it."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape, self.ndim = shape, len(shape)
        self.distribution: tuple[str, int, tuple[float, ...]] | None = None
        """The name of the distribution, its seed and its arguments."""

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(value, (int, float, np.number)):
            self.distribution = "constant", 0, (value,)            # type: ignore[assignment]


fills = True
"""False inside `no_init_parameters`: a Tensor from an Initializer is then filled with zeros."""


def _assignment(arr: np.ndarray[Any, Any], num: Any) -> np.ndarray[Any, Any]:
    """Write the number or the array `num`, which is broadcast, into `arr`; return `arr`."""
    if isinstance(num, np.ndarray):
        num = num.reshape(arr.shape)
    arr[...] = num
    return arr


def _calculate_fan_in_and_fan_out(shape: Sequence[int]) -> tuple[int, int]:
    """Return the inputs and outputs of one unit: (in * kernel, out * kernel) for weights of shape (out, in, kernel...)."""
    if len(shape) < 2:
        raise ValueError(f"initial values for shape {tuple(shape)}: fans need at least two axes.\n\nhint: use Normal() for vectors.")
    kernel = math.prod(shape[2:])
    return shape[1] * kernel, shape[0] * kernel


def _calculate_in_and_out(arr: np.ndarray[Any, Any]) -> tuple[int, int]:
    """Return the inputs and outputs of one unit of the weights `arr`."""
    return _calculate_fan_in_and_fan_out(arr.shape)


def _calculate_correct_fan(shape: Sequence[int], mode: str) -> int:
    """Return the inputs of one unit for mode 'fan_in', its outputs for 'fan_out'. Raises ValueError for another mode."""
    if mode.lower() not in ("fan_in", "fan_out"):
        raise ValueError(f"mode={mode!r}: expected 'fan_in' or 'fan_out'.")
    return _calculate_fan_in_and_fan_out(shape)[mode.lower() == "fan_out"]


def _numpy_seed() -> int:
    """Return the seed of one random Tensor: a number from NumPy's global stream, as in MindSpore, so `np.random.seed` determines it."""
    return int(np.random.randint(low=1, high=1 << 63, dtype=np.int64))


def _check_sigma(sigma: float) -> None:
    if sigma < 0:
        raise ValueError(message(f"normal initial values with sigma={sigma!r}", "a number from 0 on"))


def _check_truncation(sigma: float) -> None:
    _check_sigma(sigma)
    if sigma == 0:
        raise ValueError("truncated normal initial values with sigma=0: expected a positive number.")


def _init_random_normal(mean: float, sigma: float, shape: Sequence[int]) -> np.ndarray[Any, Any]:
    """Return normal numbers with deviation `sigma`, float32. Raises ValueError for a negative `sigma`."""
    _check_sigma(sigma)
    values = np.empty(tuple(shape), np.float32)
    philox.fill_normal(values, _numpy_seed(), mean, sigma)
    return values


def random_normal(shape: Sequence[int], seed: int, seed2: int, output_tensor: Tensor) -> bool:
    """Fill `output_tensor`, of this shape, with standard normal numbers, as 1.x does; return True.

    Equal seeds give equal numbers; two seeds of 0 give new ones. Raises TypeError for a value that is not a Tensor, ValueError for a
    Tensor of another shape.
    """
    if not isinstance(output_tensor, Tensor):
        raise TypeError(message(f"random_normal(output_tensor={short(output_tensor)})", f"a Tensor, got {type(output_tensor).__name__}"))
    if tuple(shape) != tuple(output_tensor.shape):
        raise ValueError(message(f"random_normal({list(shape)}, output_tensor of shape {list(output_tensor.shape)})", "one shape"))
    stream = np.random.Generator(np.random.PCG64([seed % 2**63, seed2 % 2**63] if seed or seed2 else [_numpy_seed()]))
    write(output_tensor, creation.from_data(stream.standard_normal(tuple(shape)).astype(np.float32), output_tensor.dtype))
    return True


def _init_random_uniform(a: float, b: float, shape: Sequence[int]) -> np.ndarray[Any, Any]:
    """Return uniform numbers from `a` to `b`, float32."""
    values = np.empty(tuple(shape), np.float32)
    philox.fill_uniform(values, _numpy_seed(), a, b)
    return values


def _init_truncated_normal(a: float, b: float, mean: float, sigma: float, shape: Sequence[int]) -> np.ndarray[Any, Any]:
    """Return normal numbers with deviation `sigma` from `a` to `b`, float32. Raises ValueError for a `sigma` that is not positive."""
    _check_truncation(sigma)
    values = np.empty(tuple(shape), np.float32)
    philox.fill_truncated_normal(values, _numpy_seed(), a, b, mean, sigma)
    return values


def _init_random_normal_inplace(mean: float, sigma: float, arr: np.ndarray[Any, Any]) -> None:
    """Fill `arr` with normal numbers."""
    if isinstance(arr, _Recorder):
        _check_sigma(sigma)
        arr.distribution = "normal", _numpy_seed(), (mean, sigma)
    elif _is_plain(arr):
        _check_sigma(sigma)
        philox.fill_normal(arr, _numpy_seed(), mean, sigma)
    else:
        _assignment(arr, _init_random_normal(mean, sigma, arr.shape))


def _init_random_uniform_inplace(a: float, b: float, arr: np.ndarray[Any, Any]) -> None:
    """Fills `arr` with uniform numbers from `a` to `b`."""
    if isinstance(arr, _Recorder):
        arr.distribution = "uniform", _numpy_seed(), (a, b)
    elif _is_plain(arr):
        philox.fill_uniform(arr, _numpy_seed(), a, b)
    else:
        _assignment(arr, _init_random_uniform(a, b, arr.shape))


def _init_truncated_normal_inplace(a: float, b: float, mean: float, sigma: float, arr: np.ndarray[Any, Any]) -> None:
    """Fill `arr` with the numbers of `_init_truncated_normal`."""
    if isinstance(arr, _Recorder):
        _check_truncation(sigma)
        arr.distribution = "truncated", _numpy_seed(), (a, b, mean, sigma)
    else:
        _assignment(arr, _init_truncated_normal(a, b, mean, sigma, arr.shape))


def _is_plain(arr: np.ndarray[Any, Any]) -> bool:
    """Return whether values can be drawn directly into `arr`."""
    return isinstance(arr, np.ndarray) and arr.dtype == np.float32 and arr.flags.c_contiguous


def _calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Return the factor of He's initializers for this nonlinearity; `param` is the slope of 'leaky_relu'. Raises ValueError for others."""
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else float(param)
        return math.sqrt(2.0 / (1 + slope**2))
    gains = {"sigmoid": 1.0, "linear": 1.0, "conv1d": 1.0, "conv2d": 1.0, "conv3d": 1.0, "tanh": 5.0 / 3, "relu": math.sqrt(2.0)}
    gains |= dict.fromkeys(("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), 1.0)
    if nonlinearity not in gains:
        raise ValueError(f"nonlinearity={nonlinearity!r}: expected one of {', '.join([*gains, 'leaky_relu'])}.")
    return gains[nonlinearity]


class Zero(_Fixed):
    """Zeros."""

    def _initialize(self, arr: np.ndarray[Any, Any]) -> None:
        arr[...] = 0

    def _values_(self, shape: Sequence[int], dtype: Any) -> Any:
        """Zeros in the tensor's memory, without another allocation: optimizer states use it."""
        return creation.filled(shape, 0, dtype)


class One(_Fixed):
    """Ones."""

    def _initialize(self, arr: np.ndarray[Any, Any]) -> None:
        arr[...] = 1


class Constant(_Fixed):
    """The number `value` everywhere."""

    def __init__(self, value: float) -> None:
        super().__init__(value=value)
        self.value = value

    def _initialize(self, arr: np.ndarray[Any, Any]) -> None:
        arr[...] = self.value


class Uniform(Initializer):
    """Uniform in (-scale, scale)."""

    def __init__(self, scale: float = 0.07) -> None:
        super().__init__(scale=scale)
        self.scale = scale

    def _initialize(self, arr: np.ndarray[Any, Any]) -> None:
        _init_random_uniform_inplace(-self.scale, self.scale, arr)


class Normal(Initializer):
    """Normal with standard deviation `sigma` and mean `mean`."""

    def __init__(self, sigma: float = 0.01, mean: float = 0.0) -> None:
        super().__init__(sigma=sigma, mean=mean)
        self.sigma, self.mean = sigma, mean

    def _initialize(self, arr: np.ndarray[Any, Any]) -> None:
        _init_random_normal_inplace(self.mean, self.sigma, arr)


class TruncatedNormal(Initializer):
    """Normal numbers restricted to [a, b]: values, not deviations, so the defaults cut off nothing for a small `sigma`."""

    def __init__(self, sigma: float = 0.01, mean: float = 0.0, a: float = -2.0, b: float = 2.0) -> None:
        super().__init__(sigma=sigma, mean=mean, a=a, b=b)
        self.sigma, self.mean, self.a, self.b = sigma, mean, a, b

    def _initialize(self, arr: np.ndarray[Any, Any]) -> None:
        _init_truncated_normal_inplace(self.a, self.b, self.mean, self.sigma, arr)


class XavierUniform(Initializer):
    """Uniform within gain * sqrt(6 / (inputs + outputs)) (Glorot and Bengio, 2010)."""

    def __init__(self, gain: float = 1) -> None:
        super().__init__(gain=gain)
        self.gain = gain

    def _initialize(self, arr: np.ndarray[Any, Any]) -> None:
        bound = self.gain * math.sqrt(6.0 / sum(_calculate_fan_in_and_fan_out(arr.shape)))
        _init_random_uniform_inplace(-bound, bound, arr)


class XavierNormal(Initializer):
    """Normal with deviation gain * sqrt(2 / (inputs + outputs)) (Glorot and Bengio, 2010)."""

    def __init__(self, gain: float = 1) -> None:
        super().__init__(gain=gain)
        self.gain = gain

    def _initialize(self, arr: np.ndarray[Any, Any]) -> None:
        _init_random_normal_inplace(0, self.gain * math.sqrt(2.0 / sum(_calculate_fan_in_and_fan_out(arr.shape))), arr)


class _He(Initializer):
    """Base class of the two He initializers (He et al., 2015)."""

    def __init__(self, negative_slope: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> None:
        super().__init__(negative_slope=negative_slope, mode=mode, nonlinearity=nonlinearity)
        if mode not in ("fan_in", "fan_out"):
            raise ValueError(f"{type(self).__name__}(mode={mode!r}): expected 'fan_in' or 'fan_out'.")
        self.negative_slope, self.mode, self.nonlinearity = negative_slope, mode, nonlinearity

    def _deviation_(self, shape: Sequence[int]) -> float:
        fan = _calculate_fan_in_and_fan_out(shape)[0 if self.mode == "fan_in" else 1]
        return _calculate_gain(self.nonlinearity, self.negative_slope) / math.sqrt(fan)


class HeUniform(_He):
    """Uniform within sqrt(3) * gain / sqrt(fan)."""

    def _initialize(self, arr: np.ndarray[Any, Any]) -> None:
        bound = math.sqrt(3.0) * self._deviation_(arr.shape)
        _init_random_uniform_inplace(-bound, bound, arr)


class HeNormal(_He):
    """Normal with deviation gain / sqrt(fan)."""

    def _initialize(self, arr: np.ndarray[Any, Any]) -> None:
        _init_random_normal_inplace(0, self._deviation_(arr.shape), arr)


class VarianceScaling(Initializer):
    """Random with variance scale / fan."""

    def __init__(self, scale: float = 1.0, mode: str = "fan_in", distribution: str = "truncated_normal") -> None:
        super().__init__(scale=scale, mode=mode, distribution=distribution)
        if scale <= 0:
            raise ValueError(message(f"VarianceScaling(scale={scale!r})", "a number above 0"))
        if mode not in ("fan_in", "fan_out", "fan_avg"):
            raise ValueError(f"VarianceScaling(mode={mode!r}): expected 'fan_in', 'fan_out' or 'fan_avg'.")
        if distribution not in ("uniform", "truncated_normal", "untruncated_normal"):
            raise ValueError(
                f"VarianceScaling(distribution={distribution!r}): expected 'uniform', 'truncated_normal' or 'untruncated_normal'."
            )
        self.scale, self.mode, self.distribution = scale, mode, distribution

    def _initialize(self, arr: np.ndarray[Any, Any]) -> None:
        fan_in, fan_out = _calculate_fan_in_and_fan_out(arr.shape)
        fan = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}[self.mode]
        scale = self.scale / max(1.0, fan)
        if self.distribution == "untruncated_normal":
            _init_random_normal_inplace(0, math.sqrt(scale), arr)
        else:
            # MindSpore 2.10 also draws "truncated_normal" uniformly, because it compares with another spelling (docs/differences.md).
            limit = math.sqrt(3.0 * scale)
            _init_random_uniform_inplace(-limit, limit, arr)


class Orthogonal(Initializer):
    """Orthogonal rows or columns, times `gain` (Saxe et al., 2013)."""

    def __init__(self, gain: float = 1.0) -> None:
        super().__init__(gain=gain)
        self.gain = gain

    def _initialize(self, arr: np.ndarray[Any, Any]) -> None:
        if arr.ndim < 2:
            raise ValueError(f"Orthogonal for shape {arr.shape}: expected at least two axes.")
        rows, columns = arr.shape[0], math.prod(arr.shape[1:])
        drawn = _init_random_normal(0, 1, (rows, columns))
        q, r = np.linalg.qr(drawn.T if rows < columns else drawn)
        q *= np.sign(np.diag(r))
        _assignment(arr, (self.gain * (q.T if rows < columns else q)).reshape(arr.shape))


class Sparse(Initializer):
    """Normal with deviation `sigma`, with the fraction `sparsity` of each column set to 0 (Martens, 2010)."""

    def __init__(self, sparsity: float, sigma: float = 0.01) -> None:
        super().__init__(sparsity=sparsity, sigma=sigma)
        self.sparsity, self.sigma = sparsity, sigma

    def _initialize(self, arr: np.ndarray[Any, Any]) -> None:
        if arr.ndim != 2:
            raise ValueError(f"Sparse for shape {arr.shape}: expected two axes.")
        values = _init_random_normal(0, self.sigma, arr.shape)
        num_zeros = math.ceil(self.sparsity * arr.shape[0])
        for column in range(arr.shape[1]):
            values[np.random.permutation(arr.shape[0])[:num_zeros], column] = 0
        _assignment(arr, values)


class Dirac(_Fixed):
    """Preserves channels: 1 at the middle of the kernel if the output channel is the input channel, else 0."""

    def __init__(self, groups: int = 1) -> None:
        super().__init__(groups=groups)
        self.groups = groups

    def _initialize(self, arr: np.ndarray[Any, Any]) -> None:
        if arr.ndim not in (3, 4, 5):
            raise ValueError(f"Dirac for shape {arr.shape}: expected three, four or five axes.")
        if arr.shape[0] % self.groups:
            raise ValueError(f"Dirac(groups={self.groups}) for shape {arr.shape}: the first axis is not a multiple of groups.")
        arr[...] = 0
        channels_per_group = arr.shape[0] // self.groups
        middle = tuple(k // 2 for k in arr.shape[2:])
        for group in range(self.groups):
            for channel in range(min(channels_per_group, arr.shape[1])):
                arr[(group * channels_per_group + channel, channel, *middle)] = 1


class Identity(_Fixed):
    """The identity matrix."""

    def _initialize(self, arr: np.ndarray[Any, Any]) -> None:
        if arr.ndim != 2:
            raise ValueError(f"Identity for shape {arr.shape}: expected two axes.")
        arr[...] = np.eye(*arr.shape)


_DESCRIBED = frozenset({
    Zero, One, Constant, Uniform, Normal, TruncatedNormal, XavierUniform, XavierNormal, HeUniform, HeNormal, VarianceScaling,
})
"""The Initializers whose values a distribution and a seed describe. Others, also subclasses of these, may do anything."""

_INITIALIZER_ALIAS: dict[str, type[Initializer]] = {
    "zero": Zero, "zeros": Zero, "one": One, "ones": One, "uniform": Uniform, "normal": Normal, "truncatednormal": TruncatedNormal,
    "truncated_normal": TruncatedNormal, "xavieruniform": XavierUniform, "xavier_uniform": XavierUniform, "xaviernormal": XavierNormal,
    "xavier_normal": XavierNormal, "heuniform": HeUniform, "he_uniform": HeUniform, "henormal": HeNormal, "he_normal": HeNormal,
    "orthogonal": Orthogonal, "dirac": Dirac, "identity": Identity, "variancescaling": VarianceScaling, "constant": Constant,
    "sparse": Sparse,
}


def _register(*aliases: str) -> Any:
    """Decorate a user-defined Initializer, which `initializer` then accepts by its lower-case name and by `aliases`."""

    def keep(cls: type[Initializer]) -> type[Initializer]:
        _INITIALIZER_ALIAS.update(dict.fromkeys((cls.__name__.lower(), *aliases), cls))
        return cls

    return keep


def initializer(init: Any, shape: Any = None, dtype: Any = dtypes.float32) -> Tensor:
    """A Tensor of `shape` with initial values.

    `init` is a name ('normal', 'zeros', 'xavier_uniform', …), an Initializer, a number or a Tensor (used unchanged).
    Raises TypeError or ValueError for other values, ValueError for lengths below 1.
    """
    if isinstance(init, Tensor):
        if shape is not None and tuple(shape if not isinstance(shape, int) else (shape,)) != init.shape:
            raise ValueError(f"initializer(Tensor of shape {init.shape}, shape={shape}): expected equal shapes.")
        return init
    sizes = (shape,) if isinstance(shape, int) else tuple(shape if shape is not None else ())
    for size in sizes:
        if not isinstance(size, (int, np.integer)) or isinstance(size, bool) or size < 1:
            raise ValueError(f"initializer(shape={shape!r}): expected lengths from 1 on.")
    if isinstance(init, bool) or not isinstance(init, (str, int, float, np.number, Initializer)):
        raise TypeError(f"initializer({init!r:.40}): expected a name, an Initializer, a number or a Tensor, got {type(init).__name__}.")
    if isinstance(init, str):
        initializer_class = _INITIALIZER_ALIAS.get(init.lower())
        if initializer_class is None or initializer_class in (Constant, Sparse):
            raise ValueError(f"initializer({init!r}): expected one of {', '.join(sorted(n for n in _INITIALIZER_ALIAS if '_' not in n))}.")
        init = initializer_class()
    elif isinstance(init, (int, float, np.number)):
        init = Constant(init if isinstance(init, (int, float)) else init.item())
    if not fills:
        init = Zero()
    return Tensor(shape=sizes, dtype=dtype, init=init)


__all__ = [
    "Constant", "Dirac", "HeNormal", "HeUniform", "Identity", "Initializer", "Normal", "One", "Orthogonal", "Sparse", "TruncatedNormal",
    "Uniform",
    "VarianceScaling", "XavierNormal", "XavierUniform", "Zero", "initializer",
]
