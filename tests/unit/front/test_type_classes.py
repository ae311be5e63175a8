"""Classes of types with MindSpore's constructors, names of types, operators as MultitypeFuncGraphs, and what packages derive from them."""
from __future__ import annotations

import copy
import pickle
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops
from mindspore._c_expression import typing
from mindspore._extends.parse import resources, trope
from mindspore.common import _stub_tensor
from mindspore.common._stub_tensor import StubTensor, is_stub_tensor
from mindspore.experimental.optim.adamw import AdamW, SpeedAdamW
from mindspore.ops.composite.multitype_ops import not_in_, pow_
from mindspore.ops.composite.multitype_ops.add_impl import add
from mindspore.ops.composite.multitype_ops.logic_not_impl import logical_not
from mindspore.ops.composite.multitype_ops.setitem_impl import setitem
from mindspore.ops.operations import _inner_ops
from mindspore.train import amp


class PackageInt(typing.Int):
    """A type of a package, as mindtorch derives it."""

    def __new__(cls, *args):
        return typing.Int.__new__(cls, *args)

    def __init__(self, *args):
        typing.Int.__init__(self, *args)
        self.nbits = args[0]


@pytest.mark.parametrize(("kind", "bits", "dtype"), [
    (typing.Bool, (), ms.bool_), (typing.Int, (8,), ms.int8), (typing.UInt, (64,), ms.uint64), (typing.Float, (16,), ms.float16),
    (typing.BFloat, (16,), ms.bfloat16), (typing.Complex, (128,), ms.complex128), (typing.Int, (), ms.int_), (typing.Float, (), ms.float_),
    (typing.String, (), ms.string), (typing.Number, (), ms.number),
])
def test_a_class_of_types_returns_its_type(kind, bits, dtype) -> None:
    assert kind(*bits) is dtype
    assert pickle.loads(pickle.dumps(dtype)) is dtype and copy.deepcopy(dtype) is dtype


def test_the_type_of_a_package_equals_the_one_that_it_derives_from() -> None:
    dtype = PackageInt(32)
    assert dtype == ms.int32 and ms.int32 == dtype and dtype != ms.int64 and hash(dtype) == hash(ms.int32)
    assert type(dtype) is PackageInt and dtype.nbits == 32 and not hasattr(ms.int32, "nbits")
    assert Tensor([1], dtype).dtype is ms.int32 and ops.zeros((2,), dtype).dtype is ms.int32
    assert Tensor([1.5]).astype(dtype).asnumpy().dtype == np.int32


@pytest.mark.parametrize(("create", "error", "text"), [
    (lambda: typing.Int(7), RuntimeError, "Int(7): expected one of 8, 16, 32, 64 bits."),
    (lambda: typing.Bool(8), RuntimeError, "Bool(8): expected no width."),
    (lambda: typing.Type(), TypeError, "Type(): expected one of its classes, such as Int(32)."),
    (lambda: typing.str_to_type("x"), RuntimeError, "the type 'x': expected a name such as Tensor, Number, Int32, Tuple or List[Int32]."),
    (lambda: ops.MultitypeFuncGraph("g").register("Foo"), RuntimeError,
     "the type 'Foo': expected a name such as Tensor, Number, Int32, Tuple or List[Int32]."),
])
def test_an_unknown_type_raises(create, error, text) -> None:
    with pytest.raises(error) as caught:
        create()
    assert str(caught.value) == text


@pytest.mark.parametrize(("name", "text"), [
    ("Tensor", "mindspore.tensor"), ("Number", "mindspore.number"), ("Int32", "mindspore.int32"), ("float32", "mindspore.float32"),
    ("None", "mindspore.type_none"), ("Function", "mindspore.function"), ("Dictionary", "mindspore.Dictionary"),
    ("Ellipsis", "mindspore.Ellipsis"), ("Tensor[Float32]", "mindspore.tensor[float32]"), ("EnvType", "mindspore.env_type"),
    ("Complex", "mindspore.complex"), ("BFloat", "mindspore.bfloat"),
])
def test_names_of_types(name: str, text: str) -> None:
    assert repr(typing.str_to_type(name)) == text


def test_names_of_containers_have_the_types_of_their_items() -> None:
    assert typing.str_to_type("Tuple[Int32,Float32]") == typing.Tuple([ms.int32, ms.float32])
    assert str(typing.str_to_type("List[Int32]")) == "List[Int32]"


def test_operators_are_graphs_with_entries() -> None:
    assert add(Tensor([1.0]), 2).asnumpy().tolist() == [3.0] and add("a", "b") == "ab" and logical_not(0) and not_in_(1, (2,))
    assert pow_((2.0,), Tensor([3.0])).asnumpy().tolist() == [8.0]
    assert setitem([1, 2], 0, 3) == [3, 2]
    assert add.entries[0][0] == (ms.number, ms.number)
    assert resources.convert_object_map[trope.add] is add
    with pytest.raises(TypeError, match=r"^MultitypeFuncGraph 'add': no function is registered for \(int, str\)\."):
        add(1, "a")


