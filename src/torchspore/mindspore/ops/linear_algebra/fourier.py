"""Fourier transforms and their windows."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from torchspore.engine.devices import device
from torchspore.mindspore.ops.declaration.arguments import as_dtype
from torchspore.mindspore.ops.declaration.declare import op
from torchspore.mindspore.ops.declaration.limits import small

T = torch.Tensor


def _single(x: T) -> T:
    """Return x, in float32 if it is half precision."""
    return x.to(torch.float32) if x.dtype in (torch.float16, torch.bfloat16) else x


def _transform_1d(name: str, doc: str, method: bool = True) -> Callable[..., T]:
    """Build a transform along one axis from the torch function of this name."""
    compute = getattr(torch.fft, name)

    def body(input: T, n: int | None = None, dim: int = -1, norm: str | None = None) -> T:
        return compute(_single(input), n, dim, small(norm))

    return _declare_transform(body, name, doc, method)


def _transform_2d(name: str, doc: str) -> Callable[..., T]:
    """Build a transform along two axes from the torch function of this name."""
    compute = getattr(torch.fft, name)

    def body(input: T, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> T:
        return compute(_single(input), s, dim, small(norm))

    return _declare_transform(body, name, doc, True)


def _transform_nd(name: str, doc: str) -> Callable[..., T]:
    """Build a transform along any axes from the torch function of this name."""
    compute = getattr(torch.fft, name)

    def body(input: T, s: Any = None, dim: Any = None, norm: str | None = None) -> T:
        return compute(_single(input), s, dim, small(norm))

    return _declare_transform(body, name, doc, True)


def _declare_transform(body: Callable[..., T], name: str, doc: str, method: bool) -> Callable[..., T]:
    body.__name__ = body.__qualname__ = name
    body.__doc__ = doc
    return op(methods=(name,) if method else ())(body)


fft = _transform_1d("fft", "The discrete Fourier transform along `dim`, truncated or zero-padded to length n.")
ifft = _transform_1d("ifft", "The inverse of `fft`.")
rfft = _transform_1d("rfft", "The first half of the Fourier transform of real numbers; the second half mirrors it.")
irfft = _transform_1d("irfft", "The inverse of `rfft`: n real numbers, by default 2 * (length - 1).")
hfft = _transform_1d("hfft", "The Fourier transform of a Hermitian sequence from its first half: real numbers.")
ihfft = _transform_1d("ihfft", "The inverse of `hfft`.")
fft2 = _transform_2d("fft2", "The Fourier transform along two axes.")
ifft2 = _transform_2d("ifft2", "The inverse of `fft2`.")
rfft2 = _transform_2d("rfft2", "The Fourier transform of real numbers along two axes, half of the last.")
irfft2 = _transform_2d("irfft2", "The inverse of `rfft2`.")
hfft2 = _transform_2d("hfft2", "`hfft` along two axes.")
ihfft2 = _transform_2d("ihfft2", "The inverse of `hfft2`.")
fftn = _transform_nd("fftn", "The Fourier transform along the axes `dim`, or all.")
ifftn = _transform_nd("ifftn", "The inverse of `fftn`.")
rfftn = _transform_nd("rfftn", "The Fourier transform of real numbers along the axes `dim`, half of the last.")
irfftn = _transform_nd("irfftn", "The inverse of `rfftn`.")
hfftn = _transform_nd("hfftn", "`hfft` along the axes `dim`.")
ihfftn = _transform_nd("ihfftn", "The inverse of `hfftn`.")


@op(methods=("fftshift",))
def fftshift(input: T, dim: Any = None) -> T:
    """Move frequency 0 to the middle along `dim`, or along all axes."""
    return torch.fft.fftshift(input, dim)


@op(methods=("ifftshift",))
def ifftshift(input: T, dim: Any = None) -> T:
    """The inverse of `fftshift`."""
    return torch.fft.ifftshift(input, dim)


@op()
def fftfreq(n: int, d: float = 1.0, dtype: Any = None) -> T:
    """The frequencies of the elements of `fft` of n samples with spacing d."""
    return torch.fft.fftfreq(n, d, dtype=as_dtype(dtype) or torch.float32, device=device.current())


@op()
def rfftfreq(n: int, d: float = 1.0, dtype: Any = None) -> T:
    """The frequencies of the elements of `rfft` of n samples with spacing d."""
    return torch.fft.rfftfreq(n, d, dtype=as_dtype(dtype) or torch.float32, device=device.current())


@op(primitive="FFTWithSize", init=("signal_ndim", "inverse", "real", "norm", "onesided", "signal_sizes"))
def _fft_with_size(
    x: T, signal_ndim: int, inverse: bool, real: bool, norm: str = "backward", onesided: bool = True, signal_sizes: Any = (),
) -> T:
    """The Fourier transform of the last `signal_ndim` axes, or its inverse, of complex or (with `real`) of real signals."""
    axes = tuple(range(-signal_ndim, 0))
    if not real:
        return (torch.fft.ifftn if inverse else torch.fft.fftn)(x, None, axes, norm)
    if inverse:
        lengths = tuple(signal_sizes) or None
        if onesided:
            return torch.fft.irfftn(x, lengths, axes, norm)
        return torch.fft.ifftn(x, lengths, axes, norm).real.clone()
    return (torch.fft.rfftn if onesided else torch.fft.fftn)(x, None, axes, norm)


def _window(make: Any, length: Any, periodic: bool, dtype: torch.dtype | None, *shape: float) -> T:
    size = int(length.reshape(-1)[0]) if isinstance(length, T) else int(length)
    if size < 0:
        raise ValueError(f"expected a length from 0 on, got {size}.")
    return make(size, periodic, *shape, dtype=torch.float64, device=device.current()).to(dtype)


@op()
def bartlett_window(window_length: T, periodic: bool = True, *, dtype: Any = None) -> T:
    """The triangular window: shape (window_length,), float32 unless `dtype` says otherwise."""
    return _window(torch.bartlett_window, window_length, periodic, as_dtype(dtype) or torch.float32)


@op(primitive="BartlettWindow", init=("periodic", "dtype"))
def _bartlett_window(window_length: T, periodic: bool = True, dtype: Any = torch.float32) -> T:
    """The triangular window: shape (window_length,)."""
    return _window(torch.bartlett_window, window_length, periodic, as_dtype(dtype))


@op()
def blackman_window(window_length: T, periodic: bool = True, *, dtype: Any = None) -> T:
    """The Blackman window: shape (window_length,), float32 unless `dtype` says otherwise."""
    return _window(torch.blackman_window, window_length, periodic, as_dtype(dtype) or torch.float32)


@op(primitive="BlackmanWindow", init=("periodic", "dtype"))
def _blackman_window(window_length: T, periodic: bool = True, dtype: Any = torch.float32) -> T:
    """The Blackman window: shape (window_length,)."""
    return _window(torch.blackman_window, window_length, periodic, as_dtype(dtype))


@op()
def hamming_window(window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *, dtype: Any = None) -> T:
    """alpha - beta * cos, one period: shape (window_length,), float32 unless `dtype` says otherwise."""
    return _window(torch.hamming_window, window_length, periodic, as_dtype(dtype) or torch.float32, alpha, beta)


@op(primitive="HammingWindow", init=("periodic", "alpha", "beta", "dtype"))
def _hamming_window(length: T, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, dtype: Any = torch.float32) -> T:
    """alpha - beta * cos, one period: shape (length,)."""
    return _window(torch.hamming_window, length, periodic, as_dtype(dtype), alpha, beta)


@op()
def hann_window(window_length: int, periodic: bool = True, *, dtype: Any = None) -> T:
    """(1 - cos) / 2, one period: shape (window_length,), float64 unless `dtype` says otherwise."""
    return _window(torch.hann_window, window_length, periodic, as_dtype(dtype) or torch.float64)


@op()
def kaiser_window(window_length: int, periodic: bool = True, beta: float = 12.0, *, dtype: Any = None) -> T:
    """The Kaiser window: shape (window_length,), float64 unless `dtype` says otherwise."""
    return _window(torch.kaiser_window, window_length, periodic, as_dtype(dtype) or torch.float64, beta)


@op()
def stft(
    x: T, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: T | None = None, center: bool = True,
    pad_mode: str = "REFLECT", normalized: bool = False, onesided: bool | None = None, return_complex: bool | None = None,
) -> T:
    """The Fourier transforms of short frames of a signal (..., L): shape (..., frequencies, frames), plus an axis of 2 if not complex."""
    if center:
        x = _padded(x, n_fft // 2, pad_mode)
    hop = n_fft // 4 if hop_length is None else hop_length
    length = n_fft if win_length is None else win_length
    shape = torch.ones(length, dtype=x.real.dtype, device=x.device) if window is None else window
    half = not x.is_complex() if onesided is None else onesided
    return _pieces(x, shape, n_fft, hop, length, normalized, half, x.is_complex() if return_complex is None else return_complex)


def _padded(x: T, amount: int, pad_mode: str) -> T:
    mode = {"REFLECT": "reflect", "CONSTANT": "constant"}.get(pad_mode.upper())
    if mode is None:
        raise ValueError(f"pad_mode={pad_mode!r}: expected 'REFLECT' or 'CONSTANT'.")
    return torch.nn.functional.pad(x.reshape(1, -1, x.shape[-1]), [amount, amount], mode).reshape(*x.shape[:-1], -1)


@op(primitive="STFT", init=("n_fft", "hop_length", "win_length", "normalized", "onesided", "return_complex"))
def _stft(x: T, window: T, n_fft: int, hop_length: int, win_length: int, normalized: bool, onesided: bool, return_complex: bool) -> T:
    """The Fourier transforms of short frames of a signal (..., L): shape (..., frequencies, frames), plus an axis of 2 if not complex."""
    return _pieces(x, window, n_fft, hop_length, win_length, normalized, onesided, return_complex)


def _pieces(
    x: T, window: T, n_fft: int, hop: int, length: int, normalized: bool, half: bool, as_complex: bool,
) -> T:
    before = (n_fft - length) // 2
    window = torch.nn.functional.pad(window, [before, n_fft - length - before])
    pieces = x.unfold(-1, n_fft, hop) * window
    out = (torch.fft.rfft if half else torch.fft.fft)(pieces, norm="ortho" if normalized else None).mT
    return out if as_complex else torch.view_as_real(out.contiguous()).clone()
