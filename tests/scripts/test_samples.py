"""Every code sample of the documents in tests/samples, run verbatim under `python -m torchspore`, with what is expected of it.

A sample of a reference page leaves out its imports; the table gives it the page's own.
"""
from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from support.processes import Run, torchspore

SAMPLES = Path(__file__).resolve().parent.parent / "samples"
CONTEXT = "from mindspore import context"
MINDSPORE = "import mindspore"


@dataclass(frozen=True)
class Sample:
    """One sample: its file, and of a block of independent lines the number of the statement, or None for the whole."""

    file: str
    prelude: str = ""
    statement: int | None = None
    files: dict[str, str] = field(default_factory=dict)
    """Files that it needs, and that the test makes."""
    absent: str | None = None
    """The device that it asks for and that a machine with a CPU only does not have."""
    broken: str | None = None
    """The last line of the error, where the document itself is wrong."""

    @property
    def name(self) -> str:
        return self.file.removesuffix(".py") + ("" if self.statement is None else f":{self.statement}")

    def source(self) -> str:
        text = (SAMPLES / self.file).read_text(encoding="utf-8")
        if self.statement is not None:
            text = str(ast.get_source_segment(text, ast.parse(text).body[self.statement]))
        return f"{self.prelude}\n{text}" if self.prelude else text


CONFIGURATION = '{"rdr": {"enable": false}}'


def lines(file: str, **special: dict[str, Any]) -> list[Sample]:
    """A sample for each statement of a block whose lines are independent. `special` says what is expected where an option is set."""
    statements = ast.parse((SAMPLES / file).read_text(encoding="utf-8")).body
    texts = [ast.unparse(statement) for statement in statements]
    extra_arguments = [next((more for option, more in special.items() if f"({option}=" in text), {}) for text in texts]
    return [Sample(file, CONTEXT, index, **more) for index, more in enumerate(extra_arguments)]


TABLE = [
    *lines("000_get_context.py"),
    Sample("000_get_ps_context.py", CONTEXT, broken="NameError: name 'enable_ps' is not defined"),
    *lines("000_set_auto_parallel_context.py"),
    *lines(
        "000_set_context.py",
        device_target={"absent": "Ascend"},
        env_config_path={"files": {"env_config.json": CONFIGURATION}},
    ),
    Sample("000_set_ps_context.py", CONTEXT),
    Sample("000_inline_dataset_strategy.py", "from mindspore.context import set_auto_parallel_context",
           broken="NameError: name 'ds_stra' is not defined"),
    Sample("000_inline_env_config_path.py", CONTEXT, broken="SyntaxError: invalid character '”' (U+201D)"),
    Sample("000_inline_graph_kernel_flags.py", CONTEXT, broken="SyntaxError: invalid character '”' (U+201D)"),
    Sample("001_mode_selection.py"),
    Sample("001_mode_switch.py", absent="GPU"),
    Sample("001_hardware.py", absent="Ascend"),
    Sample("001_distributed.py"),
    Sample("001_profiling.py"),
    Sample("001_asynchronous_dump.py"),
    Sample("001_print_to_file.py"),
    Sample("002_env_config_path.py", MINDSPORE, files={"mindspore_config.json": CONFIGURATION}),
    Sample("002_graph_kernel_flags.py", MINDSPORE),
    Sample("003_mode_selection.py"),
    Sample("003_mode_switch.py", absent="GPU"),
    Sample("003_hardware.py", absent="Ascend"),
    Sample("003_profiling.py"),
    Sample("003_saving_mindir.py"),
    Sample("004_env_config_path.py", MINDSPORE, files={"mindspore_config.json": CONFIGURATION}),
    Sample("004_graph_kernel_flags.py", MINDSPORE),
]  # fmt: skip

ids = [sample.name for sample in TABLE]
Runner = Callable[..., Run]


def put(sample: Sample, folder: Path) -> Path:
    """Writes the program, and the files that it needs, into `folder`."""
    for name, text in sample.files.items():
        (folder / name).write_text(text, encoding="utf-8")
    path = folder / sample.file
    path.write_text(sample.source(), encoding="utf-8")
    return path


def test_every_sample_is_in_the_table() -> None:
    assert {sample.file for sample in TABLE} == {path.name for path in SAMPLES.glob("*.py")}


@pytest.mark.parametrize("sample", TABLE, ids=ids)
def test_sample(sample: Sample, warm: Runner, tmp_path: Path) -> None:
    ended = warm(put(sample, tmp_path).name, cwd=tmp_path)
    if sample.broken:
        assert (ended.code, ended.err.splitlines()[-1]) == (1, sample.broken)
    elif sample.absent:
        check_absent(ended, sample)
    else:
        assert ended == Run(0, "", "")


def check_absent(ended: Run, sample: Sample) -> None:
    """The error says what was asked for, what was found, and the command that mends it."""
    import torch

    kinds = {"GPU": "cuda", "Ascend": "npu"}
    if torch.accelerator.is_available() and str(torch.accelerator.current_accelerator()) == kinds[str(sample.absent)]:
        assert ended == Run(0, "", "")
        return
    assert ended.code == 1
    text = ended.err[ended.err.index("torchspore.errors.DeviceNotFound") :]
    assert len(text.splitlines()) <= 12
    assert f"device_target='{sample.absent}'" in text
    assert "TORCHSPORE_DEVICE=CPU" in text and "torchspore run --device CPU" in text


@pytest.mark.parametrize("sample", [sample for sample in TABLE if sample.absent], ids=lambda sample: sample.name)
def test_device_is_overridden(sample: Sample, warm: Runner, tmp_path: Path) -> None:
    ended = warm(put(sample, tmp_path).name, cwd=tmp_path, TORCHSPORE_DEVICE="CPU")
    assert (ended.code, ended.out) == (0, "")


@pytest.mark.parametrize("file", ["000_set_auto_parallel_context.py", "000_set_context.py"])
def test_complete_block(file: str, warm: Runner, tmp_path: Path) -> None:
    sample = Sample(file, CONTEXT, files={"env_config.json": CONFIGURATION})
    ended = warm(put(sample, tmp_path).name, cwd=tmp_path, TORCHSPORE_DEVICE="CPU")
    assert (ended.code, ended.out) == (0, "")


@pytest.mark.parametrize("sample", [sample for sample in TABLE if sample.files], ids=lambda sample: sample.name)
def test_missing_file_is_named(sample: Sample, warm: Runner, tmp_path: Path) -> None:
    path = put(sample, tmp_path)
    (name,) = sample.files
    (tmp_path / name).unlink()
    ended = warm(path.name, cwd=tmp_path)
    assert ended.code == 1
    assert name in ended.err.splitlines()[-1] or name in ended.err


@pytest.mark.slow
@pytest.mark.sample
def test_mode_switch_in_a_separate_process(tmp_path: Path) -> None:
    put(next(sample for sample in TABLE if sample.file == "003_mode_switch.py"), tmp_path)
    ended = torchspore("run", "--device", "CPU", "003_mode_switch.py", cwd=tmp_path)
    assert (ended.code, ended.out) == (0, "")
