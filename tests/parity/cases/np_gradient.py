"""mindspore.numpy: gradients of what is no function of single values, with weights on the results so that no two places count alike."""
import mindspore as ms
import mindspore.numpy as np
import numpy as onp
from mindspore import Tensor as T
from parity.case import case

F = onp.array([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]], onp.float32)
V = T(onp.array([1.0, 2.0, 3.0], onp.float32))
SQUARE = T(onp.array([[2.0, 1.0], [0.5, -1.0], [1.5, 0.0]], onp.float32))
INDICES = T(onp.array([[0, 2], [1, 1]], onp.int32))

CALLS = {
    "amax": lambda f: np.amax(f, 1), "amin": lambda f: np.amin(f), "append": lambda f: np.append(f, f, 1),
    "array": lambda f: np.array(f) * 2, "average": lambda f: np.average(f, 1, V), "broadcast_to": lambda f: np.broadcast_to(f, (2, 2, 3)),
    "clip": lambda f: np.clip(f, -1, 2), "column_stack": lambda f: np.column_stack((f, f * 2)),
    "concatenate": lambda f: np.concatenate((f, f * f)), "copy": lambda f: np.copy(f) * f, "corrcoef": lambda f: np.corrcoef(f),
    "cov": lambda f: np.cov(f), "cross": lambda f: np.cross(f, V), "cumprod": lambda f: np.cumprod(f, 1),
    "cumsum": lambda f: np.cumsum(f, 0), "diag": lambda f: np.diag(f), "diagflat": lambda f: np.diagflat(f),
    "diagonal": lambda f: np.diagonal(f, 1), "diff": lambda f: np.diff(f), "dot": lambda f: np.dot(f, SQUARE),
    "dstack": lambda f: np.dstack((f, f)), "ediff1d": lambda f: np.ediff1d(f), "expand_dims": lambda f: np.expand_dims(f, 1),
    "gradient": lambda f: np.gradient(f, axis=1),
    "hstack": lambda f: np.hstack((f, f)), "inner": lambda f: np.inner(f, V), "kron": lambda f: np.kron(f, V),
    "matmul": lambda f: np.matmul(f, SQUARE), "max": lambda f: np.max(f, 0), "mean": lambda f: np.mean(f, 0), "min": lambda f: np.min(f, 1),
    "moveaxis": lambda f: np.moveaxis(f, 0, 1), "multi_dot": lambda f: np.multi_dot((f, SQUARE, f)),
    "nancumsum": lambda f: np.nancumsum(f, 1), "nanmean": lambda f: np.nanmean(f, 1), "nanstd": lambda f: np.nanstd(f, 1),
    "nansum": lambda f: np.nansum(f, 0), "nanvar": lambda f: np.nanvar(f, 0), "norm": lambda f: np.norm(f),
    "norm_axis": lambda f: np.norm(f, axis=1), "norm_one": lambda f: np.norm(f, 1), "norm_three": lambda f: np.norm(f, 3, 0),
    "outer": lambda f: np.outer(f, V), "pad": lambda f: np.pad(f, 1), "pad_edge": lambda f: np.pad(f, 1, "edge"),
    "pad_wrap": lambda f: np.pad(f, 2, "wrap"), "polyval": lambda f: np.polyval(V, f), "ptp": lambda f: np.ptp(f, 1),
    "ravel": lambda f: np.ravel(f), "repeat": lambda f: np.repeat(f, 2, 1), "reshape": lambda f: np.reshape(f, (3, 2)),
    "roll": lambda f: np.roll(f, 1, 1), "rollaxis": lambda f: np.rollaxis(f, 1),
    "split": lambda f: np.split(f, 3, 1)[1],
    "squeeze": lambda f: np.squeeze(f), "stack": lambda f: np.stack((f, f * f), 1), "std": lambda f: np.std(f, 1),
    "sum": lambda f: np.sum(f, 0), "sum_all": lambda f: np.sum(f), "swapaxes": lambda f: np.swapaxes(f, 0, 1),
    "take": lambda f: np.take(f, INDICES), "take_along_axis": lambda f: np.take_along_axis(f, INDICES, 1),
    "tensordot": lambda f: np.tensordot(f, SQUARE, 1), "tile": lambda f: np.tile(f, (2, 2)), "trace": lambda f: np.trace(f),
    "transpose": lambda f: np.transpose(f), "trapz": lambda f: np.trapz(f), "tril": lambda f: np.tril(f), "triu": lambda f: np.triu(f),
    "vander": lambda f: np.vander(np.ravel(f), 3), "var": lambda f: np.var(f, 0), "vstack": lambda f: np.vstack((f, V)),
    "where": lambda f: np.where(f > 0, f, f * 2), "interp": lambda f: np.interp(f, [-2.0, 0.0, 4.0], [1.0, 5.0, 2.0]),
    "convolve": lambda f: np.convolve(np.ravel(f), V), "linspace": lambda f: np.linspace(f, 5.0, 3),
    "meshgrid": lambda f: np.meshgrid(f, V)[0], "logspace": lambda f: np.logspace(f, 1.0, 3), "full": lambda f: np.full((4, 2, 3), f),
    "array_split": lambda f: np.array_split(f, 2, 1)[0], "atleast_3d": lambda f: np.atleast_3d(f),
    "apply_along_axis": lambda f: np.apply_along_axis(lambda row: row * row, 1, f), "unwrap": lambda f: np.unwrap(f),
    "apply_over_axes": lambda f: np.apply_over_axes(np.sum, f, 0),
    "piecewise": lambda f: np.piecewise(f, [f < 0], [lambda x: -x, lambda x: x * x]), "polymul": lambda f: np.polymul(f[0], V),
    "polyadd": lambda f: np.polyadd(f[0], V), "polyder": lambda f: np.polyder(f[0]), "polyint": lambda f: np.polyint(f[0]),
    "average_flat": lambda f: np.average(f), "matrix_power": lambda f: np.matrix_power(f[:, :2], 3),
    "choose": lambda f: np.choose([0, 1, 0], f), "broadcast_arrays": lambda f: np.broadcast_arrays(f, V)[1] * f,
}


class Weighted(ms.nn.Cell):
    def __init__(self, call):
        super().__init__()
        self.call = call

    def construct(self, f):
        out = self.call(f)
        weights = np.arange(1.0, 1.0 + out.size).reshape(out.shape)
        return (out * weights).sum()


@case(over=CALLS, rtol=2e-5, atol=2e-5, graph=True)
def gradient(call):
    return {"gradient": ms.grad(Weighted(call))(T(F)).asnumpy()}
