"""Figures along axes, Fourier transforms and windows, searching, and orders of elements."""
from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import ops
from parity.case import case, raised
from parity.forms import probe

M = np.array([[3.0, 1.0, -2.0, 0.5], [0.0, 5.0, 4.0, -1.0]], np.float32)
V = np.array([3.0, 1.0, 4.0, 2.0, 7.0], np.float32)
GAPS = np.array([[3.0, np.nan, 3.0], [2.0, 7.0, 1.0]], np.float32)
I = np.array([3, 1, 3, 2, 7, 1], np.int32)
RUNS = np.array([1, 1, 2, 2, 2, 1, 3], np.int32)
X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
IMAGES = np.arange(64, dtype=np.float32).reshape(4, 4, 2, 2)
SIGNAL = np.cos(np.arange(16, dtype=np.float32)).reshape(2, 8) + np.arange(8, dtype=np.float32) / 8
WAVES = (SIGNAL + 1j * SIGNAL[::-1]).astype(np.complex64)
SORTED = np.array([1.0, 3.0, 5.0], np.float32)
ROWS = np.array([[1.0, 3.0, 5.0], [0.0, 3.0, 9.0]], np.float32)
EMPTY = np.zeros((0, 3), np.float32)
FIVE = np.array(5, np.int64)

FIGURES = {
    "nansum": lambda: probe(ops.nansum, GAPS, by=()), "nansum_axis": lambda: probe(ops.nansum, GAPS, 1, True, by=()),
    "nanmean": lambda: probe(ops.nanmean, GAPS, by=()), "nanmean_axis": lambda: probe(ops.nanmean, GAPS, 0, by=()),
    "median": lambda: probe(ops.median, M), "median_axis": lambda: probe(ops.median, M, 0, True, by=()),
    "Median": lambda: probe(ops.Median(False, 1), M, by=()), "nanmedian": lambda: probe(ops.nanmedian, GAPS, by=()),
    "var_mean": lambda: probe(ops.var_mean, M), "var_mean_axis": lambda: probe(ops.var_mean, M, 1, 1, True),
    "std_mean": lambda: probe(ops.std_mean, M), "std_mean_axis": lambda: probe(ops.std_mean, M, (0, 1), 1),
    "ReduceStd": lambda: probe(ops.ReduceStd(axis=1), M), "ReduceStd_keep": lambda: probe(ops.ReduceStd([0], False, True), M),
    "cummax": lambda: probe(ops.cummax, M, 0, by=()), "cummin": lambda: probe(ops.cummin, M, 1, by=()),
    "Cummax": lambda: probe(ops.Cummax(1), M, by=()),
    "Cummin": lambda: probe(ops.Cummin(0), M, by=()), "cumprod": lambda: probe(ops.cumprod, M + 3, 1),
    "CumProd": lambda: probe(ops.CumProd(), M + 3, 1),
    "CumProd_exclusive": lambda: probe(ops.CumProd(True, True), M, 1, by=()), "logcumsumexp": lambda: probe(ops.logcumsumexp, M, 1),
    "cumprod_integers": lambda: probe(ops.cumprod, I, 0), "CumulativeLogsumexp": lambda: probe(
        ops.CumulativeLogsumexp(), M, np.array(1, np.int64), by=(),
    ),
    "CumulativeLogsumexp_reverse": lambda: probe(ops.CumulativeLogsumexp(True, True), M, np.array(1, np.int64), by=()),
    "aminmax": lambda: probe(ops.aminmax, M), "aminmax_axis": lambda: probe(ops.aminmax, M, axis=1, keepdims=True),
    "bincount": lambda: probe(ops.bincount, I), "bincount_weights": lambda: probe(
        ops.bincount, I, np.arange(6, dtype=np.float32), 12, by=(),
    ),
    "Bincount": lambda: probe(ops.Bincount(), I, np.array(5, np.int32), np.arange(6, dtype=np.float32), by=()),
    "histc": lambda: probe(ops.histc, V, 3, by=()), "histc_range": lambda: probe(ops.histc, V, 4, 0.0, 4.0, by=()),
    "histc_integers": lambda: probe(ops.histc, I, 4, 0.0, 8.0), "Histogram": lambda: probe(ops.Histogram(3, 0.0, 10.0), V, by=()),
    "cov": lambda: probe(ops.cov, M), "cov_correction": lambda: probe(ops.cov, M, correction=0), "cov_weights": lambda: probe(
        ops.cov, M, fweights=np.array([1, 2, 1, 3]), aweights=np.array([0.5, 1.0, 2.0, 1.0], np.float32), by=(),
    ),
    "diff": lambda: probe(ops.diff, M), "diff_axis": lambda: probe(ops.diff, M, 1, 0), "diff_ends": lambda: probe(
        ops.diff, V, prepend=V[:1], append=V[:2], by=(0,),
    ),
    "trapz": lambda: probe(ops.trapz, M), "trapz_at": lambda: probe(ops.trapz, M, np.array([0.0, 1.0, 3.0, 4.0], np.float32), by=(0,)),
    "trapz_dx": lambda: probe(ops.trapz, M, dx=0.5, dim=0), "reduce_sum": lambda: probe(ops.reduce_sum, M, 1), "reduce_mean": lambda: probe(
        ops.reduce_mean, M, (0, 1),
    ),
    "reduce_max": lambda: probe(ops.reduce_max, M), "reduce_min": lambda: probe(ops.reduce_min, M, 0),
    "reduce_sum_integers": lambda: probe(ops.reduce_sum, I),
}  # fmt: skip

