"""`save_graphs` and `save_graphs_path`: which files are there at each level, and what stands in them."""
from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn
from unit.graph.saved.conftest import Saving
from unit.graph.saved.nets import LABEL, Deciding, Net, X, line, step

from torchspore.context import effects
from torchspore.graph.report import stages
from torchspore.graph.save_graphs import dot, ir_types, page, recording, snapshot

MAIN = [f"{number:02d}_{name}" for number, name in enumerate(recording.MAIN)]


def stems(folder: Path, ending: str = "ir") -> list[str]:
    """The names of the files without their numbers, in the order of these."""
    results = [re.fullmatch(rf"(.*)_(\d{{4}})\.{ending}", path.name) for path in folder.iterdir() if path.suffix == f".{ending}"]
    return [match.group(1) for match in sorted(filter(None, results), key=lambda match: int(match.group(2)))]


def text_of(folder: Path, stem: str) -> str:
    """The file of a stage."""
    (path,) = folder.glob(f"{stem}_[0-9][0-9][0-9][0-9].ir")
    return path.read_text()


def names_in(text: str) -> list[str]:
    """The full names with scope."""
    return re.findall(r"# Fullname with scope: \((.*)\)", text)


def test_level_0_writes_nothing(saving: Saving) -> None:
    folder = saving(0)
    Net()(X)
    assert list(folder.iterdir()) == []


def test_level_1_writes_the_main_stages_and_the_page(saving: Saving) -> None:
    folder = saving(1)
    Net()(X)
    result = stems(folder)
    assert result[:-1] == MAIN and re.fullmatch(r"graph_build_\d+", result[-1])
    assert not list(folder.rglob("*.dot")) and not (folder / "verbose_ir_files").exists()
    assert (folder / "index.html").stat().st_size > 50_000


def test_level_2_adds_the_steps_of_the_back_end_and_inner_graphs(saving: Saving) -> None:
    folder = saving(2)
    step(Deciding())(X, LABEL)
    inner = stems(folder / "verbose_ir_files")
    assert [name for name in stems(folder) if name.startswith("hwopt_")] == [
        "hwopt_0_share_small_values", "hwopt_1_pool_channels_last", "hwopt_2_call_composites", "hwopt_3_overwrite"]
    assert any("_loop_" in name for name in inner) and any("_branch_" in name for name in inner)
    assert not list(folder.rglob("*.dot")) and not [name for name in stems(folder) if name.startswith("opt_pass")]


def test_true_is_level_2_with_drawings_of_the_main_stages(saving: Saving) -> None:
    folder = saving(True)
    assert ms.get_context("save_graphs") == 2
    Net()(X)
    assert stems(folder, "dot") == MAIN


