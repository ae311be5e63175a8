"""`export` and `load`: what is written gives the same numbers elsewhere, and a file that was made to do harm does none."""
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn, ops

X = np.random.RandomState(1).rand(2, 1, 8, 8).astype(np.float32)


class Several(nn.Cell):
    """Two inputs, a Parameter, a constant of NumPy, and several results."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = Parameter(Tensor([2.0, 3.0], ms.float32), name="scale")
        self.offset = Tensor(np.array([0.5, 0.25], np.float32))

    def construct(self, x: Any, y: Any) -> Any:
        total = x * self.scale + self.offset
        return total, (ops.tanh(y), x), {"sum": (total + y).sum()}


def images() -> nn.Cell:
    net = nn.SequentialCell(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten(), nn.Dense(64, 10), nn.Softmax(),
    )
    return net.set_train(False)


def tokens() -> nn.Cell:
    return nn.SequentialCell(nn.Embedding(20, 8), nn.LayerNorm((8,)), nn.Dense(8, 4), nn.GELU()).set_train(False)


NETS: dict[str, tuple[Callable[[], nn.Cell], tuple[np.ndarray, ...]]] = {
    "images": (images, (X,)), "tokens": (tokens, (np.array([[1, 2, 3]], np.int32),)),
    "several": (Several, (np.ones((3, 2), np.float32), np.full((3, 2), 0.5, np.float32))),
}


def arrays(value: Any) -> list[np.ndarray]:
    if isinstance(value, Tensor):
        return [value.asnumpy()]
    return [array for item in (value.values() if isinstance(value, dict) else value) for array in arrays(item)]


@pytest.mark.parametrize("name", NETS)
def test_a_mindir_file_gives_the_same_numbers(mode: int, tmp_path: Path, name: str) -> None:
    make, inputs = NETS[name]
    net, tensors = make(), [Tensor(x) for x in inputs]
    ms.export(net, *tensors, file_name=str(tmp_path / "net"), file_format="MINDIR")
    cell = nn.GraphCell(ms.load(str(tmp_path / "net.mindir")))
    for array, expected in zip(arrays(cell(*tensors)), arrays(net(*tensors)), strict=True):
        np.testing.assert_array_equal(array, expected)
    assert {p.name for p in net.get_parameters()} <= {p.name for p in cell.get_parameters()}


@pytest.mark.needs("onnx")
@pytest.mark.parametrize("name", NETS)
def test_an_onnx_file_gives_the_same_numbers_in_onnxruntime(tmp_path: Path, name: str) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    make, inputs = NETS[name]
    net, tensors = make(), [Tensor(x) for x in inputs]
    ms.export(net, *tensors, file_name=str(tmp_path / "net"), file_format="ONNX")
    session = onnxruntime.InferenceSession(str(tmp_path / "net.onnx"))
    result = session.run(None, {item.name: x for item, x in zip(session.get_inputs(), inputs, strict=True)})
    for output, expected in zip(result, arrays(net(*tensors)), strict=True):
        np.testing.assert_allclose(output, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.needs("onnx")
def test_an_onnx_file_has_the_names_that_are_given(tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    net, x = nn.Dense(3, 2), Tensor(np.array([[1.0, 2.0, 3.0]], np.float32))

    def session(name: str, **options: Any) -> Any:
        ms.onnx.export(net, x, file_name=str(tmp_path / name), **options)
        return onnxruntime.InferenceSession(str(tmp_path / f"{name}.onnx"))

    named = session("named", input_names=["picture"], output_names=["classes"])
    assert [output.name for output in named.get_outputs()] == ["classes"]
    np.testing.assert_allclose(named.run(None, {"picture": x.asnumpy()})[0], net(x).asnumpy(), rtol=1e-5, atol=1e-6)
    both = session("both", input_names=["picture"], keep_initializers_as_inputs=True)
    assert [input_node.name for input_node in both.get_inputs()] == ["picture"] and len(both.get_overridable_initializers()) == 2
    alone = session("alone", export_params=False)
    weights = {input_node.name: parameter.asnumpy() for input_node in alone.get_inputs() for parameter in net.get_parameters()
               if list(input_node.shape) == list(parameter.shape) and input_node.name != "input0"}
    assert len(weights) == 2
    np.testing.assert_allclose(alone.run(None, {"input0": x.asnumpy(), **weights})[0], net(x).asnumpy(), rtol=1e-5, atol=1e-6)
    for options, text in (
        ({"input_names": "x"}, "a list of strings"), ({"input_names": ["x", "y"]}, "at most 1 names"), ({"dynamic_axes": 3}, "a dict"),
        ({"dynamic_axes": {"x": {0: "batch"}}}, "a file fixes the lengths"), ({"output_names": [""]}, "a list of strings"),
    ):
        with pytest.raises(ValueError, match=text):
            ms.onnx.export(net, x, file_name=str(tmp_path / "refused"), **options)
    assert not (tmp_path / "refused.onnx").exists()


@pytest.mark.needs("onnx")
def test_a_net_in_training_is_exported_as_such_but_for_onnx(tmp_path: Path) -> None:
    net = images().set_train()
    ms.export(net, Tensor(X), file_name=str(tmp_path / "net"), file_format="MINDIR")
    cell, before = nn.GraphCell(ms.load(str(tmp_path / "net"))), net[1].moving_mean.value().asnumpy()
    np.testing.assert_array_equal(cell(Tensor(X)).asnumpy(), net(Tensor(X)).asnumpy())
    np.testing.assert_array_equal(cell.parameters_dict()["1.moving_mean"].asnumpy(), net[1].moving_mean.asnumpy())
    assert np.abs(net[1].moving_mean.asnumpy() - before).max() > 0
    ms.export(net, Tensor(X), file_name=str(tmp_path / "net"), file_format="ONNX")
    assert net.training


def test_a_loaded_graph_trains(mode: int, tmp_path: Path) -> None:
    net = images()
    ms.export(net, Tensor(X), file_name=str(tmp_path / "net"), file_format="MINDIR")
    cell = nn.GraphCell(ms.load(str(tmp_path / "net.mindir")))
    net_gradient, other = (ms.grad(lambda x, n=n: n(x).max(), None, [n.parameters_dict()["5.weight"]])(Tensor(X)) for n in (net, cell))
    np.testing.assert_allclose(arrays(other)[0], arrays(net_gradient)[0], rtol=1e-6)


def test_parameters_can_be_given(tmp_path: Path) -> None:
    ones = Tensor(np.ones((3, 2), np.float32))
    ms.export(Several(), ones, ones, file_name=str(tmp_path / "net"), file_format="MINDIR")
    cell = nn.GraphCell(ms.load(str(tmp_path / "net")), {"scale": Tensor([0.0, 0.0], ms.float32)})
    np.testing.assert_array_equal(cell(ones, ones)[0].asnumpy()[0], [0.5, 0.25])
    with pytest.raises(ValueError, match="expected the shape"):
        nn.GraphCell(ms.load(str(tmp_path / "net")), {"scale": Tensor([0.0], ms.float32)})


@pytest.mark.needs("cryptography")
def test_an_encrypted_file(tmp_path: Path) -> None:
    net = images()
    ms.export(net, Tensor(X), file_name=str(tmp_path / "net"), file_format="MINDIR", enc_key=b"k" * 32, enc_mode="AES-CBC")
    cell = nn.GraphCell(ms.load(str(tmp_path / "net"), dec_key=b"k" * 32, dec_mode="AES-CBC"))
    np.testing.assert_array_equal(cell(Tensor(X)).asnumpy(), net(Tensor(X)).asnumpy())
    with pytest.raises(ValueError, match="it is encrypted"):
        ms.load(str(tmp_path / "net"))


def test_custom_func_changes_what_is_written(tmp_path: Path) -> None:
    def change(model: Any) -> None:
        model.producer_name = "ours"

    ms.export(images(), Tensor(X), file_name=str(tmp_path / "net"), file_format="MINDIR", custom_func=change)
    assert ms.load(str(tmp_path / "net")) is not None and b"ours" in (tmp_path / "net.mindir").read_bytes()


def refused(tmp_path: Path, net: Any, *inputs: Any, **keywords: Any) -> str:
    with pytest.raises((TypeError, ValueError)) as caught:
        ms.export(net, *inputs, **{"file_name": str(tmp_path / "net"), "file_format": "MINDIR", **keywords})
    assert not list(tmp_path.iterdir())
    return str(caught.value).splitlines()[0]


@pytest.mark.parametrize(("keywords", "text"), [
    ({"file_format": "FOO"}, "export(file_format='FOO'): expected 'AIR', 'ONNX' or 'MINDIR'."),
    ({"file_format": "AIR"}, "export(file_format='AIR'): expected 'ONNX' or 'MINDIR': AIR files run only on Ascend processors."),
    ({"file_name": 3}, "export(file_name=3): expected a str, got int."),
    ({"colour": 1}, "export(colour=...): expected 'enc_key', 'enc_mode', 'dataset', 'incremental', 'custom_func' or 'obf_config'."),
    ({"enc_key": b"1"}, "export(enc_key=...) of 1 bytes: expected 16, 24 or 32 bytes."),
])
def test_arguments_that_do_not_fit(tmp_path: Path, keywords: dict[str, Any], text: str) -> None:
    assert refused(tmp_path, images(), Tensor(X), **keywords).endswith(text)


def test_a_call_that_is_no_graph_names_the_line(tmp_path: Path) -> None:
    class Reads(nn.Cell):
        def construct(self, x: Any) -> Any:
            return x * float(x.asnumpy().sum())

    assert "test_export.py" in refused(tmp_path, Reads(), Tensor(X))


def test_inputs_of_another_shape_are_refused(tmp_path: Path) -> None:
    ms.export(images(), Tensor(X), file_name=str(tmp_path / "net"), file_format="MINDIR")
    cell = nn.GraphCell(ms.load(str(tmp_path / "net")))
    with pytest.raises(ValueError, match=r"input0 of shape \(1, 1, 8, 8\)"):
        cell(Tensor(X[:1]))
    with pytest.raises(ValueError, match="2 Tensors: expected 1"):
        cell(Tensor(X), Tensor(X))


def rewritten(path: Path, change: Callable[[Any], None]) -> None:
    """Writes the file again after `change` of its message."""
    from torchspore.export import mindir_format

    proto = mindir_format.parsed(path.read_bytes())
    change(proto)
    path.unlink()
    path.write_bytes(proto.SerializeToString())


def names_another_function(proto: Any) -> None:
    attribute = proto.graph.node[-2].attribute[0]
    attribute.s = attribute.s.replace(b"operator aten.", b"function os:system ")


def has_a_name_with_code(proto: Any) -> None:
    attribute = proto.graph.node[0].attribute[0]
    attribute.s = attribute.s.replace(b'"in0"', b'"in0; import os"')


def has_a_parameter_of_another_length(proto: Any) -> None:
    proto.graph.parameter[0].dims[0] = 10**6


def has_no_result(proto: Any) -> None:
    proto.user_info.clear()


def names_a_result_that_is_not_there(proto: Any) -> None:
    (key,) = proto.user_info
    proto.user_info[key] = '{"out": 7, "number": false}'


def has_nodes_of_mindspore(proto: Any) -> None:
    proto.graph.node[-2].ClearField("attribute")


def has_an_input_without_a_shape(proto: Any) -> None:
    attribute = proto.graph.node[0].attribute[0]
    attribute.s = attribute.s.replace(b'"val"', b'"vam"')


def has_a_parameter_of_another_shape(proto: Any) -> None:
    dims = proto.graph.parameter[0].dims
    dims[0], dims[1] = dims[1], dims[0]


def has_two_inputs_of_one_name(proto: Any) -> None:
    for node in proto.graph.node[:2]:
        node.attribute[0].s = node.attribute[0].s.replace(b'"in1"', b'"in0"')


@pytest.mark.parametrize("change", [
    has_an_input_without_a_shape, has_a_parameter_of_another_shape, has_two_inputs_of_one_name,
    names_another_function, has_a_name_with_code, has_a_parameter_of_another_length, has_no_result, names_a_result_that_is_not_there,
    has_nodes_of_mindspore,
])
def test_a_file_that_was_changed_is_refused_by_its_name(tmp_path: Path, change: Callable[[Any], None]) -> None:
    ms.export(images(), Tensor(X), file_name=str(tmp_path / "net"), file_format="MINDIR")
    rewritten(tmp_path / "net.mindir", change)
    with pytest.raises(ValueError, match=r"net\.mindir: "):
        ms.load(str(tmp_path / "net.mindir"))


@pytest.mark.parametrize("content", [b"", b"\x08", b"no model" * 50, b"\xff" * 100])
def test_what_is_no_model_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "net.mindir").write_bytes(content)
    with pytest.raises(ValueError, match=r"net\.mindir: "):
        ms.load(str(tmp_path / "net.mindir"))


def test_a_file_is_read_changed_and_written_again(tmp_path: Path) -> None:
    ms.export(images(), Tensor(X), file_name=str(tmp_path / "net"), file_format="MINDIR")
    model = ms.load_mindir(str(tmp_path / "net.mindir"))
    model.user_info["version"] = "pangu v100"
    ms.save_mindir(model, str(tmp_path / "deep" / "other"))
    ms.save_mindir(model, str(tmp_path / "deep" / "other.mindir"))          # over a file that is read-only
    reloaded = ms.load_mindir(str(tmp_path / "deep" / "other.mindir"))
    assert reloaded.user_info["version"] == "pangu v100" and len(reloaded.graph.node) == len(model.graph.node)
    first, second = (nn.GraphCell(ms.load(str(tmp_path / name))) for name in ("net.mindir", "deep/other.mindir"))
    np.testing.assert_array_equal(first(Tensor(X)).asnumpy(), second(Tensor(X)).asnumpy())
    with pytest.raises(TypeError, match=r"save_mindir\(3, \.\.\.\): expected the result of load_mindir, got int"):
        ms.save_mindir(3, str(tmp_path / "a"))
    with pytest.raises(ValueError, match="a file that exists"):
        ms.load_mindir(str(tmp_path / "none.mindir"))
    (tmp_path / "bad.mindir").write_bytes(b"\xff" * 20)
    with pytest.raises(ValueError, match="expected a MINDIR file"):
        ms.load_mindir(str(tmp_path / "bad.mindir"))


def test_a_written_graph_moves_to_another_device() -> None:
    from torchspore.graph.fx import serialize

    value = [[2], [1], "float32", "cuda:0"]
    entries = [
        {"op": "placeholder", "name": "x", "target": "x", "args": [], "kwargs": {}, "val": value},
        {"op": "call_function", "name": "y", "target": "aten.ones.default", "args": [["list", 2]],
         "kwargs": {"device": ["device", "cuda:0"]}, "val": {"items": [value, None, [[], [], "int64", "cpu"]]}},
    ]
    moved = serialize.moved(entries, "cpu")[1]
    assert moved["kwargs"] == {"device": ["device", "cpu"]} and moved["args"] == [["list", 2]]
    assert moved["val"]["items"] == [[[2], [1], "float32", "cpu"], None, [[], [], "int64", "cpu"]]
    assert serialize.moved(entries, "xpu:0")[1]["val"]["items"][2][3] == "cpu"             # what was on the host stays there