WAVE = {
    **{name: (lambda name=name: probe(getattr(ops, name), SIGNAL)) for name in "fft ifft rfft irfft hfft fftshift ifftshift".split()},
    **{name: (lambda name=name: probe(getattr(ops, name), X)) for name in "fft2 ifft2 rfft2 irfft2 hfft2".split()},
    **{name: (lambda name=name: probe(getattr(ops, name), X)) for name in "fftn ifftn rfftn irfftn hfftn".split()},
    # MindSpore's gradients of these are wrong: the conjugate of the half spectrum is left out (docs/differences.md).
    **{name: (lambda name=name: probe(getattr(ops, name), X, by=())) for name in "ihfft ihfft2 ihfftn".split()},
    **{name + "_complex": (lambda name=name: probe(getattr(ops, name), WAVES)) for name in "fft ifft irfft hfft fft2 ifft2 irfftn".split()},
    **{name + "_sized": (lambda name=name: probe(getattr(ops, name), SIGNAL, 6, 1, "ortho")) for name in (
        "fft ifft rfft irfft hfft"
    ).split()},
    **{name + "_sized": (lambda name=name: probe(getattr(ops, name), X, (2, 3), (0, 2), "forward")) for name in "fftn rfftn fft2".split()},
    "fftfreq": lambda: probe(ops.fftfreq, 5, 0.5), "rfftfreq": lambda: probe(ops.rfftfreq, 6), "fftshift_dim": lambda: probe(
        ops.fftshift, X, (0, 2),
    ),
    "fftfreq_f64": lambda: probe(ops.fftfreq, 4, dtype=ms.float64), "FFTWithSize": lambda: probe(ops.FFTWithSize(1, False, True), SIGNAL),
    "FFTWithSize_inverse": lambda: probe(ops.FFTWithSize(1, True, False), WAVES), "FFTWithSize_whole": lambda: probe(
        ops.FFTWithSize(2, False, True, "ortho", False), X,
    ),
    "FFTWithSize_back": lambda: probe(ops.FFTWithSize(1, True, True, signal_sizes=(7,)), WAVES[:, :4], by=()),
    "bartlett_window": lambda: probe(ops.bartlett_window, FIVE), "bartlett_window_symmetric": lambda: probe(
        ops.bartlett_window, FIVE, False, dtype=ms.float64,
    ),
    "blackman_window": lambda: probe(ops.blackman_window, FIVE), "blackman_window_symmetric": lambda: probe(
        ops.blackman_window, FIVE, False, dtype=ms.float16,
    ),
    "hamming_window": lambda: probe(ops.hamming_window, 5), "hamming_window_shape": lambda: probe(
        ops.hamming_window, 6, False, 0.5, 0.4, dtype=ms.float64,
    ),
    "hann_window": lambda: probe(ops.hann_window, 5), "hann_window_symmetric": lambda: probe(ops.hann_window, 6, False, dtype=ms.float32),
    "kaiser_window": lambda: probe(ops.kaiser_window, 5),
    "kaiser_window_beta": lambda: probe(ops.kaiser_window, 6, False, 8.0, dtype=ms.float32),
    "BartlettWindow": lambda: probe(ops.BartlettWindow(False), FIVE), "BlackmanWindow": lambda: probe(ops.BlackmanWindow(), FIVE),
    "HammingWindow": lambda: probe(ops.HammingWindow(True, 0.5, 0.4), FIVE.reshape(1)), "stft": lambda: probe(ops.stft, SIGNAL, 4, by=()),
    "stft_window": lambda: probe(
        ops.stft, SIGNAL, 4, 2, 3, np.array([0.5, 1.0, 0.25], np.float32), return_complex=True, by=(),
    ),
    "stft_plain": lambda: probe(ops.stft, SIGNAL, 4, center=False, normalized=True, onesided=False, by=()),
    "STFT": lambda: probe(ops.STFT(4, 2, 4, False, True, True), SIGNAL, np.ones(4, np.float32), by=()),
}  # fmt: skip

