"""A complete port: the source, the run of the program, the comparison."""
from __future__ import annotations

import ast
from dataclasses import dataclass, field

from torchspore.port import emit, examples, record, source, verify
from torchspore.port.emit import Ported
from torchspore.port.record import Recording
from torchspore.port.source import Problem
from torchspore.port.verify import Verdict


@dataclass
class Outcome:
    """The result of a port and of its comparison."""

    original: str
    ported: Ported
    verdicts: list[Verdict] = field(default_factory=list)
    why_not: str = ""
    """Why nothing was compared."""


def port_file(
    path: str, names: list[str] | None = None, arguments: str | None = None, inputs: list[str] | None = None, is_compared: bool = True,
) -> Outcome:
    """Port the Cells of a file, or those named, and compare them. Raises PortError for a file or a class that can't be ported."""
    text = source.read(path)
    names = [*_named_in(text, arguments), *names] if names else names
    outcome = Outcome(text.text, emit.port(text, names))
    if outcome.ported.problems or not is_compared:
        outcome.why_not = "--no-verify"
        return outcome
    classes = outcome.ported.classes
    if inputs or arguments is not None:
        recording = examples.recording(path, classes[-1], arguments, inputs or [])
    else:
        recording = record.run(path, set(classes), as_program=True)
        if not recording.calls and recording.error is None:
            recording = examples.recording(path, classes[-1], None, [], recording)
    training = {} if names else _training(recording)
    if training:
        outcome.ported = emit.port(text, names, training)
    if not outcome.ported.problems:
        outcome.verdicts = verify.verify(outcome.ported.text, outcome.ported.classes, recording)
    outcome.why_not = _why_not(recording)
    return outcome


def _named_in(text: source.Source, arguments: str | None) -> list[str]:
    """Return the Cells of the file that the arguments of the class name: `--args "Block, 10"`."""
    try:
        tree = ast.parse(f"f({arguments or ''})")
    except SyntaxError:
        return []
    cells = {node.name for node in emit.File(text).cells()}
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
    return "the program calls none of the Cells: pass --args and --example"
