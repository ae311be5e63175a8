"""Tuning seen from outside: the file that appears, the run after that does not search, what is said, and that numbers stay."""
from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import Tensor, nn, ops
from support import fake_timings, processes

from torchspore.context import effects
from torchspore.graph import settings as tuning_request
from torchspore.graph.autotune import tuner, tuning_file
from torchspore.graph.backend import measurement
from torchspore.graph.compile_cache import autotune_cache


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TORCHSPORE_TUNE_SECONDS", "2")
    autotune_cache.forget()
    threads = torch.get_num_threads()
    yield tmp_path
    assert torch.get_num_threads() == threads
    ms.set_context(mode=ms.PYNATIVE_MODE, auto_tune_mode="NO_TUNE", aoe_config={}, deterministic="OFF")
    from torchspore.context.store import STORE

    STORE._code.pop("aoe_tune_mode", None)        # no value of it means "off"
    STORE._fill({"aoe_tune_mode": None})


class Net(nn.Cell):
    """A product, and elementwise operators that are worth fusing."""

    def __init__(self) -> None:
        super().__init__()
        self.fc, self.norm = nn.Dense(128, 128), nn.LayerNorm((128,))

    def construct(self, x):
        y = self.fc(x)
        return self.norm(ops.gelu(y) * 0.5 + ops.exp(-x * x) + ops.tanh(x) * y) * (x + 1)


def data(*shape: int) -> Tensor:
    return Tensor(np.random.RandomState(0).randn(*shape).astype(np.float32))


def tuned_net(**options: Any) -> Any:
    ms.set_context(mode=ms.GRAPH_MODE, **options)
    ms.set_seed(1)
    return Net()


def plain(net: Any, x: Tensor) -> Any:
    ms.set_context(mode=ms.PYNATIVE_MODE)
    array = net(x).asnumpy()
    ms.set_context(mode=ms.GRAPH_MODE)
    return array


def entries(folder: Path) -> list[dict[str, Any]]:
    tuning = json.loads((folder / "rank_0/tuning/tuning.json").read_text())
    assert tuning["format"] == 1 and tuning["machine"].startswith(f"torch {torch.__version__}")
    return list(tuning["graphs"].values())


def notes() -> str:
    return "\n".join(effects.notes().get("tuning", []))