CALLS = {
    "unique": lambda: probe(ops.unique, I), "Unique": lambda: probe(ops.Unique(), I), "unique_matrix": lambda: probe(
        ops.unique, np.array([[5, 2], [2, 9]]),
    ),
    "unique_reals": lambda: probe(ops.unique, V, by=()), "unique_with_pad": lambda: probe(ops.unique_with_pad, I, 9),
    "UniqueWithPad": lambda: probe(ops.UniqueWithPad(), I, np.array(0, np.int32)),
    "unique_consecutive": lambda: probe(ops.unique_consecutive, RUNS), "unique_consecutive_all": lambda: probe(
        ops.unique_consecutive, RUNS, True, True,
    ),
    "unique_consecutive_dim": lambda: probe(ops.unique_consecutive, np.array([[1, 1, 2], [3, 3, 4]], np.int32), True, True, 1),
    "UniqueConsecutive": lambda: probe(ops.UniqueConsecutive(True, True), RUNS), "searchsorted": lambda: probe(
        ops.searchsorted, SORTED, V, by=(),
    ),
    "searchsorted_right": lambda: probe(ops.searchsorted, ROWS, ROWS, right=True, by=()), "SearchSorted": lambda: probe(
        ops.SearchSorted(right=True), SORTED, V, by=(),
    ),
    "LowerBound": lambda: probe(ops.LowerBound(), ROWS, ROWS, by=()),
    "UpperBound": lambda: probe(ops.UpperBound(ms.int64), ROWS, ROWS, by=()),
    "Bucketize": lambda: probe(ops.Bucketize([1.0, 3.0]), V, by=()), "argwhere": lambda: probe(ops.argwhere, M, by=()),
    "NonZero": lambda: probe(ops.NonZero(), I), "MaskedSelect": lambda: probe(ops.MaskedSelect(), M, M > 0), "MaskedScatter": lambda: probe(
        ops.MaskedScatter(), M, M > 0, V, by=(),
    ),
    "msort": lambda: probe(ops.msort, M), "top_k": lambda: probe(ops.top_k, M, 2),
    "NthElement": lambda: probe(ops.NthElement(), M, 1, by=()),
    "NthElement_reverse": lambda: probe(ops.NthElement(True), M, np.array(1, np.int32), by=()), "ListDiff": lambda: probe(
        ops.ListDiff(), I, np.array([3, 9], np.int32),
    ),
    "ListDiff_int64": lambda: probe(ops.ListDiff(ms.int64), V, SORTED, by=()), "UnravelIndex": lambda: probe(
        ops.UnravelIndex(), np.array([5, 3]), np.array([2, 3]),
    ),
    "intopk": lambda: probe(ops.intopk, M, np.array([0, 2], np.int32), 2), "InTopK": lambda: probe(
        ops.InTopK(1), M, np.array([0, 2], np.int32),
    ),
    "RaggedRange": lambda: probe(ops.RaggedRange(ms.int64), np.array([1, 2]), np.array([3, 5]), np.array([1, 2])),
    "InvertPermutation": lambda: probe(ops.InvertPermutation(), (2, 0, 1)),
}  # fmt: skip

