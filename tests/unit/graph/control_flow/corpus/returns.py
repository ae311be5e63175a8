"""`return` anywhere, expressions that decide, asserts."""
import numpy as np
from mindspore import Tensor, ops

W = Tensor(np.array([0.5, -1.0, 2.0], np.float32))


def early(x):
    if x.sum() > 5:
        return x * W
    elif x.sum() < -5:
        return x - W
    y = x + W
    if y.max() > 1:
        return y * y
    return y * 0.5


def early_in_nested(x):
    if x.sum() > 0:
        if x.max() > 2:
            return x * 2
        x = x + 1
    return x * W


def from_while(x):
    while x.sum() < 30:
        x = ops.abs(x) * 2 + 1
        if x.max() > 10:
            return x * W
    return x


def from_for(x):
    for i in range(5):
        x = x * 1.5 + W
        if x.sum() > 20:
            return x - i
    return x * 2


def from_nested_loops(x):
    for i in range(3):
        for j in range(3):
            x = x + W * (i + j)
            if x.sum() > 10:
                return x * 10
        x = x * 1.1
    return x


def from_tensor_loop_in_python_loop(x):
    for i in range(2):
        n = Tensor(0)
        while n < 3:
            n = n + 1
            x = x * 1.2 + 0.1
            if x.max() > 4:
                return x * W
        x = x - i
    return x


def several_values(x):
    if x.sum() > 0:
        return x, x.sum(), 1
    return x * W, x.max(), 2


def nothing_in_loop(x):
    total = x * 0
    for v in (x, W, x * W):
        if v.sum() > 3:
            return total
        total = total + v
    return total * 2


def conditional(x):
    a = x * 2 if x.sum() > 0 else x * W
    return a + (W if x.max() > 1 else -W)


def conditional_numbers(x):
    return x * (2 if x.sum() > 0 else 3) + (0.5 if x.min() < 0 else 1.5)


def conditional_nested(x):
    return x if x.sum() > 5 else (x * W if x.sum() > 0 else -x)


def both(x):
    if x.sum() > 0 and x.max() < 5:
        x = x * W
    return x


def either(x):
    if x.sum() > 8 or x.min() < -3 or x[0] == 1:
        x = x * W
    return x


def negated(x):
    if not x.sum() > 0:
        x = x * W
    if not (x.max() > 1 and x.min() < 0):
        x = x + 1
    return x


def chained(x):
    if 0 < x.sum() < 10:
        x = x * W
    if -2 < x.min() <= x.max() < 4:
        x = x + 1
    return x


def mixed_with_python(x):
    flag = x.shape[0] == 3
    if flag and x.sum() > 0:
        x = x * 2
    if x.sum() > 4 and flag:
        x = x * W
    if not flag or x.max() > 100:
        x = x * 0
    return x


def value_of_and(x):
    ok = x.sum() > 0 and x.max() > 2
    return x * 2 if ok else x * W


def asserted(x):
    assert x.shape == (3,), "three numbers"
    assert ops.abs(x).sum() < 1e6, "small numbers"
    return x * W


def through_lambda(x):
    pick = lambda v: v * 2 if v.sum() > 0 else v * W
    return pick(x) + pick(-x)


def through_comprehension(x):
    parts = [v * 2 if v.sum() > 0 else v * W for v in (x, -x, W)]
    return parts[0] + parts[1] * parts[2]


def recursion(x, depth=3):
    if depth == 0:
        return x
    if x.sum() > 2:
        return recursion(x * 0.5, depth - 1) + 1
    return recursion(x + W, depth - 1)


def with_defaults(x):
    return _helper(x) + _helper(x, by=2.0) + _helper(x, *[3.0], swap=True)


def _helper(a, by=1.0, *, swap=False):
    if a.sum() > by:
        a = a * by
    return -a if swap else a


def largest_and_smallest(x):
    return max(x.sum(), x.mean(), W.max()) * x + min(x[0], x[1])


def inner_function_writes_outer_name(x):
    total = x * 0

    def add(v):
        nonlocal total
        if v.sum() > 0:
            total = total + v
        else:
            total = total - v * W

    add(x)
    add(-x * 2)
    return total


def deleted_name(x):
    t = x * 2
    if x.sum() > 0:
        del t
        t = x * W
    return t


def walrus(x):
    if (s := x.sum()) > 0:
        return x * s
    return x - s


def in_try_and_with(x):
    try:
        if x.max() > 1:
            x = x * 2
        for _ in range(2):
            if x.sum() > 3:
                x = x * W
    finally:
        x = x + 1
    with np.errstate(all="ignore"):
        if x.min() < 0:
            x = x - 1
    return x


def starred(x, *more, by=1.0, **named):
    if x.sum() > by:
        return x * len(more) + W
    return x * named.get("scale", 2.0)


FUNCTIONS = [
    early, early_in_nested, from_while, from_for, from_nested_loops, from_tensor_loop_in_python_loop, several_values, nothing_in_loop,
    conditional, conditional_numbers, conditional_nested, both, either, negated, chained, mixed_with_python, value_of_and, asserted,
    through_lambda, through_comprehension, recursion, with_defaults, largest_and_smallest, inner_function_writes_outer_name, deleted_name,
    walrus, in_try_and_with, starred,
]