def test_level_3_writes_every_pass_and_drawings_of_all(saving: Saving) -> None:
    folder = saving(3)
    step(Deciding())(X, LABEL)
    passes = [name for name in stems(folder) if name.startswith("opt_pass_")]
    assert [re.sub(r"opt_pass_\d+_", "", name) for name in passes] == [
        "keep_errors", "real_constants", "drop_idle_states", "drop_copies", "cancel_views", "drop_dead",
    ]
    assert len(list(folder.glob("*.ir"))) == len(list(folder.glob("*.dot"))) > 15
    numbers = sorted(int(path.stem[-4:]) for path in folder.rglob("*_[0-9][0-9][0-9][0-9].*"))
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def test_modes_of_files_and_directories(saving: Saving) -> None:
    folder = saving(2)
    Deciding()(X)
    assert stat.S_IMODE(folder.stat().st_mode) == stat.S_IMODE((folder / "verbose_ir_files").stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*.ir")} == {0o400}


def test_a_stage_that_changed_nothing_says_so(saving: Saving) -> None:
    folder = saving(1)
    Net()(X)
    (first,) = folder.glob("00_bootstrap_*.ir")
    assert text_of(folder, "01_type_inference") == f"# 01_type_inference\n# same as {first.name}\n"
    assert text_of(folder, "02_gradient").endswith(f"# same as {first.name}\n")       # nothing is differentiated here
    assert "subgraph @Net() {" in text_of(folder, "graph_build_*")


def test_the_grammar_of_a_file(saving: Saving) -> None:
    folder = saving(1)
    Net()(X)
    text = text_of(folder, "graph_build_*")
    assert text.startswith("# IR entry: @Net\n# Total subgraphs: 1\n")
    assert "\njit config {\ndebug_level: RELEASE\nexc_mode: auto\ninfer_boost: off\njit_level: O0\njit_syntax_level: LAX\n}\n" in text
    assert "\n# Total params: 5\n# Params:\n" in text
    assert re.search(r"^%para\d_x: <Tensor\[Float32\], \(3, 4\)>$", text, re.M)
    assert re.search(
        r"^%para\d_s\.d\.weight: <Ref\[Tensor\[Float32\]\], \(4, 4\), ref_key=s\.d\.weight, is_parameter>  :  has_default$", text, re.M)
    assert "\nNode counting information:\nTotal number of nodes: 9\nTotal number of cnodes: 4\n" in text
    node = re.search(r"^  %1\(relu\) = aten\.relu_?\(%0\) \{instance name: ReLU\}\n      : \((.*)\) -> \((.*)\)\n(.*)\n(.*)", text, re.M)
    assert node is not None and node.group(1) == node.group(2) == "<Tensor[Float32], (3, 4)>"
    assert node.group(3) == "      # Fullname with scope: (Default/s-Sub/ReLU-op0)"
    columns = r", \d+~\d+" if sys.version_info >= (3, 11) else ""         # older Pythons do not store columns
    assert re.search(rf"# In file {re.escape(line('relu'))}{columns}/        return ops.relu\(self.d\(x\)\)  # line: relu/", text)
    assert re.search(r"^  Return\(%\d+\)\n      : \(<Tensor\[Float32\], \(3, 2\)>\)\n", text, re.M) and text.endswith("}\n")
    assert text.count("# Fullname with scope") == 4


@pytest.mark.parametrize(("reserve", "scope"), [(True, "Default/s-Sub/d-Dense/Dense-op2"), (False, "Default/s/d/Dense-op2")])
def test_scopes_name_classes_on_request(saving: Saving, reserve: bool, scope: str) -> None:
    folder = saving(1, reserve_class_name_in_scope=reserve)
    Net()(X)
    assert scope in names_in(text_of(folder, "graph_build_*"))


def test_backward_operators_carry_the_scope_of_their_forward(saving: Saving) -> None:
    folder = saving(1)
    step(Net())(X, LABEL)
    names = names_in(text_of(folder, "graph_build_*"))
    assert "Gradients/Default/network-WithLossCell/_backbone-Net/s-Sub/Grad_ReLU/threshold_backward-op0" in names
    assert [name for name in names if name.startswith("Gradients/Default/network-WithLossCell/_backbone-Net/head-Dense/Grad_Dense/mm-op")]
    before = names_in(text_of(folder, "00_bootstrap"))
    assert before and not [name for name in before if name.startswith("Gradients")]       # the trace as it was before the gradient
    assert [name for name in names_in(text_of(folder, "02_gradient")) if name.startswith("Gradients")]


def test_branches_and_loops_are_separate_graphs(saving: Saving) -> None:
    folder = saving(1)
    step(Deciding())(X, LABEL)
    assert text_of(folder, "00_bootstrap").count("subgraph @") == 1
    text = text_of(folder, "03_control_flow")
    assert text.count("\nsubgraph @") == int(re.findall(r"# Total subgraphs: (\d+)\n", text)[0]) > 5
    scope = "Gradients/Default/network-WithLossCell/_backbone-Deciding/"
    assert re.search(rf"branch_back\(.*\n.*\n      # Fullname with scope: \({scope}", text)


@pytest.mark.skipif(shutil.which("dot") is None, reason="graphviz is not installed")
def test_graphviz_draws_every_drawing(saving: Saving) -> None:
    folder = saving(3)
    step(Deciding())(X, LABEL)
    for path in folder.rglob("*.dot"):
        ran = subprocess.run(["dot", "-Tsvg", str(path)], capture_output=True, text=True)
        assert ran.returncode == 0 and not ran.stderr, f"{path.name}: {ran.stderr}"
        assert "</svg>" in ran.stdout


@pytest.mark.skipif(shutil.which("dot") is None, reason="graphviz is not installed")
def test_odd_names_are_drawn() -> None:
    kind = ir_types.Value("Float32", (2,))
    calls = [snapshot.Call('a"b', 'o<"p>&', "", (), {}, (), kind, 'Default/"x"<y>')]
    drawn = dot.text(snapshot.Snapshot('net "<&>" \\', [snapshot.Input("in0", "<x>", kind)], calls, (snapshot.Reference('a"b'),)))
    ran = subprocess.run(["dot", "-Tsvg"], input=drawn, capture_output=True, text=True)
    assert ran.returncode == 0 and "net &quot;&lt;&amp;&gt;&quot; \\" in ran.stdout, ran.stderr + ran.stdout


def test_the_chosen_form_is_what_task_emit_shows(saving: Saving) -> None:
    folder = saving(1, jit_config={"jit_level": "O0", "infer_boost": "on"})
    net = Net().set_train(False)
    net(X)
    assert "same as" not in text_of(folder, "07_task_emit").splitlines()[1]
    assert "infer_boost: on" in text_of(folder, "07_task_emit")


class Nested(nn.Cell):
    """Branches in both ways of a branch: their graphs need names of their own."""

    def construct(self, x):
        if x.sum() > 0:
            if x.sum() > 1:
                x = x * 2
        else:
            if x.sum() < -1:
                x = x * 3
        return x


@pytest.mark.skipif(shutil.which("dot") is None, reason="graphviz is not installed")
def test_graphs_inside_graphs_have_separate_names(saving: Saving) -> None:
    folder = saving(3)
    Nested()(X)
    text = text_of(folder, "graph_build_*")
    names = re.findall(r"^subgraph @(\w+)\(", text, re.MULTILINE)
    assert len(names) == len(set(names)) >= 5
    (drawing,) = folder.glob("graph_build_*.dot")
    ran = subprocess.run(["dot", "-Tsvg", str(drawing)], capture_output=True, text=True)
    assert ran.returncode == 0 and ran.stderr == "" and ran.stdout.count('class="cluster"') == len(names)


def test_lines_of_what_runs_the_program_are_omitted(saving: Saving) -> None:
    folder = saving(1)
    Net()(X)
    lines = re.findall(r"# In file (.*?):\d+", text_of(folder, "graph_build_*"))
    assert lines and not [line for line in lines if "/site-packages/" in line]


def test_both_halves_of_a_graph_inside_a_gradient_are_shown(saving: Saving) -> None:
    folder = saving(1)
    net = Net()

    def forward(x):
        out = net(x).sum()
        float(out.asnumpy())
        return out

    ms.value_and_grad(forward, None, net.trainable_params())(X)
    entries = {re.findall(r"IR entry: @(\w+)", path.read_text())[0] for path in folder.glob("graph_build_*.ir")}
    assert {entry.rpartition("_")[2] for entry in entries} >= {"forward", "backward"}


def test_a_jit_function_in_pynative_is_saved(saving: Saving) -> None:
    folder = saving(1)
    ms.set_context(mode=ms.PYNATIVE_MODE)

    @ms.jit
    def double(a, b):
        return a * 2 + b

    double(X, X + 1)
    assert re.search(r"%para1_a: .*\n%para2_b: ", text_of(folder, "graph_build_*"))


def test_numbers_are_the_same_with_and_without(saving: Saving) -> None:
    ms.set_seed(3)
    plain, saved = Net(), Net()
    ms.load_param_into_net(saved, plain.parameters_dict())
    saving(0)
    expected = [step(plain)(X, LABEL).asnumpy() for _ in range(2)]
    saving(3)
    assert [step(saved)(X, LABEL).asnumpy() for _ in range(2)] == expected


def page_of(folder: Path) -> Any:
    """What the page knows of the first compilation."""
    text = (folder / "index.html").read_text(encoding="utf-8")
    match = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert match is not None
    return json.loads(match.group(1))["compilations"][0]


def test_times_are_measured_on_request(saving: Saving, monkeypatch: pytest.MonkeyPatch) -> None:
    ms.set_seed(3)
    plain, timed = Deciding(), Deciding()
    ms.load_param_into_net(timed, plain.parameters_dict())
    folder = saving(1)
    expected = [step(plain)(X, LABEL).asnumpy() for _ in range(2)]
    assert page_of(folder)["times"] == {}
    monkeypatch.setenv("TORCHSPORE_GRAPH_TIMES", "1")
    page._compilations.clear()
    assert [step(timed)(X, LABEL).asnumpy() for _ in range(2)] == expected
    data = page_of(folder)
    stage = data["stages"][-1]
    nodes = [data["records"][n]["n"] for n in (data["stages"][stage["same"]] if "same" in stage else stage)["nodes"]]
    assert set(data["times"]) == {name for name in nodes if ":" not in name} and min(data["times"].values()) > 0


def test_off_costs_an_attribute_read() -> None:
    import timeit

    module = object()
    each = min(timeit.repeat(lambda: stages.keep("optimize", module), number=20_000, repeat=5)) / 20_000
    assert each < 2e-6 and stages.now.get() is None


def test_explain_says_where_the_files_are(saving: Saving) -> None:
    folder = saving(1, reserve_class_name_in_scope=False)
    Net()(X)
    from torchspore.context.options import OPTIONS

    outcomes = {key: str(effects.outcome_of(OPTIONS[key], 1)) for key in ("save_graphs", "save_graphs_path", "reserve_class_name_in_scope")}
    assert outcomes["save_graphs"] == f"applied: level 1: see {folder.resolve() / 'index.html'}"
    assert outcomes["save_graphs_path"] == f"applied: graphs are saved in {folder.resolve()}"
    assert outcomes["reserve_class_name_in_scope"] == "applied: scopes name attributes alone: Default/fc"
    assert any(note.endswith(f"files in {folder.resolve()}") for note in effects.notes()["saved graphs"])


def test_own_debug_level_of_a_cell_wins(saving: Saving) -> None:
    import torchspore

    saving(0)
    net = Net()
    net.set_jit_config(ms.JitConfig(debug_level="DEBUG"))
    net(X)
    assert "Default/s-Sub" in str(torchspore.graphs(net)[0])
    other = Net()
    other(X)
    assert "Default/s-Sub" not in str(torchspore.graphs(other)[0])


class Images(nn.Cell):
    def construct(self, x):
        return nn.MaxPool2d(2, 2)(x)


def test_a_step_that_puts_nodes_in_is_named_at_them(saving: Saving) -> None:
    folder = saving(1)
    Images()(Tensor(np.ones((8, 16, 32, 32), np.float32)))
    text = text_of(folder, "graph_build_*")
    assert "# Made by: hwopt_0_share_small_values" in text or "# Made by: task_emit" in text
    assert os.path.exists(folder)