ORDERED = {
    "hstack": lambda: probe(ops.hstack, (M, M)), "hstack_vectors": lambda: probe(ops.hstack, [V, V]), "vstack": lambda: probe(
        ops.vstack, (V, V),
    ),
    "row_stack": lambda: probe(ops.row_stack, (M, M)), "dstack": lambda: probe(ops.dstack, (M, M)), "column_stack": lambda: probe(
        ops.column_stack, (V, V),
    ),
    "hsplit": lambda: probe(ops.hsplit, M, 2), "hsplit_at": lambda: probe(ops.hsplit, M, (1, 3)), "vsplit": lambda: probe(ops.vsplit, M, 2),
    "dsplit": lambda: probe(ops.dsplit, X, 2), "tensor_split": lambda: probe(ops.tensor_split, V, 2), "tensor_split_at": lambda: probe(
        ops.tensor_split, M, (1, 3), 1,
    ),
    "atleast_1d": lambda: probe(ops.atleast_1d, np.array(2.0, np.float32)), "atleast_2d": lambda: probe(ops.atleast_2d, [V, M]),
    "atleast_3d": lambda: probe(ops.atleast_3d, V), "atleast_3d_matrix": lambda: probe(ops.atleast_3d, M), "block_diag": lambda: probe(
        ops.block_diag, M, V,
    ),
    "cartesian_prod": lambda: probe(ops.cartesian_prod, V, V[:2]), "combinations": lambda: probe(ops.combinations, V),
    "combinations_again": lambda: probe(ops.combinations, V[:3], 3, True), "rot90": lambda: probe(ops.rot90, M, 1, (0, 1)),
    "rot90_back": lambda: probe(ops.rot90, X, -1, [1, 2]), "fliplr": lambda: probe(ops.fliplr, M), "flipud": lambda: probe(ops.flipud, M),
    "reverse": lambda: probe(ops.reverse, M, [0]), "vander": lambda: probe(ops.vander, V, by=()), "vander_3": lambda: probe(
        ops.vander, V, 3, by=(),
    ),
    "Meshgrid": lambda: probe(ops.Meshgrid(), (V, V[:2])), "Meshgrid_ij": lambda: probe(ops.Meshgrid("ij"), (V, V[:2])),
    "LinSpace": lambda: probe(ops.LinSpace(), np.array(1.0, np.float32), np.array(2.0, np.float32), 6, by=()),
    "expand": lambda: probe(ops.expand, V, np.array([2, 5])),
    "TransposeView": lambda: probe(ops.TransposeView(), M, (1, 0)), "SelectView": lambda: probe(ops.SelectView(), M, 1, 0),
    "DepthToSpace": lambda: probe(ops.DepthToSpace(2), IMAGES), "SpaceToDepth": lambda: probe(ops.SpaceToDepth(2), IMAGES),
    "space_to_batch_nd": lambda: probe(ops.space_to_batch_nd, IMAGES, [2, 2], [[0, 0], [2, 0]]), "SpaceToBatchND": lambda: probe(
        ops.SpaceToBatchND([2, 2], [[1, 1], [0, 2]]), IMAGES,
    ),
    "batch_to_space_nd": lambda: probe(ops.batch_to_space_nd, IMAGES, [2, 2], [[0, 1], [1, 0]]), "BatchToSpaceND": lambda: probe(
        ops.BatchToSpaceND([2, 2], [[0, 0], [0, 0]]), IMAGES,
    ),
    "reverse_sequence": lambda: probe(ops.reverse_sequence, M, np.array([2, 3]), 1), "ReverseSequence": lambda: probe(
        ops.ReverseSequence(0, 1), M, np.array([1, 2, 1, 2]),
    ),
    "reverse_sequence_3d": lambda: probe(ops.reverse_sequence, X, np.array([1, 3]), 1, 0), "channel_shuffle": lambda: probe(
        ops.channel_shuffle, IMAGES, 2, by=(),
    ),
    "ChannelShuffle": lambda: probe(ops.ChannelShuffle(2), IMAGES, by=()), "repeat_elements": lambda: probe(ops.repeat_elements, M, 2, 1),
    "sequence_mask": lambda: probe(ops.sequence_mask, np.array([1, 3])), "sequence_mask_long": lambda: probe(
        ops.sequence_mask, np.array([[1, 3], [0, 2]]), 4,
    ),
    "dyn_shape": lambda: probe(ops.dyn_shape, X, by=()), "TensorShape": lambda: probe(ops.TensorShape(), M, by=()),
    "FillV2": lambda: probe(ops.FillV2(), (2, 3), np.array(4, np.int32)),
    "tensor_slice": lambda: probe(ops.tensor_slice, M, (0, 1), (2, 2)),
    "tensor_range": lambda: probe(ops.tensor_range, 0, 5, 2), "hstack_empty": lambda: probe(ops.vstack, (EMPTY, EMPTY), by=()),
    "ParallelConcat": lambda: probe(ops.ParallelConcat(), (M[:1], M[1:]), by=()), "pows": lambda: probe(ops.pows, V, 2.0),
}  # fmt: skip


