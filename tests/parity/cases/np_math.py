"""mindspore.numpy: reductions, products, series, statistics, polynomials. Each call is a record; Cells let Graph mode compile it."""
import mindspore.numpy as np
import numpy as onp
from mindspore import Tensor as T
from parity.case import case, raised
from parity.numpy_calls import INPUTS, answer, named, run

VALUES = {
    "sum": [
        lambda f: np.sum(f), lambda i: np.sum(i), lambda f: np.sum(f, 0), lambda f: np.sum(f, (0, 1)),
        lambda f: np.sum(f, 1, keepdims=True), lambda i: np.sum(i, dtype=np.float32), lambda i: np.sum(i, 0, np.float16),
        lambda b: np.sum(b), lambda u: np.sum(u), lambda h: np.sum(h), lambda d: np.sum(d), lambda g: np.sum(g),
        lambda f: np.sum(f, initial=10), lambda f: np.sum(f, 0, initial=1.5), lambda i: np.sum(i, initial=1.5), lambda: np.sum([1, 2]),
        lambda: np.sum([1.5, 2]), lambda: np.sum(2), lambda e: np.sum(e, 0), lambda b: np.sum(b, 0), lambda f: np.sum(f, -1),
        lambda i: np.sum(i, 0), lambda: np.sum(T(onp.array([1, 2], onp.int16))), lambda f: np.sum(f, ()),
        lambda: np.sum(T(onp.array([1, 2], onp.uint16))), lambda: np.sum([[1.0, 2], [3, 4]], axis=0), lambda c: np.sum(c),
    ],
    "mean": [
        lambda f: np.mean(f), lambda i: np.mean(i), lambda g: np.mean(g), lambda f: np.mean(f, 0), lambda f: np.mean(f, (0, 1), True),
        lambda f: np.mean(f, dtype=np.float16), lambda i: np.mean(i, dtype=np.int32), lambda: np.mean([1, 2]), lambda: np.mean([1.0, 2.0]),
        lambda h: np.mean(h), lambda d: np.mean(d), lambda e: np.mean(e), lambda i: np.mean(i, 0), lambda u: np.mean(u), lambda: np.mean(2),
        lambda z: np.mean(z), lambda f: np.mean(f, dtype="float16"),
    ],
    "std": [
        lambda f: np.std(f), lambda f: np.std(f, 0), lambda f: np.std(f, 1, 1), lambda f: np.std(f, keepdims=True), lambda i: np.std(i),
        lambda: np.std([1, 2]), lambda d: np.std(d), lambda h: np.std(h), lambda f: np.std(f, (0, 1)), lambda f: np.std(f, ddof=10),
        lambda f: np.std(f, ddof=-1), lambda u: np.std(u), lambda f: np.std(f, 0, 0, True),
    ],
    "var": [
        lambda f: np.var(f), lambda f: np.var(f, 0), lambda f: np.var(f, 1, 1), lambda f: np.var(f, keepdims=True), lambda i: np.var(i),
        lambda: np.var([1.0, 2.0]), lambda d: np.var(d), lambda h: np.var(h), lambda f: np.var(f, (0, 1)), lambda g: np.var(g),
        lambda f: np.var(f, 0, 2),
    ],
    "ptp": [lambda f: np.ptp(f), lambda f: np.ptp(f, 0), lambda i: np.ptp(i, 1, True), lambda h: np.ptp(h)],
    "average": [
        lambda f: np.average(f), lambda f: np.average(f, 0), lambda f, v: np.average(f, 1, v), lambda f: np.average(f, weights=f),
        lambda i: np.average(i), lambda f: np.average(f, returned=True), lambda i: np.average(i, weights=i), lambda g: np.average(g),
        lambda f: np.average(f, 0, returned=True), lambda h: np.average(h), lambda d: np.average(d), lambda f: np.average(f, (0, 1)),
        lambda f: np.average(f, (0, 1), f), lambda f, v: np.average(f, 1, v, True), lambda f: np.average(f, (0, 1), f, True),
        lambda f: np.average(f, 1, f), lambda i: np.average(i, 1, T(onp.array([1, 2, 3], onp.int32))),
        lambda f: np.average(f, weights=np.zeros((2, 3))),
    ],
    "max": [
        lambda f: np.max(f), lambda f: np.max(f, 0), lambda f: np.max(f, (0, 1)), lambda f: np.max(f, 1, True), lambda i: np.max(i),
        lambda f: np.max(f, initial=10), lambda f: np.max(f, 0, initial=1.0, where=f > 0), lambda g: np.max(g), lambda d: np.max(d),
        lambda h: np.max(h), lambda i: np.max(i, initial=2.5), lambda i: np.max(i, 0, initial=2, where=i > 0), lambda u: np.max(u),
        lambda f, z: np.max(f, initial=z), lambda f, v: np.max(f, -1, False, -100.0, v > 1), lambda f: np.max(f, where=f > 0, initial=0),
    ],
    "amax": [lambda f: np.amax(f, 1), lambda i: np.amax(i, (0, 1), True)],
    "amin": [lambda f: np.amin(f, 1), lambda i: np.amin(i)],
    "min": [
        lambda f: np.min(f), lambda f: np.min(f, 0), lambda f: np.min(f, 1, True), lambda i: np.min(i), lambda f: np.min(f, initial=-10),
        lambda f: np.min(f, 0, initial=1.0, where=f > 0), lambda f: np.min(f, (0, -1)),
    ],
    "argmax": [
        lambda f: np.argmax(f), lambda f: np.argmax(f, 0), lambda f: np.argmax(f, 1), lambda f: np.argmax(f, -1), lambda i: np.argmax(i),
        lambda: np.argmax([1, 3, 2]), lambda: np.argmax(2), lambda b: np.argmax(b), lambda: np.argmax(T(onp.array([1, 3, 3], onp.int32))),
        lambda d: np.argmax(d), lambda h: np.argmax(h), lambda g: np.argmax(g), lambda u: np.argmax(u), lambda z: np.argmax(z),
    ],
    "argmin": [
        lambda f: np.argmin(f), lambda f: np.argmin(f, 0), lambda i: np.argmin(i, 1), lambda: np.argmin([3, 1, 2]), lambda b: np.argmin(b),
        lambda g: np.argmin(g),
    ],
    "count_nonzero": [
        lambda f: np.count_nonzero(f), lambda i: np.count_nonzero(i, 0), lambda f: np.count_nonzero(f, 1, True),
        lambda f: np.count_nonzero(f, (0, 1)), lambda f: np.count_nonzero(f * 0), lambda e: np.count_nonzero(e),
        lambda: np.count_nonzero(np.ones((2, 3, 2)), (0, 2)),
    ],
    "cumsum": [
        lambda f: np.cumsum(f), lambda f: np.cumsum(f, 0), lambda i: np.cumsum(i), lambda g: np.cumsum(g), lambda b: np.cumsum(b),
        lambda u: np.cumsum(u), lambda f: np.cumsum(f, 1, np.float16), lambda h: np.cumsum(h), lambda i: np.cumsum(i, dtype=np.float32),
        lambda d: np.cumsum(d), lambda: np.cumsum(T(onp.array([1, 2], onp.int8))), lambda: np.cumsum(T(onp.array([1, 2], onp.uint16))),
        lambda f: np.cumsum(f, -1),
    ],
    "cumprod": [
        lambda f: np.cumprod(f), lambda f: np.cumprod(f, 0), lambda i: np.cumprod(i), lambda i: np.cumprod(i, 1),
        lambda f: np.cumprod(f, 1, np.float16), lambda b: np.cumprod(b), lambda u: np.cumprod(u), lambda g: np.cumprod(g),
        lambda h: np.cumprod(h), lambda: np.cumprod(T(onp.array([1, 2], onp.int8))), lambda: np.cumprod(T(onp.array([1, 2], onp.uint16))),
    ],
    "nancumsum": [
        lambda nan: np.nancumsum(nan), lambda f: np.nancumsum(f, 0), lambda i: np.nancumsum(i),
        lambda nan: np.nancumsum(nan, dtype=np.float16),
    ],
    "nansum": [
        lambda nan: np.nansum(nan), lambda f: np.nansum(f, 0), lambda i: np.nansum(i), lambda f: np.nansum(f, 1, np.float16, True),
        lambda: np.nansum([1, 2]), lambda: np.nansum(2), lambda f: np.nansum(f, 1),
    ],
    "nanmax": [
        lambda nan: np.nanmax(nan), lambda f: np.nanmax(f, 0), lambda i: np.nanmax(i), lambda: np.nanmax(T([float("nan")])),
        lambda f: np.nanmax(f, 1, np.float16, True), lambda: np.nanmax([1, 2]),
    ],
    "nanmin": [
        lambda nan: np.nanmin(nan), lambda f: np.nanmin(f, 0), lambda i: np.nanmin(i), lambda: np.nanmin(T([float("nan")])),
        lambda: np.nanmin([1.0, float("nan")]),
    ],
    "nanmean": [
        lambda: np.nanmean(T([1.0, float("nan"), 3.0])), lambda f: np.nanmean(f, 0), lambda i: np.nanmean(i),
        lambda: np.nanmean(T([float("nan")])), lambda f: np.nanmean(f, 1, np.float16, True), lambda: np.nanmean([1, 2]),
        lambda h: np.nanmean(h), lambda d: np.nanmean(d),
    ],
    "nanvar": [
        lambda: np.nanvar(T([1.0, float("nan"), 3.0])), lambda f: np.nanvar(f, 0), lambda i: np.nanvar(i),
        lambda f: np.nanvar(f, 0, None, 1), lambda: np.nanvar([1.0, 2.0]), lambda f: np.nanvar(f, 1, np.float16, 0, True),
    ],
    "nanstd": [
        lambda: np.nanstd(T([1.0, float("nan"), 3.0])), lambda f: np.nanstd(f, 0), lambda i: np.nanstd(i),
        lambda f: np.nanstd(f, 0, None, 1), lambda f: np.nanstd(f, 1, None, 0, True), lambda f: np.nanstd(f, 1, np.float16),
    ],
    "clip": [
        lambda f: np.clip(f, -1, 1), lambda i: np.clip(i, 0, 2), lambda i: np.clip(i, 0.5, 2.5), lambda f: np.clip(f, None, 1),
        lambda f: np.clip(f, 0, None), lambda: np.clip([1, 2, 3], 2, 3), lambda f, v: np.clip(f, v, 5), lambda f: np.clip(f, 1, -1),
        lambda h: np.clip(h, 0, 1), lambda g: np.clip(g, 0, 1), lambda b: np.clip(b, 0, 1), lambda: np.clip(2, 0, 1),
        lambda f, g: np.clip(f, g[0], 2), lambda u: np.clip(u, 0, 1), lambda d: np.clip(d, 0, 1.0),
    ],
    "around": [
        lambda f: np.around(f), lambda f: np.around(f, 1), lambda: np.around([1.25, 2.5], 1), lambda i: np.around(i),
        lambda: np.around(2.5),
    ],
    "round": [lambda f: np.round(f)],
    "dot": [
        lambda v: np.dot(v, v), lambda f, v: np.dot(f, v), lambda f: np.dot(f, f.T), lambda i: np.dot(i, i.T),
        lambda: np.dot(np.ones((2, 3, 4)), np.ones((5, 4, 2))).shape, lambda v, z: np.dot(z, v), lambda h: np.dot(h, h),
        lambda g: np.dot(g, g), lambda d: np.dot(d, d), lambda v: np.dot(v, np.ones((2, 3, 4))),
    ],
    "inner": [
        lambda v: np.inner(v, v), lambda f, v: np.inner(f, v), lambda f: np.inner(f, f),
        lambda: np.inner(np.ones((2, 3, 4)), np.ones((5, 4))).shape, lambda i: np.inner(i, i), lambda v, z: np.inner(z, v),
    ],
    "outer": [lambda v: np.outer(v, v), lambda i: np.outer(i, i).dtype, lambda f, v: np.outer(f, v)],
    "tensordot": [
        lambda f: np.tensordot(f, f), lambda f: np.tensordot(f, f.T, 1), lambda f: np.tensordot(f, f, ((0, 1), (0, 1))),
        lambda f: np.tensordot(f, f, (0, 0)), lambda f: np.tensordot(f, f, 0).shape, lambda f: np.tensordot(f, f, ([1], [1])),
        lambda i: np.tensordot(i, i), lambda v: np.tensordot(v, v, 1),
    ],
    "matmul": [
        lambda v: np.matmul(v, v), lambda: np.matmul(np.ones((2, 2, 3)), np.ones((3, 2))).shape, lambda f, v: np.matmul(v, f.T),
        lambda i: np.matmul(i, i.T), lambda f: np.matmul(f, f.T, dtype=np.float16), lambda g: np.matmul(g, g), lambda d: np.matmul(d, d),
        lambda h: np.matmul(h, h), lambda v: np.matmul(v, np.ones((2, 3, 4))).shape,
    ],
    "matrix_power": [
        lambda: np.matrix_power(T(onp.array([[1, 2], [3, 4]], onp.int32)), 2),
        lambda: np.matrix_power(T(onp.array([[1.0, 2], [3, 4]], onp.float32)), 0), lambda: np.matrix_power([[1, 2], [3, 4]], 2),
    ],
    "multi_dot": [
        lambda f: np.multi_dot((f, f.T, f)), lambda f, v: np.multi_dot([v, f.T, T([1.0, 2.0])]), lambda v: np.multi_dot([v, v]),
        lambda i: np.multi_dot([i, i.T]), lambda: np.multi_dot([[[1, 2]], [[3], [4]]]),
        lambda: np.multi_dot((np.ones((2, 3)), np.ones((3, 4)), np.ones((4, 2)), np.ones((2, 5)))),
    ],
    "kron": [
        lambda v: np.kron(v, v), lambda f: np.kron(f, [1, 2]), lambda i: np.kron(i, i).shape, lambda: np.kron([1, 2], [[1], [2]]),
        lambda v: np.kron(2, v), lambda f: np.kron(np.ones((2, 2)), f).shape, lambda f, v: np.kron(f, v).shape, lambda v, z: np.kron(z, v),
    ],
    "cross": [
        lambda v: np.cross(v, [3, 2, 1]), lambda f, v: np.cross(f, v), lambda: np.cross([1, 2, 3], [3, 4]), lambda i: np.cross(i, i),
        lambda f: np.cross(f.T, f.T, 0, 0), lambda f: np.cross(f.T, f.T, 0, 0, 0), lambda f: np.cross(f.T, f.T, axis=0),
        lambda f, g: np.cross(f, g), lambda: np.cross([[1, 2], [3, 4]], [[5, 6], [7, 8]]), lambda: np.cross([1, 2, 3], [3, 2, 1]),
    ],
    "norm": [
        lambda v: np.norm(v), lambda f: np.norm(f), lambda f: np.norm(f, axis=0), lambda f: np.norm(f, 1), lambda v: np.norm(v, 1),
        lambda v: np.norm(v, 0), lambda v: np.norm(v, float("inf")), lambda v: np.norm(v, np.inf), lambda v: np.norm(v, -np.inf),
        lambda v: np.norm(v, 3), lambda v: np.norm(v, -1), lambda f: np.norm(f, "fro"), lambda f: np.norm(f, -1),
        lambda f: np.norm(f, np.inf), lambda f: np.norm(f, -np.inf), lambda f: np.norm(f, axis=(0, 1), keepdims=True),
        lambda f: np.norm(f, axis=1, keepdims=True), lambda f: np.norm(f, 2, 1), lambda i: np.norm(i), lambda: np.norm([3, 4]),
        lambda: np.norm(np.ones((2, 2, 2))), lambda: np.norm(np.ones((2, 2, 2)), axis=(1, 2)),
        lambda: np.norm(np.ones((2, 2, 2)), "fro", (1, 2)), lambda h: np.norm(h), lambda d: np.norm(d), lambda: np.norm(2),
        lambda f: np.norm(f, 0.5, 1), lambda f: np.norm(f, keepdims=True), lambda v: np.norm(v, 2, keepdims=True),
        lambda: np.norm(T([3.0, float("nan")])), lambda f: np.norm(f, axis=(0,)), lambda f: np.norm(f, ord=-1, axis=(0, 1)),
        lambda f: np.norm(f, ord=1, axis=(1, 0)), lambda f: np.norm(f, ord=0, axis=0),
    ],
    "diff": [
        lambda v: np.diff(v), lambda f: np.diff(f), lambda f: np.diff(f, 1, 0), lambda v: np.diff(v, 2), lambda v: np.diff(v, 0),
        lambda i: np.diff(i), lambda v: np.diff(v, prepend=0), lambda f: np.diff(f, prepend=1),
        lambda f: np.diff(f, prepend=1, append=2, axis=0), lambda b: np.diff(b), lambda g: np.diff(g, prepend=1.5),
    ],
    "ediff1d": [
        lambda f: np.ediff1d(f), lambda v: np.ediff1d(v, to_end=9), lambda v: np.ediff1d(v, to_begin=[8, 9], to_end=[1]),
        lambda i: np.ediff1d(i, 1.5),
    ],
    "gradient": [
        lambda v: np.gradient(v), lambda f: np.gradient(f), lambda f: np.gradient(f, axis=0), lambda v: np.gradient(v, 2),
        lambda v: np.gradient(v, 0.5), lambda f: np.gradient(f, 2, 3), lambda f: np.gradient(f, axis=(0, 1)),
        lambda: np.gradient([1, 2, 4, 7]), lambda i: np.gradient(i), lambda f: np.gradient(f, 2.0, axis=1),
        lambda f: np.gradient(f, 2, axis=(0, 1)), lambda: np.gradient([[1, 2, 6], [3, 4, 5]], axis=-1), lambda f: np.gradient(f, axis=-1),
    ],
    "trapz": [
        lambda v: np.trapz(v), lambda v: np.trapz(v, v * 2), lambda f: np.trapz(f), lambda f: np.trapz(f, axis=0),
        lambda f: np.trapz(f, dx=2.0), lambda: np.trapz([1, 2, 3], [4, 6, 8]), lambda f: np.trapz(f, f), lambda i: np.trapz(i),
        lambda f: np.trapz(f, [1, 2], axis=0),
    ],
    "interp": [
        lambda: np.interp([0.5, 1.5], [0, 1, 2], [3, 2, 0]), lambda: np.interp(2.5, [1, 2, 3], [3, 2, 0]),
        lambda: np.interp([0, 1, 1.5, 2.72, 3.14], [1, 2, 3], [3, 2, 0]),
        lambda: np.interp([0.0, 5.0], [1, 2, 3], [3, 2, 0], left=-1, right=-2), lambda v: np.interp(v, v, v * 2),
        lambda f: np.interp(f, [1, 2, 3], [3, 2, 0]), lambda: np.interp([2], [1], [5]), lambda i: np.interp(i, [1, 2, 3], [3, 2, 0]),
        lambda d: np.interp(d, [1, 2, 3], [3, 2, 0]), lambda f: np.interp(f, [3, 1, 2], [1, 2, 3]),
    ],
    "convolve": [
        lambda v: np.convolve(v, [0, 1, 0.5]), lambda v: np.convolve(v, [0, 1, 0.5], "same"),
        lambda v: np.convolve(v, [0, 1, 0.5], "valid"), lambda: np.convolve([1, 2, 3], [4, 5]),
        lambda v: np.convolve(v, [1, 2], mode="same"), lambda: np.convolve([1, 2], [3, 4, 5], mode="same"),
        lambda: np.convolve([1, 2], [3, 4, 5], mode="valid"), lambda v: np.convolve(2, v), lambda g: np.convolve(g, g),
    ],
    "correlate": [
        lambda: np.correlate([1, 2, 3], [4, 5]), lambda: np.correlate([1, 2], [3, 4, 5], "full"), lambda: np.correlate([1, 2], [3, 4, 5]),
        lambda: np.correlate([1, 2], [3, 4, 5], "same"), lambda: np.correlate([1, 2, 3, 4], [3, 4], "same"), lambda d: np.correlate(d, d),
        lambda v: np.correlate(v, v, "same"), lambda v: np.correlate(v, T([0.0, 1.0, 0.5]), "full"),
        lambda: np.correlate(T([1.0, 2.0]), T([0.0, 1.0, 0.5]), "full"), lambda: np.correlate(T([1.0, 2.0]), T([0.0, 1.0, 0.5]), "same"),
        lambda: np.correlate(T([1.0, 2.0]), T([0.0, 1.0, 0.5]), "valid"), lambda h: np.correlate(h, h), lambda g: np.correlate(g, g),
    ],
    "corrcoef": [
        lambda f: np.corrcoef(f), lambda f: np.corrcoef(f, f), lambda f: np.corrcoef(f, rowvar=False), lambda v: np.corrcoef(v),
        lambda f: np.corrcoef(f, dtype=np.float16), lambda i: np.corrcoef(i), lambda: np.corrcoef([1.0, 2, 3], [3.0, 1, 2]),
    ],
    "cov": [
        lambda f: np.cov(f), lambda f: np.cov(f, f), lambda f: np.cov(f, rowvar=False), lambda v: np.cov(v), lambda f: np.cov(f, bias=True),
        lambda f: np.cov(f, ddof=0), lambda f: np.cov(f, fweights=[1, 2, 3]), lambda f: np.cov(f, dtype=np.float64), lambda i: np.cov(i),
        lambda: np.cov([1.0, 2, 3], [3.0, 1, 2]), lambda f: np.cov(f, fweights=[-1, 2, 3]), lambda f: np.cov(f, ddof=1.5),
        lambda f: np.cov(f, fweights=T(onp.array([1, 2, 3], onp.int32))), lambda f: np.cov(f, aweights=T(onp.array([1, 2, 3], onp.int32))),
        lambda f: np.cov(f, fweights=[1, 2, 3], aweights=[1, 2, 3]),
    ],
    "bincount": [
        lambda: np.bincount([0, 1, 1, 3]), lambda: np.bincount([0, 1, 1, 3], minlength=6),
        lambda: np.bincount([0, 1, 1, 3], weights=[0.5, 1.0, 1.0, 2.0]), lambda: np.bincount([0, 1, 1, 3], length=3),
        lambda: np.bincount(T(onp.array([0, 1, 1], onp.int32))), lambda: np.bincount([-1, 2]), lambda: np.bincount([0, 1], [1, 2]),
        lambda v: np.bincount(T(onp.array([0, 1], onp.int64)), v[:2]),
    ],
    "digitize": [
        lambda: np.digitize([0.2, 6.4, 3.0, 1.6], [0.0, 1.0, 2.5, 4.0, 10.0]), lambda: np.digitize([1, 2, 3], [1, 2, 3], True),
        lambda: np.digitize(2, [1, 2, 3]), lambda f: np.digitize(f, [0.0, 1.0]), lambda f: np.digitize(f, []),
        lambda v: np.digitize(v, [0, 3, 2]), lambda: np.digitize(T([1.5]), [1, 2]),
    ],
    "searchsorted": [
        lambda: np.searchsorted([1, 2, 3, 4, 5], 3), lambda: np.searchsorted([1, 2, 3, 4, 5], 3, "right"),
        lambda: np.searchsorted([1, 2, 3, 4, 5], [-10, 10, 2, 3]), lambda f, v: np.searchsorted(v, f),
        lambda: np.searchsorted([1, 2, 3], [[1, 2], [3, 4]], "right"), lambda v: np.searchsorted(v, T([2.0]), "right"),
        lambda v: np.searchsorted(v, 2, sorter=T(onp.array([0, 1, 2], onp.int32))),
        lambda: np.searchsorted(T([3.0, 1.0, 2.0]), 2, sorter=T(onp.array([1, 2, 0], onp.int64))),
    ],
    "histogram": [
        lambda: np.histogram([1, 2, 1], [0, 1, 2, 3]), lambda f: np.histogram(f, 3), lambda f: np.histogram(f, 3, (0, 3)),
        lambda f: np.histogram(f, 3, density=True), lambda: np.histogram([1, 2, 1], [0, 1, 2, 3], weights=[0.5, 1, 2]),
        lambda i: np.histogram(i), lambda v: np.histogram(v, 2, weights=v, density=True),
        lambda: np.histogram([1, 2, 5], 3, (1, 4), weights=[1.0, 2.0, 3.0]),
    ],
    "histogram2d": [
        lambda: np.histogram2d([1, 2, 1], [3, 4, 3], 2), lambda: np.histogram2d([1.0, 2.0, 1.5], [3.0, 4.0, 3.0], [2, 3]),
        lambda: np.histogram2d([1.0, 2.0, 1.5], [3.0, 4.0, 3.0], 2, ((0, 2), (3, 5))),
        lambda: np.histogram2d([1.0, 2.0, 1.5], [3.0, 4.0, 3.0], 2, density=True),
        lambda: np.histogram2d([1.0, 2.0, 1.5], [3.0, 4.0, 3.0], 2, weights=[1.0, 2, 3]),
        lambda: np.histogram2d([1.0, 2.0, 1.5], [3.0, 4.0, 3.0], [[0, 1.5, 3], [2, 3, 4, 5]]),
    ],
    "histogramdd": [
        lambda: np.histogramdd(T(onp.array([[1.0, 2], [3, 4], [1, 2]], onp.float32)), 2),
        lambda: np.histogramdd([[1.0, 2, 3], [3, 4, 5]], (2, 2)), lambda: np.histogramdd(([1.0, 2, 3], [3, 4, 5]), 2),
        lambda f: np.histogramdd(f, 2), lambda f: np.histogramdd(f, 2, density=True), lambda f: np.histogramdd(f.T, 2, weights=[1, 2, 3]),
    ],
    "polyadd": [lambda: np.polyadd([1, 2], [3, 4, 5]), lambda v: np.polyadd(v, [1]), lambda: np.polyadd(2, [1, 2])],
    "polysub": [lambda: np.polysub([1, 2], [3, 4, 5]), lambda v: np.polysub(v, 2)],
    "polymul": [lambda: np.polymul([1, 2], [3, 4, 5]), lambda v: np.polymul(2, v), lambda: np.polymul([3, 1, 2], [2, 5])],
    "polyval": [
        lambda: np.polyval([3.0, 0.0, 1.0], 5.0), lambda v: np.polyval([3, 0, 1], v), lambda v: np.polyval(v, [1, 2]),
        lambda f: np.polyval([3, 0, 1], f), lambda: np.polyval([3, 0, 1], 5),
    ],
    "polyder": [
        lambda: np.polyder([1, 1, 1, 1]), lambda v: np.polyder(v, 2), lambda: np.polyder([1, 1, 1, 1], 0), lambda: np.polyder([1, 2], 5),
    ],
    "polyint": [
        lambda: np.polyint([1, 1, 1]), lambda: np.polyint([1, 1, 1], 2), lambda: np.polyint([1, 1, 1], 2, [1, 2]),
        lambda v: np.polyint(v, 1, 3), lambda: np.polyint([1, 1, 1], 0), lambda: np.polyint([1, 1], 2, 3),
    ],
    "unwrap": [
        lambda: np.unwrap([0.0, 0.78, 1.57, 5.49, 6.28]), lambda f: np.unwrap(f), lambda f: np.unwrap(f, axis=0),
        lambda: np.unwrap([0, 4, 8]), lambda f: np.unwrap(f, 2.0), lambda: np.unwrap([0, 0.5, 7.0], discont=10.0),
        lambda: np.unwrap([0.0, 4.0, 8.0], 3.0),
    ],
    "promote_types": [
        lambda: np.promote_types(np.float32, np.float64), lambda: np.promote_types(np.int32, np.float16),
        lambda: np.promote_types("int8", np.uint8), lambda: np.promote_types(np.bool_, np.int32),
        lambda: np.promote_types(np.int64, np.float32), lambda: np.promote_types(np.uint16, np.int16),
        lambda: np.promote_types(np.uint64, np.int64), lambda: np.promote_types("float", "int"),
    ],
    "result_type": [
        lambda: np.result_type("int32", np.float32), lambda f, i: np.result_type(f, i), lambda f: np.result_type(f, 2),
        lambda i: np.result_type(i, 2.5), lambda b: np.result_type(np.int8, 1, b), lambda: np.result_type(2), lambda: np.result_type(2.5),
        lambda g, h: np.result_type(g, h), lambda u: np.result_type(True, u), lambda: np.result_type(np.int8, np.uint8),
    ],
    "pi": [lambda: [np.pi, np.inf, np.nan, np.PINF, np.NINF]],
    "float_power": [lambda f: np.float_power(f, T(2.0))],
    "copysign": [lambda: np.copysign(T([0.5, -0.0]), T([-0.0, 1.0]))],
    "heaviside": [lambda: np.heaviside(T([0.0, 1.0]), 0.5)],
    "fmod": [lambda: np.fmod(T([-5, 5]), T([3, -3]))],
    "mod": [lambda: np.mod(T([-5, 5]), T([3, -3])), lambda: np.mod(T([-5.0, 5.0]), T([3.0, -3.0]))],
    "floor_divide": [
        lambda: np.floor_divide(T([-5, 5]), T([3, -3])), lambda: np.floor_divide(T([1.0, -1.0]), T([0.0, 0.0])),
        lambda: np.floor_divide(T([1, -1]), T([2, 2])).dtype,
    ],
    "power": [lambda: np.power(2, T([1, 2])), lambda: np.power(T(onp.array([2, 3], onp.int32)), T(onp.array([-1, -2], onp.int32)))],
    "divide": [lambda: np.divide(T([1.0, 0.0]), 0)],
    "hypot": [lambda: np.hypot(3, 4)],
    "logaddexp": [lambda v: np.logaddexp(v, v), lambda: np.logaddexp(1000.0, T([1000.0]))],
    "logaddexp2": [lambda v: np.logaddexp2(v, v), lambda: np.logaddexp2(T([1000.0]), T([1000.0]))],
    "lcm": [
        lambda: np.lcm(0, 0), lambda: np.lcm(T(onp.array([12, 0, -4], onp.int32)), T(onp.array([8, 5, 6], onp.int32))),
        lambda: np.lcm([4], [6]),
    ],
    "gcd": [lambda: np.gcd(T(onp.array([12, 0, -4], onp.int32)), T(onp.array([8, 5, 6], onp.int32)))],
    "equal": [lambda: np.equal(1, 1)],
    "isfinite": [lambda nan: np.isfinite(nan)],
    "isneginf": [lambda nan: np.isneginf(nan)],
    "isposinf": [lambda nan: np.isposinf(nan)],
    "signbit": [lambda: np.signbit(T([-0.0, 0.0]))],
    "bitwise_and": [lambda b: np.bitwise_and(b, True)],
    "invert": [lambda: np.invert(T(onp.array([1, 2], onp.int64)))],
    "empty": [lambda: np.empty((0,)).shape],
}
REFUSED = {
    "sum": [lambda f: np.sum(f, 5), lambda f: np.sum(f, "a")],
    "mean": [lambda f: np.mean(f, 5)],
    "std": [lambda f: np.std(f, 5), lambda f: np.std(f, True)],
    "var": [lambda f: np.var(f, ddof=1.5)],
    "ptp": [lambda: np.ptp([1, 5]), lambda f: np.ptp(f, 5)],
    "average": [
        lambda f: np.average(f, 1, [1, 2, 3], True), lambda: np.average([1, 2]), lambda: np.average([1.0, 2.0], weights=[3.0, 1.0]),
        lambda f, v: np.average(f, None, v), lambda f, v: np.average(f, 0, v),
    ],
    "max": [
        lambda f: np.max(f, where=f > 0), lambda f: np.max(f, 0, where=f > 0), lambda: np.max([1, 2]), lambda: np.max(2),
        lambda e: np.max(e), lambda f: np.max(f, 5), lambda f: np.max(f, initial="a"),
    ],
    "min": [lambda f: np.min(f, where=f > 0), lambda: np.min([1, 2]), lambda e: np.min(e), lambda e: np.min(e, 0)],
    "argmax": [lambda f: np.argmax(f, 5)],
    "argmin": [lambda f: np.argmin(f, 5)],
    "count_nonzero": [lambda f: np.count_nonzero(f, 5)],
    "cumsum": [lambda: np.cumsum([1, 2]), lambda f: np.cumsum(f, 5), lambda: np.cumsum(2)],
    "nancumsum": [lambda: np.nancumsum([1, 2])],
    "clip": [lambda f: np.clip(f, None, None), lambda f: np.clip(f, -1)],
    "around": [lambda f: np.around(f, -1)],
    "dot": [
        lambda f: np.dot(2, f), lambda: np.dot([1, 2], [3, 4]), lambda f, i: np.dot(f, i.T), lambda f: np.dot(f, f),
        lambda: np.dot([1.0, 2], 2), lambda v: np.dot(v, 2),
    ],
    "inner": [lambda f: np.inner(2, f), lambda: np.inner([1, 2], [3, 4])],
    "outer": [lambda f, g: np.outer(f, g), lambda: np.outer([1, 2], [3, 4]), lambda v: np.outer(2, v), lambda h, d: np.outer(h, d)],
    "tensordot": [lambda f: np.tensordot(f, f, 1), lambda f, i: np.tensordot(f, i), lambda: np.tensordot([[1.0, 2]], [[3.0, 4]])],
    "matmul": [lambda f, i: np.matmul(f, i.T), lambda f, z: np.matmul(f, z), lambda: np.matmul([[1.0, 2]], [[1.0], [2]])],
    "matrix_power": [lambda: np.matrix_power(T(onp.array([[1.0, 2], [3, 4]], onp.float32)), -1), lambda f: np.matrix_power(f, 2)],
    "multi_dot": [lambda f: np.multi_dot([f])],
    "cross": [lambda v: np.cross(np.ones((2, 4)), v), lambda v: np.cross(v, 2)],
    "norm": [
        lambda: np.norm(np.ones((2, 2, 2)), 1), lambda f: np.norm(f, "abc"), lambda v: np.norm(v, "fro"), lambda f: np.norm(f, 0),
        lambda: np.norm(np.ones((2, 2, 2)), "fro"), lambda f: np.norm(f, axis=5),
    ],
    "diff": [
        lambda v: np.diff(v, append=[7, 8]), lambda v: np.diff(v, -1), lambda v: np.diff(v, 5), lambda: np.diff([1, 3, 6]),
        lambda: np.diff(2), lambda f, v: np.diff(v, prepend=f), lambda f: np.diff(f, axis=5),
    ],
    "ediff1d": [lambda: np.ediff1d([1, 2, 4]), lambda z: np.ediff1d(z)],
    "gradient": [
        lambda v: np.gradient(v, edge_order=2), lambda f: np.gradient(f, 1, 2, 3), lambda f: np.gradient(f, axis=5),
        lambda: np.gradient(T([1.0])),
    ],
    "trapz": [lambda f: np.trapz(f, axis=5)],
    "interp": [lambda: np.interp([1], [1, 2], [1, 2, 3])],
    "convolve": [lambda v: np.convolve(v, []), lambda f, v: np.convolve(f, v), lambda v: np.convolve(v, v, "x")],
    "correlate": [
        lambda f, v: np.correlate(f, v), lambda v: np.correlate(v, v, "x"), lambda v: np.correlate(T(onp.array([], onp.float32)), v),
    ],
    "cov": [
        lambda f: np.cov(f, aweights=[1.0, 2, 3]), lambda f: np.cov(f, fweights=[1, 2, 3], aweights=[1.0, 2, 3]),
        lambda: np.cov(np.ones((2, 2, 2))), lambda f: np.cov(f, fweights=[1.5, 2, 3]), lambda f: np.cov(f, fweights=[1, 2]),
    ],
    "bincount": [lambda f: np.bincount(f), lambda: np.bincount([]), lambda: np.bincount([0, 1], [1, 2, 3]), lambda i: np.bincount(i)],
    "digitize": [lambda f: np.digitize(f, f)],
    "searchsorted": [
        lambda: np.searchsorted([3, 1, 2], 2, sorter=[1, 2, 0]), lambda v: np.searchsorted(v, 2.5, side="x"),
        lambda f: np.searchsorted(f, 2),
    ],
    "histogram": [lambda: np.histogram([1, 2], -1), lambda: np.histogram([1, 2], 2, weights=[1, 2, 3])],
    "histogram2d": [lambda: np.histogram2d([1.0, 2.0, 1.5], [3.0, 4.0, 3.0], [0, 1.5, 3])],
    "histogramdd": [lambda f: np.histogramdd(f, [2, 3]), lambda v: np.histogramdd(v, 2)],
    "polyder": [lambda: np.polyder([1, 2], -1)],
    "polyint": [lambda f: np.polyint(f)],
    "unwrap": [lambda f: np.unwrap(f, axis=5)],
    "promote_types": [lambda: np.promote_types("a", np.int8)],
    "result_type": [lambda h: np.result_type([1, 2], h), lambda: np.result_type(), lambda f: np.result_type(f, [1.0])],
    "polyval": [lambda f: np.polyval(f, 1)],
}


@case(over=named(VALUES), rtol=1e-5, atol=1e-6, graph=True)
def value(call):
    return answer(run(call))


@case(over=named(REFUSED))
def refused(call):
    return {"error": raised(lambda: answer(call(*(INPUTS[name] for name in call.__code__.co_varnames[: call.__code__.co_argcount]))))}
