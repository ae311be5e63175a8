"""What is recorded for TensorBoard, read back from the event files."""
from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
import pytest
from mindspore import Tensor, nn, ops
from mindspore.train import Model, SummaryCollector, SummaryRecord
from support import full_disk


def events(folder: Path) -> dict[str, list[int]]:
    """The steps of each name in the one event file of a folder."""
    from tensorboardX import proto
    from tensorboardX.event_file_writer import EventsWriter  # noqa: F401  (says that the library is whole)
    from tensorboardX.proto import event_pb2

    assert proto is not None
    (file,) = folder.glob("*tfevents*")
    content, results = file.read_bytes(), {}
    while content:
        length = int.from_bytes(content[:8], "little")
        event = event_pb2.Event.FromString(content[12 : 12 + length])
        for value in event.summary.value:
            results.setdefault(value.tag, []).append(event.step)
        content = content[16 + length :]
    return results


class Net(nn.Cell):
    """A layer that keeps summaries of what it computes."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Dense(3, 2)
        self.scalar, self.histogram, self.tensor = ops.ScalarSummary(), ops.HistogramSummary(), ops.TensorSummary()

    def construct(self, x: Any) -> Any:
        y = self.dense(x)
        self.scalar("mean", y.mean())
        self.histogram("values", y)
        self.tensor("all", y)
        return y


@pytest.mark.needs("tensorboardX")
def test_summary_operators_are_recorded(mode: int, tmp_path: Path) -> None:
    net, x = Net(), Tensor(np.ones((4, 3), np.float32))
    net(x)
    with SummaryRecord(str(tmp_path)) as record:
        for step in (1, 2, 3):
            net(x)
            assert record.record(step)
        net(x)
        record.set_mode("eval")
        assert record.record(4)
        assert Path(record.log_dir).exists()
    net(x)
    assert events(tmp_path) == {"mean": [1, 2, 3], "values": [1, 2, 3], "all": [1, 2, 3]}


@pytest.mark.needs("tensorboardX")
def test_inside_a_gradient(mode: int, tmp_path: Path) -> None:
    net, x = Net(), Tensor(np.ones((4, 3), np.float32))
    with SummaryRecord(str(tmp_path)) as record:
        ms.grad(lambda x: net(x).sum())(x)
        record.record(7)
    assert events(tmp_path)["mean"] == [7]


@pytest.mark.needs("tensorboardX")
def test_values_of_the_program(tmp_path: Path) -> None:
    with SummaryRecord(str(tmp_path), file_prefix="own", file_suffix="_run", export_options={"tensor_format": "npy"}) as record:
        record.add_value("scalar", "loss", Tensor(0.5))
        record.add_value("image", "first", Tensor(np.zeros((2, 3, 4, 4), np.float32)))
        record.add_value("histogram", "weights", Tensor(np.arange(5.0)))
        record.add_value("tensor", "net/out", Tensor(np.arange(3.0)))
        assert record.record(1, plugin_filter=lambda plugin: plugin != "histogram")
        record.flush()
    (file,) = tmp_path.glob("*tfevents*")
    assert file.name.startswith("own.out.tfevents") and file.name.endswith("_run")
    assert set(events(tmp_path)) == {"loss", "first", "net/out"}
    np.testing.assert_array_equal(np.load(tmp_path / "export" / "tensor" / "net_out_1.npy"), np.arange(3.0))


@pytest.mark.needs("tensorboardX")
def test_a_full_file_takes_no_more(tmp_path: Path) -> None:
    with SummaryRecord(str(tmp_path), max_file_size=1) as record:
        record.add_value("scalar", "loss", Tensor(0.5))
        assert record.record(1) is False


@pytest.mark.needs("tensorboardX")
def test_the_collector(mode: int, tmp_path: Path) -> None:
    net = nn.SequentialCell(nn.Flatten(), nn.Dense(4, 2))
    data = ds.NumpySlicesDataset(
        {"x": np.random.rand(12, 1, 2, 2).astype(np.float32), "y": np.zeros(12, np.int32)}, shuffle=False,
    ).batch(2)
    model = Model(net, nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean"), nn.Momentum(net.trainable_params(), 0.1, 0.9))
    model.train(1, data, callbacks=[SummaryCollector(str(tmp_path), collect_freq=3)], dataset_sink_mode=False)
    result = events(tmp_path)
    assert result["loss/auto"] == [1, 3, 6] == result["1.weight/auto"]
    assert result["input_data/auto"] == [1, 3, 6]


@pytest.mark.needs("tensorboardX")
def test_the_collector_takes_what_is_specified(tmp_path: Path) -> None:
    net = nn.Dense(4, 2)
    data = ds.NumpySlicesDataset({"x": np.ones((4, 4), np.float32), "y": np.zeros(4, np.int32)}).batch(2)
    model = Model(net, nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean"), nn.Momentum(net.trainable_params(), 0.1, 0.9))
    with SummaryCollector(str(tmp_path), 1, collect_specified_data={"histogram_regular": "bias"}, keep_default_action=False) as collector:
        model.train(1, data, callbacks=[collector], dataset_sink_mode=False)
    assert events(tmp_path) == {"bias/auto": [1, 2]}


@pytest.mark.parametrize(("call", "kind"), [
    (lambda: SummaryRecord(3), TypeError), (lambda: SummaryRecord("x", max_file_size="a"), TypeError),
    (lambda: SummaryRecord("x", num_process=0), ValueError), (lambda: SummaryRecord("x", export_options={"a": 1}), ValueError),
    (lambda: SummaryRecord("x", network=3), TypeError), (lambda: SummaryCollector(3), TypeError),
    (lambda: SummaryCollector("x", 0), ValueError), (lambda: SummaryCollector("x", collect_specified_data={"colour": True}), ValueError),
    (lambda: SummaryCollector("x", collect_specified_data={"collect_metric": 1}), TypeError),
])
def test_arguments_that_do_not_fit(call: Callable[[], Any], kind: type[Exception]) -> None:
    with pytest.raises(kind, match=r"Summary|log_dir|summary_dir|collect_metric|export_options"):
        call()


def test_values_that_do_not_fit(tmp_path: Path) -> None:
    with SummaryRecord(str(tmp_path)) as record:
        for arguments, kind in (
            (("graph", "g", Tensor(1.0)), ValueError), (("colour", "c", Tensor(1.0)), ValueError),
            (("scalar", "", Tensor(1.0)), ValueError), (("scalar", "s", 1.0), TypeError),
            (("scalar", "s", Tensor([1.0, 2.0])), ValueError), (("image", "i", Tensor([1.0])), ValueError),
        ):
            with pytest.raises(kind, match="add_value"):
                record.add_value(*arguments)
        with pytest.raises(TypeError, match="record"):
            record.record("a")
        with pytest.raises(RuntimeError, match="one at a time"):
            SummaryRecord(str(tmp_path))
    with pytest.raises(RuntimeError, match="closed"):
        record.record(1)


def page_of(folder: Path) -> dict[str, Any]:
    """What curves.html shows."""
    import json
    import re

    text = (folder / "curves.html").read_text()
    return json.loads(re.search(r'id="data">(.*?)</script>', text).group(1))  # type: ignore[union-attr]


def test_the_page_and_the_network(mode: int, tmp_path: Path) -> None:
    net = nn.SequentialCell(nn.Flatten(), nn.Dense(4, 2))
    data = ds.NumpySlicesDataset({"x": np.random.rand(8, 1, 2, 2).astype(np.float32), "y": np.zeros(8, np.int32)}, shuffle=False).batch(2)
    model = Model(net, nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean"), nn.Momentum(net.trainable_params(), 0.1, 0.9))
    model.train(2, data, callbacks=[SummaryCollector(str(tmp_path), 1, custom_lineage_data={"note": "<b>"})], dataset_sink_mode=False)
    result = page_of(tmp_path)
    assert [step for step, _ in result["scalars"]["loss/auto"]] == list(range(1, 9)) and set(result["images"]) == {"input_data/auto"}
    assert {"1.weight/auto", "1.bias/auto"} <= set(result["histograms"]) and {len(rows) for rows in result["histograms"].values()} == {8}
    lineage = json_of(result["texts"]["train_lineage"])
    assert (lineage["network"], lineage["optimizer"], lineage["dataset_size"], lineage["note"]) == ("SequentialCell", "Momentum", 8, "<b>")
    assert "<b>" not in (tmp_path / "curves.html").read_text()
    names = {node["name"]: node["kind"] for node in result["graph"]}
    if mode == ms.GRAPH_MODE:
        assert any("1-Dense" in name and name.startswith("Default/network-WithLossCell") for name in names)
        assert any(node["reads"] for node in result["graph"])
    else:
        assert names["Default/network/_backbone/1"] == "Dense"


def json_of(text: str) -> dict[str, Any]:
    import json

    return json.loads(text)


def test_without_the_library_the_page_stands_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with SummaryRecord(str(tmp_path / "new" / "folder"), network=nn.Dense(2, 2)) as record:
        record.add_value("scalar", "loss", Tensor(float("nan")))
        assert record.record(1) and record.log_dir.endswith("curves.html")
    assert [path.name for path in (tmp_path / "new" / "folder").iterdir()] == ["curves.html"]
    result = page_of(tmp_path / "new" / "folder")
    assert result["scalars"] == {"loss": [[1, None]]} and result["graph"][0]["kind"] == "Dense"


@pytest.mark.needs("tensorboardX")
@pytest.mark.parametrize("raises", [False, True])
def test_a_full_disk_ends_the_recording_and_not_the_training(tmp_path: Path, raises: bool) -> None:
    record, answers = SummaryRecord(str(tmp_path), raise_exception=raises), []
    with full_disk.takes(20_000):
        try:
            for step in range(20_000):                     # from Python 3.14 on, the buffer of a file has 128 KB
                record.add_value("scalar", "loss", Tensor(float(step)))
                answers.append(record.record(step))
                if answers[-3:] == [False] * 3:
                    break
        except OSError:
            assert raises
    record.close()
    assert (len(answers) < 20_000) if raises else (answers[0] and not answers[-1])
    if not raises:
        assert len(page_of(tmp_path)["scalars"]["loss"]) > 100


def test_curves_are_bounded(tmp_path: Path) -> None:
    from torchspore.html_pages import curves

    drawn_curves = curves.Curves()
    for step in range(50_000):
        drawn_curves.scalar("loss", step, 1 / (step + 1))
    for name in range(300):
        drawn_curves.scalar(f"n{name}", 0, 0.0)
    drawn_curves.histogram("h", 1, np.array([np.nan, 1.0, np.inf]))
    result = drawn_curves.data()
    assert len(result["scalars"]["loss"]) <= curves.MOST_POINTS + 2 and result["scalars"]["loss"][-1][0] == 49_999
    assert len(result["scalars"]) == curves.MOST_TAGS and "101 names beyond" in result["notes"][0]
    assert result["histograms"]["h"][0]["bad"] == 2


@pytest.mark.parametrize(("arguments", "kind", "text"), [
    ({"summary_dir": " "}, ValueError, "The summary_dir is invalid, it should be non-blank."),
    ({"summary_dir": 1}, TypeError, "The summary_dir is invalid, the type should be string."),
    ({"collect_freq": 0}, ValueError, 'For "SummaryCollector", the value of `collect_freq` should be greater than 0, but got `0`.'),
    ({"collect_freq": True}, TypeError, "For `collect_freq` the type should be a valid type of ['int'], but got bool."),
    ({"keep_default_action": 1}, TypeError, "For `keep_default_action` the type should be a valid type of ['bool'], but got int."),
    ({"export_options": {"tensor_format": "npz"}}, ValueError,
     'For "SummaryRecord", the export_format {\'npz\'} of "export_options" are unsupported for tensor_format, expect the follow values: '),
    ({"export_options": {"a": 1}}, ValueError, 'the keys {\'a\'} of "export_options" are unsupported, expect'),
    ({"collect_specified_data": {"histogram_regular": "*"}}, ValueError,
     "For `collect_specified_data`, the value of `histogram_regular` is not a valid regular expression. Detail: nothing to repeat"),
    ({"collect_specified_data": {1: True}}, TypeError, "For `1` the type should be a valid type of ['str'], but got int."),
    ({"custom_lineage_data": {"a": {}}}, TypeError,
     "For `the value of custom_lineage_data -> a` the type should be a valid type of ['int', 'str', 'float'], but got dict."),
    ({"collect_specified_data": {"collect_landscape": {"a": 1}}}, ValueError, "the keys {'a'} of `collect_landscape` are unsupported"),
    ({"collect_specified_data": {"collect_landscape": {"landscape_size": 3}}}, ValueError, "should be less than 256 and more than 3"),
    ({"collect_specified_data": {"collect_landscape": {"unit": "a"}}}, ValueError, "unit in collect_specified_data should be step or"),
    ({"collect_specified_data": {"collect_landscape": {"create_landscape": {"a": True}}}}, ValueError, 'should be in ["train", "result"]'),
    ({"collect_specified_data": {"collect_landscape": {"create_landscape": {"train": 1}}}}, TypeError, "For `train` the type should be"),
    ({"collect_specified_data": {"collect_landscape": {"intervals": [1]}}}, TypeError, "For `each interval in intervals` the type"),
])
def test_arguments_of_the_collector(tmp_path: Path, arguments: dict[str, Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=re.escape(text)) as caught:
        SummaryCollector(**{"summary_dir": str(tmp_path), **arguments})
    assert str(caught.value).startswith(("The ", "For "))


def test_a_file_is_no_folder_of_records(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match="is a file path, it should be a directory path"):
        SummaryCollector(str(tmp_path / "file"))


def test_two_collectors_are_refused(tmp_path: Path) -> None:
    collectors = [SummaryCollector(str(tmp_path)), SummaryCollector(str(tmp_path))]
    with pytest.raises(ValueError, match="more than one SummaryCollector instance in callback list"):
        collectors[0]._check_callbacks({"list_callback": collectors})


@pytest.mark.parametrize(("output", "loss"), [
    (None, None), ({}, None), ((), None), (1, 1.0), (1.5, 1.5), ([1], 1.0), (Tensor([[1, 2], [3, 4]]), 2.5), ([Tensor([3.0, 4.0]), 1], 3.5),
])
def test_losses_of_a_step(tmp_path: Path, output: Any, loss: float | None) -> None:
    collector = SummaryCollector(str(tmp_path))
    read_loss = collector._get_loss({"net_outputs": output})
    assert (read_loss is None) == (loss is None) and (loss is None or float(read_loss) == loss)
    assert collector._is_parse_loss_success is (loss is not None)
