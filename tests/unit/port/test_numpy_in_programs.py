"""Programs that compute with NumPy: Parameters of arrays, results, metrics, batches of arrays."""
from __future__ import annotations

from pathlib import Path

import pytest
import torch
from support.training_scripts import MODEL, assert_verified, ported
from unit.port.test_hostile_source import HEAD as HEAD_OF_CELLS
from unit.port.test_hostile_source import net

from torchspore.port import complete_port
from torchspore.port.analysis.source import Source
from torchspore.port.rewriting import torch_file
from torchspore.port.verification import comparison, example_inputs, metric_comparison
from torchspore.port.verification.comparison import module_of_text

CELLS = {
    "Parameters of one array": net(
        "scale = self.scale_of(np.ones(4, np.float32))\nself.a, self.b = Parameter(scale), Parameter(scale)",
        "ops.assign_add(self.a, Tensor(np.ones(4), ms.float32))\nreturn x[0, 0, 0] * self.a + self.b",
    ) + "\n    def scale_of(self, w):\n        return w * 2\n",
    "Parameters of lists": net("self.w = Parameter([1.0, 2.0, 3.0, 4.0])\nself.n = Parameter(Tensor(np.arange(4), ms.int32))",
                               "return x * self.w + self.n"),
    "arrays of Tensors": net("pass", "y = ops.tanh(x)\nreturn x + Tensor(np.exp(y)) + Tensor(np.sqrt(np.abs(self.twice(x))))")
                         + "\n    def twice(self, x):\n        return 2 * x\n",
    "data_format": net(
        "self.c = nn.Conv2d(4, 6, 3, data_format='NHWC', has_bias=True)\nself.b = nn.BatchNorm2d(6, data_format='NHWC')\n"
        "self.p = nn.MaxPool2d(2, 2, data_format='NHWC')\nself.q = nn.AvgPool2d(2, 1, 'same', data_format='NHWC')\n"
        "chosen = 'NHWC' if self.c else 'NCHW'\nself.d = nn.Conv2d(6, 2, 1, data_format=chosen)\n"
        "self.e = nn.Conv2d(2, 2, 1, **{'data_format': 'NHWC'})", "return self.e(self.d(self.q(self.p(self.b(self.c(x))))))"),
    "a decorated class": "from dataclasses import dataclass\n\n\n@dataclass\nclass Result:\n    values: object\n    size: int = 3\n\n\n"
                         + net("pass", "return Result(x * 2)"),
    "a result of arrays": net("pass", "return {'a': x.asnumpy() * 2, 'b': [np.float32(3)]}"),
}


@pytest.mark.parametrize("case", CELLS)
def test_cells(case: str, tmp_path: Path) -> None:
    (tmp_path / "cells.py").write_text(HEAD_OF_CELLS + CELLS[case], encoding="utf-8")
    verdict, = complete_port.port_file(str(tmp_path / "cells.py"), ["Net"], "", ["2,8,9,4"]).verdicts
    assert verdict.is_equal, verdict


@pytest.mark.parametrize("result, change", [
    ("x.asnumpy() * 2", "* 2.1"), ("Result(x * 2)", "* 2.1"), ("[x.dtype, 'text'] * 2", "* 3"), ("None", "")])
def test_every_result_is_compared(result: str, change: str, tmp_path: Path) -> None:
    text = "class Result:\n    def __init__(self, values):\n        self.values = values\n\n\n" + net("pass", f"return {result}")
    (tmp_path / "cells.py").write_text(HEAD_OF_CELLS + text, encoding="utf-8")
    recording = example_inputs.recording(str(tmp_path / "cells.py"), "Net", "", ["3,4"])
    port = torch_file.port(Source(HEAD_OF_CELLS + text), ["Net"]).text
    assert comparison.verify(port, ["Net"], recording)[0].is_equal == bool(change)
    assert not comparison.verify(port.replace("* 2", change or "* 2"), ["Net"], recording)[0].is_equal


def test_imaginary_parts_are_compared() -> None:
    values = torch.tensor([1 + 2j, 3 - 1j])
    assert comparison._difference([values], [values.clone()]) == 0
    assert comparison._difference([values], [values + 0.5j]) > 0.1


