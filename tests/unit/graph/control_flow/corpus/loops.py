"""Loops that Tensors end, and loops that Python counts with Tensors inside."""
import mindspore as ms
import numpy as np
from mindspore import Tensor, ops

W = Tensor(np.array([0.5, -0.25, 0.75], np.float32))
TABLE = Tensor(np.arange(12, dtype=np.float32).reshape(4, 3) / 10)


def halve(x):
    while x.sum() > 1:
        x = x / 2
    return x


def counted(x):
    n = 0
    while x.sum() > 1:
        x = x * 0.5
        n = n + 1
    return x, n


def tensor_counter(x):
    i = Tensor(0)
    y = x
    while i < 3:
        y = y * W + x
        i = i + 1
    return y


def zero_times(x):
    y = x * W
    while y.sum() > 1e6:
        y = y / 2
    return y * 2


def nested_loops(x):
    i = Tensor(0)
    acc = x
    while i < 3:
        j = Tensor(0)
        while j < i:
            acc = acc * W + x
            j = j + 1
        i = i + 1
    return acc


def break_out(x):
    total = x * 0
    while total.sum() < 20:
        total = total + ops.abs(x) + 1
        if total.max() > 9:
            break
    return total


def break_in_while_true(x):
    y = x
    n = 0
    while True:
        y = y * 0.5 + W
        n += 1
        if ops.abs(y).max() < 2 or n > 5:
            break
    return y


def continue_on(x):
    y = x * 0
    i = Tensor(0)
    while i < 5:
        i = i + 1
        if i == 2:
            continue
        y = y + x * W
    return y


def break_and_continue(x):
    total = x * 0
    i = 0
    while total.sum() < 20:
        if i > 6:
            break
        i = i + 1
        if x.max() < 0:
            total = total - x
            continue
        total = total + x * W * W
    return total


def python_for_with_break(x):
    for i in range(6):
        x = x * 1.5 + W
        if x.sum() > 20:
            break
        x = x - i
    return x


def python_for_with_continue(x):
    y = x * 0
    for i in range(4):
        if x[0] > i:
            continue
        y = y + x * i
    return y


def python_while_with_break(x):
    n = 0
    while n < 4:
        x = x * W + 1
        n = n + 1
        if x.sum() > 5:
            break
    return x


def for_else(x):
    for _ in range(3):
        x = x * 1.2
        if x.sum() > 12:
            break
    else:
        x = x * W
    return x


def while_else(x):
    n = Tensor(0)
    while n < 4:
        n = n + 1
        x = x + W
        if x.sum() > 9:
            break
    else:
        x = x * 2
    return x


def tensor_range(x):
    n = (x > 0).sum()
    for i in range(n):
        x = x * W + i
    return x


def tensor_range_with_start(x):
    n = (x > 0).sum() + 2
    y = x
    for i in range(1, n):
        y = y + W * i
    return y


def tensor_range_down(x):
    n = (x > 0).sum()
    y = x
    for i in range(n, 0, -1):
        y = y * W + i
    return y


def tensor_range_with_break(x):
    n = (x > 0).sum() + 3
    for _ in range(n):
        x = x * 1.1
        if x.sum() > 8:
            break
    return x


def over_rows(x):
    y = x
    for row in TABLE:
        if row.sum() > 1:
            y = y + row
        else:
            y = y * 2
    return y


def over_list(x):
    y = x
    for a in [x, W, x * 2]:
        if a.sum() > 0:
            y = y + a
    return y


def over_zip(x):
    y = x
    for i, (a, b) in enumerate(zip((x, W), (W, x))):
        if a.sum() > b.sum():
            y = y + a * i
        else:
            y = y - b
    return y


def over_dict(x):
    parts = {"a": x, "b": W}
    y = x
    for name, part in parts.items():
        if part.max() > 0.6:
            y = y * part + len(name)
    return y


def branch_in_loop(x):
    i = Tensor(0)
    y = x
    while i < 4:
        if y.sum() > 2:
            y = y * 0.5
        else:
            y = y + ops.abs(W) + 0.5
        i = i + 1
    return y


def loop_in_branch(x):
    if x.sum() > 0:
        while x.sum() > 2:
            x = x * 0.6
    else:
        i = Tensor(0)
        while i < 2:
            x = x * W
            i = i + 1
    return x


def float_state(x):
    rate = 1.0
    while ops.abs(x).sum() * rate > 1:
        rate = rate * 0.5
    return x * rate, rate


def sum_from_number(x):
    total = 0
    i = Tensor(0)
    while i < 3:
        total = total + (x * W).sum()
        i = i + 1
    return x * total


def temporary_names(x):
    i = Tensor(0)
    while i < 3:
        step = x * W
        delta = step - x
        x = x + delta * 0.1
        i = i + 1
    return x


def newton(x):
    guess = ops.abs(x) + 1
    for _ in range(8):
        after = (guess + ops.abs(x) / guess) / 2
        if ops.abs(after - guess).max() < 1e-3:
            break
        guess = after
    return guess


def index_by_counter(x):
    i = Tensor(0, ms.int64)
    y = x
    while i < 3:
        y = y + TABLE[i] * x[i]
        i = i + 1
    return y


def zero_and_more(x):
    n = ops.maximum((x > 2).sum(), Tensor(0))
    y = x
    while n > 0:
        y = y * y * 0.1 + W
        n = n - 1
    return y


def two_indices(x):
    rows, i = TABLE * x, Tensor(0)
    y = x * 0
    while i < 3:
        y = y + rows[i, 2] * rows[1:3, i].sum() + rows[-1, i]
        i = i + 1
    return y


def index_of_a_range(x):
    y = x
    for i in range((x > 0).sum()):
        y = y + x[i] * TABLE[i, 1]
    return y


def long_python_loop(x):
    for i in range(100):
        x = x * 0.99 + 0.01 * i
        if x.sum() > 30:
            break
    return x


def added_in_place(x):
    y = x * 1
    i = 0
    while i < 3:
        y += W
        if y.sum() > 8:
            break
        i += 1
    return y


def shape_read_in_the_loop(x):
    n = ms.Tensor(0)
    while n < 3:
        x = ops.layer_norm(x + ops.sin(x), x.shape, ops.ones(x.shape), ops.zeros(x.shape))
        n = n + 1
    return x


FUNCTIONS = [
    shape_read_in_the_loop,
    halve, counted, tensor_counter, zero_times, nested_loops, break_out, break_in_while_true, continue_on, break_and_continue,
    python_for_with_break, python_for_with_continue, python_while_with_break, for_else, while_else, tensor_range, tensor_range_with_start,
    tensor_range_down, tensor_range_with_break, over_rows, over_list, over_zip, over_dict, branch_in_loop, loop_in_branch, float_state,
    sum_from_number, temporary_names, newton, index_by_counter, zero_and_more,
    two_indices, index_of_a_range, long_python_loop, added_in_place,
]
