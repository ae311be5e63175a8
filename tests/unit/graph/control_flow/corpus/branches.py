"""`if` on Tensors."""
import mindspore as ms
import numpy as np
from mindspore import Tensor, ops

W = Tensor(np.array([0.5, -1.0, 2.0], np.float32))
FACTOR = 3.0


def one_branch(x):
    y = x * W
    if x.sum() > 0:
        y = y * 2
    return y


def both_branches(x):
    if x.max() > 1:
        y = x * W
    else:
        y = x - W
    return y


def elif_chain(x):
    s = x.sum()
    if s > 10:
        y = x * 2
    elif s > 5:
        y = x * W
    elif s > 0:
        y = x / 2
    else:
        y = -x
    return y + 1


def nested(x):
    if x.sum() > 0:
        if x.max() > 2:
            y = x * x
        else:
            y = x + W
    elif x.min() < -5:
        y = x * W
    else:
        y = ops.exp(x / 10)
    return y


def several_names(x):
    a, b = x, x * W
    if x.sum() > 0:
        a, b = b, a
        c = a + b
    else:
        c = a - b
    return a * 2 + b + c


def unchanged_in_one(x):
    y, z = x * 2, x * 3
    if x.sum() > 1:
        z = z + y
    return y * z


def python_test(x):
    if FACTOR > 2:
        if x.sum() > 0:
            x = x * FACTOR
    else:
        x = x * 0
    return x


def number_from_branch(x):
    n = 1
    if x.sum() > 0:
        n = 4
    return x * n, n


def float_from_branch(x):
    rate = 0.1
    if x.max() > 1:
        rate = 0.25
    return x * rate


def bool_from_branch(x):
    big = False
    if x.sum() > 5:
        big = True
    if big:
        x = x * W
    return x


def tensor_truth_of_other_dtypes(x):
    if (x > 0).sum():
        x = x * 2
    if x.min():
        x = x + 1
    if (x > 1).any():
        x = x * W
    return x


def same_value_either_way(x):
    y = x * W
    if x.sum() > 0:
        z = y
    else:
        z = y
    return z


def closure_read(x):
    scale = x.mean() + 1

    def scaled(v):
        return v * scale

    if x.sum() > 0:
        y = scaled(x)
    else:
        y = scaled(x * W)
    return y


def called_function(x):
    return _picked(x, W) + _picked(x * 2, x)


def _picked(a, b):
    if a.sum() > b.sum():
        return a * b
    return a - b


def integer_results(x):
    n = (x > 0).sum()
    if n > 1:
        k = n * 2
    else:
        k = n - 1
    return x * k.astype(ms.float32)


def only_python_values(x):
    if x.sum() > 0:
        name = "plus"
    else:
        name = "plus"
    return x * len(name)


def empty_branch(x):
    if x.sum() > 0:
        pass
    else:
        x = x * W
    return x


def deep(x):
    y = x
    if x.sum() > 0:
        if x.max() > 1:
            if x.min() > 0.5:
                y = y * 2
            else:
                y = y * 3
            y = y + W
        y = y - 1
    return y


def matmul_inside(x):
    m = ops.reshape(x, (3, 1))
    if x.sum() > 0:
        r = ops.matmul(m, m.T)
    else:
        r = ops.matmul(m, ops.ones_like(m).T)
    return r.sum(axis=1)


def stopped(x):
    if x.sum() > 0:
        y = ops.stop_gradient(x * 2) * x
    else:
        y = x * W
    return y


def grown_in_place(x):
    y = x * 1
    if x.sum() > 0:
        y[0] = x[1] * 5
    return y * W


def shape_read_inside(x):
    if x.sum() > 0:
        y = x * x.shape[0] + ops.ones(x.shape)
    else:
        y = (x - 1) / x.size * x.ndim
    return y


FUNCTIONS = [
    one_branch, both_branches, elif_chain, nested, several_names, unchanged_in_one, python_test, number_from_branch, float_from_branch,
    bool_from_branch, tensor_truth_of_other_dtypes, same_value_either_way, closure_read, called_function, integer_results,
    only_python_values, empty_branch, deep, matmul_inside, stopped, grown_in_place,
    shape_read_inside,
]
