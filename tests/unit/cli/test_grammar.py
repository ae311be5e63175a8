"""The common grammar of all commands: help, errors, exit codes, JSON, completion, SARIF."""
from __future__ import annotations

import argparse
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from torchspore.cli import check, completion, context, grammar
from torchspore.cli.main import COMMANDS, main

WITHOUT_ARGUMENTS = ("context", "env", "doctor", "calibrate")
"""Commands that run without any word."""


@pytest.mark.parametrize("name", COMMANDS)
def test_help_describes_each_command_with_an_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--help"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"usage: torchspore {name}")
    assert "\nexamples:\n  torchspore " in out


@pytest.mark.parametrize("name", COMMANDS)
def test_an_unknown_option_is_refused_on_stderr(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--no-such-option"]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith(f"torchspore {name}") and "\n\nhint: " in err


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - set(WITHOUT_ARGUMENTS)))
def test_a_missing_argument_is_refused_on_stderr(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith(f"torchspore {name}: expected ") and "\n\nhint: " in err


def test_examples_in_help_are_valid_command_lines() -> None:
    import shlex

    for name in COMMANDS:
        parser = grammar.command_parser(name)
        for example in parser.examples:
            words = shlex.split(example.split(" > ")[0])[2:]
            grammar.split_program(parser, words) if parser.runs_program else parser.parse_args(words)


@pytest.mark.parametrize("words, problem", [
    (["rdr", "shwo", "x"], "torchspore rdr shwo: expected show, exchanges.\n\nhint: write `torchspore rdr show`."),
    (["ckpt", "shw", "x"],
     "torchspore ckpt shw: expected show, diff, convert, to-torch, from-torch.\n\nhint: write `torchspore ckpt show`."),
    (["check", "--format", "txt", "."], "torchspore check --format txt: expected text, json, sarif, github."),
    (["tune", "a", "b"], "torchspore tune b: unexpected extra argument."),
    (["rdr", "show", "--operators", "many", "x"], "torchspore rdr show --operators many: expected a number from 0 to 1e+06."),
    (["calibrate", "--processes", "1"], "torchspore calibrate --processes 1: expected a number from 2 to 64."),
    (["context", "device_target", "device_id"], "torchspore context device_id: unexpected extra argument."),
])
def test_wrong_words_are_named(words: list[str], problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert capsys.readouterr().err.startswith(problem)


def test_options_after_the_program_belong_to_the_program() -> None:
    parser = grammar.command_parser("workers")
    options, program = grammar.split_program(parser, ["-n", "3", "--timeout=5", "train.py", "-n", "4", "--", "x"])
    assert (options.count, options.timeout, program) == (3, 5.0, ("train.py", "-n", "4", "--", "x"))
    assert grammar.split_program(parser, ["-m", "package.train", "-n", "4"])[1] == ("-m", "package.train", "-n", "4")


def test_options_are_not_abbreviated(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--dev", "CPU", "train.py"]) == 2
    assert "--dev: no such option" in capsys.readouterr().err


@pytest.mark.needs("shtab")
@pytest.mark.parametrize("shell", completion.SHELLS)
def test_completion_contains_each_command(shell: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert completion.run([shell]) == 0
    script = capsys.readouterr().out
    assert all(name in script for name in COMMANDS) and (shell == "tcsh" or "--simulate" in script)
    if shell == "bash":
        (tmp_path / "completion.bash").write_text(script)
        completed = subprocess.run(
            ["bash", "-c", f"source {tmp_path}/completion.bash; COMP_WORDS=(torchspore ckpt to-t); COMP_CWORD=2; COMPREPLY=(); "
                           "_shtab_torchspore; echo ${COMPREPLY[@]}"], capture_output=True, text=True, timeout=30, check=True)
        assert completed.stdout.strip() == "to-torch", completed.stderr


def test_the_tree_contains_the_options_of_each_command() -> None:
    root = grammar.tree(COMMANDS)
    (actions,) = (action for action in root._actions if isinstance(action, argparse._SubParsersAction))
    assert set(actions.choices) == set(COMMANDS)
    assert root.parse_args(["plan", "--devices", "8"]).devices == 8


def test_context_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert context.run(["--json"]) == 0
    listed = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)}
    assert listed["device_target"]["setter"] == "set_context" and listed["device_target"]["description"]
    assert context.run(["--json", "device_target"]) == 0
    assert [entry["name"] for entry in json.loads(capsys.readouterr().out)] == ["device_target"]


@pytest.fixture
def findings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "old.py").write_text("import mindspore.ops as ops\nprint(ops.no_such_operator)\n")
    cells = [{"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": "from mindspore import nothing_here"}]
    (tmp_path / "n,b.ipynb").write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    monkeypatch.chdir(tmp_path)


def sarif_results(text: str) -> list[dict[str, Any]]:
    log = json.loads(text)
    assert log["version"] == "2.1.0" and log["runs"][0]["tool"]["driver"]["name"] == "torchspore check"
    results: list[dict[str, Any]] = log["runs"][0]["results"]
    return results


@pytest.mark.usefixtures("findings")
def test_check_writes_sarif(capsys: pytest.CaptureFixture[str]) -> None:
    assert check.run(["--format", "sarif", "."]) == 1
    results = sarif_results(capsys.readouterr().out)
    locations = {result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]: result for result in results}
    script = locations["old.py"]
    assert (script["level"], script["ruleId"]) == ("error", "missing")
    assert script["locations"][0]["physicalLocation"]["region"] == {"startLine": 2} and "no_such_operator" in script["message"]["text"]
    notebook = locations["n,b.ipynb"]
    assert "region" not in notebook["locations"][0]["physicalLocation"] and notebook["message"]["text"].startswith("cell 1, line 1: ")


@pytest.mark.usefixtures("findings")
def test_check_writes_annotations_of_github(capsys: pytest.CaptureFixture[str]) -> None:
    assert check.run(["--format", "github", "."]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("::error file=old.py,line=2,title=torchspore check::") for line in lines)
    assert any(line.startswith("::error file=n%2Cb.ipynb,title=torchspore check::cell 1, line 1: ") for line in lines)


def test_the_action_runs_the_check() -> None:
    yaml = pytest.importorskip("yaml")
    action = yaml.safe_load((Path(__file__).parents[3] / "action.yml").read_text(encoding="utf-8"))
    (step,) = action["runs"]["steps"]
    assert action["runs"]["using"] == "composite" and "torchspore check --format github" in step["run"]
    assert "${{" not in step["run"], "inputs reach the shell as environment variables alone, so that they cannot inject commands"
