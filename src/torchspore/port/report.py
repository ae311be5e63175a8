"""Texts of a port: problems, the first line of the source, the summary, the page."""
from __future__ import annotations

import difflib
import html

from torchspore.port.complete_port import Outcome
from torchspore.port.rewriting.torch_file import Ported
from torchspore.port.verification.comparison import Verdict
from torchspore.translations import english, translate


def problems(path: str, ported: Ported) -> str:
    """Return the list of what has no rule."""
    text = translate("torchspore port: {path}: nothing was written; {count} of its lines can't be ported:")
    lines = [text.format(path=path, count=len(ported.problems))]
    in_file, in_path = translate("  line {line}: {text}"), translate("  {path}, line {line}: {text}")
    lines += [(in_path if problem.path else in_file).format(path=problem.path, line=problem.line, text=problem.text)
              for problem in ported.problems]
    return "\n".join(lines)


def headed(outcome: Outcome) -> str:
    """Return the source; if something was not verified, its first line says so."""
    ported, verdicts = outcome.ported, outcome.verdicts
    bad = [verdict for verdict in verdicts if not verdict.is_equal]
    if ported.by_hand:
        first = ported.by_hand[0]
        rest = f", and {len(ported.by_hand) - 1} more" if len(ported.by_hand) > 1 else ""
        return f"# Not verified. Left to do by hand: line {first.line}: {first.text}{rest}.\n{ported.text}"
    if bad:
        with english():
            details = "; ".join(f"{verdict.name}: {_outcome(verdict)}" for verdict in bad)
        return f"# Not verified. {details}\n{ported.text}"
    if not verdicts:
        return f"# Not verified: {outcome.why_not}.\n{ported.text}"
    return ported.text


def _outcome(verdict: Verdict) -> str:
    if verdict.reason:
        return verdict.reason
    if verdict.steps:
        text = translate("after {steps} training steps losses differ by {forward:.1e}, weights by {gradient:.1e}, "
                         "relative to the largest value")
        outcome = text.format(steps=verdict.steps, forward=verdict.forward, gradient=verdict.gradient)
        if not verdict.unstable:
            return outcome
        text = translate("{outcome}; without {share:.1%} of the weights, which rounding errors change more")
        return text.format(outcome=outcome, share=verdict.unstable)
    text = translate("results differ by {forward:.1e}, gradients by {gradient:.1e}, relative to the largest value")
    return text.format(forward=verdict.forward, gradient=verdict.gradient)


def summary(path: str, out: str | None, outcome: Outcome) -> str:
    """Return the lines for the terminal."""
    ported, verdicts = outcome.ported, outcome.verdicts
    parts = [*ported.classes, *ported.functions, *([translate("the training")] if ported.is_script else [])]
    text = translate("{path}: {parts} ported") if not out else translate("{path}: {parts} ported to {out}") if len(ported.files) < 2 else (
        translate("{path}: {parts} ported to {out} ({count} files)"))
    lines = [text.format(path=path, parts=", ".join(parts), out=out, count=len(ported.files))]
    omitted, by_hand = translate("  not ported: {text} (line {line})"), translate("  left to do by hand: line {line}: {text}")
    lines += [omitted.format(text=problem.text, line=problem.line) for problem in ported.omitted_classes.values()]
    lines += [by_hand.format(text=problem.text, line=problem.line) for problem in ported.by_hand]
    for verdict in verdicts:
        state = translate("verified") if verdict.is_equal else translate("NOT VERIFIED")
        text = translate("  {state}: {name}, {count} parameters in {precision}: {outcome}") if verdict.parameters else translate(
            "  {state}: {name} in {precision}: {outcome}")
        lines.append(text.format(
            state=state, name=verdict.name, count=verdict.parameters, precision=verdict.precision, outcome=_outcome(verdict)))
    if outcome.recording is not None and outcome.recording.absent:
        text = translate("  not installed, and without effect on this comparison: {packages}")
        lines.append(text.format(packages=", ".join(sorted(outcome.recording.absent))))
    if not verdicts:
        lines.append("  " + translate("not verified: {reason}").format(reason=outcome.why_not))
    return "\n".join(lines)


_STYLE = """
body { font: 14px/1.5 sans-serif; margin: 1.5em; color: #222; background: #fff } table { border-collapse: collapse }
td, th { padding: 0 .6em; text-align: left; vertical-align: top }
pre, td.code { font: 12px/1.4 monospace; white-space: pre-wrap; word-break: break-word }
.sources { width: 100%; table-layout: fixed } .sources td.number { width: 3em; color: #888; text-align: right }
.changed { background: #fff6d6 } .note { color: #7a5b00; font-style: italic } .bad { color: #b00020 } .good { color: #1b6e2e }
@media (max-width: 700px) { body { margin: .5em } .sources td.number { display: none } }
"""


def page(path: str, content: str, outcome: Outcome) -> str:
    """Return the page: differences, reasons, both sources side by side."""
    title = f"{path} in PyTorch"
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>",
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style><h1>{html.escape(title)}</h1>",
        f"<pre>{html.escape(summary(path, None, outcome))}</pre>", _layers(outcome.verdicts),
        "<h2>Source</h2><table class=sources>", *_side_by_side(outcome.original, content, dict(_notes(outcome.ported))), "</table></html>",
    ]
    return "\n".join(parts)


def _notes(ported: Ported) -> list[tuple[int, str]]:
    notes: dict[int, str] = {}
    for line, text in ported.reasons:
        notes[line] = f"{notes[line]}; {text}" if line in notes else text
    return sorted(notes.items())


def _layers(verdicts: list[Verdict]) -> str:
    rows = []
    for verdict in verdicts:
        for name, difference in sorted(verdict.layers, key=lambda item: -item[1])[:200]:
            state = "good" if difference <= 1e-5 else "bad"
            rows.append(f"<tr><td>{html.escape(verdict.name)}<td>{html.escape(name)}<td class={state}>{difference:.1e}</tr>")
    if not rows:
        return ""
    return f"<h2>Gradients</h2><table><tr><th>class<th>parameter<th>largest difference</tr>{''.join(rows)}</table>"


def _side_by_side(original: str, content: str, notes: dict[int, str]) -> list[str]:
    """Return the rows of the table: equal lines beside each other, changed ones marked, with the reason."""
    before, after = original.splitlines(), content.splitlines()
    rows = []
    for kind, a0, a1, b0, b1 in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        for index in range(max(a1 - a0, b1 - b0)):
            line, new_line = a0 + index, b0 + index
            first, second = (before[line] if line < a1 else ""), (after[new_line] if new_line < b1 else "")
            mark = "" if kind == "equal" else " class=changed"
            note = f"<div class=note>{html.escape(notes[line + 1])}</div>" if line < a1 and line + 1 in notes else ""
            numbers = [str(line + 1) if line < a1 else "", str(new_line + 1) if new_line < b1 else ""]
            rows.append(f"<tr{mark}><td class=number>{numbers[0]}<td class=code>{html.escape(first)}{note}"
                        f"<td class=number>{numbers[1]}<td class=code>{html.escape(second)}</tr>")
    return rows
