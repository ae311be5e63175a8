"""Whose fault an error is: only those about arguments become errors about arguments; a defect keeps its class and says what it is."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import mindspore.dataset as ds
import pytest
from mindspore import ops

from torchspore.mindspore.dataset.engine import mappable
from torchspore.mindspore.ops.declaration.declare import bridged

DEFECTS = {
    "attribute": ("given.nonesuch", AttributeError, "'Given' object has no attribute 'nonesuch', a defect of torchspore."),
    "plain": ("(1, 2).nonesuch", AttributeError, "'tuple' object has no attribute 'nonesuch', a defect of torchspore."),
    "module": ("sys.nonesuch", AttributeError, "module 'sys' has no attribute 'nonesuch', a defect of torchspore."),
    "key": ("{}['nonesuch']", KeyError, "there is no key 'nonesuch', a defect of torchspore."),
    "name": ("nonesuch", NameError, "name 'nonesuch' is not defined, a defect of torchspore."),
}


def ours(expression: str) -> Callable[..., Any]:
    """A function with a defect, as if it stood in a file of torchspore's."""
    names: dict[str, Any] = {}
    instance = type("Given", (), {"__module__": "torchspore.mindspore.dataset"})()
    text = f"import sys\ndef broken(*arguments, **keywords):\n    return {expression}"
    exec(compile(text, mappable.__file__, "exec"), {"given": instance}, names)
    names["broken"].__globals__["sys"] = __import__("sys")
    return names["broken"]  # type: ignore[no-any-return]


@pytest.mark.parametrize("kind", DEFECTS)
def test_a_defect_of_a_pipeline_keeps_its_class(kind: str) -> None:
    expression, error, text = DEFECTS[kind]
    data = type("Broken", (ds.NumpySlicesDataset,), {"_epoch": ours(expression)})([1, 2, 3])
    with pytest.raises(error) as result:
        next(data.create_dict_iterator())
    message = result.value.args[0]
    assert message.startswith(f"{__file__}:") and message.endswith(f": DictIterator.__next__(): {text}"), message


@pytest.mark.parametrize("kind", ["attribute", "module", "key"])
def test_a_defect_of_an_operator_keeps_its_class(kind: str) -> None:
    expression, error, text = DEFECTS[kind]
    with pytest.raises(error) as result:
        bridged(ours(expression))(ms.Tensor([1.0]))
    assert result.value.args[0].endswith(f": broken(arguments[0]: Float32[1]): {text}")


def test_what_the_program_wrote_keeps_its_class() -> None:
    """An operator that calls a function of the program's does not explain what that raises."""
    for call in (
        lambda: ops.Map()(lambda x: x.nonesuch, (1, 2)), lambda: ops.InsertGradientOf(lambda x: x.nonesuch),
        lambda: ops.Custom(lambda x: x.nonesuch, out_shape=(1,), out_dtype=ms.float32, func_type="pyfunc")(ms.Tensor([1.0])),
    ):
        with pytest.raises(AttributeError, match=r"object has no attribute 'nonesuch'$"):
            result = call()
            ms.grad(result)(ms.Tensor(1.0))


def test_an_object_of_the_programs_that_lacks_something_is_no_defect_of_ours() -> None:
    class Thing:
        pass

    with pytest.raises(TypeError, match=r"expected .*Thing") as result:
        ms.train.Model(Thing())
    assert "defect" not in str(result.value)


def test_an_argument_is_blamed_where_it_is_to_blame() -> None:
    for call in (lambda: ops.relu(3), lambda: ops.relu("a")):
        with pytest.raises(TypeError, match=r"relu\(input: .*\): expected a Tensor as input, got (int|str)"):
            call()
    with pytest.raises(TypeError, match="expected a Tensor, got int"):
        ops.GradOperation()(lambda x: x)(ms.Tensor(1.0)).assign_value(3)


def test_a_class_instead_of_its_object_is_an_argument() -> None:
    matrix = ms.CSRTensor(ms.Tensor([0, 1]), ms.Tensor([0]), ms.Tensor([1.0]), (1, 1))
    with pytest.raises(TypeError, match=r"CSRTensor\.mv\(.*\): expected an argument of another type") as result:
        matrix.mv(ms.Tensor)
    assert "defect" not in str(result.value)


def test_a_signature_names_functions() -> None:
    with pytest.raises(TypeError, match=r"decay_filter=\.\.\., split_indices"):
        ms.nn.thor(3)


def test_a_method_of_tensors_names_itself() -> None:
    tensor = ms.Tensor([1.0, 2.0])
    for name in ("reshape", "view", "expand", "permute"):
        with pytest.raises(TypeError, match=rf"Tensor\.{name}: expected ints as shape"):
            getattr(tensor, name)(ms.Tensor)
