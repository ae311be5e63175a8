"""Python's own values in graphs: numbers without an end, types, containers of any class, names without a value, recursion."""
from __future__ import annotations

import time
from collections import Counter, OrderedDict, defaultdict, namedtuple
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, jit, nn

X = Tensor(np.array([1.0, 2.0], np.float32))
NUMBERS = (1, 2, 3, 2 ** 31, 2 ** 62, -2 ** 63, 2 ** 64)
NAMED = {3: "three", 4: "four", 2 ** 62: "large"}
Pair = namedtuple("Pair", "a b")


class Fields(OrderedDict):
    """A dict with fields that are items too, as libraries give results."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.__dict__.update(options)


class Triple(tuple):
    """A class of the program's."""


class Names(list):
    """A class of the program's."""


def shown(value: Any) -> Any:
    """A nested value with its classes, for a comparison."""
    if isinstance(value, dict):
        fields = shown(list(getattr(value, "__dict__", {}).values()))
        return type(value), getattr(value, "default_factory", None), [(k, shown(v)) for k, v in value.items()], fields
    if isinstance(value, (list, tuple)):
        return type(value), [shown(item) for item in value]
    return value.asnumpy().tolist() if isinstance(value, Tensor) else (type(value), value)


def outcome(function: Any, *inputs: Any) -> Any:
    try:
        return shown(function(*inputs))
    except Exception as error:
        return type(error)


@pytest.mark.filterwarnings("ignore:.*keeps changing")
@pytest.mark.parametrize("function", [
    lambda k: k * k, lambda k: k + k, lambda k: k - 2 ** 62, lambda k: k ** 3, lambda k: 2 ** (k % 70), lambda k: k / 3,
    lambda k: k < 2.0 ** 60, lambda k: -k, lambda k: k * k * k * k, lambda k: [k][0] + 2 ** 62, lambda k: 2 ** 65 - k,
    lambda k: NAMED.get(k, "none"), lambda k: str(k), lambda k: f"{k:5}", lambda k: type(k), lambda k: type(k) is int, lambda k: k in NAMED,
    lambda k: {k: 1},
])
def test_a_number_that_changes_is_pythons(function: Any) -> None:
    call = jit(lambda x, k: (x + 1, function(k)))
    for k in NUMBERS:
        assert outcome(call, X, k) == outcome(lambda x, k: (x + 1, function(k)), X, k)


@pytest.mark.filterwarnings("ignore:.*keeps changing")
def test_an_attribute_that_changes_is_pythons() -> None:
    class Net(nn.Cell):
        def construct(self, x):
            return x + 1, self.k * self.k, type(self.k).__name__

    net = Net()
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        for k in (1, 2, 3, 4, 2 ** 31, 2 ** 32, 2 ** 62, 3, 2.5, 2 ** 70):
            net.k = k
            assert net(X)[1:] == (k * k, type(k).__name__)
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)


@pytest.mark.parametrize("function", [
    lambda x: OrderedDict(a=x * 2, b=x), lambda x: {"k": OrderedDict(a=x), "l": [OrderedDict(b=x)]},
    lambda x: defaultdict(list, a=[x * 2]),
    lambda x: (Counter(a=2), x), lambda x: Pair(x * 2, x), lambda x: Fields(a=x * 2),
    lambda x: Triple((x * 2, x)), lambda x: Names([x * 2]),
    lambda x: OrderedDict(a=x) if x.sum() > 0 else OrderedDict(a=x * 2), lambda x: Triple((x,)) if x.sum() > 0 else Triple((x * 2,)),
])
def test_a_container_that_a_graph_gives_keeps_its_class(function: Any) -> None:
    call = jit(lambda x: function(x))
    for x in (X, X, -X):
        assert shown(call(x)) == shown(function(x))


class Backwards(dict):
    def values(self):
        return list(super().values())[::-1]