def test_entries_are_chosen_as_in_2_10() -> None:
    graph = ops.MultitypeFuncGraph("graph")
    for names in (("Number", "Bool"), ("Int", "Float"), ("Number", "Number"), ("Tuple", "None"), ("String", "Function")):
        graph.register(*names)(lambda x, y, names=names: names)
    assert graph(1, True) == ("Number", "Bool") and graph(True, 1.0) == ("Number", "Number") and graph(1, 1.0) == ("Int", "Float")
    assert graph(1j, 1) == ("Number", "Number") and graph((1,), None) == ("Tuple", "None") and graph("a", len) == ("String", "Function")


def test_every_attribute_in_the_directory_of_tensor_can_be_read() -> None:
    for cls in (Tensor, ms.Parameter):
        assert all(hasattr(cls, name) for name in dir(cls))
    x = Tensor([1.0])
    assert x.assign_value_cpp(Tensor([3.0, 4.0])) is x and x.shape == (2,)


def test_speed_adamw_computes_adamw() -> None:
    values = []
    for cls in (AdamW, SpeedAdamW):
        parameter = ms.Parameter(Tensor([1.0, -2.0]), name="p")
        optimizer = cls([parameter], lr=0.1)
        for gradient in ([0.1, -0.2], [1.0, 0.5]):
            optimizer((Tensor(gradient),))
        values.append(parameter.asnumpy())
    assert (values[0] == values[1]).all()
    optimizer = SpeedAdamW([ms.Parameter(Tensor([1.0]), name="q")], amsgrad=True)
    with pytest.raises(ValueError) as caught:
        optimizer((Tensor([1.0]),))
    assert str(caught.value) == "SpeedAdamW(amsgrad=True): expected False.\n\nhint: write AdamW(..., amsgrad=True)."


def test_functions_that_packages_register_are_stored() -> None:
    from mindspore._check_jit_forbidden_api import jit_forbidden_register
    from mindspore.common._register_for_recompute import recompute_registry
    from mindspore.common.api import _convert_python_data, set_adapter_config

    recompute_registry.register(len)
    assert recompute_registry.get() is len and jit_forbidden_register(len) is len and _convert_python_data(1) == 1
    set_adapter_config({"Tensor": Tensor})
    with pytest.raises(TypeError) as caught:
        set_adapter_config(3)
    assert str(caught.value) == "set_adapter_config(3): expected a dict, got int."


class Adapted(StubTensor):
    """A Tensor of a package that adapts PyTorch's API, built as in MindSpore 2.2 to 2.4."""

    def __init__(self, *data: Any, cast_tensor: bool = False) -> None:
        super().__init__(tensor=data[0] if cast_tensor else Tensor(*data))
        self._requires_grad = False

    def twice(self) -> Any:
        return _inner_ops.convert_to_adapter_tensor(_inner_ops.convert_to_ms_tensor(self) * 2)


def test_a_packages_tensor_computes_and_has_gradients(mode: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_stub_tensor, "_adapter", {})
    with pytest.raises(RuntimeError) as caught:
        _inner_ops.convert_to_adapter_tensor(Tensor([1.0]))
    assert str(caught.value) == ("ConvertToAdapterTensor: expected a class of Tensors from set_adapter_config.\n\n"
                                 "hint: import the package that adapts PyTorch's API first.")
    _stub_tensor.set_adapter_config({"Tensor": Adapted})
    x = Adapted([1.0, 2.0])
    doubled = x.twice()
    assert isinstance(doubled, Adapted) and isinstance(doubled, Tensor) and doubled.stub is None
    assert type(_inner_ops.convert_to_ms_tensor(doubled)) is Tensor and _inner_ops.convert_to_ms_tensor(3) == 3
    np.testing.assert_array_equal(doubled.stub_sync().asnumpy(), [2.0, 4.0])
    np.testing.assert_array_equal(ms.grad(lambda a: (a.twice() * a.twice()).sum())(x).asnumpy(), [8.0, 16.0])
    shared = x.tensor
    shared[0] = 3.0
    np.testing.assert_array_equal(x.asnumpy(), [3.0, 2.0])
    x.tensor = Tensor([5.0])
    assert x.shape == (1,) and not isinstance(shared, StubTensor) and not is_stub_tensor(x)
    with pytest.raises(TypeError, match=r"^StubTensor\(tensor=3\): expected a Tensor, got int\.$"):
        StubTensor(3)


def test_settings_of_o1_that_packages_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(amp, "_INNER_AMP_BLACK_LIST", [nn.Dense])
    amp._config_amp(enable_rewrite=True)
    net = ms.amp.auto_mixed_precision(nn.SequentialCell(nn.Dense(2, 2), nn.Conv1d(2, 2, 1)), "O1")
    assert [bool(getattr(cell, "_lower_", None)) for cell in net.cells()] == [False, True]
    with pytest.raises(NotImplementedError, match="because O1 calls no function that casts"):
        amp._config_amp(cast_op=len)
    with pytest.raises(TypeError):
        amp._config_amp(enable_rewrite=1)
    ms.set_context(mode=ms.PYNATIVE_MODE)
    assert ms.context._get_mode() == ms.PYNATIVE_MODE