@pytest.mark.parametrize(("options", "job"), [
    ({"aoe_tune_mode": "online", "aoe_config": {"job_type": "1"}}, "1"), ({"auto_tune_mode": "GA"}, "2"),
    ({"auto_tune_mode": "RL", "aoe_config": {"job_type": "1"}}, "1"),
])  # fmt: skip
def test_online_searches_once_and_keeps_its_result(
    options: Any, job: str, folder: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    x = data(256, 128)
    net = tuned_net(**options)
    array = net(x).asnumpy()
    np.testing.assert_allclose(array, plain(net, x), rtol=1e-4, atol=1e-4)
    (entry,) = entries(folder)
    assert (entry["status"], entry["job"]) == ("tuned", job) and entry["tried"] >= 2
    assert entry["plan"] is None or entry["gain"][0] >= tuner.WORTH
    autotune_cache.forget()
    second_net = tuned_net()
    with measurement.measured_by(fake_timings.nobody):
        np.testing.assert_allclose(second_net(x).asnumpy(), array, rtol=1e-4, atol=1e-4)
    assert "as in an earlier search" in notes()


@pytest.mark.slow
def test_the_chosen_plan_is_faster(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The gain is measured again here, in turns with the untuned form."""
    monkeypatch.setenv("TORCHSPORE_TUNE_SECONDS", "15")
    from torchspore.graph import dispatch
    from torchspore.graph.backend import measurement

    x = data(512, 128)
    tuned, untuned = tuned_net(aoe_tune_mode="online", aoe_config={"job_type": "1"}), Net()
    tuned(x)
    (entry,) = entries(folder)
    assert entry["plan"] is not None and entry["gain"][0] >= tuner.WORTH
    with ms.context.scope(deterministic="ON"):
        untuned(x)
    forms = {"tuned": tuned, "untuned": untuned}
    codes = {name: dispatch.graphs(net)[0].code for name, net in forms.items()}
    inputs = {name: dispatch.graphs(net)[0]._examples([x]) for name, net in forms.items()}
    ratios = []
    with measurement.undisturbed():
        for _ in range(5):
            times = {name: measurement.seconds({name: codes[name]}, inputs[name])[name] for name in codes}
            ratios.append(times["untuned"] / times["tuned"])
    assert sorted(ratios)[2] > 1.0, ratios


def test_the_absence_of_a_better_plan_is_reported(folder: Path, measured_by: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    measured_by(lambda forms, inputs, turns: dict.fromkeys(forms, 1.0))
    net = tuned_net(aoe_tune_mode="online", aoe_config={"job_type": "1"})
    monkeypatch.setenv("TORCHSPORE_TUNE_SECONDS", "1")
    x = data(200, 128)
    np.testing.assert_array_equal(net(x).asnumpy(), plain(net, x))
    (entry,) = entries(folder)
    assert entry["plan"] is None and "nothing better found" in notes()


def test_tuning_writes_and_draws_nothing(folder: Path) -> None:
    class Draws(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.drop, self.norm, self.steps = nn.Dropout(p=0.5), nn.BatchNorm1d(64), ms.Parameter(Tensor(0.0))

        def construct(self, x):
            self.steps += 1
            return ops.exp(self.drop(self.norm(x * 2))) + self.steps

    answers = []
    for options in ({}, {"aoe_tune_mode": "online", "aoe_config": {"job_type": "1"}}):
        ms.set_context(mode=ms.GRAPH_MODE, **options)
        ms.set_seed(4)                                   # nn.Dropout takes its seed when it is created
        net = Draws()
        net.set_train()
        state = torch.get_rng_state()
        net.compile(data(300, 64))
        assert torch.equal(state, torch.get_rng_state())
        answers.append([net(data(300, 64)).asnumpy() for _ in range(2)] + [p.asnumpy() for p in net.get_parameters()])
    for a, b in zip(*answers, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_with_the_compile_cache_on_the_choice_is_saved_there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    net = tuned_net(aoe_tune_mode="online", enable_compile_cache=True, compile_cache_path=str(folder / "cache"))
    net(data(250, 128))
    assert not (folder / "rank_0").exists() and list((folder / "cache/rank_0/graph_cache/choices").rglob("*"))
    autotune_cache.forget()
    with measurement.measured_by(fake_timings.nobody):
        tuned_net()(data(250, 128))
    ms.set_context(enable_compile_cache=False, compile_cache_path="")


def test_deterministic_is_not_tuned(folder: Path) -> None:
    net = tuned_net(aoe_tune_mode="online", deterministic="ON")
    net(data(256, 128))
    assert not (folder / "rank_0").exists()
    from torchspore.cli import explain

    (row,) = [row for row in explain.rows() if row[0] == "aoe_tune_mode"]
    assert row[3] == "no effect here: deterministic is ON, and a choice by time may give other bits"


@pytest.mark.parametrize(("content", "reason"), [
    ("{", "can't be read (Expecting property name enclosed in double quotes: line 1 column 2 (char 1))"),
    ('{"format": 7}', "is not a tuning file of this version of torchspore"),
    ('{"format": 1, "machine": "torch 1.0 elsewhere", "graphs": {}}',
     "was written on another machine or with another torch (torch 1.0 elsewhere; here {machine})"),
])  # fmt: skip
def test_a_file_of_elsewhere_is_named_and_unchanged(
    content: str, reason: str, folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TORCHSPORE_TUNE_SECONDS", "0.5")
    path = folder / "rank_0/tuning/tuning.json"
    path.parent.mkdir(parents=True)
    path.write_text(content)
    net = tuned_net(aoe_tune_mode="online")
    for length in (240, 241):
        net(data(length, 128))
    messages = [line for line in capfd.readouterr().err.splitlines() if line.startswith("torchspore: tuning")]
    assert messages == [f"torchspore: tuning: {path} {reason.replace('{machine}', tuning_file.machine())}; it is passed over."]
    assert path.read_text() == content and len(list(path.parent.glob("tuning-*.json"))) == 1


def test_a_file_of_another_net_is_named(folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHSPORE_TUNE_SECONDS", "0.5")
    tuned_net(aoe_tune_mode="online")(data(230, 128))
    named = folder / "rank_0/tuning"
    monkeypatch.setenv("TORCHSPORE_TUNING", str(named))
    autotune_cache.forget()
    tuned_net(aoe_tune_mode="offline")(data(231, 128))
    assert f"{named}/tuning.json has no entry for the graph at {__file__}:" in capfd.readouterr().err
    assert [entry["status"] for entry in entries(folder)] == ["tuned", "to do"]


def test_a_plan_that_means_nothing_is_reported_and_not_run(
    folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TORCHSPORE_TUNE_SECONDS", "0.5")
    net, x = tuned_net(aoe_tune_mode="online", aoe_config={"job_type": "1"}), data(220, 128)
    net(x)
    path = folder / "rank_0/tuning/tuning.json"
    tuning = json.loads(path.read_text())
    for entry in tuning["graphs"].values():
        entry["plan"] = {"back end": "kernels", "products": "by hand"}
    path.write_text(json.dumps(tuning))
    autotune_cache.forget()
    second_net = tuned_net()
    np.testing.assert_allclose(second_net(x).asnumpy(), plain(second_net, x), rtol=1e-4, atol=1e-4)
    assert "'products' 'by hand' is not one of the choices" in capfd.readouterr().err


def test_the_order_of_searches_and_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    for order, searches in (("RL,GA", ("RL", "GA")), ("GA,RL", ("GA", "RL")), ("GA", ("GA",))):
        ms.set_context(auto_tune_mode=order)
        result = tuning_request.tuning()
        assert result is not None and result.searches == searches and result.is_online
    for order, seconds in (("7.5", 7.5), ("", 60.0), ("soon", 60.0), ("-1", 0.0)):
        monkeypatch.setenv(tuning_request.BUDGET, order)
        assert tuning_request.tuning_budget() == seconds


def test_details_of_a_tuner_that_is_off_have_no_effect(folder: Path) -> None:
    tuned_net(aoe_config={"job_type": "1"})(data(210, 128))
    from torchspore.cli import explain

    (row,) = [row for row in explain.rows() if row[0] == "aoe_config"]
    assert row[3] == "no effect here: nothing is tuned: neither aoe_tune_mode nor auto_tune_mode is set"
    assert not (folder / "rank_0").exists()


PROGRAM = """
import mindspore as ms, numpy as np
from mindspore import nn, ops
ms.set_context(mode=ms.GRAPH_MODE, aoe_tune_mode="offline", aoe_config={"job_type": "1"})

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.table, self.fc = nn.Embedding(50, 128), nn.Dense(128, 128)

    def construct(self, ids):
        x = self.table(ids)
        return ops.softmax(ops.gelu(self.fc(x)) * 0.5 + ops.exp(-x * x) + ops.tanh(x))

ms.set_seed(1)
print(f"{float(Net()(ms.Tensor(np.arange(400) % 50, ms.int32))[3, 5]):.5f}")
"""


@pytest.mark.slow
def test_offline_keeps_the_graphs_and_the_command_works_them_off(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)

    def torchspore(*words: str) -> processes.Run:
        ran = processes.torchspore(*words, cwd=tmp_path, timeout=200, extra={"TORCHSPORE_TUNE_SECONDS": "3"})
        assert ran.code == 0, ran.err
        return ran

    first = torchspore("explain", "program.py")
    assert "offline: 1 graph kept for `torchspore tune" in first.out
    (entry,) = entries(tmp_path)
    assert entry["status"] == "to do" and (tmp_path / "rank_0/tuning" / entry["graph"]).exists()
    completed = torchspore("tune", "rank_0/tuning")
    assert "ways tried in" in completed.out and completed.out.endswith("saved in rank_0/tuning/tuning.json\n")
    (entry,) = entries(tmp_path)
    assert entry["status"] == "tuned" and entry["net"].endswith("program.py:16")
    second = torchspore("explain", "program.py")
    assert "as in an earlier search" in second.out and second.out.split()[0] == first.out.split()[0]
    assert torchspore("tune", "rank_0/tuning").out == "1 of 1 graphs were tuned before\nsaved in rank_0/tuning/tuning.json\n"


@pytest.mark.parametrize(("words", "code", "text"), [
    ((), 2, "torchspore tune: expected PATH.\n\nhint: write `torchspore tune rank_0/tuning`.\n"),
    (("nothing",), 2, "torchspore tune nothing: no tuning file exists here (looked for {folder}/nothing).\n\nhint: run the program with "
     "set_context(aoe_tune_mode='offline') first.\n"),
    (("broken.json",), 1, "torchspore tune: broken.json is not a tuning file of this version of torchspore.\n"),
])  # fmt: skip
def test_what_the_command_says(words: tuple[str, ...], code: int, text: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from torchspore.cli import tune

    (folder / "broken.json").write_text("[]")
    assert tune.run(words) == code and capsys.readouterr().err == text.replace("{folder}", str(folder))
