"""Ports of programs that compute in float16 or bfloat16: tolerances, and what the report says of them."""
from __future__ import annotations

from pathlib import Path

import pytest
from support.training_scripts import assert_verified, ported
from unit.port.test_hostile_source import HEAD, net

from torchspore.port import complete_port, report
from torchspore.port.analysis.source import read
from torchspore.port.rewriting import torch_file
from torchspore.port.verification import comparison, example_inputs

CELLS = {
    "casts": (net("self.d = nn.Dense(4, 64)", "y = self.d(x).astype(ms.float16)\nreturn ops.cast(ops.softmax(y, -1), ms.float32)"),
              "float32 and float16, tolerance 5e-03"),
    "a Parameter": (net("self.w = Parameter(Tensor(np.ones((4, 8)) * 0.37, ms.float16))",
                        "return ops.softmax(ops.matmul(x.astype(ms.float16), self.w), -1).sum(1)"), "float32 and float16, tolerance 5e-03"),
    "bfloat16": (net("self.d = nn.Dense(4, 64)", "return ops.gelu(self.d(x).astype(ms.bfloat16)).float().sum(1)"),
                 "float32 and bfloat16, tolerance 4e-02"),
    "to_float": (net("self.d = nn.Dense(4, 64).to_float(ms.float16)", "return ops.exp(self.d(x).astype(ms.float32))"),
                 "float32, without to_float; float16 under torch.autocast, tolerance 2e-02"),
}


@pytest.mark.parametrize("case", CELLS)
def test_cells(case: str, tmp_path: Path) -> None:
    text, precisions = CELLS[case]
    (tmp_path / "cells.py").write_text(HEAD + text, encoding="utf-8")
    outcome = complete_port.port_file(str(tmp_path / "cells.py"), ["Net"], "", ["3,4"])
    assert all(verdict.is_equal for verdict in outcome.verdicts), outcome.verdicts
    assert "; ".join(verdict.precision for verdict in outcome.verdicts) == precisions
    assert all(f"in {precision}: " in report.summary("cells.py", None, outcome) for precision in precisions.split("; "))


def test_a_larger_difference_than_rounding_is_seen(tmp_path: Path) -> None:
    (tmp_path / "cells.py").write_text(HEAD + CELLS["casts"][0], encoding="utf-8")
    recording = example_inputs.recording(str(tmp_path / "cells.py"), "Net", "", ["3,4"])
    text = torch_file.port(read(str(tmp_path / "cells.py"))).text
    for change, is_equal in (("y", True), ("y * 1.001", True), ("y * 1.2", False)):
        verdict, = comparison.verify(text.replace("softmax(y", f"softmax({change}"), ["Net"], recording)
        assert verdict.is_equal == is_equal, (change, verdict)


DATA = "dataset = ds.NumpySlicesDataset((pictures, labels), ['picture', 'label']).batch(8)\n"
SCALED = DATA + """scale = 512
optimizer = nn.Momentum(net.trainable_params(), 0.01, 0.9, loss_scale=scale)
model = Model(net, loss_fn, optimizer, amp_level='O2', loss_scale_manager=ms.FixedLossScaleManager(scale, drop_overflow_update=False))
model.train(2, dataset)
"""


def test_a_scale_that_the_optimizer_divides_by(tmp_path: Path) -> None:
    outcome = ported(tmp_path, SCALED)
    assert_verified(outcome)
    assert [verdict.precision for verdict in outcome.verdicts] == [
        "float32, without mixed precision", "mixed precision, tolerance 2e-02"]


@pytest.mark.parametrize("change, scales", [
    ((", loss_scale=scale", ""), "1.0 of an optimizer whose gradients have the scale scale"),
    (("False))", "True))"), "scale of an optimizer whose gradients have the scale 1.0")])
def test_scales_that_do_not_cancel(change: tuple[str, str], scales: str, tmp_path: Path) -> None:
    outcome = ported(tmp_path, SCALED.replace(*change))
    assert outcome.ported.by_hand[0].text == f"no rule for the loss_scale {scales}"


def test_the_first_steps_overflow(tmp_path: Path) -> None:
    text = DATA + "model = Model(net, loss_fn, nn.SGD(net.trainable_params(), 0.1), amp_level='O2')\nmodel.train(2, dataset)\n"
    outcome = ported(tmp_path, text)
    assert_verified(outcome)
    assert outcome.verdicts[0].precision == "float32 (mixed precision was not compared: its first steps overflow)"


LOOP = """def forward(x, y):
    scores = ops.softmax(net(x).astype(ms.float16), -1).astype(ms.float32)
    return loss_fn(scores, y)


optimizer = nn.SGD(net.trainable_params(), 0.1)
grad_fn = ms.value_and_grad(forward, None, optimizer.parameters)
for epoch in range(4):
    loss, grads = grad_fn(Tensor(pictures), Tensor(labels))
    optimizer(grads)
"""


def test_a_loop_that_casts_without_set_train(tmp_path: Path) -> None:
    outcome = ported(tmp_path, LOOP)
    assert_verified(outcome)
    assert "net = Net()\nnet.eval()\n" in outcome.ported.text
    assert outcome.verdicts[0].precision == "float32 and float16, tolerance 5e-03"
