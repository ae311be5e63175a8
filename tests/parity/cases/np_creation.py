"""mindspore.numpy: new arrays, grids, padding. Each call is one record; it runs in a Cell, so that Graph mode compiles it."""
import mindspore.numpy as np
import numpy as onp
from mindspore import Tensor as T
from parity.case import case, raised
from parity.numpy_calls import INPUTS, answer, named, run

VALUES = {
    "array": [
        lambda: np.array([1, 2, 3]), lambda: np.array([1.0, 2]), lambda: np.array(2), lambda: np.array([[1, 2], [3, 4]], dtype=np.float32),
        lambda: np.array([1, 2], ndmin=3), lambda: np.array([True, False]), lambda: np.array([True, 2]), lambda f: np.array([f, f]),
        lambda v: np.array([v, [1, 2, 3]]), lambda: np.array((1, 2.5), "int32"), lambda: np.array([]),
        lambda i: np.array(i, dtype=np.float16), lambda: np.array([1, 2], int), lambda: np.array([1, 2], float),
        lambda: np.array([1, 2], "float"), lambda: np.array([1, 2], bool), lambda: np.array(1.5, dtype=np.int32),
        lambda: np.array([1.7, -1.7], np.int32), lambda: np.array(T([1, 2]), ndmin=2), lambda b: np.array([b, b]),
        lambda z: np.array([z, 1.0]), lambda z: np.array((z, z)), lambda z: np.array([[z, 1], [2, 3]]),
    ],
    "asarray": [lambda: np.asarray([1, 2]), lambda: np.asarray([1, 2], dtype=np.int8), lambda: np.asarray(5)],
    "asfarray": [
        lambda: np.asfarray([1, 2]), lambda i: np.asfarray(i), lambda: np.asfarray([1, 2], np.int32), lambda i: np.asfarray(i, np.float16),
        lambda: np.asfarray([1, 2], None),
    ],
    "copy": [lambda f: np.copy(f), lambda: np.copy([1, 2]), lambda: np.copy(2)],
    "zeros": [
        lambda: np.zeros(3), lambda: np.zeros((2, 3), np.int32), lambda: np.zeros([2, 1]), lambda: np.zeros((), np.float16),
        lambda: np.zeros(()), lambda: np.zeros(0), lambda: np.zeros((2, 0)), lambda: np.zeros(2, "int8"), lambda g: np.zeros(g),
        lambda: np.zeros(2, float), lambda: np.zeros(2, int), lambda: np.zeros(2, bool), lambda: np.zeros((2, 2), dtype=np.bool_),
        lambda: np.zeros((2,), dtype=onp.float32),
    ],
    "ones": [lambda: np.ones(3), lambda: np.ones((2, 3), np.int32), lambda: np.ones((2, 0)), lambda: np.ones([2, 2], bool)],
    "empty": [lambda: np.empty((2, 3)).shape, lambda: np.empty((2, 3)).dtype, lambda: np.empty(2, np.int32).dtype],
    "full": [
        lambda: np.full((2, 2), 3), lambda: np.full((2, 2), 3.5), lambda: np.full(2, [1, 2]), lambda g: np.full((2, 2), g),
        lambda: np.full((2, 2), True), lambda: np.full((2, 2), 3, np.float16), lambda: np.full(2, 2.7, np.int32),
        lambda z: np.full((2, 2), z), lambda: np.full((2, 2), 3, dtype="float16"), lambda: np.full((2,), [1, 2.5]),
        lambda: np.full((3, 2), [1, 2]),
    ],
    "full_like": [
        lambda f: np.full_like(f, 7), lambda i: np.full_like(i, 7.7), lambda: np.full_like([1, 2], 7), lambda: np.full_like([1.0, 2], 7),
        lambda f: np.full_like(f, 7, np.int32), lambda f: np.full_like(f, 7, shape=(2,)), lambda f: np.full_like(f, 7, np.int32, 4),
    ],
    "zeros_like": [
        lambda f: np.zeros_like(f), lambda i: np.zeros_like(i), lambda: np.zeros_like([1, 2]), lambda: np.zeros_like([1.0, 2]),
        lambda f: np.zeros_like(f, np.float16), lambda f: np.zeros_like(f, shape=(2, 2)), lambda: np.zeros_like(2),
    ],
    "ones_like": [
        lambda f: np.ones_like(f), lambda i: np.ones_like(i), lambda: np.ones_like([1, 2]), lambda: np.ones_like([[1, 2], [3, 4]], np.int8),
        lambda f: np.ones_like(f, shape=2), lambda e: np.ones_like(e),
    ],
    "empty_like": [
        lambda f: np.empty_like(f).shape, lambda i: np.empty_like(i).dtype, lambda: np.empty_like([1, 2]).dtype,
        lambda: np.empty_like([[(1, 2), (3, 4)]]).shape, lambda f: np.empty_like(f, np.int32, (4,)).shape,
    ],
    "arange": [
        lambda: np.arange(5), lambda: np.arange(5.0), lambda: np.arange(1, 5), lambda: np.arange(1, 5, 2), lambda: np.arange(0, 1, 0.25),
        lambda: np.arange(5, 0, -2), lambda: np.arange(5, dtype=np.float16), lambda: np.arange(1, 2.5), lambda: np.arange(start=4),
        lambda: np.arange(1, stop=4), lambda z: np.arange(z), lambda: np.arange(2, 6, dtype="float32"), lambda: np.arange(0.1, 1, 0.3),
        lambda: np.arange(4, step=2), lambda: np.arange(T(3)), lambda: np.arange(True), lambda: np.arange(1, 2, 0.5, np.int32),
    ],
    "linspace": [
        lambda: np.linspace(0, 1, 5), lambda: np.linspace(0, 1, 5, endpoint=False), lambda: np.linspace(0, 1, 5, retstep=True),
        lambda: np.linspace(0, 10, 3, dtype=np.int32), lambda: np.linspace([1, 2], [3, 4], 3),
        lambda: np.linspace([1, 2], [3, 4], 3, axis=1), lambda: np.linspace([1, 2], [3, 4], 3, axis=-1), lambda v: np.linspace(v, 5, 3),
        lambda: np.linspace(2, 2, 3), lambda: np.linspace(0, 1, 1), lambda: np.linspace(0, 1, 1, endpoint=False),
        lambda: np.linspace(0, 3)[-1], lambda d: np.linspace(d, 1, 2), lambda: np.linspace(0, 1, 1, retstep=True),
        lambda: np.linspace(1, 2, 3, dtype="float16"),
    ],
    "logspace": [
        lambda: np.logspace(0, 2, 3), lambda: np.logspace(0, 3, 4, base=2), lambda: np.logspace(0, 2, 3, endpoint=False),
        lambda: np.logspace(0, 5, 6, dtype=np.int32), lambda: np.logspace([0, 1], [2, 3], 3),
        lambda: np.logspace([0, 1], [2, 3], 3, axis=1),
    ],
    "geomspace": [
        lambda: np.geomspace(1, 256, 9), lambda: np.geomspace(1, 256, 8, endpoint=False), lambda: np.geomspace(1, 1000, 4, dtype=np.int32),
        lambda: np.geomspace([1, 2], [100, 200], 3), lambda: np.geomspace([1, 2], [100, 200], 3, axis=1), lambda: np.geomspace(0, 1, 3),
        lambda: np.geomspace(-1, -100, 3), lambda: np.geomspace(2, 2, 3),
    ],
    "eye": [
        lambda: np.eye(2), lambda: np.eye(2, 3), lambda: np.eye(2, 3, 1), lambda: np.eye(3, k=-1, dtype=np.int32), lambda: np.eye(0),
        lambda: np.eye(2, 3, 5),
    ],
    "identity": [lambda: np.identity(2), lambda: np.identity(3, np.int32)],
    "tri": [lambda: np.tri(3), lambda: np.tri(2, 3, 1), lambda: np.tri(3, 3, -1, np.int32)],
    "tril": [
        lambda f: np.tril(f), lambda i: np.tril(i, 1), lambda f: np.tril(f, -1), lambda: np.tril([[1, 2], [3, 4]]),
        lambda: np.tril([[1.0, 2], [3, 4]], -1), lambda v: np.tril(v), lambda b: np.tril(b), lambda: np.tril(np.ones((2, 2, 2))),
    ],
    "triu": [lambda f: np.triu(f), lambda i: np.triu(i, 1), lambda v: np.triu(v), lambda: np.triu([[1, 2], [3, 4]], -1)],
    "tril_indices": [lambda: np.tril_indices(3), lambda: np.tril_indices(3, 1), lambda: np.tril_indices(2, -1, 3)],
    "triu_indices": [lambda: np.triu_indices(3), lambda: np.triu_indices(2, 1, 4), lambda: np.triu_indices(2, k=-1)],
    "tril_indices_from": [lambda f: np.tril_indices_from(f), lambda: np.tril_indices_from([[1, 2], [3, 4]], -1)],
    "triu_indices_from": [lambda f: np.triu_indices_from(f), lambda f: np.triu_indices_from(f, k=1)],
    "diag": [lambda v: np.diag(v), lambda f: np.diag(f), lambda v: np.diag(v, 1), lambda f: np.diag(f, -1), lambda f: np.diag(f, 5)],
    "diagflat": [lambda f: np.diagflat(f), lambda z: np.diagflat(z)],
    "diagonal": [
        lambda f: np.diagonal(f), lambda f: np.diagonal(f, 1), lambda: np.diagonal(np.arange(8).reshape(2, 2, 2)),
        lambda: np.diagonal(np.arange(8).reshape(2, 2, 2), 0, 0, 1), lambda: np.diagonal(np.arange(8).reshape(2, 2, 2), 0, 1, 2),
        lambda: np.diagonal(np.arange(8).reshape(2, 2, 2), 0, 2, 1), lambda f: np.diagonal(f, -1), lambda f: np.diagonal(f, 5),
    ],
    "trace": [
        lambda f: np.trace(f), lambda i: np.trace(i), lambda f: np.trace(f, 1), lambda: np.trace(np.arange(8).reshape(2, 2, 2)),
        lambda i: np.trace(i, dtype=np.float32), lambda f: np.trace(f, 5), lambda: np.trace(np.ones((2, 2), np.float16)),
        lambda: np.trace(np.ones((2, 2), np.int64)), lambda: np.trace(np.ones((2, 2), np.bool_)),
        lambda: np.trace(np.ones((2, 2, 3)), 0, 0, 2), lambda: np.trace(T(onp.array([[1, 2], [3, 4]], onp.uint8))),
        lambda: np.trace(T(onp.array([[1, 2], [3, 4]], onp.int8))),
    ],
    "diag_indices": [lambda: np.diag_indices(3), lambda: np.diag_indices(3, 3), lambda: np.diag_indices(2, 1)],
    "ix_": [
        lambda g: np.ix_(g, T(onp.array([0, 1, 2], onp.int32))), lambda b, v: np.ix_(v, b), lambda: np.ix_(T(onp.array([1, 2], onp.int32))),
    ],
    "indices": [
        lambda: np.indices((2, 3)), lambda: np.indices((2, 3), np.float32), lambda: np.indices((2, 3), sparse=True),
        lambda: np.indices((2,)), lambda: np.indices((2, 3), "int64"),
    ],
    "meshgrid": [
        lambda: np.meshgrid(), lambda g, v: np.meshgrid(v, g), lambda g, v: np.meshgrid(v, g, indexing="ij"),
        lambda g, v: np.meshgrid(v, g, sparse=True), lambda v: np.meshgrid(v), lambda g, z: np.meshgrid(z, g),
        lambda f, g: np.meshgrid(f, g)[0], lambda g, v: np.meshgrid(v, g, v)[1].shape,
    ],
    "mgrid": [
        lambda: np.mgrid[0:3], lambda: np.mgrid[0:3, 0:2], lambda: np.mgrid[-1:1:3j], lambda: np.mgrid[0:1:0.5, 0:2],
        lambda: np.mgrid[0:5:2], lambda: np.mgrid[0:2, 0:1:3j], lambda: np.mgrid[0:1:0.25],
    ],
    "ogrid": [
        lambda: np.ogrid[0:3], lambda: np.ogrid[0:3, 0:2], lambda: np.ogrid[-1:1:3j, 0:2], lambda: np.ogrid[0:5:2],
        lambda: np.ogrid[0:1:0.5], lambda: np.ogrid[0:2, 0:3, 0:2],
    ],
    "bartlett": [lambda: np.bartlett(5), lambda: np.bartlett(1), lambda: np.bartlett(0)],
    "blackman": [lambda: np.blackman(1), lambda: np.blackman(0)],
    "hamming": [lambda: np.hamming(5), lambda: np.hamming(1), lambda: np.hamming(-1)],
    "hanning": [lambda: np.hanning(5), lambda: np.hanning(1)],
    "vander": [
        lambda: np.vander([1, 2, 3]), lambda: np.vander([1.0, 2, 3], 2), lambda v: np.vander(v, 4, True), lambda: np.vander([1, 2, 3], 0),
        lambda: np.vander(T(onp.array([1, 2], onp.int32))),
    ],
    "rand": [
        lambda: np.rand(2, 3).shape, lambda: np.rand(2, dtype=np.float16).dtype, lambda: np.rand().shape, lambda: np.rand((2, 3)).shape,
        lambda: np.rand(2, 3, dtype="float16").dtype,
    ],
    "randn": [
        lambda: np.randn(2, 3).shape, lambda: np.randn(2, dtype=np.float16).dtype, lambda: np.randn().shape, lambda: np.randn((2, 3)).shape,
        lambda: np.randn(2, dtype=np.float64).dtype, lambda: np.randn(2).shape,
    ],
    "randint": [
        lambda: np.randint(5).shape, lambda: np.randint(2, 5, (2, 3)).shape, lambda: np.randint(2, 5, 3).dtype,
        lambda: np.randint(5, shape=(2,)).shape,
    ],
    "histogram_bin_edges": [
        lambda: np.histogram_bin_edges([1, 2, 3, 4], 4), lambda f: np.histogram_bin_edges(f), lambda f: np.histogram_bin_edges(f, [1, 2]),
        lambda f: np.histogram_bin_edges(f, 3, (0, 6)), lambda: np.histogram_bin_edges([1, 1], 2),
        lambda i: np.histogram_bin_edges(i, 3, (0, 6)), lambda: np.histogram_bin_edges([0, 1, 2], 3, weights=[1, 2, 3]),
    ],
    "pad": [
        lambda v: np.pad(v, 1), lambda v: np.pad(v, (1, 2)), lambda f: np.pad(f, ((1, 0), (0, 2))),
        lambda f: np.pad(f, 1, constant_values=5), lambda f: np.pad(f, 1, constant_values=((1, 2), (3, 4))),
        lambda v: np.pad(v, 1, mode="edge"), lambda v: np.pad(v, 2, mode="reflect"),
        lambda v: np.pad(v, 2, mode="reflect", reflect_type="odd"), lambda v: np.pad(v, 5, mode="reflect"),
        lambda v: np.pad(v, 2, mode="symmetric"), lambda v: np.pad(v, 2, mode="symmetric", reflect_type="odd"),
        lambda v: np.pad(v, 5, mode="symmetric"), lambda v: np.pad(v, 4, mode="wrap"), lambda v: np.pad(v, 2, mode="maximum"),
        lambda v: np.pad(v, 2, mode="minimum"), lambda v: np.pad(v, 2, mode="mean"), lambda v: np.pad(v, 2, mode="mean", stat_length=2),
        lambda v: np.pad(v, 2, mode="maximum", stat_length=(1, 2)), lambda v: np.pad(v, 2, mode="linear_ramp"),
        lambda v: np.pad(v, 2, mode="linear_ramp", end_values=5), lambda f: np.pad(f, 1, mode="linear_ramp", end_values=((1, 2), (3, 4))),
        lambda v: np.pad(v, 2, mode="empty"), lambda v: np.pad(v, -1), lambda i: np.pad(i, 1), lambda i: np.pad(i, 1, "mean"),
        lambda i: np.pad(i[0], 2, "linear_ramp", end_values=7), lambda: np.pad([1, 2], 1), lambda f: np.pad(f, ((1, 1),), mode="edge"),
        lambda f: np.pad(f, (2, 1), mode="symmetric"), lambda f: np.pad(f, (1,), mode="wrap"), lambda b: np.pad(b, 1),
        lambda z: np.pad(z, 1), lambda f: np.pad(f, ((1, 2), (3, 4)), "reflect"), lambda f: np.pad(f, 2, "mean"),
        lambda f: np.pad(f, 1, constant_values=(7, 8)), lambda v: np.pad(v, (2, 3), "linear_ramp", end_values=(-1, -2)),
        lambda v: np.pad(v, 2, "minimum", stat_length=((1, 2),)), lambda v: np.pad(v, 2, "mean", stat_length=0),
        lambda v: np.pad(v, 5, mode="reflect", reflect_type="odd"), lambda v: np.pad(v, 5, mode="symmetric", reflect_type="odd"),
        lambda: np.pad(T([1.0]), 2, mode="reflect"), lambda v: np.pad(v, 2, mode="reflect", reflect_type="x"),
    ],
    "broadcast_to": [lambda v: np.broadcast_to(v, (2, 3)), lambda z: np.broadcast_to(z, ()), lambda f: np.broadcast_to(f, (1, 2, 3))],
    "broadcast_arrays": [lambda f, v: np.broadcast_arrays(v, f), lambda f: np.broadcast_arrays(f)],
    "moveaxis": [
        lambda: np.moveaxis(np.ones((2, 3, 4)), 0, 2).shape, lambda: np.moveaxis(np.ones((2, 3, 4)), (0, 1), (-1, -2)).shape,
        lambda f: np.moveaxis(f, [0], [1]),
    ],
    "array_str": [
        lambda: np.array_str(T(onp.array([1.123456789, 10000000000.0], onp.float32))),
        lambda: np.array_str(T(onp.ones((2, 0), onp.float32))), lambda b: np.array_str(b),
    ],
}
REFUSED = {
    "array": [
        lambda: np.array(onp.array([1.0, 2.0])), lambda: np.array(onp.array([1, 2])), lambda: np.array("a"), lambda: np.array([1, [2, 3]]),
        lambda: np.array(range(3)), lambda: np.array(None),
    ],
    "asarray": [lambda: np.asarray(onp.array([1.0, 2.0])), lambda: np.asarray(onp.array([1.0, 2.0]), np.float16), lambda: np.asarray("a")],
    "zeros": [
        lambda: np.zeros(-1), lambda: np.zeros((2, -1)), lambda: np.zeros(2.5), lambda: np.zeros("a"), lambda: np.zeros(2, None),
        lambda: np.zeros(True), lambda: np.zeros((2,), dtype="foo"),
    ],
    "ones": [lambda: np.ones(-1), lambda: np.ones(2.5)],
    "full": [lambda i: np.full((2, 2), i), lambda: np.full("a", 1)],
    "zeros_like": [lambda: np.zeros_like("a")],
    "ones_like": [lambda: np.ones_like([[1, 2], [3]])],
    "arange": [
        lambda: np.arange(0), lambda: np.arange(3, 1), lambda: np.arange(stop=4), lambda: np.arange(0, 5, 0), lambda: np.arange("a"),
    ],
    "linspace": [
        lambda: np.linspace(0, 1, 0), lambda: np.linspace(0, 1, -1), lambda: np.linspace("a", 1, 3), lambda: np.linspace(0, 1, 2.5),
        lambda: np.linspace(0, 1, 5.0),
    ],
    "logspace": [lambda: np.logspace(0, 2, 3, base="a"), lambda: np.logspace(1, 2, 0)],
    "eye": [lambda: np.eye(-1), lambda: np.eye(2.5)],
    "identity": [lambda: np.identity("a")],
    "tril": [lambda z: np.tril(z), lambda f: np.tril(f, 0.5)],
    "triu": [lambda z: np.triu(z), lambda f: np.triu(f, "a")],
    "tril_indices": [lambda: np.tril_indices("a")],
    "tril_indices_from": [lambda v: np.tril_indices_from(v)],
    "triu_indices_from": [lambda: np.triu_indices_from(2)],
    "diag": [
        lambda: np.diag([1, 2]), lambda: np.diag([[1, 2], [3, 4]]), lambda z: np.diag(z), lambda: np.diag(np.ones((2, 2, 2))),
        lambda v: np.diag(v, "a"),
    ],
    "diagflat": [lambda: np.diagflat([1, 2], 1), lambda: np.diagflat([1, 2], -1), lambda: np.diagflat(2)],
    "diagonal": [lambda v: np.diagonal(v), lambda f: np.diagonal(f, 0, 0, 0)],
    "diag_indices": [lambda: np.diag_indices("a"), lambda: np.diag_indices(-1)],
    "ix_": [lambda: np.ix_([0, 1], [2, 3]), lambda b: np.ix_(b, [1, 2]), lambda f: np.ix_(f), lambda: np.ix_([1.5])],
    "indices": [lambda: np.indices(2)],
    "meshgrid": [
        lambda: np.meshgrid([1, 2], [3, 4, 5]), lambda v: np.meshgrid(v, [3, 4]), lambda: np.meshgrid([1, 2], [3, 4, 5], indexing="ij"),
        lambda: np.meshgrid([1, 2], [3, 4, 5], sparse=True), lambda: np.meshgrid([1, 2], [3, 4], [5, 6])[0], lambda: np.meshgrid([1, 2]),
        lambda: np.meshgrid(2, [3, 4]), lambda f: np.meshgrid(f, [3, 4])[0], lambda: np.meshgrid([1, 2], [3, 4], indexing="xx"),
        lambda g, v: np.meshgrid(v, g, indexing="xx"),
    ],
    "mgrid": [lambda: np.mgrid[3]],
    "bartlett": [lambda: np.bartlett("a")],
    "hanning": [lambda: np.hanning(2.5)],
    "vander": [lambda f: np.vander(f), lambda: np.vander([1, 2], -1), lambda v: np.vander(v, 2, "a"), lambda v: np.vander(v, 2.5)],
    "histogram_bin_edges": [
        lambda: np.histogram_bin_edges([1, 2], "auto"), lambda f: np.histogram_bin_edges(f, 3, range=(6, 0)),
        lambda f: np.histogram_bin_edges(f, 2, weights=[1, 2, 3]),
    ],
    "pad": [
        lambda v: np.pad(v, 2, mode="median"), lambda v: np.pad(v, 2, mode="xx"), lambda f: np.pad(f, ((1, 2), (0, 1), (1, 1))),
        lambda v: np.pad(v, 2.5),
    ],
    "broadcast_to": [
        lambda v: np.broadcast_to(v, (2, 2)), lambda: np.broadcast_to([1, 2], (2, 2)), lambda: np.broadcast_to(2, (2,)),
        lambda f: np.broadcast_to(f, -1), lambda v: np.broadcast_to(v, 3), lambda f: np.broadcast_to(f, 3),
    ],
    "broadcast_arrays": [lambda: np.broadcast_arrays([1, 2], 2), lambda f, g: np.broadcast_arrays(f, g)],
    "moveaxis": [
        lambda f: np.moveaxis(f, 0, 3), lambda f: np.moveaxis(f, (0, 0), (0, 1)), lambda f: np.moveaxis(f, 0, (0, 1)),
        lambda: np.moveaxis([1], 0, 0),
    ],
    "tri": [lambda: np.tri(2.5)],
    "geomspace": [lambda: np.geomspace(1, 10, 0)],
}


@case(over=named(VALUES), rtol=1e-5, atol=1e-6, graph=True)
def value(call):
    return answer(run(call))


@case(over=named(REFUSED))
def refused(call):
    return {"error": raised(lambda: answer(call(*(INPUTS[name] for name in call.__code__.co_varnames[: call.__code__.co_argcount]))))}
