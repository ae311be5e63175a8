"""Errors of Python's operators and built-in functions in graph mode have MindSpore's texts and types, and Python's text behind them."""
from __future__ import annotations

import collections
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import mindspore as ms
import pytest
from mindspore import Tensor, nn, ops


@pytest.fixture(autouse=True)
def graph_mode() -> Iterator[None]:
    ms.set_context(mode=ms.GRAPH_MODE)
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


class _Net(nn.Cell):
    def __init__(self, body: Callable[..., Any]) -> None:
        super().__init__()
        self.body = body

    def construct(self, x: Tensor) -> Any:
        return self.body(x)


def _floor(x: Tensor) -> Tensor:
    return x + 5 // 0


def _steps(x: Tensor) -> Tensor:
    for _ in range(1, 2, 0):
        x = x + 1
    return x


def _float_end(x: Tensor) -> Tensor:
    for _ in range(1, 0.5):  # type: ignore[arg-type]
        x = x + 1
    return x


def _two(a: Any, b: Any = None) -> Any:
    return a


_Pair = collections.namedtuple("_Pair", "first second")


def _beyond_a_list(x: Tensor) -> Any:
    y = [1, 2]
    y[5] = 1
    return y


def _one_branch(x: Tensor) -> Any:
    if x.sum() < 0:
        y = 0
    return y


def _other_branch(x: Tensor) -> Any:
    if x.sum() > 0:
        pass
    else:
        y = 0
    return y


def _while_body(x: Tensor) -> Any:
    while x.sum() < 0:
        y = x
    return y


def _nested_loops(x: Tensor) -> Any:
    if True:
        for _ in range(0):
            while x.sum() < 0:
                y = x
        return y


def _deleted(x: Tensor) -> Any:
    y = x
    if x.sum() < 0:
        y = x + 1
    del y
    return y  # noqa: F821


