"""The page of `torchspore plan` in a real browser: splits in colour, what is sent, a table that sorts, memory; nothing in it runs."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from browser import chromium

pytestmark = chromium.needed
EVIL = "</script><script>window.ran=1</script><img src=x onerror='window.ran=1'>"
PROGRAM = """
import mindspore as ms
import numpy as np
from mindspore import Tensor, nn
from mindspore.ops import operations as P

ms.set_context(mode=ms.GRAPH_MODE)
ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.up = ms.Parameter(Tensor(np.ones((64, 256), np.float32)), name="up")
        self.down = ms.Parameter(Tensor(np.ones((256, 64), np.float32)), name="down")
        self.columns, self.relu = P.MatMul().shard(((2, 1), (1, 4))), P.ReLU().shard(((2, 4),))
        self.rows = P.MatMul().shard(((2, 4), (4, 1)))

    def construct(self, x):
        return self.rows(self.relu(self.columns(x, self.up)), self.down)


class Inner(nn.Cell):
    def __init__(self):
        super().__init__()
        setattr(self, EVIL, Net())

    def construct(self, x):
        return getattr(self, EVIL)(x) + x


net = Inner()
step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.Adam(net.trainable_params(), 1e-3)).set_train()
step(Tensor(np.ones((32, 64), np.float32)), Tensor(np.ones((32, 64), np.float32)))
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a small step, whose Parameters and Cells bear hostile names."""
    folder = tmp_path_factory.mktemp("plan")
    program = folder / "<img src=x onerror=window.ran=1>.py"
    program.write_text(PROGRAM.replace("EVIL", repr(EVIL)))
    command = [sys.executable, "-m", "torchspore", "plan", "--devices", "8", "--html", "plan.html", str(program)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=folder, env={**os.environ, "PYTHONUNBUFFERED": "1"})
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines()[-1] == f"the page is {folder / 'plan.html'}"
    return folder / "plan.html"


@pytest.fixture
def opened(browser: chromium.Browser, page: Path) -> chromium.Browser:
    browser.errors.clear()
    browser.open(page.as_uri(), chromium.READY)
    return browser


def test_nothing_in_the_page_runs_or_asks_for_anything(opened: chromium.Browser) -> None:
    assert opened.errors == [] and not opened.evaluate("window.ran")
    assert opened.evaluate("performance.getEntriesByType('resource').length") == 0
    assert EVIL in opened.evaluate("document.getElementById('parameters').textContent")
    assert "<img src=x onerror=window.ran=1>.py:" in opened.evaluate("document.getElementById('operators').textContent")


def test_splits_have_colours_and_redistributions_are_marked(opened: chromium.Browser) -> None:
    opened.evaluate("app.openOnly(new Set(app.panes[0].tree.groups.keys()))")
    kinds = opened.evaluate("Object.fromEntries([...document.querySelectorAll('.card[data-kind]')].map((one) => "
                            "[one.dataset.kind, one.querySelector('.side').style.fill]))")
    assert set(kinds) == {"whole", "along axis 0 (2)", "along axis 0 (2) and axis 1 (4)"} and len(set(kinds.values())) == 3
    legend = opened.evaluate("document.querySelector('.keys').textContent")
    assert all(kind in legend for kind in kinds)
    marked = opened.evaluate("[...document.querySelectorAll('.card.sends')].map((one) => one.textContent)")
    assert any("⇄ all_reduce over 4 · 6.00 KiB" in text for text in marked)      # 16 x 64 float32, three quarters twice


def test_an_operator_tells_of_itself(opened: chromium.Browser) -> None:
    opened.evaluate("document.querySelector('#operators tbody tr').click()")
    text = opened.evaluate("document.getElementById('details').textContent")
    assert text.startswith("MatMulsplit(2, 4)") and f"Parameters{EVIL}.up" in text and "CellDefault/network-WithLossCell" in text
    assert opened.evaluate("document.querySelectorAll('.card.selected').length") == 1


def test_the_table_sorts_and_finds(opened: chromium.Browser) -> None:
    received = "[...document.querySelectorAll('#operators tbody tr')].map((row) => row.children[3].textContent)"
    opened.evaluate("document.querySelectorAll('#operators th')[3].click()")
    largest = opened.evaluate(received)
    assert largest[0].endswith("KiB") and largest[-1] == ""
    opened.evaluate("document.querySelectorAll('#operators th')[3].click()")
    assert opened.evaluate(received)[0] == ""
    script = "box.value = 'RELU'; box.dispatchEvent(new Event('input'));"
    opened.evaluate(f"(() => {{ const box = document.querySelector('.bar input'); {script} }})()")
    names = opened.evaluate("[...document.querySelectorAll('#operators tbody tr')].map((row) => row.children[0].textContent)")
    assert sorted(names) == ["ReLU", "gradient of ReLU"]


def test_memory_is_shown_by_kind(opened: chromium.Browser) -> None:
    rows = "[...document.querySelectorAll('#memory tbody tr')]"
    memory_by_kind = dict(opened.evaluate(rows + ".map((row) => [row.children[0].textContent, row.children[1].textContent])"))
    assert memory_by_kind["parameters"] == "32.0 KiB" and set(memory_by_kind) >= {"gradients", "activations", "state of optimizers"}
    assert memory_by_kind["state of optimizers"].startswith("64.0 KiB")           # two moments, and a few numbers