LOOP = """optimizer = nn.SGD(net.trainable_params(), 0.1)
grad_fn = ms.value_and_grad(lambda x, y: loss_fn(net(x), y), None, net.trainable_params())
net.set_train()
dataset = ds.NumpySlicesDataset((pictures, labels), ["picture", "label"], shuffle=False).batch(8)
"""
LOOPS = {
    "a score of arrays": """def accuracy():
    scores = []
    for x, y in dataset.create_tuple_iterator():
        scores.append(np.argmax(ops.softmax(net(x), 1), 1) == y.asnumpy())
    return np.concatenate(scores).mean()


losses = []
for epoch in range(2):
    for x, y in dataset.create_tuple_iterator():
        loss, grads = grad_fn(x, y)
        optimizer(grads)
        losses.append(loss.asnumpy())
    print(epoch, np.mean(losses), accuracy())
""",
    "batches of arrays": """steps = 0
batches = dataset.create_dict_iterator(output_numpy=True)
for epoch in range(2):
    for batch in batches:
        loss, grads = grad_fn(Tensor(batch["picture"]), Tensor(batch["label"]))
        optimizer(grads)
        steps += 1
for x, y in dataset.create_tuple_iterator(num_epochs=1, output_numpy=True):
    print(x.astype(np.float64).mean(), next(dataset.create_tuple_iterator())[0].shape)
assert steps == 6
""",
}


@pytest.mark.parametrize("case", LOOPS)
def test_loops(case: str, tmp_path: Path) -> None:
    outcome = ported(tmp_path, LOOP + LOOPS[case])
    assert_verified(outcome)
    module_of_text(outcome.ported.text, "__main__")


METRIC = """class Recall(nn.Metric):
    def __init__(self, k):
        super(Recall, self).__init__()
        self.k = k
        self.clear()

    def clear(self):
        self._hits, self._count = 0, 0

    def update(self, *inputs):
        scores, labels = self._convert_data(inputs[0]), inputs[1].asnumpy()
        self._hits += (np.argsort(-scores, axis=1)[:, :self.k] == labels.reshape(-1, 1)).sum()
        self._hits += inputs[0].argmax(axis=1).astype(ms.float32).std().asnumpy()
        self._count += labels.shape[0]

    def eval(self):
        return self._hits / self._count


"""
TRAINED = MODEL.format(optimizer="nn.SGD(net.trainable_params(), 0.1)", callbacks="None") + "print(model.eval(dataset))\n"


def test_a_metric_of_the_user(tmp_path: Path) -> None:
    outcome = ported(tmp_path, METRIC + TRAINED.replace('{"accuracy"}', '{"recall": Recall(2)}'))
    assert not outcome.ported.by_hand and not outcome.ported.omitted_classes
    assert [(each.name, each.is_equal) for each in outcome.verdicts] == [("train.py", True), ("Recall", True)]
    module_of_text(outcome.ported.text, "__main__")
    wrong = outcome.ported.text.replace("correction=0", "correction=1")
    assert wrong != outcome.ported.text
    verdict, = metric_comparison.compare_metrics((tmp_path / "train.py").read_text(), wrong, ["Recall"])
    assert not verdict.is_equal and not verdict.reason


@pytest.mark.parametrize("change", [("def update", "@nn.rearrange_inputs\n    def update"), ("self.k = k", "self.k = self.indexes")])
def test_a_metric_that_uses_more_of_its_base(change: tuple[str, str], tmp_path: Path) -> None:
    outcome = ported(tmp_path, METRIC.replace(*change) + TRAINED.replace('{"accuracy"}', '{"recall": Recall(2)}'))
    assert "Recall" in outcome.ported.omitted_classes and "the metric Recall(2)" in outcome.ported.by_hand[0].text


def test_data_sets_without_a_rule_are_left_to_do_by_hand(tmp_path: Path) -> None:
    text = LOOP + """files = ds.TFRecordDataset("rows.tfrecord", columns_list=["x", "y"]).batch(4)
for x, y in files.create_tuple_iterator():
    print(x, y)
while files.get_dataset_size() > len(list(dataset.create_tuple_iterator(columns=["label"]))):
    break
"""
    outcome = ported(tmp_path, text)
    assert not outcome.ported.problems
    reasons = [problem.text for problem in outcome.ported.by_hand]
    assert any("TFRecordDataset: read its files by a torch.utils.data.Dataset" in reason for reason in reasons)
    assert any("the argument columns of create_tuple_iterator" in reason for reason in reasons)
    assert 'for x, y in to_do_by_hand("' in outcome.ported.text or "for x, y in to_do_by_hand('" in outcome.ported.text
