"""The flags of graph kernels: what each text comes to, and what is said of a flag that means nothing. No text is an error."""
from __future__ import annotations

import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from torchspore.context import public as c
from torchspore.context.options import OPTIONS
from torchspore.context.store import STORE


def warned(flags: str) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        c.set_context(graph_kernel_flags=flags)
    assert c.get_context("graph_kernel_flags") == flags
    assert all(str(w.filename) == __file__ for w in caught)
    return [str(w.message).removeprefix("graph_kernel_flags: ") for w in caught]


def value(name: str) -> Any:
    return STORE.get(f"graph_kernel_flags.{name}")


@pytest.fixture(autouse=True)
def as_before() -> Any:
    yield
    c.set_context(graph_kernel_flags="")


@pytest.mark.parametrize(("flags", "text"), [
    ("--bogus", "there is no flag --bogus; it is ignored."),
    ("--opt_levl=2", "there is no flag --opt_levl; it is ignored.\n\nhint: did you mean --opt_level?"),
    ("--opt_level=9", "--opt_level=9 counts as 3, which is the highest.\n\nhint: write --opt_level=0, 1, 2 or 3."),
    ("--opt_level=x", "--opt_level=x: expected an int from 0 to 3; the flag is ignored."),
    ("--dump_as_text=maybe", "--dump_as_text=maybe: expected True or False; the flag is ignored."),
    ("garbage", "'garbage' is not a flag; it is ignored.\n\nhint: a flag looks like --opt_level=2 or --dump_as_text."),
    ("--opt_level=1 --opt_level=2", "the flag --opt_level appears twice; the first one counts.\n\nhint: write --opt_level once."),
    ("--disable_cluster_ops=Relu", "'Relu' is not among the operators that graph kernels know; it is ignored.\n\n"
     "hint: did you mean ReLU?"),
    ("--disable_pass=stitch", "'stitch' is not among the passes that graph kernels know; it is ignored.\n\n"
     "hint: did you mean stitch_fusion?"),
    ("--disable_simplify_exprs=mul_on", "'mul_on' is not among the rules that graph kernels know; it is ignored.\n\n"
     "hint: did you mean mul_one?"),
    ("--path=/nowhere.json", "--path=/nowhere.json: the file cannot be read (No such file or directory); it is ignored."),
])  # fmt: skip
def test_what_is_no_flag_is_named_and_passed_over(flags: str, text: str) -> None:
    assert warned(flags) == [text]


def test_values() -> None:
    assert warned("--opt_level=9 --dump_as_text --reduce_fuse_depth=-1 --disable_cluster_ops=Exp,ReLU --enable_stitch_fusion=off") != []
    assert (value("opt_level"), value("dump_as_text"), value("reduce_fuse_depth")) == (3, True, -1)
    assert (value("disable_cluster_ops"), value("enable_stitch_fusion"), value("composite_op_limit_size")) == (("Exp", "ReLU"), False, 200)
    assert warned("--opt_level=1 --opt_level=2") and value("opt_level") == 1


def test_every_flag_of_the_table_is_known_and_takes_its_own_example() -> None:
    for name, option in OPTIONS["graph_kernel_flags"].members.items():
        assert warned(str(option.example).partition("'")[2].rpartition("'")[0].replace("--path=flags.json", "")) == [], name


@pytest.mark.parametrize(("content", "text"), [
    ("{", "expected a file of JSON, Expecting property name enclosed in double quotes: line 1 column 2 (char 1); it is ignored."),
    ("[1]", "expected one JSON object; it is ignored.\n\nhint: for example {\"opt_level\": \"2\"}."),
    ('{"opt_level": [2]}', "'opt_level' is not a text; it is ignored.\n\nhint: for example {\"opt_level\": \"2\"}."),
])
def test_a_file_that_holds_no_flags(tmp_path: Path, content: str, text: str) -> None:
    path = tmp_path / "flags.json"
    path.write_text(content)
    assert warned(f"--path={path}") == [f"--path={path}: {text}"]


def test_a_file_of_flags_and_the_text_over_it(tmp_path: Path) -> None:
    path = tmp_path / "flags.json"
    path.write_text(json.dumps({"opt_level": "3", "dump_as_text": "true", "composite_op_limit_size": "7", "bogus": "1"}))
    assert warned(f"--opt_level=1 --path={path}") == ["there is no flag --bogus; it is ignored."]
    assert (value("opt_level"), value("dump_as_text"), value("composite_op_limit_size")) == (1, True, 7)


def test_another_type_is_an_error() -> None:
    with pytest.raises(TypeError):
        c.set_context(graph_kernel_flags=["--opt_level=2"])


@pytest.mark.parametrize("variable", ["MS_GRAPH_KERNEL_FLAGS", "MS_DEV_GRAPH_KERNEL_FLAGS"])
def test_the_environment_wins_over_the_program(variable: str) -> None:
    program = ("from torchspore.context import public as c\nfrom torchspore.context.store import STORE\n"
               "c.set_context(graph_kernel_flags='--opt_level=1')\n"
               "print(STORE.get('graph_kernel_flags.opt_level'), c.get_context('graph_kernel_flags'))")
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env={variable: "--opt_level=3"})
    assert ended.stdout.split() == ["3", "--opt_level=3"], ended.stderr


def test_aoe_job_type_is_the_member_of_aoe_config() -> None:
    c.set_context(aoe_config={"job_type": "1"})
    assert c.get_context("aoe_job_type") == "1"
    c.set_context(aoe_job_type="2")
    assert c.get_context("aoe_config") == {"job_type": "2"}
    with pytest.raises(ValueError):
        c.set_context(aoe_job_type="3")
