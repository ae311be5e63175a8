"""mindspore.numpy: shape, joining, selection, sets, comparisons. Each call is a record; Cells let Graph mode compile it."""
import mindspore.numpy as np
import numpy as onp
from mindspore import Tensor as T
from parity.case import case, raised
from parity.numpy_calls import INPUTS, answer, named, run

VALUES = {
    "reshape": [
        lambda f: np.reshape(f, (3, 2)), lambda f: np.reshape(f, -1), lambda f: np.reshape(f, [6]), lambda f: np.reshape(f, 6),
        lambda f: np.reshape(f, (1, -1)),
    ],
    "ravel": [lambda f: np.ravel(f)],
    "transpose": [
        lambda f: np.transpose(f), lambda: np.transpose(np.ones((2, 3, 4)), (1, 0, 2)).shape, lambda f: np.transpose(f, [1, 0]),
        lambda f: np.transpose(f, (-1, 0)), lambda v: np.transpose(v),
    ],
    "expand_dims": [lambda f: np.expand_dims(f, 0), lambda f: np.expand_dims(f, -1), lambda f: np.expand_dims(f, (0, 2)).shape],
    "squeeze": [
        lambda: np.squeeze(np.ones((1, 2, 1))), lambda: np.squeeze(np.ones((1, 2, 1)), 0).shape,
        lambda: np.squeeze(np.ones((1, 2, 1)), (0, 2)).shape, lambda f: np.squeeze(f, 0), lambda: np.squeeze(np.ones((1, 2, 1)), -1).shape,
        lambda f: np.squeeze(f, (0, 0)),
    ],
    "swapaxes": [lambda: np.swapaxes(np.ones((2, 3, 4)), 0, 2).shape, lambda f: np.swapaxes(f, -1, 0)],
    "rollaxis": [
        lambda: np.rollaxis(np.ones((2, 3, 4)), 2).shape, lambda: np.rollaxis(np.ones((2, 3, 4)), 0, 3).shape,
        lambda: np.rollaxis(np.ones((2, 3, 4)), 1, -1).shape,
    ],
    "concatenate": [
        lambda f: np.concatenate((f, f)), lambda f: np.concatenate([f, f], 1), lambda f: np.concatenate((f, f), None),
        lambda f, i: np.concatenate((f, i)), lambda h, d: np.concatenate((h, d)), lambda g, b: np.concatenate((b, g)),
        lambda v: np.concatenate((v,)), lambda f: np.concatenate((f, f), -1), lambda f, e: np.concatenate((f, e)),
        lambda g, u: np.concatenate((g, u)), lambda: np.concatenate(np.ones((2, 3, 2))).shape,
    ],
    "append": [
        lambda f: np.append(f, f), lambda f: np.append(f, f, 0), lambda f, v: np.append(f, v), lambda g, v: np.append(v, g),
        lambda f, v: np.append(f, v, None),
    ],
    "stack": [
        lambda f: np.stack((f, f)), lambda f: np.stack([f, f], 1), lambda f: np.stack((f, f), -1), lambda f, i: np.stack((f, i)),
        lambda f: np.stack(f),
    ],
    "hstack": [lambda f: np.hstack((f, f))],
    "vstack": [lambda v: np.vstack((v, v)), lambda f: np.vstack((f, f)), lambda f: np.vstack(f), lambda f, v: np.vstack((f, v))],
    "dstack": [lambda v: np.dstack((v, v)), lambda f: np.dstack((f, f))],
    "column_stack": [lambda v: np.column_stack((v, v))],
    "split": [lambda f: np.split(f, 3, 1), lambda f: np.split(f, 2), lambda v: np.split(v, [1, 2]), lambda f: np.split(f, [1], -1)],
    "array_split": [
        lambda v: np.array_split(v, 2), lambda: np.array_split(np.arange(7), 3), lambda v: np.array_split(v, [1]),
        lambda f: np.array_split(f, 2, 1), lambda: np.array_split(np.arange(9), 4),
    ],
    "vsplit": [lambda f: np.vsplit(f, 2), lambda f: np.vsplit(f, [1])],
    "hsplit": [lambda f: np.hsplit(f, 3), lambda f: np.hsplit(f, [1])],
    "dsplit": [lambda: np.dsplit(np.ones((2, 2, 2)), 2), lambda: np.dsplit(np.ones((2, 2, 2)), [1])],
    "tile": [
        lambda v: np.tile(v, 2), lambda f: np.tile(f, (2, 1)), lambda f: np.tile(f, (2, 1, 2)).shape, lambda v: np.tile(v, 0),
        lambda f: np.tile(f, (2,)), lambda v: np.tile(v, (2, 2)), lambda z: np.tile(z, 2),
    ],
    "repeat": [
        lambda f: np.repeat(f, 2), lambda f: np.repeat(f, 2, 0), lambda f: np.repeat(f, 2, 1), lambda f: np.repeat(f, [1, 2], 0),
        lambda v: np.repeat(v, [1, 0, 2]), lambda: np.repeat([1, 2], 2), lambda: np.repeat(3, 2), lambda f: np.repeat(f, [2], 1),
        lambda f: np.repeat(f, (1, 2, 3), 1), lambda f: np.repeat(f, [1], None), lambda f: np.repeat(f, (2,), 0),
    ],
    "flip": [
        lambda f: np.flip(f), lambda f: np.flip(f, 0), lambda f: np.flip(f, (0, 1)), lambda f: np.flip(f, -1), lambda z: np.flip(z),
        lambda i: np.flip(i), lambda b: np.flip(b),
    ],
    "fliplr": [lambda f: np.fliplr(f)],
    "flipud": [lambda f: np.flipud(f), lambda v: np.flipud(v)],
    "rot90": [
        lambda f: np.rot90(f), lambda f: np.rot90(f, 2), lambda f: np.rot90(f, -1), lambda f: np.rot90(f, 5),
        lambda: np.rot90(np.arange(8).reshape(2, 2, 2), 1, (1, 2)), lambda f: np.rot90(f, 1, (1, 0)),
    ],
    "roll": [
        lambda f: np.roll(f, 1), lambda f: np.roll(f, 1, 0), lambda f: np.roll(f, (1, 2), (0, 1)), lambda f: np.roll(f, 1, (0, 1)),
        lambda v: np.roll(v, -5), lambda f: np.roll(f, [1, 2], 0), lambda f: np.roll(f, (1, 2)), lambda i: np.roll(i, 1),
    ],
    "where": [
        lambda h, d, b: np.where(b, h, d), lambda f: np.where(f > 0, f, 0), lambda f: np.where(f > 0, 1, 0),
        lambda f: np.where(f > 0, f, -1.5), lambda f, i: np.where(f > 0, f, i), lambda f, i: np.where(f > 0, i, 0.5),
        lambda f, v: np.where(f > 0, v, f), lambda f, i: np.where(f, f, i), lambda: np.where([True, False], [1, 2], [3, 4]),
        lambda f, i: np.where(True, f, i), lambda f, h: np.where(f > 0, h[0], 1), lambda i: np.where(i, 1, 2),
        lambda f: np.where(f > 0, True, False), lambda f, i, g: np.where(f > 0, g[0], i), lambda f, g, b: np.where(b, g, f[:, 0]),
        lambda: np.where(T([0, 1]), T([1, 2]), T([3, 4])), lambda f: np.where(f > 0, [1, 2, 3], 0),
    ],
    "select": [
        lambda f, i: np.select([f > 0, f < 0], [f, i]), lambda f: np.select([f > 0, f < -1], [f, -f], 5),
        lambda: np.select([[True, False], [False, True]], [[1, 2], [3, 4]]), lambda f, i: np.select([f > 0], [i], 1.5),
        lambda f, v: np.select([f > 2], [v]), lambda f: np.select((f > 2, f < 0), (1, 2), 3), lambda f: np.select(f > 0, f),
    ],
    "choose": [
        lambda: np.choose([0, 1], [[1, 2], [3, 4]]), lambda v: np.choose(T(onp.array([0, 1, 5], onp.int32)), [v, v * 2]),
        lambda v: np.choose([0, 1, -1], [v, v * 2], "wrap"), lambda: np.choose([0, 1], (1, 2)),
        lambda v: np.choose([0, 5, -5], [v, v * 2, v * 3], mode="wrap"), lambda h, d: np.choose([0, 1], [h, d]),
        lambda g, v: np.choose([0, 1], [v[:2], g]), lambda: np.choose([0, 1], T(onp.array([[1, 2], [3, 4]], onp.int32))),
    ],
    "take": [
        lambda f: np.take(f, T(onp.array([0, 1, 5], onp.int32))), lambda f: np.take(f, T(onp.array([0, 1], onp.int32)), 1),
        lambda f: np.take(f, T(onp.array([0, -1], onp.int32)), 1), lambda f: np.take(f, T(onp.array([0, -4], onp.int32)), 1, "wrap"),
        lambda f, g: np.take(f, g, 0), lambda f: np.take(f, T(onp.array([[0, 1], [2, 3]], onp.int32))),
        lambda v: np.take(v, T(onp.array([-1, 1], onp.int32))), lambda f: np.take(f, T(onp.array([0, 7], onp.int32)), mode="wrap"),
        lambda f: np.take(f, T(1)), lambda f: np.take(f, T(onp.array([1], onp.int32)), -1),
    ],
    "take_along_axis": [
        lambda f: np.take_along_axis(f, T(onp.array([[0], [1]], onp.int32)), 1),
        lambda f: np.take_along_axis(f, T(onp.array([[0, 1, 0]], onp.int32)), 0),
        lambda f: np.take_along_axis(f, T(onp.array([0, 1], onp.int32)), None),
        lambda f: np.take_along_axis(f, T(onp.array([[-1], [1]], onp.int32)), 1),
        lambda f: np.take_along_axis(f, T(onp.array([[0, 0, 0, 0], [1, 1, 1, 1]], onp.int64)), -1),
    ],
    "unique": [
        lambda: np.unique(T(onp.array([3, 1, 3, 2], onp.int32))), lambda: np.unique(T(onp.array([3, 1, 3, 2], onp.int32)), True),
        lambda f: np.unique(f), lambda i: np.unique(i, return_inverse=True), lambda f: np.unique(f, 1),
    ],
    "intersect1d": [
        lambda: np.intersect1d([1, 3, 4, 3], [3, 1, 2, 1]),
        lambda: np.intersect1d(T(onp.array([3, 1, 2], onp.int32)), T(onp.array([2, 3], onp.int32)), True),
        lambda: np.intersect1d([1, 3, 4, 3], [3, 1, 2, 1], return_indices=True), lambda: np.intersect1d([1, 3], [3, 1, 2], True, True),
        lambda v: np.intersect1d(v, [1, 5]), lambda f: np.intersect1d(f, f), lambda: np.intersect1d([1, 2], [3, 4]),
    ],
    "setdiff1d": [
        lambda: np.setdiff1d([1, 2, 3, 2, 4, 1], [3, 4, 5, 6]), lambda: np.setdiff1d([1, 2, 3, 2, 4, 1], [3, 4, 5, 6], True),
        lambda v: np.setdiff1d(v, [1.0]), lambda: np.setdiff1d([1, 2], [1, 2]), lambda f: np.setdiff1d(f, [[0.5, 2.0]]),
    ],
    "in1d": [
        lambda: np.in1d([1, 2, 3], [2]), lambda f: np.in1d(f, [0.5], True), lambda i: np.in1d(i, i), lambda: np.in1d([1, 2], []),
        lambda v: np.in1d(v, 2), lambda i: np.in1d(i, [1, 2], invert=False),
    ],
    "isin": [
        lambda: np.isin([[1, 2], [3, 4]], [2, 3]), lambda f: np.isin(f, [0.5], invert=True), lambda: np.isin(2, [1, 2]),
        lambda f, i: np.isin(f, i),
    ],
    "argwhere": [lambda f: np.argwhere(f > 0), lambda i: np.argwhere(i), lambda v: np.argwhere(v), lambda: np.argwhere([0, 1])],
    "ravel_multi_index": [
        lambda: np.ravel_multi_index([[1, 5], [0, -2]], (2, 3), mode="clip"),
        lambda: np.ravel_multi_index([[1, 5], [0, -2]], (2, 3), mode="wrap"), lambda: np.ravel_multi_index((1, 2), (2, 3)),
        lambda g: np.ravel_multi_index((g, g), (2, 3)), lambda i: np.ravel_multi_index(i, (7, 7)),
    ],
    "unravel_index": [
        lambda: np.unravel_index([1, 5], (2, 3)), lambda: np.unravel_index(4, (2, 3)), lambda: np.unravel_index([1, 5], (2, 3), "F"),
        lambda: np.unravel_index([1, 9, -3], (2, 3)), lambda g: np.unravel_index(g, (2, 3)),
        lambda: np.unravel_index([[1, 2], [3, 4]], (2, 3)), lambda: np.unravel_index([1.5], (2, 3)), lambda: np.unravel_index([1], 6),
        lambda: np.unravel_index(T(3), (2, 2)),
    ],
    "apply_along_axis": [lambda f: np.apply_along_axis(np.diag, 0, f).shape],
    "apply_over_axes": [
        lambda f: np.apply_over_axes(np.sum, f, (0, 1)), lambda f: np.apply_over_axes(np.sum, f, 0),
        lambda i: np.apply_over_axes(np.cumsum, i, [0]), lambda: np.apply_over_axes(np.mean, np.ones((2, 3, 4)), (0, 2)).shape,
        lambda f: np.apply_over_axes(np.sum, f, (0, 0)), lambda: np.apply_over_axes(np.sum, [[1, 2], [3, 4]], 1),
    ],
    "piecewise": [
        lambda f: np.piecewise(f, [f < 0, f >= 0], [-1, 1]), lambda f: np.piecewise(f, [f < 0, f >= 2], [-1, 1]),
        lambda i: np.piecewise(i, [i < 0, i >= 0], [-1.5, 1.5]),
    ],
    "size": [lambda f: np.size(f), lambda f: np.size(f, 1), lambda: np.size([1, 2]), lambda: np.size(2), lambda f: np.size(f, -1)],
    "array_str": [lambda f: np.array_str(f), lambda v: np.array_str(v), lambda i: np.array_str(i), lambda z: np.array_str(z)],
    "atleast_1d": [lambda v, z: np.atleast_1d(z, v), lambda f: np.atleast_1d(f), lambda: np.atleast_1d()],
    "atleast_2d": [lambda f, v: np.atleast_2d(v, f), lambda: np.atleast_2d(np.ones((1, 2, 3))).shape, lambda z: np.atleast_2d(z)],
    "atleast_3d": [lambda v: np.atleast_3d(v).shape, lambda f: np.atleast_3d(f).shape, lambda v, z: np.atleast_3d(v, z)],
    "isclose": [
        lambda f: np.isclose(f, f), lambda: np.isclose([1.0, 2], [1.0, 2.1]), lambda nan: np.isclose(nan, nan),
        lambda nan: np.isclose(nan, nan, equal_nan=True), lambda i: np.isclose(i, i), lambda f: np.isclose(f, 0.5, rtol=1e-05, atol=1.0),
        lambda h: np.isclose(h, h), lambda g: np.isclose(g, g),
        lambda: np.isclose(T([float("inf"), float("-inf")]), T([float("inf"), float("inf")])),
    ],
    "array_equal": [
        lambda f: np.array_equal(f, f), lambda f, v: np.array_equal(f, v), lambda: np.array_equal([1, 2], [1, 2]),
        lambda nan: np.array_equal(nan, nan), lambda nan: np.array_equal(nan, nan, equal_nan=True),
        lambda: np.array_equal([1, 2], [1, 2.5]), lambda f, i: np.array_equal(i, f), lambda: np.array_equal(2, 2),
    ],
    "array_equiv": [
        lambda: np.array_equiv([1, 2], [[1, 2], [1, 2]]), lambda f, v: np.array_equiv(f, v), lambda: np.array_equiv([1, 2], [1, 2, 3]),
        lambda: np.array_equiv(2, 2), lambda f: np.array_equiv(f, f),
    ],
    "sometrue": [
        lambda b: np.sometrue(b), lambda f: np.sometrue(f, 0), lambda f: np.sometrue(f * 0, axis=1, keepdims=True),
        lambda i: np.sometrue(i), lambda: np.sometrue([0, 1]), lambda f: np.sometrue(f, (0, 1)),
    ],
    "isscalar": [
        lambda: np.isscalar(2), lambda: np.isscalar(2.5), lambda f: np.isscalar(f), lambda z: np.isscalar(z), lambda: np.isscalar("a"),
        lambda: np.isscalar([1]), lambda: np.isscalar(True), lambda: np.isscalar(1j), lambda: np.isscalar(onp.float32(1)),
        lambda: np.isscalar(None),
    ],
    "broadcast_to": [lambda v: np.broadcast_to(v, [2, 3])],
}
REFUSED = {
    "reshape": [
        lambda f: np.reshape(f, (4, 2)), lambda: np.reshape([1, 2], (2, 1)), lambda f: np.reshape(f, "a"), lambda f: np.reshape(f, (2.5,)),
    ],
    "ravel": [lambda: np.ravel([[1, 2]])],
    "transpose": [
        lambda f: np.transpose(f, (0,)), lambda: np.transpose([[1, 2]]), lambda f: np.transpose(f, 0), lambda f: np.transpose(f, (0, 0)),
    ],
    "expand_dims": [lambda f: np.expand_dims(f, 5), lambda: np.expand_dims([1, 2], 0), lambda: np.expand_dims(2, 0)],
    "squeeze": [lambda: np.squeeze([[1, 2]]), lambda f: np.squeeze(f, 5)],
    "swapaxes": [lambda f: np.swapaxes(f, 0, 5), lambda: np.swapaxes([[1, 2]], 0, 1)],
    "rollaxis": [lambda f: np.rollaxis(f, 5), lambda f: np.rollaxis(f, 0, 5), lambda: np.rollaxis([1], 0)],
    "concatenate": [
        lambda: np.concatenate(([1, 2], [3, 4])), lambda f, v: np.concatenate((f, v)), lambda f: np.concatenate((f, f), 2),
        lambda: np.concatenate((2, 3)),
    ],
    "append": [lambda: np.append([1, 2], [3]), lambda f, v: np.append(f, v, 0), lambda v: np.append(v, 2), lambda f: np.append(f, f, 3)],
    "stack": [
        lambda v: np.stack((v, [1, 2, 3])), lambda: np.stack(([1, 2], [3, 4])), lambda f, v: np.stack((f, v)), lambda: np.stack((1, 2)),
    ],
    "hstack": [lambda: np.hstack(())],
    "vstack": [lambda g, v: np.vstack((v, g)), lambda: np.vstack(())],
    "dstack": [lambda: np.dstack(())],
    "column_stack": [lambda: np.column_stack(())],
    "split": [
        lambda f: np.split(f, 4), lambda v: np.split(v, (1, 5)), lambda: np.split([1, 2], 2), lambda f: np.split(f, 2.5),
        lambda v: np.split(v, [2, 1]), lambda v: np.split(v, [0, 3]), lambda f: np.split(f, 0), lambda f: np.split(f, 2, 3),
    ],
    "array_split": [lambda v: np.array_split(v, 5), lambda v: np.array_split(v, 0)],
    "vsplit": [lambda v: np.vsplit(v, 2)],
    "hsplit": [lambda v: np.hsplit(v, 3), lambda v: np.hsplit(v, [1])],
    "dsplit": [lambda f: np.dsplit(f, 2)],
    "tile": [lambda: np.tile([1, 2], 2), lambda: np.tile(2, 3), lambda f: np.tile(f, -1), lambda f: np.tile(f, 2.5)],
    "repeat": [
        lambda f: np.repeat(f, [1, 2], 1), lambda f: np.repeat(f, -1), lambda f: np.repeat(f, 2.5), lambda f: np.repeat(f, 2, 5),
        lambda g, v: np.repeat(v, g),
    ],
    "flip": [lambda f: np.flip(f, 5), lambda: np.flip(2), lambda: np.flip([1, 2])],
    "fliplr": [lambda v: np.fliplr(v)],
    "rot90": [
        lambda f: np.rot90(f, 1, (0, 0)), lambda f: np.rot90(f, 1, (0, 5)), lambda v: np.rot90(v), lambda f: np.rot90(f, 1.5),
        lambda: np.rot90([[1, 2]]),
    ],
    "roll": [lambda: np.roll([1, 2], 1), lambda f: np.roll(f, 1, 5)],
    "where": [
        lambda f: np.where(f > 0), lambda f: np.where(f > 0, f), lambda f: np.where(f > 0, T([1.0, 2.0]), f),
        lambda f: np.where(f > 0, None, f),
    ],
    "select": [lambda f: np.select([f > 0], [f, f]), lambda b: np.select([b], [1], default="a")],
    "choose": [
        lambda g: np.choose([0, 5], [g, g], "raise"), lambda g: np.choose([0.5, 1], [g, g]), lambda g: np.choose([0, 1], [g, g], mode="xx"),
        lambda: np.choose(5, [1, 2]), lambda v: np.choose(0, [v, v * 2]),
    ],
    "take": [
        lambda f: np.take(f, T(onp.array([0, 4], onp.int32)), 1, "raise"), lambda f: np.take(f, [0, 1]), lambda f: np.take(f, 2),
        lambda: np.take([1, 2], [0]), lambda f: np.take(f, T(onp.array([0, 1], onp.int32)), 5),
        lambda f: np.take(f, T(onp.array([0.0, 1.0], onp.float32))),
    ],
    "take_along_axis": [
        lambda f: np.take_along_axis(f, [[0], [1]], 1), lambda f: np.take_along_axis(f, T(onp.array([0], onp.int32)), 1),
        lambda f: np.take_along_axis(f, T(onp.array([[0], [1]], onp.int32)), 5),
    ],
    "unique": [lambda: np.unique([1, 2, 2]), lambda: np.unique(2)],
    "isin": [lambda f: np.isin(f, "a")],
    "ravel_multi_index": [
        lambda: np.ravel_multi_index([[1, 5], [0, -2]], (2, 3), mode="raise"),
        lambda: np.ravel_multi_index([[1, 0], [0, 2]], (2, 3), order="x"), lambda: np.ravel_multi_index([[1, 0]], (2, 3)),
    ],
    "unravel_index": [lambda: np.unravel_index([1], (2, 3), "x")],
    "apply_over_axes": [
        lambda f: np.apply_over_axes(np.sum, f, 5), lambda: np.apply_over_axes(np.sum, "a", 1),
        lambda f: np.apply_over_axes(np.sum, f, "a"),
    ],
    "piecewise": [
        lambda f: np.piecewise(f, f < 0, -1), lambda f: np.piecewise(f, [f < 0], [1, 2, 3]), lambda f: np.piecewise(f, [f < 0], -1),
    ],
    "size": [lambda f: np.size(f, (0, 1)), lambda f: np.size(f, 5)],
    "array_str": [lambda: np.array_str([1, 2])],
    "atleast_1d": [lambda: np.atleast_1d(2), lambda: np.atleast_1d([1, 2])],
    "atleast_2d": [lambda: np.atleast_2d(2), lambda: np.atleast_2d([1.0, 2])],
    "atleast_3d": [lambda: np.atleast_3d(2), lambda: np.atleast_3d([1, 2])],
    "isclose": [lambda f: np.isclose("a", f)],
    "array_equal": [lambda f: np.array_equal("a", f)],
    "sometrue": [lambda f: np.sometrue(f, 5)],
}


@case(over=named(VALUES), rtol=1e-5, atol=1e-6, graph=True)
def value(call):
    return answer(run(call))


@case(over=named(REFUSED))
def refused(call):
    return {"error": raised(lambda: answer(call(*(INPUTS[name] for name in call.__code__.co_varnames[: call.__code__.co_argcount]))))}