@pytest.mark.parametrize("body,kind,text", [
    (_one_branch, UnboundLocalError, "The local variable 'y' is not defined in false branch, but defined in true branch. "
     r"The line `return y` reads it\."),
    (_other_branch, UnboundLocalError, "The local variable 'y' is not defined in true branch, but defined in false branch."),
    (_while_body, UnboundLocalError, "The local variable 'y' defined in the 'while' loop body cannot be used outside of the loop body."),
    (_nested_loops, UnboundLocalError, "The local variable 'y' defined in the 'for' loop body cannot be used outside of the loop body."),
    (_deleted, UnboundLocalError, "The name 'y' is not defined, or not supported in graph mode."),
    (lambda x: bool(ops.stack((x, x))), ValueError, "The truth value of an array with more than one element is ambiguous."),
    (lambda x: x + 5 / 0, ZeroDivisionError, r"The divisor could not be zero\. \(division by zero\)"),
    (lambda x: x + 5 % 0, ZeroDivisionError, r"zero\. \(.*(modulo|division) by zero\)"),
    (_floor, ZeroDivisionError, r"The divisor could not be zero\. \((integer division or modulo|division) by zero\)"),
    (lambda x: list(range()), RuntimeError, r"For 'make_range', the input size should within \[1, 3\] but got0"),
    (lambda x: list(range(1, 2, 3, 4)), RuntimeError, r"should within \[1, 3\] but got4"),
    (_steps, ValueError, "For 'range', the argument 'step' could not be 0."),
    (_float_end, TypeError, "For 'make_range', the 1th input should be a int scalar but got AbstractScalar"),
    (lambda x: list(range(2.0)), TypeError, "the 0th input should be a int scalar"),  # type: ignore[arg-type]
    (lambda x: map(abs), TypeError, "The Map operator must have at least two arguments."),
    (lambda x: map(abs, 3), TypeError, "Map can only be applied to list, tuple"),
    (lambda x: (1, 2, 3)[1:3:0], ValueError, r"Slice step cannot be zero\."),
    (lambda x: (1, 2, 3)[slice("a")], TypeError, r"Slice indices must be integers or bool\."),
    (lambda x: {"a": 1}["b"], ValueError, "The key b does not exist in the dict"),
    (lambda x: {"a": 1}["b"], KeyError, "The key b does not exist in the dict"),
    (lambda x: _two(1)(x), ValueError, "The object is not callable. Please check code."),
    (lambda x: _two(1)(x), TypeError, "'int' object is not callable"),
    (lambda x: _two(1, 2, 3), TypeError, "The parameters number of the function is 2, but the number of provided arguments is 3."),  # type: ignore[call-arg]
    (lambda x: _two(1, c=3), RuntimeError, "Got an unexpected keyword argument 'c'"),  # type: ignore[call-arg]
    (lambda x: len(1), AttributeError, "'Int' object has no attribute '__len__'"),  # type: ignore[arg-type]
    (lambda x: undefined_name, NameError, "The name 'undefined_name' is not defined, or not supported in graph mode."),  # type: ignore[name-defined]  # noqa: F821
    (lambda x: [1].nothing, AttributeError, "'List' object has no attribute 'nothing'"),  # type: ignore[attr-defined]
    (lambda x: {}.nothing, AttributeError, "'Dictionary' object has no attribute 'nothing'"),  # type: ignore[attr-defined]
    (lambda x: isinstance(x, 1), TypeError, "must be a type or tuple of types."),  # type: ignore[arg-type]
    (lambda x: [1].pop(3), IndexError, "The pop index out of range."),
    (lambda x: "abc"[9], RuntimeError, "String index out of range."),
    (lambda x: "abc"[9], IndexError, "string index out of range"),
    (lambda x: x if Tensor([1.0, 2.0]) else 1, ValueError, r"Only tensor which shape is \(\) or \(1,\) can be converted to bool"),
    (lambda x: [].pop(), IndexError, "The pop index out of range."),
    (lambda x: [1].pop(1.0), TypeError, "Integer argument expected, but got FP32Imm type value: 1 "),  # type: ignore[call-overload]
    (lambda x: [1].insert("a", 2), TypeError, "Integer argument expected, but got StringImm type value: a "),  # type: ignore[arg-type]
    (lambda x: (1, 2)[-3], IndexError, r"TupleGetItem evaluator index should be in range\[-2, 2\), but got -3\."),  # type: ignore[misc]
    (lambda x: [1, 2][5], IndexError, r"list_getitem evaluator index should be in range\[-2, 2\), but got 5\."),
    (lambda x: ()[0], ValueError, "cannot get item by index from an empty sequence"),  # type: ignore[misc]
    (lambda x: (1, 2)[float(1)], IndexError, "TupleGetItem evaluator index should be an int64 number"),  # type: ignore[call-overload]
    (_beyond_a_list, IndexError, r"list_setitem evaluator the index: 5 to set out of range: \[-2,1\]\."),
    (lambda x: (1, 2).index(4), ValueError, "4 is not in the tuple"),
    (lambda x: [1].extend(3), TypeError, "For ListInplaceExtend, the second input should be tuple or list but got: int"),  # type: ignore[arg-type]
    (lambda x: {}.fromkeys(3), RuntimeError, "the first input should be iterable"),  # type: ignore[call-overload]
    (lambda x: {[1]: 2}, RuntimeError, "key only supports string, number, type, none, constant tensor and tuple, but got List"),
    (lambda x: max(()), ValueError, r"max\(\) arg is an empty sequence\."),
    (lambda x: max(3), TypeError, "The object is not iterable."),  # type: ignore[call-overload]
    (lambda x: max(Tensor([1.0, 2.0]), x), ValueError, "The truth value of an array with more than one element is ambiguous."),
    (lambda x: 1 << -1, ValueError, "shift count must be a non-negative integer"),
    (lambda x: 1.0 >> 1, TypeError, "For BitRightShift, only integer types are supported, but got"),  # type: ignore[operator]
    (lambda x: (1).shape, AttributeError, "'Int' object has no attribute 'shape'"),  # type: ignore[attr-defined]
    (lambda x: _Pair(1, 2).third, AttributeError, "'NamedTuple' object has no attribute 'third'"),  # type: ignore[attr-defined]
    (lambda x: _two(), TypeError, "is larger than the number of provided arguments"),  # type: ignore[call-arg]
    (lambda x: _two(*3), RuntimeError, "The arguments of UnpackCall operator should be tuple, list or dict, but got Int"),  # type: ignore[misc]
    (lambda x: list(enumerate(3)), TypeError, "the 'first input' should be tuple or list or tensor, but got <class 'int'>"),  # type: ignore[arg-type]
    (lambda x: list(enumerate((1,), 1.2)), TypeError, "the 'start' should be a const int number"),  # type: ignore[arg-type]
    (lambda x: getattr(x, 1), TypeError, "attribute name must be string but got: Int"),  # type: ignore[call-overload]
    (lambda x: int(Tensor([1, 2])), ValueError, "Can not convert Tensor with more than one element to Scalar"),
    (lambda x: len(Tensor(1)), TypeError, "Not support len of a 0-D tensor."),
    (lambda x: ops.typeof(x, x), TypeError, "The Typeof operator must requires 1 argument, but the size of arguments is 2."),
])
def test_texts(body: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        _Net(body)(Tensor([1.0]))


class _Undefined(nn.Cell):
    def construct(self, x: Tensor) -> Tensor:
        while x > 0:
            x = x - undefined_step  # type: ignore[name-defined]  # noqa: F821
        return x


def test_names_without_a_definition_are_reported_first_with_their_lines() -> None:
    text = r"The name 'undefined_step' is not defined.*In file .*test_builtin_errors\.py:\d+\n.*x - undefined_step"
    with pytest.raises(NameError, match=text):
        _Undefined()(Tensor([1.0, 2.0]))


def test_lists_that_contain_themselves_are_refused() -> None:
    values: list[Any] = [1]
    values.append({"inner": values})
    with pytest.raises(RuntimeError, match=r"Detect recursion when converting python object\."):
        _Net(lambda x: x)(values)  # type: ignore[arg-type]


def test_errors_of_the_program_itself_stay() -> None:
    def raises(x: Tensor) -> Tensor:
        raise ValueError("range() arg 3 must not be zero, says the program")

    with pytest.raises(ValueError, match=r"^range.. arg 3 must not be zero, says the program"):
        _Net(raises)(Tensor([1.0]))


def test_a_program_that_catches_the_error_goes_on() -> None:
    def catches(x: Tensor) -> Tensor:
        try:
            return x + 1 / 0
        except ZeroDivisionError:
            return x - 1

    assert _Net(catches)(Tensor([1.0])).asnumpy().tolist() == [0.0]


def test_an_error_of_two_kinds_is_shown_and_pickled_as_pythons() -> None:
    with pytest.raises(KeyError) as caught:
        _Net(lambda x: {"a": 1}["b"])(Tensor([1.0]))
    assert isinstance(caught.value, ValueError) and repr(caught.value).startswith("KeyError(")
    assert type(pickle.loads(pickle.dumps(caught.value))) is KeyError


class Raises(nn.Cell):
    """Raises an error by a statement of its own."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def construct(self, x: Tensor) -> Any:
        raise self.error


@pytest.mark.parametrize("error", [
    KeyError("an error of the program"), IndexError("string index out of range"), ValueError("slice step cannot be zero"),
    TypeError("object of type 'int' has no len()"),
], ids=lambda error: type(error).__name__)
def test_the_text_of_a_raise_statement_stays(error: Exception) -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    with pytest.raises(type(error)) as caught:
        Raises(error)(Tensor([1.0]))
    assert type(caught.value) is type(error) and str(caught.value) == str(error)


def test_a_function_of_jit_and_a_gradient_have_these_texts_too() -> None:
    for call in (ms.jit(_one_branch), ms.grad(lambda x: _one_branch(x) * x)):
        with pytest.raises(UnboundLocalError, match="The local variable 'y' is not defined in false branch"):
            call(Tensor([2.0]))


class _FewParameters(nn.Cell):
    def construct(self, x: Any, y: Any) -> Any:
        return x + y

    def bprop(self, out: Any) -> Any:
        return out, out


class _NoGradient(_FewParameters):
    def bprop(self, x: Any, y: Any, out: Any) -> Any:  # type: ignore[override]
        return out, out


@pytest.mark.parametrize(("cell", "text"), [
    (_FewParameters, r"requires at least 2 params 'out' and 'dout', but got only \(out\)"),
    (_NoGradient, r"as well as the 'out' and 'dout'\. It is called with 2 inputs and these two, got \(x, y, out\)"),
])
def test_a_bprop_with_other_parameters_is_refused(cell: Any, text: str) -> None:
    for mode in (ms.GRAPH_MODE, ms.PYNATIVE_MODE):
        ms.set_context(mode=mode)
        with pytest.raises(TypeError, match=text):
            ms.grad(cell())(Tensor([2.0]), Tensor([1.0]))


def test_gradients_of_nothing_are_refused() -> None:
    with pytest.raises(TypeError, match="the first argument must be a 'Function' or 'Cell', but got None"):
        ops.GradOperation()(None)
    with pytest.raises(TypeError, match="'GradOperation' requires a forward network or function as an input, while the input is empty"):
        ops.GradOperation()()