@case(over=FIGURES, rtol=1e-5, atol=1e-6, graph=True)
def figure(ask):
    return ask()


@case(over=WAVE, rtol=1e-4, atol=1e-5, graph=True)
def wave(ask):
    return ask()


@case(over=CALLS, rtol=1e-6, graph=True)
def found(ask):
    return ask()


@case(over=ORDERED, rtol=1e-6, graph=True)
def ordered(ask):
    return ask()


@case()
def refused():
    m = ms.Tensor(M)
    return {
        "axis": raised(lambda: ops.cummax(m, "0")), "hsplit": raised(
            lambda: ops.hsplit(ms.Tensor(np.array(1.0, np.float32)), 2),
        ),
        "block": raised(lambda: ops.DepthToSpace("2")(ms.Tensor(IMAGES))),
        "no permutation": raised(lambda: ops.InvertPermutation()((0, 0))),
        "vander": raised(lambda: ops.vander(m)),
    }  # fmt: skip


METHODS = {
    "nansum": lambda: ms.Tensor(GAPS).nansum(), "nanmean": lambda: ms.Tensor(GAPS).nanmean(), "median": lambda: ms.Tensor(V).median(0)[0],
    "cummax": lambda: ms.Tensor(V).cummax(0)[0], "cummin": lambda: ms.Tensor(V).cummin(0)[0], "cumprod": lambda: ms.Tensor(V).cumprod(0),
    "logcumsumexp": lambda: ms.Tensor(V).logcumsumexp(0), "aminmax": lambda: ms.Tensor(V).aminmax()[1], "bincount": lambda: ms.Tensor(
        I,
    ).bincount(),
    "histc": lambda: ms.Tensor(V).histc(3), "cov": lambda: ms.Tensor(M).cov(), "diff": lambda: ms.Tensor(V).diff(),
    "unique": lambda: ms.Tensor(
        I,
    ).unique_consecutive(),
    "argwhere": lambda: ms.Tensor(V).argwhere(), "hsplit": lambda: ms.Tensor(M).hsplit(2)[1], "tensor_split": lambda: ms.Tensor(
        V,
    ).tensor_split(2)[0],
    "rot90": lambda: ms.Tensor(M).rot90(1, (0, 1)), "fliplr": lambda: ms.Tensor(M).fliplr(), "flipud": lambda: ms.Tensor(M).flipud(),
    "msort": lambda: ms.Tensor(V).msort(),
}  # fmt: skip


@case(over=METHODS, rtol=1e-5, atol=1e-6)
def method(call):
    return {"output": call().asnumpy()}