def test_the_order_of_a_dict_is_its_own() -> None:
    """That of an OrderedDict is not the order in which its keys were first put in; a class may show another one."""
    def moved(x, shown=None):
        result = OrderedDict(a=x, b=x * 2) if shown is None else shown
        result.move_to_end("a")
        return result

    assert list(jit(moved)(X).items())[1][0] == "a"
    assert shown(jit(moved)(X)) == shown(moved(X))
    outputs = moved(X)
    assert shown(jit(lambda d: (d, [*d]))(outputs)) == shown((outputs, [*outputs]))
    assert shown(jit(lambda x: Backwards(a=x, b=x * 2))(X)) == shown(Backwards(a=X, b=X * 2))


def test_keys_of_one_value_and_another_type_are_another_dict() -> None:
    call = jit(lambda d: [(type(k).__name__, v) for k, v in d.items()])
    for mapping in ({1: X}, {True: X}, {1.0: X}, {(1,): X}, {(True,): X}):
        assert shown(call(mapping)) == shown([(type(k).__name__, v) for k, v in mapping.items()])


def test_a_bound_builtin_among_the_arguments_is_looked_into() -> None:
    table = {"a": 2}
    call = jit(lambda x, get: x * get("a"))
    for table["a"] in (2, 3, 3, 2):
        assert shown(call(X, table.get)) == shown(X * table["a"])


def test_a_loop_keeps_the_class_of_a_container() -> None:
    def function(x):
        result, count = OrderedDict(a=x), Tensor(0)
        while count < 2:
            count, result = count + 1, OrderedDict(a=result["a"] * 2)
        return result

    assert shown(jit(function)(X)) == shown(function(X))


@pytest.mark.parametrize("container", [
    OrderedDict(a=X, k=3), defaultdict(list, a=[X]), Pair(X, 3), Fields(a=X), Triple((X, 3)), Names([X]), {"a": X, "k": 3},
])
def test_a_container_that_is_given_keeps_its_class(container: Any) -> None:
    call = jit(lambda value: (type(value).__name__, value))
    for _ in range(3):
        assert shown(call(container)) == (tuple, [(str, type(container).__name__), shown(container)])


def one_way(x):
    if x.sum() > 0:
        y = x * 2
    return y


def one_way_in_a_list(x):
    if x.sum() > 0:
        y = x * 2
    results = [y]
    return results


def after_a_loop(x):
    while x.sum() < 10:
        x = x + 1
        y = x
    return y


def deleted(x):
    if x.sum() > 0:
        del x
    return x


@pytest.mark.parametrize("function", [one_way, one_way_in_a_list, after_a_loop, deleted])
def test_a_name_without_a_value_raises_as_in_python(function: Any) -> None:
    call = jit(function)
    for x in (X, -X, X + 10, X, -X):
        assert outcome(call, x) == outcome(function, x)
    with pytest.raises(UnboundLocalError, match=r"local variable '[xy]'"):
        for x in (X, -X, X + 10):
            call(x)


def test_a_function_that_calls_itself_on_a_number() -> None:
    def factorial(n, x):
        if n <= 1:
            return x
        return n * factorial(n - 1, x)

    call = jit(factorial)
    started = time.monotonic()
    for n in (1, 2, 5, 3):
        assert call(n, X).asnumpy().tolist() == factorial(n, X).asnumpy().tolist()
    assert time.monotonic() - started < 40          # it took minutes, and ended with a RecursionError


def test_a_function_that_calls_itself_on_a_tensor() -> None:
    def grown(x):
        if x.sum() > 100:
            return x
        return grown(x * 2)

    assert jit(grown)(X).asnumpy().tolist() == grown(X).asnumpy().tolist()


@pytest.mark.parametrize("makes", [(Tensor, Parameter), (Parameter, Tensor), (Parameter, Parameter)])
def test_parameters_and_tensors_of_one_shape_among_the_arguments(makes: Any) -> None:
    """What is said about the second capture compares the two calls, in which a Parameter stands itself."""
    call = jit(lambda x: x * 2)
    for k, make in enumerate(makes):
        containers = make(Tensor(np.full(3, k, np.float32)))
        assert call(containers).asnumpy().tolist() == [2 * k] * 3
        assert call((containers,)[0]).asnumpy().tolist() == [2 * k] * 3
