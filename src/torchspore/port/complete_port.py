"""A complete port: the source, the run of the program, the comparison."""
from __future__ import annotations

import ast
import sys
import types
from dataclasses import dataclass, field
from pathlib import Path

from torchspore.port.analysis.definitions import File
from torchspore.port.analysis.project import Project
from torchspore.port.analysis.source import Problem, Source
from torchspore.port.rewriting import torch_file
from torchspore.port.rewriting.torch_file import Ported
from torchspore.port.training import user_classes
from torchspore.port.verification import (
    autocast_comparison,
    comparison,
    example_inputs,
    metric_comparison,
    recorded_run,
    training_comparison,
)
from torchspore.port.verification.absent_packages import placeholders
from torchspore.port.verification.comparison import Verdict
from torchspore.port.verification.recorded_run import Recording


@dataclass
class Outcome:
    """The result of a port and of its comparison."""

    original: str
    ported: Ported
    verdicts: list[Verdict] = field(default_factory=list)
    entry: str = ""
    """The path of the file below the folder at which its imports begin."""
    why_not: str = ""
    """Why nothing was compared."""
    module: types.ModuleType | None = None
    """The executed port, if it was compared."""
    recording: Recording | None = None
    """The first calls of the Cells in the program, if it was run."""


def port_file(
    path: str, names: list[str] | None = None, arguments: str | None = None, inputs: list[str] | None = None, is_compared: bool = True,
    with_script: bool = False,
) -> Outcome:
    """Port the Cells of a file, or those named, and compare them; `with_script`: and the training of the file.

    Raises PortError for a file or a class that can't be ported.
    """
    project = Project(path)
    text = project.entry.source
    package = str(project.root), project.entry.module
    names = [*_named_in(text, arguments), *names] if names else names
    outcome = Outcome(text.text, torch_file.port(text, names, None, project, with_script), entry=project.path_of(project.entry))
    if outcome.ported.problems or not is_compared:
        outcome.why_not = "--no-verify"
        return outcome
    if outcome.ported.is_script:
        outcome.verdicts = training_comparison.verify(path, outcome.ported.text, lambda _: _loaded(outcome, project.root, "__main__"))
        file = project.entry
        metrics = [name for name in outcome.ported.classes if user_classes.is_metric(file, file.classes[name])]
        outcome.verdicts += metric_comparison.compare_metrics(text.text, outcome.ported.text, metrics)
        return outcome
    classes = [*outcome.ported.classes, *outcome.ported.functions] if names else outcome.ported.classes
    if inputs or arguments is not None:
        recording = example_inputs.recording(path, classes[-1], arguments, inputs or [], package=package)
    else:
        recording = recorded_run.run(path, set(classes), as_program=True, package=package)
        if not recording.calls and recording.error is None:
            recording = example_inputs.recording(path, classes[-1], None, [], recording, package)
    outcome.recording = recording
    training = {} if names else _training(recording)
    if training:
        outcome.ported = torch_file.port(text, names, training, project)
    if not outcome.ported.problems:
        names_in_torch = [*outcome.ported.classes, *outcome.ported.functions]
        try:
            with placeholders(recording.absent):
                module = outcome.module = _loaded(outcome, project.root)
        except Exception as error:
            reason = f"the port can't be imported: {type(error).__name__}: {error}".splitlines()[0]
            outcome.verdicts = [Verdict(Path(path).name, reason=reason)]
            return outcome
        lowered = autocast_comparison.compare_lowered(module, names_in_torch, recording)
        outcome.verdicts = [*comparison.verify(module, names_in_torch, recording), *lowered]
    outcome.why_not = _why_not(recording)
    return outcome


def _loaded(outcome: Outcome, root: Path, name: str = "ported") -> types.ModuleType:
    """Return the module of a port. It runs without the arguments of this command."""
    files, before = outcome.ported.files, sys.argv
    sys.argv = [str(root / outcome.entry)]
    try:
        if len(files) > 1:
            return comparison.module_of_files(files, outcome.entry, name, root)
        return comparison.module_of_text(outcome.ported.text, name)
    finally:
        sys.argv = before


def _named_in(text: Source, arguments: str | None) -> list[str]:
    """Return the Cells of the file that the arguments of the class name: `--args "Block, 10"`."""
    try:
        tree = ast.parse(f"f({arguments or ''})")
    except SyntaxError:
        return []
    cells = {node.name for node in File(text).cells()}
    return sorted({part.id for part in ast.walk(tree) if isinstance(part, ast.Name)} & cells)


def _training(recording: Recording) -> dict[str, Problem]:
    """Return the classes whose objects the program creates with optimizers or training steps."""
    text = "is part of the training: the program creates it with an optimizer or a training step"
    return {name: Problem(1, f"{name} {text}") for name in sorted(recording.training)}


def _why_not(recording: Recording) -> str:
    if recording.calls:
        return ""
    if recording.error is not None:
        return f"the program ended with {type(recording.error).__name__}: {recording.error}".splitlines()[0]
    return "the program does not call any of the Cells: pass --args and --example"
