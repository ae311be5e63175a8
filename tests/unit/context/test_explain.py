"""`torchspore explain`, `torchspore context`, and the notes of other layers."""
from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from support.processes import Run

from torchspore.cli import context as listing
from torchspore.cli import explain
from torchspore.context import effects
from torchspore.context.options import ALIASES, OPTIONS
from torchspore.context.public import set_context
from torchspore.context.store import STORE

Program = Callable[..., Run]


def test_the_table_of_a_program(run: Callable[..., Run], tmp_path: object) -> None:
    path = tmp_path / "train.py"  # type: ignore[operator]
    path.write_text("import mindspore as ms\nms.set_context(device_id=2)\nms.set_auto_parallel_context(device_num=2)\nprint('ran')\n")
    ran = run("explain", "train.py")
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert lines[0] == "ran"
    assert [line.split() for line in lines if line.startswith(("option", "device_id", "auto_parallel"))] == [
        ["option", "value", "from", "outcome"],
        ["device_id", "2", "train.py:2", "no", "effect", "here:", "the", "CPU", "has", "no", "index"],
        ["auto_parallel.device_num", "2", "train.py:3", "stored;", "nothing", "that", "reads", "it", "has", "run"],
    ]


def test_a_new_value_forgets_what_was_reported_about_the_old() -> None:
    set_context(mode=0)
    effects.report("mode", effects.Outcome.applied("calls run as captured graphs"))
    assert [row[3] for row in explain.rows() if row[0] == "mode"] == ["applied: calls run as captured graphs"]
    set_context(mode=1)
    assert [row[3] for row in explain.rows() if row[0] == "mode"] == ["applied: operators run as Python reaches them"]


def test_a_program_that_sets_nothing() -> None:
    for api in ("context", "auto_parallel", "ps", "offload"):
        STORE.reset(api)
    out = io.StringIO()
    explain.table(out)
    assert out.getvalue() == "No option of the context was set; all are at their defaults.\n"


def test_notes_stand_below_the_table() -> None:
    effects.note("graphs", "Net.construct: 12 operators")
    effects.note("graphs", "Net.construct: 12 operators")
    out = io.StringIO()
    explain.table(out)
    assert out.getvalue().endswith("\ngraphs\n  Net.construct: 12 operators\n")


def test_a_note_may_be_asked_when_it_is_printed() -> None:
    rows: list[int] = []
    effects.note("data pipelines", lambda: f"{len(rows)} rows" if rows else "")
    assert effects.notes() == {}
    rows.append(1)
    assert effects.notes() == {"data pipelines": ["1 rows"]}


def test_on_a_terminal_the_table_is_drawn() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    set_context(max_call_depth=7)
    out = Terminal()
    explain.table(out)
    assert "max_call_depth" in out.getvalue()
    assert "┃" in out.getvalue()


def test_the_listing_has_every_option_and_counts_those_that_act(capsys: pytest.CaptureFixture[str]) -> None:
    assert listing.run([]) == 0
    out = capsys.readouterr().out
    names = {line.strip(" >").split()[0] for line in out.splitlines() if line.startswith("  ")}
    assert names >= {option.name for option in OPTIONS.values()} | {alias.name for alias in ALIASES.values()}
    marks = [line[45:49].strip() for line in out.splitlines() if line.startswith("  ")]
    # Numbers of their own, not the page's: who makes an option act, or stop acting, changes them here too.
    assert (marks.count("acts"), marks.count("idle"), marks.count("")) == (211, 16, 0)
    assert out.endswith(
        "211 of 227 options have an effect. 16 are accepted without an effect, each with a reason. "
        "`torchspore explain` prints the outcome of each.\n"
    )


def test_the_page_of_an_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert listing.run(["pynative_synchronize"]) == 0
    assert capsys.readouterr().out == (
        "pynative_synchronize  (set_context)\n\n"
        "Waits for each operator, so that an error appears at the line that caused it. On the CPU, Python always waits.\n\n"
        "  values       True or False\n"
        "  default      False\n"
        "  devices      GPU, Ascend\n"
        "  effect       yes\n"
        "  threads      affects the entire process; a `context.scope` accepts it only in the main thread while no other thread runs\n"
        "  MindSpore    since 1.5\n"
        "  example      set_context(pynative_synchronize=True)\n\n"
    )
    assert listing.run(["mirror_mean"]) == 0
    assert "the same as  gradients_mean" in capsys.readouterr().out


def test_the_page_of_an_option_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert listing.run(["device_tagret"]) == 2
    assert capsys.readouterr().err == "torchspore context device_tagret: this option does not exist.\n\nhint: did you mean device_target?\n"


def test_every_declaration_is_complete() -> None:
    for option in OPTIONS.values():
        assert option.doc.endswith("."), option.key
        assert option.doc[0].isupper() or option.doc[0] == "'", option.key
        default = option.default_on("CPU")
        assert default is None or option.kind.expected, option.key
        if option.example is not None and option.settable and option.example.startswith("set_context("):
            assert option.name in option.example or (option.member_of or "") in option.example, option.key


@pytest.mark.parametrize("name", ["conv_fprop_algo", "conv_dgrad_algo", "conv_wgrad_algo"])
def test_options_that_no_gpu_has_run_are_shown_as_experimental(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    listing.run([name])
    assert "  experimental no GPU has run cuDNN's algorithms by name yet; tests call a stand-in of the library\n" in capsys.readouterr().out
